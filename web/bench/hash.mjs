/**
 * node web/bench/hash.mjs FILE: hash a model with a worker for each processor. Prints the seconds of the second run: the
 * first one compiles the core.
 */
import { performance } from "node:perf_hooks";
import { open } from "../test/package.mjs";

let took;
for (let i = 0; i < 2; i++) {
    const model = await open(process.argv[2]);
    const began = performance.now();
    await model.hash();
    took = performance.now() - began;
    await model.close();
}
console.log(took / 1000);
