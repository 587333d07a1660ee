// Histograms, and shares of a whole.

import { colourOf, element, percentText, realText, shape, sizeText } from "./basics.js";

// Draw the bins as bars in a box of the given size; empty bins stay empty, and bins with few
// values have at least one pixel.
function bars(bins, width, height) {
  const most = Math.max(...bins);
  const step = width / bins.length;
  return bins.map((n, i) => {
    const high = n ? Math.max(1, (n / most) * height) : 0;
    return shape("rect", { class: "bar", x: i * step, y: height - high,
                           width: Math.max(0.5, step - 1), height: high });
  });
}

export function sparkline(bins) {
  const svg = shape("svg", { width: 96, height: 20, "aria-hidden": "true" });
  if (bins.length) svg.append(...bars(bins, 96, 20));
  return svg;
}

// A histogram with the ends of its axis and a title for every bar.
export function histogram(name, bins, min, max) {
  const WIDTH = 560;
  const HEIGHT = 140;
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT + 16}`, width: WIDTH, role: "img" },
                    shape("title", {}, `Distribution of ${name} from ${min} to ${max}`));
  const all = bars(bins, WIDTH, HEIGHT);
  const step = (max - min) / bins.length;
  all.forEach((bar, i) => {
    const range = `${realText(min + i * step)} to ${realText(min + (i + 1) * step)}`;
    bar.append(shape("title", {}, `${range}: ${bins[i].toLocaleString("en")} values`));
  });
  svg.append(...all,
             shape("text", { class: "axis", x: 0, y: HEIGHT + 13 }, realText(min)),
             shape("text", { class: "axis", x: WIDTH, y: HEIGHT + 13, "text-anchor": "end" },
                   realText(max)));
  return svg;
}

// A bar of shares with a legend.  items: { name, bytes, tensors }, the largest first.
export function shares(into, items) {
  const whole = items.reduce((sum, x) => sum + x.bytes, 0);
  const bar = element("div", { class: "shares", role: "img", "aria-label": "Bytes by element type" });
  const legend = element("ul", { class: "legend" });
  items.forEach((x, i) => {
    const piece = element("div", { title: x.name });
    piece.style.width = (whole ? (100 * x.bytes) / whole : 0) + "%";
    piece.style.background = colourOf(i);
    bar.append(piece);
    const text = `${x.name}: ${sizeText(x.bytes)}, ${percentText(x.bytes, whole)}, ` +
                 `${x.tensors.toLocaleString("en")} ${x.tensors === 1 ? "tensor" : "tensors"}`;
    legend.append(element("li", {}, shape("svg", { width: 11, height: 11, "aria-hidden": "true" },
                                          shape("rect", { width: 11, height: 11, rx: 2,
                                                          fill: colourOf(i) })), text));
  });
  into.append(bar, legend);
}
