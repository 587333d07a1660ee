/** An instance of the WebAssembly module: memory, texts, errors, and the functions of heft_web.c. */
import { HeftError, reasonOf } from "./error.mjs";
import { platform } from "./platform.mjs";

export const AGAIN = 1, NONE = 0xffffffff;
const STATUS = {
    "-1": "format", "-2": "unsupported", "-3": "limit", "-4": "nomem", "-5": "io",
    "-6": "checksum", "-7": "notfound", "-8": "argument", "-9": "unsupported", "-10": "cancelled",
};
/** A module of one function with an instruction on vectors. */
const SIMD = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10,
                             1, 8, 0, 65, 0, 253, 15, 253, 98, 11]);
const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });
const encoder = new TextEncoder();

/** Bytes of a hash. */
export const HASH = 32;

export function hexOf(bytes) {
    return Array.from(bytes, b => b.toString(16).padStart(2, "0")).join("");
}

/** Bytes of a page of the module's memory. */
const PAGE = 64 << 10;
/** Pages of the memory of a new instance: --initial-memory in tools/build_web.py. */
const PAGES = 32;
/** Bytes of the largest memory that is kept for the next instance. */
const MOST_SPARE = 64 << 20;
/** Offsets in web_results and heft_error. */
const TEXTS = 64, MESSAGE = 16, MESSAGE_BYTES = 240, RULE = 256;

const OPTIONS = { small: "wasm", full: "full" };

function moduleError(kind, what, cause) {
    return new HeftError("io", `the ${kind === FULL ? "full " : ""}WebAssembly module cannot be loaded: ${what}; ` +
                         `prepare({ ${OPTIONS[kind]} }) takes its address or its bytes`,
                         { rule: "web/module", httpStatus: cause?.httpStatus, cause });
}

async function compile(kind, bytes) {
    const head = new Uint8Array(bytes.buffer ?? bytes, bytes.byteOffset ?? 0, Math.min(4, bytes.byteLength));
    if (String(head) !== "0,97,115,109")
        throw moduleError(kind, `the file begins with "${utf8.decode(head)}", as a page does and a module does not`);
    return WebAssembly.compile(bytes);
}

/** Turn what prepare() takes into a module. */
async function moduleFrom(kind, wasm) {
    const given = await wasm;
    if (given instanceof WebAssembly.Module)
        return given;
    if (typeof Response !== "undefined" && given instanceof Response)
        return compile(kind, await given.arrayBuffer());
    if (typeof given === "string" || given instanceof URL)
        return compile(kind, await platform.bytesAt(given));
    if (given instanceof ArrayBuffer || ArrayBuffer.isView(given))
        return compile(kind, given);
    throw new HeftError("argument", `prepare({ ${OPTIONS[kind]} }) takes an address, bytes, a Response or a WebAssembly.Module`);
}

/** The small module and the full one, which has all formats and decodes quantised tensors. */
export const SMALL = "small", FULL = "full";
const compiled = {};

function compiling(kind, module) {
    const started = module.catch(e => {
        if (compiled[kind] === started)
            compiled[kind] = undefined;
        throw e.rule === "web/module" || e.status === "argument" ? e : moduleError(kind, reasonOf(e), e);
    });
    compiled[kind] = started;
    return started;
}

/** Compile a module once. */
export function loadModule(kind = SMALL) {
    const name = kind === SMALL && WebAssembly.validate(SIMD) ? "simd" : kind;
    return compiled[kind] ?? compiling(kind, (async () => compile(kind, await platform.moduleBytes(name)))());
}

/** Compile the module that prepare() names, for everything that follows. */
export function useModule(kind, wasm) {
    return compiling(kind, moduleFrom(kind, wasm));
}

/** Memory whose pages are in place, for the next instance: prepared, or that of a closed model. */
let spare = null;
let isFresh = false; // the spare memory is zeroed
/** Static data and the stack of a module lie below this address in all its instances. */
const heapBases = new WeakMap();

/** Take the spare memory, zeroed as far as the module expects; null: there is none. */
function takeSpare(module) {
    const base = heapBases.get(module), memory = isFresh || base !== undefined ? spare : null;
    if (memory) {
        spare = null;
        new Uint8Array(memory.buffer, 0, base ?? 0).fill(0);
    }
    return memory;
}

/**
 * An instance of the module; what it calls goes to `instance.core`, which the Core sets. Spare memory is used
 * again.
 */
function instantiate(module) {
    const instance = { core: null }, memory = takeSpare(module) ?? new WebAssembly.Memory({ initial: PAGES });
    const ask = (failed, answer) => (...args) => instance.core.answered(failed, () => answer(instance.core, ...args));
    const { exports } = new WebAssembly.Instance(module, { env: {
        memory,
        read: ask(-1, (core, source, offset, ptr, len) =>
            core.host.read(source, offset, core.bytes(ptr >>> 0, len >>> 0)) ? 0 : -1),
        open_shard: ask(-2, (core, model, ptr, len) => core.host.openShard(model, core.text(ptr >>> 0, len >>> 0))),
        source_size: source => instance.core.host.size(source),
        progress: ask(0, (core, done, total) => core.host.progress?.(done, total) === false ? 0 : 1),
        random: (ptr, len) => {
            platform.random.getRandomValues(instance.core.bytes(ptr >>> 0, len));
        },
        finding: ask(0, core => core.host.finding?.()),
    } });
    heapBases.set(module, exports.__heap_base.value);
    return Object.assign(instance, { call: exports, memory });
}

/**
 * Put memory of `bytes` in place for the next Core. Systems give memory page by page when it is first written,
 * which takes longer than to read an index of many tensors.
 */
export async function makeReady(bytes) {
    await loadModule();
    try {
        const memory = new WebAssembly.Memory({ initial: Math.max(PAGES, Math.ceil(bytes / PAGE)) });
        new Uint8Array(memory.buffer).fill(0);
        spare = memory;
        isFresh = true;
    } catch (e) {
        if (!(e instanceof RangeError || e instanceof TypeError)) // no such memory: it grows when it is needed
            throw e;
    }
}

export class Core {
    /**
     * `host` answers the module: read(source, offset, bytes) -> boolean, openShard(model, name),
     * size(source), progress(done, total), finding().
     */
    constructor(module, host) {
        const instance = instantiate(module);
        instance.core = this;
        this.host = host;
        this.call = instance.call;
        this.memory = instance.memory;
        this.dead = false;
        this.thrown = null;
        this.result = this.call.result();
        this.failure = this.call.error();
    }

    /** End the use of the core. The next one gets the memory, unless that is large. */
    release() {
        if (!this.dead && !spare && this.memory.buffer.byteLength <= MOST_SPARE) {
            spare = this.memory;
            isFresh = false;
        }
        this.dead = true;
        this.call = this.memory = null;
    }

    /** Run a callback; an exception is kept and thrown after the call of the module. */
    answered(failed, fn) {
        try {
            return fn() ?? 0;
        } catch (e) {
            this.thrown ??= e;
            return failed;
        }
    }

    /** Call a function of the module. A trap ends the instance. */
    run(name, ...args) {
        if (this.dead)
            throw new HeftError("crash", "the core has stopped; open the model again", { rule: "web/crash" });
        let result;
        try {
            result = this.call[name](...args);
        } catch (e) {
            this.dead = true;
            throw new HeftError("crash", `the core stopped unexpectedly (${e.message}); open the model again`,
                                { rule: "web/crash", cause: e });
        }
        if (this.thrown) {
            const e = this.thrown;
            this.thrown = null;
            throw e;
        }
        return result;
    }

    view() {
        if (this.#view?.buffer !== this.memory.buffer)
            this.#view = new DataView(this.memory.buffer);
        return this.#view;
    }
    #view;

    bytes(ptr, len) {
        return new Uint8Array(this.memory.buffer, ptr, len);
    }

    text(ptr, len) {
        return len ? utf8.decode(this.bytes(ptr, len)) : "";
    }

    number(i) {
        return this.view().getFloat64(this.result + 8 * i, true);
    }

    pointer(i) {
        return this.view().getUint32(this.result + TEXTS + 8 * i, true);
    }

    /** Text i of the results; null if there is none. */
    string(i) {
        const ptr = this.pointer(i);
        return ptr ? this.text(ptr, this.length(i)) : null;
    }

    /** Bytes of text i of the results. */
    length(i) {
        return this.view().getUint32(this.result + TEXTS + 8 * i + 4, true);
    }

    resultBytes(i) {
        return this.bytes(this.pointer(i), this.length(i));
    }

    terminated(ptr, limit) {
        const all = this.bytes(ptr, Math.min(limit, this.memory.buffer.byteLength - ptr));
        const end = all.indexOf(0);
        return utf8.decode(end < 0 ? all : all.subarray(0, end));
    }

    /** Whether a finding of opening has this rule. */
    hasNotice(model, rule) {
        for (let i = 0; this.run("notice_at", model, i); i++)
            if (this.string(0) === rule)
                return true;
        return false;
    }

    /** The error of the last call. */
    error(status, tensor = null) {
        const rule = this.view().getUint32(this.failure + RULE, true);
        const offset = this.run("error_offset");
        return new HeftError(STATUS[status] ?? "format",
                             this.terminated(this.failure + MESSAGE, MESSAGE_BYTES),
                             { rule: rule ? this.terminated(rule, 200) : null,
                               offset: Number.isNaN(offset) ? null : offset, tensor });
    }

    alloc(size) {
        const ptr = this.run("alloc", size) >>> 0;
        if (!ptr)
            throw new HeftError("nomem", `no memory for ${size} bytes`);
        return ptr;
    }

    free(ptr, size) {
        if (!this.dead)
            this.run("free", ptr, size);
    }

    /** Call fn(ptr) with `size` bytes of the module's memory. */
    withMemory(size, fn) {
        const ptr = this.alloc(size);
        try {
            return fn(ptr);
        } finally {
            this.free(ptr, size);
        }
    }

    withBytes(bytes, fn) {
        return this.withMemory(bytes.length + 1, ptr => {
            this.bytes(ptr, bytes.length).set(bytes);
            return fn(ptr, bytes.length);
        });
    }

    withText(text, fn) {
        return this.withBytes(encoder.encode(text), fn);
    }

    /** Copy a text, terminated; 0 for null. The text stays until the instance is released. */
    keepText(text) {
        if (text == null)
            return 0;
        const bytes = encoder.encode(text.replaceAll("\0", ""));
        const ptr = this.alloc(bytes.length + 1);
        this.bytes(ptr, bytes.length + 1).fill(0);
        this.bytes(ptr, bytes.length).set(bytes);
        return ptr;
    }
}
