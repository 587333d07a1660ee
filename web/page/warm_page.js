// Shows a small table where nobody sees it while the user chooses a file.  Browsers load the rules
// for numbers, fonts and code when they are first used: without this the first rows of a file would
// come 30 to 60 ms later.

import { element } from "./basics.js";
import { Table } from "./table.js";
import { TENSOR_COLUMNS } from "./tensor_view.js";

const ROWS = 40;

const source = {
  total: ROWS,
  length: ROWS,
  at: (i) => ({
    id: i,
    name: `layers.${i}.weight`,
    dtype: "F32",
    shape: [64, i],
    elements: 64 * i,
    bytes: 256 * i,
    offset: 100_000 * i,
  }),
  arrange() {},
};

function show() {
  const into = element("div", { class: "visually-hidden", "aria-hidden": "true", inert: "" });
  document.body.append(into);
  const columns = TENSOR_COLUMNS;
  const table = new Table({ into, label: "", columns, source, searchable: false });
  into.querySelectorAll("td:first-child").forEach((cell) => cell.classList.add("code"));
  table.refresh();
  into.remove();
}

// isNeeded(): no file is open yet.
export function warmPage(isNeeded) {
  const whenIdle = globalThis.requestIdleCallback || setTimeout;
  whenIdle(() => isNeeded() && show());
}
