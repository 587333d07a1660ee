// A page that `heft view` serves, with the files of the models that the command was given.

import { showFailure } from "./status.js";

// Elsewhere no link opens by itself.
const isLoopback = location.protocol === "http:" && ["127.0.0.1", "localhost"].includes(location.hostname);

// The path of a file that the command serves.
export const isServed = (text) => isLoopback && /^\/(far\/)?(model|b)\/./.test(text ?? "");
// Files on this computer; those below /far/ come from a server.
export const isServedHere = (text) => isServed(text) && !text.startsWith("/far/");

// What a command of the user names a model: the paths of the server are known to the page only.
export const nameForCommands = ({ source, given, name }) => source ?? (given && !isServed(given) ? given : name);

let names = null;

// What the command was told to serve at this path: { source, name }; the name is that of the file, unless the
// user named a folder or a repository.
export async function servedNames(path, fileName) {
  names ??= fetch("/names.json").then((answer) => (answer.ok ? answer.json() : {})).catch(() => ({}));
  const source = (await names)[/^\/(?:far\/)?(model|b)\//.exec(path)[1]];
  const last = source?.replace(/\?\.\.\.$/, "").split("/").pop(); // a query is not told
  return { source, name: source === undefined || last === fileName ? fileName : source };
}

// The command ends when no page holds this request open.
async function hold() {
  try {
    const answer = await fetch("/alive", { cache: "no-store" });
    if (!answer.ok) return;
    const reader = answer.body.getReader();
    while (!(await reader.read()).done) continue;
  } catch {
    // The message below says it.
  }
  if (isLeaving) return;
  showFailure({ status: "io", rule: "web/ended", message: "the command heft view has ended" });
}

let isLeaving = false;
const KEY = "served";

function wasServed() {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null; // storage may be forbidden
  }
}

// Of several pages one holds the request: browsers send few requests at once to a server.
export function holdServer(isOwn) {
  if (!isOwn && !wasServed()) return;
  try {
    sessionStorage.setItem(KEY, "yes");
  } catch {
    // The page is held until it is loaded again with another model.
  }
  addEventListener("pagehide", () => (isLeaving = true));
  if (navigator.locks) navigator.locks.request("alive", hold);
  else hold();
}
