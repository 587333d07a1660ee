// A tensor in two files: one histogram for both, and maps of A, B and A - B on one scale.

import { element, percentText, realText, shape, shapeText } from "./basics.js";
import { cut, nameText } from "./names.js";
import { scaleOf, ValueMap } from "./value_map.js";

const count = (n) => n.toLocaleString("en");

// Bars of A, and a line for B, over the same ranges.
function bothHistogram({ min, max, a, b }) {
  const [WIDTH, HEIGHT] = [560, 150];
  const shares = (bins) => {
    const all = bins?.reduce((sum, n) => sum + n, 0) || 1;
    return bins?.map((n) => n / all) ?? [];
  };
  const [left, right] = [shares(a), shares(b)];
  const most = Math.max(...left, ...right, 1e-9);
  const n = Math.max(left.length, right.length);
  const step = WIDTH / n;
  const high = (v) => (v ? Math.max(1, (v / most) * HEIGHT) : 0);
  const rangeOf = (i) => `${realText(min + ((max - min) * i) / n)} to ${realText(min + ((max - min) * (i + 1)) / n)}`;
  const bars = left.map((v, i) => shape("rect", { class: "bar-a", x: i * step, y: HEIGHT - high(v), width: Math.max(0.5, step - 1), height: high(v) }));
  const points = right.flatMap((v, i) => [[i * step, HEIGHT - high(v)], [(i + 1) * step, HEIGHT - high(v)]]).map((p) => p.map((x) => x.toFixed(1)).join(",")).join(" ");
  const hits = Array.from({ length: n }, (_, i) =>
    shape("rect", { class: "hit", x: i * step, y: 0, width: step, height: HEIGHT },
          shape("title", {}, `${rangeOf(i)}: A ${percentText(left[i] ?? 0, 1)}, B ${percentText(right[i] ?? 0, 1)}`)));
  return shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT + 16}`, role: "img", class: "both-bins", "aria-label": `Distributions of A and B from ${realText(min)} to ${realText(max)}` },
               ...bars, ...(right.length ? [shape("polyline", { class: "line-b", points })] : []), ...hits,
               shape("text", { class: "axis", x: 0, y: HEIGHT + 13 }, realText(min)),
               shape("text", { class: "axis", x: WIDTH, y: HEIGHT + 13, "text-anchor": "end" }, realText(max)));
}

function figuresTable({ a, b, difference }) {
  const columns = [["A", a], ["B", b], ...(difference ? [["A − B", difference]] : [])].filter(([, f]) => f);
  const rows = [["Minimum", "min"], ["Maximum", "max"], ["Mean", "mean"], ["Std deviation", "std"], ["NaN", "nan"], ["Infinite", "inf"]];
  const cell = (f, key) => (key === "nan" || key === "inf" ? count(f[key]) : realText(f[key]));
  return element("table", { class: "figures" },
                 element("thead", {}, element("tr", {}, element("td", {}), ...columns.map(([title]) => element("th", { scope: "col" }, title)))),
                 element("tbody", {}, ...rows.map(([title, key]) =>
                   element("tr", {}, element("th", { scope: "row" }, title), ...columns.map(([, f]) => element("td", {}, cell(f, key)))))));
}

// How a tensor has changed.  row: one of difference_list.js.
export function changeText(row) {
  if (row.what === "renamed") return `renamed; B: ${cut(nameText(row.b))}`;
  const known = [["differing", "differ"], ["max", "greatest"], ["rmse", "RMSE"], ["cosine", "cosine"]]
    .filter(([key]) => typeof row[key] === "number")
    .map(([key, title]) => (key === "differing" ? `${count(row[key])} ${row[key] === 1 ? "differs" : title}` : `${title} ${realText(row[key])}`));
  return row.what + (known.length ? `: ${known.join(", ")}` : "");
}

const apartText = ([a, b]) =>
  (a === b ? "The values are not stored in the same places" : `Different shapes: A ${a}, B ${b}`) + "; there is no difference of values.";

export class PairPictures {
  constructor() {
    this.ownScale = false;
  }

  // Return nodes.  found: { a, b, difference, bins: { min, max, a, b }, parts: [{ shape }, { shape }] }; a, b and
  // difference are null or { count, all, isWhole, min, max, mean, std, nan, inf, heat }, heat as ValueMap takes it.
  content(found) {
    const known = [found.a, found.b].filter(Boolean);
    if (!known.length) return [element("p", { class: "quiet" }, "Values of this type are not decoded.")];
    const nodes = [];
    if (!found.difference && found.a && found.b)
      nodes.push(element("p", { class: "warning" }, apartText(found.parts.map((p) => shapeText(p.shape)))));
    if (known.some((f) => !f.isWhole)) nodes.push(element("p", { class: "quiet" }, `A sample: ${known.map((f) => `${count(f.count)} of ${count(f.all)} values`).join(", ")}.`));
    nodes.push(figuresTable(found));
    if (found.bins && found.bins.min < found.bins.max)
      nodes.push(element("h3", {}, "Distributions"), bothHistogram(found.bins), this.key());
    this.maps = element("div", { class: "pair-maps" });
    this.found = found;
    nodes.push(element("h3", {}, "Maps of the values"), ...(found.difference ? [this.scaleChoice()] : []), this.maps);
    this.drawMaps();
    return nodes;
  }

  key() {
    return element("p", { class: "scale" }, element("span", { class: "swatch a" }), "A  ", element("span", { class: "swatch b" }), "B");
  }

  scaleChoice() {
    const box = element("input", { type: "checkbox" });
    box.checked = this.ownScale;
    box.addEventListener("change", () => {
      this.ownScale = box.checked;
      this.drawMaps();
    });
    return element("label", { class: "check" }, box, " A − B on a scale of its own");
  }

  drawMaps() {
    const { a, b, difference } = this.found;
    const scale = scaleOf(...[a, b].filter(Boolean).map((f) => f.heat.means));
    const map = (title, f, s) => [element("h4", {}, title), new ValueMap({ heat: f.heat, title, scale: s }).node];
    this.maps.replaceChildren(...[["A", a, scale], ["B", b, scale], ["A − B", difference, this.ownScale ? undefined : scale]]
      .filter(([, f]) => f && f.count).map((args) => element("div", {}, ...map(...args))));
  }
}
