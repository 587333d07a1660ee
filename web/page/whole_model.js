// The answer to "open" has the first rows; the columns of all tensors, and their sums, are asked for
// when the first rows can be seen.

// A promise that the browser has painted what is in the document now.  Pages that cannot be seen
// paint nothing: they do not wait for long.
export function painted() {
  const LONGEST = 250; // milliseconds
  return new Promise((done) => {
    requestAnimationFrame(() => setTimeout(done));
    setTimeout(done, LONGEST);
  });
}

// Add the columns and sums to a model that has been opened.
export async function complete(client, m, options) {
  if (!m.columns) Object.assign(m, await client.ask("rest", { model: m.id }, options));
  return m;
}

// Open a model with its columns and sums.
export async function openWhole(client, what, options) {
  const m = await client.ask("open", what, options);
  try {
    return await complete(client, m, options);
  } catch (e) {
    client.ask("close", { model: m.id });
    throw e;
  }
}
