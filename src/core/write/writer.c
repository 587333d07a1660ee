/* writer.c - the bytes of a model that was declared, handed over part by part. */
#include "core/write/writer.h"

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

heft_status heft_writer_open(heft_writer **out, const heft_format *fmt, heft_sink *take,
                             const heft_write_options *opt, heft_error *err)
{
    const heft_host *host;
    *out = NULL;
    heft_status st = heft_host_resolve(&host, opt ? opt->host : NULL, err);
    const heft_allocator *al = st ? NULL : host->allocator;
    heft_writer *w = al ? al->resize(al->ctx, NULL, 0, sizeof *w, 16) : NULL;
    if (!st && !w)
        st = heft_error_plain(err, HEFT_E_NOMEM, "no memory for a writer");
    if (st) {
        heft_sink_discard(take);
        return st;
    }
    *w = (heft_writer){ .sink = take };
    st = heft_planner_init(&w->p, fmt, opt, err);
    w->p.plan.in_order = heft_writer_in_order;
    w->p.plan.is_declared = true;
    if (!st && !take)
        st = heft_writer_wrong(err, "there is no sink to write to");
    if (st)
        heft_writer_discard(w);
    else
        *out = w;
    return st;
}

static void release(heft_writer *w)
{
    const heft_allocator *al = w->p.host->allocator;
    heft_sparse_end(&w->indices);
    heft_vec_free(&w->p.x.mem, &w->sparse, sizeof(heft_sparse_spec *));
    heft_text_set_free(&w->names, &w->p.x.mem);
    heft_text_set_free(&w->keys, &w->p.x.mem);
    if (w->to) {
        heft_append_close(w->to);
        al->resize(al->ctx, w->to, sizeof *w->to, 0, 64);
    }
    heft_tap_close(&w->tap, al);
    heft_planner_free(&w->p);
    al->resize(al->ctx, w, sizeof *w, 0, 16);
}

void heft_writer_discard(heft_writer *w)
{
    if (!w)
        return;
    heft_sink_discard(w->sink);
    release(w);
}

/* ---- places ---- */

static const heft_ix_part_row *row(const heft_writer *w, uint32_t part)
{
    return heft_ix_part_row_at(&w->p.x, part);
}

static heft_status find_places(heft_writer *w, heft_error *err)
{
    uint32_t parts = w->p.x.parts.len;
    heft_status st = heft_planner_places(&w->p, &w->places, &w->place_count, err);
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

static heft_status write_out(heft_writer *w, uint64_t at, const void *data, size_t len,
                             heft_error *err)
{
    heft_status st = heft_segments_add(&w->p.written, at, data, len, err);
    return st ? st : heft_sink_put(w->sink, at, data, len, err);
}

/* What stands in front of place i, from byte `at` to byte `to`. */
static heft_status fill_gap(heft_writer *w, uint32_t i, uint64_t at, uint64_t to, heft_error *err)
{
    uint8_t block[4096];
    heft_status st = HEFT_OK;
    w->p.plan.err = err;
    for (size_t n; at < to && !st; at += n) {
        n = to - at < sizeof block ? (size_t)(to - at) : sizeof block;
        st = heft_planner_gap(&w->p, w->places, w->place_count, i, at, n, block, err);
        if (!st)
            st = write_out(w, at, block, n, err);
    }
    return st;
}

/* All gaps from the place that comes next up to that in front of place `last`, which may be the
 * end; payloads in between are passed over. */
static heft_status fill_gaps(heft_writer *w, uint32_t last, heft_error *err)
{
    heft_status st = HEFT_OK;
    for (; w->place <= last && !st; w->place++) {
        bool is_end = w->place == w->place_count;
        const heft_ix_part_row *part = is_end ? NULL : row(w, w->places[w->place]);
        st = fill_gap(w, w->place, w->at, part ? part->offset : w->p.plan.data_end, err);
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
    w->to = al->resize(al->ctx, NULL, 0, sizeof *w->to, 64);
    if (!w->to)
        return heft_error_plain(err, HEFT_E_NOMEM, "no memory to compress");
    return heft_append_open(w->to, &w->p, w->sink, err);
}

static void encode_piece(void *arg, size_t i)
{
    heft_writer *w = arg;
    heft_error unused;
    w->spoiled[i] = heft_append_encode(w->to, &w->to->pieces[i], &unused) != HEFT_OK;
}

/* Encodes what waits, side by side, and writes it in order. */
static heft_status flush_pieces(heft_writer *w, heft_error *err)
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

/* Bytes of a part from w->kept on: all of them into pieces. */
static heft_status add_pieces(heft_writer *w, uint32_t part, const uint8_t *data, size_t len,
                              heft_error *err)
{
    uint64_t whole = row(w, part)->length, at = w->kept;
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
            st = flush_pieces(w, err);
    } while (len && !st);
    return st;
}

/* ---- the beginning ---- */

heft_status heft_writer_begin(heft_writer *w, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    if (w->begun || w->p.x.open.len)
        return heft_writer_wrong(err, w->begun ? "the writing has begun already"
                                               : "a list or map of metadata is still open");
    heft_status st = heft_writer_broken(w, err);
    if (!st)
        st = heft_planner_run(&w->p, err);
    if (!st)
        st = find_places(w, err);
    if (!st && w->sink->ops->reserve && !w->p.plan.appended && !heft_writer_grows(w))
        st = w->sink->ops->reserve(w->sink, w->p.plan.file_bytes, err);
    if (!st)
        st = heft_planner_front(&w->p, w->sink, err);
    w->at = w->p.plan.front_bytes;
    if (!st && w->p.plan.appended)
        st = heft_writer_open_appender(w, err);
    else if (!st && w->sink->ops->write_at && !w->p.plan.late)
        st = fill_gaps(w, w->place_count, err);
    if (!st)
        st = heft_writer_advance(w, err);
    w->begun = !st;
    return heft_writer_break(w, st, err);
}

/* Digests that cannot be joined from pieces of the file take the bytes as they come. */
static heft_status digest(heft_writer *w, uint32_t part, const void *data, size_t len,
                          heft_error *err)
{
    const heft_digest *d = heft_planner_digest_of(&w->p, part);
    if (!d || d->join)
        return HEFT_OK;
    heft_status st = w->kept ? HEFT_OK : heft_tap_begin(&w->tap, d, w->p.host->allocator, err);
    if (st)
        return st;
    heft_tap_feed(&w->tap, data, len);
    if (w->kept + len == row(w, part)->length)
        heft_tap_end(&w->tap, w->p.part_digests[part]);
    return HEFT_OK;
}

static heft_status put(heft_writer *w, uint32_t part, const void *data, size_t len, heft_error *err)
{
    const heft_ix_part_row *p = row(w, part);
    uint64_t to = p->offset + w->kept;
    heft_status st = digest(w, part, data, len, err);
    if (st)
        return st;
    if (w->sink->ops->write_at)
        return write_out(w, to, data, len, err);
    if (w->place_of[part] + !!w->kept < w->place)
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "%s stores these tensors in another order than they are declared "
                                "in, which a stream cannot take",
                                w->p.format->name);
    st = fill_gaps(w, w->place_of[part], err);
    return st ? st : write_out(w, to, data, len, err);
}

heft_status heft_writer_put(heft_writer *w, uint32_t part, const void *data, size_t len,
                            heft_error *err)
{
    heft_status st = HEFT_OK;
    if (!heft_writer_leaves_out(w, part))
        st = w->to ? add_pieces(w, part, data, len, err)
             : len ? put(w, part, data, len, err)
                   : HEFT_OK;
    w->kept += len;
    return st;
}

static heft_status check_complete(const heft_writer *w, heft_error *err)
{
    if (w->failed.status)
        return heft_writer_broken(w, err);
    if (!w->begun || w->p.x.open.len)
        return heft_writer_wrong(err, w->begun ? "a list or map of metadata is still open"
                                               : "the writing has not begun");
    if (w->part < w->p.x.parts.len)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "part %U lacks %U of its %U bytes",
                                (uint64_t)w->part, heft_writer_length(w, w->part) - w->got,
                                heft_writer_length(w, w->part));
    return HEFT_OK;
}

heft_status heft_writer_finish(heft_writer *w, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    heft_status st = check_complete(w, err);
    if (!st && w->is_late)
        st = heft_writer_append(w, err);
    if (!st && w->to) {
        st = flush_pieces(w, err);
        w->p.plan.data_end = w->to->at;
    } else if (!st && !w->sink->ops->write_at) {
        st = fill_gaps(w, w->place_count, err);
    }
    if (!st && w->is_late)
        st = heft_planner_again(&w->p, err);
    if (!st)
        st = heft_planner_digests(&w->p, err);
    if (!st && w->sink->ops->write_at && w->p.plan.late)
        st = heft_planner_gaps(&w->p, w->sink, err);
    if (!st)
        st = heft_planner_back(&w->p, w->sink, err);
    if (st) {
        heft_writer_discard(w);
        return heft_error_end(err, st);
    }
    st = w->sink->ops->finish(w->sink, err);
    release(w);
    return heft_error_end(err, st);
}
