// Places of the pieces of a treemap.

import { isNumbered } from "./map_levels.js";

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
    while (
      i < pieces.length &&
      worst([...row, pieces[i]], sum + pieces[i].area, side) <= worst(row, sum, side)
    ) {
      sum += pieces[i].area;
      row.push(pieces[i++]);
    }
    const depth = side ? sum / side : 0;
    let along = 0;
    for (const p of row) {
      const length = depth ? p.area / depth : 0;
      Object.assign(p, width < height ? { x: x + along, y, w: length, h: depth } : { x, y: y + along, w: depth, h: length });
      along += length;
    }
    if (width < height) [y, height] = [y + depth, height - depth];
    else [x, width] = [x + depth, width - depth];
  }
}

// Numbered pieces keep their order: rows like lines of text.
function band(pieces, { x, y, width, height }) {
  const lines = Math.max(1, Math.min(pieces.length, Math.round(Math.sqrt((pieces.length * height) / width))));
  const each = Math.ceil(pieces.length / lines);
  const area = width * height;
  const whole = pieces.reduce((sum, p) => sum + p.area, 0) || 1;
  for (let i = 0, top = y; i < pieces.length; i += each) {
    const line = pieces.slice(i, i + each);
    const sum = line.reduce((total, p) => total + p.area, 0);
    const high = ((sum / whole) * area) / width;
    let left = x;
    for (const p of line) {
      const w = sum ? (p.area / sum) * width : 0;
      Object.assign(p, { x: left, y: top, w, h: high });
      left += w;
    }
    top += high;
  }
}

const HEAD = 17; // pixels: the height of the name above the pieces of a module
const EDGE = 2;
const LEAST = 26; // pixels: the least side of a module whose pieces are drawn

const hasHead = (p) => p.w > 52 && p.h > 44;

// The room for the pieces of a module; null: too little.
function inside(p) {
  if (p.w < LEAST || p.h < LEAST) return null;
  const head = hasHead(p) ? HEAD : EDGE;
  return { x: p.x + EDGE, y: p.y + head, width: p.w - 2 * EDGE, height: p.h - head - EDGE };
}

// Give all pieces that have room their places (x, y, w, h), and `isFrame` to those whose pieces are
// drawn.  Pieces without bytes are left out.
export function place(pieces, box) {
  const all = pieces.filter((p) => p.bytes > 0);
  const isBand = isNumbered(pieces);
  if (!isBand) all.sort((a, b) => b.bytes - a.bytes);
  const whole = all.reduce((sum, p) => sum + p.bytes, 0);
  for (const p of all) p.area = (p.bytes / whole) * box.width * box.height;
  if (isBand) band(all, box);
  else squarify(all, box);
  for (const p of all) {
    const room = p.children?.length ? inside(p) : null;
    p.isFrame = Boolean(room);
    p.hasHead = p.isFrame && hasHead(p);
    if (room) p.placed = place(p.children, room);
  }
  return all;
}
