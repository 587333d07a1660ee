// Statistics, histogram and heat map of a tensor's values: of all values, or of a sample.

const ALL = 1 << 20; // values that are read without asking
const PIECES = 64; // runs of values in a sample
const CHUNK = 1 << 20; // values per read
const KEPT = 1 << 24; // values that stay in memory for the histogram; others are read twice
const BINS = 64;
const SIDE = 256; // most pixels of the heat map in each direction

// Ranges of values: the whole tensor in chunks, or runs at equal distances.
function rangesOf(count, columns, isWhole) {
  if (isWhole)
    return Array.from({ length: Math.ceil(count / CHUNK) }, (_, i) => [
      i * CHUNK,
      Math.min(count, (i + 1) * CHUNK),
    ]);
  const length = ALL / PIECES;
  const ranges = [];
  for (let i = 0, end = 0; i < PIECES; i++) {
    let from = Math.floor((i * (count - length)) / (PIECES - 1));
    if (columns <= length) from -= from % columns;
    from = Math.max(from, end);
    end = Math.min(count, from + length);
    if (end > from) ranges.push([from, end]);
  }
  return ranges;
}

class Sums {
  constructor() {
    Object.assign(this, {
      count: 0,
      finite: 0,
      zeros: 0,
      nan: 0,
      inf: 0,
      min: Infinity,
      max: -Infinity,
      shift: null,
      sum: 0,
      squares: 0,
    });
  }

  // Sums are taken of differences from the first value, so that close values keep their digits.
  add(values) {
    let { finite, zeros, nan, inf, min, max, shift, sum, squares } = this;
    for (const v of values) {
      if (v - v !== 0) {
        if (v !== v) nan++;
        else inf++;
        continue;
      }
      if (shift === null) shift = v;
      finite++;
      if (v === 0) zeros++;
      if (v < min) min = v;
      if (v > max) max = v;
      sum += v - shift;
      squares += (v - shift) * (v - shift);
    }
    this.count += values.length;
    Object.assign(this, { finite, zeros, nan, inf, min, max, shift, sum, squares });
  }

  result() {
    const { count, finite, zeros, nan, inf, min, max } = this;
    if (!finite)
      return { count, finite, zeros, nan, inf, min: null, max: null, mean: null, std: null };
    const mean = this.sum / finite;
    const std = Math.sqrt(Math.max(0, this.squares / finite - mean * mean));
    return { count, finite, zeros, nan, inf, min, max, mean: this.shift + mean, std };
  }
}

function addToBins(bins, values, min, max) {
  const scale = max > min ? BINS / (max - min) : 0;
  for (const v of values)
    if (v - v === 0) bins[Math.min(BINS - 1, Math.floor((v - min) * scale))]++;
}

// Means of rectangles of values.
class Heat {
  constructor(rows, columns, most) {
    Object.assign(this, {
      rows,
      columns,
      width: Math.min(columns, SIDE),
      height: Math.max(1, Math.min(rows, most)),
    });
    this.sums = new Float64Array(this.width * this.height);
    this.counts = new Uint32Array(this.sums.length);
  }

  add(values, from) {
    const { rows, columns, width, height, sums, counts } = this;
    let row = Math.floor(from / columns);
    let column = from % columns;
    let line = Math.floor((row * height) / rows) * width;
    for (const v of values) {
      if (v - v === 0) {
        const at = line + Math.floor((column * width) / columns);
        sums[at] += v;
        counts[at]++;
      }
      if (++column === columns) {
        column = 0;
        line = Math.floor((++row * height) / rows) * width;
      }
    }
  }

  // NaN where no value was read.
  result() {
    return {
      width: this.width,
      height: this.height,
      means: Float32Array.from(this.sums, (sum, i) => sum / this.counts[i]),
    };
  }
}

// read(from, to): a promise of the values [from, to).  count: all values.  columns: values per row.
export async function survey({ read, count, columns, whole, onProgress }) {
  const isWhole = whole || count <= ALL;
  const ranges = rangesOf(count, columns, isWhole);
  const rows = Math.ceil(count / columns);
  const sums = new Sums();
  const heat = new Heat(rows, columns, isWhole ? SIDE : PIECES);
  const total = ranges.reduce((sum, [from, to]) => sum + to - from, 0);
  const kept = total <= KEPT ? [] : null;
  let done = 0;
  const each = async (use) => {
    for (const [from, to] of ranges) {
      const values = await read(from, to);
      use(values, from);
      done += to - from;
      onProgress(done, kept ? total : 2 * total);
    }
  };
  await each((values, from) => {
    sums.add(values);
    heat.add(values, from);
    if (kept) kept.push(values);
  });
  const figures = sums.result();
  const bins = new Array(BINS).fill(0);
  const bin = (values) => addToBins(bins, values, figures.min, figures.max);
  if (figures.finite && kept) kept.forEach(bin);
  else if (figures.finite) await each(bin);
  return {
    ...figures,
    bins: figures.finite ? bins : [],
    heat: heat.result(),
    isWhole,
    all: count,
  };
}
