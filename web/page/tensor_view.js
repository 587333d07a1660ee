// The list of tensors, and beside it what is known about one of them.

import { byId, element, percentText, realText, shapeText, sizeText } from "./basics.js";
import { isCancelled } from "./client.js";
import { breakable, cut, nameText, plainText } from "./names.js";
import { shortName, TensorRows } from "./rows.js";
import { sheetHead } from "./sheet.js";
import { say, showFailure } from "./status.js";
import { Table } from "./table.js";
import { factsList, firstPictures, pictures } from "./tensor_pictures.js";
import { explain } from "./failure.js";
import { listActions, tensorActions } from "./tensor_actions.js";
import { ValueTable } from "./value_table.js";

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

// Decoded tensors lie nowhere: the scheme takes the place of the offset.
const SCHEME = { title: "Scheme", width: [90, 1], text: (t) => t.scheme ?? "–" };
const columnsFor = ({ schemes }) => (schemes?.labels.length ? [...TENSOR_COLUMNS.slice(0, 2), SCHEME, ...TENSOR_COLUMNS.slice(2, 4)] : TENSOR_COLUMNS);

export class TensorView {
  // showing(name): a tensor is shown.
  constructor(client, model, showing) {
    Object.assign(this, { client, model, showing, stop: null, values: null, part: undefined });
    this.rows = new TensorRows(client, model);
    this.table = new Table({
      into: byId("tensor-table"),
      label: "Tensors",
      columns: columnsFor(model),
      source: this.rows,
      chosen: (t) => this.choose(t),
      opened: () => byId("detail").focus(),
      narrow: (t) => `${t.dtype} ${shapeText(t.shape)}, ${bytesText(t.bytes)}${t.scheme ? `, ${t.scheme}` : ""}`,
    });
    this.chip = element("button", { type: "button", class: "chip", hidden: "" });
    this.chip.addEventListener("click", () => this.within(null));
    this.table.input.after(this.chip);
    this.table.input.placeholder = "Search: *.weight, type:f16, size>1M";
    this.actions = listActions({
      total: model.count,
      base: model.shown,
      commands: model.commands,
      ask: (method, args, options) => this.ask(method, args, options),
      selection: () => ({ ids: this.rows.ids, text: this.table.text, isModule: Boolean(this.rows.module), module: this.rows.module && this.globModule() }),
    });
    byId("tensor-table").append(this.actions.node);
    this.table.arranged = () => this.actions.show();
  }

  // The name of the module as the command reads it; null where its words are not joined by points.
  globModule() {
    const { length } = this.moduleName;
    return this.rows.at(0)?.name.startsWith(this.moduleName) && this.rows.at(0).name[length] === "." ? this.moduleName : null;
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
    this.moduleName = found && found.name;
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
      const ask = (method, args, options) => this.ask(method, args, options);
      box.append(tensorActions({ t, facts, figures: result.figures, ask, commands: this.model.commands }));
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
    showFailure(e, [], cut(nameText(this.model.shown)));
  }

  // Stop reading.
  close() {
    clearTimeout(this.later);
    this.stop?.abort();
    this.values?.close();
  }

  begin() {
    if (this.stop) this.stop.abort();
    this.values?.close();
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
    if (facts.scheme) list.push(["Decoded from", plainText(facts.scheme)]);
    else if (t.shard) list.push(["File", nameText(this.model.shards[t.shard - 1]?.name)]);
    for (const p of facts.scheme ? [] : facts.parts)
      list.push([
        facts.parts.length > 1 ? `Part ${plainText(p.role)}` : "Stored",
        `${sizeText(p.stored)} at byte ${countOf(p.offset)}` +
          (p.encoding === "raw" ? "" : `, ${p.encoding}`) +
          (p.digest ? `, ${plainText(p.digest)}` : ""),
      ]);
    for (const [key, value] of facts.attributes) list.push([plainText(key), plainText(value)]);
    const name = element("h2", { class: "name code" }, ...breakable(t.name));
    const box = element(
      "div",
      { class: "pictures" },
      element("p", { class: "quiet" }, "Reading values…"),
    );
    byId("detail").replaceChildren(sheetHead(byId("detail"), this.table.view), name, factsList(list), ...this.partChoice(t, facts, role), box);
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
    const readAll = () => this.show(t, { role, whole: true });
    const slice = (place) => this.ask("slice", { tensor: t.id, role: result.part.role, ...place }, { signal: this.stop.signal });
    box.replaceChildren(...pictures(shortName(t.name), result, { readAll, slice }));
  }

  showValues(box, t, { part, figures }) {
    if (!part.count) return;
    this.values = new ValueTable({
      part,
      figures,
      failed: (e) => this.failed(e),
      load: (from, to, signal) => this.ask("values", { tensor: t.id, role: part.role, from, to }, { signal }),
    });
    box.append(this.values.node);
  }
}
