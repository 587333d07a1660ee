// Files of a model that are numbered: "model-00001-of-00003.safetensors".

const NUMBERED = /^(.+?)-(\d+)-of-(\d+)(\..+)$/;

// Return { stem, number, count, suffix, digits }, or null.  Numbers begin with 1, or with 0.
export function numbered(name) {
  const found = NUMBERED.exec(name ?? "");
  if (!found) return null;
  const [, stem, number, count, suffix] = found;
  return { stem, number: Number(number), count: Number(count), suffix, digits: number.length };
}

export const isSameSet = (a, b) =>
  Boolean(a && b) && a.stem === b.stem && a.count === b.count && a.suffix === b.suffix;

const padded = (n, digits) => String(n).padStart(digits, "0");

// The names of all files of the set of a name; hasZero: a file with the number 0 is there.
export function namesOfSet({ stem, count, suffix, digits }, hasZero) {
  const MOST = 4096;
  return Array.from({ length: Math.min(count, MOST) }, (_, i) => {
    const number = padded(hasZero ? i : i + 1, digits);
    return `${stem}-${number}-of-${padded(count, digits)}${suffix}`;
  });
}

// Of each set the file with the lowest number, and all files without a number.
export function withoutFollowers(files) {
  return files.filter((file) => {
    const own = numbered(file.name);
    return !files.some((other) => {
      const n = numbered(other.name);
      return isSameSet(own, n) && n.number < own.number;
    });
  });
}

// The core joins the sets of these formats by itself.
const JOINED_BY_CORE = /\.(gguf|zt)$/i;

// Open all files of a set, and return { input, resolve, missing }: an index of them as a file, what
// gives the files, and the names of files that are not there.  open(name): a promise of a model, or
// of null.  give(name): what open() of the package takes.
export async function indexOfSet(names, open, give) {
  const map = new Map();
  const missing = [];
  for (const name of names) {
    const model = await open(name);
    if (!model) missing.push(name);
    else for (const tensor of tensorNames(model)) map.set(tensor, name);
    await model?.close();
  }
  const pairs = [...map].map(([key, name]) => `${JSON.stringify(key)}:${JSON.stringify(name)}`);
  const text = `{"metadata":{},"weight_map":{${pairs.join(",")}}}`;
  return { input: new TextEncoder().encode(text), resolve: give, missing };
}

function tensorNames(model) {
  const all = model.columns();
  return Array.from({ length: all.count }, (_, i) => all.name(i));
}

export const isJoinedHere = (name) => Boolean(numbered(name)) && !JOINED_BY_CORE.test(name);
