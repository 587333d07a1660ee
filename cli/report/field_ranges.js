// The rows and columns of a tensor that the fields of a map of values stand for.

const cut = (i, parts, all) => Math.ceil((i * all) / parts);

// bands: [{ first, rows, lines }], rows of the tensor that are drawn as lines.  Return ranges [from, end) of
// rows for each line, and of columns for each of `width` fields.
export function fieldRanges(bands, width, columns) {
  const rows = bands.flatMap(({ first, rows: all, lines }) =>
    Array.from({ length: lines }, (_, i) => [first + cut(i, lines, all), first + cut(i + 1, lines, all)]));
  return { rows, columns: Array.from({ length: width }, (_, i) => [cut(i, width, columns), cut(i + 1, width, columns)]) };
}
