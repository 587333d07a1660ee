// Files and folders that were dropped or chosen: which of them to open.

const INDEX = /\.index\.json$|^(model|index)\.json$/i;
const WEIGHTS =
  /\.(safetensors|gguf|pt|pth|bin|ckpt|npy|npz|bpk|mpk|mpk\.gz|mag|gptrs|gten|weights|zt)$/i;
const FIRST_SHARD = /-0*[01]-of-\d+\./;

// All files of the entries of a drop, folders included; at most 10,000.
export async function filesOfDrop(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.some((e) => e.isDirectory)) return [...transfer.files];
  const files = [];
  while (entries.length && files.length < 10_000) {
    const entry = entries.shift();
    if (entry.isFile) files.push(await new Promise((done, fail) => entry.file(done, fail)));
    else entries.push(...(await contentOf(entry)));
  }
  return files;
}

// A reader gives a folder in pieces; an empty piece is the end.
async function contentOf(folder) {
  const reader = folder.createReader();
  const all = [];
  for (;;) {
    const some = await new Promise((done, fail) => reader.readEntries(done, fail));
    if (!some.length) return all;
    all.push(...some);
  }
}

// The files that may be meant, the most likely one first.
export function candidates(files) {
  const weights = files.filter((f) => WEIGHTS.test(f.name));
  const indexes = files.filter(
    (f) => INDEX.test(f.name) && files.length > 1 && /index\.json$/i.test(f.name),
  );
  if (indexes.length) return [...indexes, ...weights.filter((f) => !/-of-\d+\./.test(f.name))];
  const whole = weights.filter((f) => !/-of-\d+\./.test(f.name) || FIRST_SHARD.test(f.name));
  const found = whole.length ? whole : weights.length ? weights : files;
  return found.sort((a, b) => b.size - a.size);
}
