// Statistics, histogram and heat map of a tensor's values: of all values, or of a sample.

import { fieldRanges } from "./field_ranges.js";
import { Sums } from "./stats.js";

const ALL = 1 << 20; // values that are read without asking
const PIECES = 16; // runs of values in a sample
const CHUNK = 1 << 18; // values per read
const AT_ONCE = 8; // reads that wait for bytes at the same time
const KEPT = 1 << 24; // values that stay in memory for the histogram; others are read twice
export const BINS = 64;
const SIDE = 256; // most pixels of the heat map in each direction

// Ranges of values: the whole tensor in chunks, or runs at equal distances.
export function rangesOf(count, columns, isWhole, pieces) {
  if (isWhole)
    return Array.from({ length: Math.ceil(count / CHUNK) }, (_, i) => [
      i * CHUNK,
      Math.min(count, (i + 1) * CHUNK),
    ]);
  const length = ALL / pieces;
  const ranges = [];
  for (let i = 0, end = 0; i < pieces; i++) {
    let from = Math.floor((i * (count - length)) / Math.max(1, pieces - 1));
    if (columns <= length) from -= from % columns;
    from = Math.max(from, end);
    end = Math.min(count, from + length);
    if (end > from) ranges.push([from, end]);
  }
  return ranges;
}

export function addToBins(bins, values, min, max) {
  const scale = max > min ? BINS / (max - min) : 0;
  for (const v of values)
    if (v - v === 0) bins[Math.min(BINS - 1, Math.floor((v - min) * scale))]++;
}

// Means and greatest values of rectangles of values.  bands: ranges of rows [first, end) below each other, which together
// are the picture.
export class Heat {
  constructor(bands, columns) {
    const most = Math.max(1, Math.floor(SIDE / bands.length)); // lines of a band
    this.columns = columns;
    this.width = Math.min(columns, SIDE);
    this.height = 0;
    this.bands = bands.map(([first, end]) => {
      const lines = Math.max(1, Math.min(end - first, most));
      this.height += lines;
      return { first, rows: Math.max(1, end - first), lines, top: this.height - lines };
    });
    this.sums = new Float64Array(this.width * this.height);
    this.counts = new Uint32Array(this.sums.length);
    this.most = new Float64Array(this.sums.length); // values of the greatest magnitude
    this.kinds = new Uint8Array(this.sums.length); // 1: a NaN, 2: an infinite value, 3: both
  }

  // Add the values from the number `from` on, which lie in a band.
  add(values, from, { first, rows, lines, top }) {
    const { columns, width, sums, counts, kinds, most } = this;
    let row = Math.floor(from / columns) - first;
    let column = from % columns;
    let line = (top + Math.floor((row * lines) / rows)) * width;
    for (const v of values) {
      const at = line + Math.floor((column * width) / columns);
      if (v - v === 0) {
        sums[at] += v;
        counts[at]++;
        if (Math.abs(v) > Math.abs(most[at])) most[at] = v;
      } else {
        kinds[at] |= v === v ? 2 : 1;
      }
      if (++column === columns) {
        column = 0;
        line = (top + Math.floor((++row * lines) / rows)) * width;
      }
    }
  }

  // Means are NaN where no finite value was read.
  result() {
    return {
      ...fieldRanges(this.bands, this.width, this.columns),
      most: Float32Array.from(this.most, (v, i) => (this.counts[i] ? v : NaN)),
      width: this.width,
      height: this.height,
      means: Float32Array.from(this.sums, (sum, i) => sum / this.counts[i]),
      kinds: this.kinds.slice(),
    };
  }
}

// Call use(range) for each range, at most AT_ONCE at the same time, and in order of their ends.
async function together(ranges, use) {
  const waiting = ranges.entries();
  const next = async () => {
    for (const [i, range] of waiting) await use(range, i);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
}

// read(from, to): a promise of the values [from, to).  count: all values.  columns: values per row.
// isPacked: each read decodes everything before the values.  onPicture(result): figures of the first
// piece, while the others are read.
export async function survey({ read, count, columns, whole, isPacked, onProgress, onPicture = () => {} }) {
  const isWhole = whole || count <= ALL;
  const ranges = rangesOf(count, columns, isWhole, isPacked ? 1 : PIECES);
  const rowsOf = ([from, to]) => [Math.floor(from / columns), Math.ceil(to / columns)];
  const bands = isWhole ? [[0, Math.ceil(count / columns)]] : ranges.map(rowsOf);
  const sums = new Sums();
  const heat = new Heat(bands.length ? bands : [[0, 1]], columns);
  const total = ranges.reduce((sum, [from, to]) => sum + to - from, 0);
  const kept = total <= KEPT ? [] : null;
  let done = 0;
  const each = (use) =>
    together(ranges, async ([from, to], i) => {
      const values = await read(from, to);
      use(values, from, i);
      done += to - from;
      onProgress(done, kept ? total : 2 * total);
    });
  const result = (bins) => {
    const figures = sums.result();
    return { ...figures, bins: figures.finite ? bins : [], heat: heat.result(), isWhole, all: count };
  };
  const binned = (pieces) => {
    const { min, max } = sums.result();
    const bins = new Array(BINS).fill(0);
    for (const values of pieces) addToBins(bins, values, min, max);
    return bins;
  };
  await each((values, from, i) => {
    sums.add(values);
    heat.add(values, from, heat.bands[isWhole ? 0 : i]);
    if (kept) kept.push(values);
    if (done === 0 && ranges.length > 1) onPicture({ ...result(binned([values])), isWhole: false });
  });
  if (kept) return result(binned(kept));
  const { min, max, finite } = sums.result();
  const bins = new Array(BINS).fill(0);
  if (finite) await each((values) => addToBins(bins, values, min, max));
  return result(bins);
}
