// The comparison of a report: the differences on the left, the values of a tensor in both files on the right.

import { byId, element } from "./basics.js";
import { DifferenceList } from "./difference_list.js";
import { sorted } from "./differences.js";
import { fieldRanges } from "./field_ranges.js";
import { breakable, cut, nameText } from "./names.js";
import { changeText, PairPictures } from "./pair_pictures.js";

const KEYS = { Tensor: "name", Change: "what", A: "a", B: "b", Differing: "differing", "Max abs": "max", RMSE: "rmse", Cosine: "cosine" };

// The rows as the page has them; `number`: the row's place in the report.
export function rowsOf({ titles, rows }) {
  const list = rows.map((row, number) => {
    const r = { number };
    titles.forEach((title, i) => (r[KEYS[title]] = row[i]));
    if (r.what === "type") r.what = "dtype";
    return r;
  });
  return sorted(list);
}

// The figures of a tensor as PairPictures takes them.
function figuresOf(f) {
  if (!f) return null;
  const { width, height, rows, columns } = f;
  return { ...f, all: f.count, isWhole: true,
           heat: { ...fieldRanges([{ first: 0, rows, lines: height }], width, columns), width, height,
                   means: Float32Array.from(f.means, (v) => v ?? NaN), kinds: f.kinds ?? new Uint8Array(f.means.length) } };
}

const foundOf = ({ a, b, difference, min, max, bins_a, bins_b, shapes }) => ({
  a: figuresOf(a), b: figuresOf(b), difference: figuresOf(difference), parts: shapes.map((shape) => ({ shape })),
  bins: typeof min === "number" && typeof max === "number" ? { min, max, a: bins_a, b: bins_b } : null,
});

function save(name, parts, type) {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

// Show the member "comparison" of the report.  name: that of A.
export function showComparison(c, name) {
  byId("comparison").hidden = false;
  byId("comparison-title").textContent = `Comparison with ${nameText(c.path)}`;
  byId("comparison-text").className = c.equal ? "good" : "warning";
  byId("comparison-text").textContent = c.summary + ".";
  if (!c.rows.length) return;
  const byRow = new Map(c.pictures.map((p) => [p.row, p]));
  const pictures = new PairPictures();
  const box = element("div", { class: "detail pair", role: "region", "aria-label": "Values of both files", tabindex: "-1" });
  const show = (row) => {
    const found = byRow.get(row.number);
    const none = byRow.size ? `The report has pictures of the ${byRow.size.toLocaleString("en")} tensors that differ most; this is not one of them.`
                            : "The report has no pictures of values.";
    box.replaceChildren(element("h3", { class: "name code" }, ...breakable(cut(nameText(row.name)))), element("p", { class: "quiet" }, changeText(row)),
                        ...(found ? pictures.content(foundOf(found)) : [element("p", { class: "quiet" }, none)]));
  };
  const list = element("div", { class: "compare-list" });
  byId("comparison").append(element("div", { class: "compare split" }, element("div", { class: "compare-left" }, list), box));
  const rows = rowsOf(c);
  const shown = new DifferenceList({ into: list, rows, names: { a: name, b: c.path }, summary: c.summary, save, chosen: show, opened: () => box.focus() });
  shown.table.id = "comparison-table";
  show(rows.find((r) => r.number === c.pictures[0]?.row) ?? rows[0]);
}
