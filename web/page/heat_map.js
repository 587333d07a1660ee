// A picture of a matrix: blue for negative means, red for positive ones, and marks where values are
// NaN or infinite.

import { element, realText } from "./basics.js";

// Colours from strong to nothing, in steps that are equal to the eye.
const NEGATIVE = [33, 102, 172];
const POSITIVE = [178, 24, 43];
const ZERO = [247, 247, 247];
// By the bits of heat.kinds: NaN, infinite, both.
const MARKS = [null, [16, 16, 16], [255, 190, 0], [150, 80, 0]];
const NAMES = ["", "NaN: black", "infinite: yellow", "NaN and infinite: brown"];

function paint(pixels, at, [red, green, blue]) {
  pixels.set([red, green, blue, 255], at);
}

function colour(pixels, at, share) {
  const end = share < 0 ? NEGATIVE : POSITIVE;
  const part = Math.min(1, Math.abs(share));
  paint(
    pixels,
    at,
    ZERO.map((zero, k) => zero + (end[k] - zero) * part),
  );
}

// A percentile of the magnitudes, so that a single large value does not make the rest pale.
function scaleOf(means) {
  const sizes = Float32Array.from(means, Math.abs)
    .filter((v) => v > 0)
    .sort();
  return sizes.length ? sizes[Math.floor((sizes.length - 1) * 0.99)] : 1;
}

export function drawHeat({ heat, isWhole }, shape) {
  const { width, height, means, kinds } = heat;
  const marks = NAMES.filter((name, kind) => kind && kinds.includes(kind)).join(", ");
  const scale = scaleOf(means);
  const canvas = element("canvas", {
    width,
    height,
    role: "img",
    class: "heat",
    "aria-label": `Heat map: ${height} by ${width} means, from ${realText(-scale)} (blue) to ${realText(scale)} (red)${marks && `; ${marks}`}`,
  });
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  means.forEach((mean, i) => {
    if (kinds[i]) paint(image.data, 4 * i, MARKS[kinds[i]]);
    else if (mean === mean) colour(image.data, 4 * i, mean / scale);
  });
  context.putImageData(image, 0, 0);
  const columns = shape.length > 1 ? shape[shape.length - 1] : (shape[0] ?? 1);
  canvas.style.aspectRatio =
    height === 1 ? "16 / 1" : `${Math.max(0.5, Math.min(4, width / height))}`;
  const legend = element(
    "figcaption",
    { class: "quiet" },
    `${columns.toLocaleString("en")} columns. Blue: ${realText(-scale)}, red: ${realText(scale)}` +
      (marks && `, ${marks}`) +
      (isWhole ? "." : "; rows of the sample."),
  );
  return element("figure", { class: "heat-figure" }, canvas, legend);
}
