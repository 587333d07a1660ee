// Files and addresses that were opened before.  Files are remembered where the browser gives handles of
// them; it asks before one is read again.  Nothing of their content is kept.

import { byId, element } from "./basics.js";
import { cut, nameText } from "./names.js";

const MOST = 8;
const STORE = "recent";

function database() {
  return new Promise((done, fail) => {
    const asked = indexedDB.open("heft-page", 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore(STORE, { keyPath: "key" });
    asked.onsuccess = () => done(asked.result);
    asked.onerror = () => fail(asked.error);
  });
}

// Run act(store) in a transaction; undefined if the browser keeps nothing.
async function within(mode, act) {
  try {
    const db = await database();
    return await new Promise((done, fail) => {
      const work = db.transaction(STORE, mode);
      const asked = act(work.objectStore(STORE));
      work.oncomplete = () => done(asked?.result);
      work.onerror = work.onabort = () => fail(work.error);
    }).finally(() => db.close());
  } catch {
    return undefined; // storage may be forbidden: then nothing is remembered
  }
}

const all = async () => ((await within("readonly", (store) => store.getAll())) || []).sort((a, b) => b.time - a.time);

// entry: { key, name, address } or { key, name, handle }
export async function remember(entry) {
  await within("readwrite", (store) => store.put({ ...entry, time: Date.now() }));
  for (const { key } of (await all()).slice(MOST)) await within("readwrite", (store) => store.delete(key));
}

const forget = (key) => within("readwrite", (store) => (key === undefined ? store.clear() : store.delete(key)));

async function fileOf(handle) {
  if ((await handle.queryPermission?.({ mode: "read" })) !== "granted" && (await handle.requestPermission?.({ mode: "read" })) !== "granted") return null;
  return handle.getFile();
}

// Show the list.  open: { address(text), file(file, handle), failed(error) }
export async function showRecent(open) {
  const list = await all();
  const into = byId("recent");
  into.hidden = !list.length;
  if (!list.length) return;
  const item = ({ key, name, address, handle }) => {
    const button = element("button", { type: "button" }, cut(nameText(name), 80));
    button.addEventListener("click", async () => {
      if (address) return open.address(address);
      try {
        const file = await fileOf(handle);
        if (file) open.file(file, handle);
      } catch (e) {
        await forget(key);
        await showRecent(open);
        open.failed(e);
      }
    });
    return element("li", {}, button, element("span", { class: "quiet" }, address ? ` ${cut(nameText(address), 100)}` : " on this computer"));
  };
  const clear = element("button", { type: "button", class: "small" }, "Forget these");
  clear.addEventListener("click", async () => {
    await forget();
    into.hidden = true;
  });
  into.replaceChildren(element("h3", {}, "Opened before"), element("ul", {}, ...list.map(item)), element("p", {}, clear));
}
