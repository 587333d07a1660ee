// One line that says whether a model is sound, and how much of it was looked at.

import { element, percentText } from "./basics.js";

const count = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;

// What is known about the values.  v: { read, all, nan, inf, tensors, failed, of, isRunning }: numbers of
// values and tensors; of: tensors that have numbers.
function readText(v) {
  const all = v.read >= v.all && v.tensors === v.of;
  const looked = all
    ? `all ${count(v.all, "value")} were read`
    : `${v.read.toLocaleString("en")} of ${count(v.all, "value")} (${percentText(v.read, v.all)}) of ${v.tensors.toLocaleString("en")} of ${count(v.of, "tensor")} were read`;
  if (!v.of) return { kind: "quiet", text: "No tensor has values that are decoded." };
  if (!v.tensors && !v.isRunning) return { kind: "quiet", text: `No values were read yet (${count(v.of, "tensor")}).` };
  const bad = [v.nan && `${count(v.nan, "NaN")}`, v.inf && `${v.inf.toLocaleString("en")} infinite`].filter(Boolean);
  const where = v.badTensors ? ` in ${count(v.badTensors, "tensor")}` : "";
  const found = bad.length ? bad.join(" and ") + where : `No NaN, no infinity${all ? "" : " seen"}`;
  return { kind: bad.length ? "fault" : all ? "good" : "quiet", text: `${found}: ${looked}.` };
}

// Tensors whose values cannot be read are no smaller matter than a NaN.
function valuesText(v) {
  if (!v.failed) return readText(v);
  const failed = `The values of ${count(v.failed, "tensor")} cannot be read.`;
  return { kind: "fault", text: v.of ? `${failed} ${readText(v).text}` : failed };
}

function checksumText({ checksums, verified }) {
  if (verified) return verified;
  const total = Object.values(checksums).reduce((a, b) => a + b, 0);
  const kinds = Object.keys(checksums).join(", ");
  return total
    ? { kind: "quiet", text: `${count(total, "checksum")} (${kinds}), not compared yet.` }
    : { kind: "quiet", text: "The file has no checksums: damage of its data would not be seen." };
}

function findingsText({ notices }) {
  if (!notices.length) return { kind: "good", text: "Nothing unusual in its structure." };
  const faults = notices.filter((f) => f === "fault").length;
  return { kind: faults ? "fault" : "warning", text: `${count(notices.length, "finding")} about its structure.` };
}

const SIGNS = { good: "✓", fault: "✗", warning: "!", quiet: "·" };

// h: { values, checksums, verified, notices }.  buttons: { values, checksums, findings }: lists of nodes.
export function healthLine(h, buttons = {}) {
  const items = [
    ["Values", valuesText(h.values), buttons.values],
    ["Checksums", checksumText(h), buttons.checksums],
    ["Structure", findingsText(h), buttons.findings],
  ];
  return element("ul", { class: "health", "aria-label": "Health" },
                 ...items.map(([title, { kind, text }, nodes = []]) =>
                   element("li", {}, element("span", { class: `sign ${kind}`, "aria-hidden": "true" }, SIGNS[kind]),
                           element("span", {}, element("strong", {}, title + " "), element("span", { class: kind === "quiet" ? "" : kind }, text),
                                   " ", ...nodes.flatMap((n) => [n, " "])))));
}
