// A picture of a matrix: blue for negative values, red for positive ones, and marks where values are NaN
// or infinite.  The pointer and the arrow keys tell values; a rectangle that is drawn is asked for.

import { element, realText } from "./basics.js";

// Colours from strong to nothing, in steps that are equal to the eye.
const NEGATIVE = [33, 102, 172];
const POSITIVE = [178, 24, 43];
const ZERO = [247, 247, 247];
// By the bits of heat.kinds: NaN, infinite, both.
const MARKS = [null, [16, 16, 16], [255, 190, 0], [150, 80, 0]];
const NAMES = ["", "NaN: black", "infinite: yellow", "NaN and infinite: brown"];
const KINDS = ["", "NaN", "infinite values", "NaN and infinite values"];

function mixed(share) {
  const end = share < 0 ? NEGATIVE : POSITIVE;
  const part = Math.min(1, Math.abs(share));
  return ZERO.map((zero, k) => zero + (end[k] - zero) * part);
}

const cssOf = (share) => `rgb(${mixed(share).map(Math.round).join(" ")})`;

// A percentile of the magnitudes, so that a single large value does not make the rest pale.
export function scaleOf(...lists) {
  const sizes = lists.flatMap((list) => [...list]).map(Math.abs).filter((v) => v > 0 && v < Infinity).sort((a, b) => a - b);
  return sizes.length ? sizes[Math.floor((sizes.length - 1) * 0.99)] : 1;
}

const rangeText = ([from, end]) => (end - from > 1 ? `${from.toLocaleString("en")}–${(end - 1).toLocaleString("en")}` : from.toLocaleString("en"));

export class ValueMap {
  // heat: the answer of the worker { width, height, means, most, kinds, rows, columns }, in which rows[y]
  // and columns[x] are ranges [from, end).  title: what is shown.  scale: the greatest magnitude; by
  // default that of the values.  rowText(row), columnText(column): numbers as the reader knows them.
  // zoomed(rows, columns): a part is wanted.  noted: a text below.
  constructor({ heat, title = "Heat map", scale, rowText = rangeText, columnText = rangeText, zoomed, noted = "" }) {
    Object.assign(this, { heat, title, fixed: scale, rowText, columnText, zoomed, noted, mode: "means", at: [0, 0] });
    this.canvas = element("canvas", { width: heat.width, height: heat.height, role: "img", class: "heat", tabindex: "0" });
    this.frame = element("div", { class: "heat-frame" }, this.canvas);
    this.readout = element("p", { class: "readout", "aria-live": "off" });
    this.legend = element("p", { class: "scale" });
    this.node = element("figure", { class: "heat-figure" }, this.frame, this.readout, element("figcaption", { class: "quiet" }, this.legend, noted));
    this.canvas.style.aspectRatio = heat.height === 1 ? "16 / 1" : `${Math.max(0.5, Math.min(4, heat.width / heat.height))}`;
    this.listen();
    this.draw();
  }

  get values() {
    return this.heat[this.mode];
  }

  // "means" or "most": the value of greatest magnitude of each field.
  show(mode) {
    this.mode = mode;
    this.draw();
  }

  draw() {
    const { width, height, kinds } = this.heat;
    const { values, canvas } = this;
    this.scale = this.fixed ?? scaleOf(values);
    const context = canvas.getContext("2d");
    const image = context.createImageData(width, height);
    values.forEach((v, i) => {
      if (kinds[i]) image.data.set([...MARKS[kinds[i]], 255], 4 * i);
      else if (v === v) image.data.set([...mixed(v / this.scale), 255], 4 * i);
    });
    context.putImageData(image, 0, 0);
    const marks = NAMES.filter((name, kind) => kind && kinds.includes(kind)).join(", ");
    const what = this.mode === "means" ? "means" : "values of greatest magnitude";
    canvas.setAttribute("aria-label", `${this.title}: ${height} by ${width} ${what}, from ${realText(-this.scale)} (blue) to ` +
      `${realText(this.scale)} (red)${marks && `; ${marks}`}. Arrow keys tell values.`);
    const ramp = element("span", { class: "ramp" });
    ramp.style.background = `linear-gradient(to right, ${[-1, -0.5, 0, 0.5, 1].map(cssOf).join(", ")})`;
    this.legend.replaceChildren(`${realText(-this.scale)} `, ramp, ` ${realText(this.scale)}`, marks && `  ${marks}`);
    this.readout.textContent = `${what}; point at the picture for values`;
  }

  // ---- values at a place

  tell([x, y]) {
    const { heat } = this;
    const i = y * heat.width + x;
    const rows = heat.rows[y];
    const columns = heat.columns[x];
    const n = (rows[1] - rows[0]) * (columns[1] - columns[0]);
    const v = this.values[i];
    const number = v === v ? realText(v) : "no finite value";
    const what = n > 1 ? `${this.mode === "means" ? "mean" : "greatest"} ${number}` : number;
    const kind = heat.kinds[i] ? `, ${KINDS[heat.kinds[i]]}` : "";
    this.told = number;
    this.readout.textContent = `[${this.rowText(rows)}, ${this.columnText(columns)}]: ${what}${kind}`;
  }

  placeOf(event) {
    const box = this.canvas.getBoundingClientRect();
    const { width, height } = this.heat;
    const clamp = (v, most) => Math.max(0, Math.min(most - 1, Math.floor(v)));
    return [clamp(((event.clientX - box.x) / box.width) * width, width), clamp(((event.clientY - box.y) / box.height) * height, height)];
  }

  listen() {
    const { canvas } = this;
    let from = null;
    canvas.addEventListener("pointerdown", (e) => {
      from = this.placeOf(e);
      this.at = from;
      if (e.pointerType === "mouse") canvas.setPointerCapture(e.pointerId);
      this.tell(from);
    });
    canvas.addEventListener("pointermove", (e) => {
      const at = this.placeOf(e);
      this.tell(at);
      if (from && e.pointerType === "mouse") this.mark(from, at);
    });
    canvas.addEventListener("pointerup", (e) => {
      const at = this.placeOf(e);
      if (from && this.zoomed && Math.abs(at[0] - from[0]) > 1 && Math.abs(at[1] - from[1]) > (this.heat.height > 2 ? 1 : -1)) this.zoom(from, at);
      from = null;
      this.mark();
    });
    canvas.addEventListener("dblclick", () => this.zoomed && this.zoomAround(this.at));
    canvas.addEventListener("keydown", (e) => this.key(e));
  }

  // The rectangle that is being drawn.
  mark(a, b) {
    this.box?.remove();
    this.box = null;
    if (!a) return;
    const { width, height } = this.heat;
    const [left, right] = [Math.min(a[0], b[0]), Math.max(a[0], b[0]) + 1];
    const [top, bottom] = [Math.min(a[1], b[1]), Math.max(a[1], b[1]) + 1];
    this.box = element("div", { class: "heat-box" });
    const share = (v, all) => `${(100 * v) / all}%`;
    Object.assign(this.box.style, { left: share(left, width), width: share(right - left, width), top: share(top, height), height: share(bottom - top, height) });
    this.frame.append(this.box);
  }

  zoom(a, b) {
    const { rows, columns } = this.heat;
    const ends = (list, i, k) => [list[Math.min(i, k)][0], list[Math.max(i, k)][1]];
    this.zoomed(ends(rows, a[1], b[1]), ends(columns, a[0], b[0]));
  }

  // A quarter of the map around a place.
  zoomAround([x, y]) {
    const { width, height } = this.heat;
    const [w, h] = [Math.ceil(width / 8), Math.ceil(height / 8)];
    this.zoom([Math.max(0, x - w), Math.max(0, y - h)], [Math.min(width - 1, x + w), Math.min(height - 1, y + h)]);
  }

  key(event) {
    const [x, y] = this.at;
    const { width, height } = this.heat;
    const to = { ArrowRight: [x + 1, y], ArrowLeft: [x - 1, y], ArrowDown: [x, y + 1], ArrowUp: [x, y - 1] }[event.key];
    if (event.key === "+" && this.zoomed) this.zoomAround(this.at);
    else if (!to) return;
    event.preventDefault();
    if (!to) return;
    this.at = [Math.max(0, Math.min(width - 1, to[0])), Math.max(0, Math.min(height - 1, to[1]))];
    this.mark(this.at, this.at);
    this.tell(this.at);
  }
}
