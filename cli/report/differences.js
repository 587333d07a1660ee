// The differences between two models: kinds, sums by module, and files of them.

const KINDS = [
  ["values", "Values"],
  ["dtype", "Type"],
  ["shape", "Shape"],
  ["layout", "Layout"],
  ["renamed", "Renamed"],
  ["removed", "Only in A"],
  ["added", "Only in B"],
];

const KIND_OF = { "only in A": "removed", "only in B": "added" };

// "model.layers.3" of "model.layers.3.mlp.up.weight": up to the first number, or the first word.
function moduleOf(name) {
  const words = name.split(/([./])/);
  const at = words.findIndex((w) => /^\d+$/.test(w));
  return words.slice(0, at >= 0 ? at + 1 : 1).join("");
}

// Add the kind and the module to the rows { name, what, a, b, differing, max, rmse, cosine }.
export function sorted(rows) {
  for (const r of rows) {
    r.kind = KIND_OF[r.what] ?? r.what;
    r.module = moduleOf(r.name);
  }
  return rows;
}

// [kind, title, number] of the kinds that occur.
export function kindsOf(rows) {
  return KINDS.map(([kind, title]) => [kind, title, rows.filter((r) => r.kind === kind).length]).filter(([, , n]) => n);
}

export function modulesOf(rows) {
  const found = new Map();
  for (const r of rows) {
    if (!found.has(r.module)) found.set(r.module, { name: r.module, changed: 0, renamed: 0, removed: 0, added: 0, max: null });
    const m = found.get(r.module);
    m[["renamed", "removed", "added"].includes(r.kind) ? r.kind : "changed"]++;
    if (typeof r.max === "number" && !(m.max >= r.max)) m.max = r.max;
  }
  return [...found.values()];
}

const COLUMNS = ["name", "what", "a", "b", "differing", "max", "cosine", "rmse"];

// A field of CSV.  Programs for tables take texts that begin with these characters for formulas.
function field(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csvOf = (rows) =>
  [["tensor", "change", "a", "b", "differing", "greatest_difference", "cosine", "rmse"], ...rows.map((r) => COLUMNS.map((key) => r[key]))]
    .map((line) => line.map(field).join(",") + "\r\n").join("");

// Infinite numbers are texts, as in what the command prints.
const plain = (_, v) => (typeof v === "number" && v - v !== 0 ? String(v) : v);

export function jsonOf(rows, { a, b }, summary) {
  const list = rows.map((r) => Object.fromEntries(COLUMNS.map((key) => [key, r[key] ?? null])));
  return JSON.stringify({ a, b, summary, differences: list }, plain, 2) + "\n";
}
