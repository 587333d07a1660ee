// The choice between the tensors that a quantised model stores and those that it represents.

import { byId, element } from "./basics.js";

const count = (n) => `${n.toLocaleString("en")} ${n === 1 ? "tensor" : "tensors"}`;
const listed = (counts) => counts.map(([label, n]) => `${label}: ${count(n)}`).join(", ");

// What is decoded, and what is not.
function textOf({ isDecoded, schemes }) {
  if (!isDecoded) return "This model is quantised: these are the tensors of the file.";
  const { counts, left } = schemes;
  const done = counts.length ? `Decoded when they are read: ${listed(counts)}.` : "No quantised tensors were recognised.";
  const rest = left.length ? ` Not decoded, and shown as stored: ${listed(left)}.` : "";
  return done + rest + " Health, checks and metadata are those of the file.";
}

const FORMS = [
  ["stored", "as stored"],
  ["decoded", "decoded"],
];

// change(decodes): the user chose a form.
export function showFormChoice(m, change) {
  const isQuantised = m.isDecoded || m.mayBeQuantised;
  byId("form").hidden = !isQuantised;
  if (!isQuantised) return;
  const radios = FORMS.map(([id, title]) => {
    const radio = element("input", { type: "radio", name: "form", id: `form-${id}`, value: id });
    radio.checked = (id === "decoded") === m.isDecoded;
    radio.addEventListener("change", () => change(id === "decoded"));
    return element("label", {}, radio, " ", title);
  });
  byId("form").replaceChildren(element("legend", {}, "Tensors"), ...radios, element("p", { class: "quiet", id: "form-text" }, textOf(m)));
  byId("form").classList.toggle("warning-edge", m.isDecoded && m.schemes.left.length > 0);
}
