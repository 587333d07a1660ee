// The picture of a tensor with its controls: mean or greatest value, zoom, and the axes of tensors with
// more than two dimensions.

import { element } from "./basics.js";
import { isCancelled } from "./client.js";
import { explain } from "./failure.js";
import { ValueMap } from "./value_map.js";

const count = (n) => n.toLocaleString("en");

// Numbers of an index along the leading axes of a shape.
function unravel(i, dims) {
  const index = dims.map(() => 0);
  for (let d = dims.length - 1; d >= 0; d--) {
    index[d] = i % dims[d];
    i = Math.floor(i / dims[d]);
  }
  return index;
}

export class TensorMap {
  // figures: the answer to "survey"; part: the part of the tensor; slice(place): asks the worker for a
  // part of it, if given.
  constructor({ figures, part, slice }) {
    Object.assign(this, { figures, part, slice, mode: "means" });
    this.place = this.wholePlace();
    this.tools = element("div", { class: "row map-tools" });
    this.box = element("div");
    this.problem = element("p", { class: "fault", hidden: "" });
    this.node = element("div", {}, element("h3", {}, "Heat map"), this.tools, this.problem, this.box);
    this.showWhole();
  }

  // ---- what is shown

  wholePlace() {
    const { shape } = this.part;
    const [row, column] = shape.length > 1 ? [shape.length - 2, shape.length - 1] : [null, 0];
    return this.at({ row, column, at: shape.map(() => 0) });
  }

  at({ row, column, at }) {
    const { shape } = this.part;
    return { row, column, at, rows: [0, row === null ? 1 : shape[row]], columns: [0, shape[column] ?? 1] };
  }

  // The survey's picture: all leading axes below each other.
  showWhole() {
    this.isWhole = true;
    const { shape, perElement } = this.part;
    const lead = shape.slice(0, -1);
    const { figures } = this;
    const rowText = (rows) => {
      const [from, end] = [unravel(rows[0], lead).join(", "), unravel(rows[1] - 1, lead).join(", ")];
      return lead.length ? (from === end ? from : `${from} – ${end}`) : "";
    };
    const columnText = (columns) => {
      const [from, end] = columns.map((v) => Math.floor(v / perElement));
      return end - from > 1 ? `${count(from)}–${count(end - 1)}` : count(from);
    };
    const columns = shape.length > 1 ? shape[shape.length - 1] : (shape[0] ?? 1);
    const noted = `${count(columns)} columns${figures.isWhole ? "" : "; rows of the sample"}`;
    this.draw(new ValueMap({
      heat: figures.heat,
      rowText: lead.length ? rowText : () => "0",
      columnText,
      zoomed: this.slice && shape.length <= 2 && perElement === 1 ? (rows, cols) => this.zoom(rows, cols) : undefined,
      noted,
    }));
  }

  zoom(rows, columns) {
    return this.show({ ...this.place, rows, columns });
  }

  async show(place) {
    this.problem.hidden = true;
    this.node.setAttribute("aria-busy", "true");
    try {
      const heat = await this.slice({ shape: this.part.shape, ...place });
      this.place = place;
      this.isWhole = false;
      this.draw(new ValueMap({
        heat,
        zoomed: (rows, columns) => this.zoom(rows, columns),
        noted: heat.skipped > 1 ? `one of ${count(heat.skipped)} rows was read` : "",
      }));
    } catch (e) {
      if (isCancelled(e)) return;
      this.problem.textContent = explain(e).text;
      this.problem.hidden = false;
    } finally {
      this.node.removeAttribute("aria-busy");
    }
  }

  draw(map) {
    this.map = map;
    map.show(this.mode);
    this.box.replaceChildren(map.node);
    this.tools.replaceChildren(this.modes(), ...this.axes(), ...this.back());
  }

  // ---- controls

  modes() {
    const button = (mode, title) => {
      const made = element("button", { type: "button", class: "small", "aria-pressed": String(this.mode === mode) }, title);
      made.addEventListener("click", () => {
        this.mode = mode;
        this.map.show(mode);
        this.tools.firstChild.replaceWith(this.modes());
      });
      return made;
    };
    return element("div", { class: "choices", role: "group", "aria-label": "Value of a field" }, button("means", "Mean"), button("most", "Greatest"));
  }

  back() {
    if (this.isWhole) return [];
    const button = (title, act) => {
      const made = element("button", { type: "button", class: "small" }, title);
      made.addEventListener("click", act);
      return made;
    };
    const whole = this.at(this.place);
    const isZoomed = String([whole.rows, whole.columns]) !== String([this.place.rows, this.place.columns]);
    const { rows, columns } = this.place;
    const text = element("span", { class: "quiet" }, `rows ${count(rows[0])}–${count(rows[1] - 1)}, columns ${count(columns[0])}–${count(columns[1] - 1)}`);
    return [...(isZoomed ? [text, button("Zoom out", () => this.show(whole))] : []),
            button("Whole tensor", () => {
              this.place = this.wholePlace();
              this.showWhole();
            })];
  }

  // Pickers for tensors of more than two dimensions.
  axes() {
    const { shape, perElement } = this.part;
    if (shape.length < 3 || perElement !== 1 || !this.slice || this.part.count === 0) return [];
    const { row, column, at } = this.place;
    const last = shape.length - 1;
    const rowsOfAll = this.isWhole ? [element("option", { value: "all" }, `rows: axes 0 to ${last - 1}`)] : [];
    const select = (label, value, other, change, first = []) => {
      const made = element("select", { "aria-label": label }, ...first, ...shape.map((n, d) =>
        element("option", { value: d, ...(d === other ? { disabled: "" } : {}) }, `${label.toLowerCase()}: axis ${d} (${count(n)})`)));
      made.value = value;
      made.addEventListener("change", () => change(Number(made.value)));
      return made;
    };
    const others = shape.map((n, d) => [n, d]).filter(([, d]) => d !== row && d !== column);
    const index = ([n, d]) => {
      const input = element("input", { type: "number", min: 0, max: n - 1, value: at[d], "aria-label": `Index of axis ${d}` });
      input.addEventListener("change", () => {
        const i = Math.max(0, Math.min(n - 1, Math.floor(Number(input.value)) || 0));
        this.show(this.at({ row, column, at: at.map((v, k) => (k === d ? i : v)) }));
      });
      return element("label", { class: "axis-index" }, `axis ${d}`, input);
    };
    const rows = select("Rows", this.isWhole ? "all" : row, column, (d) => this.show(this.at({ row: d, column, at })), rowsOfAll);
    const columns = select("Columns", column, this.isWhole ? null : row, (d) =>
      this.show(this.at({ row: d === row ? column : row, column: d, at })));
    return [rows, columns, ...(this.isWhole ? [] : others.map(index))];
  }
}
