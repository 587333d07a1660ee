// The figures above the views: format, sizes, element types.

import { byId, countText, element, sizeText } from "./basics.js";
import { shares } from "./charts.js";

// The sums are not known before the columns.
export function showCards(m) {
  const facts = [
    ["Format", m.format + (m.version ? ` ${m.version}` : "")],
    ["Parameters", m.columns ? countText(m.elements) : "…"],
    ["Tensors", m.count.toLocaleString("en") + (m.missing.length || m.alone ? ", incomplete" : "")],
    [m.isDecoded ? "Data, decoded" : "Data", m.columns ? sizeText(m.bytes) : "…"],
    [m.files > 1 ? "Files" : "File", sizeText(m.total)],
  ];
  const there = (m.files - m.missing.length).toLocaleString("en");
  const all = m.files.toLocaleString("en");
  if (m.files > 1) facts.push(["Number of files", m.missing.length ? `${there} of ${all}` : all]);
  byId("cards").replaceChildren(
    ...facts.map(([title, text]) =>
      element("div", {}, element("dt", {}, title), element("dd", {}, text)),
    ),
  );
  byId("types").replaceChildren();
  byId("types").classList.toggle("awaited", !m.columns);
  if (m.types?.length) shares(byId("types"), m.types);
}
