// A tensor in two files: one histogram for both, and maps of A, B and A - B on one scale.

import { element, percentText, realText, shape, shapeText } from "./basics.js";
import { nameText } from "./names.js";
import { shortName } from "./rows.js";
import { sheetHead } from "./sheet.js";
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

export class PairView {
  // back(): what gets the focus when the details are closed.
  constructor(client, a, b, { failed, back }) {
    Object.assign(this, { client, a, b, failed, back, ownScale: false });
    this.node = element("div", { class: "detail pair", role: "region", "aria-label": "Values of both files", tabindex: "-1" },
                        element("p", { class: "quiet" }, "Choose a tensor to see its values in both files."));
  }

  async show(row) {
    this.stop?.abort();
    const { signal } = (this.stop = new AbortController());
    const title = element("h2", { class: "name code" }, shortName(nameText(row.name)));
    const about = element("p", { class: "quiet" }, row.what === "renamed" ? `B: ${shortName(nameText(row.b))}` : row.what);
    const box = element("div", {}, element("p", { class: "quiet" }, "Reading values…"));
    this.node.replaceChildren(sheetHead(this.node, this.back()), title, about, box);
    try {
      const found = await this.client.ask("pair", { a: this.a.id, b: this.b.id, ids: row.ids }, {
        signal,
        onProgress: ({ bytes, total }) => (box.firstChild.textContent = `Reading values: ${percentText(bytes, total)}`),
      });
      box.replaceChildren(...this.content(found));
    } catch (e) {
      if (signal.aborted) return;
      box.replaceChildren(element("p", { class: "fault" }, "The values cannot be shown."));
      this.failed(e);
    }
  }

  content(found) {
    const known = [found.a, found.b].filter(Boolean);
    if (!known.length) return [element("p", { class: "quiet" }, "Values of this type are not decoded.")];
    const nodes = [];
    if (!found.difference && found.a && found.b)
      nodes.push(element("p", { class: "warning" }, `Different shapes: A ${shapeText(found.parts[0].shape)}, B ${shapeText(found.parts[1].shape)}; there is no difference of values.`));
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
