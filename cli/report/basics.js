// Elements, numbers and colours.  Text from the model becomes text nodes only, never HTML.

const SVG = "http://www.w3.org/2000/svg";
export const byId = (id) => document.getElementById(id);

// Return a new HTML element with attributes and children (nodes or texts).
export function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

// Return a new SVG element with attributes and children.
export function shape(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// "1.78 B" for counts of parameters, in steps of a thousand.
export function countText(n) {
  const units = ["", " K", " M", " B", " T"];
  let i = 0;
  while (n >= 999.5 && i < units.length - 1) {
    n /= 1000;
    i++;
  }
  return (i ? Number(n.toPrecision(3)).toString() : n.toString()) + units[i];
}

// "1.5 MiB", in steps of 1024.
export function sizeText(n) {
  if (n === 1) return "1 byte";
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) {
    n /= 1024;
    i++;
  }
  return (i ? n.toFixed(n < 100 ? 1 : 0) : n) + " " + units[i];
}

// Most characters of realText(): columns of tables have room for them.
export const REAL_CHARS = 11;

// A number in at most REAL_CHARS characters.  A rounded number has a point or an exponent: digits
// alone are exact.  Statistics arrive as numbers, as the texts "NaN" and "Infinity", or as null where
// none exist.
export function realText(v) {
  if (v === null || v === undefined) return "–";
  if (typeof v !== "number" || v - v !== 0) return String(v);
  if (Number.isInteger(v) && String(v).length <= REAL_CHARS) return String(v);
  const size = Math.abs(v);
  if (!Number.isInteger(v) && size >= 1e-4 && size < 1e6) {
    const whole = Math.max(0, Math.floor(Math.log10(size))) + 1;
    const near = Number(v.toPrecision(Math.max(6, whole + 1)));
    const text = Number.isInteger(near) ? `${near}.0` : String(near);
    if (text.length <= REAL_CHARS) return text;
  }
  for (let digits = 5; ; digits--) {
    const text = v.toExponential(digits).replace(/\.?0*e/, "e").replace("e+", "e");
    if (text.length <= REAL_CHARS) return text;
  }
}

// All digits of a number; of one with 32 bits or fewer, the digits that tell it from its neighbours.
export function exactText(v, isDouble) {
  if (v === null || v === undefined) return "–";
  if (typeof v !== "number" || isDouble || Number.isInteger(v) || Math.fround(v) !== v) return String(v);
  let digits = 1;
  while (Math.fround(Number(v.toPrecision(digits))) !== v) digits++;
  return String(Number(v.toPrecision(digits)));
}

export const shapeText = (dims) => "[" + dims.join(", ") + "]";
// A part is never "0.0 %" of the whole if it exists, nor "100.0 %" if something else exists.
export function percentText(part, whole) {
  const percent = whole ? (100 * part) / whole : 0;
  if (percent > 0 && percent < 0.05) return "< 0.1 %";
  if (percent < 100 && percent >= 99.95) return "> 99.9 %";
  return `${percent.toFixed(1)} %`;
}

// Colours with at least 4.5:1 contrast to white text.
const COLOURS = ["#1f5fbf", "#a8431f", "#17734f", "#8a3a8f", "#8a5a00", "#00707f", "#b02a5b",
                 "#4f5d75", "#5b3fc4", "#5f6f00"];
export const colourOf = (i) => COLOURS[i % COLOURS.length];
