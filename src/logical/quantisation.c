/* quantisation.c - decides what becomes of each tensor of a model that is quantised, and opens the
 * result as a file. */
#include "logical/quantisation.h"

#include "base/checked_math.h"
#include "base/error.h"
#include "base/sized.h"
#include "base/text.h"
#include "core/shards/shard_join.h"
#include "logical/logical.h"

static const char purpose[] = "to quantise a model";

/* ---- tensors ---- */

static uint64_t stored_bytes(const heft_index *x, uint32_t tensor)
{
    const heft_ix_tensor_row *t = heft_ix_row(x, tensor);
    uint64_t sum = 0;
    for (uint32_t k = 0; k < t->part_count; k++)
        sum += heft_ix_part_row_at(x, t->first_part + k)->stored;
    return sum;
}

static heft_status add_row(heft_quantisation *q, const heft_quantised_row *row)
{
    return heft_vec_add(&q->mem, &q->rows, row, sizeof *row)
               ? HEFT_OK
               : heft_error_no_memory(q->err, purpose);
}

static heft_status verify_part(const heft_quantisation *q, uint32_t part)
{
    return q->opt.verify ? heft_part_verify(NULL, q->f, part, q->err) : HEFT_OK;
}

/* Add the encoding at all[count], which takes the place of a stored tensor. */
static heft_status add_encoding(heft_quantisation *q, uint32_t tensor, heft_quantised_row *row)
{
    heft_encoded *e = &q->all[q->count];
    uint64_t at = 0;
    if (q->count) {
        const heft_encoded_part *last = &e[-1].parts[e[-1].part_count - 1];
        at = last->start + last->bytes;
    }
    for (uint32_t k = 0; k < e->part_count; k++) {
        heft_encoded_part *p = &e->parts[k];
        p->start = at;
        row->item.new_bytes += p->bytes;
        if (!heft_add(&at, at, p->bytes) || at >> HEFT_GLOBAL_OFFSET_BITS)
            return heft_error_plain(q->err, HEFT_E_LIMIT, "the quantised tensors exceed 2^%U bytes",
                                    (uint64_t)HEFT_GLOBAL_OFFSET_BITS);
    }
    row->item.scheme = e->encoder->scheme;
    row->is_exempt = row->is_exempt && !e->encoder->scheme;
    if (q->opt.quality && e->encoder->scheme)
        HEFT_TRY(heft_quality_add(&e->quality, q->opt.quality, e->name, e->from, e->encoder->scheme,
                                  q->err));
    q->number[tensor] = ++q->count;
    q->is_kept[tensor] = 0;
    return add_row(q, row);
}

static heft_status refuse_lossy(const heft_quantisation *q, heft_str name, heft_str how)
{
    heft_status st = heft_error_plain(
        q->err, HEFT_E_UNSUPPORTED,
        "tensor %q is quantised already (%q): to quantise it again loses more", name, how);
    return heft_error_rule(q->err, st, "heft/requantise");
}

/* Return why a tensor with such numbers is not quantised, or NULL, and set what the row says of
 * it. */
static const char *exempt(const heft_quantisation *q, uint32_t tensor, heft_quantised_row *row,
                          uint32_t rank)
{
    heft_dtype type = row->item.from;
    heft_tensor t = heft_tensor_at(q->f, tensor);
    heft_quantise_wish wish = q->opt.wish ? q->opt.wish(q->opt.ctx, &t) : HEFT_QUANTISE_BY_DEFAULT;
    const heft_exemption *left = heft_left_alone(row->item.name, rank);
    bool is_float = heft_dtype_kind_of(type) == HEFT_DTYPE_BLOCK ||
                    (heft_dtype_is_float(type) && type != HEFT_F8_E8M0);
    row->item.wish = wish;
    /* Numbers of 8 bits and packed ones would be read as a weight whose scale is missing. */
    bool is_matrix = is_float && (!left || left->is_matrix);
    bool looks_quantised = rank > 1 && (heft_is_float8(type) || heft_is_packed(type));
    row->is_exempt = (is_matrix || looks_quantised) && heft_str_ends(row->item.name, ".weight");
    if (wish == HEFT_QUANTISE_NEVER)
        return "not chosen";
    if (!is_float)
        return "no floating-point numbers";
    return wish == HEFT_QUANTISE_BY_DEFAULT && left ? left->why : NULL;
}

/* Say how the numbers of a source with a loss are stored. */
static const char *reason_of(const heft_encoded *e)
{
    return !e->is_copy ? "quantised again"
           : e->decoding && e->factor != e->decoding->factor
               ? "numbers copied, the factor is its reciprocal"
               : "numbers copied";
}

/* Describe how the tensor, or what `d` decodes, is encoded at all[count]; *is_encoded: it is. `how`
 * is the form that its numbers have lost digits by; empty: none. */
static heft_status try_encoding(heft_quantisation *q, uint32_t tensor, const heft_decoding *d,
                                uint32_t rank, heft_str how, heft_quantised_row *row,
                                bool *is_encoded)
{
    heft_encoded *e = &q->all[q->count];
    const char *why = exempt(q, tensor, row, rank);
    *e = (heft_encoded){ .f = q->f,
                         .encoder = q->choice.row->encoder,
                         .choice = &q->choice,
                         .tensor = tensor,
                         .decoding = d,
                         .allow_nan = q->opt.allow_nan };
    if (!why)
        HEFT_TRY(heft_encoded_open(e, &why, q->err));
    *is_encoded = !why;
    row->item.reason = why ? why : how.len ? reason_of(e) : NULL;
    return *is_encoded && how.len && !e->is_copy && !q->opt.requantise
               ? refuse_lossy(q, row->item.name, how)
               : HEFT_OK;
}

/* A tensor that is stored as numbers.  Blocks are taken apart where the method stores integers. */
static heft_status add_plain(heft_quantisation *q, uint32_t i)
{
    const heft_ix_tensor_row *t = heft_ix_row(&q->f->x, i);
    heft_decoding *d = NULL;
    heft_quantised_row row = { { .name = heft_ix_name(&q->f->x, i), .from = t->dtype }, false };
    heft_str how = heft_lit(heft_dtype_is_lossy(t->dtype) ? heft_dtype_name(t->dtype) : "");
    bool is_encoded;
    row.item.bytes = stored_bytes(&q->f->x, i);
    if (q->choice.row->encoder->layout && heft_dtype_kind_of(t->dtype) == HEFT_DTYPE_BLOCK) {
        d = &q->decoded[q->decoded_count++];
        HEFT_TRY(heft_decoding_open_blocks(d, q->f, i, q->err));
    }
    HEFT_TRY(try_encoding(q, i, d, t->rank, how, &row, &is_encoded));
    if (!is_encoded) {
        row.item.new_bytes = row.item.bytes;
        return add_row(q, &row);
    }
    HEFT_TRY(verify_part(q, d ? d->part[HEFT_ROLE_WEIGHT].part : q->all[q->count].part));
    return add_encoding(q, i, &row);
}

/* A quantised tensor is decoded, and encoded if it is chosen. */
static heft_status add_quantised(heft_quantisation *q, uint32_t i)
{
    heft_quantised of = heft_schemes_at(q->schemes, i);
    heft_decoding *d = &q->decoded[q->decoded_count++];
    HEFT_TRY(heft_decoding_open(d, q->f, q->schemes, i, q->err));
    d->refuses_infinity = true;
    uint32_t weight = d->part[HEFT_ROLE_WEIGHT].tensor;
    heft_quantised_row row = { { .name = d->name, .from = d->dtype }, false };
    bool is_encoded;
    for (uint32_t k = 0; k < of.part_count; k++) {
        uint32_t tensor = heft_schemes_part_at(q->schemes, i, k).tensor;
        row.item.bytes += stored_bytes(&q->f->x, tensor);
        q->is_kept[tensor] = 0;
    }
    for (int k = 0; k < HEFT_ROLES; k++)
        if (d->part[k].tensor != HEFT_NONE)
            HEFT_TRY(verify_part(q, d->part[k].part));
    HEFT_TRY(try_encoding(q, weight, d, d->rank, of.scheme, &row, &is_encoded));
    if (!is_encoded && row.item.wish != HEFT_QUANTISE_ALWAYS)
        row.item.reason = "decoded";
    if (!is_encoded)
        HEFT_TRY(heft_encoded_open_decoded(&q->all[q->count], q->err));
    return add_encoding(q, weight, &row);
}

static heft_status add_tensors(heft_quantisation *q)
{
    for (uint32_t i = 0; i < heft_ix_tensors(&q->f->x); i++) {
        uint32_t quantised = heft_schemes_find(q->schemes, i);
        bool is_first = quantised != HEFT_NONE &&
                        heft_schemes_part_at(q->schemes, quantised, 0).tensor == i;
        if (quantised == HEFT_NONE)
            HEFT_TRY(add_plain(q, i));
        else if (is_first)
            HEFT_TRY(add_quantised(q, quantised));
    }
    return HEFT_OK;
}

/* ---- the file ---- */

/* Make the name of a part, in the arena; ptr NULL: no memory. */
static heft_str name_of(heft_index *x, const heft_encoded *e, const heft_encoded_part *p)
{
    heft_str base = e->name, suffix = heft_lit(p->suffix);
    if (*suffix.ptr == '/') {
        base.len -= sizeof "weight" - 1;
        suffix = heft_lit(p->suffix + 1);
    }
    char *text = heft_arena_alloc(&x->arena, base.len + suffix.len + 1, 1);
    if (!text)
        return (heft_str){ NULL, 0 };
    if (base.len)
        memcpy(text, base.ptr, base.len);
    memcpy(text + base.len, suffix.ptr, suffix.len);
    return (heft_str){ text, base.len + suffix.len };
}

/* Give the last tensor the layout of its encoder, and the type. */
static heft_status describe(heft_quantisation *q, const heft_encoded *e)
{
    heft_index *x = &q->out->x;
    uint32_t tensor = heft_ix_tensors(x) - 1;
    heft_out o = heft_out_counting();
    e->encoder->put_type(e, &o);
    size_t len = (size_t)o.total;
    o = (heft_out){ .buf = heft_arena_alloc(&x->arena, len, 1), .cap = len };
    if (!o.buf)
        return heft_error_no_memory(q->err, purpose);
    e->encoder->put_type(e, &o);
    HEFT_TRY(heft_ix_set_layout(x, tensor, heft_lit(e->encoder->layout)));
    return heft_ix_attr_text(x, tensor, heft_lit("stored_dtype"),
                             (heft_str){ (const char *)o.buf, len });
}

/* Add the parts in the place of a tensor. */
static heft_status add_instead(void *ctx, uint32_t tensor)
{
    heft_quantisation *q = ctx;
    heft_index *x = &q->out->x;
    if (!q->number[tensor])
        return HEFT_OK;
    const heft_encoded *e = &q->all[q->number[tensor] - 1];
    for (uint32_t k = 0; k < e->part_count; k++) {
        const heft_encoded_part *p = &e->parts[k];
        heft_str name = name_of(x, e, p);
        heft_tensor row = { .name = name, .dtype = p->dtype, .rank = p->rank, .dims = p->dims };
        HEFT_TRY(name.ptr ? heft_join_computed(q->out, &row, q->shard, p->start, p->bytes)
                          : heft_error_no_memory(q->err, purpose));
    }
    return e->encoder->layout ? describe(q, e) : HEFT_OK;
}

static heft_status add_source(heft_quantisation *q)
{
    heft_source *source;
    HEFT_TRY(heft_quantised_source(&source, q, q->err));
    /* Errors name the tensor: no file has its bytes. */
    return heft_join_source(q->out, heft_lit(""), source, &q->shard);
}

static heft_status fill(heft_quantisation *q)
{
    heft_index *x = &q->out->x;
    const heft_index *from = &q->f->x;
    heft_status st = add_source(q);
    if (!st)
        st = heft_ix_merge_with(x, from, q->out->joined_files->first_shard, (heft_str){ NULL, 0 },
                                q->is_kept, add_instead, q);
    if (!st)
        st = heft_logical_values(x, from, false, q->f->host->allocator);
    if (!st)
        st = heft_ix_build_name_table(x);
    if (!st && x->lost_notes)
        st = heft_error_no_memory(q->err, purpose);
    x->err = NULL;
    return st;
}

/* ---- the object ---- */

static heft_status allocate(heft_quantisation *q)
{
    size_t tensors = heft_ix_tensors(&q->f->x), quantised = heft_schemes_count(q->schemes);
    q->room = (uint32_t)tensors + 1;
    q->decoded_room = (uint32_t)quantised + 1;
    if (q->choice.row->encoder->layout)
        q->decoded_room += (uint32_t)tensors;
    q->all = heft_mem_alloc(&q->mem, q->room * sizeof *q->all);
    q->decoded = heft_mem_alloc(&q->mem, q->decoded_room * sizeof *q->decoded);
    q->number = heft_mem_alloc(&q->mem, q->room * sizeof *q->number);
    q->is_kept = heft_mem_alloc(&q->mem, q->room);
    if (!q->all || !q->decoded || !q->number || !q->is_kept)
        return heft_error_no_memory(q->err, purpose);
    memset(q->number, 0, q->room * sizeof *q->number);
    memset(q->is_kept, 1, q->room);
    return HEFT_OK;
}

static heft_status plan(heft_quantisation *q)
{
    heft_str method = heft_lit(q->opt.method ? q->opt.method : "");
    HEFT_TRY(heft_encode_choice_read(&q->choice, method, q->err));
    if (!q->opt.schemes)
        HEFT_TRY(heft_schemes_open(&q->own_schemes, q->f, NULL, q->err));
    q->schemes = q->opt.schemes ? q->opt.schemes : q->own_schemes;
    if (heft_schemes_count(q->schemes))
        HEFT_TRY(heft_refuse_unscaled(q->f, q->schemes, q->err));
    HEFT_TRY(allocate(q));
    return add_tensors(q);
}

heft_status heft_quantisation_open(heft_quantisation **out, const heft_file *f,
                                   const heft_quantise_options *opt, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    const heft_allocator *al = f->host->allocator;
    heft_quantisation *q = heft_alloc(al, sizeof *q, 64);
    *out = NULL;
    if (!q)
        return heft_error_no_memory(err, purpose);
    *q = (heft_quantisation){ .f = f, .opt = HEFT_QUANTISE_OPTIONS_INIT, .err = err };
    q->mem = (heft_memory){ al, UINT64_MAX, 0 };
    heft_status st = heft_sized_copy(&q->opt, sizeof q->opt, opt, err);
    heft_file_enter(f); /* names are mapped */
    if (!st)
        st = plan(q);
    if (!st && !q->opt.plan_only)
        st = heft_quantise_largest(q, err);
    if (!st)
        st = heft_join_begin(&q->out, &f, 1, 1, err);
    if (!st)
        st = fill(q);
    st = heft_file_leave_after(f, st, err);
    st = heft_join_end(&q->out, st, err);
    if (st)
        heft_quantisation_close(q);
    else
        *out = q;
    return st;
}

void heft_quantisation_close(heft_quantisation *q)
{
    if (!q)
        return;
    const heft_allocator *al = q->f->host->allocator;
    heft_file_close(q->out);
    heft_schemes_close(q->own_schemes);
    heft_mem_free(&q->mem, q->all, q->room * sizeof *q->all);
    heft_mem_free(&q->mem, q->decoded, q->decoded_room * sizeof *q->decoded);
    heft_mem_free(&q->mem, q->number, q->room * sizeof *q->number);
    heft_mem_free(&q->mem, q->is_kept, q->room);
    heft_vec_free(&q->mem, &q->rows, sizeof(heft_quantised_row));
    heft_free(al, q, sizeof *q, 64);
}

const heft_file *heft_quantisation_file(const heft_quantisation *q)
{
    return q->out;
}

uint32_t heft_quantisation_count(const heft_quantisation *q)
{
    return q->rows.len;
}

heft_quantise_item heft_quantisation_at(const heft_quantisation *q, uint32_t i)
{
    if (i >= q->rows.len)
        return (heft_quantise_item){ .scheme = NULL };
    return ((const heft_quantised_row *)q->rows.ptr)[i].item;
}

heft_quantise_method heft_quantise_method_at(uint32_t i)
{
    const heft_quantise_row *row = heft_quantise_row_at(i);
    return row ? (heft_quantise_method){ row->name, row->options, row->summary }
               : (heft_quantise_method){ NULL, NULL, NULL };
}
