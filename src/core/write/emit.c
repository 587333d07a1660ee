/* emit.c - the bytes that formats write themselves: in front of the data, between its parts, behind it. */
#include "core/write/plan.h"

enum { OUT_BUFFER = 256 << 10 };

/* Names and texts are lent by the input. When these change after the planning, so does the size of what a
 * format writes. */
static heft_status changed(const heft_planner *p, uint64_t planned, uint64_t bytes, heft_error *err)
{
    return heft_error_plain(err, HEFT_E_IO,
                            "the input changed while it was converted: %U bytes of the %s file "
                            "were planned for names and metadata, %U are needed now",
                            planned, p->format->name, bytes);
}

/* ---- between places ---- */

typedef struct cutout { /* of bytes that are written in order: those that are wanted */
    uint8_t *dst;
    uint64_t base, from, to; /* where the bytes begin; where those wanted lie */
} cutout;

static heft_status cut_out(void *ctx, uint64_t at, const void *data, size_t len)
{
    const cutout *c = ctx;
    uint64_t begin = c->base + at, end = begin + len;
    uint64_t from = begin > c->from ? begin : c->from, to = end < c->to ? end : c->to;
    if (from < to)
        memcpy(c->dst + (from - c->from), (const uint8_t *)data + (from - begin),
               (size_t)(to - from));
    return HEFT_OK;
}

/* Whether a record header of so many bytes at `base` ends where the part is planned, padding aside. */
static bool reaches(const heft_planner *p, uint64_t base, uint64_t bytes, uint64_t part)
{
    uint64_t end, aligned;
    return !bytes ||
           (heft_add(&end, base, bytes) &&
            (end == part || (heft_align_up(&aligned, end, p->plan.align) && aligned == part)));
}

heft_status heft_planner_record_header(const heft_planner *p, const uint32_t *places,
                                       uint32_t count, uint32_t i, uint64_t at, size_t len,
                                       uint8_t *dst, heft_error *err)
{
    uint8_t buf[256];
    cutout c = { dst, p->plan.header_bytes, at, at + len };
    heft_out o = { .buf = buf, .cap = sizeof buf, .flush = cut_out, .ctx = &c };
    memset(dst, p->plan.fill, len);
    if (!p->format->write_record_header || i == count)
        return HEFT_OK;
    uint64_t part = heft_ix_part_row_at(&p->x, places[i])->offset;
    if (i) {
        const heft_ix_part_row *before = heft_ix_part_row_at(&p->x, places[i - 1]);
        c.base = before->offset + before->stored;
    }
    heft_status st = p->format->write_record_header(&p->plan, places[i], &o);
    if (st && err && err != p->plan.err) /* of a late plan, which one thread writes */
        *err = *p->plan.err;
    if (!st)
        st = heft_out_flush(&o);
    return st || reaches(p, c.base, o.total, part) ? st : changed(p, part - c.base, o.total, err);
}

/* ---- into a sink ---- */

heft_status heft_sink_put(heft_sink *s, uint64_t at, const void *data, size_t len, heft_error *err)
{
    if (!len)
        return HEFT_OK;
    return s->ops->write_at ? s->ops->write_at(s, at, data, len, err)
                            : s->ops->write(s, data, len, err);
}

heft_status heft_planner_write(heft_planner *p, heft_sink *sink, uint64_t at, const void *data,
                               size_t len, heft_error *err)
{
    heft_status st = heft_partial_crcs_add(&p->written, at, data, len, err);
    return st ? st : heft_sink_put(sink, at, data, len, err);
}

heft_status heft_sink_fill(heft_sink *s, uint64_t at, uint64_t len, uint8_t byte, heft_error *err)
{
    uint8_t block[512];
    memset(block, byte, sizeof block);
    heft_status st = HEFT_OK;
    for (uint64_t done = 0; done < len && !st; done += sizeof block)
        st = heft_sink_put(s, at + done, block,
                           len - done < sizeof block ? (size_t)(len - done) : sizeof block, err);
    return st;
}

typedef struct flushing {
    heft_planner *p;
    heft_sink *sink;
    uint64_t base, planned; /* where the bytes begin, and how many there may be */
    bool is_full;           /* more came: none of them is written */
    heft_error *err;
} flushing;

/* No byte beyond the planned ones reaches the sink, whatever the format does. */
static heft_status flush(void *ctx, uint64_t at, const void *data, size_t len)
{
    flushing *fl = ctx;
    fl->is_full = fl->is_full || at > fl->planned || len > fl->planned - at;
    if (fl->is_full)
        return HEFT_E_IO; /* heft_planner_emit() says why, once the size is known */
    return heft_planner_write(fl->p, fl->sink, fl->base + at, data, len, fl->err);
}

heft_status heft_planner_emit(heft_planner *p, heft_section section, heft_sink *sink,
                              heft_error *err)
{
    const heft_allocator *al = p->host->allocator;
    bool is_header = section == HEFT_HEADER;
    heft_status (*write)(const heft_plan *, heft_out *) = is_header ? p->format->write_header
                                                                    : p->format->write_trailer;
    flushing fl = { p, sink, is_header ? 0 : p->plan.data_end, p->plan.header_bytes, false, err };
    if (!write)
        return HEFT_OK;
    p->plan.err = err;
    heft_status st = is_header ? HEFT_OK : heft_planner_trailer_bytes(p, &fl.planned);
    if (st)
        return st;
    if (!is_header && p->plan.appended)
        p->plan.file_bytes = p->plan.data_end + fl.planned;
    uint8_t *buf = heft_alloc(al, OUT_BUFFER, 64);
    if (!buf)
        return heft_error_no_memory(err, "to write the index");
    heft_out o = { .buf = buf, .cap = OUT_BUFFER, .flush = flush, .ctx = &fl };
    st = write(&p->plan, &o);
    if (!st)
        st = heft_out_flush(&o);
    heft_free(al, buf, OUT_BUFFER, 64);
    return fl.is_full || (!st && o.total != fl.planned) ? changed(p, fl.planned, o.total, err) : st;
}

heft_status heft_planner_write_record_header(heft_planner *p, const uint32_t *places,
                                             uint32_t count, uint32_t i, uint64_t at, uint64_t to,
                                             heft_sink *sink, heft_error *err)
{
    uint8_t block[4096];
    heft_status st = HEFT_OK;
    p->plan.err = err;
    for (size_t n; at < to && !st; at += n) {
        n = to - at < sizeof block ? (size_t)(to - at) : sizeof block;
        st = heft_planner_record_header(p, places, count, i, at, n, block, err);
        if (!st)
            st = heft_planner_write(p, sink, at, block, n, err);
    }
    return st;
}

heft_status heft_planner_write_record_headers(heft_planner *p, heft_sink *sink, heft_error *err)
{
    uint32_t *places, count;
    uint64_t at = p->plan.header_bytes;
    heft_status st = heft_planner_parts_in_order(p, &places, &count, err);
    for (uint32_t i = 0; i <= count && !st; i++) {
        const heft_ix_part_row *part = i < count ? heft_ix_part_row_at(&p->x, places[i]) : NULL;
        uint64_t end = part ? part->offset : p->plan.data_end;
        st = heft_planner_write_record_header(p, places, count, i, at, end, sink, err);
        at = part ? end + part->stored : end;
    }
    return st;
}
