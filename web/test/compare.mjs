/**
 * node web/test/compare.mjs NPM: compare the package with @huggingface/gguf (installed in NPM) and with a JSON reading
 * of safetensors headers, on every good sample. TAP on stdout.
 */
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { open } from "./package.mjs";
import { SAMPLES } from "./tools.mjs";

const npm = path.resolve(process.argv[2] ?? "build-web/npm");
const require = createRequire(path.join(npm, "x.js"));
const { gguf, GGMLQuantizationType } = await import(pathToFileURL(require.resolve("@huggingface/gguf")).href);

let n = 0, failed = 0;

async function check(title, fn) {
    n++;
    try {
        const skip = await fn();
        console.log(`ok ${n} - ${title}${skip ? ` # SKIP ${skip}` : ""}`);
    } catch (e) {
        failed++;
        console.log(`not ok ${n} - ${title}\n# ${e.message.replaceAll("\n", "\n# ")}`);
    }
}

/** Names, types, shapes and offsets by the other reader. */
async function byGguf(file) {
    const bytes = readFileSync(file);
    const fetch = async (_, { headers }) => {
        const [, from, to] = /bytes=(\d+)-(\d+)/.exec(new Headers(headers).get("range"));
        return new Response(bytes.subarray(Number(from), Number(to) + 1), { status: 206 });
    };
    const { tensorInfos, tensorDataOffset } = await gguf("http://file.invalid/x.gguf", { fetch });
    return tensorInfos.map(t => ({ name: t.name, dtype: GGMLQuantizationType[t.dtype].toLowerCase(),
                                   shape: t.shape.map(Number).reverse(), offset: Number(tensorDataOffset + t.offset) }));
}

function byJson(file) {
    const bytes = readFileSync(file), length = Number(bytes.readBigUInt64LE());
    const header = JSON.parse(bytes.subarray(8, 8 + length).toString());
    return Object.entries(header).filter(([name]) => name !== "__metadata__").map(([name, t]) =>
        ({ name, dtype: t.dtype.toLowerCase(), shape: t.shape, offset: 8 + length + t.data_offsets[0] }));
}

async function byHeft(file) {
    const model = await open(file);
    const list = [...model].map(t => ({ name: t.name, dtype: t.dtype, shape: [...t.shape], offset: t.parts[0].offset }));
    await model.close();
    return list;
}

const byName = list => [...list].sort((a, b) => (a.name < b.name ? -1 : 1));

for (const [folder, reader, suffix] of [["gguf/good", byGguf, ".gguf"], ["safetensors/good", byJson, ".safetensors"]])
    for (const name of readdirSync(path.join(SAMPLES, folder)).filter(f => f.endsWith(suffix))) {
        const file = path.join(SAMPLES, folder, name);
        let other;
        try {
            other = await reader(file);
        } catch (e) {
            await check(`${name}`, () => `the other reader refuses the file: ${e.message.split("\n")[0].slice(0, 80)}`);
            continue;
        }
        await check(`${name} has the tensors that the other reader lists`, async () => {
            assert.deepEqual(byName(await byHeft(file)).map(t => [t.name, t.shape, t.offset]),
                             byName(other).map(t => [t.name, t.shape, t.offset]));
        });
    }
console.log(`1..${n}`);
process.exit(failed ? 1 : 0);
