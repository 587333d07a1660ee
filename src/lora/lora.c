/* lora.c - adapters merged into a model: the object. */
#include "base/error.h"
#include "base/sized.h"
#include "base/text.h"
#include "lora/merging.h"

static const char purpose[] = "to merge adapters";

/* Sort the targets by tensor of the base, and list what is done to each. */
static heft_status sort_targets(heft_lora *l)
{
    heft_vec sorted = { NULL, 0, 0 };
    uint32_t tensors = heft_ix_tensors(&l->base->x);
    for (uint32_t i = 0; i < tensors; i++) {
        const heft_lora_target *t = l->target_of[i] ? heft_lora_target_at(l, l->target_of[i] - 1)
                                                    : NULL;
        if (!t)
            continue;
        if (!heft_vec_add(&l->mem, &sorted, t, sizeof *t)) {
            heft_vec_free(&l->mem, &sorted, sizeof *t);
            return heft_error_no_memory(l->err, purpose);
        }
    }
    heft_vec_free(&l->mem, &l->targets, sizeof(heft_lora_target));
    l->targets = sorted;
    return HEFT_OK;
}

static heft_status list_items(heft_lora *l)
{
    for (uint32_t i = 0; i < l->targets.len; i++) {
        const heft_lora_target *t = heft_lora_target_at(l, i);
        for (uint32_t k = t->first; k != HEFT_NONE; k = heft_lora_step_at(l, k)->next) {
            const heft_lora_step *s = heft_lora_step_at(l, k);
            heft_lora_item item = { .name = t->name,
                                    .adapter = s->adapter,
                                    .how = s->how,
                                    .rank = s->rank,
                                    .scale = s->scale };
            if (!heft_vec_add(&l->mem, &l->items, &item, sizeof item))
                return heft_error_no_memory(l->err, purpose);
        }
    }
    return HEFT_OK;
}

static heft_combine_tensor row_of(const heft_lora *l, const heft_lora_target *t)
{
    const heft_lora_step *last = heft_lora_step_at(l, t->last);
    bool is_bytes = last->replaces && last->left.in.dtype == t->dtype;
    return (heft_combine_tensor){ .place = t->tensor,
                                  .dtype = t->dtype,
                                  .rank = t->rank,
                                  .dims = t->dims,
                                  .is_bytes = is_bytes };
}

/* Open the file of the merged model. */
static heft_status open_file(heft_lora *l, const heft_lora_adapter *adapters, uint32_t count)
{
    size_t row_bytes = ((size_t)l->targets.len + 1) * sizeof(heft_combine_tensor);
    size_t file_bytes = ((size_t)count + 1) * sizeof(heft_file *);
    heft_combine_tensor *rows = heft_mem_alloc(&l->mem, row_bytes);
    const heft_file **files = heft_mem_alloc(&l->mem, file_bytes);
    heft_status st = rows && files ? HEFT_OK : heft_error_no_memory(l->err, purpose);
    for (uint32_t i = 0; i < l->targets.len && !st; i++)
        rows[i] = row_of(l, heft_lora_target_at(l, i));
    for (uint32_t i = 0; i <= count && !st; i++)
        files[i] = i ? adapters[i - 1].f : l->base;
    heft_combination c = { .files = files,
                           .file_count = count + 1,
                           .tensors = rows,
                           .count = l->targets.len,
                           .label =
                               heft_lit(""), /* errors name the tensor: no file has its bytes */
                           .allow_nan = l->opt.allow_nan,
                           .ops = &heft_lora_ops,
                           .ctx = l };
    if (!st)
        st = heft_combine_open(&l->out, &c, l->err);
    heft_mem_free(&l->mem, rows, row_bytes);
    heft_mem_free(&l->mem, files, file_bytes);
    return st;
}

static heft_status plan_all(heft_lora *l, const heft_lora_adapter *adapters, uint32_t count)
{
    heft_lora_base base = { .f = l->base, .mem = &l->mem, .arena = &l->arena, .opt = &l->opt };
    size_t bytes = ((size_t)heft_ix_tensors(&l->base->x) + 1) * sizeof *l->target_of;
    l->target_of = heft_mem_alloc(&l->mem, bytes);
    if (!l->target_of)
        return heft_error_no_memory(l->err, purpose);
    memset(l->target_of, 0, bytes);
    heft_status st = heft_lora_base_open(&base) ? HEFT_OK : heft_error_no_memory(l->err, purpose);
    for (uint32_t i = 0; i < count && !st; i++)
        if (!(adapters[i].scale - adapters[i].scale == 0))
            st = heft_error_plain(l->err, HEFT_E_ARGUMENT, "the scale of adapter %U is not finite",
                                  (uint64_t)i + 1);
    for (uint32_t i = 0; i < count && !st; i++) {
        heft_file_enter(adapters[i].f); /* names are mapped */
        st = heft_lora_plan(l, &adapters[i], i, &base);
        if (!l->err->input)
            st = heft_error_input(l->err, st, heft_lora_input(i));
        st = heft_file_leave_input(adapters[i].f, heft_lora_input(i), st, l->err);
    }
    heft_lora_base_free(&base);
    if (!st)
        st = sort_targets(l);
    heft_mem_free(&l->mem, l->target_of, bytes);
    l->target_of = NULL;
    return st ? st : list_items(l);
}

heft_status heft_lora_open(heft_lora **out, const heft_file *base,
                           const heft_lora_adapter *adapters, uint32_t count,
                           const heft_lora_options *opt, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    const heft_allocator *al = base->host->allocator;
    heft_lora *l = heft_alloc(al, sizeof *l, 64);
    *out = NULL;
    if (!l)
        return heft_error_end(err, heft_error_no_memory(err, purpose));
    *l = (heft_lora){ .base = base, .opt = HEFT_LORA_OPTIONS_INIT, .err = err };
    l->mem = (heft_memory){ al, UINT64_MAX, 0 };
    l->arena.mem = &l->mem;
    heft_status st = heft_sized_copy(&l->opt, sizeof l->opt, opt, err);
    heft_file_enter(base); /* names are mapped */
    if (!st)
        st = plan_all(l, adapters, count);
    if (!st)
        st = open_file(l, adapters, count);
    st = heft_file_leave_input(base, HEFT_INPUT_FIRST, st, err);
    l->err = NULL;
    if (st)
        heft_lora_close(l);
    else
        *out = l;
    return heft_error_end(err, st);
}

void heft_lora_close(heft_lora *l)
{
    if (!l)
        return;
    const heft_allocator *al = l->base->host->allocator;
    heft_file_close(l->out);
    heft_vec_free(&l->mem, &l->steps, sizeof(heft_lora_step));
    heft_vec_free(&l->mem, &l->targets, sizeof(heft_lora_target));
    heft_vec_free(&l->mem, &l->items, sizeof(heft_lora_item));
    heft_arena_free(&l->arena);
    heft_free(al, l, sizeof *l, 64);
}

const heft_file *heft_lora_file(const heft_lora *l)
{
    return l->out;
}

uint32_t heft_lora_count(const heft_lora *l)
{
    return l->items.len;
}

heft_lora_item heft_lora_at(const heft_lora *l, uint32_t i)
{
    return i < l->items.len ? ((const heft_lora_item *)l->items.ptr)[i]
                            : (heft_lora_item){ .how = NULL };
}
