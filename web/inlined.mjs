/** Files inside of modules: compressed with gzip, in Base64. */
import { HeftError } from "./error.mjs";

export async function inlined(base64) {
    if (typeof DecompressionStream === "undefined")
        throw new HeftError("unsupported", "this platform cannot unpack the module inside of the package " +
                            "(DecompressionStream); use the package's main entry", { rule: "web/module" });
    const packed = Uint8Array.from(atob(base64), c => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
}

export async function inlinedText(base64) {
    return new TextDecoder().decode(await inlined(base64));
}
