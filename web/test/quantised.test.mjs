/** Quantised models as the tensors that they represent. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import test from "node:test";
import { open } from "./package.mjs";

const BLOCK = 128;

/** The number of a byte of float8 e4m3. */
function e4m3(byte) {
    const exponent = byte >> 3 & 15, fraction = byte & 7;
    const size = exponent ? (1 + fraction / 8) * 2 ** (exponent - 7) : fraction / 8 * 2 ** -6;
    return byte & 128 ? -size : size;
}

/** A file of safetensors with tensors { name: [dtype, shape, bytes] }. */
function safetensors(tensors) {
    const header = {}, blobs = [];
    let at = 0;
    for (const [name, [dtype, shape, bytes]] of Object.entries(tensors)) {
        header[name] = { dtype, shape, data_offsets: [at, at + bytes.length] };
        blobs.push(bytes);
        at += bytes.length;
    }
    const text = Buffer.from(JSON.stringify(header)), length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(text.length));
    return Buffer.concat([length, text, ...blobs]);
}

/** A weight of float8 with a scale, a power of two, for each block of 128 rows and columns. */
function fp8(rows, columns) {
    const weight = new Uint8Array(rows * columns).map((_, i) => i * 37 % 126 | (i % 3 ? 0 : 128));
    const across = Math.ceil(columns / BLOCK), down = Math.ceil(rows / BLOCK);
    const scales = new Float32Array(across * down).map((_, i) => 2 ** (i % 9 - 4));
    const number = i => e4m3(weight[i]) * scales[Math.floor(i / columns / BLOCK) * across + Math.floor(i % columns / BLOCK)];
    return { tensors: { "a.weight": ["F8_E4M3", [rows, columns], weight],
                        "a.weight_scale_inv": ["F32", [down, across], new Uint8Array(scales.buffer)],
                        "norm.weight": ["F32", [1], new Uint8Array(Float32Array.of(3).buffer)] }, number };
}

const settings = JSON.stringify({ torch_dtype: "bfloat16",
                                  quantization_config: { quant_method: "fp8", weight_block_size: [BLOCK, BLOCK] } });

const resolve = name => name === "config.json" ? Buffer.from(settings) : null;

async function compare(model, number, from, to) {
    const got = await model.find("a.weight").f32({ from, to });
    assert.deepEqual([...got], Array.from({ length: to - from }, (_, i) => Math.fround(number(from + i))));
}

test("a quantised tensor is decoded", async () => {
    const { tensors, number } = fp8(300, 260);
    const model = await open(safetensors(tensors), { quantised: "decode", resolve });
    assert.deepEqual([...model].map(t => [t.name, t.dtype, t.shape]),
                     [["a.weight", "bf16", [300, 260]], ["norm.weight", "f32", [1]]]);
    assert.deepEqual(model.quantised, [{ name: "a.weight", scheme: "fp8", variant: null, bits: 8, block: [128, 128], decoded: true }]);
    await compare(model, number, 0, 300 * 260);
    await compare(model, number, 12345, 12377);
    await model.close();
});

test("the stored tensors stay without the option", async () => {
    const model = await open(safetensors(fp8(300, 260).tensors), { resolve });
    assert.deepEqual([...model].map(t => t.name), ["a.weight", "a.weight_scale_inv", "norm.weight"]);
    assert.deepEqual(model.quantised, []);
    await model.close();
});

test("a model without quantised tensors opens as it is", async () => {
    const model = await open(safetensors({ a: ["F32", [1], new Uint8Array(4)] }), { quantised: "decode", resolve });
    assert.deepEqual([[...model].map(t => t.name), model.quantised], [["a"], []]);
    await model.close();
});

test("large tensors are read in few requests, and hash, diff and verify know both forms", async t => {
    const folder = await mkdtemp(path.join(os.tmpdir(), "heft-"));
    try {
        const { tensors, number } = fp8(6000, 2048), file = path.join(folder, "model.safetensors");
        const models = [];
        t.after(() => Promise.all(models.map(m => m.close())));
        await writeFile(file, safetensors(tensors));
        await writeFile(path.join(folder, "config.json"), settings);
        const decoded = await open(file, { quantised: "decode" }), before = decoded.requests;
        models.push(decoded);
        await compare(decoded, number, 6000 * 2048 - 100, 6000 * 2048);
        await decoded.find("a.weight").f32();
        assert.ok(decoded.requests - before < 60, `${decoded.requests - before} requests`);
        const stored = await open(file);
        models.push(stored);
        assert.equal((await decoded.verify()).ok, true);
        assert.notEqual((await decoded.hash()).model, (await stored.hash()).model);
        assert.equal((await decoded.diff(decoded)).equal, true);
        assert.deepEqual((await decoded.diff(stored)).only_in_b, ["a.weight_scale_inv"]);
    } finally {
        await rm(folder, { recursive: true });
    }
});

test("contradictions are said", async () => {
    const { tensors } = fp8(300, 260);
    tensors["a.weight_scale_inv"][1] = [2, 2];
    tensors["a.weight_scale_inv"][2] = new Uint8Array(16);
    await assert.rejects(open(safetensors(tensors), { quantised: "decode", resolve }).then(async m => m.find("a.weight").f32()),
                         e => /scale/.test(e.message));
});
