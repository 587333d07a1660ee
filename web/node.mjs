/** The entry for Node; heft.mjs is the one for browsers. */
import { node } from "./node_platform.mjs";
import { usePlatform } from "./platform.mjs";

export { HeftError } from "./error.mjs";
export { dtypes, formats, open, prepare, version } from "./model.mjs";

usePlatform(node);
