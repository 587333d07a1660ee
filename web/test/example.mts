// A program that uses every part of the interface, for the compiler of TypeScript.
import { HeftError, dtypes, formats, open, prepare, version } from "@libheft/heft";
import type { Columns, Finding, Model, RandomAccess, Stats, Tensor, Value } from "@libheft/heft";

const memory: RandomAccess = {
    size: 8,
    async read(offset, length, { signal }) {
        signal?.throwIfAborted();
        return new Uint8Array(length).fill(offset);
    },
};

function show(value: Value): string {
    if (value instanceof Map)
        return [...value].map(([k, v]) => `${k}=${show(v)}`).join();
    return typeof value === "bigint" ? `${value}n` : String(value);
}

async function summary(file: File | URL | string): Promise<number> {
    const control = new AbortController();
    const model: Model = await open(file, { signal: control.signal, onProgress: p => console.log(p.bytes, p.requests) });
    const first: Columns = model.columns({ count: 100 }), c: Columns = model.columns();
    console.log(first.count ? first.name(0) : "no tensors");
    let parameters = 0;
    for (let i = 0; i < c.count; i++)
        parameters += c.elements[i]!;
    for (const t of model) {
        const tensor: Tensor = t;
        const values: Float32Array = await tensor.f32({ from: 0, to: Math.min(10, tensor.elements) });
        const own = await tensor.values({ to: 2 });
        const { std }: Stats = await tensor.stats({ onProgress: p => console.log(p.done / p.total) });
        console.log(own instanceof BigInt64Array ? own[0]! + 1n : own.length, std, JSON.stringify([tensor, model]));
        const bytes: Uint8Array = await tensor.bytes({ to: 0 });
        console.log(tensor.name, tensor.shape, values.length, bytes.length, show(model.metadata.get("format") ?? null));
    }
    const findings: Finding[] = (await model.verify({ quick: true })).findings;
    const other = await open(memory);
    for (const change of (await model.diff(other)).changed)
        console.log(change.name, change.what === "value" ? change.max_abs : change.a);
    console.log(findings.length, (await model.hash()).model, (await model.vocabulary())?.token(0));
    await model.close();
    return parameters;
}

await prepare({ wasm: new URL("heft.wasm", "https://example.org/"), worker: () => new Worker("worker.js") });
summary("model.gguf").catch((e: unknown) => {
    if (e instanceof HeftError)
        console.log(e.status, e.rule, e.offset, e.tensor);
});
console.log(version, await formats(), await dtypes());
