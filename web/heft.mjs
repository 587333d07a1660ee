/** Heft - read model weights of every format that Heft reads. heft.d.ts documents the interface. */
import { browser } from "./browser.mjs";
import { usePlatform } from "./platform.mjs";

export { HeftError } from "./error.mjs";
export { dtypes, formats, open, prepare, version } from "./model.mjs";

usePlatform(browser);
