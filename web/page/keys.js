// Shortcuts of the keyboard, the list of them, and the switch of colours.

import { byId, element } from "./basics.js";

const isTyping = (node) => node.closest("input, textarea, select, [contenteditable]") !== null;

function stored(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null; // storage may be forbidden
  }
}

function store(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // The choice then lasts until the page is closed.
  }
}

// shortcuts: { key, title, act() }; keys without letters are documented only.
export function listenToKeys(shortcuts) {
  const single = byId("single-keys");
  single.checked = stored("single-keys") !== "off";
  single.addEventListener("change", () => store("single-keys", single.checked ? "on" : "off"));
  byId("help-list").replaceChildren(
    ...shortcuts
      .filter((s) => s.title)
      .flatMap(({ key, shown, title }) => [
        element("dt", {}, element("kbd", {}, shown || key.toUpperCase())),
        element("dd", {}, title),
      ]),
  );
  byId("help-button").addEventListener("click", () => byId("help").showModal());
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || byId("help").open || e.defaultPrevented) return;
    const found = shortcuts.find((s) => s.key === e.key || s.key === e.key.toLowerCase());
    if (!found?.act || (e.key !== "Escape" && (!single.checked || isTyping(e.target)))) return;
    if (found.act(e) !== false) e.preventDefault();
  });
}

const NAMES = { system: "◐ System", light: "○ Light", dark: "● Dark" };

export function listenToTheme() {
  const show = () => {
    byId("theme-switch").textContent = NAMES[document.documentElement.dataset.theme || "system"];
  };
  byId("theme-switch").addEventListener("click", switchTheme);
  show();
}

export function switchTheme() {
  const root = document.documentElement;
  const to = { system: "light", light: "dark", dark: "system" }[root.dataset.theme || "system"];
  if (to === "system") delete root.dataset.theme;
  else root.dataset.theme = to;
  store("theme", to);
  byId("theme-switch").textContent = NAMES[to];
}
