/** The worker: reads without waiting for events, so that the core runs from beginning to end. */
import { AGAIN, Core, NONE, isNode, loadModule } from "./core.mjs";
import { HeftError, packError } from "./error.mjs";
import { readFinding } from "./model.mjs";
import { diff } from "./diff.mjs";

const WINDOW = 1 << 20;
const PROGRESS_MS = 100;

/** ---- sources: read(offset, bytes) fills bytes --------------------------------------------- */

function bytesReader({ bytes }) {
    return { size: bytes.length, read: (offset, to) => to.set(bytes.subarray(offset, offset + to.length)) };
}

function blobReader({ blob }) {
    const reader = new FileReaderSync();
    return { size: blob.size,
             read: (offset, to) => to.set(new Uint8Array(reader.readAsArrayBuffer(blob.slice(offset, offset + to.length)))) };
}

function pathReader(fs, { path, size, changed }) {
    const file = fs.openSync(path, "r");
    const check = () => {
        const stat = fs.fstatSync(file);
        if (stat.size !== size || stat.mtimeMs !== changed)
            throw new HeftError("io", `${path} was changed while it was read; open the file again`, { rule: "web/changed" });
    };
    check();
    return { size, check, read: (offset, to) => {
        for (let done = 0; done < to.length;) {
            const n = fs.readSync(file, to, done, to.length - done, offset + done);
            if (!n)
                throw new HeftError("io", `${path} ended early, at byte ${offset + done}`, { rule: "web/truncated", offset });
            done += n;
        }
    } };
}

function proxyReader({ size, index }, shared, post) {
    const flag = new Int32Array(shared, 0, 2), bytes = new Uint8Array(shared, 8);
    return { size, read: (offset, to) => {
        for (let done = 0; done < to.length;) {
            const length = Math.min(WINDOW, to.length - done);
            Atomics.store(flag, 0, 0);
            post({ type: "read", index, offset: offset + done, length });
            Atomics.wait(flag, 0, 0);
            if (Atomics.load(flag, 0) !== 1)
                throw new HeftError("io", "the input could not be read", { rule: "web/read", offset });
            to.set(bytes.subarray(0, length), done);
            done += length;
        }
    } };
}

function urlReader({ url, size, pinned, mayPin }) {
    const what = new URL(url).origin + new URL(url).pathname;
    const io = (message, rule, offset) => new HeftError("io", `${what}${message}`, { rule, offset });
    return { size, read: ahead(size, (offset, length) => {
        const request = new XMLHttpRequest();
        request.open("GET", url, false);
        request.responseType = "arraybuffer";
        request.setRequestHeader("Range", `bytes=${offset}-${offset + length - 1}`);
        const pin = pinned.etag && !pinned.etag.startsWith("W/") ? pinned.etag : pinned.modified;
        if (pin && mayPin)
            request.setRequestHeader("If-Range", pin);
        try {
            request.send();
        } catch {
            throw io(" cannot be reached, or does not allow this page to read it (CORS)", "web/network", offset);
        }
        const same = request.status === 206 && request.getResponseHeader("etag") === pinned.etag &&
                     request.getResponseHeader("last-modified") === pinned.modified;
        if (request.status !== 206 && request.status !== 200)
            throw io(`: the server answered with HTTP status ${request.status}`, "web/http-status", offset);
        if (!same)
            throw io(" was changed while it was read; open it again", "web/changed", offset);
        if (request.response?.byteLength !== length)
            throw io(": the answer ended early; try again", "web/truncated", offset);
        return new Uint8Array(request.response);
    }) };
}

/** Read in windows of a few MiB, because each request takes a round trip. */
function ahead(size, read) {
    const AHEAD = 8 << 20;
    let at = 0, window = new Uint8Array(0);
    return (offset, to) => {
        for (let done = 0; done < to.length;) {
            const from = offset + done;
            if (from < at || from >= at + window.length) {
                window = read(from, Math.min(Math.max(AHEAD, to.length - done), size - from));
                at = from;
            }
            const part = window.subarray(from - at, from - at + to.length - done);
            to.set(part, done);
            done += part.length;
        }
    };
}

function readerOf(spec, fs, shared, post) {
    const make = { bytes: bytesReader, blob: blobReader, url: urlReader, path: s => pathReader(fs, s),
                   proxy: s => proxyReader(s, shared, post) };
    return make[spec.type](spec);
}

/** ---- models ------------------------------------------------------------------------------- */

/** An instance in which the models of a task are open. */
class Opened {
    constructor(module, post) {
        this.sources = [];
        this.shards = [];
        this.findings = [];
        this.last = 0;
        this.post = post;
        this.core = new Core(module, {
            read: (source, offset, to) => (this.sources[source].read(offset, to), true),
            size: source => this.sources[source].size,
            openShard: (model, name) => this.shards.find(s => s.first === model)?.names.get(name) ?? -1,
            progress: (done, total) => this.progress(done, total),
            finding: () => this.findings.push(this.takeFinding()),
        });
    }

    progress(done, total) {
        const now = Date.now();
        if (now - this.last >= PROGRESS_MS) {
            this.last = now;
            this.post({ type: "progress", done, total });
        }
        return true;
    }

    /** Numbers of the finding; names are looked up after the call of the core. */
    takeFinding() {
        const finding = readFinding(this.core, id => id, n => n);
        return finding;
    }

    /** Open a model; return its handle. */
    open({ options, shards }, readers) {
        const { core } = this, first = this.sources.length;
        this.sources.push(...readers);
        this.shards.push({ first, names: new Map(shards.map(([name, n]) => [name, n < 0 ? n : first + n])) });
        const model = core.run("model_open", first, core.keepText(options.name), core.keepText(options.format),
                               core.keepText(options.key), options.maxTensors ?? 0,
                               options.maxIndexBytes ?? 1 << 30, !!options.noVerify) >>> 0;
        if (!model)
            throw core.error(core.view().getInt32(core.failure, true));
        for (;;) {
            const st = core.run("model_step", model);
            if (!st)
                return model;
            if (st !== AGAIN)
                throw core.error(st);
            this.feed(model, first);
        }
    }

    feed(model, first) {
        const { core } = this;
        const n = core.run("model_needs", model), at = core.pointer(0), view = core.view();
        const needs = Array.from({ length: n }, (_, i) => [Number(view.getBigUint64(at + 16 * i, true)),
                                                           Number(view.getBigUint64(at + 16 * i + 8, true))]);
        for (const [offset, length] of needs) {
            const ptr = core.alloc(length || 1);
            this.sources[first].read(offset, core.bytes(ptr, length));
            const st = core.run("model_feed", model, offset, ptr, length);
            if (offset || length !== this.sources[first].size)
                core.free(ptr, length || 1);
            if (st)
                throw core.error(st);
        }
    }

    tensorName(model, id) {
        this.core.run("tensor_at", model, id);
        return this.core.string(0) ?? "";
    }

    shardName(model, n) {
        this.core.run("shard_at", model, n - 1);
        return this.core.string(0) ?? "";
    }

    count(model) {
        this.core.run("model_facts", model);
        return this.core.number(0);
    }

    format(model) {
        this.core.run("model_facts", model);
        return this.core.string(0);
    }
}

/** ---- tasks -------------------------------------------------------------------------------- */

function verify(opened, [model], { quick }) {
    const { core } = opened;
    const st = core.run("verify", model, quick);
    if (st)
        throw core.error(st);
    const [bytes_checked, payload_bytes, payload_checked, faults] = [0, 1, 2, 3].map(i => core.number(i));
    for (const f of opened.findings) {
        f.tensor = f.tensor === null ? null : opened.tensorName(model, f.tensor);
        if (f.shard)
            f.shard = opened.shardName(model, f.shard);
    }
    return { format: opened.format(model), ok: faults === 0, findings: opened.findings, bytes_checked, payload_bytes,
             payload_checked };
}

const HASH = 32;

function hex(bytes) {
    return Array.from(bytes, b => b.toString(16).padStart(2, "0")).join("");
}

function hash(opened, [model]) {
    const { core } = opened, count = opened.count(model);
    return core.withMemory(HASH * (count + 1), ptr => {
        const st = core.run("hash", ptr, ptr + HASH, model);
        if (st)
            throw core.error(st);
        const digest = i => hex(core.bytes(ptr + HASH * i, HASH));
        const tensors = Array.from({ length: count }, (_, i) => ({ name: opened.tensorName(model, i), digest: digest(i + 1) }));
        return { format: opened.format(model), model: digest(0), tensors };
    });
}

const TASKS = { verify, hash, diff };

async function perform(task, post) {
    const module = await loadModule();
    const fs = isNode ? await import("node:fs") : null;
    const opened = new Opened(module, post);
    const models = [];
    for (const m of task.models)
        models.push(opened.open(m, m.sources.map(s => readerOf(s, fs, task.shared, post))));
    const report = TASKS[task.what](opened, models, task);
    opened.sources.forEach(s => s.check?.());
    return report;
}

async function listen() {
    const port = isNode ? (await import("node:worker_threads")).parentPort : globalThis;
    const post = m => port.postMessage(m);
    const onTask = async task => {
        try {
            post({ type: "done", report: await perform(task, post) });
        } catch (e) {
            post({ type: "failed", error: packError(e) });
        }
    };
    if (isNode)
        port.on("message", onTask);
    else
        port.onmessage = e => onTask(e.data);
}

listen();
