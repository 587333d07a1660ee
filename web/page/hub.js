// Addresses of the Hugging Face hub: hf://[datasets/]OWNER/NAME[@REVISION][/PATH], OWNER/NAME[@REVISION], and
// links to its pages and files.

import { withoutFollowers, isSameSet, numbered } from "./numbered.js";
import { candidatesOf } from "./openable.js";

const HUB = "https://huggingface.co/";
const ADDRESS =
  /^hf:(?:\/\/)?(datasets\/|spaces\/)?([^/@]+)\/([^/@]+)(?:@(refs\/(?:pr|convert)\/[^/]+|[^/]+))?(?:\/(.*))?$/i;
const LINK = /^(?:https?:\/\/)?(?:www\.)?(?:huggingface\.co|hf\.co)\//i;
const INSIDE = /^(datasets\/|spaces\/)?([^/]+)\/([^/]+)(?:\/(?:blob|resolve|tree|raw)\/(refs\/(?:pr|convert)\/[^/]+|[^/]+)(?:\/(.*))?)?(?:\/.*)?$/;
const SHORT = /^[\w.-]+\/[\w.-]+(@(refs\/(pr|convert)\/)?[^/\s]+)?$/;

// Files that stand for a folder, in the order of docs/shards.md.
const MAIN = [
  ...["model", "diffusion_pytorch_model", "consolidated"].flatMap((stem) => [
    `${stem}.safetensors`,
    `${stem}.safetensors.index.json`,
  ]),
  "adapter_model.safetensors",
  ...["pytorch_model", "diffusion_pytorch_model"].flatMap((stem) => [`${stem}.bin`, `${stem}.bin.index.json`]),
];

const isWeights = (path) => candidatesOf([{ name: nameOf(path), size: 0 }]).length > 0;
// example.org/model.gguf is no repository.
const isShort = (text) => SHORT.test(text) && !isWeights(text);

export const isHubAddress = (text) => /^hf:/i.test(text.trim()) || LINK.test(text.trim()) || isShort(text.trim());

const nameOf = (path) => path.split("/").pop();

function failure(message, rule, httpStatus = null) {
  const status = rule === "web/address" ? "argument" : "io";
  return Object.assign(new Error(message), { status, rule, httpStatus, offset: null });
}

// The path of a link without its query, escapes decoded; null: it is none.
function insideOf(text) {
  try {
    return decodeURIComponent(text.replace(LINK, "").replace(/[?#].*$/, "").replace(/\/+$/, ""));
  } catch {
    return null;
  }
}

// Return { kind, repository, revision, path }.
export function parseHub(text) {
  const given = text.trim();
  const isLink = LINK.test(given);
  const inside = isLink ? insideOf(given) : null;
  const found = isLink ? INSIDE.exec(inside ?? "") : ADDRESS.exec(isShort(given) ? `hf://${given}` : given);
  if (!found)
    throw failure(`${text} is not an address of the hub: hf://OWNER/NAME, hf://OWNER/NAME@REVISION/FILE`, "web/address");
  const [, kind = "", owner, name, revision = "main", path = ""] = found;
  return { kind, repository: `${owner}/${name}`, revision, path: path.replace(/\/+$/, "") };
}

// The same address for links of the page.
export function hubAddress(text) {
  const { kind, repository, revision, path } = parseHub(text);
  return `hf://${kind}${repository}${revision === "main" ? "" : "@" + revision}${path && "/" + path}`;
}

const encoded = (path) => path.split("/").map(encodeURIComponent).join("/");

const fileUrl = ({ kind, repository }, revision, path) =>
  `${HUB}${kind}${repository}/resolve/${encodeURIComponent(revision)}/${encoded(path)}`;

async function listOf({ kind, repository, revision }, signal) {
  const api = `${HUB}api/${kind || "models/"}${repository}/revision/${encodeURIComponent(revision)}`;
  let answer;
  try {
    answer = await fetch(`${api}?blobs=true`, { signal, credentials: "omit", referrerPolicy: "no-referrer" });
  } catch (e) {
    if (signal?.aborted) throw e;
    throw failure(`${api} cannot be reached`, "web/network");
  }
  if (!answer.ok) {
    const rule = answer.status === 404 ? "web/not-found" : "web/http-status";
    const why =
      answer.status === 401 || answer.status === 404
        ? ": there is no such repository or revision, or it needs a login"
        : "";
    throw failure(`${api}: HTTP status ${answer.status}${why}`, rule, answer.status);
  }
  const { sha, siblings = [] } = await answer.json();
  const sizes = new Map(siblings.map((s) => [s.rfilename, typeof s.size === "number" ? s.size : undefined]));
  return { sha, names: [...sizes.keys()], sizes };
}

const folderOf = (path) => path.slice(0, path.length - nameOf(path).length);
const STEM = /^(.*)\.(safetensors|bin)\.index\.json$/;

// The files of a model, of which `path` is the file that is opened: an index, the first one of a set, or an
// ONNX file with external data.
function filesOf(path, names) {
  const own = numbered(path);
  const [, stem, suffix] = STEM.exec(path) ?? [];
  return names.filter((n) => {
    const other = numbered(n);
    const isBeside = path.endsWith(".onnx") && (n === `${path}.data` || n.startsWith(`${path}_data`));
    return n === path || isBeside || isSameSet(own, other) || Boolean(other && stem !== undefined && other.stem === stem && other.suffix === `.${suffix}`);
  });
}

// The files with weights of a repository, those that stand for a whole model first: { path, size, files }.
function weightsOf(inside, sizeOf) {
  const listed = inside.map((name) => ({ name, size: 0 }));
  const folders = new Map();
  for (const f of listed) folders.set(folderOf(f.name), [...(folders.get(folderOf(f.name)) ?? []), f]);
  const found = [...folders.values()].flatMap((files) => candidatesOf(withoutFollowers(files)).map((f) => f.name));
  const place = (path) => {
    const at = MAIN.indexOf(path);
    return at < 0 ? MAIN.length + path.split("/").length : at;
  };
  const all = found.map((path) => {
    const files = filesOf(path, inside);
    const sizes = files.map(sizeOf);
    return { path, files: files.filter((n) => !n.endsWith(".index.json")).length, size: sizes.includes(undefined) ? undefined : sizes.reduce((a, b) => a + b, 0) };
  });
  return all.sort((a, b) => place(a.path) - place(b.path) || a.path.localeCompare(b.path, "en", { numeric: true }));
}

// Return { choices: [{ url, name, path, size, note }] }: the files that an address may mean, the most likely one
// first; isClear: the first one is meant.
export async function resolveHub(text, signal) {
  const hub = parseHub(text);
  if (isWeights(hub.path))
    return { isClear: true, choices: [{ url: fileUrl(hub, hub.revision, hub.path), name: nameOf(hub.path) }] };
  const { sha, names, sizes } = await listOf(hub, signal);
  if (hub.path && names.includes(hub.path))
    return { isClear: true, choices: [{ url: fileUrl(hub, sha || hub.revision, hub.path), name: nameOf(hub.path) }] };
  const folder = hub.path ? `${hub.path}/` : "";
  const inside = names.filter((n) => n.startsWith(folder)).map((n) => n.slice(folder.length));
  const found = weightsOf(inside, (path) => sizes.get(folder + path));
  if (!found.length)
    throw failure(`${hub.repository}${hub.path && `, folder ${hub.path}`}: there is no file with weights`, "web/not-found");
  const choices = found.map(({ path, files, size }) => ({
    url: fileUrl(hub, sha || hub.revision, folder + path),
    name: nameOf(path),
    path,
    size,
    note: [MAIN.includes(path) ? "the whole model" : "", files > 1 ? `${files.toLocaleString("en")} files` : ""].filter(Boolean).join(", "),
  }));
  return { isClear: found.length === 1, choices };
}
