/** What the package needs of a browser. Bundlers find the files by the literal addresses. */
import { HeftError, reasonOf } from "./error.mjs";

async function bytesAt(address) {
    let answer;
    try {
        answer = await fetch(address);
    } catch (e) {
        throw new HeftError("io", `${address} cannot be reached: ${reasonOf(e)}`, { rule: "web/network", cause: e });
    }
    if (!answer.ok)
        throw new HeftError("io", `${address}: HTTP status ${answer.status}`,
                            { rule: "web/http-status", httpStatus: answer.status });
    return answer.arrayBuffer();
}

/** A worker, when it has said that it is ready. */
export function workerReady(start) {
    return new Promise((resolve, reject) => {
        const fail = (why, cause) =>
            reject(new HeftError("io", `the worker cannot be started: ${why}; prepare({ worker }) takes its address`,
                                 { rule: "web/worker", cause }));
        let worker;
        try {
            worker = start();
        } catch (e) {
            fail(reasonOf(e), e);
            return;
        }
        worker.onerror = e => {
            worker.terminate();
            fail(e.message || "its script cannot be loaded", e);
        };
        worker.onmessage = () =>
            resolve({ post: m => worker.postMessage(m), end: () => worker.terminate(), rest: () => {}, wake: () => {},
                      listen: (onMessage, onError) => {
                          worker.onmessage = e => onMessage(e.data);
                          worker.onerror = e => onError(new Error(e.message || "its script failed"));
                      } });
    });
}

function startWorker(at) {
    return workerReady(() => {
        if (typeof at === "function")
            return at();
        return at ? new Worker(at, { type: "module" })
                  : new Worker(new URL("./worker.mjs", import.meta.url), { type: "module" });
    });
}

export const browser = {
    random: globalThis.crypto,
    moduleBytes: kind => bytesAt(kind === "simd" ? new URL("./heft-simd.wasm", import.meta.url)
                                 : kind === "full" ? new URL("./heft-full.wasm", import.meta.url)
                                 : new URL("./heft.wasm", import.meta.url)),
    bytesAt,
    startWorker,
    openPath: () => null,
    isDirect: spec => spec.type !== "url" || !spec.ownFetch,
    processors: () => globalThis.navigator?.hardwareConcurrency || 1,
    canShare: () => Boolean(globalThis.crossOriginIsolated),
    // Requests with If-Range to another origin need the leave of its server, which many refuse.
    mayPin: url => globalThis.location?.origin === new URL(url).origin,
    zstd: () => null,
};
