/** The worker in Node. */
import fs from "node:fs";
import { webcrypto } from "node:crypto";
import { parentPort } from "node:worker_threads";
import { HeftError } from "./error.mjs";
import { usePlatform } from "./platform.mjs";
import { taskRunner } from "./tasks.mjs";

function pathReader({ path, size, changed }) {
    const file = fs.openSync(path, "r");
    const check = () => {
        const stat = fs.fstatSync(file);
        if (stat.size !== size || stat.mtimeMs !== changed)
            throw new HeftError("io", `${path} was changed while it was read; open the file again`, { rule: "web/changed" });
    };
    check();
    return { size, check, read: (offset, to) => {
        for (let done = 0; done < to.length;) {
            const n = fs.readSync(file, to, done, to.length - done, offset + done);
            if (!n)
                throw new HeftError("io", `${path} ended early, at byte ${offset + done}`, { rule: "web/truncated", offset });
            done += n;
        }
    } };
}

usePlatform({ random: webcrypto });
parentPort.on("message", taskRunner({ post: m => parentPort.postMessage(m), readers: { path: pathReader } }));
