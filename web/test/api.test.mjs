/** The interface: inputs, requests, ranges, errors, workers, memory. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import test, { after } from "node:test";
import { pathToFileURL } from "node:url";
import zlib from "node:zlib";
import { HeftError, PACKAGE, dtypes, formats, open, prepare, version } from "./package.mjs";
import { serve } from "./server.mjs";
import { SAMPLES, heft } from "./tools.mjs";

const scratch = mkdtempSync(path.join(os.tmpdir(), "heft-web-"));
after(() => rmSync(scratch, { recursive: true }));

/** A safetensors file: [name, dtype, shape, bytes] for each tensor. */
function safetensors(tensors) {
    const entries = [];
    let at = 0;
    for (const [name, dtype, shape, bytes] of tensors) {
        entries.push(`${JSON.stringify(name)}:${JSON.stringify({ dtype, shape, data_offsets: [at, at + bytes.length] })}`);
        at += bytes.length;
    }
    const json = Buffer.from(`{${entries.join()}}`), header = json.length + (8 - json.length % 8) % 8;
    const file = Buffer.alloc(8 + header + at, " ");
    file.writeBigUInt64LE(BigInt(header));
    file.set(json, 8);
    tensors.reduce((o, [, , , bytes]) => (file.set(bytes, o), o + bytes.length), 8 + header);
    return new Uint8Array(file);
}

const bytesOf = array => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
const floats = Float32Array.from({ length: 50_000 }, (_, i) => i / 7);
const small = safetensors([["a", "F32", [50_000], bytesOf(floats)], ["b", "U8", [4], Uint8Array.of(1, 2, 3, 4)]]);

/** A file with `count` tensors, whose index has megabytes. */
function large(count) {
    return safetensors(Array.from({ length: count }, (_, i) =>
        [`layers.${i}.attention.query.weight`, "F32", [8, 8], new Uint8Array(256).fill(i)]));
}

/** Counts reads, as a caller's own input. */
function counting(bytes) {
    const reads = [];
    return { reads, size: bytes.length,
             read: async (offset, length) => (reads.push([offset, length]), bytes.subarray(offset, offset + length)) };
}

async function fails(promise, status, rule, text) {
    await assert.rejects(promise, e => {
        assert.ok(e instanceof HeftError, e.stack);
        assert.deepEqual([e.status, e.rule], [status, rule], e.message);
        assert.match(e.message, text);
        assert.doesNotMatch(e.message, /\n/);
        return true;
    });
}

/** Write the model of `small` in another format. */
async function converted(suffix, bytes = small, more = []) {
    const from = path.join(scratch, "from.safetensors"), to = path.join(scratch, `to${suffix}`);
    writeFileSync(from, bytes);
    const { code, stderr } = await heft(["convert", "--force", ...more, from, to]);
    assert.equal(code, 0, stderr);
    return to;
}

test("every kind of input opens", async () => {
    const file = path.join(scratch, "kinds.safetensors");
    writeFileSync(file, small);
    const url = new URL(`file://${file}`);
    for (const input of [small, small.slice().buffer, new Blob([small]), file, url, String(url), counting(small)]) {
        const model = await open(input);
        assert.equal(model.format, "safetensors");
        assert.deepEqual([...model].map(t => t.name), ["a", "b"]);
        assert.deepEqual(Array.from(await model.find("a").f32({ from: 70, to: 73 })), Array.from(floats.subarray(70, 73)));
        await model.close();
    }
});

test("the index of each format takes few requests, and no data are read", async () => {
    const bytes = large(20_000);
    const most = { safetensors: 2, mag: 2, bpk: 2, gguf: 2, gptrs: 2, gten: 2, zt: 3, weights: 3 };
    const seen = {};
    for (const [suffix, limit] of Object.entries(most)) {
        const file = readFileSync(await converted(`.${suffix}`, bytes, ["--allow-loss"]));
        const input = counting(new Uint8Array(file));
        const model = await open(input);
        assert.equal(model.tensorCount, 20_000);
        seen[suffix] = model.requests;
        assert.equal(model.requests, input.reads.length);
        await model.close();
    }
    console.log("# requests to open:", JSON.stringify(seen));
    for (const [suffix, limit] of Object.entries(most))
        assert.ok(seen[suffix] <= limit, `${suffix}: ${seen[suffix]} requests, at most ${limit}`);
});

test("a value takes one request for its bytes", async () => {
    const input = counting(large(3000)), model = await open(input);
    input.reads.length = 0;
    const values = await model.tensorAt(2000).bytes({ from: 16, to: 32 });
    assert.deepEqual(Array.from(values), Array(16).fill(2000 % 256));
    assert.deepEqual(input.reads, [[model.tensorAt(2000).parts[0].offset + 16, 16]]);
    await model.close();
});

test("all values of a large tensor are read, whatever memory that takes", async () => {
    const many = Float32Array.from({ length: 3_000_000 }, (_, i) => i % 1_000_003);
    const file = safetensors([["a", "F32", [3000, 1000], bytesOf(many)]]);
    const model = await open(counting(file));
    assert.ok(Buffer.from((await model.find("a").f32()).buffer).equals(Buffer.from(many.buffer)));
    assert.deepEqual(await model.find("a").f64({ from: 2_999_990 }), Float64Array.from(many.subarray(2_999_990)));
    await model.close();
});

test("a transposed array is read once", async () => {
    const file = path.join(scratch, "f.npy");
    const script = "import numpy as np, sys\nnp.save(sys.argv[1], np.asfortranarray(np.arange(3000000, dtype='>f8').reshape(3000, 1000)))";
    assert.equal(spawnSync(process.env.PYTHON ?? "/usr/bin/python3", ["-c", script, file]).status, 0);
    const input = counting(new Uint8Array(readFileSync(file))), model = await open(input);
    input.reads.length = 0;
    const values = await model.tensorAt(0).f32();
    assert.ok(values.every((v, i) => v === i));
    assert.ok(input.reads.length <= 3, `${input.reads.length} reads`);
    await model.close();
});

test("ranges that leave a tensor are refused", async () => {
    const model = await open(small);
    const a = model.find("a");
    for (const range of [{ from: -1 }, { to: 50_001 }, { from: 2, to: 1 }, { from: 0.5 }])
        await fails(a.f32(range), "argument", null, /leaves its 50000 elements/);
    await fails(a.bytes({ part: "no" }), "notfound", null, /no part 'no'/);
    assert.equal(model.find("no"), null);
    assert.throws(() => model.tensorAt(2), { name: "HeftError", status: "argument" });
    assert.equal((await a.f32({ from: 5, to: 5 })).length, 0);
    await model.close();
});

test("block types decode from any element", async () => {
    const model = await open(path.join(SAMPLES, "gguf/good/align_1.gguf")), t = model.find("b");
    const all = await t.f32();
    assert.deepEqual([t.dtype, all.length], ["q4_0", 64]);
    for (const [from, to] of [[0, 1], [31, 33], [5, 40], [63, 64]])
        assert.deepEqual(await t.f32({ from, to }), all.slice(from, to));
    await model.close();
});

test("the values of every sample are as the command reads them", async () => {
    for (const name of ["npy/good", "npz/good", "gguf/good", "torch/good", "ztensor/good", "safetensors/good"])
        await compareValues(path.join(SAMPLES, name));
});

test("every block type has the values that the command reads", async () => {
    const file = path.join(SAMPLES, "gguf/good/blocks.gguf"), model = await open(file);
    for (const t of model) {
        const f32 = path.join(scratch, `${t.dtype}.safetensors`);
        assert.equal((await heft(["convert", "-q", "--keep", t.name, "--cast", "f32", file, f32])).code, 0);
        const cast = await open(f32);
        assert.deepEqual(await t.f32(), await cast.tensorAt(0).f32(), t.dtype);
        await cast.close();
    }
    assert.equal(model.tensorCount, 27);
    await model.close();
});

/** A GGUF file without metadata: [name, number of the type, columns, bytes] for each tensor. */
function gguf(tensors) {
    const u32 = n => Buffer.from(Uint32Array.of(n).buffer), u64 = n => Buffer.from(BigUint64Array.of(BigInt(n)).buffer);
    const padded = b => Buffer.concat([b, Buffer.alloc((32 - b.length % 32) % 32)]), data = [];
    const head = [Buffer.from("GGUF"), u32(3), u64(tensors.length), u64(0)];
    for (const [name, type, columns, bytes] of tensors) {
        const at = data.reduce((n, b) => n + b.length, 0);
        head.push(u64(name.length), Buffer.from(name), u32(1), u64(columns), u32(type), u64(at));
        data.push(padded(Buffer.from(bytes)));
    }
    return new Uint8Array(Buffer.concat([padded(Buffer.concat(head)), ...data]));
}

test("numbers of nvfp4 without their scale are read only if told so", async () => {
    const block = [0x38, 0x38, 0x38, 0x38, ...Array(32).fill(0x22)], scale = Buffer.from(Float32Array.of(0.5).buffer);
    for (const name of ["a.scale", "a.weight.scale"]) {
        const model = await open(gguf([["a.weight", 40, 64, block], [name, 0, 1, scale], ["b.weight", 40, 64, block]]));
        const a = model.find("a.weight"), ones = new Float32Array(64).fill(1);
        await fails(a.f32(), "unsupported", "heft/quantised", new RegExp(`scaled by '${name}'`));
        await fails(a.f64({ from: 1 }), "unsupported", "heft/quantised", /raw: true/);
        assert.deepEqual(await a.f32({ raw: true }), ones);
        assert.deepEqual(await model.find("b.weight").f32(), ones);
        assert.equal((await model.find(name).f32())[0], 0.5);
        await model.close();
    }
});

/** Compare f64() with `heft show --json` or f32() with `heft cat` cast by the command. */
async function compareValues(folder) {
    const { readdirSync } = await import("node:fs");
    const files = readdirSync(folder).filter(f => !f.endsWith(".json")).slice(0, 12);
    for (const name of files) {
        const file = path.join(folder, name);
        let model;
        try {
            model = await open(file, { noVerify: true });
        } catch {
            continue;
        }
        for (const t of [...model].slice(0, 4)) {
            const zstd = t.parts.some(p => p.encoding === "zstd" || p.encoding === "other");
            if (!t.decodes || t.layout !== "dense" || t.dtype.startsWith("c") || zstd || t.elements > 5000)
                continue;
            const shown = await heft(["show", "--json", "--no-verify", file, t.name]);
            if (shown.code)
                continue;
            const doc = JSON.parse(shown.stdout);
            const list = [doc.values].flat(Infinity), values = await t.f64();
            assert.equal(values.length, list.length, `${name} ${t.name}`);
            list.forEach((v, i) => {
                const want = v === null ? NaN : typeof v === "string" ? Number(v.replace(/inf/i, "Infinity")) : Number(v);
                assert.ok(Object.is(values[i], want) || Math.abs(values[i] - want) <= 1e-5 * Math.abs(want) || values[i] == want,
                          `${name} ${t.name}[${i}]: ${values[i]}, the command says ${v}`);
            });
        }
        await model.close();
    }
}

test("metadata have exact types", async () => {
    const model = await open(path.join(SAMPLES, "gguf/good/align_1.gguf"));
    assert.equal(model.metadata.get("general.alignment"), 1);
    assert.ok(model.notices.some(n => n.rule === "gguf/alignment"));
    await model.close();
});

test("a damaged file is an error with a rule", async () => {
    await fails(open(new Uint8Array(0)), "format", "heft/unknown-format", /empty/);
    await fails(open(small.slice(0, 1000)), "format", "safetensors/structure", /truncated|present/);
    await fails(open(new TextEncoder().encode("<html>no</html>")), "format", "heft/unknown-format", /./);
    await fails(open(42), "argument", null, /open\(\) takes/);
    await fails(open(path.join(scratch, "absent")), "io", "web/not-found", /no file/);
    await fails(open(large(500), { maxTensors: 10 }), "limit", "heft/limit-tensors", /10/);
    await fails(open(small, { format: "nothing" }), "argument", null, /no format/);
});

test("an input that answers too little or fails is an error", async () => {
    const bytes = large(3000);
    const cut = { size: bytes.length, read: async (o, n) => bytes.subarray(o, o + n - (o > 0)) };
    await fails(open(cut), "io", "web/truncated", /ended early/);
    const broken = { size: 1000, read: async () => { throw new Error("disk on fire"); } };
    await fails(open(broken), "io", "web/read", /disk on fire/);
});

test("a server with ranges is read by range", async () => {
    const bytes = large(20_000), server = await serve(bytes);
    const model = await open(server.url);
    assert.equal(model.requests, 2);
    assert.equal(server.log.length, 2);
    assert.equal(model.tensorCount, 20_000);
    assert.deepEqual(await model.tensorAt(9).bytes({ to: 2 }), Uint8Array.of(9, 9));
    assert.equal((await model.verify()).ok, true);
    await model.close();
    await server.close();
});

test("fetch is called as a function, as browsers demand", async () => {
    const server = await serve(large(3000)), before = globalThis.fetch;
    let owner = "nobody";
    globalThis.fetch = function (...args) {
        owner = this;
        return before(...args);
    };
    try {
        await (await open(server.url)).close();
    } finally {
        globalThis.fetch = before;
    }
    assert.equal(owner, undefined);
    await server.close();
});

test("an index is taken in pieces as they arrive", async () => {
    const bytes = large(20_000), want = await open(bytes);
    for (const isStated of [true, false]) {
        const server = await serve(bytes, { isStated }), seen = [];
        const model = await open(server.url, { onProgress: p => seen.push(p.bytes) });
        assert.deepEqual([model.requests, model.bytesRead], [2, seen.at(-1)]);
        assert.ok(seen.length > 3 && seen.every((n, i) => !i || n > seen[i - 1]), `progress: ${seen}`);
        assert.deepEqual(model.columns().nameBytes, want.columns().nameBytes);
        assert.deepEqual(await model.tensorAt(19_999).bytes(), await want.tensorAt(19_999).bytes());
        await model.close();
        await server.close();
    }
    await want.close();
});

test("an index without a stated length is read as a stream", async () => {
    const file = readFileSync(await converted(".gguf", large(20_000)));
    const server = await serve(new Uint8Array(file)), model = await open(server.url);
    assert.equal(model.tensorCount, 20_000);
    assert.equal(model.requests, 2);
    await model.close();
    await server.close();
});

test("a server without ranges sends the file as a whole, up to a limit", async () => {
    const server = await serve(small, { ranges: false });
    const model = await open(server.url);
    assert.equal(model.requests, 1);
    assert.equal((await model.find("b").bytes())[3], 4);
    await model.close();
    await fails(open(server.url, { maxWholeBytes: 1000 }), "io", "web/no-ranges", /maxWholeBytes/);
    await server.close();
});

test("a file that changes is never a mixture", async () => {
    const bytes = large(20_000);
    for (const first of [1, 2]) {
        const server = await serve(bytes, { etag: n => (n < first ? '"v1"' : '"v2"') });
        const reading = open(server.url).then(m => m.tensorAt(19_000).bytes());
        await fails(reading, "io", "web/changed", /was changed/);
        await server.close();
    }
});

test("statuses and answers that end early are errors", async () => {
    const bytes = large(20_000);
    for (const [options, rule, text] of [
        [{ status: () => 404 }, "web/not-found", /does not exist/],
        [{ status: () => 403 }, "web/http-status", /403.*not allowed$/],
        [{ status: () => 403, said: "ask for access" }, "web/http-status", /403.*not allowed: ask for access$/],
        [{ status: () => 404, said: "Entry not found" }, "web/not-found", /does not exist.*404.*: Entry not found$/],
        [{ status: n => (n ? 500 : undefined) }, "web/http-status", /500/],
        [{ truncate: () => true }, "web/truncated", /ended early|instead of/],
        [{ truncate: n => n === 1 }, "web/truncated", /ended early|instead of/],
        [{ truncate: () => true, ranges: false }, "web/truncated", /ended early|instead of/],
        [{ truncate: n => n === 1, isStated: false }, "web/truncated", /ended early/],
        ...[-1, 1].flatMap(more => [true, false].map(isStated =>
            [{ length: n => n === 128 << 10 ? n : n + more, isStated }, "web/truncated", /instead of/])),
    ]) {
        const server = await serve(bytes, options);
        await fails(open(server.url), "io", rule, text);
        await server.close();
    }
    await fails(open("http://127.0.0.1:9/model"), "io", "web/network", /cannot be reached/);
});

test("a signal stops opening, reading and working", async () => {
    const never = { size: 1 << 20, read: (o, n, { signal }) => new Promise((_, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason))) };
    const timer = new AbortController(), keep = setTimeout(() => timer.abort(new Error("too slow")), 20);
    const late = await open(never, { signal: timer.signal }).catch(e => e);
    assert.deepEqual([late.name, late.status, late.rule, late.cause], ["HeftError", "cancelled", "web/aborted", timer.signal.reason]);
    assert.match(late.message, /too slow/);
    clearTimeout(keep);
    await assert.rejects(open(small, { signal: AbortSignal.abort() }), { status: "cancelled", rule: "web/aborted" });
    const model = await open(small), control = new AbortController();
    const hashing = model.hash({ signal: control.signal });
    control.abort();
    await assert.rejects(hashing, { status: "cancelled", rule: "web/aborted" });
    assert.equal((await model.hash()).tensors.length, 2);
    await model.close();
});

test("every failure is a HeftError", async () => {
    const model = await open(small), other = new Error("of the caller");
    const fail = () => { throw other; };
    const calls = {
        "no input": () => open(null), "an input without read()": () => open({}), "an address": () => open("http://[bad"),
        "options": () => open(small, "gguf"), "a signal": () => open(small, { signal: {} }),
        "progress": () => open(small, { onProgress: fail }), "own fetch": () => open("http://127.0.0.1/x", { fetch: fail }),
        "own input": () => open({ size: 9, read: fail }), "a range": () => model.tensorAt(0).bytes({ from: "x" }),
        "range": () => model.tensorAt(0).f32(3), "a tensor": async () => model.tensorAt(-1), "a name": async () => model.find(),
        "an id": async () => model.tensorAt(Symbol("x")), "no model": () => model.diff(), "another model": () => model.diff({}),
        "progress of work": () => model.hash({ onProgress: fail, signal: 1 }), "memory": () => prepare({ memory: "much" }),
        "module": () => prepare({ wasm: 5 }), "no module": () => prepare({ wasm: new Uint8Array(9) }),
        "no file": () => prepare({ wasm: "nowhere.wasm" }), "worker": () => prepare({ worker: 5 }),
    };
    for (const [what, call] of Object.entries(calls)) {
        const e = await call().then(() => null, error => error);
        assert.ok(e instanceof HeftError, `${what}: ${e}`);
        assert.notEqual(e.status, "crash", `${what}: ${e}`);
    }
    await prepare({ worker: new URL("file:///nowhere/worker.mjs") });
    await assert.rejects(model.hash(), { name: "HeftError", rule: "web/worker" });
    await prepare({ worker: new URL("node_worker.mjs", pathToFileURL(PACKAGE + "/")) });
    assert.ok((await model.hash()).model);
    await model.close();
});

test("columns of the first tensors are a part of all columns", async () => {
    const shapes = Array.from({ length: 300 }, (_, i) => Array.from({ length: i % 4 }, (_, d) => 1 + (i + d) % 3));
    const name = i => i % 7 ? `t${i}` : `${i}`.padEnd(300, "é");
    const file = safetensors(shapes.map((shape, i) =>
        [name(i), "U8", shape, new Uint8Array(shape.reduce((n, d) => n * d, 1)).fill(i % 3)]));
    const model = await open(file), all = model.columns();
    for (const count of [0, 1, 2, 7, 299, 300, 1e6]) {
        const some = model.columns({ count }), want = Math.min(count, 300), last = want - 1;
        assert.equal(some.count, want);
        assert.deepEqual(some.tiedTo, all.tiedTo.slice(0, want));
        for (const key of ["nameEnds", "dimEnds", "dtypes", "ranks", "elements", "nbytes", "offsets", "stored", "shards"])
            assert.deepEqual(some[key], all[key].slice(0, want), key);
        assert.deepEqual(some.nameBytes, all.nameBytes.slice(0, want ? all.nameEnds[last] : 0));
        assert.deepEqual(some.dims, all.dims.slice(0, want ? all.dimEnds[last] : 0));
        if (want)
            assert.equal(some.name(last), name(last));
    }
    assert.equal(model.columns(), all);
    for (const count of [-1, 0.5, NaN, "1"])
        assert.throws(() => model.columns({ count }), { name: "HeftError", status: "argument" });
    await model.close();
});

test("a closed model says so", async () => {
    const model = await open(small), t = model.find("a"), columns = model.columns();
    await model.close();
    await model.close();
    await fails(t.f32(), "cancelled", "web/closed", /closed/);
    await fails(model.hash(), "cancelled", "web/closed", /closed/);
    assert.throws(() => model.find("a"), { status: "cancelled" });
    assert.equal(columns.name(0), "a");
});

test("hash() by several workers is that of the command", async () => {
    const a = path.join(scratch, "shares.safetensors");
    writeFileSync(a, safetensors(Array.from("edcba", (name, i) => [name, "U8", [i + 1], new Uint8Array(i + 1).fill(i)])));
    const want = JSON.parse((await heft(["hash", "--json", a])).stdout);
    const model = await open(a), seen = [];
    for (const workers of [1, 2, 3, 5, 64]) {
        const got = await model.hash({ workers, onProgress: p => seen.push([p.bytes, p.total]) });
        assert.deepEqual([got.model, got.tensors], [want.model, want.tensors.map(({ name, digest }) => ({ name, digest }))]);
    }
    for (const [bytes, total] of seen)
        assert.ok(bytes <= total, `${bytes} of ${total}`);
    for (const workers of [0, 65, 1.5, "2", null])
        await fails(model.hash({ workers }), "argument", null, /workers is a number from 1 to 64/);
    const control = new AbortController();
    const hashing = model.hash({ workers: 3, signal: control.signal });
    control.abort();
    await fails(hashing, "cancelled", "web/aborted", /./);
    assert.equal((await model.hash({ workers: 3 })).model, want.model);
    writeFileSync(a, new Uint8Array(9));
    await fails(model.hash({ workers: 3 }), "io", "web/changed", /changed/);
    await model.close();
    await fails(model.hash({ workers: 3 }), "cancelled", "web/closed", /closed/);
});

test("verify, hash and diff report what the command reports", async () => {
    const other = small.slice();
    other[other.length - 1] = 9;
    new DataView(other.buffer, other.length - 4 - 200_000).setFloat32(40, 1e6, true);
    const a = path.join(scratch, "a.safetensors"), b = path.join(scratch, "b.safetensors");
    writeFileSync(a, small);
    writeFileSync(b, other);
    for (const inputs of [[a, b], [small, other], [counting(small), counting(other)], [new Blob([small]), b]]) {
        const [x, y] = await Promise.all(inputs.map(i => open(i)));
        assert.deepEqual(await x.diff(y), JSON.parse((await heft(["diff", "--json", "--ignore-metadata", a, b])).stdout));
        assert.deepEqual((await x.hash()).model, JSON.parse((await heft(["hash", "--json", a])).stdout).model);
        assert.deepEqual(await x.diff(x), JSON.parse((await heft(["diff", "--json", "--ignore-metadata", a, a])).stdout));
        await Promise.all([x.close(), y.close()]);
    }
});

test("diff compares across types and finds renamed tensors", async () => {
    const ints = BigInt64Array.of(1n, 2n ** 60n, 3n), more = BigInt64Array.of(1n, 2n ** 60n + 1n, 3n);
    const a = safetensors([["i", "I64", [3], bytesOf(ints)], ["x", "F32", [2, 2], bytesOf(Float32Array.of(1, 2, 3, NaN))],
                           ["old", "U8", [2], Uint8Array.of(5, 6)], ["s", "F32", [2], bytesOf(Float32Array.of(1, 2))]]);
    const b = safetensors([["i", "I64", [3], bytesOf(more)], ["x", "F64", [2, 2], bytesOf(Float64Array.of(1, 2.5, 0, NaN))],
                           ["new", "U8", [2], Uint8Array.of(5, 6)], ["s", "F32", [1, 2], bytesOf(Float32Array.of(1, 2))]]);
    const files = [path.join(scratch, "p.safetensors"), path.join(scratch, "q.safetensors")];
    [a, b].forEach((bytes, i) => writeFileSync(files[i], bytes));
    const [x, y] = await Promise.all([open(a), open(b)]);
    const { stdout } = await heft(["diff", "--json", "--ignore-metadata", ...files]);
    // JSON has no infinity: the command writes text.
    assert.deepEqual(await x.diff(y), JSON.parse(stdout, (_, v) => (v === "Infinity" ? Infinity : v)));
    await Promise.all([x.close(), y.close()]);
});

test("a worker that fails to read reports the reason", async () => {
    let broken = false;
    const bytes = large(3000);
    const input = { size: bytes.length, read: async (o, n) => {
        if (broken)
            throw new Error("unplugged");
        return bytes.subarray(o, o + n);
    } };
    const model = await open(input);
    broken = true;
    await fails(model.hash(), "io", "web/read", /unplugged/);
    await model.close();
});

test("shards are found next to a path, and through resolve", async () => {
    const from = path.join(scratch, "whole.safetensors"), folder = path.join(scratch, "parts");
    writeFileSync(from, large(400));
    const { code, stderr } = await heft(["split", "--max-size", "40000", from, folder]);
    assert.equal(code, 0, stderr);
    const { readdirSync } = await import("node:fs");
    const index = path.join(folder, readdirSync(folder).find(f => f.endsWith(".index.json")));
    const byPath = await open(index);
    assert.ok(byPath.shards.length > 1);
    assert.deepEqual(await byPath.find("layers.399.attention.query.weight").bytes({ to: 1 }), Uint8Array.of(399 % 256));
    const expected = JSON.parse((await heft(["hash", "--json", index])).stdout).model;
    assert.equal((await byPath.hash()).model, expected);
    const blobs = await open(readFileSync(index), { name: path.basename(index),
                                                    resolve: name => readFileSync(path.join(folder, name)) });
    assert.equal((await blobs.hash()).model, expected);
    const alone = await open(readFileSync(index), { name: path.basename(index) });
    assert.ok(alone.shards.every(s => s.status === "io"));
    for (const m of [byPath, blobs, alone])
        await m.close();
});

test("zstd needs a decoder, which the caller may give", async () => {
    const file = await converted(".zt", small, ["--format-version", "1.2", "--compress", "zstd"]);
    const model = await open(file), a = model.find("a");
    assert.deepEqual([a.parts[0].encoding, a.parts[0].length], ["zstd", 200_000]);
    if (!zlib.zstdDecompressSync) {
        await fails(a.f32(), "unsupported", "web/no-decoder", /decoders: \{ zstd \}/);
        await fails(model.hash(), "unsupported", null, /cannot decode/);
    }
    let given;
    const zstd = (stored, length) => (given = [stored.length, length], bytesOf(floats));
    const other = await open(file, { decoders: { zstd } });
    assert.deepEqual(await other.find("a").f32({ from: 9, to: 12 }), floats.slice(9, 12));
    assert.deepEqual(given, [a.parts[0].stored, 200_000]);
    const wrong = await open(file, { decoders: { zstd: () => new Uint8Array(3) } });
    await fails(wrong.find("a").f32(), "format", null, /3 bytes instead of 200000/);
    for (const m of [model, other, wrong])
        await m.close();
});

test("deflated arrays are decoded, at every level and in any order of requests", async () => {
    const script = "import numpy as np, sys\n" +
        "a = np.arange(60000, dtype='<f4').reshape(200, 300) % 977\n" +
        "np.savez_compressed(sys.argv[1], c=a, f=np.asfortranarray(a), big=a.astype('>f8'), r=np.random.default_rng(1).random(5000))\n";
    const file = path.join(scratch, "deflated.npz");
    const made = spawnSync(process.env.PYTHON ?? "/usr/bin/python3", ["-c", script, file]);
    assert.equal(made.status, 0, String(made.stderr));
    const model = await open(file);
    for (const name of ["c", "f", "big"]) {
        const values = await model.find(name).f32({ from: 301, to: 59_999 });
        assert.ok(values.every((v, i) => v === (i + 301) % 977), name);
    }
    assert.equal((await model.verify()).ok, true);
    assert.equal((await model.hash()).model, JSON.parse((await heft(["hash", "--json", file])).stdout).model);
    await model.close();
});

test("many models open and close without a leak", async () => {
    const bytes = large(200);
    const before = process.memoryUsage().rss;
    for (let i = 0; i < 400; i++) {
        const model = await open(bytes);
        model.columns();
        await model.find("layers.7.attention.query.weight").f32();
        await model.close();
    }
    const grown = process.memoryUsage().rss - before;
    assert.ok(grown < 300 << 20, `${grown >> 20} MiB more after 400 models`);
});

test("the heap grows with the index, not with the data", async () => {
    const size = 8 + 200 + (1 << 30);
    const json = JSON.stringify({ w: { dtype: "F32", shape: [1 << 28], data_offsets: [0, 1 << 30] } }).padEnd(200);
    const head = new Uint8Array(208);
    new DataView(head.buffer).setBigUint64(0, 200n, true);
    head.set(new TextEncoder().encode(json), 8);
    const input = { size, read: async (offset, length) => {
        const bytes = new Uint8Array(length);
        if (offset < 208)
            bytes.set(head.subarray(offset, offset + length));
        return bytes;
    } };
    const model = await open(input), before = model.memory;
    await model.find("w").f32({ from: 1000, to: 9_000_000 });
    assert.ok(model.memory < before + (16 << 20), `${model.memory - before} bytes more`);
    await model.close();
});

test("names are data", async () => {
    const name = "<img src=x onerror=alert(1)>\u2028__proto__";
    const model = await open(safetensors([[name, "U8", [1], Uint8Array.of(1)], ["__proto__", "U8", [1], Uint8Array.of(2)],
                                          ["constructor", "U8", [1], Uint8Array.of(3)]]));
    assert.equal(model.tensorAt(0).name, name);
    assert.equal(model.find("constructor").id + model.find(name).id > 0, true);
    assert.equal({}.polluted, undefined);
    await model.close();
});

test("a trap is an error, and ends the instance", async () => {
    const { Core, loadModule } = await import(pathToFileURL(path.join(PACKAGE, "core.mjs")).href);
    const core = new Core(await loadModule(), {});
    const crash = { name: "HeftError", status: "crash", rule: "web/crash" };
    assert.throws(() => core.run("tensor_at", 0xfffffff0, 0), crash);
    assert.throws(() => core.run("result"), { ...crash, message: /open the model again/ });
    assert.equal((await open(small)).tensorCount, 2);
});

test("a prepared core serves the next file only, in memory that is in place", async () => {
    const memory = m => m._session.core.memory.buffer.byteLength;
    await prepare({ memory: 16 << 20 });
    const first = await open(small), second = await open(small);
    assert.ok(memory(first) >= 16 << 20, `${memory(first)} bytes`);
    assert.ok(memory(second) < 16 << 20, `${memory(second)} bytes`);
    assert.notEqual(first._session.core.memory, second._session.core.memory);
    for (const m of [first, second]) {
        assert.deepEqual([...await m.find("b").bytes()], [1, 2, 3, 4]);
        await m.close();
    }
});

test("the memory of a closed model serves the next one, as if it were new", async () => {
    const first = await open(small), { core } = first._session, { memory } = core;
    const at = core.alloc(1 << 20);
    core.bytes(at, 1 << 20).fill(0xee);
    await first.close();
    assert.throws(() => core.run("result"), HeftError);
    const second = await open(small), third = await open(small);
    assert.equal(second._session.core.memory, memory);
    assert.notEqual(third._session.core.memory, memory);
    assert.equal(second._session.core.alloc(1 << 20), third._session.core.alloc(1 << 20));
    for (const m of [second, third]) {
        assert.deepEqual([...await m.find("b").bytes()], [1, 2, 3, 4]);
        await m.close();
    }
});

test("a large memory is not kept", async () => {
    const model = await open(small), { core } = model._session, { memory } = core;
    core.alloc(80 << 20);
    await model.close();
    const next = await open(small);
    assert.notEqual(next._session.core.memory, memory);
    await next.close();
});

test("a file opens although no memory can be prepared", async () => {
    await prepare({ memory: 2 ** 33 });
    const model = await open(small);
    assert.equal(model.tensorCount, 2);
    await model.close();
});

test("the tables of the build", async () => {
    const names = (await formats()).map(f => f.name);
    for (const f of ["safetensors", "gguf", "torch", "npz", "ztensor", "mag"])
        assert.ok(names.includes(f), f);
    const types = await dtypes();
    assert.deepEqual([types[12].name, types[12].blockBytes, types[12].decodes], ["f32", 4, true]);
    assert.equal(types.find(t => t.name === "iq2_xxs").decodes, true);
    assert.match(version, /^\d+\.\d+\.\d+$/);
});

test("values() has arrays of the element type", async () => {
    const i64 = BigInt64Array.of(-(2n ** 63n), 2n ** 62n + 1n, -5n), u16 = Uint16Array.of(1, 65535), i8 = Int8Array.of(-128, 127);
    const model = await open(safetensors([
        ["i64", "I64", [3], bytesOf(i64)], ["u64", "U64", [1], bytesOf(BigUint64Array.of(2n ** 64n - 1n))], ["u16", "U16", [2], bytesOf(u16)],
        ["i8", "I8", [2], bytesOf(i8)], ["bool", "BOOL", [2], Uint8Array.of(1, 0)], ["f16", "F16", [2], bytesOf(Uint16Array.of(0x3c00, 0xc000))],
        ["f64", "F64", [2], bytesOf(Float64Array.of(0.1, -1e300))], ["empty", "I32", [0, 4], new Uint8Array(0)]]));
    const values = name => model.find(name).values();
    assert.deepEqual(await values("i64"), i64);
    assert.deepEqual(await values("u64"), BigUint64Array.of(2n ** 64n - 1n));
    assert.deepEqual(await values("u16"), u16);
    assert.deepEqual(await values("i8"), i8);
    assert.deepEqual(await values("bool"), Uint8Array.of(1, 0));
    assert.deepEqual(await values("f16"), Float32Array.of(1, -2));
    assert.deepEqual(await values("f64"), Float64Array.of(0.1, -1e300));
    assert.deepEqual(await values("empty"), new Int32Array(0));
    assert.deepEqual(await model.find("i64").values({ from: 1, to: 2 }), i64.slice(1, 2));
    await fails(model.find("i64").values({ from: 1.5 }), "argument", null, /range/);
    await fails(model.find("i64").values({ to: 4 }), "argument", null, /the range 0 to 4 leaves its 3 elements/);
    await fails(model.find("i64").values({ from: -1 }), "argument", null, /the range -1 to 3 leaves its 3 elements/);
    await fails(model.find("i64").values({ from: 4 }), "argument", null, /the range 4 to 3 leaves its 3 elements/);
    await model.close();
});

test("stats() counts what heft stats counts", async () => {
    const values = Float32Array.from({ length: 3_000_000 }, (_, i) => i % 7 === 0 ? 0 : 1000 + Math.sin(i));
    values.set([NaN, Infinity, -Infinity, NaN], 2_500_000);
    const file = path.join(scratch, "stats.safetensors");
    writeFileSync(file, safetensors([["a", "F32", [3, 1_000_000], bytesOf(values)], ["none", "F32", [1], bytesOf(Float32Array.of(NaN))]]));
    const model = await open(file), steps = [];
    const got = await model.find("a").stats({ onProgress: p => steps.push(p.done) });
    const [want] = JSON.parse((await heft(["stats", "--json", file])).stdout).tensors;
    for (const [key, other] of Object.entries({ count: "count", zeros: "zeros", nan: "nan", min: "min", max: "max" }))
        assert.equal(got[key], want[other], key);
    assert.ok(Math.abs(got.mean / want.mean - 1) < 1e-9 && Math.abs(got.std / want.std - 1) < 1e-9, JSON.stringify([got, want]));
    assert.deepEqual([got.inf, got.finite, steps.at(-1), steps.length], [2, 2_999_996, 3_000_000, 3]);
    assert.deepEqual(await model.find("none").stats(), { count: 1, finite: 0, zeros: 0, nan: 1, inf: 0, min: null, max: null, mean: null, std: null });
    await fails(model.find("a").stats({ signal: AbortSignal.abort() }), "cancelled", "web/aborted", /cancelled/);
    await model.close();
});

test("models and tensors become JSON", async () => {
    const model = await open(small, { name: "small.safetensors" });
    const { format, tensors, metadata } = JSON.parse(JSON.stringify(model));
    assert.deepEqual([format, metadata], ["safetensors", {}]);
    assert.deepEqual(tensors.map(t => [t.name, t.dtype, t.shape, t.bytes]), [["a", "f32", [50_000], 200_000], ["b", "u8", [4], 4]]);
    assert.deepEqual(JSON.parse(JSON.stringify(model.find("b"))), tensors[1]);
    await model.close();
});

test("numbers that are packed with their scales are not elements", async () => {
    const file = path.join(SAMPLES, "burnpack/good/quantized_alike.bpk"), model = await open(file);
    const { tensors } = JSON.parse((await heft(["stats", "--json", file])).stdout);
    const decoded = await open(file, { quantised: "decode" });
    const packed = [...model].filter(t => t.layout === "burn.qfloat");
    assert.ok(packed.length > 0);
    for (const t of packed) {
        assert.equal(t.decodes, false, t.name);
        for (const read of ["f32", "f64", "values", "stats"])
            await fails(t[read](), "unsupported", null, /the layout burn\.qfloat is not decoded; bytes\(\) reads it/);
        assert.equal((await t.bytes()).length, t.nbytes);
        const wanted = tensors.find(s => s.name === t.name), found = await decoded.find(t.name).stats();
        for (const figure of ["count", "min", "max", "mean"])
            assert.equal(found[figure], wanted[figure], `${t.name}: ${figure}`);
    }
    await decoded.close();
    await model.close();
});
