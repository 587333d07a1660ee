/* delta_list.c - the end of a delta: the list of all tensors, with their digests, and the metadata
 * that changed; and what a delta leaves out. */
#include "core/read/stream.h"
#include "delta/delta_keys.h"
#include "delta/delta_write.h"
#include "model/values.h"

void heft_delta_to_little(const heft_vec *v, size_t size)
{
    uint8_t *p = v->ptr;
    for (uint32_t i = 0; i < v->len; i++, p += size) {
        uint32_t n = 0;
        if (size == sizeof(uint16_t)) {
            uint16_t half;
            memcpy(&half, p, sizeof half);
            n = half;
        } else {
            memcpy(&n, p, sizeof n);
        }
        for (size_t k = 0; k < size; k++)
            p[k] = (uint8_t)(n >> 8 * k);
    }
}

/* ---- what is left out ---- */

static heft_status say_lost(heft_delta_maker *m, heft_str tensor, const char *text)
{
    heft_severity s = m->opt.strict ? HEFT_FAULT : HEFT_WARNING;
    if (m->opt.on_loss)
        m->opt.on_loss(m->opt.ctx, s, "heft/delta", tensor, text);
    if (!m->opt.strict)
        return HEFT_OK;
    heft_status st = heft_error_plain(m->err, HEFT_E_LOSSY, "%s", text);
    return heft_error_rule(m->err, st, "heft/delta");
}

heft_status heft_delta_note_attributes(heft_delta_maker *m, const heft_delta_listed *row)
{
    uint32_t n = heft_attribute_count(m->new, row->new_tensor);
    bool is_same = n == heft_attribute_count(m->old, row->old_tensor);
    for (uint32_t i = 0; i < n && is_same; i++) {
        heft_value a = heft_attribute_at(m->old, row->old_tensor, i);
        heft_value b = heft_attribute_at(m->new, row->new_tensor, i);
        is_same = heft_value_same(&a, &b);
    }
    return is_same ? HEFT_OK
                   : say_lost(m, row->name, "its attributes changed, which a delta does not carry");
}

static heft_status compare_parts(heft_delta_maker *m, uint32_t old, uint32_t new, bool *is_same)
{
    const heft_delta_pair p = { .old = m->old, .new = m->new, .old_part = old, .new_part = new };
    heft_stream *a = NULL, *b = NULL;
    heft_chunks c, d;
    uint64_t length = heft_ix_part_row_at(&m->new->x, new)->length;
    *is_same = length == heft_ix_part_row_at(&m->old->x, old)->length;
    heft_status st = heft_chunks_open(&c, m->host->allocator, NULL, *is_same ? length : 0, m->err);
    heft_status other = heft_chunks_open(&d, m->host->allocator, NULL, *is_same ? length : 0,
                                         m->err);
    st = st ? st : other;
    if (!st)
        st = heft_delta_open_both(&a, &b, &p, m->err);
    while (!st && *is_same && heft_chunks_next(&c) && heft_chunks_next(&d)) {
        st = heft_delta_read_both(c.buf, a, d.buf, b, c.len, m->err);
        *is_same = !st && !memcmp(c.data, d.data, c.len);
    }
    heft_stream_close(a);
    heft_stream_close(b);
    heft_chunks_close(&c);
    heft_chunks_close(&d);
    return st;
}

heft_status heft_delta_note_files(heft_delta_maker *m)
{
    uint32_t first, count = heft_file_parts(m->new, &first);
    for (uint32_t i = first; i < first + count; i++) {
        heft_error text;
        heft_str role = heft_part_at(m->new, i).role;
        uint32_t old = heft_part_find(m->old, HEFT_NONE, role);
        bool is_same = false;
        if (old != HEFT_NONE)
            HEFT_TRY(compare_parts(m, old, i, &is_same));
        (void)heft_error_plain(&text, HEFT_E_LOSSY,
                               "the part %q of the file changed, which a delta does not carry",
                               role);
        if (!is_same)
            HEFT_TRY(say_lost(m, (heft_str){ NULL, 0 }, text.message));
    }
    return HEFT_OK;
}

/* ---- the list ---- */

static heft_status put_value(heft_delta_maker *m, heft_value v)
{
    return heft_writer_add_meta(m->writer, v, m->err);
}

static heft_status begin_map(heft_delta_maker *m, heft_str key, heft_kind kind)
{
    return put_value(m, (heft_value){ .kind = kind, .key = key });
}

static heft_status put_hash(heft_delta_maker *m, const char *key, const heft_hash *h)
{
    char digits[2 * HEFT_HASH_BYTES];
    heft_hex_text(digits, h->bytes, HEFT_HASH_BYTES);
    return put_value(m, heft_value_str(heft_lit(key), (heft_str){ digits, sizeof digits }));
}

static heft_status put_row(heft_delta_maker *m, const heft_delta_listed *row)
{
    bool has_result = row->new_tensor != HEFT_NONE;
    const heft_file *f = has_result ? m->new : m->old;
    heft_dtype t = heft_tensor_at(f, has_result ? row->new_tensor : row->old_tensor).dtype;
    HEFT_TRY(begin_map(m, row->name, HEFT_KIND_MAP));
    HEFT_TRY(
        put_value(m, heft_value_str(heft_lit("change"), heft_lit(heft_change_name(row->change)))));
    if (heft_dtype_get(t))
        HEFT_TRY(put_value(m, heft_value_str(heft_lit("dtype"), heft_lit(heft_dtype_name(t)))));
    if (row->old_tensor != HEFT_NONE)
        HEFT_TRY(put_hash(m, "base", &row->base));
    if (has_result && row->change != HEFT_CHANGE_NONE)
        HEFT_TRY(put_hash(m, "result", &row->result));
    if (row->change == HEFT_CHANGE_SPARSE)
        HEFT_TRY(put_hash(m, "replaced", &row->replaced));
    return heft_writer_end_meta(m->writer, m->err);
}

/* ---- metadata ---- */

/* Write a value with all that it contains. */
static heft_status put_tree(heft_delta_maker *m, const heft_index *x, uint32_t i)
{
    uint32_t ends[HEFT_MAX_DEPTH], depth = 0, end = heft_ix_value_next(x, i);
    for (; i < end; i++) {
        const heft_value *v = heft_ix_value(x, i);
        HEFT_TRY(put_value(m, *v));
        if (v->kind == HEFT_KIND_LIST || v->kind == HEFT_KIND_MAP) {
            if (depth == HEFT_MAX_DEPTH)
                return heft_error_plain(m->err, HEFT_E_LIMIT, "metadata is nested too deeply");
            ends[depth++] = v->as.container.end;
        }
        for (; depth && ends[depth - 1] == i + 1; depth--)
            HEFT_TRY(heft_writer_end_meta(m->writer, m->err));
    }
    return HEFT_OK;
}

/* Write the values of the new model that the old one does not have. */
static heft_status put_set(heft_delta_maker *m, const heft_delta_keys *old)
{
    const heft_index *x = &m->old->x, *y = &m->new->x;
    if (m->writer)
        HEFT_TRY(begin_map(m, heft_lit("set"), HEFT_KIND_MAP));
    for (uint32_t i = 0; i < y->values.len; i = heft_ix_value_next(y, i)) {
        uint32_t k = heft_delta_keys_find(old, heft_ix_value(y, i)->key);
        if (k != HEFT_NONE && heft_ix_same_value(x, k, y, i))
            continue;
        m->sums.metadata++;
        if (m->writer)
            HEFT_TRY(put_tree(m, y, i));
    }
    return m->writer ? heft_writer_end_meta(m->writer, m->err) : HEFT_OK;
}

/* Write the keys of the old model that the new one does not have. */
static heft_status put_unset(heft_delta_maker *m, const heft_delta_keys *new)
{
    const heft_index *x = &m->old->x;
    if (m->writer)
        HEFT_TRY(begin_map(m, heft_lit("unset"), HEFT_KIND_LIST));
    for (uint32_t i = 0; i < x->values.len; i = heft_ix_value_next(x, i)) {
        heft_str key = heft_ix_value(x, i)->key;
        if (heft_delta_keys_find(new, key) != HEFT_NONE)
            continue;
        m->sums.metadata++;
        if (m->writer)
            HEFT_TRY(put_value(m, heft_value_str((heft_str){ NULL, 0 }, key)));
    }
    return m->writer ? heft_writer_end_meta(m->writer, m->err) : HEFT_OK;
}

static heft_status put_metadata(heft_delta_maker *m)
{
    heft_delta_keys old, new;
    bool has_memory = heft_delta_keys_open(&old, &m->old->x, &m->mem);
    has_memory = heft_delta_keys_open(&new, &m->new->x, &m->mem) && has_memory;
    heft_status st = has_memory ? HEFT_OK : heft_error_no_memory(m->err, "to compare the metadata");
    if (!st)
        st = put_set(m, &old);
    if (!st)
        st = put_unset(m, &new);
    heft_delta_keys_free(&old);
    heft_delta_keys_free(&new);
    return st;
}

static heft_status put_tensors(heft_delta_maker *m)
{
    const heft_delta_listed *rows = m->rows.ptr;
    HEFT_TRY(begin_map(m, heft_lit(HEFT_DELTA_KEY), HEFT_KIND_MAP));
    HEFT_TRY(put_value(m, heft_value_int(heft_lit("version"), HEFT_DELTA_VERSION)));
    HEFT_TRY(begin_map(m, heft_lit("tensors"), HEFT_KIND_MAP));
    for (uint32_t i = 0; i < m->rows.len; i++)
        HEFT_TRY(put_row(m, &rows[i]));
    return heft_writer_end_meta(m->writer, m->err);
}

heft_status heft_delta_write_list(heft_delta_maker *m)
{
    if (m->writer)
        HEFT_TRY(put_tensors(m));
    HEFT_TRY(put_metadata(m));
    return m->writer ? heft_writer_end_meta(m->writer, m->err) : HEFT_OK;
}
