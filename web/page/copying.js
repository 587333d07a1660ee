// Texts for the clipboard, and files that the page makes.

import { element } from "./basics.js";
import { say } from "./status.js";

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text); // pages of file:// and older browsers have no such clipboard
  }
}

function copyBySelection(text) {
  const field = element("textarea", { class: "visually-hidden", "aria-hidden": "true", tabindex: "-1" });
  field.value = text;
  (document.querySelector("dialog[open]") || document.body).append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  return isCopied;
}

// A button that copies a text, or what text() returns or promises.
export function copying(title, text) {
  const made = element("button", { type: "button", class: "small" }, title);
  made.addEventListener("click", async () => {
    const value = typeof text === "function" ? await text() : text;
    if (value === undefined) return;
    const isCopied = await copy(value);
    made.textContent = isCopied ? "Copied" : "Not copied";
    say(isCopied ? "Copied." : "The browser refuses to copy.");
    setTimeout(() => (made.textContent = title), 1500);
  });
  return made;
}

// The command that shows the same, and a button that copies the command.
export function copyButton(command) {
  return element("p", { class: "command row" }, element("code", {}, command), copying("Copy the command", command));
}

// Offer a file for download.  parts: what Blob takes.
export function save(name, parts, type = "application/octet-stream") {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  const link = element("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
