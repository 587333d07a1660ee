// Sources of rows for Table whose content comes from the worker.

import { cut, nameOfBytes } from "./names.js";
import { marksOf, queryOf } from "./query.js";

// Tensors in columns; the worker searches and sorts.  Rows past the first ones are not known until
// model.whole is fulfilled: a promise of whether the model has the columns of all tensors.
export class TensorRows {
  constructor(client, model) {
    Object.assign(this, { client, model, ids: null, module: null });
  }

  get columns() {
    return this.model.columns || this.model.first;
  }
  get total() {
    return this.model.count;
  }
  get length() {
    return this.ids ? this.ids.length : this.model.count;
  }

  id(i) {
    return this.ids ? this.ids[i] : i;
  }

  at(i) {
    return this.tensor(this.id(i));
  }

  // Undefined while the tensor is not known.
  tensor(id) {
    const c = this.columns;
    if (id >= c.count) return undefined;
    const from = id ? c.nameEnds[id - 1] : 0;
    const firstDim = id ? c.dimEnds[id - 1] : 0;
    return {
      id,
      name: nameOfBytes(c.nameBytes, from, Math.min(c.nameEnds[id], from + 20_000)),
      dtype: c.dtypeNames[c.dtypes[id]],
      shape: [...c.dims.subarray(firstDim, c.dimEnds[id])],
      elements: c.elements[id],
      bytes: c.nbytes[id],
      offset: c.offsets[id],
      shard: c.shards[id],
      scheme: this.model.schemes?.labels[this.model.schemes.of[id] - 1] ?? null,
    };
  }

  async arrange(text, column, down) {
    this.marks = marksOf(text);
    const { conditions, problem } = queryOf(text);
    this.problem = problem;
    const looked = this.model.looked || 0; // tensors whose values the overview has read
    const isPart = conditions.some((c) => c.kind === "bad") && looked < this.model.count;
    this.note = isPart ? `among the ${looked.toLocaleString("en")} of ${this.model.count.toLocaleString("en")} tensors whose values the overview has read` : "";
    const order = {
      model: this.model.id,
      text,
      column: column?.key,
      down,
      module: this.module,
    };
    const isKnown = await this.model.whole;
    if (isKnown) this.ids = await this.client.ask("arrange", order);
    return isKnown;
  }
}

// Rows that are read in pages when they become visible; pages that are no longer visible are
// cancelled.
export class PagedRows {
  // load(from, to, signal): a promise of the rows.  changed(): rows have arrived.
  constructor({ length, pageRows, load, changed, failed }) {
    Object.assign(this, {
      length,
      total: length,
      pageRows,
      load,
      changed,
      failed,
      pages: new Map(),
      waiting: new Map(),
    });
  }

  at(i) {
    const page = Math.floor(i / this.pageRows);
    return this.pages.get(page)?.[i - page * this.pageRows];
  }

  arrange() {}

  // Table says which rows are visible.
  wanted(first, end) {
    const from = Math.floor(first / this.pageRows);
    const to = Math.floor(Math.max(first, end - 1) / this.pageRows);
    for (const [page, stop] of this.waiting) if (page < from || page > to) stop.abort();
    for (let page = from; page <= to && end > first; page++) this.fetch(page);
  }

  async fetch(page) {
    if (this.pages.has(page) || this.waiting.has(page)) return;
    const MOST = 64; // pages in memory
    const stop = new AbortController();
    this.waiting.set(page, stop);
    try {
      const from = page * this.pageRows;
      const rows = await this.load(from, Math.min(this.length, from + this.pageRows), stop.signal);
      this.pages.set(page, rows);
      if (this.pages.size > MOST) this.pages.delete(this.pages.keys().next().value);
    } catch (e) {
      if (!stop.signal.aborted) {
        this.pages.set(page, []);
        this.failed(e);
      }
    } finally {
      this.waiting.delete(page);
    }
    if (!stop.signal.aborted) this.changed();
  }

  close() {
    for (const stop of this.waiting.values()) stop.abort();
  }
}

export const shortName = (name) => cut(name);
