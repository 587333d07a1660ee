/* payload.c - the bytes of a writer's parts on their way into the file: to the places that they have, or one behind the
 * other when they are compressed. */
#include "core/write/writer.h"

/* ---- a writer that cannot go on ---- */

heft_status heft_writer_wrong(heft_error *err, const char *what)
{
    return heft_error_plain(err, HEFT_E_ARGUMENT, "%s", what);
}

heft_status heft_writer_break(heft_writer *w, heft_status st, heft_error *err)
{
    heft_error_end(err, st);
    if (st && !w->failed.status)
        w->failed = *err;
    return st;
}

heft_status heft_writer_broken(const heft_writer *w, heft_error *err)
{
    if (w->failed.status)
        *err = w->failed;
    return w->failed.status;
}

/* ---- places ---- */

static const heft_ix_part_row *row(const heft_writer *w, uint32_t part)
{
    return heft_ix_part_row_at(&w->p.x, part);
}

heft_status heft_writer_find_places(heft_writer *w, heft_error *err)
{
    uint32_t parts = w->p.x.parts.len;
    heft_status st = heft_planner_parts_in_order(&w->p, &w->places, &w->place_count, err);
    if (st)
        return st;
    w->place_of = heft_plan_alloc(&w->p.plan, parts * sizeof *w->place_of);
    if (!w->place_of)
        return HEFT_E_NOMEM;
    for (uint32_t i = 0; i < parts; i++)
        w->place_of[i] = HEFT_NONE;
    for (uint32_t i = 0; i < w->place_count; i++)
        w->place_of[w->places[i]] = i;
    for (uint32_t i = 0; i < w->p.plan.order_count; i++)
        if (w->place_of[w->p.plan.order[i]] == HEFT_NONE)
            w->place_of[w->p.plan.order[i]] = 0; /* it has no bytes, but it is not left out */
    return HEFT_OK;
}

/* All gaps from the place that comes next up to that in front of place `last`, which may be the
 * end; payloads in between are passed over. */
static heft_status fill_gaps(heft_writer *w, uint32_t last, heft_error *err)
{
    heft_status st = HEFT_OK;
    for (; w->place <= last && !st; w->place++) {
        bool is_end = w->place == w->place_count;
        const heft_ix_part_row *part = is_end ? NULL : row(w, w->places[w->place]);
        uint64_t end = part ? part->offset : w->p.plan.data_end;
        st = heft_planner_write_record_header(&w->p, w->places, w->place_count, w->place, w->at,
                                              end, w->sink, err);
        if (part)
            w->at = part->offset + part->stored;
    }
    return st;
}

heft_status heft_writer_fill(heft_writer *w, heft_error *err)
{
    return fill_gaps(w, w->place_count, err);
}

/* ---- parts that take their places as they come ---- */

heft_status heft_writer_open_appender(heft_writer *w, heft_error *err)
{
    const heft_allocator *al = w->p.host->allocator;
    w->to = heft_alloc(al, sizeof *w->to, 64);
    if (!w->to)
        return heft_error_no_memory(err, "to compress");
    return heft_append_open(w->to, &w->p, w->sink, err);
}

static void encode_piece(void *arg, size_t i)
{
    heft_writer *w = arg;
    heft_error unused;
    w->spoiled[i] = heft_append_encode(w->to, &w->to->pieces[i], &unused) != HEFT_OK;
}

/* Encodes what waits, side by side, and writes it in order. */
heft_status heft_writer_flush(heft_writer *w, heft_error *err)
{
    heft_status st = HEFT_OK;
    heft_host_run(w->p.host, w->filled, encode_piece, w);
    for (uint32_t i = 0; i < w->filled && !st; i++) {
        if (w->spoiled[i]) /* once more, for what it says */
            st = heft_append_encode(w->to, &w->to->pieces[i], err);
        if (!st)
            st = heft_append_write(w->to, &w->to->pieces[i], err);
    }
    w->filled = 0;
    return st;
}

/* Bytes of a part from w->written on: all of them into pieces. */
static heft_status add_pieces(heft_writer *w, uint32_t part, const uint8_t *data, size_t len,
                              heft_error *err)
{
    uint64_t whole = row(w, part)->length, at = w->written;
    heft_status st = HEFT_OK;
    do {
        heft_piece *s = &w->to->pieces[w->filled];
        uint64_t from = heft_div(at, w->to->piece) * w->to->piece;
        size_t have = (size_t)(at - from),
               n = w->to->piece - have < len ? w->to->piece - have : len;
        if (n) { /* without any, there may be no place either */
            memcpy(s->raw + have, data, n);
            data += n;
        }
        at += n;
        len -= n;
        s->part = part;
        s->from = from;
        s->len = have + n;
        s->last = at == whole;
        w->filled += s->last || s->len == w->to->piece;
        if (w->filled == w->to->width)
            st = heft_writer_flush(w, err);
    } while (len && !st);
    return st;
}

/* ---- bytes of a part ---- */

bool heft_writer_leaves_out(const heft_writer *w, uint32_t part)
{
    return w->is_late && part >= w->planned
               ? heft_ix_part_row_at(&w->p.x, part)->flags & HEFT_P_UNUSED
               : w->place_of[part] == HEFT_NONE;
}

/* Digests that cannot be joined from pieces of the file take the bytes as they come. */
static heft_status digest(heft_writer *w, uint32_t part, const void *data, size_t len,
                          heft_error *err)
{
    const heft_digest *d = heft_planner_digest_of(&w->p, part);
    if (!d || heft_digest_joins(d))
        return HEFT_OK;
    heft_status st = w->written ? HEFT_OK
                                : heft_running_digest_begin(&w->tap, d, w->p.host->allocator,
                                                            "for a digest", err);
    if (st)
        return st;
    heft_running_digest_update(&w->tap, data, len);
    if (w->written + len == row(w, part)->length)
        heft_running_digest_end(&w->tap, w->p.part_digests[part]);
    return HEFT_OK;
}

static heft_status put(heft_writer *w, uint32_t part, const void *data, size_t len, heft_error *err)
{
    const heft_ix_part_row *p = row(w, part);
    uint64_t to = p->offset + w->written;
    heft_status st = digest(w, part, data, len, err);
    if (st)
        return st;
    if (w->sink->ops->write_at)
        return heft_planner_write(&w->p, w->sink, to, data, len, err);
    if (w->place_of[part] + !!w->written < w->place)
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "%s stores these tensors in another order than they are declared "
                                "in, which a stream cannot take",
                                w->p.format->name);
    st = fill_gaps(w, w->place_of[part], err);
    return st ? st : heft_planner_write(&w->p, w->sink, to, data, len, err);
}

heft_status heft_writer_put(heft_writer *w, uint32_t part, const void *data, size_t len,
                            heft_error *err)
{
    heft_status st = HEFT_OK;
    if (!heft_writer_leaves_out(w, part))
        st = w->to ? add_pieces(w, part, data, len, err)
             : len ? put(w, part, data, len, err)
                   : HEFT_OK;
    w->written += len;
    return st;
}
