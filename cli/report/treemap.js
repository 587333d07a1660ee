// A treemap of bytes by module, of as many levels as there is room for; a module is opened by a click or the Enter key.

import { colourOf, element, percentText, shape, sizeText } from "./basics.js";
import { place } from "./map_layout.js";
import { breakable } from "./names.js";
import { KIND_NAMES } from "./roles.js";

const count = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;

export class Treemap {
  // source(module): { path: [{ name, module }], pieces } or a promise of that; pieces are those of
  // map_levels.js.  The module null stands for the root in the argument, and for a piece that cannot
  // be opened in the result.  opened(piece): a tensor was chosen.  sizeOf(): width and height.
  constructor({ into, path, source, opened, sizeOf = () => [1000, 420] }) {
    Object.assign(this, { into, path, source, opened, sizeOf, turn: 0 });
    this.show(null);
  }

  async show(module, focus = false) {
    const turn = ++this.turn;
    const content = await this.source(module);
    if (turn !== this.turn) return;
    this.content = content;
    this.draw(focus);
    this.crumbs(content.path);
  }

  draw(focus = false) {
    const [width, height] = this.sizeOf();
    const { pieces } = this.content;
    const placed = place(pieces, { x: 0, y: 0, width, height });
    this.whole = placed.reduce((sum, p) => sum + p.bytes, 0);
    this.kinds = new Set();
    const flat = (list) => list.flatMap((p) => [p, ...(p.isFrame ? flat(p.placed) : [])]);
    this.isMixed = new Set(flat(placed).filter((p) => !p.isFrame).map((p) => p.kind)).size > 1;
    const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Bytes by module" },
                      ...placed.map((p, i) => this.piece(p, i, 1)));
    const empty = element("p", { class: "quiet" }, "No bytes.");
    this.into.replaceChildren(...(placed.length ? [svg, this.legend(), this.rest(pieces, placed)] : [empty]));
    if (focus) (svg.querySelector("g[tabindex]") || this.path.lastChild).focus();
  }

  textOf(p) {
    const what = p.members ? `${count(p.members, "module")} with ` : "";
    return `${p.name}: ${sizeText(p.bytes)}, ${percentText(p.bytes, this.whole)}, ${what}${count(p.tensors, "tensor")}`;
  }

  colour(p, i) {
    this.kinds.add(p.kind);
    return colourOf(this.isMixed ? KIND_NAMES.indexOf(p.kind) : i);
  }

  // level: 1 for the pieces of the module that is shown; only those are reached by Tab.
  piece(p, i, level) {
    const opens = p.module !== null || (p.tensor !== null && this.opened);
    const g = shape("g", opens && level === 1 ? { tabindex: "0", role: "button", "aria-label": this.textOf(p) } : {},
                    shape("title", {}, this.textOf(p)),
                    shape("rect", { x: p.x, y: p.y, width: p.w, height: p.h, rx: p.w > 24 && p.h > 24 ? 3 : 1,
                                    ...(p.isFrame ? { class: "frame" } : { fill: this.colour(p, i) }) }));
    this.label(g, p);
    if (p.isFrame) g.append(...p.placed.map((child) => this.piece(child, i, level + 1)));
    if (opens) this.listen(g, p, level);
    return g;
  }

  // Letters are counted as if they were of one width: the frame cuts those that are wider.
  label(g, p) {
    const letters = Math.floor((p.w - 8) / 7);
    if (p.h < 16 || (p.isFrame && !p.hasHead) || letters < Math.min(3, p.name.length)) return;
    const short = p.name.length > letters ? p.name.replace(/[.]weight$/, "") : p.name;
    const cut = (text) => (text.length > letters ? text.slice(0, letters - 1) + "…" : text);
    const kind = p.isFrame ? { class: "head" } : {};
    const size = `  ${sizeText(p.bytes)}`;
    const fits = p.isFrame && letters >= p.name.length + size.length;
    const frame = shape("svg", { x: p.x, y: p.y, width: p.w, height: p.h }, shape("text", { x: 5, y: 13, ...kind }, fits ? p.name + size : cut(short)));
    if (!p.isFrame && p.h > 32 && letters > 8) frame.append(shape("text", { x: 5, y: 27, class: "second" }, sizeText(p.bytes)));
    g.append(frame);
  }

  listen(g, p, level) {
    const open = (focus) => (p.module === null ? this.opened(p) : this.show(p.module, focus));
    g.classList.add("opens");
    g.addEventListener("click", (e) => {
      e.stopPropagation();
      open(false);
    });
    if (level > 1) return;
    g.addEventListener("keydown", (e) => {
      if (e.key !== "Enter" && e.key !== " ") return;
      e.preventDefault();
      open(true);
    });
  }

  legend() {
    const kinds = this.isMixed ? KIND_NAMES.filter((k) => this.kinds.has(k)) : [];
    const box = (kind) => shape("svg", { width: 11, height: 11, "aria-hidden": "true" },
                                shape("rect", { width: 11, height: 11, rx: 2, fill: colourOf(KIND_NAMES.indexOf(kind)) }));
    return element("ul", { class: "legend", "aria-label": "Colours" }, ...kinds.map((k) => element("li", {}, box(k), k)));
  }

  // What has no bytes, or is too small to be seen, is said.
  rest(pieces, placed) {
    const none = pieces.filter((p) => !(p.bytes > 0)).length;
    const ranges = pieces.filter((p) => p.members).length;
    const texts = [];
    if (ranges) texts.push("Small modules next to each other are drawn as one piece, which can be opened.");
    if (!this.isMixed && placed.length > 1) texts.push("Colours tell the pieces apart, and mean nothing else.");
    if (none) texts.push(`${count(none, "piece")} without bytes ${none === 1 ? "is" : "are"} not drawn.`);
    return element("p", { class: "quiet", ...(texts.length ? {} : { hidden: "" }) }, texts.join(" "));
  }

  crumbs(path) {
    this.path.replaceChildren(...path.map(({ name, module }, i) => {
      const button = element("button", { type: "button" }, ...breakable(name || "(no name)"));
      if (i === path.length - 1) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => this.show(module));
      return button;
    }));
  }
}
