// A table of any length: only the visible rows exist in the document.

const ROW = 27; // pixels: a cell of 26 and its border
const LONGEST = 8e6; // pixels; browsers limit the height of an element

// Order values of a column; what is missing comes last.
function compareValues(a, b) {
  const gone = (v) => v === null || v === undefined || Number.isNaN(v);
  if (gone(a) || gone(b)) return gone(a) - gone(b);
  if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
  return typeof a === "number" ? -1 : 1;
}

class Table {
  // columns: { title, number, text(row), value(row), draw(row) }; `draw` returns a node instead of
  // text, and columns without `value` cannot be sorted.  words(row): the text that is searched.
  constructor({ into, label, columns, rows, words, chosen }) {
    Object.assign(this, { columns, rows, words, chosen, shown: rows, current: -1, order: null });
    this.body = element("tbody");
    this.heads = columns.map((c, i) => this.head(c, i));
    this.table = element("table", { role: "grid", "aria-label": label },
                         element("thead", {}, element("tr", {}, ...this.heads)), this.body);
    this.view = element("div", { class: "grid", tabindex: "0" }, this.table);
    this.view.addEventListener("scroll", () => this.later());
    this.view.addEventListener("keydown", (e) => this.key(e));
    this.body.addEventListener("click", (e) => this.click(e));
    new ResizeObserver(() => this.later()).observe(this.view);
    into.append(this.tools(label), this.view);
    this.found();
  }

  head(column, i) {
    const th = element("th", { scope: "col", class: column.number ? "number" : "" });
    const button = element("button", { type: "button" }, column.title);
    if (column.value) button.addEventListener("click", () => this.sort(i));
    else button.disabled = true;
    th.append(button);
    return th;
  }

  tools(label) {
    const input = element("input", { type: "search", placeholder: "Search",
                                     "aria-label": "Search in " + label });
    this.count = element("span", { class: "quiet", role: "status" });
    input.addEventListener("input", () => this.search(input.value));
    return element("div", { class: "tools" }, input, this.count);
  }

  // Show the rows that have all words of the text.
  search(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (row) => {
      const all = this.words(row).toLowerCase();
      return words.every((w) => all.includes(w));
    };
    this.shown = words.length ? this.rows.filter(fits) : this.rows.slice();
    this.arrange();
  }

  // Sort by a column; a second time in the other direction.
  sort(i) {
    const down = this.order && this.order.i === i && !this.order.down;
    this.order = { i, down };
    this.heads.forEach((th, k) => {
      if (k === i) th.setAttribute("aria-sort", down ? "descending" : "ascending");
      else th.removeAttribute("aria-sort");
    });
    this.shown = this.shown.slice();
    this.arrange();
  }

  arrange() {
    if (this.order) {
      const { i, down } = this.order;
      const value = this.columns[i].value;
      const sign = down ? -1 : 1;
      this.shown.sort((a, b) => sign * compareValues(value(a), value(b)));
    }
    this.found();
  }

  found() {
    const all = this.rows.length;
    this.count.textContent = this.shown.length === all
      ? `${all.toLocaleString("en")} rows`
      : `${this.shown.length.toLocaleString("en")} of ${all.toLocaleString("en")} rows`;
    this.table.setAttribute("aria-rowcount", this.shown.length + 1);
    this.current = -1;
    this.view.scrollTop = 0;
    this.paint();
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.paint();
    });
  }

  // Rows have a pixel height of their own, unless all rows together would be too high.
  rowHeight() {
    return Math.min(ROW, LONGEST / Math.max(1, this.shown.length));
  }

  paint() {
    const visible = Math.ceil((this.view.clientHeight || 500) / ROW) + 2;
    const height = this.rowHeight();
    const last = Math.max(0, this.shown.length - visible + 2);
    const first = Math.max(0, Math.min(last, Math.floor(this.view.scrollTop / height) - 1));
    const end = Math.min(this.shown.length, first + visible + 1);
    const below = this.shown.length * height - first * height - (end - first) * ROW;
    this.body.replaceChildren(this.space(first * height),
                              ...this.shown.slice(first, end).map((r, k) => this.row(r, first + k)),
                              this.space(Math.max(0, below)));
  }

  space(height) {
    const cell = element("td", { colspan: this.columns.length });
    cell.style.height = height + "px";
    const row = element("tr", { class: "space", "aria-hidden": "true" }, cell);
    row.hidden = height <= 0;
    return row;
  }

  row(row, i) {
    const cells = this.columns.map((c) => {
      const td = element("td", { class: c.number ? "number" : "" });
      if (c.draw) {
        td.append(c.draw(row));
      } else {
        td.textContent = c.text(row);
        td.title = td.textContent;
      }
      return td;
    });
    return element("tr", { "aria-rowindex": i + 2, "aria-selected": i === this.current,
                           "data-row": i }, ...cells);
  }

  click(event) {
    const row = event.target.closest("tr[data-row]");
    if (row) this.select(Number(row.dataset.row));
  }

  key(event) {
    if (event.target !== this.view) return;
    const page = Math.max(1, Math.floor(this.view.clientHeight / ROW) - 2);
    const to = { ArrowDown: this.current + 1, ArrowUp: this.current - 1, Home: 0,
                 PageDown: this.current + page, PageUp: this.current - page,
                 End: this.shown.length - 1 }[event.key];
    if (to === undefined || !this.shown.length) return;
    event.preventDefault();
    this.select(Math.max(0, Math.min(this.shown.length - 1, to)));
  }

  select(i) {
    const height = this.rowHeight();
    const top = i * height;
    const room = this.view.clientHeight - 3 * ROW;
    this.current = i;
    if (top < this.view.scrollTop) this.view.scrollTop = top;
    else if (top > this.view.scrollTop + room) this.view.scrollTop = top - room;
    this.paint();
    if (this.chosen) this.chosen(this.shown[i]);
  }
}
