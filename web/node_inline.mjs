/** The entry for Node with everything inside: no further file is loaded. */
import { Worker } from "node:worker_threads";
import { inlined, inlinedText } from "./inlined.mjs";
import * as files from "./inline_files.mjs";
import { node, threadReady } from "./node_platform.mjs";
import { usePlatform } from "./platform.mjs";

export { HeftError } from "./error.mjs";
export { dtypes, formats, open, prepare, version } from "./model.mjs";

async function startWorker(at) {
    if (at)
        return node.startWorker(at);
    const text = await inlinedText(files.nodeWorker);
    return threadReady(() => new Worker(new URL(`data:text/javascript,${encodeURIComponent(text)}`)));
}

usePlatform({ ...node, startWorker, moduleBytes: async kind =>
    inlined(kind === "full" ? (await import("./inline_full.mjs")).full : files.wasm) });
