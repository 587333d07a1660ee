// Two files side by side: this one is A.  The differences are on the left, the values of a tensor in both
// files on the right.

import { countText, element, sizeText } from "./basics.js";
import { isCancelled } from "./client.js";
import { copyButton, save } from "./copying.js";
import { DifferenceList } from "./difference_list.js";
import { nameText } from "./names.js";
import { PairView } from "./pair_view.js";
import { shortName } from "./rows.js";
import { say, showFailure, withProgress } from "./status.js";

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

  // Two files of one name are told apart by where they are.
  side(letter, m, other) {
    return element(
      "p",
      { class: "side" },
      element("strong", { class: `letter ${letter.toLowerCase()}` }, letter),
      element("span", { class: "name" }, shortName(nameText(m.shown === other.shown ? m.source : m.shown))),
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
  async compare(other) {
    if (this.other) this.client.ask("close", { model: this.other.id });
    this.other = other;
    const outcome = element("p", { class: "outcome" }, "Comparing…");
    const list = element("div", { class: "compare-list" });
    this.pair = new PairView(this.client, this.model, other, {
      failed: (e) => isCancelled(e) || showFailure(e),
      back: () => this.differences.table.querySelector(".grid"),
    });
    const left = element("div", { class: "compare-left" }, element("div", { class: "compare-sides" }, this.side("A", this.model, other), this.side("B", other, this.model)), ...this.formHint(other),
                         outcome, list, element("p", { class: "row" }, button("Compare with another file", () => this.start())),
                         copyButton(this.model.commands.diff(other.source)));
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
    const { summary } = this.report;
    this.differences = new DifferenceList({ into, rows, summary, save, names: { a: this.model.shown, b: this.other.shown },
                                            chosen: (r) => this.choosePair(r), opened: () => this.pair.node.focus() });
  }

  // Arrow keys pass over many rows: read only when they rest.
  choosePair(row) {
    clearTimeout(this.later);
    this.later = setTimeout(() => this.pair.show(row), 60);
  }
}
