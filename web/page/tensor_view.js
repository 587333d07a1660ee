// The list of tensors, and beside it what is known about one of them.

import { byId, element, percentText, realText, shapeText, sizeText } from "./basics.js";
import { isCancelled } from "./client.js";
import { cut, nameText, plainText } from "./names.js";
import { PagedRows, shortName, TensorRows } from "./rows.js";
import { say, showFailure } from "./status.js";
import { Table } from "./table.js";
import { factsList, firstPictures, pictures } from "./tensor_pictures.js";
import { explain } from "./failure.js";
import { charsOf } from "./values.js";

const bytesText = (n) => (Number.isNaN(n) ? "–" : sizeText(n));
const countOf = (n) => n.toLocaleString("en");

export const TENSOR_COLUMNS = [
  { title: "Name", key: "name", width: [230, 5], text: (t) => shortName(t.name), value: true, isMarked: true },
  { title: "Type", key: "dtype", width: [72, 1], text: (t) => t.dtype, value: true },
  {
    title: "Shape",
    key: "elements",
    width: [130, 2],
    text: (t) => shapeText(t.shape),
    value: true,
  },
  {
    title: "Size",
    key: "bytes",
    chars: 9,
    number: true,
    text: (t) => bytesText(t.bytes),
    value: true,
  },
  {
    title: "Offset",
    key: "offset",
    chars: 14,
    number: true,
    value: true,
    text: (t) => (Number.isNaN(t.offset) ? "–" : countOf(t.offset)),
  },
];

export class TensorView {
  // reopen(): opens the file again.  showing(name): a tensor is shown.
  constructor(client, model, reopen, showing) {
    Object.assign(this, { client, model, reopen, showing, stop: null, values: null, part: undefined });
    this.rows = new TensorRows(client, model);
    this.table = new Table({
      into: byId("tensor-table"),
      label: "Tensors",
      columns: TENSOR_COLUMNS,
      source: this.rows,
      chosen: (t) => this.choose(t),
      opened: () => byId("detail").focus(),
    });
    this.chip = element("button", { type: "button", class: "chip", hidden: "" });
    this.chip.addEventListener("click", () => this.within(null));
    this.table.input.after(this.chip);
  }

  // The columns of all tensors have arrived.
  arrived() {
    const i = this.table.current;
    this.table.refresh();
    const wasKnown = i < this.model.first.count;
    if (i >= 0 && !wasKnown) this.choose(this.rows.at(i));
  }

  // Show only the tensors of a module { module, name }; null: all.
  within(found) {
    this.rows.module = found && found.module;
    this.chip.hidden = !found;
    this.chip.textContent = found ? `in ${shortName(found.name)} ✕` : "";
    this.chip.setAttribute(
      "aria-label",
      found ? `Only tensors in ${shortName(found.name)}; show all` : "",
    );
    return this.table.arrange();
  }

  ask(method, args, options) {
    return this.client.ask(method, { model: this.model.id, ...args }, options);
  }

  // Arrow keys pass over many tensors: read only when they rest.
  choose(t) {
    clearTimeout(this.later);
    if (this.stop) this.stop.abort();
    this.later = setTimeout(() => this.show(t), 60);
  }

  async chooseId(id) {
    if (await this.model.whole) this.choose(this.rows.tensor(id));
  }

  // A tensor by its name in the file; nothing happens if there is none.
  async chooseName(name) {
    if (!(await this.model.whole) || this.shownName === name) return;
    const id = await this.ask("find", { name });
    if (id !== null) this.choose(this.rows.tensor(id));
  }

  // Show the tensors that a text finds.
  search(text) {
    this.rows.module = null;
    this.chip.hidden = true;
    this.table.input.value = text;
    return this.table.search(text);
  }

  async show(t, { role, whole = false } = {}) {
    const stop = this.begin();
    if (!(await this.model.whole) || stop.signal.aborted) return;
    try {
      const facts = await this.ask("tensor", { tensor: t.id }, { signal: stop.signal });
      this.shownName = facts.name;
      this.showing(facts.name);
      const box = this.frame(t, facts, role);
      const result = await this.ask(
        "survey",
        { tensor: t.id, role, whole },
        {
          signal: stop.signal,
          onProgress: (p) => this.reading(box, p, stop),
        },
      );
      this.pictures(box, t, result, role);
      this.showValues(box, t, result);
      say(`${shortName(t.name)}, ${t.dtype} ${shapeText(t.shape)}`);
    } catch (e) {
      if (isCancelled(e)) return;
      byId("detail").append(
        element("p", { class: "fault" }, `${explain(e).title}. ${explain(e).text}`),
      );
      this.failed(e);
    }
  }

  failed(e) {
    const again = { title: "Open it again", act: this.reopen };
    showFailure(e, e.rule === "web/changed" ? [again] : [], cut(nameText(this.model.shown)));
  }

  // Stop reading.
  close() {
    clearTimeout(this.later);
    this.stop?.abort();
    this.values?.source.close();
  }

  begin() {
    if (this.stop) this.stop.abort();
    if (this.values) this.values.source.close();
    this.values = null;
    return (this.stop = new AbortController());
  }

  frame(t, facts, role) {
    const list = [
      ["Element type", t.dtype],
      ["Shape", `[${facts.dims.join(", ")}]`],
      [
        "Size",
        Number.isNaN(t.bytes)
          ? "not known"
          : t.bytes < 1024
            ? sizeText(t.bytes)
            : `${sizeText(t.bytes)} (${countOf(t.bytes)} bytes)`,
      ],
    ];
    if (facts.layout !== "dense") list.push(["Layout", plainText(facts.layout)]);
    if (facts.tiedTo !== t.id)
      list.push(["Same bytes as", shortName(this.rows.tensor(facts.tiedTo).name)]);
    if (t.shard) list.push(["File", nameText(this.model.shards[t.shard - 1]?.name)]);
    for (const p of facts.parts)
      list.push([
        facts.parts.length > 1 ? `Part ${plainText(p.role)}` : "Stored",
        `${sizeText(p.stored)} at byte ${countOf(p.offset)}` +
          (p.encoding === "raw" ? "" : `, ${p.encoding}`) +
          (p.digest ? `, ${plainText(p.digest)}` : ""),
      ]);
    for (const [key, value] of facts.attributes) list.push([plainText(key), plainText(value)]);
    const name = element("h2", { class: "name code" }, t.name);
    const box = element(
      "div",
      { class: "pictures" },
      element("p", { class: "quiet" }, "Reading values…"),
    );
    byId("detail").replaceChildren(name, factsList(list), ...this.partChoice(t, facts, role), box);
    return box;
  }

  // Tensors in several parts: choose the one that is shown.
  partChoice(t, facts, role) {
    if (facts.parts.length < 2) return [];
    const select = element(
      "select",
      { id: "part-choice" },
      ...facts.parts.map((p) => element("option", { value: p.role }, plainText(p.role))),
    );
    select.value =
      role || (facts.parts.some((p) => p.role === "data") ? "data" : facts.parts[0].role);
    select.addEventListener("change", () => this.show(t, { role: select.value }));
    return [
      element("p", { class: "row" }, element("label", { for: "part-choice" }, "Part"), select),
    ];
  }

  reading(box, { bytes, total, first }, stop) {
    if (this.stop !== stop || !box.isConnected) return;
    if (first) box.replaceChildren(...firstPictures("", first));
    else box.firstChild.textContent = `Reading values: ${percentText(bytes, total)}`;
  }

  pictures(box, t, result, role) {
    const whole = () => this.show(t, { role, whole: true });
    box.replaceChildren(...pictures(shortName(t.name), result, whole));
  }

  // ---- single values

  showValues(box, t, { part, figures }) {
    if (!part.count) return;
    const ACROSS = part.decodes ? 4 : 12;
    const perLine = Math.ceil(part.columns / ACROSS);
    const lines = Math.ceil(part.count / part.columns) * perLine;
    const startOf = (line) => Math.floor(line / perLine) * part.columns + (line % perLine) * ACROSS;
    const endOf = (line) =>
      Math.min(startOf(line) + ACROSS, part.count, (Math.floor(line / perLine) + 1) * part.columns);
    const source = new PagedRows({
      length: lines,
      pageRows: 256,
      failed: (e) => this.failed(e),
      load: async (from, to, signal) => {
        const first = startOf(from);
        const texts = await this.ask(
          "values",
          { tensor: t.id, role: part.role, from: first, to: endOf(to - 1) },
          { signal },
        );
        return Array.from({ length: to - from }, (_, k) => ({
          start: startOf(from + k),
          texts: texts.slice(startOf(from + k) - first, endOf(from + k) - first),
        }));
      },
      changed: () => this.values && this.values.refresh(),
    });
    this.valueTable(box, part, source, { across: ACROSS, perLine, chars: charsOf(part, figures) });
  }

  valueTable(box, part, source, { across, perLine, chars }) {
    const index = (r) => this.indexText(part, r.start);
    const columns = [
      { title: "Index", chars: index({ start: part.count - 1 }).length, text: index },
      ...Array.from({ length: across }, (_, k) => ({
        title: `+${k}`,
        number: true,
        chars,
        text: (r) => r.texts[k] ?? "",
      })),
    ];
    const into = element("div", { class: "value-table" });
    box.append(
      element("h3", {}, part.decodes ? "Single values" : "Bytes"),
      this.goTo(part, across, perLine),
      into,
    );
    this.values = new Table({
      into,
      label: "Single values",
      columns,
      source,
      searchable: false,
    });
  }

  indexText(part, start) {
    if (!part.decodes || part.shape.length < 2)
      return String(start / (part.decodes ? part.perElement : 1));
    let rest = Math.floor(start / part.perElement);
    const index = part.shape.map(() => 0);
    for (let d = part.shape.length - 1; d >= 0; d--) {
      index[d] = rest % part.shape[d];
      rest = Math.floor(rest / part.shape[d]);
    }
    return index.join(", ");
  }

  // A field that scrolls to an index: "3, 120", or the number of an element.
  goTo(part, across, perLine) {
    const input = element("input", {
      id: "go-to",
      inputmode: "numeric",
      placeholder:
        "e.g. " + (part.decodes ? part.shape.map((n) => Math.floor(n / 2)).join(", ") : "0"),
      autocomplete: "off",
    });
    const go = () => {
      const numbers = input.value
        .split(/[\s,]+/)
        .filter(Boolean)
        .map(Number);
      const isIndex = part.decodes && numbers.length === part.shape.length && numbers.length > 1;
      const flat = isIndex ? numbers.reduce((sum, n, d) => sum * part.shape[d] + n, 0) : numbers[0];
      const at = flat * (part.decodes ? part.perElement : 1);
      const known = numbers.every(
        (n, d) => Number.isInteger(n) && n >= 0 && (!isIndex || n < part.shape[d]),
      );
      input.setAttribute("aria-invalid", String(!known || !(at < part.count)));
      if (known && at < part.count)
        this.values.select(
          Math.floor(at / part.columns) * perLine + Math.floor((at % part.columns) / across),
        );
    };
    input.addEventListener("change", go);
    return element("p", { class: "row" }, element("label", { for: "go-to" }, "Go to index"), input);
  }
}
