// What can be taken along from the list of tensors and from a tensor: names, JSON, files, commands.

import { element } from "./basics.js";
import { copyButton, copying, save } from "./copying.js";
import { cut, nameText } from "./names.js";
import { globsOf } from "./query.js";
import { say, withProgress } from "./status.js";

const count = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
const fileName = (name) => name.replace(/[^\w.-]+/g, "_").replace(/^[._]+/, "").slice(0, 100) || "tensor";

const button = (title, act) => {
  const made = element("button", { type: "button", class: "small" }, title);
  made.addEventListener("click", act);
  return made;
};

// What a tensor is, as JSON.
function jsonOf(t, facts, figures) {
  const known = figures && Object.fromEntries(["count", "min", "max", "mean", "std", "zeros", "nan", "inf", "isWhole"].map((key) => [key, figures[key]]));
  const value = { name: facts.name, dtype: t.dtype, shape: facts.dims.map(Number), layout: facts.layout, bytes: Number.isNaN(t.bytes) ? null : t.bytes,
                  ...(facts.scheme ? { decoded_from: facts.scheme } : { parts: facts.parts }), ...(known ? { statistics: known } : {}) };
  return JSON.stringify(value, null, 2);
}

// Buttons below a tensor.  ask(method, args, options): asks the worker.
export function tensorActions({ t, facts, figures, ask, commands }) {
  const note = element("p", { class: "quiet", role: "status", hidden: "" });
  const tell = (text) => {
    note.textContent = text;
    note.hidden = false;
  };
  const npy = async () => {
    const found = await withProgress(`Reading ${cut(nameText(facts.name))}`, (options) => ask("npy", { tensor: t.id }, options));
    if (!found) return;
    save(`${fileName(facts.name)}.npy`, [found.blob]);
    tell(found.cast ? `Saved as 32-bit floats, because NumPy has no ${found.cast}.` : "Saved.");
  };
  const isArray = facts.layout === "dense" && facts.parts.length > 0;
  return element("div", { class: "tensor-actions" },
                 element("p", { class: "row" }, copying("Copy name", facts.name), copying("Copy JSON", () => jsonOf(t, facts, figures)),
                         ...(isArray ? [button("Save as .npy", npy)] : [])),
                 note, copyButton(commands.stats(facts.name)));
}

// Buttons below the list.  selection(): { ids (null: all), text, isModule, module }; module: a name as the
// command reads it, or null.
export function listActions({ selection, total, ask, commands, base }) {
  const note = element("p", { class: "quiet", role: "status", hidden: "" });
  const writeOut = async () => {
    const { ids } = selection();
    const found = await withProgress("Reading the tensors", (options) => ask("safetensors", { ids }, options));
    if (!found) return;
    save(`${fileName(base.replace(/\.\w+$/, ""))}-selection.safetensors`, [found.blob]);
    const texts = [`Saved ${count((ids?.length ?? total) - found.left.length, "tensor")}, without the metadata of the file.`];
    if (found.cast.length) texts.push(`${count(found.cast.length, "tensor")} became 32-bit floats: ${cut(nameText(found.cast[0]), 80)}${found.cast.length > 1 ? ", …" : ""}.`);
    if (found.left.length) texts.push(`Left out, because safetensors cannot hold them: ${found.left.slice(0, 5).map((n) => cut(nameText(n), 80)).join(", ")}${found.left.length > 5 ? ", …" : ""}.`);
    note.textContent = texts.join(" ");
    note.hidden = false;
    say(note.textContent);
  };
  const box = element("div", { class: "command row" });
  const show = () => {
    const { text, isModule, module, ids } = selection();
    const globs = !isModule ? globsOf(text) : module && !text ? [`${module}.*`] : null;
    const n = ids?.length ?? total;
    box.replaceChildren(...(globs ? [...copyButton(commands.list(globs)).childNodes] : []),
                        ...(n ? [button(`Save ${count(n, "tensor")} as .safetensors`, writeOut)] : []));
  };
  show();
  return { node: element("div", {}, box, note), show };
}
