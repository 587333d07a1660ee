// Details as a sheet over the table in narrow windows; in wide ones they stay beside it.

import { element } from "./basics.js";

// The head of a sheet, which only narrow windows show.  node: the details; back: what gets the focus.
export function sheetHead(node, back) {
  const close = element("button", { type: "button", class: "sheet-close", "aria-label": "Close the details" }, "✕ Close");
  close.addEventListener("click", () => {
    closeSheet(node);
    back?.focus();
  });
  node.classList.add("sheet");
  return close;
}

export const closeSheet = (node) => node.classList.remove("sheet");

// Close the sheet that is open; return whether there was one that covers the page.
export function closeAnySheet() {
  const open = [...document.querySelectorAll(".detail.sheet")].find((d) => getComputedStyle(d).position === "fixed" && d.offsetHeight);
  open?.querySelector(".sheet-close")?.click();
  return Boolean(open);
}
