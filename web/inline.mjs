/** The entry for browsers with everything inside: no further file is loaded. */
import { browser, workerReady } from "./browser.mjs";
import { inlined, inlinedText } from "./inlined.mjs";
import * as files from "./inline_files.mjs";
import { usePlatform } from "./platform.mjs";

export { HeftError } from "./error.mjs";
export { dtypes, formats, open, prepare, version } from "./model.mjs";

async function startWorker(at) {
    if (at)
        return browser.startWorker(at);
    const url = URL.createObjectURL(new Blob([await inlinedText(files.worker)], { type: "text/javascript" }));
    try {
        return await workerReady(() => new Worker(url));
    } finally {
        URL.revokeObjectURL(url);
    }
}

usePlatform({ ...browser, startWorker, moduleBytes: async kind =>
    inlined(kind === "full" ? (await import("./inline_full.mjs")).full : files.wasm) });
