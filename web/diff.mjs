/** Compare two open models in a worker, as `heft diff` does without options. */
import { HASH, NONE } from "./core.mjs";
import { HeftError } from "./error.mjs";

/** Elements compared at once: whole blocks of every type. */
const STEP = 1 << 16;
/** Members of struct difference in web_diff.c, in order. */
const SUMS = ["differing", "compared", "first", "max_abs", "max_rel", "finite", "sum_abs", "sum_squares", "squares_a",
              "squares_b", "products"];
const BOOL = 1, U8 = 2;
const KIND_NONE = 0, KIND_COMPLEX = 5;

class Side {
    constructor(opened, model) {
        this.opened = opened;
        this.core = opened.core;
        this.model = model;
        this.count = opened.count(model);
        this.names = Array.from({ length: this.count }, (_, i) => this.tensor(i).name);
        this.partner = new Uint32Array(this.count).fill(NONE);
    }

    tensor(id) {
        const { core } = this;
        core.run("tensor_at", this.model, id);
        const view = core.view(), at = core.pointer(2), rank = core.number(0);
        return { id, name: core.string(0) ?? "", dtype: core.number(1), firstPart: core.number(2),
                 partCount: core.number(3), layout: core.string(1) ?? "", nbytes: core.number(4) || 0,
                 shape: Array.from({ length: rank }, (_, i) => Number(view.getBigUint64(at + 8 * i, true))) };
    }

    part(number) {
        const { core } = this;
        core.run("part_at", this.model, number);
        return { number, role: core.string(0) ?? "", length: core.number(2), dtype: core.number(3), digest: core.string(1) };
    }

    parts(t) {
        return Array.from({ length: t.partCount }, (_, i) => this.part(t.firstPart + i));
    }

    read(part, at, length, ptr, tensor) {
        const st = this.core.run("part_read", ptr, this.model, part.number, at, length);
        if (st)
            throw this.core.error(st, tensor);
    }

    /** Check the digest of a part, as `heft diff` does. */
    check(part, tensor) {
        const st = this.core.run("part_verify", this.model, part.number);
        if (st)
            throw this.core.error(st, tensor);
    }
}

function info(core, dtype) {
    if (!core.run("dtype_at", dtype))
        return { name: null, kind: KIND_NONE, elems: 1, bytes: 1 };
    return { name: core.string(0), kind: core.number(0), elems: core.number(1), bytes: core.number(2),
             decodes: !!core.number(3) };
}

/** Booleans are compared as numbers: a byte other than 0 and 1 differs from 1. */
function numberType(dtype) {
    return dtype === BOOL ? U8 : dtype;
}

function suits(core, a, b) {
    const x = info(core, numberType(a)), y = info(core, numberType(b));
    const isNumber = i => i.kind !== KIND_NONE && i.decodes;
    return a === b || (isNumber(x) && isNumber(y) && (x.kind === KIND_COMPLEX) === (y.kind === KIND_COMPLEX));
}

function elementsIn(core, dtype, length, t) {
    const { elems, bytes } = info(core, dtype);
    const all = Math.floor(length / bytes) * elems;
    return t.layout === "dense" ? Math.min(all, t.shape.reduce((n, d) => n * d, 1)) : all;
}

class Comparison {
    constructor(opened, a, b, total) {
        this.core = opened.core;
        this.opened = opened;
        this.a = a;
        this.b = b;
        this.done = 0;
        this.total = total;
    }

    /** Compare two tensors; return { incomparable, bytewise, ...sums }. */
    tensors(x, y) {
        const { core, a, b } = this, px = a.parts(x), py = b.parts(y);
        const d = { incomparable: px.length !== py.length, bytewise: false };
        return core.withMemory(8 * SUMS.length, sums => {
            core.bytes(sums, 8 * SUMS.length).fill(0);
            core.view().setFloat64(sums + 16, -1, true);
            const values = px.length === 1 ? px[0] : px.find(p => p.role === "data") ?? px.find(p => p.role === "values");
            for (const p of px) {
                const q = py.find(other => other.role === p.role);
                if (d.incomparable || !q || (p.dtype && q.dtype && !suits(core, p.dtype, q.dtype)))
                    d.incomparable = true;
                else
                    this.parts(d, sums, x, p, q, p === values);
            }
            SUMS.forEach((name, i) => { d[name] = core.view().getFloat64(sums + 8 * i, true); });
            return d;
        });
    }

    parts(d, sums, tensor, p, q, hasStatistics) {
        const { core } = this;
        let ta = numberType(p.dtype), tb = numberType(q.dtype);
        if (!ta || !tb)
            ta = tb = 0;
        const ia = info(core, ta), ib = info(core, tb), bytewise = ia.kind === KIND_NONE || !ia.decodes;
        const n = bytewise ? p.length : elementsIn(core, ta, p.length, tensor);
        const other = bytewise ? q.length : elementsIn(core, tb, q.length, tensor);
        if (Number.isNaN(p.length) || Number.isNaN(q.length))
            throw new HeftError("unsupported", `tensor '${tensor.name}': the size of a part is not known`, { tensor: tensor.name });
        if (n !== other || (ta === tb && p.length !== q.length)) {
            d.incomparable = true;
            return;
        }
        d.bytewise ||= bytewise;
        core.view().setFloat64(sums + 8, core.view().getFloat64(sums + 8, true) + n, true);
        this.a.check(p, tensor.name);
        this.b.check(q, tensor.name);
        const run = { sums, tensor, p, q, ta, tb, ia: bytewise ? { elems: 1, bytes: 1 } : ia,
                      ib: bytewise ? { elems: 1, bytes: 1 } : ib, n, bytewise, hasStatistics };
        if (ta === tb && this.walk(run, (pa, pb, len) => core.run("same_bytes", pa, pb, len)))
            return;
        this.walk(run, (pa, pb, len, from, count) => {
            if (bytewise)
                core.run("diff_bytes", sums, pa, pb, len, from);
            else
                core.run("diff_numbers", sums, pa, ta, pb, tb, count, from, hasStatistics);
            return true;
        });
    }

    /** Read both parts in steps; false as soon as fn returns false. */
    walk({ tensor, p, q, ia, ib, n }, fn) {
        const { core } = this;
        const bytesOf = (i, count) => Math.ceil(count / i.elems) * i.bytes;
        const ca = Math.min(bytesOf(ia, STEP), p.length) + 1, cb = Math.min(bytesOf(ib, STEP), q.length) + 1;
        return core.withMemory(ca, pa => core.withMemory(cb, pb => {
            for (let from = 0, atA = 0, atB = 0; from < n; from += STEP) {
                const count = Math.min(STEP, n - from);
                const la = Math.min(bytesOf(ia, count), p.length - atA), lb = Math.min(bytesOf(ib, count), q.length - atB);
                this.a.read(p, atA, la, pa, tensor.name);
                this.b.read(q, atB, lb, pb, tensor.name);
                if (!fn(pa, pb, la, from, count))
                    return false;
                atA += la;
                atB += lb;
                this.opened.progress(this.done + atA, this.total);
            }
            return true;
        }));
    }
}

/** ---- the report --------------------------------------------------------------------------- */

function statistics(d) {
    const { finite } = d;
    const norms = Math.sqrt(d.squares_a) * Math.sqrt(d.squares_b);
    return {
        max_abs: d.max_abs, max_rel: d.max_rel,
        mean_abs: finite ? d.sum_abs / finite : NaN, rmse: finite ? Math.sqrt(d.sum_squares / finite) : NaN,
        nmse: d.sum_squares === 0 ? (finite ? 0 : NaN) : d.squares_b === 0 ? Infinity : d.sum_squares / d.squares_b,
        cosine: norms > 0 ? Math.max(-1, Math.min(1, d.products / norms)) : NaN,
    };
}

function position(d, t) {
    if (d.first < 0)
        return null;
    const elements = t.shape.reduce((n, x) => n * x, 1);
    if (d.bytewise || t.layout !== "dense" || d.first >= elements)
        return [d.first];
    const at = [];
    let left = d.first;
    for (let i = t.shape.length; i--; left = Math.floor(left / t.shape[i]))
        at[i] = left % t.shape[i];
    return at;
}

function valueChange(d, t) {
    const has = !d.bytewise && !d.incomparable, all = statistics(d);
    const shown = Object.fromEntries(Object.entries(all).map(([k, v]) => [k, has && !Number.isNaN(v) ? v : null]));
    return { ...shown, differing: d.incomparable ? null : d.differing, compared: d.incomparable ? null : d.compared,
             first: d.incomparable ? null : position(d, t) };
}

function sameShape(x, y) {
    return x.length === y.length && x.every((n, i) => n === y[i]);
}

/** Changes of a pair that need no values. */
function kinds(core, x, y) {
    const changes = [];
    if (x.dtype !== y.dtype)
        changes.push({ name: y.name, what: "dtype", a: info(core, x.dtype).name, b: info(core, y.dtype).name });
    if (!sameShape(x.shape, y.shape))
        changes.push({ name: y.name, what: "shape", a: x.shape, b: y.shape });
    if (x.layout !== y.layout)
        changes.push({ name: y.name, what: "layout", a: x.layout, b: y.layout });
    return changes;
}

/** Hash the tensors without a partner: [digest, id], sorted by digest. */
function hashLonely(side) {
    const ids = [...side.partner.keys()].filter(i => side.partner[i] === NONE), { core } = side;
    return core.withMemory(4 * ids.length + 4, list => core.withMemory(HASH * ids.length + 1, ptr => {
        ids.forEach((id, i) => core.view().setUint32(list + 4 * i, id, true));
        const { progress } = core.host;
        core.host.progress = null; // bytes of the hashes are not part of the total
        const st = core.run("hash_some", ptr, side.model, list, ids.length);
        core.host.progress = progress;
        if (st)
            throw core.error(st);
        const text = i => String.fromCharCode(...core.bytes(ptr + HASH * i, HASH));
        return ids.map((id, i) => [text(i), id])
            .sort(([x, i], [y, j]) => (x < y ? -1 : x > y ? 1 : i - j));
    }));
}

function findRenamed(a, b) {
    const isLonely = side => side.partner.includes(NONE);
    if (!isLonely(a) || !isLonely(b))
        return [];
    const x = hashLonely(a), y = hashLonely(b), found = [];
    for (let i = 0, k = 0; i < x.length && k < y.length;) {
        const order = x[i][0] < y[k][0] ? -1 : x[i][0] > y[k][0] ? 1 : 0;
        if (!order) {
            found.push([x[i][1], y[k][1]]);
            a.partner[x[i][1]] = y[k][1];
            b.partner[y[k][1]] = x[i][1];
        }
        i += order <= 0;
        k += order >= 0;
    }
    return found.sort((p, q) => p[0] - q[0]).map(([i, k]) => ({ a: a.names[i], b: b.names[k] }));
}

export function diff(opened, [modelA, modelB]) {
    const { core } = opened, a = new Side(opened, modelA), b = new Side(opened, modelB);
    const pairs = [];
    for (let i = 0; i < a.count; i++) {
        const other = core.withText(a.names[i], (ptr, len) => core.run("tensor_find", modelB, ptr, len)) >>> 0;
        if (other === NONE)
            continue;
        a.partner[i] = other;
        b.partner[other] = i;
        const x = a.tensor(i), y = b.tensor(other), changes = kinds(core, x, y);
        const compares = changes.every(c => c.what === "dtype") && suits(core, x.dtype, y.dtype);
        pairs.push({ x, y, changes, compares });
    }
    const comparing = pairs.filter(p => p.compares);
    const c = new Comparison(opened, a, b, comparing.reduce((n, p) => n + p.x.nbytes, 0));
    for (const p of comparing) {
        const d = c.tensors(p.x, p.y);
        c.done += p.x.nbytes;
        if (d.incomparable || d.differing)
            p.changes.push({ name: p.y.name, what: "value", ...valueChange(d, p.y) });
    }
    return report(a, b, pairs);
}

function report(a, b, pairs) {
    const renamed = findRenamed(a, b);
    const lonely = side => side.names.filter((_, i) => side.partner[i] === NONE);
    const only_in_a = lonely(a), only_in_b = lonely(b);
    const equal = pairs.filter(p => !p.changes.length).length;
    return {
        equal: equal === pairs.length && !only_in_a.length && !only_in_b.length && !renamed.length,
        only_in_a, only_in_b, renamed, changed: pairs.flatMap(p => p.changes),
        summary: { tensors: pairs.length + renamed.length + only_in_a.length + only_in_b.length, equal,
                   differ: pairs.length - equal, renamed: renamed.length, only_in_a: only_in_a.length,
                   only_in_b: only_in_b.length },
    };
}
