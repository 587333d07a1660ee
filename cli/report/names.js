// Names and texts of a file, made harmless as the command prints them: control characters,
// characters that change the direction of text, and invalid UTF-8 become \n, \x1b, \u202e.

const LETTERS = { 9: "\\t", 10: "\\n", 13: "\\r" };

const isHarmful = (c) =>
  c < 0x20 ||
  (c >= 0x7f && c < 0xa0) ||
  c === 0x061c ||
  c === 0x200e ||
  c === 0x200f ||
  (c >= 0x2028 && c <= 0x202e) ||
  (c >= 0x2066 && c <= 0x2069) ||
  c === 0xfeff;

const hex = (c, digits) => c.toString(16).padStart(digits, "0");

function escaped(c, backslash) {
  if (c === 0x5c && backslash) return "\\\\";
  if (c >= 0xd800 && c < 0xe000) return "\\u" + hex(c, 4); // half of a pair
  if (!isHarmful(c)) return String.fromCodePoint(c);
  return LETTERS[c] || (c < 0x100 ? "\\x" + hex(c, 2) : "\\u" + hex(c, 4));
}

// Escape a text; `backslash`: double backslashes, so that different names stay different.
export function plainText(text, backslash = false) {
  let out = "";
  for (const letter of String(text)) out += escaped(letter.codePointAt(0), backslash);
  return out;
}

// Return the code point at bytes[at] and the length of its UTF-8 sequence, or a length of 0.
function codeAt(bytes, at, end) {
  const b = bytes[at];
  if (b < 0x80) return [b, 1];
  const length = b < 0xc2 ? 0 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : b < 0xf5 ? 4 : 0;
  if (!length || at + length > end) return [0, 0];
  let code = b & (0x7f >> length);
  for (let i = 1; i < length; i++) {
    if ((bytes[at + i] & 0xc0) !== 0x80) return [0, 0];
    code = (code << 6) | (bytes[at + i] & 0x3f);
  }
  const least = [0, 0, 0x80, 0x800, 0x10000][length];
  const surrogate = code >= 0xd800 && code < 0xe000;
  return code < least || code > 0x10ffff || surrogate ? [0, 0] : [code, length];
}

// Escape the name in bytes[from..end); an empty name becomes "".
export function nameOfBytes(bytes, from, end) {
  if (from === end) return '""';
  let out = "";
  for (let i = from; i < end;) {
    const [code, length] = codeAt(bytes, i, end);
    out += length ? escaped(code, true) : "\\x" + hex(bytes[i], 2);
    i += length || 1;
  }
  return out;
}

// Escape a text of several lines; the ends of lines stay.
export const linesText = (text) =>
  String(text)
    .split(/\r?\n/)
    .map((line) => plainText(line))
    .join("\n");

// Escape a name that is a string already.
export const nameText = (name) => (name ? plainText(name, true) : '""');

// Cut a text that would be too long for a line.
export const cut = (text, most = 300) => (text.length > most ? text.slice(0, most) + "…" : text);

// A harmless text as nodes: lines may end after dots and underscores, so that names break between
// their words.  Only a word that is longer than a line is broken elsewhere.
export const breakable = (text) =>
  text.split(/(?<=[._])(?=[^._\s])/).flatMap((word, i) => (i ? [document.createElement("wbr"), word] : [word]));
