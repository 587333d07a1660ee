// What is shown, in the address of the page: #open=ADDRESS&view=ID&tensor=NAME&as=decoded.  Back and links lead to
// the same view; nothing is fetched because of a link alone.

const KEYS = ["open", "b", "view", "tensor", "as"];

export function stateOfAddress() {
  const all = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(KEYS.map((key) => [key, all.get(key)]).filter(([, value]) => value));
}

const hashOf = (state) => {
  const text = new URLSearchParams(KEYS.filter((key) => state[key]).map((key) => [key, state[key]])).toString();
  return text ? "#" + text.replaceAll("%2F", "/").replaceAll("%3A", ":") : "";
};

// Addresses that the user has opened in this tab: reload and Back may open them again.
const OPENED = "opened";

function openedHere() {
  try {
    return JSON.parse(sessionStorage.getItem(OPENED) || "[]");
  } catch {
    return []; // storage may be forbidden
  }
}

export const wasOpenedHere = (address) => openedHere().includes(address);

export function rememberOpened(address) {
  try {
    const MOST = 50;
    const list = [address, ...openedHere().filter((a) => a !== address)].slice(0, MOST);
    sessionStorage.setItem(OPENED, JSON.stringify(list));
  } catch {
    // A reload then asks again.
  }
}

export class AddressState {
  // went(state, model): the user went back or forward; model: the number of the model, or null.
  constructor(went) {
    this.state = stateOfAddress();
    this.model = null;
    addEventListener("popstate", ({ state }) => {
      const isOther = location.hash && !Object.keys(stateOfAddress()).length; // a link into the page
      if (isOther) return;
      this.state = stateOfAddress();
      went(this.state, state?.model ?? null);
    });
  }

  // Change parts of the state.  isStep: Back returns to the state before.
  set(change, isStep = true) {
    const next = { ...this.state, ...change };
    const hash = hashOf(next);
    const isNew = hash !== hashOf(this.state);
    this.state = next;
    if (!isNew && history.state?.model === this.model) return;
    const url = location.pathname + location.search + hash;
    const entry = { model: this.model };
    if (isStep && isNew) history.pushState(entry, "", url);
    else history.replaceState(entry, "", url);
  }

  // Another model is shown; address: null for a file.  as: "decoded", or undefined.
  opened(model, address, view, as) {
    const isSame = this.model === model || this.state.open === (address ?? undefined);
    this.model = model;
    if (address) rememberOpened(address);
    const { tensor, b } = isSame ? this.state : {};
    this.set({ open: address, view, tensor, b, as });
  }
}
