/** The side of the caller: start a worker for verify, hash and diff. */
import { SMALL, loadModule } from "./core.mjs";
import { HeftError, abortedError, closedError, reasonOf, tell, throwIfAborted, unpackError } from "./error.mjs";
import { platform } from "./platform.mjs";

/** Bytes that pass between the threads at once. */
const WINDOW = 1 << 20;

/** What a worker needs to read the source itself, or null. */
function direct(source) {
    const { spec } = source.input.input;
    return spec && platform.isDirect(spec) ? spec : null;
}

async function copied(source, options, signal) {
    const limit = options.maxCopyBytes ?? 1 << 30;
    if (source.size > limit)
        throw new HeftError("unsupported", `a worker cannot read this input, and its ${source.size} bytes exceed the ` +
                            `limit for a copy in memory of ${limit} (maxCopyBytes)`);
    return { type: "bytes", bytes: await source.input.read(0, source.size, signal) };
}

/** Describe a source for the worker. Where the worker cannot read, this thread reads for it. */
async function describe(source, index, shared, options, signal) {
    const spec = direct(source);
    if (spec)
        return spec;
    return shared ? { type: "proxy", size: source.size, index } : copied(source, options, signal);
}

async function describeModel(what, model, shared, index, options, signal) {
    const session = model._session;
    const sources = [];
    for (const s of session.sources)
        sources.push(await describe(s, [index, sources.length], shared, options, signal));
    const { format, name, key, maxTensors, maxIndexBytes, noVerify } = session.options;
    return { sources, shards: [...session.shardNumbers], settings: session.isDecoded && what !== "verify" ? session.settings : null,
             options: { format: format ?? model.format, name: name ?? session.sources[0].input.name, key, maxTensors,
                        maxIndexBytes, noVerify } };
}

/** One worker stays for the next task: starting a worker takes longer than to check a small file. */
let idle = null;
let address; // of the worker, if prepare() named it

export function useWorker(at) {
    if (typeof at !== "string" && typeof at !== "function" && !(at instanceof URL))
        throw new HeftError("argument", "prepare({ worker }) takes an address, or a function that returns a worker");
    address = at;
    idle?.end();
    idle = null;
}

async function takeWorker() {
    const worker = idle ?? await platform.startWorker(address);
    idle = null;
    worker.wake();
    return worker;
}

async function leaveWorker(worker, isSound) {
    if (!isSound || idle)
        return worker.end();
    idle = worker;
    worker.listen(() => {}, () => { idle = idle === worker ? null : idle; });
    worker.rest();
}

/** Answer a read of the worker: the bytes go to shared memory. */
async function answer(models, shared, message, signal) {
    const flag = new Int32Array(shared, 0, 2), bytes = new Uint8Array(shared, 8);
    try {
        const source = models[message.index[0]]._session.sources[message.index[1]];
        bytes.set(await source.input.read(message.offset, message.length, signal));
        Atomics.store(flag, 0, 1);
        return null;
    } catch (e) {
        Atomics.store(flag, 0, 2);
        return e;
    } finally {
        Atomics.notify(flag, 0);
    }
}

export async function work(what, models, options) {
    for (const m of models)
        if (!m?._session)
            throw new HeftError("argument", "diff() takes a model that open() has returned");
        else if (!m._session.core)
            throw closedError();
    const [first, second] = models;
    return first._session.within(options.signal, signal1 =>
        second ? second._session.within(signal1, signal => run(what, models, options, signal))
               : run(what, models, options, signal1));
}

/** The module of one of the models that knows the others, too. */
async function moduleFor(models) {
    const small = await loadModule(SMALL);
    return models.map(m => m._session.module).find(m => m !== small) ?? small;
}

async function run(what, models, options, signal) {
    const canShare = typeof SharedArrayBuffer === "function" && platform.canShare();
    const shared = canShare ? new SharedArrayBuffer(8 + WINDOW) : null, module = await moduleFor(models);
    const described = [];
    for (const m of models)
        described.push(await describeModel(what, m, shared, described.length, options, signal));
    const worker = await takeWorker();
    let failure = null, isSound = false;
    try {
        return await new Promise((resolve, reject) => {
            signal.addEventListener("abort", () => reject(abortedError(signal)), { once: true });
            if (signal.aborted)
                return reject(abortedError(signal));
            const settle = message => {
                isSound = message.error?.status !== "crash";
                if (message.type === "done")
                    resolve(message.report);
                else
                    reject(failure ?? unpackError(message.error));
            };
            const progress = ({ done, total }) => {
                try {
                    tell(options.onProgress, { bytes: done, total, requests: models[0].requests });
                } catch (e) {
                    reject(e);
                }
            };
            worker.listen(message => {
                if (message.type === "read")
                    answer(models, shared, message, signal).then(e => { failure ??= e; });
                else if (message.type === "progress")
                    progress(message);
                else if (message.type === "done" || message.type === "failed")
                    settle(message);
            }, e => reject(new HeftError("crash", `the worker failed: ${reasonOf(e)}`, { rule: "web/crash", cause: e })));
            worker.post({ what, module, models: described, shared, quick: !!options.quick,
                          tensors: options.tensors });
        });
    } finally {
        await leaveWorker(worker, isSound && !signal.aborted);
        throwIfAborted(signal);
    }
}
