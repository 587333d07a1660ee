/**
 * node web/bench/open.mjs [TENSORS]: open the index of a safetensors file with Heft, and with JSON.parse and a loop
 * that builds the same list; and take each tensor of the open model. Prints the medians of 15 runs in turns, after 3
 * that do not count.
 */
import { performance } from "node:perf_hooks";
import { open } from "../test/package.mjs";

const COUNT = Number(process.argv[2] ?? 100_000), RUNS = 15, WARM = 3;
const BYTES = { F32: 4, F16: 2, BF16: 2 };

/** The first bytes of a file of `count` tensors in blocks, and its size with the data. */
function makeHeader(count) {
    const header = { __metadata__: { format: "pt" } };
    const types = Object.keys(BYTES);
    let at = 0;
    for (let i = 0; i < count; i++) {
        const dtype = types[i % 3], shape = [64 + i % 7, 128], bytes = shape[0] * shape[1] * BYTES[dtype];
        header[`model.layers.${Math.floor(i / 9)}.mlp.experts.${i % 9}.down_proj.weight`] =
            { dtype, shape, data_offsets: [at, at + bytes] };
        at += bytes;
    }
    const json = new TextEncoder().encode(JSON.stringify(header));
    const bytes = new Uint8Array(8 + json.length);
    new DataView(bytes.buffer).setBigUint64(0, BigInt(json.length), true);
    bytes.set(json, 8);
    return { bytes, size: bytes.length + at };
}

/** A list with the same facts, in the way of a reader of one format. */
function byJson(bytes) {
    const length = Number(new DataView(bytes.buffer).getBigUint64(0, true));
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
    const list = [];
    for (const [name, t] of Object.entries(header))
        if (name !== "__metadata__")
            list.push({ name, dtype: t.dtype, shape: t.shape, offset: 8 + length + t.data_offsets[0],
                        bytes: t.data_offsets[1] - t.data_offsets[0] });
    return list.length;
}

async function byHeft({ bytes, size }) {
    const input = { size, read: async (offset, length) => bytes.subarray(offset, offset + length) };
    const model = await open(input);
    const { count } = model.columns();
    const requests = model.requests;
    await model.close();
    return { count, requests };
}

/** Take the name, type and shape of each tensor. */
function byIteration(model) {
    let all = 0;
    for (const t of model)
        all += t.name.length + t.dtype.length + t.dims.length;
    return all;
}

async function timed(fn) {
    const start = performance.now();
    await fn();
    return performance.now() - start;
}

function median(list) {
    return [...list].sort((a, b) => a - b)[list.length >> 1];
}

const file = makeHeader(COUNT);
const times = { json: [], heft: [], each: [] };
const model = await open({ size: file.size, read: async (offset, length) => file.bytes.subarray(offset, offset + length) });
for (let i = 0; i < RUNS + WARM; i++) {
    const json = await timed(() => byJson(file.bytes)), heft = await timed(() => byHeft(file)),
          each = await timed(() => byIteration(model));
    if (i >= WARM) {
        times.json.push(json);
        times.heft.push(heft);
        times.each.push(each);
    }
}
const { requests } = await byHeft(file);
const json = median(times.json), heft = median(times.heft), each = median(times.each);
console.log(JSON.stringify({ tensors: COUNT, header_bytes: file.bytes.length, requests, json_ms: +json.toFixed(2),
                             heft_ms: +heft.toFixed(2), ratio: +(heft / json).toFixed(3), each_ms: +each.toFixed(2),
                             each_ratio: +(each / json).toFixed(3) }));
