/**
 * Inputs: objects with size, read(offset, length, {signal, arrived}) and sometimes stream(offset, {signal}). An input
 * may call arrived(at, piece) for each piece that it gets of the bytes, in order, before it returns all of them.
 */
import { HeftError, refused, throwIfAborted } from "./error.mjs";
import { platform } from "./platform.mjs";

/** First request: enough for the index of a small model, and for whole small files. */
export const HEAD = 128 << 10;

export function baseName(path) {
    const name = path.split(/[/\\]/).pop();
    return name || null;
}

function wrongLength(want, got, offset) {
    return new HeftError("io", `the input ended early: ${got} of ${want} bytes arrived at byte ${offset}; ` +
                         "open the file again", { rule: "web/truncated", offset });
}

/** Counts requests and bytes of an input, and checks the lengths of answers. */
export class Counted {
    constructor(input, session) {
        this.input = input;
        this.session = session;
        this.size = input.size;
        this.name = input.name ?? null;
    }

    /** Read bytes; call take(offset, piece) for pieces that come before the rest. */
    async read(offset, length, signal, take) {
        if (!length)
            return new Uint8Array(0);
        throwIfAborted(signal);
        this.session.requests++;
        let bytes, counted = 0;
        const arrived = take && ((at, piece) => {
            counted += piece.length;
            this.session.count(piece.length);
            take(offset + at, piece);
        });
        try {
            bytes = await this.input.read(offset, length, { signal, arrived });
        } catch (e) {
            throwIfAborted(signal);
            throw e instanceof HeftError ? e : new HeftError(
                "io", `reading ${length} bytes failed: ${e?.message ?? e}`, { rule: "web/read", offset, cause: e });
        }
        throwIfAborted(signal);
        if (!(bytes instanceof Uint8Array) || bytes.length !== length)
            throw wrongLength(length, bytes?.length ?? 0, offset);
        if (bytes.length > counted)
            this.session.count(bytes.length - counted);
        return bytes;
    }

    /** Open a stream from `offset` to the end; null if the input has none. */
    async stream(offset, signal) {
        if (!this.input.stream)
            return null;
        this.session.requests++;
        return this.input.stream(offset, { signal });
    }

    async close() {
        await this.input.close?.();
    }
}

class BytesInput {
    constructor(bytes, name) {
        this.bytes = bytes;
        this.size = bytes.length;
        this.name = name;
        this.spec = { type: "bytes", bytes };
    }

    async read(offset, length) {
        return this.bytes.subarray(offset, offset + length);
    }
}

class BlobInput {
    constructor(blob) {
        this.blob = blob;
        this.size = blob.size;
        this.name = blob.name ? baseName(blob.name) : null;
        this.spec = { type: "blob", blob };
    }

    async read(offset, length) {
        return new Uint8Array(await this.blob.slice(offset, offset + length).arrayBuffer());
    }
}

/** ---- HTTP --------------------------------------------------------------------------------- */

function describe(url) {
    const u = new URL(url);
    return u.protocol === "data:" ? "the data: URL" : `${u.origin === "null" ? u.protocol : u.origin}${u.pathname}`;
}

/**
 * Read at most `most` bytes of an answer, and one piece more; call arrived(at, piece) for each piece within them.
 * The end of an answer comes later than its last byte, and is not waited for if the answer states its length.
 */
async function inPieces(answer, most, arrived) {
    const reader = answer.body.getReader(), isStated = Number(answer.headers.get("content-length")) === most;
    let all = new Uint8Array(0), at = 0, isDone = false;
    try {
        while (at <= most) {
            const { done, value } = await (isStated && at === most ? { done: true } : reader.read());
            isDone = done;
            if (done)
                break;
            if (at + value.length <= most)
                arrived(at, value);
            if (at + value.length > all.length) { // memory for twice the bytes that are there, at most
                const larger = new Uint8Array(Math.max(at + value.length, Math.min(most, 2 * at)));
                larger.set(all.subarray(0, at));
                all = larger;
            }
            all.set(value, at);
            at += value.length;
        }
    } finally {
        (isDone ? reader.read() : reader.cancel()).catch(() => {});
    }
    return all.subarray(0, at);
}

class HttpInput {
    constructor(url, options) {
        this.url = String(url);
        this.what = describe(this.url);
        this.get = options.fetch ?? globalThis.fetch;
        this.hasOwnFetch = !!options.fetch;
        const path = new URL(this.url).pathname;
        try {
            this.name = baseName(decodeURIComponent(path));
        } catch {
            this.name = baseName(path);
        }
        // A request with If-Range asks another origin for leave first, which many servers refuse.
        this.mayPin = platform.mayPin(this.url);
        this.whole = null;
    }

    async request(headers, signal, method = "GET") {
        const get = this.get; // not called as a method: browsers refuse fetch() of another object
        let answer;
        try {
            answer = await get(this.url, { headers, signal, method });
        } catch (e) {
            throwIfAborted(signal);
            throw new HeftError("io", `${this.what} cannot be reached: the server does not answer, or does not ` +
                                "allow this page to read the file (CORS)", { rule: "web/network", cause: e });
        }
        if (answer.ok || answer.status === 416)
            return answer;
        await answer.body?.cancel().catch(() => {});
        throw refused(this.what, answer.status, answer.headers.get("x-error-message"));
    }

    /** The identity of a version of the file, as far as the server shows it. */
    static identity(answer) {
        const etag = answer.headers.get("etag");
        return { etag, modified: answer.headers.get("last-modified") };
    }

    changed(offset) {
        return new HeftError("io", `${this.what} was changed while it was read; open it again`,
                             { rule: "web/changed", offset });
    }

    /** Read the answer's body, which must have `want` bytes. */
    async body(answer, want, offset, signal, arrived) {
        let bytes;
        try {
            bytes = arrived && answer.body?.getReader ? await inPieces(answer, want, arrived)
                                                      : new Uint8Array(await answer.arrayBuffer());
        } catch (e) {
            throwIfAborted(signal);
            if (e instanceof HeftError)
                throw e;
            throw new HeftError("io", `${this.what}: the answer ended early; try again`,
                                { rule: "web/truncated", offset, cause: e });
        }
        if (want !== null && bytes.length !== want)
            throw new HeftError("io", `${this.what}: the answer has ${bytes.length} bytes instead of ${want}; try again`,
                                { rule: "web/truncated", offset });
        return bytes;
    }

    /** The first request: the size, the identity and the first bytes. */
    async begin(maxWhole, session, signal) {
        session.requests++;
        const answer = await this.request({ Range: `bytes=0-${HEAD - 1}` }, signal);
        this.pinned = HttpInput.identity(answer);
        if (answer.status === 416) {
            await answer.body?.cancel().catch(() => {});
            this.size = 0;
            this.head = new Uint8Array(0);
        } else if (answer.status === 206) {
            await this.beginRange(answer, session, signal);
        } else {
            this.whole = this.head = await this.readWhole(answer, maxWhole, signal);
            this.size = this.whole.length;
        }
        session.count(this.head.length);
        this.spec = this.whole ? { type: "bytes", bytes: this.whole }
                               : { type: "url", url: this.url, size: this.size, pinned: this.pinned,
                                   mayPin: this.mayPin, ownFetch: this.hasOwnFetch };
        return this;
    }

    async beginRange(answer, session, signal) {
        const range = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(answer.headers.get("content-range") ?? "");
        if (range && range[3] !== "*") {
            this.size = Number(range[3]);
        } else { // the server does not show the header to pages of other origins
            session.requests++;
            const head = await this.request({}, signal, "HEAD");
            this.size = Number(head.headers.get("content-length") ?? NaN);
            if (!Number.isSafeInteger(this.size))
                throw new HeftError("io", `${this.what}: the server does not tell the size of the file`,
                                    { rule: "web/no-ranges" });
        }
        this.head = await this.body(answer, Math.min(HEAD, this.size), 0, signal);
    }

    async readWhole(answer, maxWhole, signal) {
        const stated = Number(answer.headers.get("content-length") ?? NaN);
        const encoded = answer.headers.get("content-encoding");
        const tooLarge = size => new HeftError(
            "io", `${this.what}: the server does not answer requests for ranges, and the file has ` +
            `${size} bytes, above the limit of ${maxWhole} (maxWholeBytes); download the file and open it from disk`,
            { rule: "web/no-ranges" });
        if (stated > maxWhole) {
            await answer.body?.cancel().catch(() => {});
            throw tooLarge(stated);
        }
        const pieces = [];
        let total = 0;
        try {
            const reader = answer.body.getReader();
            for (;;) {
                const { done, value } = await reader.read();
                if (done)
                    break;
                total += value.length;
                if (total > maxWhole) {
                    await reader.cancel().catch(() => {});
                    throw tooLarge(`at least ${total}`);
                }
                pieces.push(value);
            }
        } catch (e) {
            throwIfAborted(signal);
            if (e instanceof HeftError)
                throw e;
            throw new HeftError("io", `${this.what}: the answer ended early; try again`,
                                { rule: "web/truncated", offset: total, cause: e });
        }
        if (!encoded && stated >= 0 && total !== stated)
            throw new HeftError("io", `${this.what}: the answer has ${total} bytes instead of ${stated}; try again`,
                                { rule: "web/truncated", offset: total });
        const all = new Uint8Array(total);
        let at = 0;
        for (const p of pieces) {
            all.set(p, at);
            at += p.length;
        }
        return all;
    }

    async requestRange(range, offset, signal) {
        const headers = { Range: range };
        const strong = this.pinned.etag && !this.pinned.etag.startsWith("W/");
        const pin = strong ? this.pinned.etag : this.pinned.modified;
        if (pin && this.mayPin)
            headers["If-Range"] = pin;
        const answer = await this.request(headers, signal);
        const { etag, modified } = HttpInput.identity(answer);
        const total = /\/(\d+)$/.exec(answer.headers.get("content-range") ?? "")?.[1];
        const start = /^bytes (\d+)-/.exec(answer.headers.get("content-range") ?? "")?.[1];
        const differs = answer.status !== 206 || etag !== this.pinned.etag || modified !== this.pinned.modified ||
                        (total !== undefined && Number(total) !== this.size);
        if (differs || (start !== undefined && Number(start) !== offset)) {
            await answer.body?.cancel().catch(() => {});
            throw this.changed(offset);
        }
        return answer;
    }

    async read(offset, length, { signal, arrived }) {
        if (this.whole)
            return this.whole.subarray(offset, offset + length);
        const answer = await this.requestRange(`bytes=${offset}-${offset + length - 1}`, offset, signal);
        return this.body(answer, length, offset, signal, arrived);
    }

    async stream(offset, { signal }) {
        if (this.whole)
            return null;
        const answer = await this.requestRange(`bytes=${offset}-`, offset, signal);
        return answer.body?.getReader ? answer.body.getReader() : null;
    }

    async sibling(name) {
        return new URL(encodeURIComponent(name), this.url);
    }
}

/** ---- any input ---------------------------------------------------------------------------- */

function addressOf(text) {
    try {
        return new URL(String(text), globalThis.document?.baseURI ?? globalThis.location?.href);
    } catch (e) {
        throw new HeftError("argument", `'${text}' is not an address`, { cause: e });
    }
}

/** Open an input; counted in `session`. */
export async function openInput(input, options, session, signal) {
    if (input instanceof ArrayBuffer)
        input = new Uint8Array(input);
    if (input instanceof Uint8Array)
        return new Counted(new BytesInput(input, options.name ?? null), session);
    if (typeof Blob !== "undefined" && input instanceof Blob)
        return new Counted(new BlobInput(input), session);
    if (typeof input === "string" || input instanceof URL) {
        const file = await platform.openPath(input);
        return new Counted(file ?? await new HttpInput(addressOf(input), options)
                               .begin(options.maxWholeBytes ?? 64 << 20, session, signal), session);
    }
    if (input && typeof input.read === "function" && Number.isSafeInteger(input.size) && input.size >= 0)
        return new Counted(input, session);
    throw new HeftError("argument", "open() takes a Blob, URL, path, bytes, or an object with size and read()");
}
