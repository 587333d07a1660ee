/** What a worker does: it reads without waiting for events, so that the core runs from beginning to end. */
import { AGAIN, Core, HASH, hexOf } from "./core.mjs";
import { HeftError, packError } from "./error.mjs";
import { diff } from "./diff.mjs";
import { readFinding } from "./finding.mjs";

const WINDOW = 1 << 20;
const PROGRESS_MS = 100;

/** ---- sources: read(offset, bytes) fills bytes --------------------------------------------- */

function bytesReader({ bytes }) {
    return { size: bytes.length, read: (offset, to) => to.set(bytes.subarray(offset, offset + to.length)) };
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
    open({ options, shards, settings }, readers) {
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
                return settings ? this.decode(model, settings) : model;
            if (st !== AGAIN)
                throw core.error(st);
            this.feed(model, first);
        }
    }

    /** The model with the numbers that its quantised tensors represent. */
    decode(model, settings) {
        const { core } = this;
        const st = core.withBytes(settings, (ptr, len) => core.run("model_decode", model, ptr, len));
        if (st)
            throw core.error(st);
        return model;
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

/** Hash some tensors; return their digests one after the other. */
function hashSome({ core }, [model], { tensors }) {
    return core.withMemory(4 * tensors.length + 4, list => core.withMemory(HASH * tensors.length + 1, ptr => {
        new Uint32Array(core.memory.buffer, list, tensors.length).set(tensors);
        const st = core.run("hash_some", ptr, model, list, tensors.length);
        if (st)
            throw core.error(st);
        return core.bytes(ptr, HASH * tensors.length).slice();
    }));
}

function hash(opened, [model]) {
    const { core } = opened, count = opened.count(model);
    return core.withMemory(HASH * (count + 1), ptr => {
        const st = core.run("hash", ptr, ptr + HASH, model);
        if (st)
            throw core.error(st);
        const digest = i => hexOf(core.bytes(ptr + HASH * i, HASH));
        const tensors = Array.from({ length: count }, (_, i) => ({ name: opened.tensorName(model, i), digest: digest(i + 1) }));
        return { format: opened.format(model), model: digest(0), tensors };
    });
}

const TASKS = { verify, hash, hashSome, diff };

function perform(task, { post, readers }) {
    const all = { bytes: bytesReader, proxy: s => proxyReader(s, task.shared, post), ...readers };
    const opened = new Opened(task.module, post);
    const models = [];
    for (const m of task.models)
        models.push(opened.open(m, m.sources.map(s => all[s.type](s))));
    const report = TASKS[task.what](opened, models, task);
    opened.sources.forEach(s => s.check?.());
    return report;
}

/**
 * Return the function that performs tasks, and say that the worker is ready. post(message) answers; readers has the
 * kinds of sources that only this platform can read.
 */
export function taskRunner(worker) {
    worker.post({ type: "ready" });
    return task => {
        try {
            worker.post({ type: "done", report: perform(task, worker) });
        } catch (e) {
            worker.post({ type: "failed", error: packError(e) });
        }
    };
}
