/** What the package needs of Node: files, threads, randomness, zstd. */
import * as fs from "node:fs/promises";
import { webcrypto } from "node:crypto";
import os from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import zlib from "node:zlib";
import { HeftError, reasonOf } from "./error.mjs";
import { baseName } from "./input.mjs";

class PathInput {
    static async open(path) {
        let file;
        try {
            file = await fs.open(path);
            const stat = await file.stat();
            if (!stat.isFile())
                throw new HeftError("io", `${path} is not a regular file`, { rule: "web/read" });
            return new PathInput(file, path, stat);
        } catch (e) {
            await file?.close();
            if (e instanceof HeftError)
                throw e;
            throw new HeftError("io", e.code === "ENOENT" ? `there is no file ${path}` : `${path}: ${e.message}`,
                                { rule: e.code === "ENOENT" ? "web/not-found" : "web/read", cause: e });
        }
    }

    constructor(file, path, stat) {
        this.file = file;
        this.path = path;
        this.size = stat.size;
        this.changed = stat.mtimeMs;
        this.name = baseName(path);
        this.spec = { type: "path", path, size: stat.size, changed: stat.mtimeMs };
    }

    async read(offset, length) {
        const bytes = new Uint8Array(length);
        let done = 0;
        while (done < length) {
            const { bytesRead } = await this.file.read(bytes, done, length - done, offset + done);
            if (!bytesRead)
                break;
            done += bytesRead;
        }
        const stat = await this.file.stat();
        if (stat.mtimeMs !== this.changed || stat.size !== this.size)
            throw new HeftError("io", `${this.path} was changed while it was read; open the file again`,
                                { rule: "web/changed", offset });
        return bytes.subarray(0, done);
    }

    async sibling(name) {
        return join(dirname(this.path), name);
    }

    async close() {
        await this.file.close();
    }
}

/** The path that an input names: every text that is not an address, and file: addresses. */
function pathOf(input) {
    const text = String(input);
    if (/^file:/i.test(text))
        return fileURLToPath(text);
    return typeof input === "string" && !/^(https?|data|blob):/i.test(text) ? text : null;
}

async function openPath(input) {
    const path = pathOf(input);
    return path === null ? null : PathInput.open(path);
}

async function bytesAt(address) {
    const path = pathOf(address);
    return path === null ? new Uint8Array(await (await fetch(address)).arrayBuffer()) : fs.readFile(path);
}

/** A worker of worker_threads, when it has said that it is ready. */
export function threadReady(start) {
    return new Promise((resolve, reject) => {
        const fail = e => reject(new HeftError("io", `the worker cannot be started: ${reasonOf(e)}`,
                                               { rule: "web/worker", cause: e }));
        try {
            const worker = start();
            worker.once("error", fail).once("message", () => {
                worker.removeAllListeners("error");
                resolve({ post: m => worker.postMessage(m), end: () => worker.terminate(),
                          rest: () => worker.unref(), wake: () => worker.ref(),
                          listen: (onMessage, onError) => {
                              worker.removeAllListeners("message").removeAllListeners("error");
                              worker.on("message", onMessage).on("error", onError);
                          } });
            });
        } catch (e) {
            fail(e);
        }
    });
}

function startWorker(at = new URL("./node_worker.mjs", import.meta.url)) {
    return threadReady(() => (typeof at === "function" ? at() : new Worker(at)));
}

export const node = {
    random: webcrypto,
    moduleBytes: kind => fs.readFile(kind === "simd" ? new URL("./heft-simd.wasm", import.meta.url)
                                     : kind === "full" ? new URL("./heft-full.wasm", import.meta.url)
                                     : new URL("./heft.wasm", import.meta.url)),
    bytesAt,
    startWorker,
    openPath,
    isDirect: spec => spec.type === "bytes" || spec.type === "path",
    canShare: () => true,
    processors: () => os.availableParallelism(),
    mayPin: () => true,
    zstd: () => zlib.zstdDecompressSync && (bytes => new Uint8Array(zlib.zstdDecompressSync(bytes))),
};
