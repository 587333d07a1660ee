/** Values of a tensor in arrays of their own type, and statistics of all values. */
import { HeftError } from "./error.mjs";

/** Element types that have an array of their own; all others are decoded. */
const NATIVE = { bool: Uint8Array, u8: Uint8Array, i8: Int8Array, u16: Uint16Array, i16: Int16Array, u32: Uint32Array,
                 i32: Int32Array, u64: BigUint64Array, i64: BigInt64Array, f32: Float32Array, f64: Float64Array,
                 c64: Float32Array, c128: Float64Array };
/** Types of which a 32-bit float would lose digits. */
const DOUBLE = new Set(["u32", "i32", "u64", "i64", "f64", "c128"]);
/** Elements that are read at once. */
const STEP = 1 << 20;

function partOf(tensor, role) {
    const { parts } = tensor;
    const wanted = role ?? (parts.length === 1 ? parts[0].role : "data");
    const part = parts.find(p => p.role === wanted);
    return { part, dtype: !part || part.role === "data" ? tensor.dtype : part.dtype ?? "bytes" };
}

/** Elements [from, to) as an array of the element type; see heft.d.ts. */
export async function typedValues(tensor, range = {}) {
    const { part, dtype } = partOf(tensor, range.part), Numbers = NATIVE[dtype];
    if (!Numbers || dtype === "f32" || dtype === "f64" || dtype.startsWith("c") || part?.role === "data" && !tensor.decodes)
        return DOUBLE.has(dtype) ? tensor.f64(range) : tensor.f32(range);
    const size = Numbers.BYTES_PER_ELEMENT, { from = 0, to } = range, most = (part?.length ?? Infinity) / size;
    const end = to ?? Math.max(from, most);
    if (!Number.isSafeInteger(from) || from < 0 || to !== undefined && !Number.isSafeInteger(to) || end < from || end > most)
        throw new HeftError("argument", `tensor '${tensor.name}': the range ${from} to ${to ?? most} leaves its ${most} elements`,
                            { tensor: tensor.name });
    const bytes = await tensor.bytes({ ...range, from: from * size, to: to === undefined ? undefined : to * size });
    return new Numbers(bytes.buffer, bytes.byteOffset, bytes.length / size);
}

/** Sums of values that are added piece by piece. */
export class Sums {
    constructor() {
        Object.assign(this, { count: 0, finite: 0, zeros: 0, nan: 0, inf: 0, min: Infinity, max: -Infinity, shift: null,
                              sum: 0, squares: 0 });
    }

    /** Sums are taken of differences from the first value, so that close values keep their digits. */
    add(values) {
        let { finite, zeros, nan, inf, min, max, shift, sum, squares } = this;
        for (const v of values) {
            if (v - v !== 0) {
                if (v !== v)
                    nan++;
                else
                    inf++;
                continue;
            }
            shift ??= v;
            finite++;
            if (v === 0)
                zeros++;
            if (v < min)
                min = v;
            if (v > max)
                max = v;
            sum += v - shift;
            squares += (v - shift) * (v - shift);
        }
        this.count += values.length;
        Object.assign(this, { finite, zeros, nan, inf, min, max, shift, sum, squares });
    }

    result() {
        const { count, finite, zeros, nan, inf, min, max } = this;
        if (!finite)
            return { count, finite, zeros, nan, inf, min: null, max: null, mean: null, std: null };
        const mean = this.sum / finite;
        const std = Math.sqrt(Math.max(0, this.squares / finite - mean * mean));
        return { count, finite, zeros, nan, inf, min, max, mean: this.shift + mean, std };
    }
}

/** Statistics of all values of a tensor or of one of its parts. */
export async function statsOf(tensor, { part: role, signal, raw, onProgress } = {}) {
    const { part, dtype } = partOf(tensor, role), sums = new Sums();
    const read = range => DOUBLE.has(dtype) ? tensor.f64(range) : tensor.f32(range);
    // A part that is compressed is decoded from its beginning: at once, not again for each step.
    const isRaw = part?.encoding === "raw" && role === undefined;
    const total = tensor.elements, step = isRaw ? STEP : Infinity;
    for (let from = 0; isRaw ? from < total : from === 0; from += step) {
        const to = isRaw ? Math.min(total, from + step) : undefined;
        sums.add(await read({ from, to, part: role, signal, raw }));
        onProgress?.({ done: to ?? total, total });
    }
    return sums.result();
}

/** What JSON.stringify() writes of a tensor. */
export function tensorJson(t) {
    return { name: t.name, dtype: t.dtype, shape: t.dims.map(d => d <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(d) : String(d)),
             layout: t.layout, bytes: t.nbytes, parts: t.parts.map(p => ({ ...p })) };
}

function plain(value) {
    if (value instanceof Map)
        return Object.fromEntries([...value].map(([k, v]) => [k, plain(v)]));
    if (typeof value === "bigint" || typeof value === "number" && value - value !== 0)
        return String(value);
    if (value instanceof Uint8Array)
        return Array.from(value, b => b.toString(16).padStart(2, "0")).join("");
    return Array.isArray(value) || ArrayBuffer.isView(value) ? Array.from(value, plain) : value;
}

/** What JSON.stringify() writes of a model: its index and metadata. */
export function modelJson(m) {
    return { name: m.name, format: m.format, version: m.version, size: m.size, generator: m.generator,
             metadata: plain(m.metadata), shards: m.shards.map(s => ({ ...s })), tensors: [...m].map(tensorJson) };
}
