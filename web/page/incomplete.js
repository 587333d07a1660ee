// Says that a part of a model is shown, before it is taken for the whole.

import { byId, element } from "./basics.js";
import { cut, nameText } from "./names.js";

const countOf = (n) => n.toLocaleString("en");

function listText(names) {
  const MOST = 5;
  const list = names.slice(0, MOST).map((name) => cut(nameText(name), 100)).join(", ");
  return names.length > MOST ? `${list} and ${countOf(names.length - MOST)} more` : list;
}

// Return texts about a model, the most important one first.
function textsOf(m, isAddress) {
  const texts = [];
  const what = isAddress ? "They are not next to this address." : "Choose them together with this file, or choose the folder.";
  if (m.missing.length)
    texts.push(`Only a part of the model: ${countOf(m.missing.length)} of ${countOf(m.files)} files ` +
      `cannot be read: ${listText(m.missing)}. ${what}`);
  if (m.alone)
    texts.push(`Only a part of the model: this is file ${countOf(m.alone.number)} of ${countOf(m.alone.count)}. ` +
      (isAddress ? "" : "Choose all files together, or choose the folder."));
  if (m.joined) texts.push(`${countOf(m.joined)} numbered files were joined without an index.`);
  if (m.others.length) texts.push(`Not part of this model: ${listText(m.others)}.`);
  return texts;
}

// use(what) opens the model again.
export function showIncomplete(m, what, use) {
  const isAddress = typeof what.input === "string";
  const isPart = m.missing.length > 0 || Boolean(m.alone);
  const nodes = textsOf(m, isAddress).map((text) => element("span", {}, text));
  if (m.alone && isAddress) {
    const all = element("button", { type: "button" }, `Open all ${countOf(m.alone.count)} files`);
    all.addEventListener("click", () => use({ ...what, joins: true }));
    nodes.push(all);
  }
  byId("incomplete").replaceChildren(...nodes);
  byId("incomplete").classList.toggle("incomplete", isPart);
  byId("incomplete").hidden = !nodes.length;
}
