/* merge.c - merges indexes: copies rows with renumbered tensors, parts and files. */
#include "base/error.h"
#include "model/boxes.h"
#include "model/open_containers.h"
#include "model/values.h"

typedef struct merge {
    heft_index *x;
    const heft_index *from;
    uint32_t base;   /* number in x of the file that `from` describes */
    uint32_t *ids;   /* tensor id in `from` -> tensor id in x, or HEFT_NONE */
    uint32_t digest; /* next digest row of `from` to consider */
    heft_str prefix; /* prefix of tensor names; may be empty */
} merge;

static heft_status no_memory(heft_index *x)
{
    return heft_error_plain(x->err, HEFT_E_NOMEM, "no memory to merge %U tensors",
                            (uint64_t)x->tensors.len);
}

/* Return the global offset in x for a global offset in `from`. */
static uint64_t global_offset(const merge *m, uint64_t offset)
{
    if (offset == HEFT_NOWHERE)
        return offset;
    return heft_global_offset(m->base + heft_global_offset_file(m->from, offset),
                              heft_global_offset_local(m->from, offset));
}

/* ---- metadata ---- */

heft_status heft_ix_copy_value(heft_index *x, const heft_index *from, uint32_t i, uint32_t id)
{
    const heft_ix_attr_row *attrs = from->attrs.ptr;
    bool is_attr = id != HEFT_NONE;
    heft_value v = is_attr ? attrs[i].value : *heft_ix_value(from, i);
    heft_open_containers open;
    open.depth = 0;
    for (uint32_t end = heft_value_next(&v, i); i < end; i++) {
        v = is_attr ? attrs[i].value : *heft_ix_value(from, i);
        HEFT_TRY(is_attr ? heft_ix_attr(x, id, v) : heft_ix_meta(x, v));
        heft_open_value(&open, &v);
        while (heft_open_leave(&open))
            if (is_attr)
                heft_ix_attr_end(x);
            else
                heft_ix_meta_end(x);
    }
    return HEFT_OK;
}

void heft_ix_drop_value(heft_index *x, uint32_t i)
{
    heft_value *values = x->values.ptr;
    memmove(values + i, values + i + 1, (x->values.len - i - 1) * sizeof *values);
    x->values.len--;
    for (uint32_t k = i; k < x->values.len; k++)
        if (heft_value_nests(&values[k]))
            values[k].as.container.end--;
}

bool heft_ix_same_value(const heft_index *x, uint32_t i, const heft_index *y, uint32_t k)
{
    uint32_t end = heft_ix_value_next(x, i);
    bool same = end - i == heft_ix_value_next(y, k) - k;
    for (; same && i < end; i++, k++)
        same = heft_value_same(heft_ix_value(x, i), heft_ix_value(y, k));
    return same;
}

/* ---- tensors ---- */

/* Copy the digest of `part`, if any.  Digest rows and copied parts both ascend, so one pass over
 * the rows finds all digests. */
static heft_status add_digest(merge *m, uint32_t part)
{
    const heft_digest_row *rows = m->from->digests.ptr;
    while (m->digest < m->from->digests.len && rows[m->digest].part < part)
        m->digest++;
    if (m->digest == m->from->digests.len || rows[m->digest].part != part)
        return HEFT_OK;
    heft_digest_row *to = heft_vec_push(&m->x->mem, &m->x->digests, sizeof *to);
    if (!to)
        return no_memory(m->x);
    *to = rows[m->digest];
    to->part = m->x->parts.len - 1;
    return HEFT_OK;
}

static heft_status add_parts(merge *m, uint32_t source, uint32_t id)
{
    const heft_ix_tensor_row *row = heft_ix_row(m->from, source);
    for (uint32_t i = row->first_part; i < row->first_part + row->part_count; i++) {
        const heft_ix_part_row *p = heft_ix_part_row_at(m->from, i);
        heft_range where = { global_offset(m, p->offset), p->stored };
        HEFT_TRY(heft_ix_part(m->x, id, heft_ix_role(m->from, p->role), p->dtype, where, p->length,
                              (heft_encoding)p->encoding));
        heft_ix_part_row_at(m->x, m->x->parts.len - 1)->flags = p->flags;
        HEFT_TRY(heft_ix_view_copy(m->x, id, m->from, i));
        HEFT_TRY(add_digest(m, i));
    }
    return HEFT_OK;
}

static heft_status add_attributes(merge *m, uint32_t source, uint32_t id)
{
    const heft_ix_attr_row *attrs = m->from->attrs.ptr;
    uint32_t i = heft_ix_row(m->from, source)->attrs, all = m->from->attrs.len;
    heft_status st = HEFT_OK;
    for (i = i ? i - 1 : all; !st && i < all && attrs[i].tensor == source;
         i = heft_value_next(&attrs[i].value, i))
        st = heft_ix_copy_value(m->x, m->from, i, id);
    return st;
}

static heft_status add_ids(merge *m, uint32_t source, uint32_t id)
{
    const heft_ix_tensor_row *row = heft_ix_row(m->from, source);
    const uint8_t *base_id = heft_ix_base_id_at(m->from, source);
    heft_status st = base_id ? heft_ix_base_id(m->x, id, base_id) : HEFT_OK;
    if (!st && row->flags & HEFT_T_PARAM_ID)
        st = heft_ix_param_id(m->x, id, ((const uint64_t *)m->from->param_ids.ptr)[source]);
    heft_ix_row(m->x, id)->flags = row->flags;
    return st;
}

/* Return the name of a tensor of `from` in x; ptr NULL: out of memory. */
static heft_str name_in_x(const merge *m, uint32_t source)
{
    heft_str name = heft_ix_name(m->from, source), prefix = m->prefix;
    if (!prefix.len)
        return name;
    char *to = heft_arena_alloc(&m->x->arena, prefix.len + name.len, 1);
    if (to) {
        memcpy(to, prefix.ptr, prefix.len);
        memcpy(to + prefix.len, name.ptr, name.len);
    }
    return (heft_str){ to, prefix.len + name.len };
}

static heft_status add_tensor(merge *m, uint32_t source)
{
    const heft_ix_tensor_row *row = heft_ix_row(m->from, source);
    heft_str name = name_in_x(m, source);
    uint64_t *dims;
    uint32_t id;
    HEFT_TRY(name.ptr ? heft_ix_tensor(m->x, name, row->dtype, row->rank, &dims, &id)
                      : no_memory(m->x));
    m->ids[source] = id;
    if (row->rank)
        memcpy(dims, heft_ix_dims(m->from, source), row->rank * sizeof *dims);
    HEFT_TRY(heft_ix_set_layout(m->x, id, heft_ix_layout(m->from, source)));
    bool has_boxes = !m->from->assembled_shard && heft_ix_has_assembled(m->from) &&
                     heft_ix_assembled_find(m->from, source) != HEFT_NONE;
    HEFT_TRY(has_boxes ? heft_ix_assembled_copy(m->x, m->from, source, m->base)
                       : add_parts(m, source, id));
    HEFT_TRY(add_ids(m, source, id));
    return add_attributes(m, source, id);
}

/* ---- checksums, notes, parts of the file ---- */

static uint32_t tensor_of(const merge *m, uint32_t tensor)
{
    return tensor == HEFT_NONE || !m->ids ? HEFT_NONE : m->ids[tensor];
}

static heft_status add_checksums(const merge *m)
{
    const heft_stored_checksum *checksums = m->from->checksums.ptr;
    for (uint32_t i = 0; i < m->from->checksums.len; i++) {
        heft_stored_checksum c = checksums[i];
        for (int r = 0; r < HEFT_CHECKSUM_RANGES; r++)
            c.range[r].offset = c.range[r].length ? global_offset(m, c.range[r].offset) : 0;
        c.tensor = tensor_of(m, c.tensor);
        HEFT_TRY(heft_ix_checksum(m->x, c));
    }
    return HEFT_OK;
}

/* Copy the notes, and the omissions (heft_ix_omit()). */
static void add_notes(const merge *m)
{
    const heft_note *notes = m->from->notes.ptr;
    for (uint32_t i = 0; i < m->from->notes.len; i++) {
        heft_note note = notes[i];
        note.where.offset = global_offset(m, note.where.offset);
        note.tensor = tensor_of(m, note.tensor);
        heft_ix_note_copy(m->x, &note);
    }
    m->x->left_out += m->from->left_out;
    m->x->left_out_unread += m->from->left_out_unread;
    m->x->notes_cut = m->x->notes_cut || m->from->notes_cut;
    const heft_ix_omission *all = m->from->omitted.ptr;
    for (uint32_t i = 0; i < m->from->omitted.len; i++)
        heft_ix_omit(m->x, all[i].severity, all[i].rule, all[i].name, all[i].text);
    m->x->lost_omissions = m->x->lost_omissions || m->from->lost_omissions;
}

static heft_status add_model_part(heft_index *x, heft_str role, const heft_ix_part_row *p,
                                  heft_range where)
{
    HEFT_TRY(
        heft_ix_part(x, HEFT_NONE, role, p->dtype, where, p->length, (heft_encoding)p->encoding));
    heft_ix_part_row_at(x, heft_ix_all_parts(x) - 1)->flags |= p->flags & HEFT_P_LEFT_OUT;
    return HEFT_OK;
}

static heft_status add_model_parts(const merge *m)
{
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < m->from->model_parts.len && !st; i++) {
        const heft_ix_part_row *p = heft_ix_part_row_at(m->from, m->from->parts.len + i);
        heft_range where = { global_offset(m, p->offset), p->stored };
        heft_str role = heft_ix_role(m->from, p->role);
        if (heft_ix_part_find(m->x, HEFT_NONE, role) == HEFT_NONE)
            st = add_model_part(m->x, role, p, where);
        else
            m->x->left_out_unread += (p->flags & HEFT_P_LEFT_OUT) != 0;
    }
    if (!m->x->tokens.length_bytes && m->from->tokens.length_bytes) {
        m->x->tokens = m->from->tokens;
        m->x->tokens.where.offset = global_offset(m, m->from->tokens.where.offset);
    }
    return st;
}

heft_status heft_ix_merge_with(heft_index *x, const heft_index *from, uint32_t base,
                               heft_str prefix, const uint8_t *kept,
                               heft_status (*instead)(void *ctx, uint32_t tensor), void *ctx)
{
    uint32_t n = heft_ix_tensors(from);
    size_t bytes = ((size_t)n + 1) * sizeof(uint32_t);
    merge m = { .x = x, .from = from, .base = base, .prefix = prefix };
    m.ids = heft_mem_alloc(&x->mem, bytes);
    if (!m.ids)
        return no_memory(x);
    x->has_name_table = false;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < n && !st; i++) {
        m.ids[i] = HEFT_NONE;
        if (kept[i])
            st = add_tensor(&m, i);
        else if (instead)
            st = instead(ctx, i);
    }
    if (!st)
        st = add_checksums(&m);
    if (!st)
        st = add_model_parts(&m);
    if (!st)
        add_notes(&m);
    heft_mem_free(&x->mem, m.ids, bytes);
    return st;
}

heft_status heft_ix_merge_checksums(heft_index *x, const heft_index *from, uint32_t base)
{
    merge m = { .x = x, .from = from, .base = base };
    return add_checksums(&m);
}

heft_status heft_ix_merge(heft_index *x, const heft_index *from, uint32_t base, heft_str prefix,
                          const uint8_t *kept)
{
    return heft_ix_merge_with(x, from, base, prefix, kept, NULL, NULL);
}
