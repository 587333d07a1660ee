/** heft - read model weights of every format that Heft reads. heft.d.ts documents the interface. */
export { HeftError } from "./error.mjs";
export { dtypes, formats, open, prepare } from "./model.mjs";

export const version = "0.1.0";
