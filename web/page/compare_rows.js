// Differences between two models as rows of a table.

import { sorted } from "./differences.js";

const MOST = 200_000;

const shapeText = (dims) => `[${dims.join(", ")}]`;

// "f32 [2, 3]" for a tensor of a model.
function describe(model, name) {
  const t = model.find(name);
  return t ? `${t.dtype} ${shapeText(t.dims)}` : null;
}

function changedRow(c, a, b) {
  const plain = (v) => (Array.isArray(v) ? shapeText(v) : String(v));
  if (c.what !== "value") return { name: c.name, what: c.what, a: plain(c.a), b: plain(c.b) };
  return {
    name: c.name,
    what: "values",
    a: describe(a, c.name),
    b: describe(b, c.name),
    differing: c.differing,
    max: c.max_abs,
    rmse: c.rmse,
    cosine: c.cosine,
  };
}

const idOf = (model, name) => model.find(name)?.id ?? null;

// Return { equal, summary, rows, omitted }; rows are { name, what, kind, module, a, b, ids, differing, max,
// rmse, cosine } with the ids of the tensors in both models, or null.
export function compareRows(report, a, b) {
  const lists = [
    [report.changed, (c) => changedRow(c, a, b)],
    [report.renamed, (r) => ({ name: r.a, what: "renamed", a: r.a, b: r.b })],
    [report.only_in_a, (name) => ({ name, what: "only in A", a: describe(a, name), b: null })],
    [report.only_in_b, (name) => ({ name, what: "only in B", a: null, b: describe(b, name) })],
  ];
  const all = lists.reduce((sum, [list]) => sum + list.length, 0);
  let rows = [];
  for (const [list, row] of lists) rows = rows.concat(list.slice(0, MOST - rows.length).map(row));
  for (const row of rows)
    row.ids = [idOf(a, row.name), idOf(b, row.what === "renamed" ? row.b : row.name)];
  return { equal: report.equal, summary: report.summary, rows: sorted(rows), omitted: all - rows.length };
}
