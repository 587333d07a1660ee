/* write_headers.c - run the functions of a format that write header, record headers and trailer. */
#include "core/write/plan/plan.h"

enum { OUT_BUFFER = 256 << 10 };

/* The input lends names and texts.  If the input changes after planning, the format writes a
 * different number of bytes. */
static heft_status changed(const heft_planner *p, uint64_t planned, uint64_t bytes, heft_error *err)
{
    return heft_error_plain(err, HEFT_E_IO,
                            "the input changed while being converted: %U bytes of the %s file were "
                            "planned for names and metadata, %U are needed now",
                            planned, p->format->name, bytes);
}

/* ---- record headers ---- */

typedef struct extractor { /* copies a range out of bytes that are produced in order */
    uint8_t *dst;
    /* File offset of the first produced byte; the range to copy. */
    uint64_t base, from, to;
} extractor;

static heft_status extract(void *ctx, uint64_t at, const void *data, size_t len)
{
    const extractor *c = ctx;
    uint64_t begin = c->base + at, end = begin + len;
    uint64_t from = begin > c->from ? begin : c->from, to = end < c->to ? end : c->to;
    if (from < to)
        memcpy(c->dst + (from - c->from), (const uint8_t *)data + (from - begin),
               (size_t)(to - from));
    return HEFT_OK;
}

/* Return true if a record header of `bytes` bytes at `base` ends at the offset planned for the
 * part, padding aside. */
static bool reaches(const heft_planner *p, uint64_t base, uint64_t bytes, uint64_t part)
{
    uint64_t end, aligned;
    return !bytes ||
           (heft_add(&end, base, bytes) &&
            (end == part || (heft_align_up(&aligned, end, p->plan.align) && aligned == part)));
}

heft_status heft_planner_record_header(const heft_planner *p, const uint32_t *file_order,
                                       uint32_t count, uint32_t i, uint64_t at, size_t len,
                                       uint8_t *dst, heft_error *err)
{
    uint8_t buf[256];
    extractor c = { dst, p->plan.header_bytes, at, at + len };
    heft_out o = { .buf = buf, .cap = sizeof buf, .flush = extract, .ctx = &c };
    memset(dst, p->plan.fill, len);
    if (!p->writer->write_record_header || i == count)
        return HEFT_OK;
    uint64_t part = heft_ix_part_row_at(&p->x, file_order[i])->offset;
    if (i) {
        const heft_ix_part_row *preceding = heft_ix_part_row_at(&p->x, file_order[i - 1]);
        c.base = preceding->offset + preceding->stored;
    }
    heft_status st = p->writer->write_record_header(&p->plan, file_order[i], &o);
    /* a plan with preceding digests writes to plan.err on a single thread */
    if (st && err && err != p->plan.err)
        *err = *p->plan.err;
    if (!st)
        st = heft_out_flush(&o);
    return st || reaches(p, c.base, o.total, part) ? st : changed(p, part - c.base, o.total, err);
}

/* ---- into a sink ---- */

heft_status heft_planner_write(heft_planner *p, heft_sink *sink, uint64_t at, const void *data,
                               size_t len, heft_error *err)
{
    HEFT_TRY(heft_partial_crcs_add(&p->written, at, data, len, err));
    return heft_sink_put(sink, at, data, len, err);
}

typedef struct flush_job {
    heft_planner *p;
    heft_sink *sink;
    uint64_t base, planned; /* offset of the first byte; number of planned bytes */
    bool overflowed;        /* more bytes came than planned; the surplus is not written */
    heft_error *err;
} flush_job;

/* Pass bytes to the sink, but no more than planned, whatever the format writes. */
static heft_status flush(void *ctx, uint64_t at, const void *data, size_t len)
{
    flush_job *fl = ctx;
    fl->overflowed = fl->overflowed || at > fl->planned || len > fl->planned - at;
    /* heft_planner_emit() sets the error once the size is known. */
    if (fl->overflowed)
        return HEFT_E_IO;
    return heft_planner_write(fl->p, fl->sink, fl->base + at, data, len, fl->err);
}

heft_status heft_planner_emit(heft_planner *p, heft_section section, heft_sink *sink,
                              heft_error *err)
{
    const heft_allocator *al = p->host->allocator;
    bool is_header = section == HEFT_HEADER;
    heft_status (*write)(const heft_plan *, heft_out *) = is_header ? p->writer->write_header
                                                                    : p->writer->write_trailer;
    flush_job fl = { p, sink, is_header ? 0 : p->plan.data_end, p->plan.header_bytes, false, err };
    if (!write)
        return HEFT_OK;
    p->plan.err = err;
    if (!is_header)
        HEFT_TRY(heft_planner_trailer_bytes(p, &fl.planned));
    if (!is_header && p->plan.appended)
        p->plan.file_bytes = p->plan.data_end + fl.planned;
    uint8_t *buf = heft_alloc(al, OUT_BUFFER, 64);
    if (!buf)
        return heft_error_no_memory(err, "to write the index");
    heft_out o = { .buf = buf, .cap = OUT_BUFFER, .flush = flush, .ctx = &fl };
    heft_status st = write(&p->plan, &o);
    if (!st)
        st = heft_out_flush(&o);
    heft_free(al, buf, OUT_BUFFER, 64);
    return fl.overflowed || (!st && o.total != fl.planned) ? changed(p, fl.planned, o.total, err)
                                                           : st;
}

heft_status heft_planner_write_record_header(heft_planner *p, const uint32_t *file_order,
                                             uint32_t count, uint32_t i, uint64_t at, uint64_t to,
                                             heft_sink *sink, heft_error *err)
{
    uint8_t block[4096];
    p->plan.err = err;
    for (size_t n; at < to; at += n) {
        n = to - at < sizeof block ? (size_t)(to - at) : sizeof block;
        HEFT_TRY(heft_planner_record_header(p, file_order, count, i, at, n, block, err));
        HEFT_TRY(heft_planner_write(p, sink, at, block, n, err));
    }
    return HEFT_OK;
}

/* Write all record headers of a plan with needs_preceding_digests, once the digests are known. */
static heft_status write_record_headers(heft_planner *p, heft_sink *sink, heft_error *err)
{
    uint32_t *file_order, count;
    uint64_t at = p->plan.header_bytes;
    heft_status st = heft_planner_parts_in_order(p, &file_order, &count, err);
    for (uint32_t i = 0; i <= count && !st; i++) {
        const heft_ix_part_row *part = i < count ? heft_ix_part_row_at(&p->x, file_order[i]) : NULL;
        uint64_t end = part ? part->offset : p->plan.data_end;
        st = heft_planner_write_record_header(p, file_order, count, i, at, end, sink, err);
        at = part ? end + part->stored : end;
    }
    return st;
}

heft_status heft_planner_close_file(heft_planner *p, heft_sink *sink, heft_error *err)
{
    HEFT_TRY(heft_planner_digests(p, err));
    if (p->plan.needs_preceding_digests && sink->ops->write_at)
        HEFT_TRY(write_record_headers(p, sink, err));
    return heft_planner_emit(p, HEFT_TRAILER, sink, err);
}
