// The words of a search: parts of names, patterns, and conditions such as type:f16, size>1M,
// shape:4096,*, rank:2 and nan:.

import { isPattern } from "./glob.js";

const UNITS = { "": 1, b: 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4, kb: 1e3, mb: 1e6, gb: 1e9, tb: 1e12,
                kib: 1024, mib: 1024 ** 2, gib: 1024 ** 3, tib: 1024 ** 4 };
const COMPARE = { ">": (a, b) => a > b, "<": (a, b) => a < b, ">=": (a, b) => a >= b, "<=": (a, b) => a <= b, "=": (a, b) => a === b };

function numberOf(text) {
  const found = /^(\d+(?:\.\d+)?)([a-z]*)$/i.exec(text);
  const unit = found && UNITS[found[2].toLowerCase()];
  return unit === undefined || !found ? null : Number(found[1]) * unit;
}

// "size>1M" and "params<=2k": { kind, test(value) }
function compared(word) {
  const found = /^(size|params|rank)(>=|<=|>|<|=)(.*)$/i.exec(word);
  if (!found) return null;
  const [, kind, sign, text] = found;
  const number = numberOf(text);
  if (number === null) return { problem: `${word}: a number is missing, as in ${kind}${sign}1M` };
  return { kind: kind.toLowerCase(), test: (v) => COMPARE[sign](v, number) };
}

// "shape:4096,*": each dimension is a number or a star.
function shaped(text) {
  const dims = text.replace(/^\[|\]$/g, "").split(/[,x]/).map((d) => d.trim());
  if (!dims.every((d) => d === "*" || /^\d+$/.test(d)))
    return { problem: `shape:${text}: give numbers and stars, as in shape:4096,*` };
  return { kind: "shape", dims: dims.map((d) => (d === "*" ? null : Number(d))) };
}

function conditionOf(word) {
  const found = /^(type|dtype|shape|name|rank|nan|inf):(.*)$/i.exec(word);
  if (!found) return compared(word);
  const [, key, text] = found;
  switch (key.toLowerCase()) {
  case "type": case "dtype":
    return text ? { kind: "type", text: text.toLowerCase() } : { problem: `${word} what? As in type:f16` };
  case "shape":
    return shaped(text);
  case "name":
    return { kind: isPattern(text) ? "glob" : "name", text };
  case "rank":
    return /^\d+$/.test(text) ? { kind: "rank", test: (v) => v === Number(text) } : { problem: `${word}: give a number, as in rank:2` };
  default:
    return { kind: "bad" };
  }
}

// Words are split at spaces, but not between brackets: "[4, 768]" is one word.
const wordsOf = (text) => text.match(/(?:\[[\d\s,]*\]?|\S)+/g) || [];

// Return { conditions, problem }: conditions are { kind, text, test, dims }; kind "word" is a part of the
// name, the type or the shape.
export function queryOf(text) {
  const conditions = wordsOf(text).map(
    (word) => conditionOf(word) || { kind: isPattern(word) ? "glob" : "word", text: isPattern(word) ? word : word.toLowerCase() });
  return { conditions, problem: conditions.find((c) => c.problem)?.problem ?? null };
}

// Texts that hits have in their names.
export function marksOf(text) {
  return queryOf(text).conditions.flatMap((c) => {
    if (c.kind === "word" || c.kind === "name") return [c.text.toLowerCase()];
    if (c.kind === "glob") return c.text.split(/[*?{},\\]|\[[^\]]*\]/).filter((piece) => piece.length > 1).map((p) => p.toLowerCase());
    return [];
  });
}

// Patterns that name the same tensors for the command; null if the search says more than names.
export function globsOf(text) {
  const { conditions } = queryOf(text);
  if (!conditions.length) return [];
  return conditions.length === 1 && conditions[0].kind === "glob" ? [conditions[0].text] : null;
}
