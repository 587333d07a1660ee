/**
 * Every sample of the tests, good and bad, through the package and through the command:
 *
 *     COMMANDS=build/tests/heft-commands SAMPLES=build/tests/samples PACKAGE=build-web/package \
 *         node --test web/test
 */
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { SAMPLES, heft, mapLimit } from "./tools.mjs";
import { open } from "./package.mjs";

const FILES_AT_ONCE = 100;
/** The small module does not say that a file is that of one rank. */
const UNSAID = "torch/rank-alone";
/** Members of archives are not opened. */
const ARCHIVES = /\/archives\//;

async function sampleFiles() {
    const all = await readdir(SAMPLES, { recursive: true, withFileTypes: true });
    return all.filter(e => e.isFile()).map(e => path.join(e.parentPath ?? e.path, e.name))
        .filter(p => !p.endsWith(".json") || /index\.json$/.test(p)).filter(p => !/\/texts\//.test(p) && !ARCHIVES.test(p))
        .sort();
}

function plain(value) {
    if (value instanceof Map)
        return Object.fromEntries([...value].map(([k, v]) => [k, plain(v)]));
    if (value instanceof Uint8Array)
        return value.length; // the command prints bytes in several ways
    if (ArrayBuffer.isView(value) || Array.isArray(value))
        return Array.from(value, plain);
    if (typeof value === "bigint")
        return Number(value);
    return value;
}

/** The stored tensors of a model, as `heft ls --json --raw-tensors` has them, without attributes and metadata. */
function listing(model) {
    const part = ({ shard, ...p }) => p;
    return {
        format: model.format, version: model.version,
        tensors: [...model].map(t => ({
            name: t.name, dtype: t.dtype === "bytes" ? null : t.dtype, shape: t.dims.map(Number), layout: t.layout,
            nbytes: t.nbytes, parts: t.parts.map(part),
        })),
        parts: model.parts.map(p => ({ role: p.role, offset: p.offset, stored: p.stored, length: p.length, encoding: p.encoding })),
    };
}

function expectedListing(doc) {
    const tensor = ({ name, dtype, shape, layout, nbytes, parts }) =>
        ({ name, dtype, shape, layout, nbytes, parts: parts.map(({ shard, ...p }) => p) });
    return { format: doc.format, version: doc.version, tensors: doc.tensors.map(tensor),
             parts: doc.parts.map(({ role, offset, stored, length, encoding }) => ({ role, offset, stored, length, encoding })) };
}

/** Without a decoder of zstd, lengths that the file does not state are not known. */
function withoutZstdLengths(doc) {
    for (const t of doc.tensors)
        for (const p of t.parts.filter(p => p.encoding === "zstd"))
            p.length = t.nbytes = null;
    return doc;
}

/** Columns say the same as tensors. */
function compareColumns(model) {
    const c = model.columns();
    for (let i = 0; i < c.count; i++) {
        const t = model.tensorAt(i);
        assert.equal(c.name(i), t.name);
        assert.equal(c.dtypeNames[c.dtypes[i]], t.dtype);
        assert.equal(c.nbytes[i], t.nbytes ?? NaN);
        assert.equal(c.offsets[i], t.parts[0]?.offset ?? NaN);
        assert.equal(c.elements[i], t.elements);
        const dims = Array.from(c.dims.subarray(i ? c.dimEnds[i - 1] : 0, c.dimEnds[i]));
        assert.deepEqual(dims, t.dims.map(Number));
    }
}

async function check(file, verified) {
    const listed = await heft(["ls", "--json", "--raw-tensors", "--no-verify", file]);
    const options = { noVerify: true };
    let model;
    try {
        model = await open(file, options);
    } catch (e) {
        assert.notEqual(e.status, "crash", e.message);
        assert.ok(e.status, e.stack);
        assert.notEqual(listed.code, 0, `${file}: the command opens the file, the package says: ${e.message}`);
        const fault = verified.findings.find(f => f.severity === "fault");
        if (fault && e.rule)
            assert.equal(e.rule, fault.rule, `${file}: rule`);
        if (fault)
            assert.equal(e.offset, fault.offset, `${file}: offset of ${e.message}`);
        return "refused";
    }
    try {
        assert.equal(listed.code, 0, `${file}: the package opens a file that the command refuses: ${listed.stderr}`);
        const doc = JSON.parse(listed.stdout);
        assert.deepEqual(withoutZstdLengths(listing(model)), withoutZstdLengths(expectedListing(doc)), file);
        assert.deepEqual(Object.keys(doc.metadata).sort(), [...model.metadata.keys()].sort(), file);
        compareColumns(model);
        await compareReports(model, file, verified);
        return "opened";
    } finally {
        await model.close();
    }
}

const usesZstd = model => [...model].some(t => t.parts.some(p => p.encoding === "zstd"));

async function compareReports(model, file, verified) {
    const zstd = usesZstd(model);
    if (!zstd) {
        const report = await model.verify().catch(e => e);
        if (report instanceof Error)
            assert.ok(verified.error || !verified.ok, `${file}: ${report.message}`);
        else
            assert.deepEqual({ ok: report.ok, findings: report.findings, bytes: report.bytes_checked },
                             { ok: verified.ok, findings: verified.findings.filter(f => f.rule !== UNSAID),
                               bytes: verified.bytes_checked }, file);
    }
    if (verified.findings?.some(f => f.rule === UNSAID)) // the command gives a part of a model no hash
        return;
    const hashed = await heft(["hash", "--json", "--no-verify", file]);
    const hash = await model.hash().catch(e => e);
    if (hash instanceof Error)
        assert.ok(hashed.code || zstd, `${file}: ${hash.message}`);
    else
        assert.deepEqual({ model: hash.model, tensors: hash.tensors },
                         (({ model, tensors }) => ({ model, tensors }))(JSON.parse(hashed.stdout)), file);
}

/** The reports of `heft verify --json` on all files, by path. */
async function verifyAll(files) {
    const reports = new Map();
    for (let i = 0; i < files.length; i += FILES_AT_ONCE) {
        const some = files.slice(i, i + FILES_AT_ONCE);
        const { stdout } = await heft(["verify", "--json", ...some]);
        const list = JSON.parse(stdout);
        (Array.isArray(list) ? list : [list]).forEach((r, k) => reports.set(some[k], r));
    }
    return reports;
}

const only = new RegExp(process.env.ONLY ?? "");
const files = (await sampleFiles()).filter(f => only.test(f));
const reports = await verifyAll(files);
const folders = Map.groupBy ? Map.groupBy(files, f => path.relative(SAMPLES, path.dirname(f)))
                            : files.reduce((m, f) => {
                                  const d = path.relative(SAMPLES, path.dirname(f));
                                  return m.set(d, [...(m.get(d) ?? []), f]);
                              }, new Map());
for (const [folder, some] of folders)
    test(`the ${some.length} samples of ${folder} are as the command reads them`, async () => {
        const wrong = [];
        await mapLimit(2, some, async file => {
            try {
                await check(file, reports.get(file));
            } catch (e) {
                wrong.push(`${path.basename(file)}: ${e.message.slice(0, 1500)}`);
            }
        });
        assert.equal(wrong.length, 0, `${wrong.length} of ${some.length} differ\n${wrong.slice(0, 8).join("\n")}`);
    });
