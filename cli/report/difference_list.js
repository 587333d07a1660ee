// The differences between two models: a table of tensors with the kinds of differences to choose from,
// the same by module, and files of it.

import { element, REAL_CHARS, realText } from "./basics.js";
import { csvOf, jsonOf, kindsOf, modulesOf } from "./differences.js";
import { ListRows } from "./list_rows.js";
import { cut, nameText } from "./names.js";
import { Table } from "./table.js";

const count = (n) => n.toLocaleString("en");
const shortName = (name) => cut(name);

const button = (title, act, attributes = {}) => {
  const made = element("button", { type: "button", ...attributes }, title);
  made.addEventListener("click", act);
  return made;
};

const number = (title, key, text = realText) => ({
  title,
  number: true,
  chars: REAL_CHARS,
  value: (r) => r[key],
  text: (r) => text(r[key]),
});
const counted = (n) => (typeof n === "number" ? count(n) : "–");

export class DifferenceList {
  // rows: those that sorted() of differences.js has seen.  names: { a, b } and summary: what files of the
  // differences say.  chosen(row): a row was selected; opened(): Enter.  save(name, parts, type): offers a file.
  constructor({ into, rows, names, summary, chosen, opened, save }) {
    Object.assign(this, { rows, chosen, opened, kind: null, module: null });
    this.chips = element("div", { class: "chips", role: "group", "aria-label": "Kinds of differences" });
    this.table = element("div", { class: "table-box" });
    this.modules = element("div", { class: "table-box", hidden: "" });
    const out = (title, name, text) =>
      button(title, () => save(name, [text(this.shown())], "text/plain"), { class: "small" });
    into.append(this.chips, this.table, this.modules,
                element("p", { class: "row save" }, out("Save as CSV", "differences.csv", csvOf),
                        out("Save as JSON", "differences.json", (list) => jsonOf(list, names, summary))));
    this.moduleTable(modulesOf(rows));
    this.show();
  }

  // The rows of the kind and the module that are chosen.
  shown() {
    return this.rows.filter((r) => (!this.kind || r.kind === this.kind) && (!this.module || r.module === this.module));
  }

  show() {
    const byModule = this.kind === "modules";
    this.modules.hidden = !byModule;
    this.table.hidden = byModule;
    this.drawChips();
    if (byModule) return;
    this.table.replaceChildren();
    this.tensorTable(this.shown());
  }

  drawChips() {
    const chip = (kind, title, n) => {
      const made = button(n === null ? title : `${title} ${count(n)}`, () => {
        this.kind = kind;
        this.show();
        this.chips.querySelector('[aria-pressed="true"]').focus();
      }, { class: `kind ${kind ?? ""}`, "aria-pressed": String(this.kind === kind) });
      return made;
    };
    const within = this.module
      ? [button(`in ${shortName(nameText(this.module))} ✕`, () => {
          this.module = null;
          this.show();
        }, { class: "chip", "aria-label": `Only differences in ${this.module}; show all` })]
      : [];
    this.chips.replaceChildren(chip(null, "All", this.rows.length), ...kindsOf(this.rows).map(([kind, title, n]) => chip(kind, title, n)),
                               chip("modules", "By module", null), ...within);
  }

  tensorTable(rows) {
    const text = (v) => (v === null ? "–" : shortName(nameText(v)));
    const hasValues = rows.some((r) => typeof r.differing === "number");
    const columns = [
      { title: "Tensor", width: [200, 5], text: (r) => text(r.name), value: (r) => r.name, isMarked: true },
      { title: "Change", width: [86, 1], text: (r) => r.what, value: (r) => r.what },
      { title: "A", width: [128, 3], text: (r) => text(r.a), value: (r) => r.a },
      { title: "B", width: [128, 3], text: (r) => text(r.b), value: (r) => r.b },
      ...(hasValues ? [number("Differing", "differing", counted), number("Greatest", "max"), number("Cosine", "cosine")] : []),
    ];
    new Table({
      into: this.table,
      label: "Differences",
      columns,
      source: new ListRows(rows, (r) => `${r.name} ${r.what} ${r.a} ${r.b}`),
      chosen: (r) => this.chosen(r),
      opened: () => this.opened?.(),
      narrow: (r) => `${r.what}${r.max === undefined || r.max === null ? "" : `, greatest ${realText(r.max)}`}`,
    });
  }

  moduleTable(modules) {
    const hint = element("p", { class: "quiet" }, "Choose a module to list its differences.");
    const n = (title, key) => ({ title, number: true, width: [84, 1], value: (m) => m[key], text: (m) => (m[key] ? count(m[key]) : "–") });
    new Table({
      into: this.modules,
      label: "Differences by module",
      columns: [
        { title: "Module", width: [190, 4], text: (m) => shortName(nameText(m.name)), value: (m) => m.name },
        n("Changed", "changed"), n("Renamed", "renamed"), n("Only in A", "removed"), n("Only in B", "added"), number("Greatest", "max"),
      ],
      source: new ListRows(modules, (m) => m.name),
      opened: (m) => this.within(m),
      chosen: (m) => (hint.replaceChildren(button(`List the differences in ${shortName(nameText(m.name))}`, () => this.within(m), { class: "small" }))),
      narrow: (m) => `${count(m.changed)} changed, ${count(m.removed)} only in A, ${count(m.added)} only in B`,
    });
    this.modules.append(hint);
  }

  within(m) {
    Object.assign(this, { module: m.name, kind: null });
    this.show();
  }
}
