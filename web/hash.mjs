/** Hashing on all processors: each worker hashes a share of the tensors, the core of the caller the model. */
import { HASH, hexOf } from "./core.mjs";
import { HeftError } from "./error.mjs";
import { platform } from "./platform.mjs";
import { work } from "./work.mjs";

/** Bytes of a share that are worth a worker, which opens the index again. */
const LEAST = 32 << 20;
const MOST = 64;

function mostWorkers({ workers }, bytes) {
    if (workers === undefined)
        return Math.max(1, Math.min(platform.processors(), MOST, Math.floor(bytes / LEAST)));
    if (!Number.isInteger(workers) || workers < 1 || workers > MOST)
        throw new HeftError("argument", `hash() by ${String(workers)} workers: workers is a number from 1 to ${MOST}`);
    return workers;
}

/**
 * Whether workers may read shares of the model: files that each of them opens. Stored checksums may cover bytes
 * of several shares; they are compared by one worker.
 */
function isShared(model) {
    const { sources, isDecoded } = model._session;
    return !isDecoded && sources.every(s => ["path", "blob"].includes(s.input.input.spec?.type)) &&
        !Object.keys(model.checksums).length;
}

/** Ids of tensors for each worker, of about as many bytes. */
function sharesOf(model, options) {
    const { nbytes, count } = model.columns(), sizes = Array.from(nbytes, n => n || 0);
    const all = sizes.reduce((sum, n) => sum + n, 0), shares = [];
    for (let n = Math.min(mostWorkers(options, all), count); n > 0; n--)
        shares.push({ ids: [], bytes: 0, done: 0 });
    sizes.forEach((bytes, id) => {
        const least = shares.reduce((a, b) => (b.bytes < a.bytes ? b : a));
        least.ids.push(id);
        least.bytes += bytes;
    });
    return shares;
}

/** The digests of all shares; if one fails, the others end. */
async function digestsOf(model, shares, { signal, onProgress }) {
    const stop = new AbortController(), end = () => stop.abort(signal?.reason);
    const total = shares.reduce((sum, s) => sum + s.bytes, 0);
    if (signal?.aborted)
        end();
    signal?.addEventListener("abort", end);
    let failure = null;
    const progress = share => onProgress && (p => {
        share.done = p.bytes;
        onProgress({ ...p, bytes: shares.reduce((sum, s) => sum + s.done, 0), total });
    });
    const parts = await Promise.all(shares.map(share =>
        work("hashSome", [model], { signal: stop.signal, onProgress: progress(share), tensors: share.ids }).catch(e => {
            failure ??= e;
            stop.abort();
        })));
    signal?.removeEventListener("abort", end);
    if (failure)
        throw failure;
    return parts;
}

export async function hashOf(model, options) {
    const shares = model._session.core && isShared(model) ? sharesOf(model, options) : [];
    mostWorkers(options, 0);
    if (shares.length < 2)
        return work("hash", [model], options);
    const parts = await digestsOf(model, shares, options), all = new Uint8Array(HASH * model.tensorCount);
    shares.forEach(({ ids }, k) => ids.forEach((id, i) => all.set(parts[k].subarray(HASH * i, HASH * (i + 1)), HASH * id)));
    let digest;
    await model._session.reading(null, options.signal, () => {
        const core = model._core();
        return core.withBytes(all, ptr => core.withMemory(HASH, out => {
            const st = core.run("hash_model", out, ptr, model._model());
            digest = hexOf(core.bytes(out, HASH));
            return st;
        }));
    });
    const columns = model.columns();
    const tensors = Array.from({ length: columns.count }, (_, i) =>
        ({ name: columns.name(i), digest: hexOf(all.subarray(HASH * i, HASH * (i + 1))) }));
    return { format: model.format, model: digest, tensors };
}
