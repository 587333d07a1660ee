// Quantised tensors: whether a model may have some, and which scheme each one has.  Runs in the worker.

import { cut, plainText } from "./names.js";

// Ends of names of stored tensors that are parts of a quantised one.
const ENDS = [
  ...["_scale_inv", "weight_scale", "scale_weight", "qscale_weight", "weight_scale_2", "weight_scb"],
  ...["qweight", "_packed", "_scales", ".scales", ".qscale", ".quant_map", "absmax", "SCB", "comfy_quant"],
  ...["q_weight", ".trellis", ".W_q", ".codebooks", ".centroids.weight", ".B_24", ".workspace", ".bitmask"],
  ...["input_global_scale", "weight_global_scale", "_zero_point", "_DequantizeLinear_scale"],
];
// Ends that say it in a model that has tensors of a type.
const BY_TYPE = [
  [/^nvfp4$/, ".scale"],
  [/^f8_/, ".scale"],
  [/^[iu][48]$/, "_scale"],
];
const KEYS = ["quantization_config", "quantization", "_quantization_metadata"];

const encoder = new TextEncoder();

// Lists of ends by their last byte.
function endsByLast(ends) {
  const found = Array.from({ length: 256 }, () => []);
  for (const end of ends.map((text) => encoder.encode(text))) found[end[end.length - 1]].push(end);
  return found;
}

// Forwards: beginnings of ends differ more than what all names end with.
function endsWith(bytes, from, to, end) {
  const start = to - end.length;
  if (start < from) return false;
  for (let i = 0; i < end.length; i++) if (bytes[start + i] !== end[i]) return false;
  return true;
}

// The names of the types that tensors have.
function typesOf({ count, dtypes, dtypeNames }) {
  const isThere = new Uint8Array(dtypeNames.length);
  for (let i = 0; i < count; i++) isThere[dtypes[i]] = 1;
  return dtypeNames.filter((_, code) => isThere[code]);
}

const STATED = ["onnx.operator", "torch.qscheme"]; // attributes of tensors
const WHOLE = /^q?u?int|^[iu]\d/; // types of whole numbers
const MOST_STATED = 2000; // tensors whose attributes are looked at

// Whether attributes of tensors state a scheme, as the readers of ONNX and PyTorch have them.
function isStated(c, model) {
  if (/^(safetensors|gguf)/.test(model.format)) return false;
  const isWhole = c.dtypeNames.map((name) => WHOLE.test(name));
  for (let i = 0, looked = 0; i < c.count && looked < MOST_STATED; i++) {
    if (!isWhole[c.dtypes[i]]) continue;
    looked++;
    const { attributes } = model.tensorAt(i);
    if (STATED.some((key) => attributes.has(key))) return true;
  }
  return false;
}

// Whether names of tensors, their attributes, the metadata or config.json speak of a scheme.
export function mayBeQuantised(c, model, config) {
  if (config && (config.quantization_config || config.quantization)) return true;
  if (KEYS.some((key) => model.metadata.has(key)) || isStated(c, model)) return true;
  const names = typesOf(c);
  const types = BY_TYPE.filter(([type]) => names.some((name) => type.test(name))).map(([, end]) => end);
  const ends = endsByLast([...ENDS, ...types]);
  for (let i = 0, from = 0; i < c.count; from = c.nameEnds[i++]) {
    const to = c.nameEnds[i];
    if (to === from) continue;
    for (const end of ends[c.nameBytes[to - 1]]) if (endsWith(c.nameBytes, from, to, end)) return true;
  }
  return false;
}

// Names of schemes that are not recognised are those of the model.
const labelOf = ({ scheme, variant }) => plainText(cut(variant ? `${scheme} ${variant}` : scheme, 80)) || "not named";

// What is known of a quantised tensor, as one line.
export function schemeText(q) {
  const sides = q.block?.map((n) => n || "all");
  const block = sides ? `, a scale for ${sides[0]} ${sides[0] === 1 ? "row" : "rows"} × ${sides[1]} columns` : "";
  return labelOf(q) + (q.bits ? `, ${q.bits} bits` : "") + block;
}

// The schemes of a decoded model: labels, and for each tensor 0 or the number of its label; how many tensors
// have each of them; and those that are not decoded.
export function schemesOf(model) {
  const of = new Uint8Array(model.tensorCount);
  const texts = new Map(); // by id
  const labels = [];
  const counts = new Map();
  const left = new Map();
  for (const q of model.quantised) {
    const label = labelOf(q);
    const into = q.decoded ? counts : left;
    into.set(label, (into.get(label) ?? 0) + 1);
    const id = model.find(q.name)?.id;
    if (!q.decoded || id === undefined) continue;
    if (!labels.includes(label)) labels.push(label);
    of[id] = Math.min(255, labels.indexOf(label) + 1);
    texts.set(id, schemeText(q));
  }
  const shown = { labels, of, counts: [...counts], left: [...left] };
  return { shown, texts };
}
