/* move_data.c - writes a file of the same model whose elements are in another file, or back in it.
 *
 * The format says of which pieces the files consist (heft_format_writer.move); they are copied in
 * order, through a small buffer or from mapped bytes. */
#include <heft/private.h>
#include <heft/write.h>

#include "base/error.h"
#include "base/path_risk.h"
#include "base/sized.h"
#include "base/text.h"
#include "core/read/file.h"
#include "core/read/progress.h"
#include "core/write/plan/plan.h"
#include "format/format.h"

typedef struct move {
    const heft_file *f;
    heft_move_options opt;
    heft_index x; /* the index of the file again, as the format has filled it */
    heft_data_move plan;
    heft_progress progress;
    heft_error *err;
} move;

/* ---- the plan ---- */

/* Give the format the ranges that it has asked for. */
static heft_status fetch(heft_input *in, const move *m)
{
    const heft_range *needs = in->needs.ptr;
    for (uint32_t i = 0; i < in->needs.len; i++) {
        uint8_t *to;
        heft_range r = needs[i];
        if (in->over_limit || r.length > SIZE_MAX)
            return heft_error_plain(m->err, HEFT_E_LIMIT, "the index exceeds the limit");
        for (heft_range n; heft_input_missing(in, &r, &n);) {
            HEFT_TRY(heft_input_reserve(in, n.offset, (size_t)n.length, &to, m->err));
            HEFT_TRY(heft_file_read_stored(m->f, n.offset, to, (size_t)n.length, m->err));
            HEFT_TRY(heft_input_join(in, n.offset, m->err));
        }
    }
    return in->no_memory ? heft_error_no_memory(m->err, "to plan a file") : HEFT_OK;
}

/* Forget what the format has done, before it begins again. */
static void reset(move *m)
{
    heft_vec_free(&m->x.mem, &m->plan.pieces, sizeof(heft_move_piece));
    heft_vec_free(&m->x.mem, &m->plan.parts, sizeof(heft_moved_part));
    heft_str none = { NULL, 0 };
    m->plan = (heft_data_move){ .in = m->plan.in,
                                .x = &m->x,
                                .location = m->opt.location ? heft_lit(m->opt.location) : none,
                                .align = m->opt.align };
    heft_ix_reset(&m->x);
}

static heft_status plan(move *m)
{
    const heft_index *x = &m->f->x;
    const heft_format_writer *w = heft_registry_mover(m->f->format);
    heft_input in;
    if (!w)
        return heft_error_plain(m->err, HEFT_E_UNSUPPORTED,
                                "%s files have no data in other files that could be moved",
                                m->f->format->title);
    heft_input_init(&in, &m->x.mem, x->file_bytes, x->limits.index_bytes);
    in.in.err = m->x.err = m->err;
    in.whole_file = heft_file_map(m->f, 0, x->file_bytes);
    m->plan.in = &in.in;
    heft_status st = HEFT_AGAIN;
    while (st == HEFT_AGAIN) {
        heft_input_clear(&in);
        reset(m);
        st = w->move(&m->plan);
        if (st == HEFT_AGAIN && !fetch(&in, m))
            continue;
        st = st == HEFT_AGAIN ? m->err->status : st;
    }
    heft_input_free(&in);
    return st;
}

/* ---- the files ---- */

static heft_status put(move *m, heft_sink *to, uint64_t *at, const void *data, size_t len)
{
    HEFT_TRY(heft_sink_put(to, *at, data, len, m->err));
    *at += len;
    heft_progress_add(&m->progress, len);
    return heft_progress_halted(&m->progress) ? heft_progress_end(&m->progress, m->err) : HEFT_OK;
}

static heft_status copy_range(move *m, heft_sink *to, uint64_t *at, heft_range r)
{
    heft_chunks c;
    HEFT_TRY(heft_chunks_open(&c, m->f->host->allocator, heft_file_map(m->f, r.offset, r.length),
                              r.length, m->err));
    heft_status st = HEFT_OK;
    while (!st && heft_chunks_next(&c)) {
        if (c.buf)
            st = heft_file_read_stored(m->f, r.offset + c.at, c.buf, c.len, m->err);
        if (!st)
            st = put(m, to, at, c.data, c.len);
    }
    heft_chunks_close(&c);
    return st;
}

static heft_status copy_stream(move *m, heft_sink *to, uint64_t *at, heft_stream *s,
                               uint64_t length)
{
    heft_chunks c;
    heft_status st = heft_chunks_open(&c, m->f->host->allocator, NULL, length, m->err);
    while (!st && heft_chunks_next(&c)) {
        const void *data;
        st = heft_stream_view(&data, s, c.buf, c.len, m->err);
        if (!st)
            st = put(m, to, at, data, c.len);
    }
    heft_chunks_close(&c);
    return st;
}

static heft_status copy_part(move *m, heft_sink *to, uint64_t *at, uint32_t part)
{
    heft_stream *s;
    HEFT_TRY(heft_stream_open(&s, m->f, part, m->err));
    heft_status st = copy_stream(m, to, at, s, heft_ix_part_row_at(&m->f->x, part)->length);
    heft_stream_close(s);
    return st;
}

static heft_status write_pieces(move *m, heft_sink *to)
{
    const heft_move_piece *pieces = m->plan.pieces.ptr;
    uint64_t at = 0;
    HEFT_TRY(heft_sink_reserve(to, m->plan.bytes, m->err));
    for (uint32_t i = 0; i < m->plan.pieces.len; i++) {
        const heft_move_piece *p = &pieces[i];
        if (p->bytes)
            HEFT_TRY(put(m, to, &at, p->bytes, (size_t)p->from.length));
        else if (p->part != HEFT_NONE)
            HEFT_TRY(copy_part(m, to, &at, p->part));
        else
            HEFT_TRY(copy_range(m, to, &at, p->from));
    }
    return HEFT_OK;
}

static heft_status write_parts(move *m, heft_sink *to)
{
    const heft_moved_part *parts = m->plan.parts.ptr;
    uint64_t at = 0;
    HEFT_TRY(heft_sink_reserve(to, m->plan.other_bytes, m->err));
    for (uint32_t i = 0; i < m->plan.parts.len; i++) {
        HEFT_TRY(heft_sink_fill(to, at, parts[i].at - at, 0, m->err));
        at = parts[i].at;
        HEFT_TRY(copy_part(m, to, &at, parts[i].part));
    }
    return HEFT_OK;
}

static heft_status write_files(move *m, heft_sink *take, heft_sink *take_other)
{
    heft_status st = take_other ? write_parts(m, take_other) : HEFT_OK;
    if (!st && take)
        st = write_pieces(m, take);
    st = heft_file_end_reading(m->f, st, m->err);
    if (take_other)
        st = heft_sink_end(take_other, st, m->err);
    return take ? heft_sink_end(take, st, m->err) : st;
}

/* ---- the call ---- */

static heft_status check(const move *m)
{
    const heft_move_options *o = &m->opt;
    if (o->align & (o->align - 1))
        return heft_error_plain(m->err, HEFT_E_ARGUMENT, "the alignment is not a power of two");
    heft_str name = heft_lit(o->location ? o->location : "data");
    return heft_str_is_file_name(name) && heft_str_is_utf8(name)
               ? HEFT_OK
               : heft_error_plain(m->err, HEFT_E_ARGUMENT,
                                  "%q is not the name of a file in the folder of the model", name);
}

heft_status heft_file_move_data(heft_move_result *out, const heft_file *f, heft_sink *take,
                                heft_sink *take_other, const heft_move_options *opt,
                                heft_error *err)
{
    heft_error own;
    move m = { .f = f, .opt = HEFT_MOVE_OPTIONS_INIT };
    m.err = err = heft_error_begin(err, &own);
    *out = (heft_move_result){ .bytes = 0 };
    heft_status st = heft_sized_copy(&m.opt, sizeof m.opt, opt, err);
    if (!st)
        st = check(&m);
    heft_host_init_index(f->host, &m.x, &f->x.limits);
    m.x.file_bytes = f->x.file_bytes;
    heft_file_enter(f);
    if (!st)
        st = heft_file_is_complete(f, err);
    if (!st)
        st = plan(&m);
    m.progress.fn = m.opt.progress;
    m.progress.ctx = m.opt.ctx;
    m.progress.total = m.plan.bytes + m.plan.other_bytes;
    if (!st) {
        out->bytes = m.plan.bytes;
        out->other_bytes = m.plan.other_bytes;
        out->tensors = m.plan.count;
        st = write_files(&m, take, take_other);
    } else {
        heft_file_disarm(f);
        heft_sink_discard(take);
        heft_sink_discard(take_other);
    }
    heft_vec_free(&m.x.mem, &m.plan.pieces, sizeof(heft_move_piece));
    heft_vec_free(&m.x.mem, &m.plan.parts, sizeof(heft_moved_part));
    heft_ix_free(&m.x);
    return heft_error_end(err, st);
}
