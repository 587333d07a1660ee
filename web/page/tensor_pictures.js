// Statistics, distribution and heat map of a tensor's values.

import { element, exactText, percentText, realText } from "./basics.js";
import { histogram } from "./charts.js";
import { plainText } from "./names.js";
import { TensorMap } from "./tensor_map.js";

const countOf = (n) => n.toLocaleString("en");

// facts: [title, text]
export function factsList(facts, kind = "") {
  return element(
    "dl",
    { class: "facts " + kind },
    ...facts.flatMap(([title, text]) => [element("dt", {}, title), element("dd", {}, text)]),
  );
}

function statistics(f, isDouble) {
  // Of a sample it is not known what the other values are.
  const counted = (n) => (f.isWhole ? countOf(n) : n ? `${countOf(n)} in the sample` : "none in the sample");
  const of = f.isWhole ? "" : " of the sample";
  return [
    ["Values", f.isWhole ? countOf(f.count) : `${countOf(f.count)} of ${countOf(f.all)} (sample)`],
    ["Zeros", `${counted(f.zeros)} (${percentText(f.zeros, f.count)})`],
    ["Minimum" + of, exactText(f.min, isDouble)],
    ["Maximum" + of, exactText(f.max, isDouble)],
    ["Mean" + of, realText(f.mean)],
    ["Std deviation" + of, realText(f.std)],
    ["NaN", counted(f.nan)],
    ["Infinite", counted(f.inf)],
  ];
}

// Return nodes for the answer of the worker to "survey".  readAll(): a button of a sample calls it;
// slice(place): asks for a part of the values.
export function pictures(name, { part, figures }, { readAll, slice } = {}) {
  if (!figures) {
    const what = part.layout ? `the layout ${plainText(part.layout)}` : `the type ${part.dtype}`;
    const text = `Values of ${what} are not decoded; the bytes are shown in hexadecimal.`;
    return [element("p", { class: "quiet" }, text)];
  }
  const nodes = [element("h3", {}, "Values"), factsList(statistics(figures, part.dtype === "f64"), "pairs")];
  if (!figures.isWhole && readAll) {
    const button = element("button", { type: "button" }, `Read all ${countOf(figures.all)} values`);
    button.addEventListener("click", readAll);
    nodes.push(element("p", {}, button));
  }
  if (figures.bins.length && figures.min < figures.max)
    nodes.push(
      element("h3", {}, "Distribution"),
      histogram(name, figures.bins, figures.min, figures.max),
    );
  if (figures.count) nodes.push(new TensorMap({ figures, part, slice }).node);
  return nodes;
}

// The same for a part of the values, while the others are read.
export function firstPictures(name, { part, figures }) {
  return [element("p", { class: "quiet" }, "Reading values…"), ...pictures(name, { part, figures })];
}
