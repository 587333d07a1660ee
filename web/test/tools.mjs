/** What the tests share: the command, the samples, a server on the loopback interface. */
import { spawn } from "node:child_process";
import { closeSync, fstatSync, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const COMMANDS = path.resolve(process.env.COMMANDS ?? path.join(ROOT, "build/tests/heft-commands"));
export const SAMPLES = path.resolve(process.env.SAMPLES ?? path.join(ROOT, "build/tests/samples"));

/** A process that runs commands one after the other, as tests/commands.c describes. */
class Server {
    constructor() {
        const folder = mkdtempSync(path.join(os.tmpdir(), "heft-"));
        this.files = ["out", "err"].map(name => openSync(path.join(folder, name), "w+"));
        rmSync(folder, { recursive: true });
        this.process = spawn(COMMANDS, ["3", "4"], { stdio: ["pipe", "pipe", "inherit", ...this.files] });
        this.answers = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
    }

    async run(args) {
        const words = ["heft", ...args];
        this.process.stdin.write(words.length + "\n" + words.map(word => word + "\0").join(""));
        const { value, done } = await this.answers.next();
        if (done)
            throw new Error(`${args.join(" ")}: the process ended`);
        const [stdout, stderr] = this.files.map(contents);
        return { code: Number(value), stdout, stderr };
    }

    end() {
        this.process.stdin.end();
        this.files.forEach(closeSync);
    }
}

/** The text of a file from its beginning, whatever the process has read or written. */
function contents(file) {
    const bytes = Buffer.alloc(fstatSync(file).size);
    return bytes.toString("utf8", 0, readSync(file, bytes, 0, bytes.length, 0));
}

const idle = [];
after(() => idle.forEach(server => server.end()));

/** Run the command; { code, stdout, stderr }. */
export async function heft(args) {
    const server = idle.pop() ?? new Server();
    const result = await server.run(args);
    idle.push(server);
    return result;
}

/** Run fn on every item, at most `limit` at once. */
export async function mapLimit(limit, items, fn) {
    const left = [...items];
    await Promise.all(Array.from({ length: limit }, async () => {
        while (left.length)
            await fn(left.shift());
    }));
}
