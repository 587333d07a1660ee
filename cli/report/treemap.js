// A treemap of bytes by module; a module is opened by a click or the Enter key.

import { colourOf, element, percentText, shape, sizeText } from "./basics.js";

// The largest pieces; the others become one piece.
function largest(pieces) {
  const MOST = 60;
  const all = pieces.filter((p) => p.bytes > 0).sort((a, b) => b.bytes - a.bytes);
  const rest = all.splice(MOST);
  const sum = (key) => rest.reduce((total, p) => total + p[key], 0);
  if (rest.length)
    all.push({ module: null, name: `${rest.length.toLocaleString("en")} others`,
               bytes: sum("bytes"), tensors: sum("tensors") });
  return all;
}

// The worst ratio of sides in a row of areas along a side of the length `side`.
function worst(row, sum, side) {
  const scale = (side * side) / (sum * sum);
  return Math.max(scale * row[0].area, 1 / (scale * row[row.length - 1].area));
}

// Place pieces with an `area`, the largest first, in a box: rows of nearly square rectangles.
function squarify(pieces, box) {
  let { x, y, width, height } = box;
  for (let i = 0; i < pieces.length;) {
    const side = Math.min(width, height);
    const row = [pieces[i++]];
    let sum = row[0].area;
    while (i < pieces.length &&
           worst([...row, pieces[i]], sum + pieces[i].area, side) <= worst(row, sum, side)) {
      sum += pieces[i].area;
      row.push(pieces[i++]);
    }
    const depth = side ? sum / side : 0;
    let along = 0;
    for (const p of row) {
      const length = depth ? p.area / depth : 0;
      Object.assign(p, width < height ? { x: x + along, y, w: length, h: depth }
                                      : { x, y: y + along, w: depth, h: length });
      along += length;
    }
    if (width < height) [y, height] = [y + depth, height - depth];
    else [x, width] = [x + depth, width - depth];
  }
}

export class Treemap {
  // source(module): { path: [{ name, module }], pieces: [{ name, bytes, tensors, module }] } or a
  // promise of that.  The module null stands for the root in the argument, and for a piece that
  // cannot be opened in the result.  shown(path): another module is shown.  sizeOf(): width and
  // height of the picture.
  constructor({ into, path, source, shown, sizeOf = () => [1000, 380] }) {
    Object.assign(this, { into, path, source, shown, sizeOf, turn: 0 });
    this.show(null);
  }

  async show(module, focus = false) {
    const turn = ++this.turn;
    const content = await this.source(module);
    if (turn !== this.turn) return;
    const [width, height] = this.sizeOf();
    const pieces = largest(content.pieces);
    const whole = pieces.reduce((sum, p) => sum + p.bytes, 0);
    for (const p of pieces) p.area = whole ? (p.bytes / whole) * width * height : 0;
    squarify(pieces, { x: 0, y: 0, width, height });
    const svg = shape("svg", { viewBox: `0 0 ${width} ${height}` },
                      ...pieces.map((p, i) => this.piece(p, i, whole)));
    this.into.replaceChildren(pieces.length ? svg : element("p", { class: "quiet" }, "No bytes."));
    this.crumbs(content.path);
    if (focus) (svg.querySelector("g[tabindex]") || this.path.lastChild).focus();
    if (this.shown) this.shown(content.path);
  }

  piece(p, i, whole) {
    const text = `${p.name}: ${sizeText(p.bytes)}, ${percentText(p.bytes, whole)}, ` +
                 `${p.tensors.toLocaleString("en")} ${p.tensors === 1 ? "tensor" : "tensors"}`;
    const opens = p.module !== null;
    const g = shape("g", opens ? { tabindex: "0", role: "button", "aria-label": text } : {},
                    shape("title", {}, text),
                    shape("rect", { x: p.x, y: p.y, width: p.w, height: p.h, rx: 3,
                                    fill: colourOf(i) }));
    const letters = Math.floor((p.w - 10) / 7);
    if (p.h > 18 && letters > 2) {
      const cut = p.name.length > letters ? p.name.slice(0, letters - 1) + "…" : p.name;
      g.append(shape("text", { x: p.x + 6, y: p.y + 15 }, cut));
      if (p.h > 34 && letters > 8)
        g.append(shape("text", { x: p.x + 6, y: p.y + 30 }, sizeText(p.bytes)));
    }
    if (opens) {
      g.addEventListener("click", () => this.show(p.module));
      g.addEventListener("keydown", (e) => {
        if (e.key !== "Enter" && e.key !== " ") return;
        e.preventDefault();
        this.show(p.module, true);
      });
    }
    return g;
  }

  crumbs(path) {
    this.path.replaceChildren(...path.map(({ name, module }, i) => {
      const button = element("button", { type: "button" }, name || "(no name)");
      if (i === path.length - 1) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => this.show(module));
      return button;
    }));
  }
}
