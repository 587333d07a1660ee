/* index.c - growing columns of the index, and the checks of every tensor that a parser adds. */
#include "model/index.h"

#include "base/checked_math.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/path_risk.h"
#include "base/text.h"
#include "model/dtype.h"
#include "model/names.h"

enum {
    MIN_TRIM_BYTES = 64 << 10 /* smaller unused capacity is kept */
};

const heft_str heft_ix_data = { "data", 4 };

/* ---- lifetime ---- */

void heft_ix_init(heft_index *x, const heft_allocator *al, const heft_limits *limits,
                  const uint64_t secret[2])
{
    *x = (heft_index){ .mem = { .al = al }, .stated_tensor_bytes = HEFT_UNKNOWN_LENGTH };
    if (limits)
        x->limits = *limits;
    heft_limits *l = &x->limits;
    l->index_bytes = l->index_bytes ? l->index_bytes : 4ull << 30;
    l->memory = l->memory ? l->memory : 4ull << 30;
    l->tensors = l->tensors ? l->tensors : 16u << 20;
    if (HEFT_IS_SMALL && l->tensors > INT16_MAX)
        l->tensors = INT16_MAX; /* the slots of the name table have 16 bits */
    l->depth = l->depth ? l->depth : 128;
    l->depth = l->depth < HEFT_MAX_DEPTH ? l->depth : HEFT_MAX_DEPTH;
    x->mem.limit = l->memory;
    x->arena.mem = &x->mem;
    heft_name_hash_init(&x->key, secret);
}

typedef struct column {
    size_t member, elem; /* offset in heft_index, bytes of an element */
} column;

static const column columns[] = {
    { offsetof(heft_index, tensors), sizeof(heft_ix_tensor_row) },
    { offsetof(heft_index, hashes), sizeof(uint32_t) },
    { offsetof(heft_index, parts), sizeof(heft_ix_part_row) },
    { offsetof(heft_index, model_parts), sizeof(heft_ix_part_row) },
    { offsetof(heft_index, dims), sizeof(uint64_t) },
    { offsetof(heft_index, values), sizeof(heft_value) },
    { offsetof(heft_index, attrs), sizeof(heft_ix_attr_row) },
    { offsetof(heft_index, checksums), sizeof(heft_stored_checksum) },
    { offsetof(heft_index, digests), sizeof(heft_digest_row) },
    { offsetof(heft_index, tensor_checksums), sizeof(uint32_t) },
    { offsetof(heft_index, notes), sizeof(heft_note) },
    { offsetof(heft_index, omitted), sizeof(heft_ix_omission) },
    { offsetof(heft_index, roles), sizeof(heft_str) },
    { offsetof(heft_index, shards), sizeof(heft_ix_shard) },
    { offsetof(heft_index, shard_entries), sizeof(heft_ix_shard_entry) },
    { offsetof(heft_index, shard_groups), sizeof(heft_ix_shard_entry) },
    { offsetof(heft_index, layouts), sizeof(heft_str) },
    { offsetof(heft_index, views), sizeof(heft_ix_view) },
    { offsetof(heft_index, strides), sizeof(uint64_t) },
    { offsetof(heft_index, open), sizeof(uint32_t) },
    { offsetof(heft_index, assembled), sizeof(heft_ix_assembled) },
    { offsetof(heft_index, boxes), sizeof(heft_ix_box) },
    { offsetof(heft_index, box_numbers), sizeof(uint64_t) },
    { offsetof(heft_index, pieces), sizeof(heft_ix_piece) },
    { offsetof(heft_index, base_ids), 16 },
    { offsetof(heft_index, param_ids), 8 },
};

static heft_vec *column_of(heft_index *x, const column *c)
{
    return (heft_vec *)(void *)((char *)x + c->member);
}

void heft_ix_reset(heft_index *x)
{
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        column_of(x, &columns[i])->len = 0;
    heft_names_free(&x->mem, &x->names);
    heft_names_free(&x->mem, &x->role_names);
    heft_arena_free(&x->arena);
    x->version = x->generator = (heft_str){ NULL, 0 };
    x->tokens = (heft_ix_tokens){ .length_bytes = 0 };
    x->last_role = 0;
    x->data_start = x->data_end = 0;
    x->unknown_lengths = 0;
    x->has_alternatives = false;
    x->stated_tensor_bytes = HEFT_UNKNOWN_LENGTH;
    x->shard_info = (heft_ix_shard_info){ 0, 0, HEFT_NOWHERE, { NULL, 0 } };
    x->strict = x->has_name_table = x->has_omissions = x->lost_notes = x->lost_omissions = false;
    x->notes_cut = x->odd_names = x->is_shard_index = x->has_pieces = false;
    x->has_inner_paths = false;
    x->left_out = x->left_out_unread = 0;
    x->offset_bits = x->max_rank = 0;
    x->parsed_from = NULL;
    x->format_private = 0;
    x->rank_facts = NULL;
    x->rank_has_states = false;
    x->assembled_shard = 0;
}

void heft_ix_worker_view(heft_index *to, const heft_index *x)
{
    *to = *x;
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        *column_of(to, &columns[i]) = (heft_vec){ NULL, 0, 0 };
    to->roles = (heft_vec){ x->roles.ptr, x->roles.len, x->roles.len };
    to->mem.limit = 0;
    to->arena = (heft_arena){ &to->mem, NULL };
    to->err = NULL;
}

void heft_ix_free(heft_index *x)
{
    heft_ix_reset(x);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        heft_vec_free(&x->mem, column_of(x, &columns[i]), columns[i].elem);
}

/* Columns grow by doubling, so up to half of the capacity is unused. */
void heft_ix_trim(heft_index *x)
{
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        heft_vec *v = column_of(x, &columns[i]);
        size_t elem = columns[i].elem, kept = (v->len + (size_t)!v->len) * elem;
        if ((v->cap - v->len) * elem < MIN_TRIM_BYTES)
            continue;
        void *p = heft_mem_resize(&x->mem, v->ptr, v->cap * elem, kept);
        if (p)
            *v = (heft_vec){ p, v->len, (uint32_t)(kept / elem) };
    }
}

heft_status heft_ix_no_memory(heft_index *x)
{
    if (x->tensors.len)
        return heft_error_plain(x->err, HEFT_E_NOMEM,
                                "no memory: the index takes %U bytes at tensor %q", x->mem.used,
                                heft_ix_name(x, x->tensors.len - 1));
    return heft_error_plain(x->err, HEFT_E_NOMEM, "no memory: the index takes %U bytes",
                            x->mem.used);
}

void heft_ix_run(const heft_index *x, size_t n, void (*fn)(void *arg, size_t i), void *arg)
{
    if (HEFT_HAS_THREADS && x->run && n > 1) {
        x->run(x->run_ctx, n, fn, arg);
        return;
    }
    for (size_t i = 0; i < n; i++)
        fn(arg, i);
}

/* ---- filling ---- */

static heft_status too_many(heft_index *x, heft_str name, const char *what, uint64_t limit)
{
    return heft_error_plain(x->err, HEFT_E_LIMIT, "tensor %q: more than %U %s", name, limit, what);
}

heft_status heft_ix_tensor(heft_index *x, heft_str name, heft_dtype t, uint32_t rank,
                           uint64_t **dims, uint32_t *id)
{
    if (heft_unlikely(rank > UINT16_MAX || x->tensors.len >= x->limits.tensors))
        return rank > UINT16_MAX
                   ? too_many(x, name, "dimensions", UINT16_MAX)
                   : heft_error_rule(x->err, too_many(x, name, "tensors", x->limits.tensors),
                                     "heft/limit-tensors");
    if (heft_unlikely(name.len > UINT32_MAX))
        return heft_error_plain(x->err, HEFT_E_LIMIT, "a name of %U bytes", (uint64_t)name.len);
    /* reserve one dimension more, so that *dims is a valid pointer for a scalar, too */
    if (heft_unlikely(rank >= x->dims.cap - x->dims.len) &&
        !heft_vec_reserve(&x->mem, &x->dims, (uint64_t)rank + 1, sizeof(uint64_t)))
        return heft_ix_no_memory(x);
    uint32_t *hash = heft_vec_push(&x->mem, &x->hashes, sizeof *hash);
    heft_ix_tensor_row *row = hash ? heft_vec_push(&x->mem, &x->tensors, sizeof *row) : NULL;
    if (heft_unlikely(!row))
        return heft_ix_no_memory(x);
    *hash = heft_names_hash(&x->key, name);
    x->odd_names = x->odd_names || heft_str_may_be_path(name);
    heft_ix_parsed_upto(x, name.ptr);
    *row = (heft_ix_tensor_row){
        .name = name.ptr,
        .name_len = (uint32_t)name.len,
        .dims = x->dims.len,
        .first_part = x->parts.len,
        .rank = (uint16_t)rank,
        .dtype = t,
        .layout = HEFT_DENSE,
    };
    x->dims.len += rank;
    x->max_rank = rank > x->max_rank ? rank : x->max_rank;
    *id = x->tensors.len - 1;
    *dims = heft_ix_dims(x, *id);
    return HEFT_OK;
}

heft_status heft_ix_dim(heft_index *x, uint64_t dim)
{
    heft_ix_tensor_row *row = heft_ix_row(x, x->tensors.len - 1);
    if (heft_unlikely(row->rank == UINT16_MAX))
        return too_many(x, heft_ix_name(x, x->tensors.len - 1), "dimensions", UINT16_MAX);
    uint64_t *to = heft_vec_push(&x->mem, &x->dims, sizeof *to);
    if (heft_unlikely(!to))
        return heft_ix_no_memory(x);
    *to = dim;
    row->rank++;
    x->max_rank = row->rank > x->max_rank ? row->rank : x->max_rank;
    return HEFT_OK;
}

static heft_str role_name(const void *ctx, uint32_t i)
{
    return ((const heft_str *)((const heft_index *)ctx)->roles.ptr)[i];
}

heft_str heft_ix_role(const heft_index *x, uint32_t role)
{
    return role_name(x, role);
}

/* Set x->last_role to a role that differs from the last one; false: out of memory. */
static bool intern_other(heft_index *x, heft_str role)
{
    uint32_t hash = heft_names_hash(&x->key, role);
    heft_names_of of = { role_name, x };
    uint32_t known = heft_names_find(&x->role_names, of, hash, role);
    if (known != HEFT_NONE) {
        x->last_role = known;
        return true;
    }
    heft_str *to = heft_names_grow(&x->mem, &x->role_names, &x->key, of, x->roles.len)
                       ? heft_vec_push(&x->mem, &x->roles, sizeof *to)
                       : NULL;
    if (!to)
        return false;
    *to = role;
    x->last_role = x->roles.len - 1;
    heft_names_add(&x->role_names, of, hash, role, x->last_role);
    return true;
}

/* Set *out to the number of the role, which is nearly always the last one, "data". */
static inline bool intern(heft_index *x, heft_str role, uint32_t *out)
{
    heft_str last = x->roles.len ? role_name(x, x->last_role) : (heft_str){ NULL, SIZE_MAX };
    bool same = last.len == role.len && (last.ptr == role.ptr || heft_str_eq(last, role));
    if (heft_unlikely(!same) && !intern_other(x, role))
        return false;
    *out = x->last_role;
    return true;
}

bool heft_ix_cache_data_role(heft_index *x)
{
    uint32_t role;
    return intern(x, heft_ix_data, &role);
}

bool heft_ix_reserve_rows(heft_index *x, uint64_t tensors, uint64_t dims)
{
    return heft_vec_reserve(&x->mem, &x->tensors, tensors, sizeof(heft_ix_tensor_row)) &&
           heft_vec_reserve(&x->mem, &x->hashes, tensors, sizeof(uint32_t)) &&
           heft_vec_reserve(&x->mem, &x->parts, tensors, sizeof(heft_ix_part_row)) &&
           heft_vec_reserve(&x->mem, &x->dims, dims, sizeof(uint64_t));
}

heft_status heft_ix_reserve(heft_index *x, uint64_t at, uint64_t count, uint64_t left,
                            uint64_t min_bytes)
{
    uint64_t least;
    if (!heft_mul(&least, count, min_bytes) || least > left)
        return heft_error_set(x->err, HEFT_E_FORMAT, at,
                              "%U tensors are announced, but %U bytes are left for their records",
                              count, left);
    if (count > x->limits.tensors)
        return heft_error_rule(x->err,
                               heft_error_set(x->err, HEFT_E_LIMIT, at,
                                              "%U tensors pass the limit of %U", count,
                                              (uint64_t)x->limits.tensors),
                               "heft/limit-tensors");
    /* In a small build a column that grows leaves a hole.  Reserve the dimensions of as many
     * matrices as vectors, and one that heft_ix_tensor() reserves in advance.  Add the role here,
     * where the stack is not deep. */
    uint64_t dims = HEFT_IS_SMALL ? count + count / 2 + 1 : count;
    bool has_memory = heft_ix_reserve_rows(x, count, dims) &&
                      (!HEFT_IS_SMALL || heft_ix_cache_data_role(x));
    return has_memory ? HEFT_OK : heft_ix_no_memory(x);
}

/* Append a part to the tensor added last. */
static inline heft_status add_part(heft_index *x, heft_ix_tensor_row *owner, heft_str role,
                                   heft_ix_part_row row)
{
    if (heft_unlikely(owner->part_count == UINT16_MAX))
        return too_many(x, (heft_str){ owner->name, owner->name_len }, "parts", UINT16_MAX);
    heft_ix_part_row *to = intern(x, role, &row.role)
                               ? heft_vec_push(&x->mem, &x->parts, sizeof *to)
                               : NULL;
    if (heft_unlikely(!to))
        return heft_ix_no_memory(x);
    *to = row;
    x->offset_bits |= row.offset;
    owner->part_count++;
    return HEFT_OK;
}

heft_status heft_ix_part(heft_index *x, uint32_t owner, heft_str role, heft_dtype t,
                         heft_range where, uint64_t length, heft_encoding e)
{
    heft_ix_part_row row = { where.offset, where.length, length, 0, t, (uint8_t)e, 0 };
    x->unknown_lengths += length == HEFT_UNKNOWN_LENGTH;
    if (owner != HEFT_NONE)
        return add_part(x, heft_ix_row(x, owner), role, row);
    heft_ix_part_row *to = intern(x, role, &row.role)
                               ? heft_vec_push(&x->mem, &x->model_parts, sizeof *to)
                               : NULL;
    if (!to)
        return heft_ix_no_memory(x);
    *to = row;
    return HEFT_OK;
}

/* Report the check of heft_ix_dense() that failed. */
static heft_status bad_dense(heft_index *x, uint32_t tensor, uint64_t at, uint64_t offset,
                             uint64_t length)
{
    heft_ix_tensor_row *row = heft_ix_row(x, tensor);
    heft_str name = heft_ix_name(x, tensor);
    uint64_t n, bytes;
    if (!heft_product(&n, heft_ix_dims(x, tensor), row->rank) ||
        !heft_dtype_bytes(&bytes, row->dtype, n))
        return heft_error_set(x->err, HEFT_E_FORMAT, at, "tensor %q: the shape passes 64 bits",
                              name);
    if (length != HEFT_UNKNOWN_LENGTH && bytes != length)
        return heft_error_set(x->err, HEFT_E_FORMAT, at,
                              "tensor %q: %U bytes are stored, its shape as %s takes %U", name,
                              length, heft_dtype_name(row->dtype), bytes);
    return heft_error_expect(
        x->err,
        heft_error_set(x->err, HEFT_E_FORMAT, at,
                       "tensor %q: %U bytes at offset %U pass the end of the file, %U", name, bytes,
                       offset, x->file_bytes),
        offset, bytes);
}

heft_status heft_ix_dense(heft_index *x, uint32_t tensor, uint64_t at, uint64_t offset,
                          uint64_t length)
{
    heft_ix_tensor_row *row = heft_ix_row(x, tensor);
    uint64_t n, bytes;
    if (heft_unlikely(!heft_product(&n, heft_ix_dims(x, tensor), row->rank) ||
                      !heft_dtype_bytes(&bytes, row->dtype, n) ||
                      (length != HEFT_UNKNOWN_LENGTH && bytes != length)))
        return bad_dense(x, tensor, at, offset, length);
    heft_range where = { offset, bytes };
    if (heft_unlikely(x->file_bytes && !heft_range_in(where, x->file_bytes)))
        return bad_dense(x, tensor, at, offset, length);
    heft_ix_part_row part = { offset, bytes, bytes, 0, row->dtype, HEFT_RAW, 0 };
    return add_part(x, row, heft_ix_data, part);
}

/* Return the element of a tensor in a column that ends with the last tensor that has an element;
 * fill a gap with zeros.  NULL: out of memory. */
static void *column_slot(heft_index *x, heft_vec *v, uint32_t tensor, size_t elem)
{
    uint32_t old = v->len;
    if (heft_unlikely(old <= tensor)) {
        uint32_t extra = x->tensors.cap > tensor ? x->tensors.cap - old : tensor + 1 - old;
        if (v->cap <= tensor && !heft_vec_reserve(&x->mem, v, extra, elem))
            return NULL;
        if (tensor > old)
            memset((char *)v->ptr + elem * old, 0, elem * (tensor - old));
        v->len = tensor + 1;
    }
    return (char *)v->ptr + elem * tensor;
}

heft_status heft_ix_base_id(heft_index *x, uint32_t tensor, const uint8_t id[16])
{
    void *to = column_slot(x, &x->base_ids, tensor, 16);
    if (!to)
        return heft_ix_no_memory(x);
    memcpy(to, id, 16);
    heft_ix_row(x, tensor)->flags |= HEFT_T_BASE_ID;
    return HEFT_OK;
}

heft_status heft_ix_param_id(heft_index *x, uint32_t tensor, uint64_t id)
{
    uint64_t *to = column_slot(x, &x->param_ids, tensor, sizeof id);
    if (!to)
        return heft_ix_no_memory(x);
    *to = id;
    heft_ix_row(x, tensor)->flags |= HEFT_T_PARAM_ID;
    return HEFT_OK;
}

heft_str heft_ix_copy(heft_index *x, heft_str s)
{
    heft_str copy = heft_arena_copy(&x->arena, s);
    if (!copy.ptr)
        heft_ix_no_memory(x);
    return copy;
}

/* ---- planning ---- */

void heft_ix_compact(heft_index *x)
{
    heft_ix_attr_row *attrs = x->attrs.ptr;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < x->tensors.len; i++) {
        heft_ix_tensor_row *row = heft_ix_row(x, i);
        if (row->flags & HEFT_T_DROPPED)
            continue;
        for (uint32_t k = row->attrs; k && k <= x->attrs.len && attrs[k - 1].tensor == i; k++)
            attrs[k - 1].tensor = kept;
        if (i < x->base_ids.len)
            memmove((uint8_t *)x->base_ids.ptr + 16ull * kept,
                    (uint8_t *)x->base_ids.ptr + 16ull * i, 16);
        if (i < x->param_ids.len)
            ((uint64_t *)x->param_ids.ptr)[kept] = ((uint64_t *)x->param_ids.ptr)[i];
        ((uint32_t *)x->hashes.ptr)[kept] = ((uint32_t *)x->hashes.ptr)[i];
        *heft_ix_row(x, kept++) = *row;
    }
    x->tensors.len = x->hashes.len = kept;
    x->has_name_table = false;
}

heft_status heft_ix_reshape(heft_index *x, uint32_t tensor, const uint64_t *dims, uint32_t rank)
{
    if (!heft_vec_reserve(&x->mem, &x->dims, (uint64_t)rank + 1, sizeof *dims))
        return heft_ix_no_memory(x);
    if (rank)
        memcpy((uint64_t *)x->dims.ptr + x->dims.len, dims, rank * sizeof *dims);
    heft_ix_row(x, tensor)->dims = x->dims.len;
    heft_ix_row(x, tensor)->rank = (uint16_t)rank;
    x->dims.len += rank;
    return HEFT_OK;
}

uint32_t heft_ix_part_find(const heft_index *x, uint32_t owner, heft_str role)
{
    uint32_t first = x->parts.len, count = x->model_parts.len;
    if (owner != HEFT_NONE) {
        first = heft_ix_row(x, owner)->first_part;
        count = heft_ix_row(x, owner)->part_count;
    }
    for (uint32_t i = first; i < first + count; i++)
        if (heft_str_eq(heft_ix_role(x, heft_ix_part_row_at(x, i)->role), role))
            return i;
    return HEFT_NONE;
}

/* ---- layouts ---- */

static const char *const layout_names[] = { "dense", "sparse_csr", "sparse_coo" };

heft_status heft_ix_set_layout(heft_index *x, uint32_t tensor, heft_str name)
{
    heft_str *others = x->layouts.ptr;
    uint8_t *to = &heft_ix_row(x, tensor)->layout;
    uint32_t i = 0;
    while (i < HEFT_LAYOUT_OTHER && !heft_str_is(name, layout_names[i]))
        i++;
    while (i >= HEFT_LAYOUT_OTHER && i - HEFT_LAYOUT_OTHER < x->layouts.len &&
           !heft_str_eq(others[i - HEFT_LAYOUT_OTHER], name))
        i++;
    if (i > UINT8_MAX)
        return heft_error_plain(x->err, HEFT_E_LIMIT, "tensor %q: more than %U layouts",
                                heft_ix_name(x, tensor), (uint64_t)UINT8_MAX + 1);
    if (i >= HEFT_LAYOUT_OTHER && i - HEFT_LAYOUT_OTHER == x->layouts.len) {
        others = heft_vec_push(&x->mem, &x->layouts, sizeof *others);
        if (!others)
            return heft_ix_no_memory(x);
        *others = name;
    }
    *to = (uint8_t)i;
    return HEFT_OK;
}

heft_str heft_ix_layout(const heft_index *x, uint32_t tensor)
{
    uint8_t layout = heft_ix_row(x, tensor)->layout;
    if (layout < HEFT_LAYOUT_OTHER)
        return heft_lit(layout_names[layout]);
    return ((const heft_str *)x->layouts.ptr)[layout - HEFT_LAYOUT_OTHER];
}
