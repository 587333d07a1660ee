/* delta_make.c - writes what changed from one model to another.
 *
 * zTensor takes tensors and metadata while it is written, so each tensor is compared and written
 * at once, and the list of all tensors, with their digests, comes last. */
#include "core/check/tensor_hash.h"
#include "core/read/stream.h"
#include "delta/delta_file.h"
#include "delta/delta_pair.h"
#include "delta/delta_scan.h"
#include "delta/delta_write.h"

static const char purpose[] = "to make a delta";

const char *heft_change_name(heft_change c)
{
    static const char *const names[HEFT_CHANGES] = { "none",  "sparse", "xor",
                                                     "whole", "added",  "removed" };
    return (unsigned)c < HEFT_CHANGES ? names[c] : NULL;
}

/* ---- tensors that are stored as they are ---- */

static heft_status copy_part(heft_delta_maker *m, uint32_t to, uint32_t part)
{
    heft_stream *in;
    heft_chunks c;
    uint64_t length = heft_ix_part_row_at(&m->new->x, part)->length;
    heft_status st = heft_stream_open_checked(&in, m->new, part, m->err);
    HEFT_TRY(heft_error_input(m->err, st, HEFT_INPUT_SECOND));
    st = heft_chunks_open(&c, m->host->allocator, NULL, length, m->err);
    while (!st && heft_chunks_next(&c)) {
        st = heft_error_input(m->err, heft_stream_read(c.buf, in, c.len, m->err),
                              HEFT_INPUT_SECOND);
        if (!st)
            st = heft_writer_write(m->writer, to, c.data, c.len, m->err);
    }
    heft_chunks_close(&c);
    heft_stream_close(in);
    return st;
}

/* Only dense tensors are computed when a delta is applied. */
static heft_status refuse_kind(heft_delta_maker *m, uint32_t tensor)
{
    return heft_error_plain(m->err, HEFT_E_UNSUPPORTED,
                            "tensor %q changes, and is not a dense tensor of a known type: a delta "
                            "cannot have it",
                            heft_ix_name(&m->new->x, tensor));
}

static bool is_plain_dense(const heft_file *f, uint32_t tensor)
{
    const heft_ix_tensor_row *row = heft_ix_row(&f->x, tensor);
    return row->layout == HEFT_DENSE && row->part_count == 1 && heft_dtype_get(row->dtype);
}

static heft_status write_whole(heft_delta_maker *m, uint32_t tensor)
{
    heft_tensor_spec s = HEFT_TENSOR_SPEC_INIT;
    heft_tensor t = heft_tensor_at(m->new, tensor);
    uint32_t part;
    if (!is_plain_dense(m->new, tensor))
        return refuse_kind(m, tensor);
    m->sums.changed_bytes += heft_tensor_bytes(m->new, tensor);
    if (!m->writer)
        return HEFT_OK;
    s.name = t.name;
    s.dtype = t.dtype;
    s.rank = t.rank;
    s.dims = t.dims;
    HEFT_TRY(heft_writer_add_tensor(&part, m->writer, &s, m->err));
    return copy_part(m, part, t.first_part);
}

/* ---- tensors of which values changed ---- */

/* Add an object with the name and shape of the tensor; number *first is the first of its parts. */
static heft_status add_object(uint32_t *first, heft_delta_maker *m, uint32_t tensor,
                              const char *layout, heft_dtype units, const heft_component *parts,
                              uint32_t count)
{
    heft_tensor_spec s = HEFT_TENSOR_SPEC_INIT;
    heft_tensor t = heft_tensor_at(m->new, tensor);
    s.name = t.name;
    s.dtype = units;
    s.rank = t.rank;
    s.dims = t.dims;
    s.layout = heft_lit(layout);
    s.components = parts;
    s.component_count = count;
    return heft_writer_add_tensor(first, m->writer, &s, m->err);
}

static heft_status write_sparse(heft_delta_maker *m, uint32_t tensor, const heft_delta_pair *p)
{
    heft_dtype units = p->unit == 1   ? HEFT_U8
                       : p->unit == 2 ? HEFT_U16
                       : p->unit == 4 ? HEFT_U32
                                      : HEFT_U64;
    const heft_component parts[] = {
        { heft_lit("counts"), HEFT_U32, p->counts.len, NULL },
        { heft_lit("gaps"), HEFT_U16, p->gaps.len, NULL },
        { heft_lit("values"), units, p->values.len / p->unit, NULL },
    };
    uint32_t first;
    heft_delta_to_little(&p->counts, sizeof(uint32_t));
    heft_delta_to_little(&p->gaps, sizeof(uint16_t));
    HEFT_TRY(add_object(&first, m, tensor, HEFT_DELTA_SPARSE, units, parts,
                        sizeof parts / sizeof *parts));
    HEFT_TRY(heft_writer_write(m->writer, first, p->counts.ptr, p->counts.len * sizeof(uint32_t),
                               m->err));
    HEFT_TRY(heft_writer_write(m->writer, first + 1, p->gaps.ptr, p->gaps.len * sizeof(uint16_t),
                               m->err));
    return heft_writer_write(m->writer, first + 2, p->values.ptr, p->values.len, m->err);
}

static heft_status write_xors(heft_delta_maker *m, uint32_t to, const heft_delta_pair *p,
                              heft_stream *old, heft_stream *new)
{
    heft_chunks a, b;
    heft_status st = heft_chunks_open(&a, m->host->allocator, NULL, p->length, m->err);
    heft_status other = heft_chunks_open(&b, m->host->allocator, NULL, p->length, m->err);
    st = st ? st : other;
    while (!st && heft_chunks_next(&a) && heft_chunks_next(&b)) {
        st = heft_delta_read_both(a.buf, old, b.buf, new, a.len, m->err);
        if (!st) {
            heft_delta_xor(b.buf, a.data, a.len);
            st = heft_writer_write(m->writer, to, b.data, b.len, m->err);
        }
    }
    heft_chunks_close(&a);
    heft_chunks_close(&b);
    return st;
}

static heft_status write_xor(heft_delta_maker *m, uint32_t tensor, const heft_delta_pair *p)
{
    const heft_component part = { heft_lit("xor"), HEFT_U8, p->length, NULL };
    heft_stream *old = NULL, *new = NULL;
    uint32_t to;
    HEFT_TRY(add_object(&to, m, tensor, HEFT_DELTA_XOR, HEFT_U8, &part, 1));
    heft_status st = heft_delta_open_both(&old, &new, p, m->err);
    if (!st)
        st = write_xors(m, to, p, old, new);
    heft_stream_close(old);
    heft_stream_close(new);
    return st;
}

static heft_status write_pair(heft_delta_maker *m, heft_delta_listed *row, const heft_delta_pair *p)
{
    heft_hash_one_part(&row->base, &m->old->x, row->old_tensor, &p->old_digest);
    heft_hash_one_part(&row->result, &m->new->x, row->new_tensor, &p->new_digest);
    row->change = HEFT_CHANGE_NONE;
    if (p->is_dense) {
        row->change = HEFT_CHANGE_XOR;
        m->sums.changed_bytes += p->length;
        return m->writer ? write_xor(m, row->new_tensor, p) : HEFT_OK;
    }
    if (!p->changed)
        return HEFT_OK;
    row->change = HEFT_CHANGE_SPARSE;
    row->changed = p->changed;
    m->sums.changed_bytes += p->changed * p->unit;
    heft_blake3_final(&p->replaced, row->replaced.bytes);
    return m->writer ? write_sparse(m, row->new_tensor, p) : HEFT_OK;
}

/* ---- one tensor after the other ---- */

static bool is_same_kind(const heft_index *x, uint32_t i, const heft_index *y, uint32_t k)
{
    const heft_ix_tensor_row *a = heft_ix_row(x, i), *b = heft_ix_row(y, k);
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    if (a->rank && memcmp(heft_ix_dims(x, i), heft_ix_dims(y, k), a->rank * sizeof(uint64_t)) != 0)
        return false;
    return heft_str_eq(heft_ix_layout(x, i), heft_ix_layout(y, k));
}

static heft_status compare_dense(heft_delta_maker *m, heft_delta_listed *row)
{
    heft_delta_pair *p = heft_mem_alloc(&m->mem, sizeof *p); /* too large for a small stack */
    if (!p)
        return heft_error_no_memory(m->err, purpose);
    *p = (heft_delta_pair){ .old = m->old,
                            .new = m->new,
                            .old_part = heft_ix_row(&m->old->x, row->old_tensor)->first_part,
                            .new_part = heft_ix_row(&m->new->x, row->new_tensor)->first_part,
                            .progress = &m->progress };
    p->unit = heft_delta_unit(heft_ix_row(&m->new->x, row->new_tensor)->dtype);
    heft_status st = heft_delta_pair_compare(p, &m->slots, m->err);
    if (!st)
        st = write_pair(m, row, p);
    heft_delta_pair_free(p, &m->mem);
    heft_mem_free(&m->mem, p, sizeof *p);
    return st;
}

static heft_status hash_one(heft_delta_maker *m, heft_hash *out, const heft_file *f,
                            uint32_t tensor)
{
    heft_status st = heft_error_input(m->err,
                                      heft_tensor_hash_many(out, f, &tensor, 1, NULL, NULL, m->err),
                                      f == m->new ? HEFT_INPUT_SECOND : HEFT_INPUT_FIRST);
    heft_progress_add(&m->progress, heft_tensor_bytes(f, tensor));
    return st                                   ? st
           : heft_progress_halted(&m->progress) ? heft_progress_end(&m->progress, m->err)
                                                : HEFT_OK;
}

static heft_status compare_others(heft_delta_maker *m, heft_delta_listed *row)
{
    HEFT_TRY(hash_one(m, &row->base, m->old, row->old_tensor));
    HEFT_TRY(hash_one(m, &row->result, m->new, row->new_tensor));
    bool is_same = !memcmp(row->base.bytes, row->result.bytes, HEFT_HASH_BYTES);
    row->change = is_same ? HEFT_CHANGE_NONE : HEFT_CHANGE_WHOLE;
    return is_same ? HEFT_OK : write_whole(m, row->new_tensor);
}

static heft_status add_new(heft_delta_maker *m, uint32_t tensor)
{
    const heft_index *x = &m->old->x, *y = &m->new->x;
    heft_str name = heft_ix_name(y, tensor);
    heft_delta_listed *row = heft_vec_push(&m->mem, &m->rows, sizeof *row);
    if (!row)
        return heft_error_no_memory(m->err, purpose);
    *row = (heft_delta_listed){ .name = name,
                                .new_tensor = tensor,
                                .old_tensor = heft_tensor_find(m->old, name) };
    m->sums.bytes += heft_tensor_bytes(m->new, tensor);
    heft_status st;
    if (row->old_tensor == HEFT_NONE) {
        row->change = HEFT_CHANGE_ADDED;
        st = hash_one(m, &row->result, m->new, tensor);
        st = st ? st : write_whole(m, tensor);
    } else if (is_same_kind(x, row->old_tensor, y, tensor) && is_plain_dense(m->new, tensor) &&
               is_plain_dense(m->old, row->old_tensor)) {
        st = compare_dense(m, row);
    } else {
        st = compare_others(m, row);
    }
    if (!st && row->old_tensor != HEFT_NONE)
        st = heft_delta_note_attributes(m, row);
    m->sums.tensors[row->change]++;
    return st;
}

static heft_status add_removed(heft_delta_maker *m, uint32_t tensor)
{
    heft_str name = heft_ix_name(&m->old->x, tensor);
    if (heft_tensor_find(m->new, name) != HEFT_NONE)
        return HEFT_OK;
    heft_delta_listed *row = heft_vec_push(&m->mem, &m->rows, sizeof *row);
    if (!row)
        return heft_error_no_memory(m->err, purpose);
    *row = (heft_delta_listed){
        .name = name, .new_tensor = HEFT_NONE, .old_tensor = tensor, .change = HEFT_CHANGE_REMOVED
    };
    m->sums.tensors[HEFT_CHANGE_REMOVED]++;
    return hash_one(m, &row->base, m->old, tensor);
}

static heft_status compare_all(heft_delta_maker *m)
{
    heft_status st = heft_delta_slots_open(&m->slots, m->host, &m->mem, m->err);
    for (uint32_t i = 0; i < heft_ix_tensors(&m->new->x) && !st; i++)
        st = add_new(m, i);
    for (uint32_t i = 0; i < heft_ix_tensors(&m->old->x) && !st; i++)
        st = add_removed(m, i);
    heft_delta_slots_close(&m->slots);
    return st;
}

/* ---- the whole ---- */

static uint64_t bytes_of(const heft_file *f)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < heft_ix_tensors(&f->x); i++)
        n += heft_tensor_bytes(f, i);
    return n;
}

static heft_status open_writer(heft_delta_maker *m, heft_sink *take)
{
    const heft_format *f = heft_format_find(heft_lit("ztensor"));
    bool has_zstd = heft_host_codec(m->host, HEFT_ZSTD) &&
                    heft_host_codec(m->host, HEFT_ZSTD)->encode;
    heft_write_options o = HEFT_WRITE_OPTIONS_INIT;
    if (!f || !(heft_format_caps(f) & HEFT_CAN_WRITE)) {
        heft_sink_discard(take);
        return heft_error_plain(m->err, HEFT_E_UNSUPPORTED,
                                "this build does not write zTensor, the format of deltas");
    }
    o.host = m->host;
    o.version = "1.2";
    o.storage = (heft_storage){ .encoding = has_zstd ? HEFT_ZSTD : HEFT_RAW,
                                .level = has_zstd ? 1 : 0,
                                .digest = "crc32c" };
    if (m->opt.storage)
        o.storage = *m->opt.storage;
    o.on_loss = m->opt.on_loss;
    o.ctx = m->opt.ctx;
    o.strict = m->opt.strict;
    HEFT_TRY(heft_writer_open(&m->writer, f, take, &o, m->err));
    return heft_writer_begin(m->writer, m->err);
}

static heft_status make(heft_delta_maker *m, heft_sink *take)
{
    heft_status st = heft_delta_are_complete(m->old, m->new, m->err);
    if (st || m->opt.dry_run) {
        if (take)
            heft_sink_discard(take);
    } else {
        st = open_writer(m, take);
    }
    if (!st)
        st = heft_delta_note_files(m);
    if (!st)
        st = compare_all(m);
    if (!st)
        st = heft_delta_write_list(m);
    return st ? st : heft_delta_are_unchanged(m->old, m->new, m->err);
}

heft_status heft_delta_make(heft_delta_sums *out, const heft_file *old_model,
                            const heft_file *new_model, heft_sink *take,
                            const heft_delta_options *opt, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    heft_delta_maker m = { .old = old_model,
                           .new = new_model,
                           .host = new_model->host,
                           .opt = HEFT_DELTA_OPTIONS_INIT,
                           .mem = { new_model->host->allocator, UINT64_MAX, 0 },
                           .err = err };
    heft_status st = heft_sized_copy(&m.opt, sizeof m.opt, opt, err);
    if (st) {
        heft_sink_discard(take);
        return st;
    }
    m.progress = (heft_progress){ .fn = m.opt.progress,
                                  .ctx = m.opt.ctx,
                                  .total = bytes_of(old_model) + bytes_of(new_model) };
    heft_file_enter(old_model);
    heft_file_enter(new_model);
    st = make(&m, take);
    st = heft_file_leave_input(new_model, HEFT_INPUT_SECOND, st, err);
    st = heft_file_leave_input(old_model, HEFT_INPUT_FIRST, st, err);
    if (!st && m.writer)
        st = heft_writer_finish(m.writer, err);
    else
        heft_writer_discard(m.writer);
    heft_vec_free(&m.mem, &m.rows, sizeof(heft_delta_listed));
    if (out)
        *out = m.sums;
    return heft_error_end(err, st);
}
