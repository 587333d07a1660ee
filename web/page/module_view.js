// The modules of a model: a tree with sums.

import { byId, countText, element, percentText, sizeText } from "./basics.js";
import { nameOfBytes } from "./names.js";
import { shortName } from "./rows.js";
import { Table } from "./table.js";

const nameOf = (bytes) => nameOfBytes(bytes, 0, bytes.length);

// Visible rows of the tree; children are asked for when a module is opened.
class TreeRows {
  constructor(pieces) {
    this.rows = pieces;
  }

  get total() {
    return this.rows.length;
  }
  get length() {
    return this.rows.length;
  }
  at(i) {
    return this.rows[i];
  }
  arrange() {}

  insert(i, pieces) {
    this.rows = [...this.rows.slice(0, i + 1), ...pieces, ...this.rows.slice(i + 1)];
  }

  endOf(i) {
    let end = i + 1;
    while (end < this.rows.length && this.rows[end].level > this.rows[i].level) end++;
    return end;
  }

  removeBelow(i) {
    this.rows = [...this.rows.slice(0, i + 1), ...this.rows.slice(this.endOf(i))];
  }

  parentOf(i) {
    const { level } = this.rows[i];
    let at = i;
    while (at >= 0 && this.rows[at].level >= level) at--;
    return at;
  }
}

export class ModuleView {
  // chosen({ module, name }): tensors of a module are wanted; tensor(id): a tensor is.
  constructor(client, model, { chosen, tensor }) {
    Object.assign(this, { client, model, chosen, tensor });
    this.show();
  }

  async show() {
    const { path, pieces, omitted } = await this.client.ask("modules", { model: this.model.id });
    const nameOfPiece = (p) => shortName(nameOf(p.nameBytes));
    const prefix = path.slice(1).map(nameOfPiece).join(".");
    this.tree(pieces.map((p) => ({ ...p, name: nameOfPiece(p) })), prefix, omitted);
  }

  tree(list, prefix, omitted) {
    const pieces = list.map((p) => ({
      ...p,
      level: 1,
      open: false,
      full: prefix ? `${prefix}.${p.name}` : p.name,
    }));
    const whole = pieces.reduce((sum, p) => sum + p.bytes, 0);
    const source = new TreeRows(pieces);
    const columns = [
      { title: "Module", width: [240, 4], draw: (p) => this.label(p) },
      {
        title: "Tensors",
        number: true,
        width: [84, 1],
        text: (p) => p.tensors.toLocaleString("en"),
      },
      {
        title: "Parameters",
        number: true,
        width: [104, 1],
        text: (p) => countText(p.elements),
      },
      { title: "Size", number: true, width: [92, 1], text: (p) => sizeText(p.bytes) },
      {
        title: "Share",
        number: true,
        width: [78, 1],
        text: (p) => percentText(p.bytes, whole),
      },
    ];
    byId("module-table").replaceChildren(
      ...(omitted
        ? [
            element(
              "p",
              { class: "warning" },
              `${omitted.toLocaleString("en")} tensors are in further modules, which are not listed.`,
            ),
          ]
        : []),
    );
    this.table = new Table({
      into: byId("module-table"),
      label: "Modules",
      role: "treegrid",
      columns,
      source,
      searchable: false,
      narrow: (p) => `${p.tensors.toLocaleString("en")} ${p.tensors === 1 ? "tensor" : "tensors"}, ${sizeText(p.bytes)}, ${percentText(p.bytes, whole)}`,
      describe: (p) => ({
        "aria-level": p.level,
        "aria-expanded": p.module ? String(p.open) : null,
      }),
      keys: (event, p, i) => this.key(event, p, i),
      opened: (p) => this.wanted(p),
      chosen: () => {},
    });
    this.table.body.addEventListener("click", (e) => {
      if (e.target.closest(".twist"))
        this.toggle(source.at(this.table.current), this.table.current);
    });
  }

  label(p) {
    const twist = element(
      "span",
      { class: "twist", "aria-hidden": "true" },
      p.module ? (p.open ? "▾" : "▸") : "",
    );
    const label = element("span", { class: "code" }, twist, p.name);
    label.style.paddingInlineStart = (p.level - 1) * 18 + "px";
    return label;
  }

  wanted(p) {
    if (p.tensor !== null) this.tensor(p.tensor);
    else this.chosen({ module: p.module, name: p.full });
  }

  key(event, p, i) {
    if (event.key === "ArrowRight" && p.module && !p.open) this.toggle(p, i);
    else if (event.key === "ArrowRight" && p.open) this.table.select(i + 1);
    else if (event.key === "ArrowLeft" && p.open) this.toggle(p, i);
    else if (event.key === "ArrowLeft" && p.level > 1)
      this.table.select(this.table.source.parentOf(i));
    else if (event.key === " " && p.module) this.toggle(p, i);
    else return false;
    return true;
  }

  async toggle(p, i) {
    if (!p || !p.module) return;
    const table = this.table;
    if (p.open) {
      table.source.removeBelow(i);
    } else {
      const { pieces } = await this.client.ask("modules", {
        model: this.model.id,
        module: p.module,
      });
      if (table.source.at(i) !== p || p.open) return;
      table.source.insert(
        i,
        pieces.map((child) => ({
          ...child,
          name: shortName(nameOf(child.nameBytes)),
          level: p.level + 1,
          open: false,
          full: `${p.full}.${shortName(nameOf(child.nameBytes))}`,
        })),
      );
    }
    p.open = !p.open;
    table.resized();
  }
}
