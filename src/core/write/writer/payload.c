/* payload.c - write the data of a writer's parts: at planned offsets, or appended if compressed
 * or late. */
#include "core/write/writer/writer.h"

/* ---- errors ---- */

heft_status heft_writer_argument_error(heft_error *err, const char *what)
{
    return heft_error_plain(err, HEFT_E_ARGUMENT, "%s", what);
}

heft_status heft_writer_record_failure(heft_writer *w, heft_status st, heft_error *err)
{
    heft_error_end(err, st);
    if (st && !w->failed.status)
        w->failed = *err;
    return st;
}

heft_status heft_writer_failure(const heft_writer *w, heft_error *err)
{
    if (w->failed.status)
        *err = w->failed;
    return w->failed.status;
}

/* ---- gaps between parts ---- */

static const heft_ix_part_row *row(const heft_writer *w, uint32_t part)
{
    return heft_ix_part_row_at(&w->p.x, part);
}

heft_status heft_writer_build_order(heft_writer *w, heft_error *err)
{
    uint32_t parts = w->p.x.parts.len;
    HEFT_TRY(heft_planner_parts_in_order(&w->p, &w->file_order, &w->file_order_count, err));
    w->order_of = heft_plan_alloc(&w->p.plan, parts * sizeof *w->order_of);
    if (!w->order_of)
        return HEFT_E_NOMEM;
    for (uint32_t i = 0; i < parts; i++)
        w->order_of[i] = HEFT_NONE;
    for (uint32_t i = 0; i < w->file_order_count; i++)
        w->order_of[w->file_order[i]] = i;
    /* the part is empty, but not left out */
    for (uint32_t i = 0; i < w->p.plan.order_count; i++)
        if (w->order_of[w->p.plan.order[i]] == HEFT_NONE)
            w->order_of[w->p.plan.order[i]] = 0;
    return HEFT_OK;
}

/* Write the gaps up to and including the gap before part `last` in file order, or before the end
 * of the data; skip the payloads. */
static heft_status fill_gaps(heft_writer *w, uint32_t last, heft_error *err)
{
    heft_status st = HEFT_OK;
    for (; w->next_gap <= last && !st; w->next_gap++) {
        bool is_end = w->next_gap == w->file_order_count;
        const heft_ix_part_row *part = is_end ? NULL : row(w, w->file_order[w->next_gap]);
        uint64_t end = part ? part->offset : w->p.plan.data_end;
        st = heft_planner_write_record_header(&w->p, w->file_order, w->file_order_count,
                                              w->next_gap, w->filled_to, end, w->sink, err);
        if (part)
            w->filled_to = part->offset + part->stored;
    }
    return st;
}

heft_status heft_writer_fill_gaps(heft_writer *w, heft_error *err)
{
    return fill_gaps(w, w->file_order_count, err);
}

/* ---- appended parts ---- */

heft_status heft_writer_open_appender(heft_writer *w, heft_error *err)
{
    const heft_allocator *al = w->p.host->allocator;
    w->appender = heft_alloc(al, sizeof *w->appender, 64);
    if (!w->appender)
        return heft_error_no_memory(err, "to compress");
    return heft_append_open(w->appender, &w->p, w->sink, err);
}

heft_status heft_writer_flush(heft_writer *w, heft_error *err)
{
    uint32_t n = w->chunks_filled;
    w->chunks_filled = 0;
    heft_append_encode_batch(w->appender, n, NULL, NULL);
    return heft_append_write_batch(w->appender, n, err);
}

/* Distribute bytes of a part, from w->written on, to chunks. */
static heft_status add_to_chunks(heft_writer *w, uint32_t part, const uint8_t *data, size_t len,
                                 heft_error *err)
{
    uint64_t whole = row(w, part)->length, at = w->written;
    heft_status st = HEFT_OK;
    do {
        heft_append_chunk *s = &w->appender->chunks[w->chunks_filled];
        uint64_t from = heft_div(at, w->appender->chunk_bytes) * w->appender->chunk_bytes;
        size_t have = (size_t)(at - from),
               n = w->appender->chunk_bytes - have < len ? w->appender->chunk_bytes - have : len;
        if (n) { /* data may be NULL if there are no bytes */
            memcpy(s->raw + have, data, n);
            data += n;
        }
        at += n;
        len -= n;
        s->part = part;
        s->from = from;
        s->len = have + n;
        s->last = at == whole;
        w->chunks_filled += s->last || s->len == w->appender->chunk_bytes;
        if (w->chunks_filled == w->appender->chunk_count)
            st = heft_writer_flush(w, err);
    } while (len && !st);
    return st;
}

/* ---- bytes of a part ---- */

bool heft_writer_leaves_out(const heft_writer *w, uint32_t part)
{
    return w->is_late && part >= w->declared_parts
               ? heft_ix_part_row_at(&w->p.x, part)->flags & HEFT_P_UNUSED
               : w->order_of[part] == HEFT_NONE;
}

/* Compute digests that cannot be joined from ranges of the file as the bytes arrive. */
static heft_status digest(heft_writer *w, uint32_t part, const void *data, size_t len,
                          heft_error *err)
{
    const heft_digest *d = heft_planner_digest_of(&w->p, part);
    if (!d || heft_digest_joins(d))
        return HEFT_OK;
    if (!w->written)
        HEFT_TRY(heft_running_digest_begin(&w->part_digest, d, w->p.host->allocator, "for a digest",
                                           err));
    heft_running_digest_update(&w->part_digest, data, len);
    if (w->written + len == row(w, part)->length)
        heft_running_digest_end(&w->part_digest, w->p.part_digests[part]);
    return HEFT_OK;
}

static heft_status put(heft_writer *w, uint32_t part, const void *data, size_t len, heft_error *err)
{
    const heft_ix_part_row *p = row(w, part);
    uint64_t to = p->offset + w->written;
    HEFT_TRY(digest(w, part, data, len, err));
    if (w->sink->ops->write_at)
        return heft_planner_write(&w->p, w->sink, to, data, len, err);
    if (w->order_of[part] + !!w->written < w->next_gap)
        return heft_error_plain(
            err, HEFT_E_ARGUMENT,
            "%s stores these tensors in another order than declared, which a stream does not allow",
            w->p.format->name);
    HEFT_TRY(fill_gaps(w, w->order_of[part], err));
    return heft_planner_write(&w->p, w->sink, to, data, len, err);
}

heft_status heft_writer_put(heft_writer *w, uint32_t part, const void *data, size_t len,
                            heft_error *err)
{
    heft_status st = HEFT_OK;
    if (!heft_writer_leaves_out(w, part))
        st = w->appender ? add_to_chunks(w, part, data, len, err)
             : len       ? put(w, part, data, len, err)
                         : HEFT_OK;
    w->written += len;
    return st;
}
