// Several levels of modules for Treemap.  Small neighbours become one piece with the range of their
// names, which can be opened like a module: nothing disappears in a rest.

import { kindOf } from "./roles.js";

const MOST = 128; // pieces of a level
const NUMBERED = 256; // pieces of a level whose names are numbers
const NODES = 4000; // pieces of all levels

export const isNumbered = (pieces) => pieces.length > 3 && pieces.every((p) => /^\d+$/.test(p.name));

const sumOf = (list, key) => list.reduce((sum, p) => sum + (p[key] || 0), 0);

function rangeOf(members, join) {
  if (members.length < 2) return members;
  const [first, last] = [members[0], members[members.length - 1]];
  return [
    {
      name: `${first.name} … ${last.name}`,
      bytes: sumOf(members, "bytes"),
      tensors: sumOf(members, "tensors"),
      members: members.length,
      module: join(members),
      tensor: null,
    },
  ];
}

// Runs of equal length of very many numbered pieces.
function runs(pieces, join) {
  const length = Math.ceil(pieces.length / NUMBERED);
  const groups = [];
  for (let i = 0; i < pieces.length; i += length) groups.push(...rangeOf(pieces.slice(i, i + length), join));
  return groups;
}

// The largest pieces alone, and what lies between them, in the order of names, as ranges of moderate size.
function largest(pieces, join) {
  const least = pieces.map((p) => p.bytes).sort((a, b) => b - a)[Math.floor(MOST / 4)];
  const most = sumOf(pieces, "bytes") / (MOST / 4);
  const groups = [];
  let small = [];
  let sum = 0;
  const end = () => {
    groups.push(...rangeOf(small, join));
    small = [];
    sum = 0;
  };
  for (const p of pieces) {
    if (p.bytes > least || sum + p.bytes > most) end();
    if (p.bytes > least) groups.push(p);
    else {
      small.push(p);
      sum += p.bytes;
    }
  }
  end();
  return groups;
}

function grouped(pieces, join) {
  if (isNumbered(pieces)) return pieces.length > NUMBERED ? runs(pieces, join) : pieces;
  return pieces.length > MOST ? largest(pieces, join) : pieces;
}

// Return the pieces of a module with `children` below them.  childrenOf(module): pieces { name, bytes,
// tensors, module, tensor } in the order of names, module: null if it cannot be opened.
// join(pieces): the module of neighbours.  path: the name of the module.
export function levels(module, { childrenOf, join, path = "", depth = 5, most = NODES }) {
  const pieces = grouped(childrenOf(module), join);
  const whole = sumOf(pieces, "bytes") || 1;
  for (const p of pieces) {
    const full = path ? `${path}.${p.name}` : p.name;
    p.kind = kindOf(full);
    const room = Math.floor((most * p.bytes) / whole); // pieces below this one
    if (depth < 2 || !p.module || room < 2) continue;
    const below = levels(p.module, { childrenOf, join, path: full, depth: depth - 1, most: room });
    if (below.length <= room) p.children = below;
    const largestOne = below.reduce((a, b) => (b.bytes > a.bytes ? b : a), { bytes: -1, kind: p.kind });
    if (p.kind === "other") p.kind = largestOne.kind;
  }
  return pieces;
}
