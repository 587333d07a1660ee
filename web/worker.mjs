/** The worker in browsers. */
import { HeftError, refused } from "./error.mjs";
import { usePlatform } from "./platform.mjs";
import { taskRunner } from "./tasks.mjs";

function blobReader({ blob }) {
    const reader = new FileReaderSync();
    return { size: blob.size,
             read: (offset, to) => to.set(new Uint8Array(reader.readAsArrayBuffer(blob.slice(offset, offset + to.length)))) };
}

function urlReader({ url, size, pinned, mayPin }) {
    const what = new URL(url).origin + new URL(url).pathname;
    const io = (message, rule, offset) => new HeftError("io", `${what}${message}`, { rule, offset });
    return { size, read: ahead(size, (offset, length) => {
        const request = new XMLHttpRequest();
        request.open("GET", url, false);
        request.responseType = "arraybuffer";
        request.setRequestHeader("Range", `bytes=${offset}-${offset + length - 1}`);
        const pin = pinned.etag && !pinned.etag.startsWith("W/") ? pinned.etag : pinned.modified;
        if (pin && mayPin)
            request.setRequestHeader("If-Range", pin);
        try {
            request.send();
        } catch {
            throw io(" cannot be reached, or does not allow this page to read it (CORS)", "web/network", offset);
        }
        const same = request.status === 206 && request.getResponseHeader("etag") === pinned.etag &&
                     request.getResponseHeader("last-modified") === pinned.modified;
        if (request.status !== 206 && request.status !== 200)
            throw refused(what, request.status, request.getResponseHeader("x-error-message"), offset);
        if (!same)
            throw io(" was changed while it was read; open it again", "web/changed", offset);
        if (request.response?.byteLength !== length)
            throw io(": the answer ended early; try again", "web/truncated", offset);
        return new Uint8Array(request.response);
    }) };
}

/** Read in windows of a few MiB, because each request takes a round trip. */
function ahead(size, read) {
    const AHEAD = 8 << 20;
    let at = 0, window = new Uint8Array(0);
    return (offset, to) => {
        for (let done = 0; done < to.length;) {
            const from = offset + done;
            if (from < at || from >= at + window.length) {
                window = read(from, Math.min(Math.max(AHEAD, to.length - done), size - from));
                at = from;
            }
            const part = window.subarray(from - at, from - at + to.length - done);
            to.set(part, done);
            done += part.length;
        }
    };
}

usePlatform({ random: globalThis.crypto });
const run = taskRunner({ post: m => globalThis.postMessage(m), readers: { blob: blobReader, url: urlReader } });
globalThis.onmessage = e => run(e.data);
