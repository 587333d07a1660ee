// The modules of a model, as ranges of the tensors in the order of their names: a module is all
// tensors [lo, hi) whose names agree in the first `depth` bytes.

const isSeparator = (c) => c === 0x2e || c === 0x2f; // "." and "/"

function sums(order, values) {
  const total = new Float64Array(order.length + 1);
  for (let i = 0; i < order.length; i++) total[i + 1] = total[i] + (values[order[i]] || 0);
  return total;
}

export class ModuleTree {
  // order: a ColumnOrder
  constructor(order) {
    this.columns = order.columns;
    this.names = order.order("name");
    this.bytes = sums(this.names, this.columns.nbytes);
    this.elements = sums(this.names, this.columns.elements);
    this.root = { lo: 0, hi: this.columns.count, depth: 0, up: null, name: [0, 0] };
  }

  range(i) {
    const id = this.names[i];
    return [id ? this.columns.nameEnds[id - 1] : 0, this.columns.nameEnds[id]];
  }

  // End of the component that begins `depth` bytes into name i.
  componentEnd(i, depth) {
    const [from, end] = this.range(i);
    let at = Math.min(end, from + depth);
    while (at < end && !isSeparator(this.columns.nameBytes[at])) at++;
    return at - from;
  }

  hasComponent(i, like, depth, end) {
    if (this.componentEnd(i, depth) !== end) return false;
    const bytes = this.columns.nameBytes;
    const [a] = this.range(i);
    const [b] = this.range(like);
    for (let k = depth; k < end; k++) if (bytes[a + k] !== bytes[b + k]) return false;
    return true;
  }

  // The child of a module that begins with tensor i: tensors with the same component are adjacent.
  childAt(module, i) {
    const end = this.componentEnd(i, module.depth);
    if (end < module.depth)
      // a tensor with the name of the module itself
      return { lo: i, hi: i + 1, depth: module.depth, up: module, name: [module.depth, end] };
    let step = 1;
    let last = i; // has the component
    while (last + step < module.hi && this.hasComponent(last + step, i, module.depth, end)) {
      last += step;
      step *= 2;
    }
    for (; step >= 1; step = Math.floor(step / 2))
      if (last + step < module.hi && this.hasComponent(last + step, i, module.depth, end))
        last += step;
    return { lo: i, hi: last + 1, depth: end + 1, up: module, name: [module.depth, end] };
  }

  isTensor(module) {
    const [from, end] = this.range(module.lo);
    return module.hi - module.lo === 1 && module.depth > end - from;
  }

  // At most `most` children of a module.
  children(module, most) {
    const all = [];
    for (let i = module.lo; i < module.hi && all.length < most;) {
      all.push(this.childAt(module, i));
      i = all[all.length - 1].hi;
    }
    return all;
  }

  // Follow modules with a single child: "model.layers" rather than "model" alone.
  withoutDetours(module) {
    while (module.hi > module.lo && !this.isTensor(module)) {
      const only = this.childAt(module, module.lo);
      if (only.hi !== module.hi || only.depth <= module.depth) break;
      module = only;
    }
    return module;
  }

  // The module whose content is shown for a module, or for the root (null).  A tensor has no content.
  shownFor(module) {
    const end = this.withoutDetours(module || this.root);
    return this.isTensor(end) && end.up ? end.up : end;
  }

  // Bytes of the name of a module, from the component after `depth`.
  nameBytes(module, depth) {
    const [from, end] = this.range(module.lo);
    return this.columns.nameBytes.slice(from + depth, Math.min(end, from + module.depth - 1));
  }

  piece(child) {
    const end = this.withoutDetours(child);
    return {
      nameBytes: this.nameBytes(end, child.name[0]),
      tensors: child.hi - child.lo,
      bytes: this.bytes[child.hi] - this.bytes[child.lo],
      elements: this.elements[child.hi] - this.elements[child.lo],
      tensor: this.isTensor(end) ? this.names[end.lo] : null,
      module: this.isTensor(end) ? null : end,
    };
  }

  // Return { path, pieces, omitted } of a module, or of the root; omitted: tensors in further
  // modules.
  show(module) {
    const MOST = 20_000;
    const shown = this.shownFor(module);
    const path = [];
    for (let at = shown; at; at = at.up)
      path.unshift({ nameBytes: at.up ? this.nameBytes(at, at.name[0]) : null, module: at });
    const all = this.children(shown, MOST);
    const end = all.length ? all[all.length - 1].hi : shown.hi;
    return { path, pieces: all.map((child) => this.piece(child)), omitted: shown.hi - end };
  }
}
