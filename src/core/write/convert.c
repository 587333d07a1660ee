/* convert.c - one file's model, changed as asked, in another format's terms. */
#include "core/write/convert.h"

#include "core/check/contents.h"
#include "core/read/measure.h"
#include "core/write/cast_losses.h"
#include "core/write/copy.h"
#include "core/write/ties.h"
#include "core/write/transfer.h"
#include "core/write/within.h"

typedef struct conversion {
    heft_planner p; /* first: the plan calls back through it */
    const heft_file *in;
    heft_convert_options opt;
    heft_vec origins;  /* by part to be written */
    heft_vocab *vocab; /* the input's */
    uint8_t *passing;  /* by part of the input: heft_passing */
    const heft_converting *how;
    bool decodes; /* what is compressed is decoded once before, for its digests */
    heft_error *err;
} conversion;

/* ---- tensors ---- */

static bool asked(bool (*fn)(void *, const heft_tensor *), void *ctx, const heft_tensor *t)
{
    return fn && fn(ctx, t);
}

static heft_dtype target_type(const conversion *c, const heft_tensor *t)
{
    heft_dtype to = c->opt.cast ? c->opt.cast(c->opt.ctx, t) : HEFT_UNTYPED;
    return to ? to : t->dtype;
}

typedef struct change { /* of a tensor */
    heft_dtype to;
    bool turn, densify;
    heft_layout sparsify; /* HEFT_DENSE: not */
} change;

static change change_of(const conversion *c, const heft_tensor *t)
{
    bool sparse = t->layout == HEFT_SPARSE_CSR || t->layout == HEFT_SPARSE_COO;
    change ch = { .to = target_type(c, t), .turn = asked(c->opt.transpose, c->opt.ctx, t) };
    ch.densify = sparse && asked(c->opt.densify, c->opt.ctx, t);
    if (t->layout == HEFT_DENSE && c->opt.sparsify)
        ch.sparsify = c->opt.sparsify(c->opt.ctx, t);
    return ch;
}

static heft_status check_layout(const conversion *c, const heft_tensor *t, const change *ch)
{
    bool plain = t->part_count == 1 && heft_dtype_size(t->dtype);
    if (ch->sparsify == HEFT_SPARSE_CSR && t->rank != 2)
        return heft_error_plain(c->err, HEFT_E_ARGUMENT,
                                "tensor %q: sparse_csr is for tensors of two dimensions", t->name);
    if (ch->sparsify && (!t->rank || !plain || ch->turn))
        return heft_error_plain(c->err, HEFT_E_ARGUMENT, "tensor %q: it cannot be made sparse",
                                t->name);
    if (ch->densify && !heft_dtype_size(t->dtype))
        return heft_error_plain(c->err, HEFT_E_UNSUPPORTED, "tensor %q: %s is not made dense",
                                t->name, heft_dtype_name(t->dtype));
    if (ch->densify && t->rank > HEFT_SPARSE_RANK)
        return heft_error_plain(c->err, HEFT_E_UNSUPPORTED,
                                "tensor %q: of %U dimensions, %U at most are made dense", t->name,
                                (uint64_t)t->rank, (uint64_t)HEFT_SPARSE_RANK);
    return HEFT_OK;
}

static heft_status check_change(const conversion *c, const heft_tensor *t, const change *ch)
{
    bool dense = t->layout == HEFT_DENSE && t->part_count == 1;
    if (ch->to != t->dtype && !((dense || ch->densify) && heft_can_cast(ch->to, t->dtype)))
        return heft_error_plain(c->err, HEFT_E_UNSUPPORTED, "tensor %q: %s cannot be cast to %s",
                                t->name, heft_dtype_name(t->dtype), heft_dtype_name(ch->to));
    if (ch->turn && (t->rank != 2 || !dense || !heft_dtype_size(t->dtype)))
        return heft_error_plain(c->err, HEFT_E_ARGUMENT,
                                "tensor %q: only dense tensors of two dimensions are transposed",
                                t->name);
    return check_layout(c, t, ch);
}

static heft_status add_part(conversion *c, uint32_t id, uint32_t part, heft_dtype to, bool turn)
{
    const heft_index *from = &c->in->x;
    const heft_ix_part_row *row = heft_ix_part_row_at(from, part);
    heft_origin *o = heft_vec_push(&c->p.x.mem, &c->origins, sizeof *o);
    uint64_t length = row->length;
    if (!o)
        return heft_error_plain(c->err, HEFT_E_NOMEM, "no memory to plan the conversion");
    *o = (heft_origin){ .part = part, .dtype = row->dtype };
    const heft_dtype_info *d = heft_dtype_get(row->dtype);
    if (d && length != HEFT_NOWHERE) /* a format may still want it in another type */
        o->elements = heft_div(length, d->block_bytes) * d->block_elems;
    if (turn) { /* the shape of the new tensor is turned already */
        o->transposed = true;
        o->rows = heft_ix_dims(&c->p.x, id)[1];
        o->columns = heft_ix_dims(&c->p.x, id)[0];
    }
    if ((turn || to != row->dtype) &&
        (!heft_product(&o->elements, heft_ix_dims(&c->p.x, id), heft_ix_row(&c->p.x, id)->rank) ||
         !heft_dtype_bytes(&length, to, o->elements)))
        return heft_error_plain(c->err, HEFT_E_LIMIT, "a tensor passes 2^64 bytes");
    heft_status st = heft_ix_part(&c->p.x, id, heft_ix_role(from, row->role), to,
                                  (heft_range){ row->offset, length }, length, HEFT_RAW);
    if (!st && c->how->links) { /* it stays where it is, as it is */
        heft_ix_part_row *own = heft_ix_part_row_at(&c->p.x, c->p.x.parts.len - 1);
        own->stored = row->stored;
        own->encoding = row->encoding;
    }
    return st;
}

static heft_status add_parts(conversion *c, uint32_t id, uint32_t source, const change *ch)
{
    const heft_ix_tensor_row *row = heft_ix_row(&c->in->x, source);
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < row->part_count && !st; i++) {
        uint32_t part = row->first_part + i;
        heft_dtype own = heft_ix_part_row_at(&c->in->x, part)->dtype;
        st = add_part(c, id, part, ch->to != row->dtype ? ch->to : own, ch->turn);
    }
    return st;
}

/* ---- parts in another layout ---- */

/* count elements of type `to`, made from a part of a tensor of the input. */
static heft_status add_made(conversion *c, uint32_t id, heft_origin origin, const char *role,
                            heft_dtype to, uint64_t count)
{
    heft_origin *o = heft_vec_push(&c->p.x.mem, &c->origins, sizeof *o);
    uint64_t length, offset = heft_ix_part_row_at(&c->in->x, origin.part)->offset;
    if (!o)
        return heft_error_plain(c->err, HEFT_E_NOMEM, "no memory to plan the conversion");
    *o = origin;
    o->elements = count;
    if (!heft_dtype_bytes(&length, to, count))
        return heft_error_plain(c->err, HEFT_E_LIMIT, "a tensor passes 2^64 bytes");
    return heft_ix_part(&c->p.x, id, heft_lit(role), to, (heft_range){ offset, length }, length,
                        HEFT_RAW);
}

static heft_status add_dense(conversion *c, uint32_t id, uint32_t source, heft_dtype to)
{
    const heft_ix_tensor_row *row = heft_ix_row(&c->in->x, source);
    heft_origin o = { .tensor = source, .dtype = row->dtype, .making = HEFT_MAKE_DENSE };
    uint64_t elements, bytes;
    heft_sparse_order order;
    o.part = heft_ix_part_find(&c->in->x, source, heft_lit("values"));
    heft_status st = heft_sparse_check(c->in, source, &order, c->err);
    if (st)
        return st;
    if (!heft_product(&elements, heft_ix_dims(&c->in->x, source), row->rank) ||
        !heft_dtype_bytes(&bytes, row->dtype, elements))
        return heft_error_plain(c->err, HEFT_E_LIMIT, "a tensor passes 2^64 bytes");
    return add_made(c, id, o, "data", to, elements);
}

static heft_status add_sparse(conversion *c, uint32_t id, uint32_t source, const change *ch)
{
    const heft_ix_tensor_row *row = heft_ix_row(&c->in->x, source);
    bool csr = ch->sparsify == HEFT_SPARSE_CSR;
    heft_origin o = { .part = row->first_part, .tensor = source, .dtype = row->dtype };
    uint64_t count, indices, rows = heft_ix_dims(&c->in->x, source)[0] + 1;
    heft_status st = heft_count_filled(&count, c->in, o.part, c->err);
    if (st)
        return st;
    if (!heft_mul(&indices, count, csr ? 1 : row->rank) || !rows)
        return heft_error_plain(c->err, HEFT_E_LIMIT, "a tensor passes 2^64 bytes");
    o.filled = count;
    o.making = HEFT_MAKE_VALUES;
    st = add_made(c, id, o, "values", ch->to, count);
    o.dtype = HEFT_U64;
    o.making = csr ? HEFT_MAKE_COLUMNS : HEFT_MAKE_COORDS;
    if (!st)
        st = add_made(c, id, o, csr ? "indices" : "coords", HEFT_U64, indices);
    o.making = HEFT_MAKE_ROWS;
    return st || !csr ? st : add_made(c, id, o, "indptr", HEFT_U64, rows);
}

static heft_str layout_after(const conversion *c, uint32_t source, const change *ch)
{
    if (ch->sparsify)
        return heft_lit(ch->sparsify == HEFT_SPARSE_CSR ? "sparse_csr" : "sparse_coo");
    return ch->densify ? heft_lit("dense") : heft_ix_layout(&c->in->x, source);
}

/* ---- how parts are stored ---- */

static heft_status store_part(conversion *c, const heft_tensor *t, uint32_t part)
{
    const heft_origin *o = (const heft_origin *)c->origins.ptr + part;
    heft_storage how = o->making ? heft_planner_usual(&c->p)
                                 : heft_within_storage(&c->p, c->in, o->part);
    heft_storage given = how;
    heft_str role = heft_ix_role(&c->p.x, heft_ix_part_row_at(&c->p.x, part)->role);
    bool is_asked = c->opt.storage && c->opt.storage(c->opt.ctx, t, role, &given);
    if (!is_asked && !o->making)
        heft_within_note(&c->p, c->in, o->part, &how);
    heft_status st = heft_planner_store(&c->p, part, is_asked ? &given : &how, c->err);
    if (!st && !is_asked && how.encoding != c->opt.write.encoding)
        heft_planner_insist(&c->p, part);
    return st;
}

static heft_status store_parts(conversion *c, uint32_t id, const heft_tensor *t)
{
    const heft_ix_tensor_row *row = heft_ix_row(&c->p.x, id);
    heft_status st = HEFT_OK;
    if (c->how->links || (!c->opt.storage && !heft_within(&c->p, c->in)))
        return HEFT_OK;
    for (uint32_t k = 0; k < row->part_count && !st; k++)
        st = store_part(c, t, row->first_part + k);
    return st;
}

/* ---- all of a tensor ---- */

static heft_status add_attributes(conversion *c, uint32_t id, uint32_t source, bool cast)
{
    heft_tensor t = heft_tensor_at(c->in, source);
    heft_identity identity = heft_ix_identity(&c->in->x, source);
    bool is_new = c->opt.identify && c->opt.identify(c->opt.ctx, &t, &identity);
    return heft_transfer_attributes(&c->p, &c->in->x, id, source, cast, is_new ? &identity : NULL);
}

static heft_status add_tensor(conversion *c, uint32_t source)
{
    heft_tensor t = heft_tensor_at(c->in, source);
    uint64_t *dims;
    uint32_t id;
    if (c->opt.keep && !c->opt.keep(c->opt.ctx, &t))
        return HEFT_OK;
    change ch = change_of(c, &t);
    heft_str name = c->opt.rename ? c->opt.rename(c->opt.ctx, &t) : t.name;
    heft_status st = check_change(c, &t, &ch);
    if (!st && c->opt.rename && heft_utf8_valid(name.ptr, name.len) < name.len)
        st = heft_error_plain(c->err, HEFT_E_ARGUMENT, "tensor %q: its new name %q is not UTF-8",
                              t.name, name);
    if (!st)
        st = heft_ix_tensor(&c->p.x, name, ch.to, t.rank, &dims, &id);
    if (st)
        return st;
    for (uint32_t i = 0; i < t.rank; i++)
        dims[i] = t.dims[ch.turn ? t.rank - 1 - i : i];
    st = heft_ix_set_layout(&c->p.x, id, layout_after(c, source, &ch));
    if (!st)
        st = ch.densify    ? add_dense(c, id, source, ch.to)
             : ch.sparsify ? add_sparse(c, id, source, &ch)
                           : add_parts(c, id, source, &ch);
    if (!st)
        st = store_parts(c, id, &t);
    return st ? st : add_attributes(c, id, source, ch.to != t.dtype);
}

static heft_status add_tensors(conversion *c)
{
    const uint32_t *only = c->how->only;
    uint32_t count = only ? c->how->only_count : heft_tensor_count(c->in);
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < count && !st; i++)
        st = add_tensor(c, only ? only[i] : i);
    if (st)
        return st;
    heft_error twice;
    c->p.x.err = &twice;
    st = heft_ix_seal(&c->p.x);
    c->p.x.err = c->err;
    if (st == HEFT_E_FORMAT)
        return heft_error_plain(c->err, HEFT_E_ARGUMENT, "after renaming, %s", twice.message);
    if (st)
        *c->err = twice;
    return st;
}

/* ---- metadata ---- */

static const heft_value *replacement(const conversion *c, heft_str key)
{
    for (size_t i = 0; i < c->opt.set_count; i++)
        if (heft_str_eq(c->opt.set[i].key, key))
            return &c->opt.set[i];
    return NULL;
}

/* The file that says what is no tensor. */
static const heft_file *about(const conversion *c)
{
    return c->how->about ? c->how->about : c->in;
}

static heft_status add_metadata(conversion *c)
{
    const heft_index *from = &about(c)->x;
    heft_status st = HEFT_OK;
    uint32_t given = c->how->own_metadata ? 0 : from->values.len;
    for (uint32_t i = 0; i < given && !st; i = heft_ix_value_next(from, i))
        if (!replacement(c, heft_ix_value(from, i)->key) &&
            !heft_ix_is_of_set(from, heft_ix_value(from, i)->key))
            st = heft_transfer_value(&c->p, from, i, HEFT_NONE, HEFT_NONE);
    for (size_t i = 0; i < c->opt.set_count && !st; i++) {
        if (!heft_value_is_text(&c->opt.set[i]))
            st = heft_error_plain(c->err, HEFT_E_ARGUMENT, "metadata %q: its text is not UTF-8",
                                  c->opt.set[i].key);
        else if ((st = heft_check_map_number(c->p.format, &c->opt.set[i], c->err)))
            break;
        else if (replacement(c, c->opt.set[i].key) == &c->opt.set[i])
            st = heft_ix_meta(&c->p.x, c->opt.set[i]);
    }
    return st;
}

/* ---- parts of the file itself ---- */

static heft_status add_model_part(conversion *c, uint32_t part)
{
    const heft_ix_part_row *row = heft_ix_part_row_at(&about(c)->x, part);
    heft_str role = heft_ix_role(&about(c)->x, row->role);
    if (c->opt.config.ptr && heft_str_is(role, "config"))
        return HEFT_OK;
    if (about(c)->x.tokens.length_bytes && heft_str_is(role, "vocab"))
        return HEFT_OK; /* add_vocab() sees to it */
    return heft_planner_part_of(&c->p, about(c), part, c->err);
}

static heft_status add_model_parts(conversion *c)
{
    uint32_t first, count = heft_model_parts(about(c), &first);
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < count && !st; i++)
        st = add_model_part(c, first + i);
    if (!st && c->opt.config.ptr)
        st = heft_planner_model_part(&c->p, heft_lit("config"), c->opt.config, c->err);
    return st;
}

/* A vocabulary goes on as tokens: its bytes mean something to its own format only. */
static heft_status add_vocab(conversion *c)
{
    c->p.plan.vocab = c->opt.vocab;
    if (c->opt.vocab || !about(c)->x.tokens.length_bytes || c->how->own_metadata)
        return HEFT_OK;
    heft_status st = heft_vocab_open(&c->vocab, about(c), c->err);
    c->p.plan.vocab = c->vocab;
    return st;
}

/* ---- all of it ---- */

static heft_status ties(heft_plan *plan, uint32_t *same, bool contents)
{
    conversion *c =
        (conversion *)(void *)plan; /* the planner comes first in it, the plan in the planner */
    heft_tying how = { .contents = contents,
                       .equal = c->how->equal,
                       .progress = c->opt.progress,
                       .ctx = c->opt.progress_ctx };
    return heft_ties(same, &c->p, c->in, c->origins.ptr, &how, c->err);
}

/* What a tensor comes from, or HEFT_NONE: it has no parts. */
static uint32_t source_of(const conversion *c, uint32_t tensor)
{
    const heft_ix_tensor_row *row = heft_ix_row(&c->p.x, tensor);
    const heft_origin *o = c->origins.ptr;
    return row->part_count ? heft_ix_owner(&c->in->x, o[row->first_part].part) : HEFT_NONE;
}

static heft_str source_name(const heft_plan *plan, uint32_t tensor)
{
    const conversion *c = (const conversion *)(const void *)plan;
    uint32_t source = source_of(c, tensor);
    return source == HEFT_NONE ? heft_ix_name(&c->p.x, tensor) : heft_ix_name(&c->in->x, source);
}

static const uint8_t *source_base_id(const heft_plan *plan, uint32_t tensor)
{
    const conversion *c = (const conversion *)(const void *)plan;
    uint32_t source = source_of(c, tensor);
    return source == HEFT_NONE ? NULL : heft_ix_base_id_at(&c->in->x, source);
}

/* Of a tensor that is copied as it is; one that is made here is in order. */
static heft_status in_order(heft_plan *plan, uint32_t tensor, bool *strictly)
{
    conversion *c = (conversion *)(void *)plan;
    const heft_ix_tensor_row *row = heft_ix_row(&c->p.x, tensor);
    const heft_origin *o = (const heft_origin *)c->origins.ptr + row->first_part;
    heft_sparse_order order;
    *strictly = true;
    if (o->making)
        return HEFT_OK;
    heft_status st = heft_sparse_check(c->in, heft_ix_owner(&c->in->x, o->part), &order, c->err);
    *strictly = !st && order.ascends && !order.twice;
    return st == HEFT_E_FORMAT ? HEFT_OK : st;
}

/* What shared bytes cost in a target that cannot share them. */
static heft_status note_ties(conversion *c)
{
    heft_error text;
    uint32_t all = c->p.x.parts.len;
    uint64_t count = 0, bytes = 0;
    heft_tying how = { .contents = false };
    uint32_t *same = heft_plan_alloc(&c->p.plan, all * sizeof *same);
    if (!same)
        return HEFT_E_NOMEM;
    for (uint32_t i = 0; i < all; i++)
        same[i] = i;
    heft_status st = heft_ties(same, &c->p, c->in, c->origins.ptr, &how, c->err);
    for (uint32_t i = 0; i < all; i++) {
        count += same[i] != i;
        bytes += same[i] != i ? heft_ix_part_row_at(&c->p.x, i)->length : 0;
    }
    if (st || !count)
        return st;
    heft_error_plain(&text, HEFT_OK, "%U %s bytes with others, which %s cannot: %U bytes more",
                     count, count == 1 ? "tensor shares its" : "tensors share their",
                     c->p.format->name, bytes);
    return heft_plan_loss(&c->p.plan, HEFT_NOTE, "heft/tied", HEFT_NONE, text.message);
}

static heft_status link_parts(conversion *c)
{
    const heft_origin *o = c->origins.ptr;
    heft_str *spelled = heft_plan_alloc(&c->p.plan, c->p.x.parts.len * sizeof *spelled);
    if (!spelled)
        return HEFT_E_NOMEM;
    for (uint32_t i = 0; i < c->p.x.parts.len; i++)
        spelled[i] = heft_ix_digest_of(&c->in->x, o[i].part);
    c->p.plan.spelled = spelled;
    c->p.plan.links = c->how->links;
    c->p.plan.link_count = c->how->link_count;
    return HEFT_OK;
}

static heft_status plan(conversion *c)
{
    c->p.x.err = c->p.plan.err = c->err;
    if (c->in->lacking.status) { /* what is not listed would be missed by nobody */
        *c->err = c->in->lacking;
        return c->err->status;
    }
    if (c->p.format == c->in->format)
        c->p.x.generator = c->in->x.generator;
    heft_status st = HEFT_OK;
    if (c->opt.generator.ptr)
        st = heft_planner_generator(&c->p, c->opt.generator, c->err);
    if (!st)
        st = heft_within_version(&c->p, c->in, c->err);
    if (!st)
        st = add_tensors(c);
    if (!st)
        st = heft_within_losses(&c->p, c->in);
    if (!st)
        st = add_metadata(c);
    if (!st)
        st = add_model_parts(c);
    if (!st && c->how->links)
        st = link_parts(c);
    c->p.plan.source_name = source_name;
    c->p.plan.source_base_id = source_base_id;
    c->p.plan.ties = ties;
    c->p.plan.in_order = in_order;
    if (!st)
        st = add_vocab(c);
    if (!st)
        st = heft_planner_run(&c->p, c->err);
    if (!st && !c->p.plan.same)
        st = note_ties(c);
    if (!st && c->opt.planned_bytes)
        *c->opt.planned_bytes = heft_planner_most(&c->p);
    if (!st && c->how->planned)
        st = c->how->planned(c->how->ctx, &c->p, c->err);
    return st;
}

static uint64_t payload(const conversion *c)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->p.plan.order_count; i++)
        sum += heft_ix_part_row_at(&c->p.x, c->p.plan.order[i])->length;
    return sum;
}

/* A stream cannot be taken back, and a dry run writes nothing: what casts lose is counted before. */
static heft_status count_casts(conversion *c)
{
    heft_watch off;
    heft_meter meter = { .fn = c->opt.progress, .ctx = c->opt.progress_ctx, .total = payload(c) };
    heft_copying copying = { &c->p, c->in, c->origins.ptr, NULL, &off, &meter, NULL };
    heft_status st = heft_watch_begin(&off, c->in, true, NULL, NULL, c->err);
    if (!st)
        st = heft_cast_losses_begin(&copying, c->err);
    if (!st)
        st = heft_cast_losses_count(&copying, c->err);
    if (!st)
        st = heft_cast_losses_report(&copying, c->err);
    heft_watch_free(&off);
    return st;
}

static bool counts_first(const conversion *c, const heft_sink *sink)
{
    return c->opt.write.strict && !sink->ops->write_at;
}

static heft_status write_out(conversion *c, heft_sink *sink, heft_watch *watch)
{
    const heft_plan *plan = &c->p.plan;
    heft_meter meter = { .fn = c->opt.progress, .ctx = c->opt.progress_ctx };
    heft_copying copying = { &c->p, c->in, c->origins.ptr, sink, watch, &meter, NULL };
    meter.total = plan->appended ? payload(c) : plan->data_end - plan->front_bytes;
    heft_status st = counts_first(c, sink) ? HEFT_OK : heft_cast_losses_begin(&copying, c->err);
    if (!st && sink->ops->reserve && plan->file_bytes)
        st = sink->ops->reserve(sink, plan->file_bytes, c->err);
    if (!st)
        st = heft_planner_front(&c->p, sink, c->err);
    if (!st)
        st = plan->appended ? heft_copy_encoded(&copying, c->err) : heft_copy(&copying, c->err);
    if (!st)
        st = heft_watch_end(watch, c->err);
    if (!st)
        st = heft_cast_losses_report(&copying, c->err);
    if (!st)
        st = heft_planner_digests(&c->p, c->err);
    if (!st && plan->late && sink->ops->write_at)
        st = heft_planner_gaps(&c->p, sink, c->err);
    return st ? st : heft_planner_back(&c->p, sink, c->err);
}

/* ---- the input's checksums ---- */

static heft_passing passing(void *ctx, uint32_t part)
{
    return (heft_passing)((const conversion *)ctx)->passing[part];
}

/* A digest that the part which is copied has as well needs no second look. */
static bool is_vouched_for(const conversion *c, uint32_t part, uint32_t by)
{
    const heft_origin *o = c->origins.ptr;
    heft_str own = heft_ix_digest_of(&c->in->x, o[part].part);
    return !own.len || heft_str_eq(own, heft_ix_digest_of(&c->in->x, o[by].part));
}

/* Its parts pass by in pieces, or more than once. */
static void mark_made(conversion *c, uint32_t tensor)
{
    const heft_ix_tensor_row *row = heft_ix_row(&c->in->x, tensor);
    for (uint32_t i = row->first_part; i < row->first_part + row->part_count; i++) {
        c->passing[i] = HEFT_TIED;
        c->decodes |= heft_ix_part_row_at(&c->in->x, i)->encoding != HEFT_RAW;
    }
}

static heft_status mark_passing(conversion *c)
{
    const heft_origin *origins = c->origins.ptr;
    const uint32_t *same = c->p.plan.same;
    c->passing = heft_plan_alloc(&c->p.plan, c->in->x.parts.len);
    if (!c->passing)
        return HEFT_E_NOMEM;
    for (uint32_t i = 0; same && i < c->p.x.parts.len; i++)
        if (same[i] != i && !is_vouched_for(c, i, same[i]))
            c->passing[origins[i].part] = HEFT_TIED;
    for (uint32_t i = 0; i < c->p.plan.order_count; i++) {
        const heft_origin *o = &origins[c->p.plan.order[i]];
        if (o->making)
            mark_made(c, o->tensor);
        else
            c->passing[o->part] = HEFT_COPIED;
    }
    return HEFT_OK;
}

/* A stream cannot be taken back: there, everything is checked before the first byte. */
static heft_status checked_write(conversion *c, heft_sink *sink)
{
    heft_watch watch;
    bool is_stream = !sink->ops->write_at;
    heft_status st = mark_passing(c);
    if (st)
        return st;
    if (is_stream && !c->opt.no_verify)
        st = heft_check_all(c->in, c->err);
    else if (c->decodes && !c->opt.no_verify)
        st = heft_contents_demand(c->in, c->err);
    if (!st && counts_first(c, sink))
        st = count_casts(c);
    if (!st)
        st = heft_watch_begin(&watch, c->in, is_stream || c->opt.no_verify, passing, c, c->err);
    else
        return st;
    if (!st)
        st = write_out(c, sink, &watch);
    heft_watch_free(&watch);
    return st;
}

heft_status heft_convert_as(const heft_file *in, const heft_format *to, heft_sink *take,
                            const heft_convert_options *opt, const heft_converting *how,
                            heft_error *err)
{
    static const heft_converting plainly = { .ctx = NULL };
    heft_error own;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    if (opt)
        memcpy(&o, opt, opt->size < sizeof o ? opt->size : sizeof o);
    conversion c = {
        .in = in, .opt = o, .how = how ? how : &plainly, .err = heft_error_begin(err, &own)
    };
    heft_status st = heft_planner_init(&c.p, to, &o.write, c.err);
    heft_file_enter(in);     /* names and metadata are lent by the file as well */
    if (!st && !c.how->only) /* of some of the tensors: whoever chose them has measured all */
        st = heft_measured(in, c.err);
    if (!st)
        st = plan(&c);
    if (!st && o.dry_run)
        st = count_casts(&c);
    else if (!st)
        st = take ? checked_write(&c, take)
                  : heft_error_plain(c.err, HEFT_E_ARGUMENT, "there is no sink to write to");
    heft_status there = heft_file_leave(in, c.err);
    st = there ? there : st;
    if (!st && !o.dry_run && o.planned_bytes) /* compressed parts have shown their size */
        *o.planned_bytes = c.p.plan.file_bytes;
    heft_vec_free(&c.p.x.mem, &c.origins, sizeof(heft_origin));
    heft_planner_free(&c.p);
    heft_vocab_close(c.vocab);
    if (!st && !o.dry_run)
        st = take->ops->finish(take, c.err);
    else
        heft_sink_discard(take);
    return heft_error_end(c.err, st);
}

heft_status heft_convert(const heft_file *in, const heft_format *to, heft_sink *take,
                         const heft_convert_options *opt, heft_error *err)
{
    return heft_convert_as(in, to, take, opt, NULL, err);
}

void heft_sink_discard(heft_sink *s)
{
    if (s)
        s->ops->discard(s);
}
