// The page: reads the figures and fills the sections.

import { byId, countText, element, percentText, realText, shapeText, sizeText } from "./basics.js";
import { histogram, shares, sparkline } from "./charts.js";
import { ListRows } from "./list_rows.js";
import { moduleMap } from "./module_map.js";
import { Table } from "./table.js";
import { Treemap } from "./treemap.js";

const data = JSON.parse(byId("data").textContent);
const tensors = data.tensors.map((row) => {
  const t = {};
  data.columns.forEach((key, i) => (t[key] = row[i]));
  t.dtype = data.dtypes[t.dtype];
  return t;
});

function cards() {
  const f = data.file;
  const facts = [
    ["Format", f.version ? `${f.format} ${f.version}` : f.format],
    ["Parameters", countText(f.elements)],
    ["Tensors", f.tensors.toLocaleString("en")],
    ["Data", sizeText(f.bytes)],
    ["Size", sizeText(f.size)],
  ];
  if (f.shards) facts.push(["Files", (f.shards + 1).toLocaleString("en")]);
  byId("cards").append(...facts.map(([title, text]) =>
    element("div", {}, element("dt", {}, title), element("dd", {}, text))));
  document.title = f.name + " – model report";
  byId("title").textContent = f.name;
  byId("subtitle").textContent = f.path;
  byId("made").textContent = "Made by heft " + data.heft + ".";
}

function types() {
  const sums = new Map();
  for (const t of tensors) {
    const name = t.dtype || "no element type";
    const sum = sums.get(name) || { name, bytes: 0, tensors: 0 };
    sum.bytes += t.bytes;
    sum.tensors++;
    sums.set(name, sum);
  }
  byId("contents").hidden = !tensors.length;
  shares(byId("types"), [...sums.values()].sort((a, b) => b.bytes - a.bytes));
}

// ---- tensors

function statistics(t) {
  if (t.count === null) return [];
  return [["Values", t.count.toLocaleString("en")], ["Minimum", realText(t.min)],
          ["Maximum", realText(t.max)], ["Mean", realText(t.mean)],
          ["Standard deviation", realText(t.std)],
          ["Zeros", `${t.zeros.toLocaleString("en")} (${percentText(t.zeros, t.count)})`],
          ["NaN", t.nan.toLocaleString("en")], ["Infinite", t.inf.toLocaleString("en")]];
}

function detail(t) {
  const facts = [["Element type", t.dtype || "none"], ["Shape", shapeText(t.shape)],
                 ["Bytes", t.bytes.toLocaleString("en")], ...statistics(t)];
  const list = element("dl", { class: "facts" }, ...facts.flatMap(([title, text]) =>
    [element("dt", {}, title), element("dd", {}, text)]));
  const drawn = t.bins && t.bins.length && typeof t.min === "number" && typeof t.max === "number";
  byId("detail").replaceChildren(element("h3", {}, t.name || "(no name)"), list,
                                 ...(drawn ? [histogram(t.name, t.bins, t.min, t.max)] : []));
}

function tensorTable() {
  const whole = (key) => (t) => (t[key] === null ? "–" : t[key].toLocaleString("en"));
  const plain = (key) => (t) => t[key];
  const real = (title, key) => ({ title, number: true, width: [104, 1], text: (t) => realText(t[key]),
                                  value: plain(key) });
  const columns = [
    { title: "Name", width: [220, 5], text: (t) => t.name, value: plain("name") },
    { title: "Type", width: [70, 1], text: (t) => t.dtype || "–", value: plain("dtype") },
    { title: "Shape", text: (t) => shapeText(t.shape), value: plain("elements") },
    { title: "Size", number: true, text: (t) => sizeText(t.bytes), value: plain("bytes") },
  ];
  if (data.has_statistics)
    columns.push({ title: "Distribution", width: [122, 1], draw: (t) => sparkline(t.bins || []) },
                 real("Min", "min"), real("Max", "max"), real("Mean", "mean"), real("Std", "std"),
                 { title: "Zeros", number: true, value: (t) => (t.count ? t.zeros / t.count : null),
                   text: (t) => (t.count ? percentText(t.zeros, t.count) : "–") },
                 { title: "NaN", number: true, width: [64, 1], text: whole("nan"), value: plain("nan") },
                 { title: "Inf", number: true, width: [64, 1], text: whole("inf"), value: plain("inf") });
  const words = (t) => `${t.name} ${t.dtype} ${shapeText(t.shape)}`;
  new Table({ into: byId("tensor-table"), label: "Tensors", columns, chosen: detail,
              source: new ListRows(tensors, words) });
}

// ---- metadata, findings, comparison

// A table of arrays of texts and numbers.
function plainTable(into, label, titles, rows, widths, numbers = []) {
  const columns = titles.map((title, i) => ({
    title, width: widths[i], number: numbers.includes(i), value: (r) => r[i],
    text: (r) => (typeof r[i] === "number" ? realText(r[i]) : r[i] === null ? "–" : r[i]),
  }));
  new Table({ into: byId(into), label, columns,
              source: new ListRows(rows, (r) => r.join(" ")) });
}

function metadata() {
  const m = data.metadata;
  byId("metadata-text").textContent = m.rows.length
    ? m.omitted ? `${m.omitted.toLocaleString("en")} further values are left out.` : ""
    : "The file has none.";
  if (m.rows.length) plainTable("metadata-table", "Metadata", ["Key", "Value"], m.rows,
                                [[160, 1], [240, 2]]);
}

function findings() {
  const v = data.verify;
  const text = byId("findings-text");
  const faults = `${v.faults} ${v.faults === 1 ? "fault" : "faults"}`;
  const warnings = `${v.warnings} ${v.warnings === 1 ? "warning" : "warnings"}`;
  text.className = v.faults ? "fault" : v.warnings ? "warning" : "good";
  text.textContent = (v.faults || v.warnings ? `${faults}, ${warnings}. ` : "No fault. ") +
    `${sizeText(v.bytes_checked)} were compared with checksums and rules.` +
    (v.omitted ? ` ${v.omitted.toLocaleString("en")} further findings are left out.` : "");
  if (v.rows.length)
    plainTable("findings-table", "Findings", ["Severity", "Rule", "At byte", "Tensor", "Text"],
               v.rows, [[90, 1], [140, 1], [110, 1], [160, 2], [320, 5]], [2]);
}

function comparison() {
  const c = data.comparison;
  if (!c) return;
  byId("comparison").hidden = false;
  byId("comparison-text").className = c.equal ? "good" : "warning";
  byId("comparison-title").textContent = `Comparison with ${c.path}`;
  byId("comparison-text").textContent = c.summary + ".";
  if (c.rows.length)
    plainTable("comparison-table", "Comparison", c.titles, c.rows,
               [[200, 3], [110, 1], [130, 2], [130, 2]], [4, 5, 6, 7]);
}

cards();
comparison();
findings();
types();
new Treemap({ into: byId("map"), path: byId("path"), source: moduleMap(tensors) });
tensorTable();
metadata();
