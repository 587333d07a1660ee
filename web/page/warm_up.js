// Opens small indexes while the user chooses a file.  Engines compile WebAssembly quickly first, and
// well only once it has run for a while, and systems give memory page by page: without this the
// first index would take several times as long.

import { open, prepare } from "./heft.js";

const TENSORS = 2000;
const RUNS = 24;

function smallIndex() {
  const entry = (_, i) =>
    `"layers.${i >> 3}.w${i & 7}":{"dtype":"F32","shape":[1,1],"data_offsets":[${4 * i},${4 * i + 4}]}`;
  const text = new TextEncoder().encode(`{${Array.from({ length: TENSORS }, entry).join(",")}}`);
  const bytes = new Uint8Array(8 + text.length + 4 * TENSORS);
  new DataView(bytes.buffer).setUint32(0, text.length, true);
  bytes.set(text, 8);
  return bytes;
}

// isNeeded(): nobody waits for an answer.
export async function warmUp(isNeeded) {
  const bytes = smallIndex();
  for (let run = 0; run < RUNS && isNeeded(); run++) {
    const model = await open(bytes);
    model.columns({ count: TENSORS / 8 });
    model.columns();
    await model.close();
    await new Promise((done) => setTimeout(done)); // questions that have come are answered first
  }
  if (isNeeded()) await prepare();
}
