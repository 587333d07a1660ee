/* lora_extract.c - makes an adapter of two models: compares them, and opens a file whose matrices
 * are found when they are read. */
#include "base/error.h"
#include "base/sized.h"
#include "base/text.h"
#include "lora/extraction.h"
#include "scheme/refuse.h"

enum { MOST_RANK = 4096 };
static const char purpose[] = "to extract an adapter";

/* ---- which tensors differ ---- */

static bool same_shape(const heft_tensor *a, const heft_tensor *b)
{
    bool same = a->rank == b->rank;
    for (uint32_t i = 0; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    return same;
}

/* Embeddings have the matrices of PEFT in the other order. */
static bool is_embedding(heft_str name)
{
    static const char *const words[] = { "embed_tokens.weight",
                                         "wte.weight",
                                         "wpe.weight",
                                         "tok_embeddings.weight",
                                         "word_embeddings.weight",
                                         "position_embeddings.weight",
                                         "token_embedding.weight",
                                         "position_embedding.weight",
                                         "token_type_embeddings.weight" };
    bool is = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        is = is || heft_str_ends(name, words[i]);
    return is;
}

/* Compare both tensors, as f32.  *differs: they differ. */
static heft_status compare(const heft_extracted_row *row, bool *differs, heft_error *err)
{
    const heft_allocator *al = row->tuned.f->host->allocator;
    size_t bytes = 2 * (size_t)HEFT_COMBINE_STRIP * sizeof(float);
    float *a = heft_alloc(al, bytes, 64), *b = a ? a + HEFT_COMBINE_STRIP : NULL;
    heft_combine_reader left = { .in = NULL }, right = { .in = NULL };
    heft_status st = a ? HEFT_OK : heft_error_no_memory(err, purpose);
    *differs = false;
    for (uint64_t at = 0, n; at < row->tuned.count && !st && !*differs; at += n) {
        n = row->tuned.count - at;
        n = n < HEFT_COMBINE_STRIP ? n : HEFT_COMBINE_STRIP;
        st = heft_combine_read(&left, &row->base, at, (size_t)n, a, err);
        if (!st)
            st = heft_combine_read(&right, &row->tuned, at, (size_t)n, b, err);
        for (uint64_t i = 0; i < n && !st && !*differs; i++)
            *differs = !(a[i] == b[i]);
    }
    heft_combine_reader_free(&left);
    heft_combine_reader_free(&right);
    heft_free(al, a, bytes, 64);
    return st;
}

static heft_status add_row(heft_extraction *x, const heft_extracted_row *row)
{
    return heft_vec_add(&x->mem, &x->rows, row, sizeof *row)
               ? HEFT_OK
               : heft_error_no_memory(x->err, purpose);
}

/* Say why a tensor that differs is not in the adapter; NULL: it is. */
static const char *reason_of(const heft_extracted_row *row)
{
    if (!heft_str_ends(row->item.name, ".weight"))
        return "not a weight";
    if (row->tuned.rank != 2)
        return "not a matrix";
    return heft_combine_is_exact(row->tuned.dtype) && heft_combine_is_exact(row->base.dtype)
               ? NULL
               : "f32 does not represent its numbers";
}

static void set_weight(heft_extraction *x, heft_extracted_row *row)
{
    row->rows = row->tuned.dims[0];
    row->columns = row->tuned.dims[1];
    uint64_t least = row->rows < row->columns ? row->rows : row->columns;
    row->item.rank = x->opt.rank < least ? x->opt.rank : (uint32_t)least;
    row->is_embedding = is_embedding(row->item.name);
    row->weight = x->weight_count++;
}

static heft_status add_tensor(heft_extraction *x, uint32_t i)
{
    heft_tensor t = heft_tensor_at(x->tuned, i);
    uint32_t other = heft_tensor_find(x->base, t.name);
    heft_extracted_row row = { .item = { .name = t.name } };
    bool differs = true;
    if (other == HEFT_NONE) {
        row.item.reason = "only in the tuned model";
        return add_row(x, &row);
    }
    heft_tensor b = heft_tensor_at(x->base, other);
    if (!same_shape(&t, &b)) {
        row.item.reason = "another shape";
        return add_row(x, &row);
    }
    HEFT_TRY(
        heft_combine_input_open(&row.tuned, x->tuned, HEFT_INPUT_SECOND, i, x->opt.verify, x->err));
    HEFT_TRY(heft_combine_input_open(&row.base, x->base, HEFT_INPUT_FIRST, other, x->opt.verify,
                                     x->err));
    HEFT_TRY(compare(&row, &differs, x->err));
    if (!differs)
        return HEFT_OK;
    HEFT_TRY(heft_error_input(x->err, heft_refuse_cast(x->tuned, i, x->err), HEFT_INPUT_SECOND));
    HEFT_TRY(heft_error_input(x->err, heft_refuse_cast(x->base, other, x->err), HEFT_INPUT_FIRST));
    row.item.reason = reason_of(&row);
    if (!row.item.reason)
        set_weight(x, &row);
    return add_row(x, &row);
}

static heft_status add_tensors(heft_extraction *x)
{
    for (uint32_t i = 0; i < heft_tensor_count(x->tuned); i++)
        HEFT_TRY(add_tensor(x, i));
    for (uint32_t i = 0; i < heft_tensor_count(x->base); i++) {
        heft_str name = heft_tensor_at(x->base, i).name;
        heft_extracted_row row = { .item = { .name = name, .reason = "only in the base" } };
        if (heft_tensor_find(x->tuned, name) == HEFT_NONE)
            HEFT_TRY(add_row(x, &row));
    }
    if (x->weight_count)
        return HEFT_OK;
    return heft_error_plain(x->err, HEFT_E_NOTFOUND,
                            x->rows.len ? "no matrix differs: there is nothing for an adapter"
                                        : "both models are equal: there is nothing for an adapter");
}

/* ---- the matrices ---- */

static void tell(heft_extracted_row *row, const heft_factors *f)
{
    if (!heft_atomic_set_if_zero(&row->is_told, 1))
        return;
    row->item.difference = f->difference;
    row->item.remainder = f->remainder;
    heft_atomic_publish(&row->is_known, 1);
}

static float at_down(const heft_factors *f, const heft_extracted_row *row, uint64_t e)
{
    if (!row->is_embedding) /* rank x columns */
        return f->down[e];
    uint64_t k = heft_div(e, row->rows);
    return f->up[(e - k * row->rows) * row->item.rank + k];
}

static float at_up(const heft_factors *f, const heft_extracted_row *row, uint64_t e)
{
    if (!row->is_embedding) /* rows x rank */
        return f->up[e];
    uint64_t c = heft_div(e, row->item.rank);
    return f->down[(e - c * row->item.rank) * row->columns + c];
}

/* Tensors 2 i and 2 i + 1 are the matrices A and B of weight i. */
static heft_status compute(void *ctx, void *scratch, uint32_t i, uint64_t from, size_t count,
                           float *out, heft_error *err)
{
    heft_extraction *x = ctx;
    heft_factors *f = scratch;
    heft_extracted_row *row = heft_extracted_row_at(x, x->weights[i / 2]);
    HEFT_TRY(heft_factors_find(f, row, x->opt.seed, err));
    tell(row, f);
    for (size_t k = 0; k < count; k++)
        out[k] = (i % 2 ? at_up : at_down)(f, row, from + k);
    return HEFT_OK;
}

static void free_scratch(void *ctx, void *scratch)
{
    (void)ctx;
    heft_factors_free(scratch);
}

static const heft_combine_ops ops = { .scratch_bytes = sizeof(heft_factors),
                                      .floats = compute,
                                      .free_scratch = free_scratch };

/* ---- the file ---- */

heft_str heft_extracted_module(const heft_extracted_row *row)
{
    heft_str name = row->item.name;
    name.len -= sizeof ".weight" - 1;
    return name;
}

static heft_status set_tensor(heft_extraction *x, uint32_t i, heft_combine_tensor *t,
                              uint64_t dims[2])
{
    static const char *const suffixes[2][2] = { { ".lora_A.weight", ".lora_B.weight" },
                                                { ".lora_embedding_A", ".lora_embedding_B" } };
    const heft_extracted_row *row = heft_extracted_row_at(x, x->weights[i / 2]);
    bool is_up = i % 2;
    uint64_t inputs = row->is_embedding ? row->rows : row->columns;
    uint64_t outputs = row->is_embedding ? row->columns : row->rows;
    dims[0] = is_up ? outputs : row->item.rank;
    dims[1] = is_up ? row->item.rank : inputs;
    *t = (heft_combine_tensor){
        .place = HEFT_NONE, .dtype = HEFT_F32, .rank = 2, .dims = dims, .group = i / 2 + 1
    };
    t->name = heft_arena_join(&x->arena, heft_lit("base_model.model."), heft_extracted_module(row),
                              heft_lit(suffixes[row->is_embedding][is_up]));
    return t->name.ptr ? HEFT_OK : heft_error_no_memory(x->err, purpose);
}

static heft_status open_file(heft_extraction *x)
{
    uint32_t count = 2 * x->weight_count, tensors = heft_tensor_count(x->base);
    size_t bytes = (size_t)count * sizeof(heft_combine_tensor);
    size_t dim_bytes = (size_t)count * 2 * sizeof(uint64_t);
    heft_combine_tensor *all = heft_mem_alloc(&x->mem, bytes);
    uint64_t *dims = heft_mem_alloc(&x->mem, dim_bytes);
    uint8_t *dropped = heft_mem_alloc(&x->mem, (size_t)tensors + 1);
    heft_status st = all && dims && dropped ? HEFT_OK : heft_error_no_memory(x->err, purpose);
    for (uint32_t i = 0; i < count && !st; i++)
        st = set_tensor(x, i, &all[i], dims + 2 * (size_t)i);
    if (!st)
        memset(dropped, 1, (size_t)tensors + 1);
    const heft_file *files[2] = { x->base, x->tuned };
    heft_combination c = { .files = files,
                           .file_count = 2,
                           .tensors = all,
                           .count = count,
                           .is_dropped = dropped,
                           .label = heft_lit(""),
                           .leaves_values = true,
                           .ops = &ops,
                           .ctx = x };
    if (!st)
        st = heft_combine_open(&x->out, &c, x->err);
    heft_mem_free(&x->mem, all, bytes);
    heft_mem_free(&x->mem, dims, dim_bytes);
    heft_mem_free(&x->mem, dropped, (size_t)tensors + 1);
    return st;
}

static heft_status list_weights(heft_extraction *x)
{
    x->weights = heft_mem_alloc(&x->mem, ((size_t)x->weight_count + 1) * sizeof *x->weights);
    if (!x->weights)
        return heft_error_no_memory(x->err, purpose);
    for (uint32_t i = 0; i < x->rows.len; i++)
        if (!heft_extracted_row_at(x, i)->item.reason)
            x->weights[heft_extracted_row_at(x, i)->weight] = i;
    return HEFT_OK;
}

static heft_status check_rank(const heft_extraction *x)
{
    if (x->opt.rank && x->opt.rank <= MOST_RANK)
        return HEFT_OK;
    return heft_error_plain(x->err, HEFT_E_ARGUMENT, "the rank must be from 1 to %U",
                            (uint64_t)MOST_RANK);
}

heft_status heft_extraction_open(heft_extraction **out, const heft_file *base,
                                 const heft_file *tuned, const heft_extract_options *opt,
                                 heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    const heft_allocator *al = base->host->allocator;
    heft_extraction *x = heft_alloc(al, sizeof *x, 64);
    *out = NULL;
    if (!x)
        return heft_error_end(err, heft_error_no_memory(err, purpose));
    *x = (heft_extraction){
        .base = base, .tuned = tuned, .opt = HEFT_EXTRACT_OPTIONS_INIT, .err = err
    };
    x->mem = (heft_memory){ al, UINT64_MAX, 0 };
    x->arena.mem = &x->mem;
    heft_status st = heft_sized_copy(&x->opt, sizeof x->opt, opt, err);
    heft_file_enter(base); /* names are mapped */
    heft_file_enter(tuned);
    st = st ? st : check_rank(x);
    st = st ? st : add_tensors(x);
    st = st ? st : list_weights(x);
    st = st ? st : open_file(x);
    st = heft_file_leave_input(tuned, HEFT_INPUT_SECOND, st, err);
    st = heft_file_leave_input(base, HEFT_INPUT_FIRST, st, err);
    x->err = NULL;
    if (st)
        heft_extraction_close(x);
    else
        *out = x;
    return heft_error_end(err, st);
}

void heft_extraction_close(heft_extraction *x)
{
    if (!x)
        return;
    const heft_allocator *al = x->base->host->allocator;
    heft_file_close(x->out);
    heft_mem_free(&x->mem, x->weights, ((size_t)x->weight_count + 1) * sizeof *x->weights);
    heft_vec_free(&x->mem, &x->rows, sizeof(heft_extracted_row));
    heft_arena_free(&x->arena);
    heft_free(al, x, sizeof *x, 64);
}

const heft_file *heft_extraction_file(const heft_extraction *x)
{
    return x->out;
}

uint32_t heft_extraction_count(const heft_extraction *x)
{
    return x->rows.len;
}

heft_extracted heft_extraction_at(const heft_extraction *x, uint32_t i)
{
    if (i >= x->rows.len)
        return (heft_extracted){ .name = { NULL, 0 } };
    const heft_extracted_row *row = heft_extracted_row_at(x, i);
    bool is_known = heft_atomic_load_published(&row->is_known);
    heft_extracted item = { .name = row->item.name,
                            .reason = row->item.reason,
                            .rank = row->item.rank,
                            .is_known = is_known };
    if (is_known) {
        item.difference = row->item.difference;
        item.remainder = row->item.remainder;
    }
    return item;
}
