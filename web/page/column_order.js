// Order and search of tensors in columns.  Runs in a worker: no step waits for the page.

import { globOf } from "./glob.js";
import { queryOf } from "./query.js";

const isDigit = (c) => c >= 0x30 && c <= 0x39;
const isSeparator = (c) => c === 0x2e || c === 0x2f; // "." and "/"

// Skip leading zeros; return the first other byte and the end of the number.
function numberAt(bytes, at, end) {
  let first = at;
  while (first < end && bytes[first] === 0x30) first++;
  let last = first;
  while (last < end && isDigit(bytes[last])) last++;
  return [first, last];
}

// Compare bytes[a..aEnd) and bytes[b..bEnd) component by component; separators come before other
// bytes, and numbers are compared as numbers.
function compareNames(bytes, a, aEnd, b, bEnd) {
  let tie = 0; // order of numbers with leading zeros, which counts at the end of a component
  while (a < aEnd && b < bEnd) {
    const x = bytes[a];
    const y = bytes[b];
    if (isDigit(x) && isDigit(y)) {
      const [p, pEnd] = numberAt(bytes, a, aEnd);
      const [q, qEnd] = numberAt(bytes, b, bEnd);
      if (pEnd - p !== qEnd - q) return pEnd - p - (qEnd - q);
      for (let i = 0; i < pEnd - p; i++)
        if (bytes[p + i] !== bytes[q + i]) return bytes[p + i] - bytes[q + i];
      tie = tie || p - a - (q - b);
      a = pEnd;
      b = qEnd;
      continue;
    }
    const left = isSeparator(x) ? 0 : x + 1;
    const right = isSeparator(y) ? 0 : y + 1;
    if (left !== right && tie && (!left || !right)) return tie;
    if (left !== right) return left - right;
    if (!left && tie) return tie;
    a++;
    b++;
  }
  return tie || aEnd - a - (bEnd - b);
}

function identity(count) {
  const order = new Uint32Array(count);
  for (let i = 0; i < count; i++) order[i] = i;
  return order;
}

// One character for each byte: windows-1252, which TextDecoder means by latin1, has a character of
// its own for every byte.
const oneByOne = new TextDecoder("latin1");

// The names as such characters; letters of ASCII in lower case.
function lowerBytes(bytes) {
  const lower = bytes.slice();
  for (let i = 0; i < lower.length; i++) {
    const b = lower[i];
    if (b >= 0x41 && b <= 0x5a) lower[i] = b + 32;
  }
  return oneByOne.decode(lower);
}

const nextTask = () => new Promise((done) => setTimeout(done));

export class ColumnOrder {
  // figures(): an iterator of the figures of tensors by id, of those that were read.
  constructor(columns, figures) {
    Object.assign(this, { columns, figures, orders: new Map(), lower: null, turn: 0 });
  }

  nameStart(i) {
    return i ? this.columns.nameEnds[i - 1] : 0;
  }

  // ---- order

  // Numbers that a column is sorted by.
  keys(column) {
    const c = this.columns;
    if (column === "dtype") {
      const sorted = c.dtypeNames
        .map((name, i) => i)
        .sort((a, b) => (c.dtypeNames[a] < c.dtypeNames[b] ? -1 : 1));
      const rank = [];
      sorted.forEach((code, i) => (rank[code] = i));
      return Float64Array.from(c.dtypes, (code) => rank[code]);
    }
    return { elements: c.elements, bytes: c.nbytes, offset: c.offsets }[column];
  }

  sortNames() {
    const { count, nameBytes, nameEnds } = this.columns;
    const compare = (i, j) =>
      compareNames(nameBytes, this.nameStart(i), nameEnds[i], this.nameStart(j), nameEnds[j]);
    const order = identity(count);
    let sorted = true;
    for (let i = 1; sorted && i < count; i++) sorted = compare(i - 1, i) <= 0;
    return sorted ? order : order.sort((i, j) => compare(i, j) || i - j);
  }

  sortKeys(column) {
    const keys = this.keys(column);
    return identity(this.columns.count).sort((i, j) => {
      const missing = Number.isNaN(keys[i]) - Number.isNaN(keys[j]);
      return missing || (Number.isNaN(keys[i]) ? 0 : keys[i] - keys[j]) || i - j;
    });
  }

  // All tensors in the order of a column: "name", "dtype", "elements", "bytes" or "offset".
  order(column) {
    if (!this.orders.has(column))
      this.orders.set(column, column === "name" ? this.sortNames() : this.sortKeys(column));
    return this.orders.get(column);
  }

  // ---- search

  markNames(word, hits) {
    const { nameBytes, nameEnds } = this.columns;
    this.lower ||= lowerBytes(nameBytes);
    const wanted = oneByOne.decode(new TextEncoder().encode(word));
    let row = 0;
    for (let at = this.lower.indexOf(wanted); at >= 0;) {
      while (nameEnds[row] <= at) row++;
      const fits = at + wanted.length <= nameEnds[row];
      if (fits) hits[row] = 1;
      at = this.lower.indexOf(wanted, fits ? nameEnds[row] : at + 1);
    }
  }

  markTypes(word, hits, isGlob = false) {
    const { dtypes, dtypeNames, count } = this.columns;
    const test = isGlob ? globOf(word) : (name) => name.includes(word);
    const fits = dtypeNames.map((name) => (test(name) ? 1 : 0));
    if (fits.includes(1)) for (let i = 0; i < count; i++) hits[i] |= fits[dtypes[i]];
  }

  markShapes(word, hits) {
    if (!/^[\d[\], ]+$/.test(word)) return;
    const { dims, dimEnds, count } = this.columns;
    for (let i = 0, from = 0; i < count; i++) {
      if (!hits[i] && `[${dims.subarray(from, dimEnds[i]).join(", ")}]`.includes(word)) hits[i] = 1;
      from = dimEnds[i];
    }
  }

  // Mark the tensors whose names fit a pattern.
  markPattern({ text }, hits) {
    const { nameBytes, nameEnds, count } = this.columns;
    const fits = globOf(text);
    const utf8 = new TextDecoder();
    for (let i = 0; i < count; i++)
      if (fits(utf8.decode(nameBytes.subarray(this.nameStart(i), nameEnds[i])))) hits[i] = 1;
  }

  markDims({ dims: wanted }, hits) {
    const { dims, dimEnds, count } = this.columns;
    for (let i = 0, from = 0; i < count; from = dimEnds[i++])
      if (dimEnds[i] - from === wanted.length && wanted.every((d, k) => d === null || d === dims[from + k])) hits[i] = 1;
  }

  // Conditions of one number of each tensor.
  markNumbers({ kind, test }, hits) {
    const { nbytes, elements, dimEnds, count } = this.columns;
    const rank = (i) => dimEnds[i] - (i ? dimEnds[i - 1] : 0);
    const valueOf = { size: (i) => nbytes[i], params: (i) => elements[i], rank }[kind];
    for (let i = 0; i < count; i++) if (test(valueOf(i))) hits[i] = 1;
  }

  markBad(hits) {
    for (const [id, { nan, inf }] of this.figures?.() ?? []) if (nan || inf) hits[id] = 1;
  }

  // The steps that mark what a condition finds.
  stepsOf(c, hits) {
    switch (c.kind) {
    case "word":
      return [this.markNames, this.markTypes, this.markShapes].map((mark) => () => mark.call(this, c.text, hits));
    case "name":
      return [() => this.markNames(c.text.toLowerCase(), hits)];
    case "type":
      return [() => this.markTypes(c.text, hits, c.text.includes("*"))];
    case "glob":
      return [() => this.markPattern(c, hits)];
    case "shape":
      return [() => this.markDims(c, hits)];
    case "bad":
      return [() => this.markBad(hits)];
    default:
      return [() => this.markNumbers(c, hits)];
    }
  }

  // Tensors that meet all conditions of a text; null without conditions.
  async search(text, isStale) {
    let hits = null;
    for (const condition of queryOf(text).conditions) {
      if (condition.problem) continue;
      const found = new Uint8Array(this.columns.count);
      for (const step of this.stepsOf(condition, found)) {
        step();
        await nextTask();
        if (isStale()) return null;
      }
      if (hits) for (let i = 0; i < found.length; i++) hits[i] &= found[i];
      else hits = found;
    }
    return hits;
  }

  // Return the ids of the tensors to show, in order; null: all in the order of the file, or a
  // newer call has begun.  module: a range [lo, hi) of tensors in the order of names, or null.
  async arrange(text, column, down, module) {
    const turn = ++this.turn;
    const isStale = () => turn !== this.turn;
    let hits = await this.search(text, isStale);
    if (isStale() || (!hits && !column && !module)) return null;
    if (module) hits = this.inside(module, hits);
    const all = column ? this.order(column) : identity(this.columns.count);
    const order = hits ? all.filter((i) => hits[i]) : all.slice();
    return down ? order.reverse() : order;
  }

  inside({ lo, hi }, hits) {
    const kept = new Uint8Array(this.columns.count);
    for (const i of this.order("name").subarray(lo, hi)) kept[i] = hits ? hits[i] : 1;
    return kept;
  }
}
