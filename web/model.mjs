/** Models and tensors: the index of an open file as objects. */
import { Core, FULL, NONE, SMALL, loadModule, makeReady, useModule } from "./core.mjs";
import { HeftError, answering, closedError, optionsOf } from "./error.mjs";
import { readFinding } from "./finding.mjs";
import { hashOf } from "./hash.mjs";
import { platform } from "./platform.mjs";
import { Session } from "./session.mjs";
import { modelJson, statsOf, tensorJson, typedValues } from "./stats.mjs";
import { useWorker, work } from "./work.mjs";

const ENCODINGS = ["raw", "zstd", "deflate", "other", "msgpack", "protobuf"];
const KINDS = ["none", "bool", "uint", "int", "float", "complex", "block"];
const SPECIALS = 5;
const F32 = 12, F64 = 13, RAW = 0, ZSTD = 1;
/** Bytes of a tensor that are requested and converted at once. */
const CHUNK = 8 << 20;
/** Blocks that are decoded at once. */
const STEP = 1 << 12;
/** Arrays of metadata by the code of the element type. */
const ARRAYS = { 2: Uint8Array, 3: Int8Array, 4: Uint16Array, 5: Int16Array, 6: Uint32Array, 7: Int32Array,
                 8: BigUint64Array, 9: BigInt64Array, 12: Float32Array, 13: Float64Array };
const UNTYPED = "bytes";
const ITEM_BYTES = { 1: 1, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 4, 8: 8, 9: 8, 12: 4, 13: 8 };

export const version = "0.1.0";

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** ---- tables of the build ------------------------------------------------------------------ */

const noHost = { read: () => false, openShard: () => -1, size: () => 0 };

function dtypeTable(core) {
    const table = [{ name: UNTYPED, kind: "none", blockElements: 1, blockBytes: 1, decodes: false }];
    for (let t = 1; core.run("dtype_at", t); t++)
        table.push({ name: core.string(0), kind: KINDS[core.number(0)] ?? "none", blockElements: core.number(1),
                     blockBytes: core.number(2), decodes: !!core.number(3) });
    return Object.freeze(table.map(Object.freeze));
}

let sharedDtypes;

function dtypesOf(core) {
    sharedDtypes ??= dtypeTable(core);
    return sharedDtypes;
}

export function dtypes() {
    return answering(async () => sharedDtypes ?? dtypesOf(new Core(await loadModule(), noHost)));
}

export function formats() {
    return answering(async () => {
        const core = new Core(await loadModule(FULL), noHost), list = [];
        while (core.run("format_at", list.length))
            list.push({ name: core.string(0), title: core.string(1), suffixes: core.string(2).split(" ").filter(Boolean) });
        return list;
    });
}

/** ---- values ------------------------------------------------------------------------------- */

function integer(v) {
    const n = Number(v);
    return Number.isSafeInteger(n) ? n : v;
}

function numbers(core) {
    const at = core.pointer(1), count = core.number(2), dtype = core.number(3);
    const bytes = core.bytes(at, count * (ITEM_BYTES[dtype] ?? 0)).slice();
    if (dtype === 1)
        return Array.from(bytes, b => b !== 0);
    return ARRAYS[dtype] ? new ARRAYS[dtype](bytes.buffer) : bytes;
}

/** Read values from the flat list that begins at i; `at(i)` loads value i. Iterative: depth is the file's. */
function readValues(core, count, at) {
    const root = { value: new Map(), end: count };
    const stack = [root];
    for (let i = 0; i < count;) {
        while (stack.length > 1 && i >= stack[stack.length - 1].end)
            stack.pop();
        if (at(i) === false)
            break;
        const parent = stack[stack.length - 1].value, key = core.string(0) ?? "";
        const { value, end } = readValue(core);
        if (parent instanceof Map)
            parent.set(key, value);
        else
            parent.push(value);
        i++;
        if (end !== null)
            stack.push({ value, end });
    }
    return root.value;
}

function readValue(core) {
    const as = core.pointer(2), view = core.view();
    switch (core.number(0)) {
    case 1: return { value: core.number(2) !== 0, end: null };
    case 2: return { value: integer(view.getBigInt64(as, true)), end: null };
    case 3: return { value: integer(view.getBigUint64(as, true)), end: null };
    case 4: return { value: core.number(2), end: null };
    case 5: return { value: core.string(1) ?? "", end: null };
    case 6: case 7: return { value: core.resultBytes(1).slice(), end: null };
    case 8: return { value: numbers(core), end: null };
    case 9: return { value: [], end: core.number(3) };
    case 10: return { value: new Map(), end: core.number(3) };
    default: return { value: null, end: null };
    }
}

/** ---- tensors ------------------------------------------------------------------------------ */

class Tensor {
    #model;
    #row;

    constructor(model, id) {
        this.#model = model;
        this.id = id;
        const core = model._core();
        core.run("tensor_at", model._model(), id);
        const rank = core.number(0), at = core.pointer(2), view = core.view(), dims = [];
        for (let i = 0; i < rank; i++)
            dims.push(view.getBigUint64(at + 8 * i, true));
        this.#row = {
            dtype: core.number(1), firstPart: core.number(2), partCount: core.number(3), nbytes: core.number(4),
            layout: model._layout(core), dims,
        };
        this.name = core.string(0) ?? "";
    }

    get #info() {
        return this.#model._dtypes[this.#row.dtype] ?? this.#model._dtypes[0];
    }

    get dtype() { return this.#info.name; }
    get dims() { return this.#row.dims; }
    get layout() { return this.#row.layout; }
    get nbytes() { return Number.isNaN(this.#row.nbytes) ? null : this.#row.nbytes; }
    get elements() { return this.#row.dims.reduce((n, d) => n * Number(d), 1); }
    get decodes() { return this.#info.decodes && !this.#isPacked("data"); }

    get shape() {
        return this.#row.dims.map(d => {
            if (d > BigInt(Number.MAX_SAFE_INTEGER))
                throw new HeftError("limit", `tensor '${this.name}': the dimension ${d} exceeds 2^53; use dims`,
                                    { tensor: this.name });
            return Number(d);
        });
    }

    get parts() {
        return Array.from({ length: this.#row.partCount },
                          (_, i) => this.#model._part(this.#row.firstPart + i).shown);
    }

    /** Whether the tensor is computed from those of the file when it is read. */
    get _isDecoded() {
        return this.#row.partCount > 0 && this.#model._isVirtual(this.#model._part(this.#row.firstPart));
    }

    get attributes() {
        const core = this.#model._core(), m = this.#model._model();
        return readValues(core, Infinity, i => !!core.run("attribute_at", m, this.id, i));
    }

    /** The part that `role` names: by default "data", or the only one. */
    #findPart(role) {
        const parts = Array.from({ length: this.#row.partCount }, (_, i) => this.#model._part(this.#row.firstPart + i));
        const wanted = role ?? (parts.length === 1 ? parts[0].shown.role : "data");
        const found = parts.find(p => p.shown.role === wanted);
        if (found)
            return found;
        throw new HeftError(role === undefined ? "unsupported" : "notfound",
                            role === undefined
                                ? `tensor '${this.name}' is ${this.layout}: name one of its parts, ` +
                                  parts.map(p => `'${p.shown.role}'`).join(", ")
                                : `tensor '${this.name}' has no part '${role}'`, { tensor: this.name });
    }

    /** Whether the bytes of a part are not elements one after the other: burn.qfloat packs numbers with their scales. */
    #isPacked(role) {
        return role === "data" && this.layout !== "dense";
    }

    /** Check a range against its limit. */
    #range({ from = 0, to }, limit, unit) {
        to ??= limit;
        if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to) || from < 0 || to < from || to > limit)
            throw new HeftError("argument", `tensor '${this.name}': the range ${from} to ${to} leaves its ${limit} ${unit}`,
                                { tensor: this.name });
        return [from, to];
    }

    async #length(part, signal) {
        if (part.shown.length !== null)
            return part.shown.length;
        throw new HeftError("unsupported", `tensor '${this.name}': the size of the part '${part.shown.role}' is not known`,
                            { tensor: this.name });
    }

    bytes(range) {
        return answering(() => this.#bytes(optionsOf(range, "bytes()")));
    }

    async #bytes(range) {
        const part = this.#findPart(range.part);
        const [from, to] = this.#range(range, await this.#length(part, range.signal), "bytes");
        const out = new Uint8Array(to - from);
        await this.#read(part, from, to, range.signal, (bytes, at) => out.set(bytes, at));
        return out;
    }

    /** Call take(bytes, at) with the decoded bytes [from, to), in chunks that are multiples of `unit`. */
    async #read(part, from, to, signal, take, unit = 1) {
        // A compressed part is decoded from its beginning: at once, not again for each chunk.
        const model = this.#model, cache = {};
        const step = part.encoding === RAW ? Math.max(unit, CHUNK - CHUNK % unit) : to - from;
        if (part.encoding === ZSTD) {
            const all = await this.#unzstd(part, signal);
            model._core();
            take(all.subarray(from, to), 0);
            return;
        }
        for (let at = from; at < to; at += step) {
            const len = Math.min(step, to - at);
            await model._session.reading(model._isVirtual(part) ? null : part.shown, signal, () => {
                const core = model._core();
                return core.withMemory(len, ptr => {
                    const st = core.run("part_read", ptr, model._model(), part.number, at, len);
                    if (!st)
                        take(core.bytes(ptr, len), at - from);
                    return st;
                });
            }, this.name, cache);
        }
    }

    async #unzstd(part, signal) {
        const { stored, length, offset } = part.shown;
        const source = this.#model._session.sources[part.shard ? this.#model._shardSource(part.shard) : 0];
        const decode = this.#model._session.options.decoders?.zstd ?? platform.zstd();
        if (!decode)
            throw new HeftError("unsupported", `tensor '${this.name}' is compressed with zstd, which this platform cannot ` +
                                "decode; give open() the option decoders: { zstd }",
                                { rule: "web/no-decoder", offset, tensor: this.name });
        const bytes = await this.#model._session.within(signal, both => source.input.read(offset, stored, both));
        let decoded;
        try {
            decoded = await decode(bytes, length);
        } catch (e) {
            throw new HeftError("format", `tensor '${this.name}': zstd: ${e?.message ?? e}`,
                                { offset, tensor: this.name, cause: e });
        }
        if (decoded.length !== length)
            throw new HeftError("format", `tensor '${this.name}': zstd decoded ${decoded.length} bytes instead of ${length}`,
                                { offset, tensor: this.name });
        return decoded;
    }

    f32(range) { return answering(() => this.#decode(optionsOf(range, "f32()"), F32, Float32Array)); }
    f64(range) { return answering(() => this.#decode(optionsOf(range, "f64()"), F64, Float64Array)); }
    values(range) { return answering(() => typedValues(this, optionsOf(range, "values()"))); }
    stats(options) { return answering(() => statsOf(this, optionsOf(options, "stats()"))); }
    toJSON() { return tensorJson(this); }

    /** The scale of a tensor of nvfp4, which GGUF stores as another tensor; null: none. */
    #findScale() {
        return this.dtype !== "nvfp4" ? null
            : this.#model.find(this.name.replace(/\.weight$/, "") + ".scale") ?? this.#model.find(this.name + ".scale");
    }

    async #decode(range, to, Numbers) {
        const part = this.#findPart(range.part), info = this.#model._dtypes[part.dtype] ?? this.#model._dtypes[0];
        if (!info.decodes)
            throw new HeftError("unsupported", `tensor '${this.name}': elements of type ${info.name} are not decoded; ` +
                                "bytes() reads them", { tensor: this.name });
        if (this.#isPacked(part.shown.role))
            throw new HeftError("unsupported", `tensor '${this.name}': the layout ${this.layout} is not decoded; bytes() reads it`,
                                { tensor: this.name });
        const scale = !range.raw && this.#findScale();
        if (scale)
            throw new HeftError("unsupported", `tensor '${this.name}' is quantised (${this.dtype}, scaled by '${scale.name}'): ` +
                                "its numbers are without the scale; raw: true reads them",
                                { rule: "heft/quantised", tensor: this.name });
        const { blockElements, blockBytes } = info, length = await this.#length(part, range.signal);
        const all = length / blockBytes * blockElements;
        const total = this.layout === "dense" ? Math.min(this.elements, all) : Math.floor(all);
        const [first, end] = this.#range(range, total, "elements");
        const per = info.kind === "complex" ? 2 : 1;
        const firstBlock = Math.floor(first / blockElements), endBlock = Math.ceil(end / blockElements);
        const out = new Numbers((end - first) * per);
        if (first === end)
            return out;
        await this.#read(part, firstBlock * blockBytes, Math.min(endBlock * blockBytes, length), range.signal,
                         (bytes, at) => this.#convert(bytes, at / blockBytes * blockElements - (first - firstBlock * blockElements),
                                                      out, part.dtype, info, to, per), blockBytes);
        return out;
    }

    /**
     * Decode blocks to out[at...]; elements before 0 and past the end are left out. Bytes in the core's
     * memory are used in place, by their address: an array over the memory ends when the memory grows.
     */
    #convert(bytes, at, out, dtype, info, to, per) {
        const core = this.#model._core(), isInCore = bytes.buffer === core.memory.buffer;
        const { byteOffset, length: total } = bytes, step = STEP * info.blockBytes;
        for (let from = 0; from < total; from += step) {
            const len = Math.min(step, total - from);
            const start = (at + from / info.blockBytes * info.blockElements) * per;
            const cast = ptr => this.#cast(core, ptr, Math.floor(len / info.blockBytes * info.blockElements) * per,
                                           { out, start, dtype, to });
            if (isInCore)
                cast(byteOffset + from);
            else
                core.withBytes(bytes.subarray(from, from + len), cast);
        }
    }

    #cast(core, ptr, count, { out, start, dtype, to }) {
        const size = out.BYTES_PER_ELEMENT;
        core.withMemory(count * size, dst => {
            if (!core.run("cast", dst, to, ptr, dtype, count))
                throw new HeftError("unsupported", `tensor '${this.name}': elements of type ${this.dtype} are not decoded`,
                                    { tensor: this.name });
            const skip = Math.max(0, -start), first = Math.max(0, start);
            const n = Math.max(0, Math.min(count - skip, out.length - first));
            if (n) // the address is a multiple of 16
                out.set(new out.constructor(core.memory.buffer, dst + skip * size, n), first);
        });
    }
}

/** ---- columns ------------------------------------------------------------------------------ */

/** The arrays of struct columns in web_columns.c: name, type, and the unit that counts its elements. */
const COLUMNS = [
    ["elements", Float64Array, "tensors"], ["nbytes", Float64Array, "tensors"], ["offsets", Float64Array, "tensors"],
    ["stored", Float64Array, "tensors"], ["dims", Float64Array, "dims"], ["nameEnds", Uint32Array, "tensors"],
    ["dimEnds", Uint32Array, "tensors"], ["shards", Uint32Array, "tensors"], ["dtypes", Uint16Array, "tensors"],
    ["ranks", Uint8Array, "tensors"], ["nameBytes", Uint8Array, "names"],
];
/** Tensors that are copied at once, with names and dimensions of usual length. */
const ROWS = { tensors: 4096, names: 4096 * 64, dims: 4096 * 4 };

function columnBytes(sizes) {
    return COLUMNS.reduce((n, [, Type, unit]) => n + sizes[unit] * Type.BYTES_PER_ELEMENT, 0);
}

/** Call use(name, Type, unit, offset) for each column in a block of memory that begins at `at`. */
function forColumns(sizes, at, use) {
    for (const [name, Type, unit] of COLUMNS) {
        use(name, Type, unit, at);
        at += sizes[unit] * Type.BYTES_PER_ELEMENT;
    }
}

class Columns {
    #model;
    #tied;

    constructor(model, count) {
        const core = model._core();
        this.#model = model;
        this.count = count;
        this.dtypeNames = model._dtypes.map(d => d.name);
        const [names, dims, longest, rank] = this.#sizes(core);
        const all = { tensors: count, names, dims }, copy = new ArrayBuffer(columnBytes(all));
        forColumns(all, 0, (name, Type, unit, at) => { this[name] = new Type(copy, at, all[unit]); });
        const most = { tensors: Math.min(count, ROWS.tensors), names: Math.max(longest, Math.min(names, ROWS.names)),
                       dims: Math.max(rank, Math.min(dims, ROWS.dims)) };
        const head = 4 * (COLUMNS.length + 6);
        core.withMemory(head, list => core.withMemory(columnBytes(most) + 8, ptr => this.#fill(core, list, ptr, most)));
    }

    /** Bytes of the names, number of dimensions, bytes of the longest name, highest rank. */
    #sizes(core) {
        if (this.count === this.#model.tensorCount) {
            core.run("columns_size", this.#model._model());
            return [0, 1, 2, 3].map(i => core.number(i));
        }
        let names = 0, dims = 0, longest = 0, highest = 0;
        for (let i = 0; i < this.count; i++) {
            core.run("tensor_at", this.#model._model(), i);
            const length = core.length(0), rank = core.number(0);
            names += length;
            dims += rank;
            longest = Math.max(longest, length);
            highest = Math.max(highest, rank);
        }
        return [names, dims, longest, highest];
    }

    /** Copy the tensors, in chunks of at most `most`, through the memory at `ptr`. */
    #fill(core, list, ptr, most) {
        const state = new Uint32Array(core.memory.buffer, list, COLUMNS.length + 6), next = COLUMNS.length + 3;
        let i = 0;
        forColumns(most, ptr, (name, Type, unit, at) => { state[i++] = at; });
        state.set([most.tensors, most.names, most.dims, 0, 0, 0], i);
        for (const done = { tensors: 0, names: 0, dims: 0 }; done.tensors < this.count;) {
            state[COLUMNS.length] = Math.min(most.tensors, this.count - done.tensors);
            core.run("columns_fill", this.#model._model(), list);
            const [tensors, names, dims] = state.subarray(next);
            const got = { tensors: tensors - done.tensors, names: names - done.names, dims: dims - done.dims };
            forColumns(most, ptr, (name, Type, unit, at) =>
                this[name].set(new Type(core.memory.buffer, at, got[unit]), done[unit]));
            Object.assign(done, { tensors, names, dims });
        }
    }

    name(i) {
        return utf8.decode(this.nameBytes.subarray(i ? this.nameEnds[i - 1] : 0, this.nameEnds[i]));
    }

    get tiedTo() {
        this.#tied ??= this.#findTied();
        return this.#tied;
    }

    #findTied() {
        const core = this.#model._core();
        return core.withMemory(4 * this.#model.tensorCount + 4, ptr => {
            const st = core.run("tied", ptr, this.#model._model());
            if (st)
                throw core.error(st);
            return new Uint32Array(core.memory.buffer.slice(ptr, ptr + 4 * this.count));
        });
    }
}

/** ---- models ------------------------------------------------------------------------------- */

const SHARD_STATUS = { 0: "ok", "-3": "io", "-5": "io" };

export class Model {
    #columns;
    #metadata;

    constructor(session) {
        this._session = session;
        const core = this._core();
        this._dtypes = dtypesOf(core);
        core.run("model_facts", this._model());
        this.tensorCount = core.number(0);
        this.size = core.number(1);
        this.alignment = core.number(2);
        this._counts = { values: core.number(4), shards: core.number(5), parts: core.number(6), firstPart: core.number(7) };
        this.format = core.string(0);
        this.version = core.string(1) || null;
        this.generator = core.string(3) || null;
        this.name = core.string(2) || session.options.name || session.sources[0].input.name || null;
    }

    _core() {
        if (!this._session.core)
            throw closedError();
        return this._session.core;
    }

    _model() {
        return this._session.model;
    }

    get requests() { return this._session.requests; }
    get bytesRead() { return this._session.bytesRead; }
    get memory() { return this._core().memory.buffer.byteLength; }

    tensorAt(id) {
        if (!Number.isInteger(id) || id < 0 || id >= this.tensorCount)
            throw new HeftError("argument", `there is no tensor ${String(id)}: the model has ${this.tensorCount}`);
        return new Tensor(this, id);
    }

    find(name) {
        if (typeof name !== "string")
            throw new HeftError("argument", `find() takes a name, not ${typeof name}`);
        const id = this._core().withText(name, (ptr, len) => this._core().run("tensor_find", this._model(), ptr, len)) >>> 0;
        return id === NONE ? null : new Tensor(this, id);
    }

    /** Text 1 of the results, the layout of a tensor. Most tensors have that of the one before. */
    _layout(core) {
        const at = core.pointer(1), length = core.length(1);
        if (this.#layout?.at !== at || this.#layout.length !== length)
            this.#layout = { at, length, text: core.string(1) ?? "" };
        return this.#layout.text;
    }
    #layout;

    *[Symbol.iterator]() {
        for (let i = 0; i < this.tensorCount; i++)
            yield new Tensor(this, i);
    }

    /** A part: as shown to the caller, and for reading. */
    _part(number) {
        const core = this._core();
        core.run("part_at", this._model(), number);
        const length = core.number(2), dtype = core.number(3), encoding = core.number(4), shard = core.number(5);
        const shown = {
            role: core.string(0) ?? "", dtype: dtype ? this._dtypes[dtype]?.name ?? UNTYPED : null,
            offset: core.number(0), stored: core.number(1), length: Number.isNaN(length) ? null : length,
            encoding: ENCODINGS[encoding] ?? "other", digest: core.string(1) || null,
        };
        if (shard)
            shown.shard = this._shardName(shard);
        return { number, dtype, encoding, shard, shown };
    }

    /** Whether the bytes of a part are computed from those of others when they are read. */
    _isVirtual(part) {
        return this._session.isDecoded && part.shard > 0 && this._shardSource(part.shard) === undefined;
    }

    get quantised() {
        const core = this._core();
        return Array.from({ length: this._session.quantisedCount ?? 0 }, (_, i) => {
            core.run("quantised_at", i);
            const [bits, hasBlock, rows, columns] = [0, 1, 2, 3].map(n => core.number(n));
            return { name: core.string(0), scheme: core.string(1), variant: core.string(2) || null, bits: bits || null,
                     block: hasBlock ? [rows, columns] : null };
        }).map(q => ({ ...q, decoded: !!this.find(q.name)?._isDecoded }));
    }

    _shardName(n) {
        this._core().run("shard_at", this._model(), n - 1);
        return this._core().string(0) ?? "";
    }

    _shardSource(n) {
        return this._session.shardNumbers.get(this._shardName(n));
    }

    get parts() {
        const { parts, firstPart } = this._counts;
        return Array.from({ length: parts }, (_, i) => this._part(firstPart + i).shown);
    }

    get metadata() {
        const core = this._core(), m = this._model();
        this.#metadata ??= readValues(core, this._counts.values, i => core.run("value_at", m, i));
        return this.#metadata;
    }

    get notices() {
        const core = this._core(), list = [];
        while (core.run("notice_at", this._model(), list.length)) {
            const finding = readFinding(core, () => null, () => null);
            const [tensor, shard] = [core.number(3), core.number(4)];
            if (tensor !== NONE)
                finding.tensor = this.tensorAt(tensor).name;
            if (shard)
                finding.shard = this._shardName(shard);
            list.push(finding);
        }
        return list;
    }

    get shards() {
        const core = this._core();
        return Array.from({ length: this._counts.shards }, (_, i) => {
            core.run("shard_at", this._model(), i);
            const size = core.number(0), status = core.number(1);
            return { name: core.string(0) ?? "", size: Number.isNaN(size) ? null : size,
                     status: SHARD_STATUS[status] ?? "format" };
        });
    }

    get checksums() {
        const core = this._core(), counts = {};
        for (let i = 0; core.run("checksum_at", this._model(), i); i++)
            counts[core.string(0)] = (counts[core.string(0)] ?? 0) + 1;
        return counts;
    }

    columns(options) {
        const { count = this.tensorCount } = optionsOf(options, "columns()");
        if (!Number.isInteger(count) || count < 0)
            throw new HeftError("argument", `columns() of ${String(count)} tensors: count is a number of tensors`);
        this._core();
        if (count < this.tensorCount)
            return new Columns(this, count);
        this.#columns ??= new Columns(this, this.tensorCount);
        return this.#columns;
    }

    vocabulary(options) {
        return answering(() => this.#vocabulary(optionsOf(options, "vocabulary()")));
    }

    async #vocabulary({ signal }) {
        const core = this._core();
        let missing = false;
        await this._session.reading(null, signal, () => {
            const st = core.run("vocab_open", this._model());
            missing = st === -7;
            return missing ? 0 : st;
        });
        if (missing)
            return null;
        const count = core.number(0), special = {};
        for (let i = 0; i < SPECIALS; i++) {
            const id = core.run("vocab_special", this._model(), i) >>> 0;
            if (id !== NONE)
                special[core.string(0)] = id;
        }
        return {
            count, special,
            token: id => {
                if (!(id >= 0 && id < count))
                    return "";
                this._core().run("vocab_token", this._model(), id);
                return core.string(0) ?? "";
            },
            find: token => {
                const id = this._core().withText(token, (ptr, len) =>
                    core.run("vocab_find", this._model(), ptr, len)) >>> 0;
                return id === NONE ? null : id;
            },
        };
    }

    toJSON() { return modelJson(this); }
    verify(options) { return answering(() => work("verify", [this], optionsOf(options, "verify()"))); }
    hash(options) { return answering(() => hashOf(this, optionsOf(options, "hash()"))); }
    diff(other, options) { return answering(() => work("diff", [this, other], optionsOf(options, "diff()"))); }

    close() {
        this.#columns = this.#metadata = undefined;
        return answering(() => this._session.close());
    }
}

export function open(input, options) {
    return answering(async () => new Model(await new Session(optionsOf(options, "open()")).open(input)));
}

export function prepare(options) {
    return answering(async () => {
        const { memory = 24 << 20, wasm, full, worker } = optionsOf(options, "prepare()");
        if (!(memory >= 0))
            throw new HeftError("argument", `prepare(): memory is a number of bytes, not ${String(memory)}`);
        if (worker !== undefined)
            useWorker(worker);
        if (wasm !== undefined)
            await useModule(SMALL, wasm);
        if (full !== undefined)
            await useModule(FULL, full);
        await dtypes();
        await makeReady(memory);
    });
}
