// A table of any length: only the visible rows exist in the document, and they are used again when
// the table is scrolled.

import { element } from "./basics.js";

const ROW = 28; // pixels: the height of a row in views.css
const HIGH_ROW = 56; // the same of rows with two lines, in narrow windows
const NARROW = "(max-width: 30rem)";
const FIRST = 10; // rows that are painted first
const LONGEST = 8e6; // pixels; browsers limit the height of an element
let tables = 0;

// A text as nodes, in which the first place of each of the words is marked.
function marked(text, words) {
  const lower = text.toLowerCase();
  const found = words.map((w) => [lower.indexOf(w), w.length]).filter(([at, length]) => at >= 0 && length)
    .sort(([a], [b]) => a - b);
  const nodes = [];
  let end = 0;
  for (const [at, length] of found) {
    if (at < end) continue;
    nodes.push(text.slice(end, at), element("mark", {}, text.slice(at, at + length)));
    end = at + length;
  }
  return [...nodes, text.slice(end)];
}

export class Table {
  // columns: { title, number, width: [least pixels, share], chars, text(row), value(row), draw(row) };
  // `chars`: texts of at most as many digits are never cut.  `draw` returns a node instead of text, and
  // columns without `value` cannot be sorted.
  // source: { total, length, at(i), arrange(text, column, down) }.  at() returns undefined while a
  // row is not known yet: call refresh() when it is.  arrange() may return a promise; false means
  // that the rows cannot be arranged.
  // Columns with `isMarked` show the words of source.marks; source.problem: why a text is not
  // understood; source.note: what a search has not seen.
  // chosen(row, i): a row was selected.  opened(row, i): Enter or a double click.
  // narrow(row): the second line of a row in narrow windows, which have one column.
  // role, describe(row) and keys(event, row, i) make a tree of the table: describe() returns further
  // attributes of a row, and keys() true if it has handled a key.
  constructor({ into, label, columns, source, searchable = true, ...rest }) {
    Object.assign(this, { label, columns, source, role: "grid" }, rest);
    Object.assign(this, { id: "table-" + ++tables, text: "", order: null, current: -1, turn: 0,
                          top: 0, native: 0, lines: [], version: 0 });
    this.row = ROW;
    this.heads = columns.map((c, i) => this.head(c, i));
    this.body = element("tbody", { role: "rowgroup" });
    this.table = element("table", { role: "presentation" },
                         element("thead", { role: "rowgroup" },
                                 element("tr", { role: "row", "aria-rowindex": 1 }, ...this.heads)),
                         this.body);
    this.view = element("div", { class: "grid", tabindex: "0", role: this.role,
                                 "aria-label": label, "aria-colcount": columns.length },
                        this.table);
    this.widths();
    this.fold();
    this.listen();
    into.append(...(searchable ? [this.tools()] : []), this.view);
    this.onPaper();
    this.found();
  }

  widths() {
    const wide = this.columns.map((c) => {
      const [least, share] = c.width || [c.number ? 90 : 120, 1];
      return [c.chars ? `calc(${Math.max(c.chars, c.title.length + (c.value ? 2 : 0))}ch + var(--cell))` : `${least}px`, share];
    });
    this.view.style.setProperty("--columns",
                                wide.map(([least, share]) => `minmax(${least}, ${share}fr)`).join(" "));
    this.table.style.minWidth = `calc(${wide.map(([least]) => least).join(" + ")})`;
  }

  // Narrow windows have one column, whose rows have two lines.
  fold() {
    if (!this.narrow) return;
    const query = matchMedia(NARROW);
    const set = () => {
      this.isNarrow = query.matches;
      this.row = this.isNarrow ? HIGH_ROW : ROW;
      this.view.classList.toggle("narrow", this.isNarrow);
      this.view.setAttribute("aria-colcount", this.isNarrow ? 1 : this.columns.length);
      this.lines.forEach((line) => line.row.remove());
      this.lines = [];
      this.high = undefined;
    };
    query.addEventListener("change", () => {
      set();
      this.counted();
      this.moveTo(Math.max(0, this.current) * this.row);
    });
    set();
  }

  listen() {
    this.view.addEventListener("scroll", () => this.later());
    this.view.addEventListener("scrollend", () => this.rested());
    this.view.addEventListener("keydown", (e) => this.key(e));
    this.body.addEventListener("click", (e) => this.click(e));
    this.body.addEventListener("dblclick", () => this.open());
    this.body.addEventListener("pointerover", (e) => {
      const cell = e.target.closest("td");
      if (cell) cell.title = cell.textContent; // cells may be too narrow
    });
    new ResizeObserver(() => {
      this.high = undefined;
      this.later();
    }).observe(this.view);
  }

  // On paper nothing scrolls: a plain table with all rows, at most ON_PAPER, stands for the grid.
  onPaper() {
    const ON_PAPER = 3000;
    let paper = null;
    addEventListener("beforeprint", () => {
      if (paper || !this.view.isConnected || !this.view.offsetParent) return;
      const rows = Array.from({ length: Math.min(ON_PAPER, this.source.length) }, (_, i) => this.source.at(i))
        .filter((row) => row !== undefined);
      const cell = (c, row) => element("td", { class: c.number ? "number" : "" },
                                       c.draw ? c.draw(row) : String(c.text(row)));
      const head = this.columns.map((c) => element("th", { class: c.number ? "number" : "" }, c.title));
      const rest = this.source.length - rows.length;
      paper = element("div", { class: "paper", "aria-hidden": "true" },
                      element("table", {}, element("thead", {}, element("tr", {}, ...head)),
                              element("tbody", {}, ...rows.map((row) =>
                                element("tr", {}, ...this.columns.map((c) => cell(c, row)))))),
                      rest ? element("p", {}, `${rest.toLocaleString("en")} further rows are not printed.`) : "");
      this.view.after(paper);
    });
    addEventListener("afterprint", () => {
      paper?.remove();
      paper = null;
    });
  }

  head(column, i) {
    const th = element("th", { scope: "col", role: "columnheader",
                               class: column.number ? "number" : "" });
    const button = element("button", { type: "button" }, column.title);
    if (column.value) button.addEventListener("click", () => this.sort(i));
    th.append(column.value ? button : element("span", {}, column.title));
    return th;
  }

  tools() {
    this.input = element("input", { type: "search", placeholder: "Search", spellcheck: "false",
                                    autocomplete: "off", "aria-label": "Search in " + this.label });
    this.count = element("span", { class: "quiet", role: "status" });
    this.input.addEventListener("input", () => this.search(this.input.value));
    return element("div", { class: "tools" }, this.input, this.count);
  }

  // ---- order

  // Show the rows that have all words of the text.
  search(text) {
    this.text = text;
    return this.arrange();
  }

  // Sort by a column; a second time in the other direction, a third time not at all.
  sort(i) {
    const same = this.order && this.order.i === i;
    this.ordered(same && this.order.down ? null : { i, down: Boolean(same) });
    return this.arrange();
  }

  ordered(order) {
    this.order = order;
    this.heads.forEach((th, k) => {
      const isSorted = order && k === order.i;
      if (isSorted) th.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      else th.removeAttribute("aria-sort");
    });
  }

  async arrange() {
    const turn = ++this.turn;
    const { i, down } = this.order || {};
    this.view.setAttribute("aria-busy", "true");
    const isArranged = await this.source.arrange(this.text, this.columns[i], down);
    if (turn !== this.turn) return;
    if (isArranged === false) this.ordered(null);
    this.found();
    this.arranged?.();
  }

  // Begin at the top of the rows that the source has now.
  found() {
    const all = this.source.total;
    const shown = this.source.length;
    this.view.removeAttribute("aria-busy");
    if (this.count)
      this.count.textContent = shown === all
        ? `${all.toLocaleString("en")} ${all === 1 ? "row" : "rows"}`
        : `${shown.toLocaleString("en")} of ${all.toLocaleString("en")} rows`;
    const { problem, note } = this.source;
    if (note) this.count.textContent += `, ${note}`;
    if (this.input) this.input.setAttribute("aria-invalid", String(Boolean(problem)));
    if (problem) this.count.textContent = problem;
    this.current = -1;
    this.version++;
    this.counted();
    if (this.lines.length) this.moveTo(0);
    else this.paint(FIRST * this.row); // the others come when the page has been laid out
  }

  // Tell screen readers the number of rows, and give the table their height.
  counted() {
    const shown = this.source.length;
    this.view.setAttribute("aria-rowcount", shown + 1);
    this.table.style.height = `calc(var(--head) + ${Math.min(shown * this.row, LONGEST)}px)`;
  }

  // The number of rows has changed.
  resized() {
    this.counted();
    this.refresh();
  }

  // ---- scrolling: `top` is the offset in pixels of all rows, `native` the element's scrollTop

  // Whether all rows together are higher than an element may be.
  scaled() { return this.source.length * this.row > LONGEST; }
  // The height for rows.  Asking for it may cost a layout of the page: once for each size.
  bodyHeight() {
    this.high ??= (this.view.clientHeight || 500) - (this.heads[0].offsetHeight || this.row);
    return Math.max(this.row, this.high);
  }
  last() { return Math.max(0, this.source.length * this.row - this.bodyHeight()); }
  ratio() {
    return this.scaled() ? this.last() / Math.max(1, LONGEST - this.bodyHeight()) : 1;
  }

  // A small step moves by as many pixels; a jump of the scroll bar moves in proportion.
  scrolled() {
    const at = this.view.scrollTop;
    const step = at - this.native;
    const small = Math.abs(step) < this.view.clientHeight;
    this.native = at;
    if (!this.scaled()) {
      this.top = at;
      return;
    }
    this.top = Math.max(0, Math.min(this.last(), small ? this.top + step : at * this.ratio()));
    const close = 2 * this.view.clientHeight;
    if (small && (at < close || at > LONGEST - 2 * close)) this.align();
  }

  // Put the scroll bar where the rows are.
  align() {
    const at = Math.round(this.top / this.ratio());
    if (Math.abs(at - this.view.scrollTop) >= 1) this.view.scrollTop = at;
    this.native = this.view.scrollTop;
  }

  // The event may come before the last step was drawn.
  rested() {
    if (!this.scaled()) return;
    this.scrolled();
    this.align();
    this.later();
  }

  moveTo(top) {
    this.top = Math.max(0, Math.min(this.last(), top));
    this.align();
    this.paint();
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.moved();
    });
  }

  // A hidden element forgets how far it was scrolled.
  moved() {
    const wasHidden = this.isHidden;
    this.isHidden = this.view.clientHeight === 0;
    if (this.isHidden) return;
    if (wasHidden) {
      this.moveTo(this.top);
    } else {
      this.scrolled();
      this.paint();
    }
  }

  // ---- rows

  // Draw all visible rows again.
  refresh() {
    this.version++;
    this.paint();
  }

  // Rows lie below each other from the first visible one; all of them are moved together.
  paint(height = this.bodyHeight()) {
    const first = Math.floor(this.top / this.row);
    const end = Math.min(this.source.length, Math.ceil((this.top + height) / this.row));
    const count = Math.max(0, end - first);
    while (this.lines.length < count) this.lines.push(this.line(this.lines.length));
    this.body.style.transform = `translateY(${first * this.row - this.top}px)`;
    if (this.source.wanted) this.source.wanted(first, end);
    this.lines.forEach((line, k) => {
      if (k >= count) line.row.remove();
      else this.fill(line, first + k);
    });
    this.marked();
  }

  line(k) {
    const cells = (this.isNarrow ? this.columns.slice(0, 1) : this.columns).map((c) => {
      const td = element("td", { role: "gridcell", class: c.number ? "number" : "" });
      td.append("");
      return td;
    });
    const row = element("tr", { role: "row" }, ...cells);
    row.style.top = k * this.row + "px";
    return { row, cells, i: -1, version: -1 };
  }

  fill(line, i) {
    if (!line.row.isConnected) this.body.append(line.row);
    if (line.i !== i || line.version !== this.version) {
      line.i = i;
      line.version = this.version;
      this.write(line, this.source.at(i));
    }
    const selected = String(i === this.current);
    if (line.row.getAttribute("aria-selected") !== selected)
      line.row.setAttribute("aria-selected", selected);
  }

  write({ row, cells, i }, content) {
    row.id = `${this.id}-${i}`;
    row.dataset.row = i;
    row.setAttribute("aria-rowindex", i + 2);
    if (content) row.removeAttribute("aria-busy");
    else row.setAttribute("aria-busy", "true");
    if (this.describe && content)
      for (const [key, value] of Object.entries(this.describe(content)))
        if (value === null) row.removeAttribute(key);
        else row.setAttribute(key, value);
    if (this.isNarrow) {
      this.writeLines(cells[0], content);
      return;
    }
    this.columns.forEach((c, k) => {
      if (!content) this.writeText(cells[k], "…");
      else if (c.draw) cells[k].replaceChildren(c.draw(content));
      else if (c.isMarked && this.source.marks?.length)
        cells[k].replaceChildren(...marked(String(c.text(content)), this.source.marks));
      else this.writeText(cells[k], String(c.text(content)));
    });
  }

  writeLines(cell, content) {
    const c = this.columns[0];
    if (content && c.draw) {
      cell.replaceChildren(c.draw(content), element("span", { class: "quiet" }, this.narrow(content)));
      return;
    }
    const text = content ? String(c.text(content)) : "…";
    const first = content && c.isMarked && this.source.marks?.length ? marked(text, this.source.marks) : [text];
    cell.replaceChildren(element("span", {}, ...first), element("span", { class: "quiet" }, content ? this.narrow(content) : ""));
  }

  // A text node that changes costs less than a new one.
  writeText(cell, text) {
    if (cell.firstChild?.nodeType !== Node.TEXT_NODE || cell.firstChild !== cell.lastChild) cell.replaceChildren(text);
    else if (cell.firstChild.data !== text) cell.firstChild.data = text;
  }

  // Tell screen readers which row is current.
  marked() {
    const line = this.lines.find((x) => x.i === this.current && x.row.isConnected);
    if (line) this.view.setAttribute("aria-activedescendant", line.row.id);
    else this.view.removeAttribute("aria-activedescendant");
  }

  // ---- choosing a row

  click(event) {
    const row = event.target.closest("tr[data-row]");
    if (row) this.select(Number(row.dataset.row));
  }

  key(event) {
    if (event.target !== this.view || event.ctrlKey || event.metaKey || event.altKey) return;
    const row = this.current < 0 ? undefined : this.source.at(this.current);
    if (row !== undefined && this.keys && this.keys(event, row, this.current)) {
      event.preventDefault();
      return;
    }
    const page = Math.max(1, Math.floor(this.bodyHeight() / this.row) - 1);
    const to = { ArrowDown: this.current + 1, ArrowUp: this.current - 1, Home: 0,
                 PageDown: this.current + page, PageUp: this.current - page,
                 End: this.source.length - 1 }[event.key];
    if (event.key === "Enter") this.open();
    if (to === undefined || !this.source.length) return;
    event.preventDefault();
    this.select(Math.max(0, Math.min(this.source.length - 1, to)));
  }

  select(i) {
    const below = (i + 1) * this.row - this.bodyHeight();
    this.current = i;
    this.moveTo(Math.max(below, Math.min(this.top, i * this.row)));
    const row = this.source.at(i);
    if (this.chosen && row !== undefined) this.chosen(row, i);
  }

  open() {
    const row = this.current < 0 ? undefined : this.source.at(this.current);
    if (row !== undefined && this.opened) this.opened(row, this.current);
  }
}
