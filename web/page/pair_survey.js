// The values of two tensors beside each other: one histogram, and pictures of both and of A - B.  Runs
// in the worker.

import { Sums } from "./stats.js";
import { addToBins, BINS, Heat, rangesOf } from "./survey.js";

const ALL = 1 << 20; // values of each that are read
const PIECES = 16;

function bandsOf(ranges, count, columns, isWhole) {
  return isWhole ? [[0, Math.ceil(count / columns)]] : ranges.map(([from, to]) => [Math.floor(from / columns), Math.ceil(to / columns)]);
}

async function valuesOf({ count, columns, isPacked, read }, progress) {
  const isWhole = count <= ALL;
  const ranges = rangesOf(count, columns, isWhole, isPacked ? 1 : PIECES);
  const bands = bandsOf(ranges, count, columns, isWhole);
  const pieces = [];
  for (const [i, [from, to]] of ranges.entries()) {
    pieces.push({ from, band: isWhole ? 0 : i, values: await read(from, to) });
    progress(to - from);
  }
  return { pieces, bands, columns, isWhole, all: count };
}

function figuresOf({ pieces, bands, columns, isWhole, all }) {
  const sums = new Sums();
  const heat = new Heat(bands.length ? bands : [[0, 1]], columns);
  for (const { from, band, values } of pieces) {
    sums.add(values);
    heat.add(values, from, heat.bands[band]);
  }
  return { ...sums.result(), heat: heat.result(), isWhole, all };
}

function binned({ pieces }, min, max) {
  const bins = new Array(BINS).fill(0);
  for (const { values } of pieces) addToBins(bins, values, min, max);
  return bins;
}

function differences(a, b) {
  const minus = (x, y) => Float64Array.from(x, (v, i) => v - y[i]);
  return { ...a, pieces: a.pieces.map((p, i) => ({ ...p, values: minus(p.values, b.pieces[i].values) })) };
}

// a, b: { count, columns, isPacked, read }, or null.  Return { a, b, difference, bins }; difference is null
// for tensors of different shapes.
export async function surveyPair(a, b, onProgress) {
  const total = [a, b].reduce((sum, x) => sum + (x ? Math.min(x.count, ALL) : 0), 0);
  let done = 0;
  const progress = (n) => onProgress((done += n), total);
  const isAlike = a && b && a.count === b.count && a.columns === b.columns;
  const isPacked = Boolean(a?.isPacked || b?.isPacked); // then both are read in one piece
  const [x, y] = [a && (await valuesOf({ ...a, isPacked }, progress)), b && (await valuesOf({ ...b, isPacked }, progress))];
  const both = [x, y].map((v) => v && figuresOf(v));
  const known = both.filter((f) => f && f.finite);
  const min = Math.min(...known.map((f) => f.min));
  const max = Math.max(...known.map((f) => f.max));
  return {
    a: both[0],
    b: both[1],
    difference: isAlike ? figuresOf(differences(x, y)) : null,
    bins: known.length ? { min, max, a: x && binned(x, min, max), b: y && binned(y, min, max) } : null,
  };
}
