// Files and folders that were dropped or chosen: which of them to open.

import { withoutFollowers } from "./numbered.js";

const INDEX = /\.index\.json$|^(model|index)\.json$/i;
const WEIGHTS =
  /\.(safetensors|gguf|pt|pth|bin|ckpt|npy|npz|bpk|mpk|mpk\.gz|msgpack|mag|gptrs|gten|weights|zt|onnx)$/i;
const ONNX = /\.onnx$/i;
const EXTERNAL = /\.(bin|weights)$/i; // often the data of an ONNX file
const paths = new WeakMap(); // of the files of a drop

// All files of the entries of a drop, folders included; at most 10,000.
export async function filesOfDrop(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.some((e) => e.isDirectory)) return [...transfer.files];
  const files = [];
  while (entries.length && files.length < 10_000) {
    const entry = entries.shift();
    if (entry.isFile) {
      const file = await new Promise((done, fail) => entry.file(done, fail));
      paths.set(file, entry.fullPath);
      files.push(file);
    } else entries.push(...(await contentOf(entry)));
  }
  return files;
}

// A promise of what opens the single file of a drop again in a later visit; undefined: nothing does.  Call it before the first await.
export function handleOfDrop(transfer) {
  const items = [...transfer.items].filter((item) => item.kind === "file");
  if (items.length !== 1 || !items[0].getAsFileSystemHandle) return undefined;
  return items[0].getAsFileSystemHandle().then((h) => (h?.kind === "file" ? h : undefined), () => undefined);
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

const folderOf = (file) =>
  (paths.get(file) || file.webkitRelativePath || file.name).replace(/[^/]*$/, "");

// The files in the same folder as a file: names of shards are names in that folder.
export const besides = (file, files) => files.filter((f) => folderOf(f) === folderOf(file));

// The weight files and indexes of a list, of numbered files the first one.
export function candidatesOf(files) {
  const hasOnnx = files.some((f) => ONNX.test(f.name));
  const weights = withoutFollowers(files.filter((f) => WEIGHTS.test(f.name) && !(hasOnnx && EXTERNAL.test(f.name))));
  const indexes = files.filter((f) => INDEX.test(f.name) && /index\.json$/i.test(f.name));
  if (indexes.length) return [...indexes, ...weights.filter((f) => !/-of-\d+\./.test(f.name))];
  return weights.sort((a, b) => b.size - a.size);
}

// The files that may be meant, the most likely one first.
export function candidates(files) {
  const found = files.length > 1 ? candidatesOf(files) : files;
  return found.length ? found : files;
}

// Weight files that are not among the names.
export const otherWeights = (files, names) =>
  files.map((f) => f.name).filter((name) => WEIGHTS.test(name) && !names.includes(name));
