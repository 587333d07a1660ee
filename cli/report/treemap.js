// A treemap of bytes by module; a module is opened by a click or the Enter key.

// Return the tree of modules.  Names are split at dots and slashes.
function modulesOf(tensors) {
  const root = { name: "model", bytes: 0, tensors: 0, children: new Map(), up: null };
  for (const t of tensors) {
    let at = root;
    for (const word of t.name.split(/[./]/)) {
      if (!at.children.has(word))
        at.children.set(word, { name: word, bytes: 0, tensors: 0, children: new Map(), up: at });
      at = at.children.get(word);
    }
    for (let node = at; node; node = node.up) {
      node.bytes += t.bytes;
      node.tensors++;
    }
  }
  return root;
}

// Follow modules that have a single child: "model.layers" rather than "model" alone.
function withoutDetours(node) {
  let name = node.name;
  while (node.children.size === 1) {
    node = node.children.values().next().value;
    name += "." + node.name;
  }
  return { node, name };
}

// The largest modules inside a node; the rest is one piece.
function piecesOf(node) {
  const MOST = 60;
  const all = [...node.children.values()].filter((c) => c.bytes).sort((a, b) => b.bytes - a.bytes)
    .map((c) => ({ ...withoutDetours(c), bytes: c.bytes, tensors: c.tensors }));
  const rest = all.splice(MOST);
  if (rest.length)
    all.push({ node: null, name: `${rest.length} others`,
               bytes: rest.reduce((sum, x) => sum + x.bytes, 0),
               tensors: rest.reduce((sum, x) => sum + x.tensors, 0) });
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

class Treemap {
  constructor({ into, path, tensors }) {
    Object.assign(this, { into, path, root: modulesOf(tensors) });
    this.show(this.root);
  }

  show(module, focus = false) {
    const { node } = withoutDetours(module);
    const WIDTH = 1000;
    const HEIGHT = 380;
    const pieces = piecesOf(node);
    const whole = pieces.reduce((sum, p) => sum + p.bytes, 0);
    for (const p of pieces) p.area = whole ? (p.bytes / whole) * WIDTH * HEIGHT : 0;
    squarify(pieces, { x: 0, y: 0, width: WIDTH, height: HEIGHT });
    const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}` },
                      ...pieces.map((p, i) => this.piece(p, i, whole)));
    this.into.replaceChildren(pieces.length ? svg : element("p", { class: "quiet" }, "No bytes."));
    this.crumbs(node);
    if (focus) (svg.querySelector("g[tabindex]") || this.path.lastChild).focus();
  }

  piece(p, i, whole) {
    const text = `${p.name}: ${sizeText(p.bytes)}, ${percentText(p.bytes, whole)}, ` +
                 `${p.tensors} ${p.tensors === 1 ? "tensor" : "tensors"}`;
    const opens = p.node && p.node.children.size > 1;
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
      g.addEventListener("click", () => this.show(p.node));
      g.addEventListener("keydown", (e) => {
        if (e.key !== "Enter" && e.key !== " ") return;
        e.preventDefault();
        this.show(p.node, true);
      });
    }
    return g;
  }

  crumbs(node) {
    const way = [];
    for (let at = node; at; at = at.up) way.unshift(at);
    this.path.replaceChildren(...way.map((at) => {
      const button = element("button", { type: "button" }, at.name || "(no name)");
      if (at === node) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => this.show(at));
      return button;
    }));
  }
}
