// Values of a tensor or of one of its parts, as numbers or as texts.

import { REAL_CHARS, realText } from "./basics.js";

const EXACT = new Set(["u64", "i64"]); // f64() would round them
const DOUBLES = new Set(["f64", "c128", "u64", "i64", "u32", "i32"]);

// The part that is shown: its element type, shape and number of values.  Complex numbers are two
// values each.
export function partOf(tensor, role, types) {
  const part = tensor.parts.find((p) => p.role === role);
  const isData = !role || role === "data";
  const dtype = isData ? tensor.dtype : part.dtype || "bytes";
  const type = types.find((t) => t.name === dtype);
  const isPacked = isData && tensor.layout !== "dense"; // numbers together with their scales
  const decodes = Boolean(type && type.decodes) && !isPacked;
  const perElement = type && type.kind === "complex" ? 2 : 1;
  const bytes = part ? part.length : tensor.nbytes;
  const elements = isData
    ? tensor.elements
    : Math.floor((bytes || 0) / (type ? type.blockBytes : 1)) * (type ? type.blockElements : 1);
  const shape = isData ? tensor.dims.map(Number) : [elements];
  const count = decodes ? elements * perElement : bytes || 0;
  const last = shape.length > 1 ? shape[shape.length - 1] * (decodes ? perElement : 1) : count;
  return {
    role,
    dtype,
    layout: isPacked ? tensor.layout : null,
    encoding: part?.encoding ?? "raw",
    decodes,
    perElement,
    count,
    shape,
    columns: Math.max(1, decodes ? last : count),
  };
}

// Numbers [from, to) of a part; complex elements are cut into two numbers.
export async function numbersOf(tensor, part, from, to, signal) {
  const first = Math.floor(from / part.perElement);
  const range = { from: first, to: Math.ceil(to / part.perElement), part: part.role, signal };
  const all = DOUBLES.has(part.dtype) ? await tensor.f64(range) : await tensor.f32(range);
  const skip = from - first * part.perElement;
  return skip || all.length !== to - from ? all.subarray(skip, skip + to - from) : all;
}

// Most characters of textsOf(), so that columns have room for them.  figures: those of all values, or
// of a sample.
export function charsOf(part, figures) {
  if (!part.decodes) return 2;
  if (part.dtype === "f64" || part.dtype === "c128") return 24;
  if (!EXACT.has(part.dtype)) return REAL_CHARS;
  const ends = figures?.isWhole && figures.finite ? [figures.min, figures.max] : [-(2 ** 63)];
  return Math.max(...ends.map((v) => BigInt(v).toString().length), 4);
}

// Texts of the values [from, to); bytes in hexadecimal where the type is not decoded.
export async function textsOf(tensor, part, from, to, signal) {
  if (!part.decodes) {
    const bytes = await tensor.bytes({ from, to, part: part.role, signal });
    return Array.from(bytes, (b) => b.toString(16).padStart(2, "0"));
  }
  if (EXACT.has(part.dtype)) {
    const bytes = await tensor.bytes({ from: from * 8, to: to * 8, part: part.role, signal });
    const copy = bytes.slice().buffer;
    const list = part.dtype === "i64" ? new BigInt64Array(copy) : new BigUint64Array(copy);
    return Array.from(list, String);
  }
  const numbers = await numbersOf(tensor, part, from, to, signal);
  if (part.dtype === "bool") return Array.from(numbers, (v) => (v ? "true" : "false"));
  return Array.from(numbers, part.dtype === "f64" || part.dtype === "c128" ? String : realText);
}
