// Two files side by side: this one is A.

import { element, realText, shapeText, sizeText, countText } from "./basics.js";
import { ListRows } from "./list_rows.js";
import { nameText } from "./names.js";
import { shortName } from "./rows.js";
import { say, withProgress } from "./status.js";
import { Table } from "./table.js";

// Rows of { name, what, a, b, differing, max, cosine } from a report.
function rowsOf(report, describe) {
  const plain = (c, v) => (v === undefined ? "–" : Array.isArray(v) ? shapeText(v) : String(v));
  const changed = report.changed.map((c) =>
    c.what === "value"
      ? {
          name: c.name,
          what: "values",
          a: describe(0, c.name),
          b: describe(1, c.name),
          differing: c.differing,
          max: c.max_abs,
          cosine: c.cosine,
        }
      : { name: c.name, what: c.what, a: plain(c, c.a), b: plain(c, c.b) },
  );
  return [
    ...changed,
    ...report.renamed.map((r) => ({ name: r.a, what: "renamed", a: r.a, b: r.b })),
    ...report.only_in_a.map((name) => ({
      name,
      what: "only in A",
      a: describe(0, name),
      b: null,
    })),
    ...report.only_in_b.map((name) => ({
      name,
      what: "only in B",
      a: null,
      b: describe(1, name),
    })),
  ];
}

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

// Names of a model with type and shape, for the tensors that a report names.
function describer(models) {
  const maps = models.map(() => null);
  return (which, name) => {
    maps[which] ||= new Map(
      Array.from({ length: models[which].columns.count }, (_, i) => [
        decodedName(models[which].columns, i),
        i,
      ]),
    );
    const i = maps[which].get(name);
    if (i === undefined) return "–";
    const c = models[which].columns;
    return `${c.dtypeNames[c.dtypes[i]]} ${shapeText([...c.dims.subarray(i ? c.dimEnds[i - 1] : 0, c.dimEnds[i])])}`;
  };
}

const decoder = new TextDecoder();
const decodedName = (c, i) =>
  decoder.decode(c.nameBytes.subarray(i ? c.nameEnds[i - 1] : 0, c.nameEnds[i]));

export class CompareView {
  // choose(): asks for the second file; tensor(name): shows a tensor of this file.
  constructor(into, client, model, { choose, tensor }) {
    Object.assign(this, { into, client, model, choose, tensor, other: null });
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
        `${m.format}, ${m.columns.count.toLocaleString("en")} tensors, ` +
          `${countText(m.elements)} parameters, ${sizeText(m.size)}`,
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
    const rows = rowsOf(report, describer([this.model, other]));
    if (rows.length) this.list(table, rows);
    say(outcome.textContent);
  }

  list(into, rows) {
    const text = (v) => (v === null ? "–" : shortName(nameText(v)));
    const number = (title, key) => ({
      title,
      number: true,
      width: [96, 1],
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
      opened: (r) => r.what !== "only in B" && this.tensor(r.name),
    });
  }
}
