/* convert_model.c - add tensors, metadata and model-level parts of a file, changed by the
 * options, to the planned model. */
#include "core/write/convert/convert.h"

#include "core/write/convert/copy.h"
#include "core/write/plan/plan.h"
#include "scheme/refuse.h"

/* ---- tensors ---- */

static bool is_selected(bool (*fn)(void *, const heft_tensor *), void *ctx, const heft_tensor *t)
{
    return fn && fn(ctx, t);
}

typedef struct change { /* the changes that the options make to a tensor */
    heft_dtype to;
    bool transpose, densify;
    heft_layout sparsify; /* HEFT_DENSE: unchanged */
} change;

static change change_of(const heft_conversion *c, const heft_tensor *t)
{
    bool sparse = t->layout == HEFT_SPARSE_CSR || t->layout == HEFT_SPARSE_COO;
    heft_dtype to = c->opt.cast ? c->opt.cast(c->opt.ctx, t) : HEFT_UNTYPED;
    change ch = { .to = to ? to : t->dtype,
                  .transpose = is_selected(c->opt.transpose, c->opt.ctx, t) };
    ch.densify = sparse && is_selected(c->opt.densify, c->opt.ctx, t);
    if (t->layout == HEFT_DENSE && c->opt.sparsify)
        ch.sparsify = c->opt.sparsify(c->opt.ctx, t);
    return ch;
}

static heft_status check_layout(const heft_conversion *c, const heft_tensor *t, const change *ch)
{
    bool plain = t->part_count == 1 && heft_dtype_size(t->dtype) &&
                 !heft_rows_can_encode(ch->to, t->dtype);
    if (ch->sparsify == HEFT_SPARSE_CSR && t->rank != 2)
        return heft_error_plain(c->err, HEFT_E_ARGUMENT,
                                "tensor %q: sparse_csr needs two dimensions", t->name);
    if (ch->sparsify && (!t->rank || !plain || ch->transpose))
        return heft_error_plain(c->err, HEFT_E_ARGUMENT, "tensor %q: cannot be made sparse",
                                t->name);
    if (ch->densify && !heft_dtype_size(t->dtype))
        return heft_error_plain(c->err, HEFT_E_UNSUPPORTED, "tensor %q: %s cannot be made dense",
                                t->name, heft_dtype_name(t->dtype));
    if (ch->densify && t->rank > HEFT_SPARSE_RANK)
        return heft_error_plain(c->err, HEFT_E_UNSUPPORTED,
                                "tensor %q: has %U dimensions, at most %U can be made dense",
                                t->name, (uint64_t)t->rank, (uint64_t)HEFT_SPARSE_RANK);
    return HEFT_OK;
}

/* Check that the rows of a tensor can be encoded to a block type. */
static heft_status check_encoding(const heft_conversion *c, const heft_tensor *t, const change *ch)
{
    uint64_t columns = t->rank ? t->dims[ch->transpose ? 0 : t->rank - 1] : 1;
    if (columns > HEFT_ENCODED_COLUMNS)
        return heft_error_plain(c->err, HEFT_E_LIMIT,
                                "tensor %q: rows of %U elements are too long to encode", t->name,
                                columns);
    if (heft_dtype_fills_blocks(ch->to, columns) &&
        (ch->transpose || heft_dtype_fills_blocks(t->dtype, columns)))
        return HEFT_OK;
    return heft_error_plain(c->err, HEFT_E_UNSUPPORTED,
                            "tensor %q: rows of %U elements do not fill blocks of %s, which have "
                            "%U elements",
                            t->name, columns, heft_dtype_name(ch->to),
                            (uint64_t)heft_dtype_get(ch->to)->block_elems);
}

static heft_status check_change(heft_conversion *c, uint32_t source, const heft_tensor *t,
                                const change *ch)
{
    bool changes = ch->to != t->dtype || ch->transpose;
    if (changes && !c->opt.raw_tensors)
        HEFT_TRY(heft_refuse_part(c->in, c->opt.schemes, source,
                                  ch->to != t->dtype ? "a cast" : "transposing it", "", c->err));
    bool dense = t->layout == HEFT_DENSE && t->part_count == 1;
    bool encodes = heft_rows_can_encode(ch->to, t->dtype);
    if (ch->to != t->dtype &&
        !((dense || ch->densify) && (encodes || heft_dtype_can_cast(ch->to, t->dtype))))
        return heft_error_plain(c->err, HEFT_E_UNSUPPORTED, "tensor %q: %s cannot be cast to %s%s",
                                t->name, heft_dtype_name(t->dtype), heft_dtype_name(ch->to),
                                heft_dtype_kind_of(ch->to) == HEFT_DTYPE_BLOCK ? heft_no_encoders
                                                                               : "");
    if (ch->transpose && (t->rank != 2 || !dense || !heft_dtype_size(t->dtype)))
        return heft_error_plain(c->err, HEFT_E_ARGUMENT,
                                "tensor %q: only dense tensors of two dimensions can be transposed",
                                t->name);
    if (encodes)
        HEFT_TRY(check_encoding(c, t, ch));
    return check_layout(c, t, ch);
}

/* If the rows of the planned tensor are encoded, set what the encoder needs to know. */
static heft_status set_rows(const heft_conversion *c, heft_origin *o, uint32_t id,
                            const heft_tensor *t, heft_dtype to)
{
    const uint64_t *dims = heft_ix_dims(&c->p.x, id);
    uint64_t count = 0, matrices = 1, numbers;
    if (!heft_rows_can_encode(to, t->dtype))
        return HEFT_OK;
    o->row = t->rank ? dims[t->rank - 1] : 1;
    o->matrix_rows = t->rank > 1 ? dims[t->rank - 2] : 1;
    o->importance = c->opt.importance ? c->opt.importance(c->opt.ctx, t, &count) : NULL;
    if (!o->importance || (heft_product(&matrices, dims, t->rank > 2 ? t->rank - 2 : 0) &&
                           heft_mul(&numbers, matrices, o->row) && numbers == count))
        return HEFT_OK;
    return heft_error_plain(c->err, HEFT_E_ARGUMENT,
                            "tensor %q: %U numbers of importance are given for %U matrices of %U "
                            "columns",
                            t->name, count, matrices, o->row);
}

static heft_status fail_too_large(heft_conversion *c, uint32_t id, heft_dtype to)
{
    return heft_error_plain(c->err, HEFT_E_LIMIT,
                            "tensor %q: as %s it would take 2^64 bytes or more",
                            heft_ix_name(&c->p.x, id), heft_dtype_name(to));
}

static heft_status add_part(heft_conversion *c, uint32_t id, uint32_t part, const heft_tensor *t,
                            heft_dtype to, bool transpose)
{
    const heft_index *from = &c->in->x;
    const heft_ix_part_row *row = heft_ix_part_row_at(from, part);
    heft_origin *o = heft_vec_push(&c->p.x.mem, &c->origins, sizeof *o);
    uint64_t length = row->length;
    if (!o)
        return heft_error_no_memory(c->err, "to plan the conversion");
    *o = (heft_origin){ .part = part, .dtype = row->dtype };
    const heft_dtype_info *d = heft_dtype_get(row->dtype);
    if (d && length != HEFT_UNKNOWN_LENGTH) /* The format may still cast the part later. */
        o->elements = heft_div(length, d->block_bytes) * d->block_elems;
    if (transpose) { /* The new tensor already has the transposed shape. */
        o->transposed = true;
        o->rows = heft_ix_dims(&c->p.x, id)[1];
        o->columns = heft_ix_dims(&c->p.x, id)[0];
    }
    if ((transpose || to != row->dtype) &&
        (!heft_product(&o->elements, heft_ix_dims(&c->p.x, id), heft_ix_row(&c->p.x, id)->rank) ||
         !heft_dtype_bytes(&length, to, o->elements)))
        return fail_too_large(c, id, to);
    HEFT_TRY(set_rows(c, o, id, t, to));
    HEFT_TRY(heft_ix_part(&c->p.x, id, heft_ix_role(from, row->role), to,
                          (heft_range){ row->offset, length }, length, HEFT_RAW));
    if (c->scope.shards) { /* The part stays in the shard, stored as before. */
        heft_ix_part_row *own = heft_ix_part_row_at(&c->p.x, c->p.x.parts.len - 1);
        own->stored = row->stored;
        own->encoding = row->encoding;
    }
    return HEFT_OK;
}

static heft_status add_parts(heft_conversion *c, uint32_t id, uint32_t source, const heft_tensor *t,
                             const change *ch)
{
    const heft_ix_tensor_row *row = heft_ix_row(&c->in->x, source);
    for (uint32_t i = 0; i < row->part_count; i++) {
        uint32_t part = row->first_part + i;
        heft_dtype own = heft_ix_part_row_at(&c->in->x, part)->dtype;
        HEFT_TRY(add_part(c, id, part, t, ch->to != row->dtype ? ch->to : own, ch->transpose));
    }
    return HEFT_OK;
}

/* ---- layout conversion ---- */

/* Add a part of `count` elements of type `to`, converted from a part of a tensor of the input. */
static heft_status add_converted(heft_conversion *c, uint32_t id, heft_origin origin,
                                 const char *role, heft_dtype to, uint64_t count)
{
    heft_origin *o = heft_vec_push(&c->p.x.mem, &c->origins, sizeof *o);
    uint64_t length, offset = heft_ix_part_row_at(&c->in->x, origin.part)->offset;
    if (!o)
        return heft_error_no_memory(c->err, "to plan the conversion");
    *o = origin;
    o->elements = count;
    if (!heft_dtype_bytes(&length, to, count))
        return fail_too_large(c, id, to);
    return heft_ix_part(&c->p.x, id, heft_lit(role), to, (heft_range){ offset, length }, length,
                        HEFT_RAW);
}

static heft_status add_dense(heft_conversion *c, uint32_t id, uint32_t source, const heft_tensor *t,
                             heft_dtype to)
{
    const heft_ix_tensor_row *row = heft_ix_row(&c->in->x, source);
    heft_origin o = { .tensor = source, .dtype = row->dtype, .layout_target = HEFT_TARGET_DENSE };
    uint64_t elements, bytes;
    heft_sparse_order order;
    o.part = heft_ix_part_find(&c->in->x, source, heft_lit("values"));
    HEFT_TRY(heft_sparse_check(c->in, source, false, &order, c->err));
    if (!heft_product(&elements, heft_ix_dims(&c->in->x, source), row->rank) ||
        !heft_dtype_bytes(&bytes, row->dtype, elements))
        return fail_too_large(c, id, row->dtype);
    HEFT_TRY(set_rows(c, &o, id, t, to));
    return add_converted(c, id, o, "data", to, elements);
}

static heft_status add_sparse(heft_conversion *c, uint32_t id, uint32_t source, const change *ch)
{
    const heft_ix_tensor_row *row = heft_ix_row(&c->in->x, source);
    bool csr = ch->sparsify == HEFT_SPARSE_CSR;
    heft_origin o = { .part = row->first_part, .tensor = source, .dtype = row->dtype };
    uint64_t count, indices, rows = heft_ix_dims(&c->in->x, source)[0] + 1;
    HEFT_TRY(heft_count_nonzero(&count, c->in, o.part, c->err));
    if (!heft_mul(&indices, count, csr ? 1 : row->rank) || !rows)
        return fail_too_large(c, id, HEFT_U64);
    o.nonzero = count;
    o.layout_target = HEFT_TARGET_VALUES;
    heft_status st = add_converted(c, id, o, "values", ch->to, count);
    o.dtype = HEFT_U64;
    o.layout_target = csr ? HEFT_TARGET_COLUMNS : HEFT_TARGET_COORDS;
    if (!st)
        st = add_converted(c, id, o, csr ? "indices" : "coords", HEFT_U64, indices);
    o.layout_target = HEFT_TARGET_ROWS;
    return st || !csr ? st : add_converted(c, id, o, "indptr", HEFT_U64, rows);
}

/* ---- storage of parts ---- */

static heft_status store_part(heft_conversion *c, const heft_tensor *t, uint32_t part)
{
    const heft_origin *o = (const heft_origin *)c->origins.ptr + part;
    heft_storage storage = o->layout_target ? heft_planner_default_storage(&c->p)
                                            : heft_same_format_storage(&c->p, c->in, o->part);
    heft_storage requested = storage;
    heft_str role = heft_ix_role(&c->p.x, heft_ix_part_row_at(&c->p.x, part)->role);
    bool is_requested = c->opt.storage && c->opt.storage(c->opt.ctx, t, role, &requested);
    if (!is_requested && !o->layout_target)
        heft_same_format_note(&c->p, c->in, o->part, &storage);
    HEFT_TRY(heft_planner_set_storage(&c->p, part, is_requested ? &requested : &storage, c->err));
    if (!is_requested && storage.encoding != c->p.opt.storage.encoding)
        heft_planner_require_encoding(&c->p, part);
    return HEFT_OK;
}

static heft_status store_parts(heft_conversion *c, uint32_t id, const heft_tensor *t)
{
    const heft_ix_tensor_row *row = heft_ix_row(&c->p.x, id);
    if (c->scope.shards || (!c->opt.storage && !heft_is_same_format(&c->p, c->in)))
        return HEFT_OK;
    for (uint32_t k = 0; k < row->part_count; k++)
        HEFT_TRY(store_part(c, t, row->first_part + k));
    return HEFT_OK;
}

/* ---- the whole tensor ---- */

static heft_status add_tensor(heft_conversion *c, uint32_t source)
{
    heft_tensor t = heft_tensor_at(c->in, source);
    uint64_t *dims;
    uint32_t id;
    if (c->opt.keep && !c->opt.keep(c->opt.ctx, &t))
        return HEFT_OK;
    change ch = change_of(c, &t);
    heft_str name = c->opt.rename ? c->opt.rename(c->opt.ctx, &t) : t.name;
    HEFT_TRY(check_change(c, source, &t, &ch));
    if (c->opt.rename && heft_utf8_valid(name.ptr, name.len) < name.len)
        return heft_error_plain(c->err, HEFT_E_ARGUMENT, "tensor %q: its new name %q is not UTF-8",
                                t.name, name);
    HEFT_TRY(heft_ix_tensor(&c->p.x, name, ch.to, t.rank, &dims, &id));
    for (uint32_t i = 0; i < t.rank; i++)
        dims[i] = t.dims[ch.transpose ? t.rank - 1 - i : i];
    heft_str layout = ch.densify ? heft_lit("dense") : heft_ix_layout(&c->in->x, source);
    if (ch.sparsify)
        layout = heft_lit(ch.sparsify == HEFT_SPARSE_CSR ? "sparse_csr" : "sparse_coo");
    HEFT_TRY(heft_ix_set_layout(&c->p.x, id, layout));
    HEFT_TRY(ch.densify    ? add_dense(c, id, source, &t, ch.to)
             : ch.sparsify ? add_sparse(c, id, source, &ch)
                           : add_parts(c, id, source, &t, &ch));
    HEFT_TRY(store_parts(c, id, &t));
    heft_identity identity = heft_ix_identity(&c->in->x, source);
    bool is_new = c->opt.identify && c->opt.identify(c->opt.ctx, &t, &identity);
    heft_status st = HEFT_OK;
    if (is_new)
        st = heft_identity_check(&identity, t.name, c->err);
    return st ? st
              : heft_copy_attributes(&c->p, &c->in->x, id, source, ch.to != t.dtype,
                                     is_new ? &identity : NULL);
}

/* A shard of a split model has some parts, and other shards have the others. */
static bool can_tear(const heft_conversion *c)
{
    return (c->opt.keep || c->opt.rename) && (!c->scope.only || c->scope.metadata_from);
}

/* Add the tensors; planned[i] becomes the id of tensor i of the input, unless planned is NULL. */
static heft_status add_all(heft_conversion *c, uint32_t *planned)
{
    const uint32_t *only = c->scope.only;
    uint32_t count = only ? c->scope.only_count : heft_tensor_count(c->in);
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < count && !st; i++) {
        uint32_t id = heft_ix_tensors(&c->p.x), source = only ? only[i] : i;
        st = add_tensor(c, source);
        if (planned && heft_ix_tensors(&c->p.x) > id)
            planned[source] = id;
    }
    return st;
}

static heft_status build_name_table(heft_conversion *c)
{
    heft_error duplicate;
    c->p.x.err = &duplicate;
    heft_status st = heft_ix_build_name_table(&c->p.x);
    c->p.x.err = c->err;
    if (st == HEFT_E_FORMAT)
        return heft_error_plain(c->err, HEFT_E_ARGUMENT, "after renaming, %s", duplicate.message);
    if (st)
        *c->err = duplicate;
    return st;
}

heft_status heft_conversion_add_tensors(heft_conversion *c)
{
    uint32_t *planned = NULL;
    size_t bytes = heft_tensor_count(c->in) * sizeof *planned;
    if (can_tear(c)) {
        planned = heft_plan_alloc(&c->p.plan, bytes);
        if (!planned)
            return HEFT_E_NOMEM;
        memset(planned, 0xFF, bytes); /* HEFT_NONE */
    }
    HEFT_TRY(add_all(c, planned));
    HEFT_TRY(build_name_table(c));
    return planned ? heft_warn_torn(&c->p, c->in, c->opt.schemes, planned) : HEFT_OK;
}

/* ---- metadata ---- */

static const heft_value *replacement(const heft_conversion *c, heft_str key)
{
    for (size_t i = 0; i < c->opt.set_count; i = heft_set_next(c->opt.set, i))
        if (heft_str_eq(c->opt.set[i].key, key))
            return &c->opt.set[i];
    return NULL;
}

/* Return the file that metadata, model-level parts and vocabulary come from. */
static const heft_file *metadata_file(const heft_conversion *c)
{
    return c->scope.metadata_from ? c->scope.metadata_from : c->in;
}

heft_status heft_conversion_add_metadata(heft_conversion *c)
{
    const heft_index *from = &metadata_file(c)->x;
    HEFT_TRY(heft_set_check(c->opt.set, c->opt.set_count, c->err));
    uint32_t requested = c->scope.own_metadata ? 0 : from->values.len;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < requested && !st; i = heft_ix_value_next(from, i))
        if (!replacement(c, heft_ix_value(from, i)->key) &&
            !heft_ix_is_shard_key(from, heft_ix_value(from, i)->key))
            st = heft_ix_copy_value(&c->p.x, from, i, HEFT_NONE);
    for (size_t i = 0; i < c->opt.set_count && !st; i = heft_set_next(c->opt.set, i)) {
        if (!heft_is_metadata_value(&c->opt.set[i]))
            st = heft_error_plain(c->err, HEFT_E_ARGUMENT,
                                  "metadata %q: its kind is unknown, or its numbers are complex",
                                  c->opt.set[i].key);
        else if ((st = heft_check_map_number(c->p.format, &c->opt.set[i], c->err)))
            break;
        else if (replacement(c, c->opt.set[i].key) == &c->opt.set[i])
            st = heft_set_add(&c->p.x, c->opt.set, i, c->opt.set[i]);
    }
    return st;
}

/* ---- model-level parts ---- */

heft_status heft_conversion_add_model_parts(heft_conversion *c)
{
    const heft_file *from = metadata_file(c);
    uint32_t first, count = heft_file_parts(from, &first);
    for (uint32_t i = first; i < first + count; i++) {
        const heft_ix_part_row *row = heft_ix_part_row_at(&from->x, i);
        heft_str role = heft_ix_role(&from->x, row->role);
        if (row->flags & HEFT_P_LEFT_OUT) /* heft_left_out_losses() reports the content */
            continue;
        bool is_replaced = c->opt.config.ptr && heft_str_is(role, "config");
        /* heft_conversion_add_vocab() adds the tokens. */
        bool is_tokens = from->x.tokens.length_bytes && heft_str_is(role, "vocab");
        if (!is_replaced && !is_tokens)
            HEFT_TRY(heft_planner_model_part_from(&c->p, from, i, c->err));
    }
    if (c->opt.config.ptr)
        HEFT_TRY(heft_planner_model_part(&c->p, heft_lit("config"), c->opt.config, c->err));
    return HEFT_OK;
}

/* Pass the vocabulary to the format as tokens, since the bytes are specific to the format of the
 * input. */
heft_status heft_conversion_add_vocab(heft_conversion *c)
{
    c->p.plan.vocab = c->opt.vocab;
    if (c->opt.vocab || !metadata_file(c)->x.tokens.length_bytes || c->scope.own_metadata)
        return HEFT_OK;
    heft_status st = heft_vocab_open(&c->vocab, metadata_file(c), c->err);
    c->p.plan.vocab = c->vocab;
    return st;
}
