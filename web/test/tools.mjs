/** What the tests share: the command, the samples, a server on the loopback interface. */
import { execFile } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
export const HEFT = path.resolve(process.env.HEFT ?? path.join(ROOT, "build/heft"));
export const SAMPLES = path.resolve(process.env.SAMPLES ?? path.join(ROOT, "build/tests/samples"));

/** Run the command; { code, stdout, stderr }. */
export function heft(args) {
    return new Promise(resolve => {
        execFile(HEFT, args, { maxBuffer: 1 << 28 }, (error, stdout, stderr) =>
            resolve({ code: error ? error.code ?? 1 : 0, stdout, stderr }));
    });
}

/** Run fn on every item, at most `limit` at once. */
export async function mapLimit(limit, items, fn) {
    const left = [...items];
    await Promise.all(Array.from({ length: limit }, async () => {
        while (left.length)
            await fn(left.shift());
    }));
}
