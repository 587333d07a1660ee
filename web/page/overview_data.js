// What the page asks for to show a model at first sight.  Runs in the worker.

import { levels } from "./map_levels.js";
import { modelFacts } from "./model_facts.js";
import { nameOfBytes } from "./names.js";
import { stacksOf } from "./roles.js";

const LOOKED = 20_000; // tensors whose names and shapes tell the kind of model

export const nameAt = (c, i) => nameOfBytes(c.nameBytes, i ? c.nameEnds[i - 1] : 0, c.nameEnds[i]);

function tensorsOf(c) {
  return Array.from({ length: Math.min(c.count, LOOKED) }, (_, i) => ({
    name: nameAt(c, i),
    shape: [...c.dims.subarray(i ? c.dimEnds[i - 1] : 0, c.dimEnds[i])],
  }));
}

// A value of the metadata by its key, or by a path of keys of nested maps.
function lookUp(metadata, key) {
  const value = metadata.get(key);
  return value instanceof Map || (typeof value === "object" && value !== null) ? undefined : value;
}

export function overviewOf({ order, stored, settings, schemes }, sums) {
  const { columns: c } = order;
  const found = stacksOf(c.count, (i) => nameAt(c, i));
  const facts = modelFacts({
    get: (key) => lookUp(stored.metadata, key),
    config: settings.config,
    tensors: tensorsOf(c),
    types: sums.types,
    bytes: sums.bytes,
    elements: sums.elements,
    stacks: found.stacks,
    unseen: found.unseen,
  });
  const quantisation = facts.find((f) => f.title === "Quantisation");
  if (quantisation && schemes) Object.assign(quantisation, decodedFact(schemes.shown));
  if (settings.problem) facts.push({ title: "Settings", text: `config.json ${settings.problem}`, from: "", isKnown: false });
  return { ...found, facts };
}

// The types of decoded tensors say nothing of how they are stored.
function decodedFact({ counts, left }) {
  const list = ([label, n], more = "") => `${label} (${n.toLocaleString("en")} ${n === 1 ? "tensor" : "tensors"}${more})`;
  const all = [...counts.map((c) => list(c)), ...left.map((c) => list(c, ", not decoded"))];
  return { text: all.join(", ") || "none that is recognised", from: "names, types and settings of the stored tensors" };
}

const textOf = (bytes) => nameOfBytes(bytes, 0, bytes.length);

// The content of a module for Treemap; module: null for the root.
export function mapOf(tree, module) {
  const shown = tree.shownFor(module);
  const path = [];
  for (let at = shown; at; at = at.up)
    path.unshift({ name: at.range || (at.up ? textOf(tree.nameBytes(at, at.name[0])) : "all"), module: at });
  const childrenOf = (m) =>
    tree.children(m, 20_000).map((child) => ({ ...tree.piece(child), child })).map(({ nameBytes, ...p }) => ({ ...p, name: textOf(nameBytes) }));
  const join = (pieces) => {
    const [first, last] = [pieces[0], pieces[pieces.length - 1]];
    return { ...first.child.up, lo: first.child.lo, hi: last.child.hi, up: first.child.up, range: `${first.name} … ${last.name}` };
  };
  const full = path.slice(1).map((p) => p.name).join(".");
  return { path, pieces: levels(shown, { childrenOf, join, path: full }).map(plain) };
}

// Without what only this file needs.
function plain({ child, children, ...p }) {
  return children ? { ...p, children: children.map(plain) } : p;
}
