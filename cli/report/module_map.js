// Modules of tensors by their names, for Treemap.  Names are split at dots and slashes.

import { levels } from "./map_levels.js";

const newNode = (name, up) => ({ name, bytes: 0, tensors: 0, children: new Map(), up, tensor: null });

function modulesOf(tensors) {
  const root = newNode("all", null);
  tensors.forEach((t, i) => {
    let at = root;
    for (const word of t.name.split(/[./]/)) {
      if (!at.children.has(word)) at.children.set(word, newNode(word, at));
      at = at.children.get(word);
    }
    at.tensor = i;
    for (let node = at; node; node = node.up) {
      node.bytes += t.bytes;
      node.tensors++;
    }
  });
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

const isNumber = (name) => /^\d+$/.test(name);
const byName = (a, b) =>
  isNumber(a.name) && isNumber(b.name) ? a.name - b.name : a.name < b.name ? -1 : a.name > b.name ? 1 : 0;

function piecesOf(node) {
  return [...node.children.values()].sort(byName).map((child) => {
    const { node: end, name } = withoutDetours(child);
    const isModule = end.children.size > 1;
    return { name, bytes: child.bytes, tensors: child.tensors, module: isModule ? end : null, tensor: end.tensor, node: child };
  });
}

// Neighbours as a module of their own.
function join(pieces) {
  const { up } = pieces[0].node;
  const node = newNode(`${pieces[0].name} … ${pieces[pieces.length - 1].name}`, up);
  for (const p of pieces) node.children.set(p.node.name, p.node);
  return node;
}

// Return what Treemap asks for: the path to a module (null: the root) and its content.
export function moduleMap(tensors) {
  const root = modulesOf(tensors);
  return (module) => {
    const { node } = withoutDetours(module || root);
    const path = pathTo(node);
    const full = path.slice(1).map((p) => p.name).join(".");
    return { path, pieces: levels(node, { childrenOf: piecesOf, join, path: full }) };
  };
}
