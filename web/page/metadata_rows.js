// Metadata as rows of key, kind and text.

const TEXT = 2000; // characters of a value in a row
const ITEMS = 200; // values of a list in a row
const ROWS = 100_000;

const isList = (value) =>
  Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof Uint8Array));

function kindOf(value) {
  if (value === null) return "null";
  if (value instanceof Uint8Array) return `${value.length.toLocaleString("en")} bytes`;
  if (isList(value)) {
    const of = ArrayBuffer.isView(value)
      ? value.constructor.name.replace(/(64)?Array/, "$1").toLowerCase()
      : value.length
        ? typeof value[0]
        : "nothing";
    return `list of ${value.length.toLocaleString("en")} (${of})`;
  }
  return (
    { boolean: "bool", bigint: "integer", string: "text", number: "number" }[typeof value] || "map"
  );
}

function itemText(value) {
  if (typeof value === "string") return JSON.stringify(value);
  if (value instanceof Uint8Array)
    return Array.from(value.subarray(0, ITEMS), (b) => b.toString(16).padStart(2, "0")).join(" ");
  if (isList(value))
    return (
      `[${Array.from(value.slice(0, ITEMS), itemText).join(", ")}` +
      (value.length > ITEMS ? ", …]" : "]")
    );
  if (value instanceof Map) return `{${value.size} entries}`;
  return String(value);
}

const textOf = (value) => (typeof value === "string" ? value : itemText(value));

// Rows of a map; maps inside become paths: "tokenizer.added.0".
export function metadataRows(metadata) {
  const rows = [];
  const waiting = [["", metadata]];
  let omitted = 0;
  while (waiting.length) {
    const [path, value] = waiting.pop();
    if (value instanceof Map && (value.size || !path)) {
      const inside = [...value].map(([key, v]) => [path ? `${path}.${key}` : key, v]);
      waiting.push(...inside.slice(0, ROWS).reverse());
      continue;
    }
    if (rows.length >= ROWS) {
      omitted++;
      continue;
    }
    const text = textOf(value);
    rows.push({
      key: path,
      kind: kindOf(value),
      text: text.slice(0, TEXT),
      length: text.length > TEXT ? text.length : null,
    });
  }
  return { rows, omitted };
}

// The whole text of a value, at most `most` characters.
export function valueText(metadata, path, most = 1_000_000) {
  let text = null;
  const find = (map, prefix) => {
    for (const [key, value] of map) {
      const here = prefix ? `${prefix}.${key}` : key;
      if (here === path && !(value instanceof Map && value.size)) text = textOf(value);
      else if (value instanceof Map && path.startsWith(here + ".")) find(value, here);
    }
  };
  find(metadata, "");
  return text === null ? "" : text.slice(0, most);
}
