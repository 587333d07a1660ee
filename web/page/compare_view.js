// Two files side by side: this one is A.  The differences are on the left, the values of a tensor in both
// files on the right.

import { countText, element, REAL_CHARS, realText, sizeText } from "./basics.js";
import { isCancelled } from "./client.js";
import { copyButton, save } from "./copying.js";
import { csvOf, jsonOf, kindsOf, modulesOf } from "./differences.js";
import { ListRows } from "./list_rows.js";
import { nameText } from "./names.js";
import { PairView } from "./pair_view.js";
import { shortName } from "./rows.js";
import { say, showFailure, withProgress } from "./status.js";
import { Table } from "./table.js";

const count = (n) => n.toLocaleString("en");

function summaryText(s) {
  const parts = [`${count(s.equal)} equal`];
  for (const [key, text] of [
    ["differ", "differ"],
    ["renamed", "renamed"],
    ["only_in_a", "only in A"],
    ["only_in_b", "only in B"],
  ])
    if (s[key]) parts.push(`${count(s[key])} ${text}`);
  return `${count(s.tensors)} ${s.tensors === 1 ? "tensor" : "tensors"}: ${parts.join(", ")}.`;
}

const button = (title, act, attributes = {}) => {
  const made = element("button", { type: "button", ...attributes }, title);
  made.addEventListener("click", act);
  return made;
};

const number = (title, key) => ({
  title,
  number: true,
  chars: REAL_CHARS,
  value: (r) => r[key],
  text: (r) => realText(r[key]),
});

// Which schemes are decoded, and which are not.
function formText({ schemes }) {
  const list = (counts) => counts.map(([label]) => label).join(", ");
  const parts = [schemes?.counts.length && `decoded from ${list(schemes.counts)}`, schemes?.left.length && `${list(schemes.left)} not decoded`];
  return parts.filter(Boolean).map((part) => part + ", ").join("");
}

export class CompareView {
  // choose(): asks for the second file; tensor(id): shows a tensor of this file.  decode(): opens both files
  // decoded; again(decodes): opens the second one again.
  constructor(into, client, model, { choose, tensor, decode, again }) {
    Object.assign(this, { into, client, model, choose, tensor, decode, again, other: null });
    this.start();
  }

  start() {
    const file = button("Choose a second file", () => this.choose(), { class: "primary" });
    const form = element(
      "form",
      { class: "row address" },
      element("label", { for: "second-address" }, "Or give an address"),
      element("input", {
        type: "text",
        inputmode: "url",
        id: "second-address",
        required: "",
        spellcheck: "false",
        autocomplete: "off",
        placeholder: "https://example.org/other.gguf",
      }),
      element("button", { type: "submit" }, "Compare"),
    );
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      this.choose(form.querySelector("input").value);
    });
    this.into.replaceChildren(
      element(
        "div",
        { class: "start second" },
        element(
          "p",
          {},
          "Compare this file (A) with a second file (B): names, element types, shapes and values, across formats. A file dropped on this view becomes B; two files dropped at once are compared.",
        ),
        element("p", { class: "row" }, file),
        form,
      ),
    );
  }

  side(letter, m) {
    return element(
      "p",
      { class: "side" },
      element("strong", { class: `letter ${letter.toLowerCase()}` }, letter),
      element("span", { class: "name" }, shortName(nameText(m.shown))),
      element(
        "span",
        { class: "quiet" },
        `${m.format}, ${formText(m)}${count(m.count)} tensors, ` +
          `${countText(m.elements)} parameters, ${sizeText(m.total)}` + (m.missing.length || m.alone ? ", incomplete" : ""),
      ),
    );
  }

  // Says how quantised tensors are compared where the files differ in that.
  formHint(other) {
    const isStored = (m) => m.mayBeQuantised && !m.isDecoded;
    if (isStored(this.model) || isStored(other))
      return [element("p", { class: "row" }, element("span", { class: "quiet" }, "Quantised tensors are compared as they are stored."),
                      button("Compare decoded values", () => (isStored(this.model) ? this.decode() : this.again(true)), { class: "small" }))];
    if (other.schemes?.counts.length && !this.model.isDecoded)
      return [element("p", { class: "row" }, element("span", { class: "quiet" }, "The quantised tensors of B are compared by their decoded values."),
                      button("Compare as stored", () => this.again(false), { class: "small" }))];
    return [];
  }

  // Return the greatest differences by id of the tensor of A, or undefined after a failure.
  async compare(other, what) {
    if (this.other) this.client.ask("close", { model: this.other.id });
    this.other = other;
    const outcome = element("p", { class: "outcome" }, "Comparing…");
    const list = element("div", { class: "compare-list" });
    this.pair = new PairView(this.client, this.model, other, {
      failed: (e) => isCancelled(e) || showFailure(e),
      back: () => this.table.querySelector(".grid"),
    });
    const left = element("div", { class: "compare-left" }, element("div", { class: "compare-sides" }, this.side("A", this.model), this.side("B", other)), ...this.formHint(other),
                         outcome, list, element("p", { class: "row" }, button("Compare with another file", () => this.start())),
                         copyButton(this.model.commands.diff(what.given || what.name)));
    this.into.replaceChildren(element("div", { class: "compare split" }, left, this.pair.node));
    const report = await withProgress("Comparing", (options) =>
      this.client.ask("diff", { a: this.model.id, b: other.id }, options),
    );
    if (!report) {
      outcome.textContent = "The comparison was not completed.";
      return undefined;
    }
    outcome.className = `outcome ${report.equal ? "good" : "warning"}`;
    outcome.textContent = (report.equal ? "Equal. " : "") + summaryText(report.summary);
    if (report.omitted) list.append(element("p", { class: "warning" }, `${count(report.omitted)} further differences are not listed.`));
    this.report = report;
    this.pair.node.hidden = !report.rows.length;
    if (report.rows.length) this.list(list, report.rows);
    say(outcome.textContent);
    return new Map(report.rows.filter((r) => r.ids[0] !== null).map((r) => [r.ids[0], r.max ?? null]));
  }

  // ---- the differences

  list(into, rows) {
    Object.assign(this, { rows, kind: null, module: null });
    this.chips = element("div", { class: "chips", role: "group", "aria-label": "Kinds of differences" });
    this.table = element("div", { class: "table-box" });
    this.modules = element("div", { class: "table-box", hidden: "" });
    const out = (title, name, text) =>
      button(title, () => save(name, [text(this.shown())], "text/plain"), { class: "small" });
    const names = { a: this.model.shown, b: this.other.shown };
    into.append(this.chips, this.table, this.modules,
                element("p", { class: "row" }, out("Save as CSV", "differences.csv", csvOf),
                        out("Save as JSON", "differences.json", (list) => jsonOf(list, names, this.report.summary))));
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
    const columns = [
      { title: "Tensor", width: [250, 6], text: (r) => text(r.name), value: (r) => r.name, isMarked: true },
      { title: "Change", width: [86, 1], text: (r) => r.what, value: (r) => r.what },
      { title: "A", width: [84, 2], text: (r) => text(r.a), value: (r) => r.a },
      { title: "B", width: [84, 2], text: (r) => text(r.b), value: (r) => r.b },
      number("Differing", "differing"),
      number("Greatest", "max"),
      number("Cosine", "cosine"),
    ];
    new Table({
      into: this.table,
      label: "Differences",
      columns,
      source: new ListRows(rows, (r) => `${r.name} ${r.what} ${r.a} ${r.b}`),
      chosen: (r) => this.choosePair(r),
      opened: () => this.pair.node.focus(),
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

  // Arrow keys pass over many rows: read only when they rest.
  choosePair(row) {
    clearTimeout(this.later);
    this.later = setTimeout(() => this.pair.show(row), 60);
  }
}
