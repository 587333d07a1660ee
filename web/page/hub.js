// Addresses of the Hugging Face hub: hf://[datasets/]OWNER/NAME[@REVISION][/PATH].

import { candidatesOf } from "./openable.js";

const HUB = "https://huggingface.co/";
const ADDRESS =
  /^hf:(?:\/\/)?(datasets\/|spaces\/)?([^/@]+)\/([^/@]+)(?:@(refs\/(?:pr|convert)\/[^/]+|[^/]+))?(?:\/(.*))?$/;

// Files that stand for a folder, in the order of docs/shards.md.
const MAIN = [
  ...["model", "diffusion_pytorch_model", "consolidated"].flatMap((stem) => [
    `${stem}.safetensors`,
    `${stem}.safetensors.index.json`,
  ]),
  "adapter_model.safetensors",
  ...["pytorch_model", "diffusion_pytorch_model"].flatMap((stem) => [`${stem}.bin`, `${stem}.bin.index.json`]),
];

export const isHubAddress = (text) => /^hf:/i.test(text.trim());

function failure(message, rule, httpStatus = null) {
  const status = rule ? "io" : "argument";
  return Object.assign(new Error(message), { status, rule, httpStatus, offset: null });
}

// Return { kind, repository, revision, path }.
export function parseHub(text) {
  const found = ADDRESS.exec(text.trim());
  if (!found)
    throw failure(`${text} is not an address of the hub: hf://OWNER/NAME, hf://OWNER/NAME@REVISION/FILE`);
  const [, kind = "", owner, name, revision = "main", path = ""] = found;
  return { kind, repository: `${owner}/${name}`, revision, path: path.replace(/\/+$/, "") };
}

const encoded = (path) => path.split("/").map(encodeURIComponent).join("/");

const fileUrl = ({ kind, repository }, revision, path) =>
  `${HUB}${kind}${repository}/resolve/${encodeURIComponent(revision)}/${encoded(path)}`;

async function listOf({ kind, repository, revision }, signal) {
  const api = `${HUB}api/${kind || "models/"}${repository}/revision/${encodeURIComponent(revision)}`;
  let answer;
  try {
    answer = await fetch(api, { signal, credentials: "omit", referrerPolicy: "no-referrer" });
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
  return { sha, names: siblings.map((s) => s.rfilename) };
}

// Return { choices: [{ url, name }] }: the files that an address may mean, the most likely one first;
// isClear: the first one is meant.
export async function resolveHub(text, signal) {
  const hub = parseHub(text);
  const nameOf = (path) => path.split("/").pop();
  if (candidatesOf([{ name: nameOf(hub.path), size: 0 }]).length)
    return { isClear: true, choices: [{ url: fileUrl(hub, hub.revision, hub.path), name: nameOf(hub.path) }] };
  const { sha, names } = await listOf(hub, signal);
  const folder = hub.path ? `${hub.path}/` : "";
  const inside = names.filter((n) => n.startsWith(folder)).map((n) => n.slice(folder.length));
  if (hub.path && names.includes(hub.path)) inside.splice(0, inside.length, "");
  const choice = (path) => ({
    url: fileUrl(hub, sha || hub.revision, path ? folder + path : hub.path),
    name: nameOf(path || hub.path),
  });
  const main = MAIN.find((name) => inside.includes(name));
  if (main !== undefined) return { isClear: true, choices: [choice(main)] };
  if (inside[0] === "") return { isClear: true, choices: [choice("")] };
  const here = candidatesOf(inside.filter((n) => !n.includes("/")).map((name) => ({ name, size: 0 })));
  const below = candidatesOf(inside.filter((n) => n.includes("/")).map((name) => ({ name, size: 0 })));
  const found = here.length ? here : below;
  if (!found.length)
    throw failure(`${hub.repository}${hub.path && `, folder ${hub.path}`}: there is no file with weights`, "web/not-found");
  return { isClear: found.length === 1, choices: found.map((f) => ({ ...choice(f.name), path: f.name })) };
}
