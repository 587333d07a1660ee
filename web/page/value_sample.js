// A look at the values of all tensors: runs of values of each, or all of them.  Runs in the worker.

import { MOST_TENSORS } from "./limits.js";
import { Sums } from "./stats.js";
import { numbersOf, partOf } from "./values.js";

const SMALL = 1 << 14; // values of a tensor that are read without a choice
const RUNS = 4;
const CHUNK = 1 << 19; // values of one read
const AT_ONCE = 6; // tensors that are read at the same time

// Ranges of values of a tensor that are read.
function rangesOf({ count, encoding }, isWhole, runs) {
  if (count <= SMALL || isWhole)
    return Array.from({ length: Math.ceil(count / CHUNK) }, (_, i) => [i * CHUNK, Math.min(count, (i + 1) * CHUNK)]);
  if (encoding !== "raw") return [[0, SMALL]]; // each read decodes everything before it
  const length = SMALL / runs;
  return Array.from({ length: runs }, (_, i) => {
    const from = runs > 1 ? Math.floor((i * (count - length)) / (runs - 1)) : 0;
    return [from, from + length];
  });
}

// The tensors that are looked at: `first`, and others at equal distances.
function idsOf(count, isWhole, first) {
  const most = isWhole ? count : Math.min(count, MOST_TENSORS);
  const ids = new Set(isWhole ? [] : first.slice(0, most));
  const step = Math.max(1, count / Math.max(1, most - ids.size));
  for (let i = 0; ids.size < most && i < count; i += step) ids.add(Math.floor(i));
  for (let i = 0; ids.size < most && i < count; i++) ids.add(i);
  return ids;
}

export class ValueSample {
  // isBusy(): other questions wait for an answer.
  constructor(model, types, isBusy) {
    Object.assign(this, { model, types, isBusy, figures: new Map() });
  }

  // The figures of a tensor: { read, count, std, max, nan, inf }; { none } if it has no values.
  async look(id, isWhole, runs, signal) {
    const t = this.model.tensorAt(id);
    const role = t.parts.some((p) => p.role === "data") ? "data" : t.parts[0]?.role;
    const part = partOf(t, role, this.types);
    if (!part.decodes || !part.count || !t.parts.length) return { id, none: true };
    const sums = new Sums();
    for (const [from, to] of rangesOf(part, isWhole, runs)) {
      sums.add(await numbersOf(t, part, from, to, signal));
      signal.throwIfAborted();
    }
    const { count, nan, inf, min, max, std } = sums.result();
    return { id, read: count, count: part.count, std, max: min === null ? null : Math.max(Math.abs(min), Math.abs(max)), nan, inf };
  }

  // Look at tensors, those of `first` before others, and report batches of figures.  isWhole: all values
  // of all tensors.
  async run({ isWhole, first = [], runs = RUNS, signal, onBatch }) {
    const EVERY = 120; // milliseconds between batches
    let batch = [];
    let last = performance.now();
    const report = (isLast) => {
      if (!batch.length || (!isLast && performance.now() - last < EVERY)) return;
      onBatch(batch);
      batch = [];
      last = performance.now();
    };
    const ids = idsOf(this.model.tensorCount, isWhole, first).values();
    const next = async () => {
      for (const id of ids) {
        while (this.isBusy()) await new Promise((done) => setTimeout(done, 20));
        signal.throwIfAborted();
        const found = await this.look(id, isWhole, runs, signal).catch((e) => {
          signal.throwIfAborted();
          if (e.status === "io" || e.rule === "web/changed") throw e;
          return { id, failed: String(e.message) };
        });
        this.figures.set(id, found);
        batch.push(found);
        report(false);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, next));
    report(true);
  }
}
