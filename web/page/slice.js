// A part of a tensor as a picture: two axes, ranges of both, and one index of every other axis.  Runs in
// the worker.

import { Heat } from "./survey.js";

const SPAN = 1 << 22; // values that are read at once
const MOST_ROWS = 512; // rows of which each is read alone

export function stridesOf(shape) {
  const strides = new Array(shape.length).fill(1);
  for (let d = shape.length - 2; d >= 0; d--) strides[d] = strides[d + 1] * shape[d + 1];
  return strides;
}

const spread = (count, most) => Array.from({ length: Math.min(count, most) }, (_, i) => Math.floor((i * count) / Math.min(count, most)));

// Return row(i), which promises the values of row i, and how many rows can be read.
async function reader({ base, rowStride, columnStride, rows, columns, read }) {
  const [from, end] = columns;
  const count = end - from;
  const first = base + rows[0] * rowStride + from * columnStride;
  const last = base + (rows[1] - 1) * rowStride + (end - 1) * columnStride;
  const pick = (values, offset) =>
    columnStride === 1 ? values.subarray(offset, offset + count) : values.constructor.from({ length: count }, (_, k) => values[offset + k * columnStride]);
  if (last - first < SPAN) {
    const all = await read(first, last + 1);
    return { most: Infinity, row: (i) => pick(all, (i - rows[0]) * rowStride) };
  }
  const length = (count - 1) * columnStride + 1;
  const most = columnStride === 1 ? MOST_ROWS : Math.floor((4 * SPAN) / length);
  if (most < 1) throw Object.assign(new Error("the values of a row lie too far apart to be read here; choose other axes"), { status: "unsupported" });
  return {
    most,
    row: async (i) => pick(await read(base + i * rowStride + from * columnStride, base + i * rowStride + from * columnStride + length), 0),
  };
}

// shape: that of the tensor, with at least one axis.  row, column: axes; at: an index of every axis.
// rows, columns: ranges.  read(from, to): a promise of values.  Return what ValueMap takes, and
// `skipped`: every how many rows one was read.
export async function sliceOf({ shape, row, column, at, rows, columns, read }, signal) {
  const strides = stridesOf(shape);
  const base = at.reduce((sum, i, d) => sum + (d === row || d === column ? 0 : i * strides[d]), 0);
  const rowStride = row === null ? 0 : strides[row];
  const source = await reader({ base, rowStride, columnStride: strides[column], rows, columns, read });
  const list = spread(rows[1] - rows[0], source.most);
  const width = columns[1] - columns[0];
  const heat = new Heat([[0, list.length]], width);
  for (const [k, i] of list.entries()) {
    signal.throwIfAborted();
    heat.add(await source.row(rows[0] + i), k * width, heat.bands[0]);
  }
  const found = heat.result();
  const moved = ([from, end]) => [from + columns[0], end + columns[0]];
  const rowAt = (k) => rows[0] + (k < list.length ? list[k] : rows[1] - rows[0]);
  return {
    ...found,
    columns: found.columns.map(moved),
    rows: found.rows.map(([from, end]) => [rowAt(from), rowAt(end)]),
    skipped: Math.round((rows[1] - rows[0]) / list.length),
  };
}
