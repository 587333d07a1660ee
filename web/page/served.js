// A page that `heft view` serves, with the files of the models that the command was given.

import { showFailure } from "./status.js";

// Elsewhere no link opens by itself.
const isLoopback = location.protocol === "http:" && ["127.0.0.1", "localhost"].includes(location.hostname);

// The path of a file that the command serves.
export const isServed = (text) => isLoopback && /^\/(far\/)?(model|b)\/./.test(text ?? "");
// Files on this computer; those below /far/ come from a server.
export const isServedHere = (text) => isServed(text) && !text.startsWith("/far/");

// What a command of the user names a model: the paths of the server are known to the page only.
export const nameForCommands = ({ given, name }) => (given && !isServed(given) ? given : name);

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
  const message = "The command heft view has ended: nothing more can be read. Run it again.";
  showFailure({ status: "io", rule: "web/network", message });
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
