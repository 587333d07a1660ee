// The page: reads the figures and fills the sections.

import { byId, countText, element, exactText, percentText, REAL_CHARS, realText, shapeText, sizeText } from "./basics.js";
import { histogram, shares, sparkline } from "./charts.js";
import { showComparison } from "./comparison.js";
import { ListRows } from "./list_rows.js";
import { moduleMap } from "./module_map.js";
import { modelFacts } from "./model_facts.js";
import { breakable, linesText, nameText, plainText } from "./names.js";
import { Overview } from "./overview.js";
import { stacksOf } from "./roles.js";
import { Table } from "./table.js";

const data = JSON.parse(byId("data").textContent);
const tensors = data.tensors.map((row) => {
  const t = {};
  data.columns.forEach((key, i) => (t[key] = row[i]));
  t.dtype = data.dtypes[t.dtype];
  t.name = nameText(t.name);
  return t;
});

// What is not in this page, because files of the model are not there.
function incomplete({ missing, shards, missing_shards }) {
  const MOST = 5;
  const list = missing.slice(0, MOST).map(nameText).join(", ");
  const more = missing_shards > MOST ? ` and ${(missing_shards - MOST).toLocaleString("en")} more` : "";
  return `Only a part of the model: ${missing_shards.toLocaleString("en")} of ` +
    `${shards.toLocaleString("en")} shards cannot be read: ${list}${more}.`;
}

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
  byId("missing").hidden = !f.missing.length;
  byId("missing").textContent = incomplete(f);
  byId("cards").append(...facts.map(([title, text]) =>
    element("div", {}, element("dt", {}, title), element("dd", {}, text))));
  document.title = nameText(f.name) + " – model report";
  byId("title").replaceChildren(...breakable(nameText(f.name)));
  byId("subtitle").textContent = nameText(f.path);
  byId("made").textContent = "Made by heft " + data.heft + ".";
}

function typesOf() {
  const sums = new Map();
  for (const t of tensors) {
    const name = t.dtype || "no element type";
    const sum = sums.get(name) || { name, bytes: 0, tensors: 0 };
    sum.bytes += t.bytes;
    sum.tensors++;
    sums.set(name, sum);
  }
  return [...sums.values()].sort((a, b) => b.bytes - a.bytes);
}

function types() {
  byId("contents").hidden = !tensors.length;
  shares(byId("types"), typesOf());
}

// ---- overview

// Numbers of values that were read, for the health line.
function valuesRead() {
  const numeric = tensors.filter((t) => t.count !== null);
  const sum = (key) => numeric.reduce((total, t) => total + t[key], 0);
  const of = data.has_statistics ? numeric.length : tensors.length;
  const all = data.has_statistics ? sum("count") : data.file.elements;
  return { read: sum("count"), all, nan: sum("nan"), inf: sum("inf"), tensors: numeric.length, of,
           badTensors: numeric.filter((t) => t.nan || t.inf).length };
}

function verified() {
  const { bytes_checked: bytes, faults } = data.verify;
  if (!bytes) return { kind: "quiet", text: "Nothing was compared with checksums: only the structure was checked." };
  return { kind: faults ? "fault" : "good", text: `${sizeText(bytes)} were compared with checksums and rules.` };
}

function measures() {
  const type = { id: "type", title: "Type", join: "text", value: (id) => tensors[id].dtype };
  if (!data.has_statistics) return [type];
  const of = (id) => tensors[id];
  const largest = (t) => (typeof t.min === "number" ? Math.max(Math.abs(t.min), Math.abs(t.max)) : null);
  return [{ id: "std", title: "Std deviation", join: "mean", value: (id) => of(id).std },
          { id: "max", title: "Largest magnitude", join: "most", value: (id) => largest(of(id)) },
          { id: "nan", title: "NaN and infinite", join: "sum", isBad: true,
            value: (id) => (of(id).count === null ? null : of(id).nan + of(id).inf) }, type,
          ...differences()];
}

// Differences between the files, by tensor.
function differences() {
  const rows = data.comparison?.rows ?? [];
  const at = data.comparison?.titles.indexOf("RMSE");
  if (!rows.length) return [];
  const byName = new Map(rows.map((row) => [nameText(row[0]), row]));
  const value = (id) => {
    const row = byName.get(tensors[id].name);
    return row ? row[at] : 0;
  };
  return [{ id: "difference", title: "Difference", join: "most", value }];
}

function overview() {
  const { stacks, omitted, unseen } = stacksOf(tensors.length, (i) => tensors[i].name);
  const meta = new Map(data.metadata.rows);
  const facts = modelFacts({ get: (key) => meta.get(key), config: null, tensors, types: typesOf(), bytes: data.file.bytes,
                             elements: data.file.elements, stacks, unseen });
  const show = (ids) => {
    detail(tensors[ids[0]]);
    byId("detail").scrollIntoView({ block: "nearest" });
  };
  const notices = data.verify.rows.map(([severity]) => severity);
  new Overview({ into: byId("summary"), facts, isEmpty: !tensors.length, stacks, omitted, unseen, measures: measures(), opened: show,
                 health: { values: valuesRead(), checksums: {}, verified: verified(), notices },
                 map: { source: moduleMap(tensors), opened: (p) => show([p.tensor]),
                        sizeOf: () => [Math.max(320, byId("map").clientWidth), 380] } });
}

// ---- tensors

function statistics(t) {
  if (t.count === null) return [];
  const isDouble = t.dtype === "f64";
  return [["Values", t.count.toLocaleString("en")], ["Minimum", exactText(t.min, isDouble)],
          ["Maximum", exactText(t.max, isDouble)], ["Mean", exactText(t.mean, true)],
          ["Standard deviation", exactText(t.std, true)],
          ["Zeros", `${t.zeros.toLocaleString("en")} (${percentText(t.zeros, t.count)})`],
          ["NaN", t.nan.toLocaleString("en")], ["Infinite", t.inf.toLocaleString("en")]];
}

function detail(t) {
  const facts = [["Element type", t.dtype || "none"], ["Shape", shapeText(t.shape)],
                 ["Bytes", t.bytes === null ? "unknown" : t.bytes.toLocaleString("en")], ...statistics(t)];
  const list = element("dl", { class: "facts" }, ...facts.flatMap(([title, text]) =>
    [element("dt", {}, title), element("dd", {}, text)]));
  const drawn = t.bins && t.bins.length && typeof t.min === "number" && typeof t.max === "number";
  byId("detail").replaceChildren(element("h3", {}, ...breakable(t.name)), list,
                                 ...(drawn ? [histogram(t.name, t.bins, t.min, t.max)] : []));
}

function tensorTable() {
  const plain = (key) => (t) => t[key];
  const longest = (text) => tensors.reduce((most, t) => Math.max(most, text(t).length), 0);
  const real = (title, key) => ({ title, number: true, chars: REAL_CHARS, text: (t) => realText(t[key]),
                                  value: plain(key) });
  const count = (title, key) => {
    const text = (t) => (t[key] === null ? "–" : t[key].toLocaleString("en"));
    return { title, number: true, chars: longest(text), text, value: plain(key) };
  };
  const type = (t) => t.dtype || "–";
  const shape = (t) => shapeText(t.shape);
  const SHAPE = 20; // characters; longer shapes are rare, and may be cut
  const columns = [
    { title: "Name", width: [170, 5], text: (t) => t.name, value: plain("name") },
    { title: "Type", chars: longest(type), text: type, value: plain("dtype") },
    { title: "Shape", chars: Math.min(SHAPE, longest(shape)), text: shape, value: plain("elements") },
    { title: "Size", number: true, chars: 9, text: (t) => (t.bytes === null ? "–" : sizeText(t.bytes)), value: plain("bytes") },
  ];
  if (data.has_statistics)
    columns.push({ title: "Distribution", width: [114, 1], draw: (t) => sparkline(t.bins || []) },
                 real("Min", "min"), real("Max", "max"), real("Mean", "mean"), real("Std", "std"),
                 { title: "Zeros", number: true, chars: 7, value: (t) => (t.count ? t.zeros / t.count : null),
                   text: (t) => (t.count ? percentText(t.zeros, t.count) : "–") },
                 count("NaN", "nan"), count("Inf", "inf"));
  const words = (t) => `${t.name} ${t.dtype} ${shapeText(t.shape)}`;
  const size = columns[3];
  const narrow = (t) => `${type(t)} ${shape(t)}, ${size.text(t)}`;
  new Table({ into: byId("tensor-table"), label: "Tensors", columns, chosen: detail, narrow,
              source: new ListRows(tensors, words) });
}

// ---- metadata, findings

const countOrReal = (v) => (Number.isSafeInteger(v) ? v.toLocaleString("en") : realText(v));

// A table of arrays of texts and numbers.  Texts are shown by `shown`, column by column; second: the
// column of the second line in narrow windows.
function plainTable(into, label, titles, rows, { widths, numbers = [], shown = [], chosen, second = 1 }) {
  const text = (r, i) => (typeof r[i] === "number" ? countOrReal(r[i]) : r[i] === null ? "–"
                                                   : (shown[i] || plainText)(r[i]));
  const columns = titles.map((title, i) => {
    const isNumber = numbers.includes(i);
    const chars = isNumber ? rows.reduce((most, r) => Math.max(most, text(r, i).length), 0) : 0;
    return { title, width: widths[i], chars, number: isNumber, value: (r) => r[i], text: (r) => text(r, i) };
  });
  new Table({ into: byId(into), label, columns, chosen, narrow: (r) => text(r, second),
              source: new ListRows(rows, (r) => r.map((_, i) => text(r, i)).join(" ")) });
}

function metadata() {
  const m = data.metadata;
  byId("metadata-text").textContent = m.rows.length
    ? m.omitted ? `${m.omitted.toLocaleString("en")} further values are left out.` : ""
    : "The file has none.";
  const chosen = ([key, value]) => byId("metadata-detail").replaceChildren(
    element("h3", {}, ...breakable(nameText(key))), element("pre", { class: "code" }, linesText(value)));
  if (m.rows.length) plainTable("metadata-table", "Metadata", ["Key", "Value"], m.rows,
                                { widths: [[160, 1], [240, 2]], shown: [nameText], chosen });
}

function findings() {
  const v = data.verify;
  const text = byId("findings-text");
  const faults = `${v.faults} ${v.faults === 1 ? "fault" : "faults"}`;
  const warnings = `${v.warnings} ${v.warnings === 1 ? "warning" : "warnings"}`;
  // Without checksums nothing says that the data are sound.
  const sound = v.bytes_checked ? "good" : "quiet";
  text.className = v.faults ? "fault" : v.warnings || data.file.missing.length ? "warning" : sound;
  text.textContent = (v.faults || v.warnings ? `${faults}, ${warnings}. ` : "No fault. ") +
    (v.bytes_checked ? `${sizeText(v.bytes_checked)} were compared with checksums and rules.`
                     : "Nothing was compared with checksums: only the structure was checked, not the data.") +
    (v.omitted ? ` ${v.omitted.toLocaleString("en")} further findings are left out.` : "");
  if (v.rows.length)
    plainTable("findings-table", "Findings", ["Severity", "Rule", "At byte", "Tensor", "Text"], v.rows,
               { widths: [[90, 1], [140, 1], [110, 1], [160, 2], [320, 5]], numbers: [2], second: 4,
                 shown: [null, null, null, nameText] });
}

cards();
if (data.comparison) showComparison(data.comparison, data.file.path);
findings();
types();
overview();
tensorTable();
metadata();
