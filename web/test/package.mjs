/** The package under test: build-web/package, or $PACKAGE. */
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
export const PACKAGE = path.resolve(process.env.PACKAGE ?? path.join(ROOT, "build-web/package"));
export const { HeftError, dtypes, formats, open, prepare, version } =
    await import(pathToFileURL(path.join(PACKAGE, "node.mjs")).href);
