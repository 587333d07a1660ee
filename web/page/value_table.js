// The single values of a tensor, and a field that goes to an index.

import { element } from "./basics.js";
import { copying } from "./copying.js";
import { PagedRows } from "./rows.js";
import { Table } from "./table.js";
import { charsOf } from "./values.js";

export class ValueTable {
  // load(from, to, signal): a promise of the texts of values.
  constructor({ part, figures, load, failed }) {
    Object.assign(this, { part, load });
    const most = (part.decodes ? 4 : 8) / (innerWidth < 480 ? 2 : 1); // narrow windows have room for half
    this.across = Math.max(1, Math.min(most, part.columns));
    this.perLine = Math.ceil(part.columns / this.across);
    const lines = Math.ceil(part.count / part.columns) * this.perLine;
    this.source = new PagedRows({
      length: lines,
      pageRows: 256,
      failed,
      load: (from, to, signal) => this.rows(from, to, signal),
      changed: () => this.table?.refresh(),
    });
    const into = element("div", { class: "value-table" });
    this.node = element("div", {}, element("h3", {}, part.decodes ? "Single values" : "Bytes"), this.goTo(), into);
    this.make(into, charsOf(part, figures));
  }

  startOf(line) {
    return Math.floor(line / this.perLine) * this.part.columns + (line % this.perLine) * this.across;
  }

  endOf(line) {
    const { count, columns } = this.part;
    return Math.min(this.startOf(line) + this.across, count, (Math.floor(line / this.perLine) + 1) * columns);
  }

  async rows(from, to, signal) {
    const first = this.startOf(from);
    const texts = await this.load(first, this.endOf(to - 1), signal);
    return Array.from({ length: to - from }, (_, k) => ({
      start: this.startOf(from + k),
      texts: texts.slice(this.startOf(from + k) - first, this.endOf(from + k) - first),
    }));
  }

  make(into, chars) {
    const index = (r) => this.indexText(r.start);
    const columns = [
      { title: "Index", chars: index({ start: this.part.count - 1 }).length, text: index },
      ...Array.from({ length: this.across }, (_, k) => ({
        title: `+${k}`,
        number: true,
        chars,
        text: (r) => r.texts[k] ?? "",
      })),
    ];
    this.table = new Table({ into, label: "Single values", columns, source: this.source, searchable: false });
  }

  indexText(start) {
    const { part } = this;
    if (!part.decodes || part.shape.length < 2) return String(start / (part.decodes ? part.perElement : 1));
    let rest = Math.floor(start / part.perElement);
    const index = part.shape.map(() => 0);
    for (let d = part.shape.length - 1; d >= 0; d--) {
      index[d] = rest % part.shape[d];
      rest = Math.floor(rest / part.shape[d]);
    }
    return index.join(", ");
  }

  // A field that scrolls to an index: "3, 120", or the number of an element.
  goTo() {
    const { part } = this;
    const input = element("input", {
      id: "go-to",
      inputmode: "numeric",
      placeholder: "e.g. " + (part.decodes ? part.shape.map((n) => Math.floor(n / 2)).join(", ") : "0"),
      autocomplete: "off",
    });
    const go = () => {
      const at = this.placeOf(input.value);
      input.setAttribute("aria-invalid", String(at === null));
      if (at !== null) this.table.select(Math.floor(at / part.columns) * this.perLine + Math.floor((at % part.columns) / this.across));
    };
    input.addEventListener("change", go);
    return element("p", { class: "row" }, element("label", { for: "go-to" }, "Go to index"), input, copying("Copy the values of the row", () => this.current()));
  }

  // The number of the value at an index, or null.
  placeOf(text) {
    const { part } = this;
    const numbers = text.split(/[\s,]+/).filter(Boolean).map(Number);
    const isIndex = part.decodes && numbers.length === part.shape.length && numbers.length > 1;
    const flat = isIndex ? numbers.reduce((sum, n, d) => sum * part.shape[d] + n, 0) : numbers[0];
    const at = flat * (part.decodes ? part.perElement : 1);
    const known = numbers.every((n, d) => Number.isInteger(n) && n >= 0 && (!isIndex || n < part.shape[d]));
    return known && at < part.count ? at : null;
  }

  // The values of the row that is selected, or of the first one.
  current() {
    return this.source.at(Math.max(0, this.table.current))?.texts.join(", ");
  }

  close() {
    this.source.close();
  }
}
