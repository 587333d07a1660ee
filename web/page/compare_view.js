// Two files side by side: this one is A.

import { countText, element, REAL_CHARS, realText, sizeText } from "./basics.js";
import { isCancelled } from "./client.js";
import { ListRows } from "./list_rows.js";
import { nameText } from "./names.js";
import { shortName } from "./rows.js";
import { say, showFailure, withProgress } from "./status.js";
import { Table } from "./table.js";
import { pictures } from "./tensor_pictures.js";

function summaryText(s) {
  const parts = [`${s.equal.toLocaleString("en")} equal`];
  for (const [key, text] of [
    ["differ", "differ"],
    ["renamed", "renamed"],
    ["only_in_a", "only in A"],
    ["only_in_b", "only in B"],
  ])
    if (s[key]) parts.push(`${s[key].toLocaleString("en")} ${text}`);
  return `${s.tensors.toLocaleString("en")} ${s.tensors === 1 ? "tensor" : "tensors"}: ${parts.join(", ")}.`;
}

export class CompareView {
  // choose(): asks for the second file; tensor(name): shows a tensor of this file.
  constructor(into, client, model, { choose, tensor }) {
    Object.assign(this, { into, client, model, choose, tensor, other: null });
    this.sidesBox = element("div", {
      class: "sides",
      role: "region",
      "aria-label": "Values of both files",
    });
    this.start();
  }

  start() {
    const file = element("button", { type: "button", class: "primary" }, "Choose a second file");
    file.addEventListener("click", () => this.choose());
    const form = element(
      "form",
      { class: "row address" },
      element("label", { for: "second-address" }, "Or give an address"),
      element("input", {
        type: "url",
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
          "Compare this file (A) with a second file (B): names, element types, shapes and values, across formats. A file dropped on this view becomes B.",
        ),
        element("p", { class: "row" }, file),
        form,
      ),
    );
  }

  side(letter, m) {
    return element(
      "div",
      { class: "side" },
      element("h2", { class: "name" }, `${letter}: ${shortName(nameText(m.shown))}`),
      element(
        "p",
        { class: "quiet" },
        `${m.format}, ${m.count.toLocaleString("en")} tensors, ` +
          `${countText(m.elements)} parameters, ${sizeText(m.total)}` + (m.missing.length || m.alone ? ", incomplete" : ""),
      ),
    );
  }

  async compare(other) {
    if (this.other) this.client.ask("close", { model: this.other.id });
    this.other = other;
    const again = element("button", { type: "button" }, "Compare with another file");
    again.addEventListener("click", () => this.start());
    const outcome = element("p", {}, "Comparing…");
    const table = element("div", { class: "table-box" });
    this.into.replaceChildren(
      element("div", { class: "sides" }, this.side("A", this.model), this.side("B", other)),
      outcome,
      table,
      element("p", { class: "row" }, again),
    );
    const report = await withProgress("Comparing", (options) =>
      this.client.ask("diff", { a: this.model.id, b: other.id }, options),
    );
    if (!report) {
      outcome.textContent = "The comparison was not completed.";
      return;
    }
    outcome.className = report.equal ? "good" : "warning";
    outcome.textContent = (report.equal ? "Equal. " : "") + summaryText(report.summary);
    if (report.omitted)
      table.append(
        element(
          "p",
          { class: "warning" },
          `${report.omitted.toLocaleString("en")} further differences are not listed.`,
        ),
      );
    if (report.rows.length) this.list(table, report.rows);
    say(outcome.textContent);
  }

  list(into, rows) {
    const text = (v) => (v === null ? "–" : shortName(nameText(v)));
    const number = (title, key) => ({
      title,
      number: true,
      chars: REAL_CHARS,
      value: (r) => r[key],
      text: (r) => realText(r[key]),
    });
    const columns = [
      { title: "Tensor", width: [220, 4], text: (r) => text(r.name), value: (r) => r.name },
      { title: "Change", width: [92, 1], text: (r) => r.what, value: (r) => r.what },
      { title: "A", width: [140, 2], text: (r) => text(r.a), value: (r) => r.a },
      { title: "B", width: [140, 2], text: (r) => text(r.b), value: (r) => r.b },
      number("Differing", "differing"),
      number("Greatest", "max"),
      number("Cosine", "cosine"),
    ];
    new Table({
      into,
      label: "Differences",
      columns,
      source: new ListRows(rows, (r) => `${r.name} ${r.what} ${r.a} ${r.b}`),
      chosen: (r) => this.choosePair(r),
      opened: (r) => r.ids[0] !== null && this.tensor(r.ids[0]),
    });
    this.sidesBox.replaceChildren();
    into.append(this.sidesBox);
  }

  // Arrow keys pass over many rows: read only when they rest.
  choosePair(row) {
    clearTimeout(this.later);
    this.stop?.abort();
    this.later = setTimeout(() => this.showPair(row), 60);
  }

  // Values of the tensor in both files, beside each other.
  async showPair(row) {
    const { signal } = (this.stop = new AbortController());
    const names = [row.name, row.what === "renamed" ? row.b : row.name];
    const boxes = ["A", "B"].map((letter, i) =>
      element(
        "div",
        { class: "side" },
        element(
          "h2",
          { class: "name code" },
          `${letter}: ${row.ids[i] === null ? "–" : shortName(nameText(names[i]))}`,
        ),
      ),
    );
    this.sidesBox.replaceChildren(...boxes);
    try {
      for (const [i, m] of [this.model, this.other].entries()) {
        if (row.ids[i] === null) continue;
        const result = await this.client.ask(
          "survey",
          { model: m.id, tensor: row.ids[i] },
          { signal },
        );
        boxes[i].append(...pictures(shortName(names[i]), result));
      }
    } catch (e) {
      if (!isCancelled(e)) showFailure(e);
    }
  }
}
