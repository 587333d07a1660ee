// Rows of a table that are all in memory.

// Order values of a column; what is missing comes last.
function compareValues(a, b) {
  const gone = (v) => v === null || v === undefined || Number.isNaN(v);
  if (gone(a) || gone(b)) return gone(a) - gone(b);
  if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
  return typeof a === "number" ? -1 : 1;
}

// A source of rows for Table.  words(row): the text that is searched.
export class ListRows {
  constructor(rows, words) {
    Object.assign(this, { rows, words, shown: rows });
  }

  get total() { return this.rows.length; }
  get length() { return this.shown.length; }
  at(i) { return this.shown[i]; }

  // Keep the rows that have all words of the text, in the order of a column.
  arrange(text, column, down) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (row) => {
      const all = this.words(row).toLowerCase();
      return words.every((w) => all.includes(w));
    };
    this.shown = words.length ? this.rows.filter(fits) : this.rows.slice();
    if (!column) return;
    const sign = down ? -1 : 1;
    this.shown.sort((a, b) => sign * compareValues(column.value(a), column.value(b)));
  }
}
