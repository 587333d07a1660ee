// Findings: of opening, and of verify; digests of hash; facts about the file.

import { element, percentText, sizeText } from "./basics.js";
import { copyButton } from "./copying.js";
import { ListRows } from "./list_rows.js";
import { nameText, plainText } from "./names.js";
import { shortName } from "./rows.js";
import { say, withProgress } from "./status.js";
import { Table } from "./table.js";

const count = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;

function findingsTable(into, findings) {
  const columns = [
    {
      title: "Severity",
      width: [88, 1],
      value: (f) => ["fault", "warning", "note"].indexOf(f.severity),
      draw: (f) =>
        element(
          "span",
          { class: { fault: "fault", warning: "warning" }[f.severity] || "quiet" },
          f.severity,
        ),
    },
    { title: "Rule", width: [150, 1], text: (f) => plainText(f.rule), value: (f) => f.rule },
    {
      title: "At byte",
      number: true,
      width: [110, 1],
      value: (f) => f.offset,
      text: (f) => (f.offset === null ? "–" : f.offset.toLocaleString("en")),
    },
    {
      title: "Tensor",
      width: [150, 2],
      text: (f) => (f.tensor === null ? "–" : shortName(nameText(f.tensor))),
      value: (f) => f.tensor,
    },
    { title: "Text", width: [320, 6], text: (f) => plainText(f.text), value: (f) => f.text },
  ];
  return new Table({
    into,
    label: "Findings",
    narrow: (f) => plainText(f.text),
    columns,
    source: new ListRows(findings, (f) => `${f.severity} ${f.rule} ${f.tensor} ${f.text}`),
  });
}

function factsOf(model) {
  const facts = [
    ["Format", model.format + (model.version ? ` ${model.version}` : "")],
    ["Size", `${model.total.toLocaleString("en")} bytes`],
    ["Alignment of data", model.alignment ? sizeText(model.alignment) : "–"],
    [
      "Checksums",
      Object.entries(model.checksums)
        .map(([name, n]) => `${n.toLocaleString("en")} × ${name}`)
        .join(", ") || "none",
    ],
    ["Read to open", `${sizeText(model.bytesRead)} in ${count(model.requests, "request")}`],
  ];
  if (model.generator) facts.push(["Written by", plainText(model.generator)]);
  for (const p of model.parts)
    facts.push([
      `Part ${plainText(p.role)}`,
      `${sizeText(p.stored)} at byte ${p.offset.toLocaleString("en")}`,
    ]);
  for (const s of model.shards)
    facts.push([
      nameText(s.name),
      {
        ok: s.size === null ? "open" : sizeText(s.size),
        io: "missing",
        format: "not the file that the index describes",
      }[s.status],
    ]);
  return element(
    "dl",
    { class: "facts" },
    ...facts.flatMap(([k, v]) => [element("dt", {}, k), element("dd", {}, v)]),
  );
}

// How much of the file the checks have reached.
function comparedText(report, quick) {
  if (!report.bytes_checked)
    return "Nothing was compared with checksums: only the structure was checked, not the data.";
  const share =
    report.payload_bytes && !quick
      ? `Checksums cover ${percentText(report.payload_checked, report.payload_bytes)} of the data. `
      : "";
  return `${share}${sizeText(report.bytes_checked)} were compared with checksums and rules.`;
}

export class CheckView {
  // verified(): model.verified is new.
  constructor(into, client, model, { commands, verified }) {
    Object.assign(this, { into, client, model, verified });
    this.outcome = element("p", { class: "quiet" });
    this.table = element("div", { class: "table-box" });
    this.digests = element("div");
    into.replaceChildren(
      element(
        "div",
        { class: "row" },
        this.button("Verify", () => this.verify(false), "primary"),
        this.button("Verify header and index only", () => this.verify(true)),
        this.button("Hash", () => this.hash()),
      ),
      this.outcome,
      this.table,
      this.digests,
      element("h2", {}, "File"),
      factsOf(model),
      copyButton(commands.verify()),
    );
    this.show(model.notices);
    this.outcome.textContent = model.notices.length
      ? `${count(model.notices.length, "notice")} of opening. Verify compares every checksum and checks every rule of the format.`
      : "Nothing unusual was found on opening. Verify compares every checksum and checks every rule of the format.";
  }

  button(title, act, kind = "") {
    const button = element("button", { type: "button", class: kind }, title);
    button.addEventListener("click", act);
    return button;
  }

  show(findings) {
    this.table.replaceChildren();
    if (findings.length) findingsTable(this.table, findings);
  }

  async verify(quick) {
    const what = `Verifying ${shortName(nameText(this.model.shown))}`;
    const report = await withProgress(what, (options) =>
      this.client.ask("verify", { model: this.model.id, quick }, options),
    );
    if (!report) return;
    const number = (severity) => report.findings.filter((f) => f.severity === severity).length;
    const faults = number("fault");
    const warnings = number("warning");
    // Without checksums nothing says that the data are sound.
    const sound = report.bytes_checked && !this.model.missing.length ? "good" : "quiet";
    this.outcome.className = faults ? "fault" : warnings ? "warning" : sound;
    this.outcome.textContent =
      (faults || warnings
        ? `${count(faults, "fault")}, ${count(warnings, "warning")}. `
        : "No fault. ") + comparedText(report, quick);
    this.show(report.findings);
    this.model.verified = {
      kind: faults ? "fault" : warnings ? "warning" : report.bytes_checked && !quick ? sound : "quiet",
      text: this.outcome.textContent,
    };
    this.verified();
    say(this.outcome.textContent);
  }

  async hash() {
    const what = `Hashing ${shortName(nameText(this.model.shown))}`;
    const report = await withProgress(what, (options) =>
      this.client.ask("hash", { model: this.model.id }, options),
    );
    if (!report) return;
    const columns = [
      {
        title: "Tensor",
        width: [220, 3],
        text: (t) => shortName(nameText(t.name)),
        value: (t) => t.name,
      },
      { title: "Digest", width: [520, 4], text: (t) => t.digest, value: (t) => t.digest },
    ];
    this.digests.replaceChildren(
      element("h2", {}, "Digests"),
      element("p", {}, "Model: ", element("code", { class: "wrap" }, report.model)),
    );
    new Table({
      into: this.digests,
      label: "Digests",
      narrow: (t) => t.digest,
      columns,
      source: new ListRows(report.tensors, (t) => `${t.name} ${t.digest}`),
    });
    say(`Digest of the model: ${report.model}`);
  }
}
