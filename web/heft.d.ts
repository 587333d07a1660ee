/**
 * Heft - read model weights of every format that Heft reads, in Node 18+ and in browsers.
 *
 * `open()` reads the index of a file and never the data of the tensors. Everything about the index
 * is then available without waiting; bytes and values of a tensor are read when they are asked for.
 *
 * Names, metadata and messages come from the file. They are data: show them as text, never as HTML.
 * Offsets and sizes are bytes. Shapes are row-major, the outermost dimension first.
 */

/** Where the bytes of a file come from, for inputs of your own. */
export interface RandomAccess {
    /** Size of the file in bytes. */
    readonly size: number;
    /**
     * Read `length` bytes at `offset`. Called only for ranges within the file, by several readers
     * at once. Another number of bytes than asked for is an error.
     */
    read(offset: number, length: number, options: { signal?: AbortSignal }): Promise<Uint8Array>;
    /** File name without folders, for formats that are recognised by more than their content. */
    readonly name?: string;
    /** Called by `Model.close()`, and if `open()` fails. */
    close?(): void | Promise<void>;
}

/**
 * A string is a URL in browsers, resolved against the page; in Node a string that begins with
 * `http://`, `https://`, `file://`, `data:` or `blob:` is a URL and any other string is a path. A
 * `File` of the browser is a `Blob`. Bytes in memory are borrowed: leave them unchanged until
 * `close()`.
 */
export type Input = Blob | URL | string | Uint8Array | ArrayBuffer | RandomAccess;

export interface Progress {
    /** Bytes read so far; for `verify`, `hash` and `diff`, bytes worked off so far. */
    bytes: number;
    /** Bytes in total, or null if not known, as while an index is read. */
    total: number | null;
    /** Requests to the input so far. */
    requests: number;
}

export interface OpenOptions {
    /** Name of the format ("gguf"), instead of recognising the format by its content. */
    format?: string;
    /** Open this entry of a nested PyTorch file: "state_dict" or "ema.model". */
    key?: string;
    /**
     * "decode": the tensors are those that the quantised tensors of the model represent, decoded when they are read;
     * `model.quantised` lists them. Loads the full module, and config.json beside the model if there is one.
     * "stored", the default: the tensors are those of the file.
     */
    quantised?: "stored" | "decode";
    /** Stops `open()`, which then fails with the status "cancelled". */
    signal?: AbortSignal;
    /** Used instead of the global `fetch` for every request of this model. */
    fetch?: typeof fetch;
    /** Most tensors that an index may have; more are a HeftError of status "limit". 16 Mi. */
    maxTensors?: number;
    /** Most bytes of the file that the index may occupy. 1 GiB. */
    maxIndexBytes?: number;
    /**
     * Most bytes that are downloaded from a server that does not answer requests for ranges: the
     * file is then read as a whole, into memory. Larger files are a HeftError of status "io" with
     * the rule "web/no-ranges". 0: never. 64 MiB.
     */
    maxWholeBytes?: number;
    /** File name, if the input does not say it (bytes in memory). */
    name?: string;
    /**
     * Return another file of a model in several files, or null if there is none: `name` is the
     * file name of the shard, without folders. Default: the file of that name next to a URL or
     * path. Other inputs have no default; missing shards are then listed in `Model.shards`.
     */
    resolve?(name: string): Input | null | undefined | Promise<Input | null | undefined>;
    /** Called after each answer of the input. */
    onProgress?(progress: Progress): void;
    /** Decoders of compressions that this platform lacks. */
    decoders?: Decoders;
    /** Open the file even if a checksum of its header or index does not match. */
    noVerify?: boolean;
}

export interface Decoders {
    /**
     * Decode a part that is compressed with zstd; `length` is the decoded size in bytes. Default:
     * the platform's decoder where there is one (Node 22.15). Used by `bytes()`, `f32()` and
     * `f64()`; `hash()`, `verify()` and `diff()` do not decode zstd.
     */
    zstd?(stored: Uint8Array, length: number): Uint8Array | Promise<Uint8Array>;
}

/**
 * Open a model: read the index with as few requests as possible.
 *
 * @throws {HeftError} the file is damaged, of no known format, or cannot be read
 */
export function open(input: Input, options?: OpenOptions): Promise<Model>;

/**
 * Get ready for the next `open()`, while a user chooses a file: compile the core, and reserve `memory` bytes for its
 * index (24 MiB; an index of 100,000 tensors needs 20 MiB). Without it `open()` takes two to three
 * times as long. The memory is kept until that `open()`, or until the process ends.
 *
 * `wasm` and `worker` state where the files of the package are, where a bundler does not keep them
 * beside the modules. They hold for everything that follows: call it before the first `open()`.
 *
 * @throws {HeftError} the module cannot be loaded (rule "web/module")
 */
export function prepare(options?: PrepareOptions): Promise<void>;

export interface PrepareOptions {
    /** Bytes of memory for the next index. 24 MiB. */
    memory?: number;
    /** heft-full.wasm, which is loaded for ONNX and for `quantised: "decode"`: as `wasm`. */
    full?: URL | string | BufferSource | Response | WebAssembly.Module | PromiseLike<BufferSource | Response | WebAssembly.Module>;
    /** heft.wasm or heft-simd.wasm: its address, bytes, an answer of `fetch()`, or the compiled module. */
    wasm?: URL | string | BufferSource | Response | WebAssembly.Module | PromiseLike<BufferSource | Response | WebAssembly.Module>;
    /**
     * The worker of `verify()`, `hash()` and `diff()`: the address of worker.mjs with its modules
     * beside it or of a bundle of it, or a function that starts it. It loads no further files.
     */
    worker?: URL | string | (() => Worker);
}

/** Formats that this build reads. */
export function formats(): Promise<readonly FormatInfo[]>;

/** Element types, in the order of their codes: `dtypes()[code]`. Code 0 is "bytes". */
export function dtypes(): Promise<readonly DtypeInfo[]>;

/** Version of the library: "0.1.0". */
export const version: string;

export interface FormatInfo {
    /** Name as in `Model.format` and `OpenOptions.format`: "gptrs-archive". */
    name: string;
    /** Name for display: "gpt-rs tensor archive". */
    title: string;
    /** Suffixes of file names: [".pt", ".pth"]. */
    suffixes: readonly string[];
}

export interface DtypeInfo {
    /** Name as in `Tensor.dtype`: "bf16", "q4_k". */
    name: string;
    kind: "none" | "bool" | "uint" | "int" | "float" | "complex" | "block";
    /** Elements that share `blockBytes` bytes: 1 for plain types. */
    blockElements: number;
    /** Bytes of `blockElements` elements. */
    blockBytes: number;
    /** Whether `f32()` and `f64()` decode the type. */
    decodes: boolean;
}

export type Status =
    | "format"      // the bytes break the rules of the format, or no format is known
    | "unsupported" // well formed, but not supported by this build or platform
    | "limit"       // a limit of the options or of the platform was reached
    | "nomem"       // not enough memory
    | "io"          // reading failed: network, server, file, file changed meanwhile
    | "checksum"    // a checksum in the file does not match the covered bytes
    | "notfound"    // there is no tensor, part or format of that name
    | "argument"    // the caller broke a rule of this interface
    | "cancelled"   // the caller's signal was aborted, or the model was closed meanwhile
    | "crash";      // the core stopped unexpectedly; its instance is discarded

/**
 * Every failure. `message` is one line for people: what happened, where, what to do next. `cause` is
 * the reason of an aborted signal, or the error of the platform or of a function of the caller.
 *
 * Rules of failures outside of the core: "web/not-found" (404), "web/http-status" (another status),
 * "web/network" (no answer: no network, or the server does not allow other pages, CORS),
 * "web/no-ranges", "web/changed" (the file changed while it was read), "web/truncated" (fewer
 * bytes than asked for), "web/read" (a file or RandomAccess failed), "web/no-decoder",
 * "web/module" (the WebAssembly module cannot be loaded), "web/worker" (the worker cannot be
 * started), "web/aborted" (by a signal), "web/closed", "web/crash".
 */
export class HeftError extends Error {
    readonly name: "HeftError";
    readonly status: Status;
    /** Stable name of the violated rule, as in docs/findings.md, or null. */
    readonly rule: string | null;
    /** Byte of the file that the message is about, or null. */
    readonly offset: number | null;
    /** Name of the tensor that was being read, or null. */
    readonly tensor: string | null;
    /** HTTP status of an answer that was the reason, or null. */
    readonly httpStatus: number | null;
}

/** A value of the metadata. Integers past 2^53 are bigint; a list keeps its order. */
export type Value =
    | null
    | boolean
    | number
    | bigint
    | string
    | Uint8Array
    | NumberArray
    | readonly Value[]
    | ReadonlyMap<string, Value>;

/** Numbers of one type, such as a list in the metadata of GGUF; a copy. */
export type NumberArray =
    | Int8Array
    | Uint16Array
    | Int16Array
    | Uint32Array
    | Int32Array
    | BigUint64Array
    | BigInt64Array
    | Float32Array
    | Float64Array
    | readonly boolean[];

export interface Finding {
    severity: "note" | "warning" | "fault";
    /** Stable name, "mag/align-64"; docs/findings.md lists all rules. */
    rule: string;
    /** First byte, or null if the finding is about no particular bytes. */
    offset: number | null;
    /** Number of bytes. */
    length: number;
    /** Name of a tensor, or null. */
    tensor: string | null;
    /** Name of the shard that `offset` is in; missing for the opened file. */
    shard?: string;
    /** One line for people. */
    text: string;
}

export interface Shard {
    /** File name. */
    name: string;
    /** Bytes, or null if not known. */
    size: number | null;
    /** "ok"; "io": missing or unreadable; "format": not the file that the index describes. */
    status: "ok" | "io" | "format";
}

/** One run of bytes that belongs to a tensor or to the file. */
export interface Part {
    /** "data", "indices", "scale"; of the file: "vocab". */
    role: string;
    /** Element type, or null for bytes. */
    dtype: string | null;
    /** First stored byte in the file. */
    offset: number;
    /** Number of stored bytes. */
    stored: number;
    /** Number of decoded bytes, or null if not known. */
    length: number | null;
    encoding: "raw" | "zstd" | "deflate" | "msgpack" | "protobuf" | "other";
    /** Digest as spelled in the file, "crc32c:0x1A2B3C4D", or null. */
    digest: string | null;
    /** Name of the shard that holds the part; missing for the opened file. */
    shard?: string;
}

export interface Vocabulary {
    /** Number of tokens; ids are 0 to count - 1. */
    readonly count: number;
    /** Text of a token; "" past the end. Bytes that are not UTF-8 become U+FFFD. */
    token(id: number): string;
    /** Lowest id of a token with that text, or null. */
    find(token: string): number | null;
    /** Ids of special tokens: { pad: 0, unk: 1 }. */
    readonly special: Readonly<Record<string, number>>;
}

/**
 * The index in columns, without an object per tensor: entry i belongs to tensor i. Copies, which
 * stay valid after `Model.close()`. Numbers past 2^53 are rounded, unknown ones are NaN.
 */
export interface Columns {
    readonly count: number;
    /** Name of tensor i, decoded when it is asked for. */
    name(i: number): string;
    /** The names in UTF-8, one after the other: name i is nameBytes[nameEnds[i-1] .. nameEnds[i]]. */
    readonly nameBytes: Uint8Array;
    readonly nameEnds: Uint32Array;
    /** Codes of element types: `dtypeNames[dtypes[i]]`. */
    readonly dtypes: Uint16Array;
    readonly dtypeNames: readonly string[];
    readonly ranks: Uint8Array;
    /** The shapes one after the other: shape i is dims[dimEnds[i-1] .. dimEnds[i]]. */
    readonly dims: Float64Array;
    readonly dimEnds: Uint32Array;
    /** Number of elements. */
    readonly elements: Float64Array;
    /** Decoded bytes, as `Tensor.nbytes`. */
    readonly nbytes: Float64Array;
    /** Offset of the first part in its file; NaN without parts. */
    readonly offsets: Float64Array;
    /** Stored bytes of all parts. */
    readonly stored: Float64Array;
    /** File of the first part: 0 the opened file, else Model.shards[n - 1]. */
    readonly shards: Uint32Array;
    /** Lowest id of a tensor with the same bytes (tied tensors); the tensor's own id otherwise. */
    readonly tiedTo: Uint32Array;
}

export interface ReadOptions {
    /** First byte (`bytes`) or element (`f32`, `f64`). 0. */
    from?: number;
    /** End, exclusive. The end of the tensor. */
    to?: number;
    /** Role of the part. Default: "data", or the only part. */
    part?: string;
    /** `f32`, `f64`: read the numbers of a tensor of `nvfp4` without its scale, which is another tensor. */
    raw?: boolean;
    signal?: AbortSignal;
}

export type TypedValues =
    | Uint8Array
    | Int8Array
    | Uint16Array
    | Int16Array
    | Uint32Array
    | Int32Array
    | BigUint64Array
    | BigInt64Array
    | Float32Array
    | Float64Array;

export interface StatsOptions {
    /** Role of the part. Default: "data", or the only part. */
    part?: string;
    /** As for `f32()`. */
    raw?: boolean;
    signal?: AbortSignal;
    /** Called after each step of about a million values. */
    onProgress?(progress: { done: number; total: number }): void;
}

export interface Stats {
    /** Values that were read, and those of them that are neither NaN nor infinite. */
    count: number;
    finite: number;
    zeros: number;
    nan: number;
    inf: number;
    /** Of the finite values; null if there are none. */
    min: number | null;
    max: number | null;
    mean: number | null;
    std: number | null;
}

export interface Tensor {
    readonly id: number;
    readonly name: string;
    /** Element type: "f32", "bf16", "q4_k"; "bytes" if there is none. */
    readonly dtype: string;
    /**
     * The shape. A dimension past 2^53 throws a HeftError of status "limit"; `dims` is always
     * exact. Such a shape is only possible without elements or in a damaged or hostile file.
     */
    readonly shape: readonly number[];
    readonly dims: readonly bigint[];
    /** Number of elements; rounded past 2^53. 1 for a scalar. */
    readonly elements: number;
    /** Decoded bytes of the part "data", or of all parts together; null if not known. */
    readonly nbytes: number | null;
    /** "dense", "sparse_csr", "sparse_coo", or a name that only the format knows. */
    readonly layout: string;
    readonly parts: readonly Part[];
    /** Further values of the tensor: "burn.param_id". */
    readonly attributes: ReadonlyMap<string, Value>;
    /**
     * Whether `f32()` and `f64()` can decode the elements. A part "data" of a layout other than "dense" has numbers that
     * are packed with their scales ("burn.qfloat"): `bytes()` reads it.
     */
    readonly decodes: boolean;

    /**
     * Read decoded bytes [from, to) of a part, in the order of the tensor's elements and
     * little-endian, as `heft cat` prints them. Only the needed bytes of the file are read; of a
     * compressed or strided part, the whole part.
     */
    bytes(range?: ReadOptions): Promise<Uint8Array>;
    /**
     * Read elements [from, to) in row-major order as 32-bit floats: every element type that the
     * core decodes, rounded to nearest. Of block types only the covering blocks are read. Complex
     * elements become two numbers each. Sparse tensors: name a part, such as "values".
     *
     * @throws {HeftError} "unsupported": the type or the layout is not decoded, see `decodes`; or the scale of a tensor
     *   of `nvfp4` is another tensor (rule `heft/quantised`), see `raw`
     */
    f32(range?: ReadOptions): Promise<Float32Array>;
    /** As `f32()`, with 64-bit floats; exact for integers up to 2^53. */
    f64(range?: ReadOptions): Promise<Float64Array>;
    /**
     * Read elements [from, to) into an array of their own type: "i64" becomes a BigInt64Array, "u16" a Uint16Array,
     * "bool" a Uint8Array, "f64" and "c128" a Float64Array, every other type that is decoded a Float32Array. Integers
     * keep all digits. Complex elements become two numbers each.
     */
    values(range?: ReadOptions): Promise<TypedValues>;
    /**
     * Read all values, in steps, and return their statistics. NaN and infinities are excluded from the other figures; a
     * complex number counts as two values; integers past 2^53 are rounded. `std` divides by the number of values.
     */
    stats(options?: StatsOptions): Promise<Stats>;
    /** Name, type, shape, layout, size and parts, for `JSON.stringify()`. Dimensions past 2^53 are texts. */
    toJSON(): unknown;
}

export interface WorkOptions {
    signal?: AbortSignal;
    /** Called about ten times per second. */
    onProgress?(progress: Progress): void;
    /**
     * Most bytes of the file that are copied into memory if the worker cannot read the input
     * itself: a `RandomAccess`, or an own `fetch`, in a page that is not cross-origin isolated.
     * Larger files are a HeftError of status "unsupported". 1 GiB.
     */
    maxCopyBytes?: number;
}

export interface VerifyOptions extends WorkOptions {
    /** Check only the structure and the checksums of header and index. */
    quick?: boolean;
}

export interface HashOptions extends WorkOptions {
    /**
     * Most workers that hash at the same time, from 1 to 64: by default one per processor and
     * 32 MiB. Files with stored checksums, and inputs that a worker cannot open, have one.
     */
    workers?: number;
}

/** As `heft verify --json`; findings are in the same order. */
export interface VerifyReport {
    format: string;
    /** Whether there is no fault. */
    ok: boolean;
    findings: Finding[];
    /** Bytes compared with checksums or checked as values. */
    bytes_checked: number;
    /** Stored bytes of all parts, and how many of them were compared with checksums. */
    payload_bytes: number;
    payload_checked: number;
}

/** As `heft hash --json`: hexadecimal digests that are equal for equal tensors in every format. */
export interface HashReport {
    format: string;
    model: string;
    tensors: { name: string; digest: string }[];
}

/** As `heft diff --json`. */
export interface DiffReport {
    equal: boolean;
    only_in_a: string[];
    only_in_b: string[];
    /** Tensors with equal content under another name. */
    renamed: { a: string; b: string }[];
    changed: Change[];
    summary: {
        tensors: number;
        equal: number;
        differ: number;
        renamed: number;
        only_in_a: number;
        only_in_b: number;
    };
}

export type Change =
    | { name: string; what: "dtype" | "layout"; a: string; b: string }
    | { name: string; what: "shape"; a: number[]; b: number[] }
    | ({ name: string; what: "value" } & ValueChange);

/**
 * Statistics of a - b; null where they are undefined or the values are not numbers. An infinite one is
 * Infinity, which `heft diff --json` writes as text.
 */
export interface ValueChange {
    max_abs: number | null;
    max_rel: number | null;
    mean_abs: number | null;
    rmse: number | null;
    nmse: number | null;
    cosine: number | null;
    /** Elements, or bytes of values that are not numbers; null for parts of different sizes. */
    differing: number | null;
    compared: number | null;
    /** Position of the first difference in the shape. */
    first: number[] | null;
}

/** A tensor that several stored tensors represent. */
export interface QuantisedTensor {
    readonly name: string;
    readonly scheme: string;
    readonly variant: string | null;
    readonly bits: number | null;
    /** Rows and columns of a block of elements with the same scale; 0: all of them. */
    readonly block: readonly [number, number] | null;
    /** False: the scheme is recognised and not decoded, so that its stored tensors stay. */
    readonly decoded: boolean;
}

/**
 * An open model. After `close()` every method rejects or throws a HeftError of status "cancelled".
 * Objects that a model has returned (values, columns, arrays) are copies and stay valid.
 */
export interface Model extends Iterable<Tensor> {
    /** Name of the format: "safetensors". */
    readonly format: string;
    /** Version of the format: "3"; null if the format has only one. */
    readonly version: string | null;
    /** Name of the file, or null. */
    readonly name: string | null;
    /** Bytes of the opened file. */
    readonly size: number;
    /** Program that wrote the file, or null. */
    readonly generator: string | null;
    /** Greatest power of two, at most 64 KiB, that divides every part's offset; 0 without data. */
    readonly alignment: number;
    readonly tensorCount: number;
    /** Tensor by id, 0 to tensorCount - 1; a HeftError of status "argument" otherwise. */
    tensorAt(id: number): Tensor;
    /** Tensor by name, or null. */
    find(name: string): Tensor | null;
    /** All tensors, in the order of the file. An object for each: see `columns()`. */
    [Symbol.iterator](): Iterator<Tensor>;
    /** Metadata of the file, in the order of the file; of equal keys the last one. */
    readonly metadata: ReadonlyMap<string, Value>;
    /** Parts of the file itself, such as a vocabulary. */
    readonly parts: readonly Part[];
    /** The quantised tensors that `quantised: "decode"` decodes: name, scheme ("fp8"), variant, bits of a stored element, rows and columns of a block. */
    readonly quantised: readonly QuantisedTensor[];
    /** Findings of opening: unusual, but allowed. `verify()` reports them too. */
    readonly notices: readonly Finding[];
    /** The vocabulary, or null. Its bytes may have to be read: at most one request. */
    vocabulary(options?: { signal?: AbortSignal }): Promise<Vocabulary | null>;
    /** Further files with parts of the model. */
    readonly shards: readonly Shard[];
    /** Checksums that the file stores, by algorithm: { "crc32c": 3 }. */
    readonly checksums: Readonly<Record<string, number>>;
    /**
     * The index in columns; made at the first call. With `count` only the first tensors, which takes
     * time for those only: to show rows before all columns are there.
     */
    columns(options?: { count?: number }): Columns;

    /** Requests to the input so far, and bytes of their answers; shards included. */
    readonly requests: number;
    readonly bytesRead: number;
    /** Bytes of the WebAssembly heap that this model's instance occupies. */
    readonly memory: number;

    /** Index and metadata, for `JSON.stringify()`: no values. Integers past 2^53 and infinities are texts, bytes hexadecimal. */
    toJSON(): unknown;
    /** Compare every checksum and check the rules of the format, in a worker. */
    verify(options?: VerifyOptions): Promise<VerifyReport>;
    /** Hash every tensor, in a worker. */
    hash(options?: HashOptions): Promise<HashReport>;
    /** Compare the tensors with those of another model, this one being A, in a worker. */
    diff(other: Model, options?: WorkOptions): Promise<DiffReport>;
    /** Release memory, files and workers. Reads that are under way fail. Harmless if repeated. */
    close(): Promise<void>;
}
