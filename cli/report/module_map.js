// Modules of tensors by their names, for Treemap.  Names are split at dots and slashes.

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

function pathTo(node) {
  const path = [];
  for (let at = node; at; at = at.up) path.unshift({ name: at.name, module: at });
  return path;
}

// Return what Treemap asks for: the path to a module (null: the root) and its content.
export function moduleMap(tensors) {
  const root = modulesOf(tensors);
  return (module) => {
    const { node } = withoutDetours(module || root);
    const pieces = [...node.children.values()].map((child) => {
      const end = withoutDetours(child);
      return { name: end.name, bytes: child.bytes, tensors: child.tensors,
               module: end.node.children.size > 1 ? end.node : null };
    });
    return { path: pathTo(node), pieces };
  };
}
