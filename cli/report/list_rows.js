// Rows of a table that are all in memory.

const SLICE = 8; // milliseconds of work until the page may draw
const RUN = 4096; // rows that are sorted at once

// Order values of a column; what is missing comes last.
function compareValues(a, b) {
  const gone = (v) => v === null || v === undefined || Number.isNaN(v);
  if (gone(a) || gone(b)) return gone(a) - gone(b);
  if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
  return typeof a === "number" ? -1 : 1;
}

// Lets the page draw when a slice of time is used up.
class Breaks {
  constructor() { this.begun = performance.now(); }

  isDue() { return performance.now() - this.begun > SLICE; }

  async take() {
    await new Promise((done) => setTimeout(done));
    this.begun = performance.now();
  }
}

// Merge the sorted rows [from, middle) and [middle, end) of a list into another list.
async function merge(rows, into, [from, middle, end], compare, breaks) {
  let a = from;
  let b = middle;
  for (let i = from; i < end; i++) {
    if (i % 512 === 0 && breaks.isDue()) await breaks.take();
    into[i] = b >= end || (a < middle && compare(rows[a], rows[b]) <= 0) ? rows[a++] : rows[b++];
  }
}

// Return sorted rows; equal rows keep their order.
async function sorted(rows, compare, breaks) {
  const count = rows.length;
  let list = [];
  for (let i = 0; i < count; i += RUN) {
    if (breaks.isDue()) await breaks.take();
    list.push(...rows.slice(i, i + RUN).sort(compare));
  }
  for (let width = RUN; width < count; width *= 2) {
    const next = new Array(count);
    for (let i = 0; i < count; i += 2 * width) {
      const range = [i, Math.min(count, i + width), Math.min(count, i + 2 * width)];
      await merge(list, next, range, compare, breaks);
    }
    list = next;
  }
  return list;
}

async function filtered(rows, fits, breaks) {
  const kept = [];
  for (let i = 0; i < rows.length; i++) {
    if (i % 256 === 0 && breaks.isDue()) await breaks.take();
    if (fits(rows[i])) kept.push(rows[i]);
  }
  return kept;
}

// A source of rows for Table.  words(row): the text that is searched.
export class ListRows {
  constructor(rows, words) {
    Object.assign(this, { rows, words, shown: rows, turn: 0 });
  }

  get total() { return this.rows.length; }
  get length() { return this.shown.length; }
  at(i) { return this.shown[i]; }

  fits(row, wanted) {
    const all = this.words(row).toLowerCase();
    return wanted.every((w) => all.includes(w));
  }

  // Keep the rows that have all words of the text, in the order of a column.  A newer call replaces
  // the result of an older one.
  async arrange(text, column, down) {
    const turn = ++this.turn;
    const breaks = new Breaks();
    const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
    const sign = down ? -1 : 1;
    this.marks = wanted;
    let rows = this.rows;
    if (wanted.length) rows = await filtered(rows, (row) => this.fits(row, wanted), breaks);
    if (column && turn === this.turn)
      rows = await sorted(rows, (a, b) => sign * compareValues(column.value(a), column.value(b)), breaks);
    if (turn === this.turn) this.shown = rows;
  }
}
