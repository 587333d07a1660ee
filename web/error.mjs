/** The error of every failure; heft.d.ts documents the members. */
export class HeftError extends Error {
    constructor(status, message, { rule = null, offset = null, tensor = null, httpStatus = null, cause } = {}) {
        super(message, cause === undefined ? undefined : { cause });
        this.name = "HeftError";
        this.status = status;
        this.rule = rule;
        this.offset = offset;
        this.tensor = tensor;
        this.httpStatus = httpStatus;
    }
}

/** What an error says, in words. */
export function reasonOf(e) {
    return String(e?.message || e);
}

export function closedError() {
    return new HeftError("cancelled", "the model is closed", { rule: "web/closed" });
}

/** The error of an aborted signal, whose reason is the cause. */
export function abortedError(signal) {
    const { reason } = signal;
    if (reason instanceof HeftError)
        return reason;
    const why = reason === undefined || reason?.name === "AbortError" ? "" : `: ${reasonOf(reason)}`;
    return new HeftError("cancelled", `cancelled by the caller's signal${why}`, { rule: "web/aborted", cause: reason });
}

/** The error for an HTTP status that refuses; `said`: the reason, which the hub and `heft view` state in a header. */
export function refused(what, httpStatus, said, offset = null) {
    const missing = httpStatus === 404 || httpStatus === 410;
    const denied = [401, 403].includes(httpStatus) ? ": access is not allowed" : "";
    const message = missing ? `${what} does not exist (HTTP status ${httpStatus})`
                            : `${what}: the server answered with HTTP status ${httpStatus}${denied}`;
    return new HeftError("io", message + (said ? `: ${said.slice(0, 300)}` : ""),
                         { rule: missing ? "web/not-found" : "web/http-status", httpStatus, offset });
}

export function throwIfAborted(signal) {
    if (signal?.aborted)
        throw abortedError(signal);
}

/** Any error as a HeftError: what the package did not foresee has the status "crash". */
export function asHeftError(e) {
    return e instanceof HeftError ? e : new HeftError("crash", `unexpected: ${reasonOf(e)}`, { rule: "web/crash", cause: e });
}

/** A function of the interface: whatever `fn` throws arrives as a HeftError. */
export async function answering(fn) {
    try {
        return await fn();
    } catch (e) {
        throw asHeftError(e);
    }
}

/** Options of the caller: an object, or nothing. */
export function optionsOf(options, what) {
    if (options === undefined || options === null)
        return {};
    if (typeof options !== "object")
        throw new HeftError("argument", `${what} takes an object of options, not ${typeof options}`);
    if (options.signal != null && typeof options.signal.addEventListener !== "function")
        throw new HeftError("argument", `${what}: signal is not an AbortSignal`);
    return options;
}

/** Call a function of the caller; whatever it throws is the cause of a HeftError. */
export async function asking(what, fn) {
    try {
        return await fn();
    } catch (e) {
        throw e instanceof HeftError ? e : new HeftError("io", `${what} failed: ${reasonOf(e)}`, { rule: "web/read", cause: e });
    }
}

/** Report progress to the caller's function. */
export function tell(onProgress, progress) {
    try {
        onProgress?.(progress);
    } catch (e) {
        throw new HeftError("argument", `onProgress() failed: ${reasonOf(e)}`, { cause: e });
    }
}

/** What a worker sends in place of an error, and back. */
export function packError(e) {
    const { status, message, rule, offset, tensor, httpStatus } = asHeftError(e);
    return { status, message, rule, offset, tensor, httpStatus };
}

export function unpackError(e) {
    return new HeftError(e.status, e.message, e);
}
