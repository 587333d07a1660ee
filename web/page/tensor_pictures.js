// Statistics, distribution and heat map of a tensor's values.

import { element, percentText, realText } from "./basics.js";
import { histogram } from "./charts.js";
import { drawHeat } from "./heat_map.js";

const countOf = (n) => n.toLocaleString("en");

// facts: [title, text]
export function factsList(facts, kind = "") {
  return element(
    "dl",
    { class: "facts " + kind },
    ...facts.flatMap(([title, text]) => [element("dt", {}, title), element("dd", {}, text)]),
  );
}

function statistics(f) {
  return [
    ["Values", f.isWhole ? countOf(f.count) : `${countOf(f.count)} of ${countOf(f.all)} (sample)`],
    ["Minimum", realText(f.min)],
    ["Maximum", realText(f.max)],
    ["Mean", realText(f.mean)],
    ["Std deviation", realText(f.std)],
    ["Zeros", `${countOf(f.zeros)} (${percentText(f.zeros, f.count)})`],
    ["NaN", countOf(f.nan)],
    ["Infinite", countOf(f.inf)],
  ];
}

// Return nodes for the answer of the worker to "survey".  readAll(): a button of a sample calls it.
export function pictures(name, { part, figures }, readAll) {
  if (!figures) {
    const text = `Values of the type ${part.dtype} are not decoded; the bytes are shown in hexadecimal.`;
    return [element("p", { class: "quiet" }, text)];
  }
  const nodes = [element("h3", {}, "Values"), factsList(statistics(figures), "pairs")];
  if (!figures.isWhole && readAll) {
    const button = element("button", { type: "button" }, `Read all ${countOf(figures.all)} values`);
    button.addEventListener("click", readAll);
    nodes.push(element("p", {}, button));
  }
  if (figures.bins.length && figures.min < figures.max)
    nodes.push(
      element("h3", {}, "Distribution"),
      histogram(name, figures.bins, figures.min, figures.max),
    );
  if (figures.finite) nodes.push(element("h3", {}, "Heat map"), drawHeat(figures, part.shape));
  return nodes;
}
