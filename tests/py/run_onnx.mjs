// run_onnx.mjs DIR FILE...: run each ONNX model without inputs and write its output beside the file.
import { createRequire } from "node:module";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const [dir, ...files] = process.argv.slice(2);
const ort = createRequire(join(dir, "index.js"))("onnxruntime-node");
for (const file of files) {
  const session = await ort.InferenceSession.create(file);
  const { y } = await session.run({});
  writeFileSync(`${file}.out`, new Uint8Array(y.data.buffer, y.data.byteOffset, y.data.byteLength));
}
