// Progress, failures and announcements above the content.

import { byId, element, sizeText } from "./basics.js";
import { isCancelled } from "./client.js";
import { explain } from "./failure.js";

// Tell screen readers.
export function say(text) {
  byId("said").textContent = text;
}

export function clearFailure() {
  byId("failure").hidden = true;
  byId("failure").replaceChildren();
}

let reopen = null; // opens what is shown again

export const onReopen = (act) => (reopen = act);

const REOPENS = ["web/changed", "web/http-status", "web/network", "web/truncated"];

// What the user can do about an error for which the caller offers nothing.
const usualActions = (e) => (REOPENS.includes(e.rule) && reopen ? [{ title: "Open it again", act: reopen }] : []);

// Show an error.  actions: { title, act() }.  name: the file that the error is about.
export function showFailure(e, actions = [], name = "") {
  const { title, text, hint } = explain(e, name);
  const buttons = (actions.length ? actions : usualActions(e)).map(({ title: label, act }) => {
    const button = element("button", { type: "button" }, label);
    button.addEventListener("click", () => {
      clearFailure();
      act();
    });
    return button;
  });
  const close = element("button", { type: "button" }, "Dismiss");
  close.addEventListener("click", clearFailure);
  byId("failure").replaceChildren(
    element(
      "div",
      {},
      element("strong", {}, title + "."),
      element("p", { class: "code" }, text),
      ...(hint ? [element("p", {}, hint)] : []),
    ),
    element("p", { class: "row" }, ...buttons, close),
  );
  byId("failure").hidden = false;
}

let current = null;

function showProgress(what, { bytes, total }) {
  byId("progress-text").textContent = total
    ? `${what}: ${sizeText(bytes)} of ${sizeText(total)}`
    : `${what}: ${sizeText(bytes)}`;
  if (total) {
    byId("progress-bar").max = total;
    byId("progress-bar").value = bytes;
  } else {
    byId("progress-bar").removeAttribute("value");
  }
}

// Run work({ signal, onProgress }) with a bar and a button to cancel; work that is under way is
// cancelled.  Return the result, or undefined if the work was cancelled or failed.
export async function withProgress(what, work, { name, actionsOf = () => [] } = {}) {
  cancelWork();
  clearFailure();
  const stop = (current = new AbortController());
  const later = setTimeout(() => (byId("progress").hidden = current !== stop), 150);
  showProgress(what, { bytes: 0, total: null });
  try {
    return await work({
      signal: stop.signal,
      onProgress: (p) => current === stop && showProgress(what, p),
    });
  } catch (e) {
    if (isCancelled(e)) say(`${what}: cancelled`);
    else showFailure(e, actionsOf(e), name);
    return undefined;
  } finally {
    clearTimeout(later);
    if (current === stop) {
      current = null;
      byId("progress").hidden = true;
    }
  }
}

// Return whether there was work to cancel.
export function cancelWork() {
  if (!current) return false;
  current.abort();
  return true;
}
