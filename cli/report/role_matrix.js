// A table of coloured cells: roles of tensors by layer.

import { element, realText } from "./basics.js";
import { breakable, plainText } from "./names.js";

// How the values of the tensors of a cell become one.
const JOIN = {
  most: (list) => Math.max(...list),
  mean: (list) => list.reduce((sum, v) => sum + v, 0) / list.length,
  sum: (list) => list.reduce((sum, v) => sum + v, 0),
  text: (list) => [...new Set(list)].join(", "),
};

const shadeOf = (share) => `color-mix(in oklab, var(--high) ${Math.round(4 + 96 * share)}%, var(--low))`;

// Types and other texts: one colour each.
const HUES = [255, 45, 155, 320, 85, 200, 15, 285, 120, 350];
const hueOf = (i) => `light-dark(oklch(0.72 0.12 ${HUES[i % HUES.length]}), oklch(0.52 0.12 ${HUES[i % HUES.length]}))`;

// The scale of a measure: from the least to the greatest value, by magnitude where values span much.
function scaleOf(values) {
  const known = values.filter((v) => typeof v === "number" && v - v === 0);
  const least = Math.min(...known);
  const greatest = Math.max(...known);
  const positive = Math.min(...known.filter((v) => v > 0));
  const isLog = least >= 0 && greatest / positive > 20;
  const at = isLog ? (v) => Math.log(Math.max(v, positive)) : (v) => v;
  const span = at(greatest) - at(least);
  return { least, greatest, isLog, isEmpty: !known.length, share: (v) => (span > 0 ? (at(v) - at(least)) / span : 0.35) };
}

export class RoleMatrix {
  // stacks: those of roles.js.  measures: [{ id, title, join, value(id) }]; value() returns a number, a
  // text, null where there is none, or undefined where it is not known yet.  opened(ids, name): a cell
  // was chosen.
  constructor({ into, stacks, measures, opened, chosenMeasure }) {
    Object.assign(this, { stacks, measures, opened, stack: stacks[0] });
    this.measure = measures.find((m) => m.id === chosenMeasure) || measures[0];
    this.box = element("div", { class: "matrix-box" });
    this.readout = element("p", { class: "readout quiet" });
    this.scale = element("p", { class: "scale" });
    this.cut = element("p", { class: "quiet" });
    into.replaceChildren(this.tools(), this.box, this.readout, this.scale, this.cut);
    this.draw();
  }

  tools() {
    const stack = element("select", { "aria-label": "Layers" },
                          ...this.stacks.map((s, i) => element("option", { value: i }, plainText(s.prefix || "root"))));
    stack.addEventListener("change", () => {
      this.stack = this.stacks[stack.value];
      this.draw();
    });
    this.buttons = this.measures.map((m) => {
      const button = element("button", { type: "button", "aria-pressed": String(m === this.measure) }, m.title);
      button.addEventListener("click", () => {
        this.measure = m;
        this.buttons.forEach((b) => b.setAttribute("aria-pressed", String(b === button)));
        this.paint();
      });
      return button;
    });
    return element("div", { class: "tools matrix-tools" }, ...(this.stacks.length > 1 ? [stack] : []),
                   element("div", { class: "choices", role: "group", "aria-label": "Colour by" }, ...this.buttons));
  }

  // ---- the table

  draw() {
    const { layers, roles, cells, allLayers, allRoles, prefix } = this.stack;
    this.at = [0, 0];
    const head = layers.map((n, i) =>
      element("th", { role: "columnheader", scope: "col" }, layers.length <= 16 || i % 5 === 0 ? String(n) : ""));
    const row = (role, r) =>
      element("tr", { role: "row" },
              element("th", { role: "rowheader", scope: "row", title: plainText(role.rest) }, plainText(role.label)),
              ...cells[r].map((ids, c) => element("td", { role: "gridcell", tabindex: "-1", "data-at": `${r},${c}`, class: ids.length ? "" : "none" })));
    const LEAST = 10; // pixels of a cell
    const table = element("table", { role: "grid", class: "matrix", "aria-label": `Roles by layer of ${plainText(prefix || "the model")}` },
                          element("thead", {}, element("tr", { role: "row" }, element("th", { role: "columnheader", scope: "col" }, "layer"), ...head)),
                          element("tbody", {}, ...roles.map(row)));
    table.style.minWidth = `calc(var(--label) + ${layers.length * LEAST}px)`;
    table.style.maxWidth = `calc(var(--label) + ${layers.length * 4 * LEAST}px)`;
    this.cells = new Map([...table.querySelectorAll("td")].map((td) => [td.dataset.at, td]));
    const first = this.cells.get("0,0");
    if (first) first.tabIndex = 0;
    this.listen(table);
    this.box.replaceChildren(table);
    const cut = [];
    if (allLayers > layers.length) cut.push(`${(allLayers - layers.length).toLocaleString("en")} further layers are not drawn.`);
    if (allRoles > roles.length) cut.push(`${(allRoles - roles.length).toLocaleString("en")} further roles are not drawn.`);
    this.cut.textContent = cut.join(" ");
    this.cut.hidden = !cut.length;
    this.paint();
  }

  // The value of a cell: { value, ids }.
  valueAt(r, c) {
    const ids = this.stack.cells[r][c];
    const all = ids.map((id) => this.measure.value(id));
    const known = all.filter((v) => v !== null && v !== undefined);
    if (known.length) return JOIN[this.measure.join](known);
    return all.includes(undefined) ? undefined : null;
  }

  // Colour the cells again: values have arrived.
  paint() {
    const { roles, layers } = this.stack;
    this.values = roles.map((_, r) => layers.map((_c, c) => (this.stack.cells[r][c].length ? this.valueAt(r, c) : null)));
    const flat = this.values.flat();
    const texts = [...new Set(flat.filter((v) => typeof v === "string"))].sort();
    const scale = scaleOf(flat);
    for (const [key, td] of this.cells) {
      const [r, c] = key.split(",").map(Number);
      this.shade(td, this.values[r][c], scale, texts);
      td.setAttribute("aria-label", this.labelOf(r, c));
    }
    this.legend(scale, texts);
    this.say(...this.at);
  }

  shade(td, value, scale, texts) {
    td.classList.toggle("unknown", value === undefined);
    td.classList.toggle("bad", this.measure.isBad === true && value > 0);
    td.classList.toggle("no-value", value === null);
    td.style.background =
      typeof value === "string" ? hueOf(texts.indexOf(value))
      : typeof value !== "number" ? ""
      : this.measure.isBad ? (value > 0 ? "var(--fault)" : "var(--low)")
      : value - value !== 0 ? "var(--fault)"
      : shadeOf(scale.share(value));
  }

  valueText(value) {
    return value === undefined ? "not read" : value === null ? "no value" : typeof value === "string" ? value : realText(value);
  }

  labelOf(r, c) {
    const { roles, layers, cells } = this.stack;
    const n = cells[r][c].length;
    if (!n) return `${plainText(roles[r].label)}, layer ${layers[c]}: no tensor`;
    const of = n > 1 ? ` (${n.toLocaleString("en")} tensors)` : "";
    return `${plainText(roles[r].label)}, layer ${layers[c]}: ${this.valueText(this.values[r][c])}${of}`;
  }

  legend(scale, texts) {
    const swatch = (background) => {
      const box = element("span", { class: "swatch" });
      box.style.background = background;
      return box;
    };
    const { isBad, title } = this.measure;
    const number = (value) => this.values.flatMap((row, r) => row.filter((v, c) => v === value && this.stack.cells[r][c].length)).length;
    const unknown = number(undefined);
    const none = number(null);
    const nodes = [];
    if (texts.length) texts.forEach((t, i) => nodes.push(swatch(hueOf(i)), t + " "));
    else if (isBad) nodes.push(swatch("var(--low)"), "none ", swatch("var(--fault)"), "some ");
    else if (!scale.isEmpty) {
      const ramp = element("span", { class: "ramp" });
      ramp.style.background = `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map(shadeOf).join(", ")})`;
      nodes.push(`${title}: ${realText(scale.least)} `, ramp, ` ${realText(scale.greatest)}${scale.isLog ? ", by magnitude" : ""} `);
    }
    if (unknown) nodes.push(element("span", { class: "swatch unknown" }), `${unknown.toLocaleString("en")} not read `);
    if (none) nodes.push(element("span", { class: "swatch no-value" }), `${none.toLocaleString("en")} without a value`);
    this.scale.replaceChildren(...nodes);
  }

  say(r, c) {
    this.readout.replaceChildren(...breakable(this.stack.roles.length ? this.labelOf(r, c) : ""));
  }

  // ---- pointer and keyboard

  listen(table) {
    const placeOf = (e) => e.target.closest("td")?.dataset.at?.split(",").map(Number);
    table.addEventListener("pointerover", (e) => {
      const at = placeOf(e);
      if (at) this.say(...at);
    });
    table.addEventListener("click", (e) => {
      const at = placeOf(e);
      if (at) this.open(...at);
    });
    table.addEventListener("focusin", (e) => {
      const at = placeOf(e);
      if (at) this.say(...at);
    });
    table.addEventListener("keydown", (e) => this.key(e));
  }

  key(event) {
    const [r, c] = this.at;
    const lastColumn = this.stack.layers.length - 1;
    const to = { ArrowDown: [r + 1, c], ArrowUp: [r - 1, c], ArrowRight: [r, c + 1], ArrowLeft: [r, c - 1],
                 Home: [r, 0], End: [r, lastColumn] }[event.key];
    if (event.key === "Enter" || event.key === " ") this.open(r, c);
    else if (!to) return;
    event.preventDefault();
    if (to) this.move(to);
  }

  move([r, c]) {
    const to = this.cells.get(`${r},${c}`);
    if (!to) return;
    this.cells.get(this.at.join(",")).tabIndex = -1;
    this.at = [r, c];
    to.tabIndex = 0;
    to.focus();
  }

  open(r, c) {
    const ids = this.stack.cells[r][c];
    if (!ids.length) return;
    this.move([r, c]);
    const { prefix, layers, roles } = this.stack;
    this.opened(ids, `${prefix ? prefix + "." : ""}${layers[c]}.${roles[r].rest}`);
  }
}
