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

export function closedError() {
    return new HeftError("cancelled", "the model is closed", { rule: "web/closed" });
}

/** Throw the reason of an aborted signal. */
export function throwIfAborted(signal) {
    if (signal?.aborted)
        throw signal.reason ?? new DOMException("The operation was aborted.", "AbortError");
}

/** What a worker sends in place of an error, and back. */
export function packError(e) {
    const { status, message, rule, offset, tensor, httpStatus } = e;
    return e instanceof HeftError ? { status, message, rule, offset, tensor, httpStatus }
                                  : { status: "crash", message: String(e?.message ?? e), rule: "web/crash" };
}

export function unpackError(e) {
    return new HeftError(e.status, e.message, e);
}
