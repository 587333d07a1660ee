/** Opening: the index is fed to the core, the sources answer what was read. */
import { AGAIN, Core, FULL, SMALL, loadModule } from "./core.mjs";
import { HeftError, asking, closedError, tell, throwIfAborted } from "./error.mjs";
import { HEAD, openInput } from "./input.mjs";

/** Ranges nearer than this are read by one request. */
const GAP = 64 << 10;
/** Request for an index whose length is not stated, from inputs without streams. */
const GUESS = 16 << 20;
/** Formats whose index has no stated length. */
const UNSTATED = new Set(["gguf", "mag", "embd", "burn-record", "flax", "gptrs-archive", "gptrs-checkpoint"]);
const RESTARTS = 64;
/** A notice of the small module about tensors that it leaves out, and that the full one joins. */
const LEFT_OUT = "flax/pieces";
/** Files beside a model that may say how it is quantised. */
const SETTINGS = ["config.json", "quantize_config.json", "hf_quant_config.json"];
/** Requests for what a decoder misses grow up to this. */
const MOST_MISSED = 16 << 20;
/** Bytes that are copied to the core at once. */
const SLICE = 1 << 20;

/** A file and the ranges of it that have been read. */
class Source {
    constructor(counted) {
        this.input = counted;
        this.size = counted.size;
        this.segments = []; // { offset, bytes }, ascending, disjoint
        this.base = []; // segments that stay after opening
        this.misses = [];
        this.growth = 0;
    }

    add(offset, bytes) {
        const at = this.segments.findIndex(s => s.offset > offset);
        const segment = { offset, bytes };
        this.segments.splice(at < 0 ? this.segments.length : at, 0, segment);
        return segment;
    }

    /** The end of the bytes that are present from `offset` on. */
    presentTo(offset) {
        for (const s of this.segments)
            if (s.offset <= offset && offset < s.offset + s.bytes.length)
                offset = s.offset + s.bytes.length;
        return offset;
    }

    /** Copy bytes to `to`; false, and a note of the miss, if some are not present. */
    read(offset, to) {
        const end = offset + to.length;
        if (this.presentTo(offset) < end) {
            this.misses.push({ offset, length: to.length });
            return false;
        }
        for (const s of this.segments) {
            const from = Math.max(offset, s.offset), upto = Math.min(end, s.offset + s.bytes.length);
            if (from < upto)
                to.set(s.bytes.subarray(from - s.offset, upto - s.offset), from - offset);
        }
        return true;
    }
}

/** The missing parts of ranges, joined where they are near each other. */
function joined(source, ranges) {
    const missing = [];
    for (const { offset, length } of [...ranges].sort((a, b) => a.offset - b.offset)) {
        const from = source.presentTo(offset), end = Math.min(offset + length, source.size);
        const last = missing[missing.length - 1];
        if (from >= end)
            continue;
        if (last && from - last.end <= GAP)
            last.end = Math.max(last.end, end);
        else
            missing.push({ offset: from, end });
    }
    for (const m of missing) { // never read bytes twice
        const next = source.segments.find(s => s.offset >= m.offset && s.offset < m.end);
        if (next)
            m.end = next.offset;
    }
    return missing.filter(m => m.end > m.offset);
}

export class Session {
    constructor(options) {
        this.options = options;
        this.requests = 0;
        this.bytesRead = 0;
        this.sources = [];
        this.shardNumbers = new Map(); // name -> number of the source, or -1
        this.wantedShards = new Set();
        this.control = new AbortController();
        this.streams = new Map();
        this.model = 0;
        this.isOpen = false;
    }

    count(bytes) {
        this.bytesRead += bytes;
        tell(this.options.onProgress, { bytes: this.bytesRead, total: null, requests: this.requests });
    }

    /** A signal that fires when the caller aborts or the model is closed. */
    signals(signal) {
        if (!signal)
            return [this.control.signal, () => {}];
        const both = new AbortController();
        const fire = () => both.abort(signal.aborted ? signal.reason : this.control.signal.reason);
        if (signal.aborted || this.control.signal.aborted)
            fire();
        signal.addEventListener("abort", fire);
        this.control.signal.addEventListener("abort", fire);
        return [both.signal, () => {
            signal.removeEventListener("abort", fire);
            this.control.signal.removeEventListener("abort", fire);
        }];
    }

    async within(signal, fn) {
        const [both, release] = this.signals(signal);
        try {
            throwIfAborted(both);
            return await fn(both);
        } finally {
            release();
        }
    }

    async open(input) {
        try {
            return await this.within(this.options.signal, async signal => {
                const decodes = this.options.quantised === "decode";
                const module = await loadModule(decodes ? FULL : SMALL);
                throwIfAborted(signal);
                await this.addSource(input, signal);
                if (decodes) {
                    await this.openWith(module, signal);
                    await this.decode(signal);
                } else {
                    await this.openSmall(module, signal);
                }
                this.opened();
                return this;
            });
        } catch (e) {
            await this.close();
            throw e;
        } finally {
            await this.endStreams();
        }
    }

    async openWith(module, signal) {
        this.newCore(module);
        await this.openIndex(signal);
    }

    /** Open with the small module; with the full one, which knows more formats, and more of some, if that fails. */
    async openSmall(module, signal) {
        try {
            await this.openWith(module, signal);
        } catch (error) {
            const isLess = error.rule === "heft/unknown-format" || error.status === "unsupported" ||
                (this.options.format && error.status === "argument");
            if (!isLess || !await this.openFull(signal))
                throw error;
            return;
        }
        if (this.core.hasNotice(this.model, LEFT_OUT))
            await this.openFull(signal);
    }

    /** Open with the full module; false: it cannot be loaded. */
    async openFull(signal) {
        const module = await loadModule(FULL).catch(() => null);
        throwIfAborted(signal);
        if (!module)
            return false;
        this.core.release();
        await this.openWith(module, signal);
        return true;
    }

    newCore(module) {
        this.module = module;
        this.kept = new Map();
        this.core = new Core(module, {
            read: (source, offset, to) => this.sources[source].read(offset, to),
            size: source => this.sources[source].size,
            openShard: (_, name) => this.openShard(name),
        });
    }

    async addSource(input, signal) {
        const counted = await openInput(input, this.options, this, signal);
        const source = new Source(counted);
        this.sources.push(source);
        if (counted.input.head?.length)
            source.add(0, counted.input.head);
        else if (counted.size)
            source.add(0, await counted.read(0, Math.min(HEAD, counted.size), signal));
        return this.sources.length - 1;
    }

    /** ---- quantised tensors ---- */

    /** The text of the file beside the model that says how it is quantised; empty: there is none. */
    async findSettings(signal) {
        const { core } = this;
        for (const name of SETTINGS) {
            const bytes = await this.readBeside(name, signal);
            if (bytes && core.withBytes(bytes, (ptr, len) => core.run("settings_are_quantised", ptr, len)))
                return bytes;
        }
        return new Uint8Array(0);
    }

    /** The bytes of a file beside the model; null: there is none. */
    async readBeside(name, signal) {
        const limit = this.options.maxIndexBytes ?? 1 << 30;
        let counted = null;
        try {
            const input = await this.beside(name);
            counted = input == null ? null : await openInput(input, this.options, this, signal);
            return counted && counted.size <= limit ? await counted.read(0, counted.size, signal) : null;
        } catch (e) {
            if (e instanceof HeftError && e.rule === "web/not-found")
                return null;
            throw e;
        } finally {
            await counted?.close().catch(() => {});
        }
    }

    /** Put the model that the quantised tensors represent in the place of the stored one. */
    async decode(signal) {
        const { core } = this, settings = this.settings = await this.findSettings(signal);
        this.opened();
        await this.reading(null, signal, () =>
            core.withBytes(settings, (ptr, len) => core.run("model_decode", this.model, ptr, len)));
        this.quantisedCount = core.number(0);
        this.isDecoded = this.quantisedCount > 0;
    }

    /** ---- shards ---- */

    /** What the caller gives for a name beside the model, or what lies there. */
    async beside(name) {
        return this.options.resolve ? asking("resolve()", () => this.options.resolve(name))
                                    : this.sources[0].input.input.sibling?.(name);
    }

    openShard(name) {
        const known = this.shardNumbers.get(name);
        if (known === undefined)
            this.wantedShards.add(name);
        return known ?? -2;
    }

    async resolveShards(signal) {
        for (const name of this.wantedShards) {
            let number = -1;
            const input = await this.beside(name);
            try {
                if (input != null)
                    number = await this.addSource(input, signal);
            } catch (e) {
                if (!(e instanceof HeftError) || e.rule !== "web/not-found")
                    throw e;
            }
            this.shardNumbers.set(name, number);
        }
        this.wantedShards.clear();
    }

    /** ---- the index ---- */

    /** The format by the first bytes; null if the last bytes matter: in zip archives. */
    recognise(head) {
        const { core } = this, source = this.sources[0];
        if (this.options.format || source.size <= head.length)
            return this.options.format ?? null;
        if ((head[0] === 0x50 && head[1] === 0x4b) || (head[0] === 0x1f && head[1] === 0x8b))
            return null;
        const tail = Math.min(HEAD / 2, source.size - head.length);
        const m = this.begin(null);
        this.step(m);
        this.feed(m, 0, head);
        this.feed(m, source.size - tail, new Uint8Array(tail));
        this.step(m);
        const format = core.run("model_format", m) ? core.string(0) : null;
        core.run("model_close", m);
        source.misses = [];
        return format;
    }

    begin(format) {
        const { core, options } = this;
        const m = core.run("model_open", 0, this.keep("name", options.name ?? this.sources[0].input.name),
                           this.keep(`format:${format}`, format), this.keep("key", options.key),
                           options.maxTensors ?? 0, options.maxIndexBytes ?? 1 << 30, !!options.noVerify) >>> 0;
        if (!m)
            throw core.error(core.view().getInt32(core.failure, true));
        return m;
    }

    keep(what, text) {
        if (!this.kept.has(what))
            this.kept.set(what, this.core.keepText(text));
        return this.kept.get(what);
    }

    step(m) {
        return this.core.run("model_step", m);
    }

    /** Feed bytes in slices, so that the memory holds them once. A whole file is borrowed by the core. */
    feed(m, offset, bytes) {
        const { core } = this;
        const isWhole = !offset && bytes.length === this.sources[0].size;
        const slice = isWhole ? bytes.length || 1 : Math.min(SLICE, bytes.length);
        const ptr = core.alloc(slice);
        let st = 0;
        for (let at = 0; (at < bytes.length || isWhole) && !st; at += slice) {
            const some = bytes.subarray(at, at + slice);
            core.bytes(ptr, some.length).set(some);
            st = core.run("model_feed", m, offset + at, ptr, some.length);
            if (isWhole)
                break;
        }
        if (isWhole)
            this.borrowed = [ptr, slice];
        else
            core.free(ptr, slice);
        if (st)
            throw core.error(st);
    }

    needs(m) {
        const { core } = this;
        const n = core.run("model_needs", m), at = core.pointer(0), view = core.view();
        return Array.from({ length: n }, (_, i) => ({
            offset: Number(view.getBigUint64(at + 16 * i, true)),
            length: Number(view.getBigUint64(at + 16 * i + 8, true)),
        }));
    }

    async openIndex(signal) {
        const source = this.sources[0], head = source.segments[0]?.bytes ?? new Uint8Array(0);
        if (head[0] === 0x1f && head[1] === 0x8b && source.size > head.length)
            source.add(head.length, await source.input.read(head.length, source.size - head.length, signal));
        const format = this.recognise(head);
        for (let restart = 0; restart < RESTARTS; restart++) {
            const m = this.begin(format);
            let st;
            try {
                st = await this.stepAll(m, format, signal);
            } catch (e) {
                this.discard(m);
                throw e;
            }
            const missed = this.wantedShards.size || this.sources.some(s => s.misses.length);
            if (!missed && !st) {
                this.model = m;
                return;
            }
            const error = st ? this.core.error(st) : null;
            this.discard(m);
            if (!missed)
                throw error;
            await this.resolveShards(signal);
            await this.fetchMisses(signal);
        }
        throw new HeftError("limit", "the index is spread over too many places to be read", { rule: "web/read" });
    }

    discard(m) {
        if (this.core.dead)
            return;
        this.core.run("model_close", m);
        if (this.borrowed)
            this.core.free(...this.borrowed);
        this.borrowed = null;
    }

    /** Step until the core is done or fails; return the status. */
    async stepAll(m, format, signal) {
        const source = this.sources[0];
        const fed = new Set();
        const feedAll = () => {
            for (const s of source.segments.filter(s => !fed.has(s))) {
                fed.add(s);
                this.feed(m, s.offset, s.bytes);
            }
        };
        if (source.size && source.segments.length > 1 && source.presentTo(0) === source.size)
            this.joinSegments(source);
        this.step(m); // asks for both ends of the file, of which a known format may not need the last
        feedAll();
        for (let round = 0;; round++) {
            const st = this.step(m);
            if (st !== AGAIN)
                return st;
            const before = source.segments.length;
            for (const s of await this.fetchNeeds(m, format ?? this.formatOf(m), signal))
                fed.add(s);
            if (source.segments.length === before)
                throw new HeftError("format", "the index asks for bytes that do not exist", { rule: "web/read" });
            feedAll();
        }
    }

    formatOf(m) {
        return this.core.run("model_format", m) ? this.core.string(0) : null;
    }

    joinSegments(source) {
        const all = new Uint8Array(source.size);
        for (const s of source.segments)
            all.set(s.bytes, s.offset);
        source.segments = [{ offset: 0, bytes: all }];
    }

    /** Read what the core needs; return the segments that the core has got already, as they arrived. */
    async fetchNeeds(model, format, signal) {
        const source = this.sources[0], fed = [];
        const head = source.presentTo(0);
        for (const m of joined(source, this.needs(model))) {
            const limit = this.options.maxIndexBytes ?? 1 << 30, length = m.end - m.offset;
            if (length > limit)
                throw new HeftError("limit", `the index needs ${length} bytes; the limit is ${limit} (maxIndexBytes)`,
                                    { rule: "heft/limit-index" });
            if (m.offset === head && UNSTATED.has(format)) {
                await this.fetchSequential(source, m, signal);
                continue;
            }
            let got = 0;
            const segment = source.add(m.offset, await source.input.read(m.offset, length, signal, (offset, piece) => {
                this.feed(model, offset, piece);
                got += piece.length;
            }));
            if (got === length)
                fed.push(segment);
        }
        return fed;
    }

    /** Read on in an index of unknown length: from a stream, or generously. */
    async fetchSequential(source, m, signal) {
        let stream = this.streams.get(source);
        if (stream?.at !== m.offset) {
            await stream?.reader.cancel().catch(() => {});
            const reader = await source.input.stream(m.offset, signal);
            stream = reader && { reader, at: m.offset };
            this.streams.set(source, stream);
        }
        if (stream) {
            source.add(m.offset, await this.takeStream(stream, m.end - m.offset, signal));
            return;
        }
        const end = Math.min(source.size, Math.max(m.end, m.offset + GUESS));
        const next = source.segments.find(s => s.offset >= m.offset)?.offset ?? end;
        source.add(m.offset, await source.input.read(m.offset, Math.min(end, next) - m.offset, signal));
    }

    async takeStream(stream, want, signal) {
        const pieces = [];
        let total = 0;
        while (total < want) {
            let piece;
            try {
                piece = await stream.reader.read();
            } catch (e) {
                throwIfAborted(signal);
                throw new HeftError("io", "the answer ended early; try again",
                                    { rule: "web/truncated", offset: stream.at, cause: e });
            }
            if (piece.done)
                throw new HeftError("io", `the answer ended early, at byte ${stream.at}; try again`,
                                    { rule: "web/truncated", offset: stream.at });
            pieces.push(piece.value);
            total += piece.value.length;
            stream.at += piece.value.length;
        }
        this.count(total);
        const all = new Uint8Array(total);
        pieces.reduce((at, p) => (all.set(p, at), at + p.length), 0);
        return all;
    }

    async endStreams() {
        for (const s of this.streams.values())
            await s?.reader.cancel().catch(() => {});
        this.streams.clear();
    }

    /** Read what sources could not answer. Misses one after the other are read ever more generously. */
    async fetchMisses(signal) {
        for (const source of this.sources) {
            const ranges = source.misses.map(m => ({ offset: m.offset,
                                                     length: Math.max(m.length, HEAD << 2 * source.growth) }));
            if (ranges.length)
                source.growth = Math.min(source.growth + 1, 6);
            source.misses = [];
            for (const m of joined(source, ranges))
                source.add(m.offset, await source.input.read(m.offset, m.end - m.offset, signal));
        }
    }

    /** ---- reading after opening ---- */

    /**
     * Call `fn`, which returns a status, until all bytes that it reads are there. `part` is the
     * range of the file that the bytes belong to: after a second miss it is read as a whole, and kept in
     * `cache` for further calls.
     */
    async reading(part, signal, fn, tensor = null, cache = {}) {
        return this.within(signal, async both => {
            const own = cache.own ?? this.sources.map(() => []); // bytes read for this call only
            const merge = () => this.sources.forEach((s, i) => {
                s.segments = [...s.base, ...own[i]].sort((a, b) => a.offset - b.offset);
                s.misses = [];
            });
            for (let round = 0; round < RESTARTS; round++) {
                if (!this.model)
                    throw closedError();
                merge();
                const st = fn();
                const i = this.sources.findIndex(s => s.misses.length), source = this.sources[i];
                const missed = source?.misses ?? [];
                const whole = round && part ? joined(source ?? this.sources[0],
                                                     [{ offset: part.offset, length: part.stored }]) : [];
                const ranges = source ? (whole.length ? whole : joined(source, this.generous(missed, round))) : [];
                if (source && whole.length)
                    cache.own = own;
                this.sources.forEach(s => {
                    s.segments = s.base;
                    s.misses = [];
                });
                if (!source) {
                    if (st)
                        throw this.core.error(st, tensor);
                    return;
                }
                for (const m of ranges)
                    own[i].push({ offset: m.offset, bytes: await source.input.read(m.offset, m.end - m.offset, both) });
            }
            throw new HeftError("limit", "the part is spread over too many places to be read", { tensor });
        });
    }

    /** What a decoder misses, window after window, is requested ever more generously. */
    generous(misses, round) {
        const least = this.isDecoded ? Math.min(HEAD << Math.min(2 * round, 16), MOST_MISSED) : 0;
        return misses.map(m => ({ offset: m.offset, length: Math.max(m.length, least) }));
    }

    /** Forget the bytes of the index, which the core has copied; small files stay. */
    opened() {
        for (const s of this.sources) {
            s.base = s.presentTo(0) === s.size ? s.segments : [];
            s.segments = s.base;
            s.misses = [];
        }
        this.isOpen = true;
    }

    async close() {
        if (this.closing)
            return this.closing;
        this.closing = (async () => {
            const { core } = this;
            this.model = 0;
            this.core = null;
            this.control.abort(closedError());
            await this.endStreams();
            for (const s of this.sources)
                await s.input.close().catch(() => {});
            for (const s of this.sources)
                s.segments = s.base = [];
            core?.release();
        })();
        return this.closing;
    }
}
