/* map_file.c - opens the model that a file is under a map.
 *
 * Matches of one rule that give the same tensors are a group.  A tensor that only has another name
 * keeps its parts and checksums; the results of other groups are in a source, which is the last
 * shard of the model. */
#include "map/map_file.h"
#include "base/error.h"
#include "base/sized.h"
#include "base/sort.h"
#include "base/text.h"
#include "core/shards/shard_join.h"
#include "model/names.h"
#include "model/values.h"

static heft_status no_memory(const heft_map_run *a)
{
    return heft_error_no_memory(a->err, "to apply a map");
}

static uint32_t line_of(const heft_map_run *a, uint32_t rule)
{
    return rule == HEFT_NONE ? 0 : HEFT_MAP_AT(a->m, rules, heft_map_rule, rule)->line;
}

/* Add the tensors that the weights lack; they are in the place of none. */
static heft_status add_extras(heft_map_run *a)
{
    for (uint32_t i = 0; a->opt.gguf; i++) {
        heft_gguf_extra e = heft_gguf_metadata_extra(a->opt.gguf, i);
        if (!e.name)
            break;
        heft_map_row row = { .name = heft_str_from(e.name),
                             .dims = { e.count },
                             .rank = 1,
                             .rule = HEFT_NONE,
                             .place = HEFT_NONE };
        if (!heft_vec_add(&a->matches.mem, &a->rows, &row, sizeof row))
            return no_memory(a);
        HEFT_TRY(heft_map_add_vector(&a->gather, e.values, e.count, a->err));
    }
    return HEFT_OK;
}

/* ---- the index ---- */

static bool is_before(const void *ctx, uint32_t i, uint32_t k)
{
    const heft_map_row *rows = ctx;
    return rows[i].place < rows[k].place;
}

static heft_status add_source(heft_map_run *a)
{
    heft_source *source;
    HEFT_TRY(heft_map_source(&source, &a->gather, a->err));
    return heft_join_source(a->out, heft_lit("rearranged tensors"), source, &a->shard);
}

static heft_status add_tensor(heft_map_run *a, uint32_t i)
{
    const heft_map_row *row = (const heft_map_row *)a->rows.ptr + i;
    const heft_map_result *r = &a->results[i];
    heft_tensor t = { .name = row->name, .dtype = r->as, .rank = row->rank, .dims = row->dims };
    if (row->is_left_out)
        return HEFT_OK;
    a->rule_of[heft_ix_tensors(&a->out->x)] = row->rule;
    return heft_join_computed(a->out, &t, a->shard, r->start, r->bytes);
}

/* Add the results whose first input is the tensor. */
static heft_status add_instead(void *ctx, uint32_t tensor)
{
    heft_map_run *a = ctx;
    const heft_map_row *rows = a->rows.ptr;
    heft_status st = HEFT_OK;
    while (!st && a->next_row < a->rows.len && rows[a->order[a->next_row]].place == tensor)
        st = add_tensor(a, a->order[a->next_row++]);
    return st;
}

/* Give the tensors that are kept their new names. */
static heft_status rename_all(heft_map_run *a)
{
    const heft_map_row *rows = a->rows.ptr;
    heft_index *x = &a->out->x;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0, id = 0, row = 0; i < heft_ix_tensors(&a->f->x) && !st; i++) {
        const heft_map_new_name *n = &a->names[i];
        for (; row < a->rows.len && rows[a->order[row]].place == i; row++)
            id += !rows[a->order[row]].is_left_out;
        if (!a->matches.is_kept[i])
            continue;
        if (n->rule != HEFT_NONE) {
            a->rule_of[id] = n->rule;
            heft_ix_row(x, id)->flags &=
                (uint8_t)~HEFT_T_NAME_HASH; /* the hash was that of the old name */
            st = heft_ix_rename(x, id, n->name);
        }
        id++;
    }
    return st;
}

static heft_str name_at(const void *ctx, uint32_t i)
{
    return heft_ix_name(ctx, i);
}

/* Refuse two results of one name, with the lines of the map. */
static heft_status check_names(heft_map_run *a)
{
    heft_index *x = &a->out->x;
    heft_names_of of = { name_at, x };
    heft_names names = { .slots = NULL };
    heft_status st = heft_names_reserve(&x->mem, &names, heft_ix_tensors(x)) ? HEFT_OK
                                                                             : no_memory(a);
    for (uint32_t i = 0; i < heft_ix_tensors(x) && !st; i++) {
        heft_str name = heft_ix_name(x, i);
        uint32_t first = heft_names_add(&names, of, heft_names_hash(&x->key, name), name, i);
        if (first != HEFT_NONE)
            st = heft_error_plain(a->err, HEFT_E_FORMAT,
                                  "two tensors would have the name %q, by lines %U and %U of the "
                                  "map (0: by no rule)",
                                  name, (uint64_t)line_of(a, a->rule_of[first]),
                                  (uint64_t)line_of(a, a->rule_of[i]));
    }
    heft_names_free(&x->mem, &names);
    return st;
}

/* Append value i of those that are added, and its elements; return the number of the next. */
static size_t add_value(heft_index *x, const heft_value *values, size_t i, heft_status *st)
{
    bool is_list = values[i].kind == HEFT_KIND_LIST;
    size_t end = i + 1 + (is_list ? values[i].as.container.count : 0);
    *st = heft_ix_meta(x, values[i]);
    for (size_t k = i + 1; k < end && !*st; k++)
        *st = heft_ix_meta(x, values[k]);
    if (is_list && !*st)
        heft_ix_meta_end(x);
    return end;
}

static heft_status add_values(heft_map_run *a)
{
    const heft_index *from = &a->f->x;
    size_t count = 0;
    uint32_t dropped;
    const heft_value *added = a->opt.gguf ? heft_gguf_metadata_values(&count, a->opt.gguf) : NULL;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < from->values.len && !st; i = heft_ix_value_next(from, i))
        if (!a->opt.texts || !heft_gguf_texts_has(a->opt.texts, heft_ix_value(from, i)->key))
            st = heft_ix_copy_value(&a->out->x, from, i, HEFT_NONE);
    if (a->opt.texts && heft_gguf_texts_has(a->opt.texts, heft_lit("tokenizer.ggml.tokens"))) {
        a->out->x.tokens = (heft_ix_tokens){ .count = 0 };
        a->out->x.model_parts.len = 0; /* a GGUF file has no other than the vocabulary */
    }
    for (size_t i = 0; i < count && !st;)
        i = add_value(&a->out->x, added, i, &st);
    return st || !count ? st : heft_ix_meta_keep_last(&a->out->x, HEFT_NONE, &dropped);
}

/* Reserve what the index needs beside its columns. */
static heft_status reserve(heft_map_run *a)
{
    heft_memory *mem = &a->matches.mem;
    size_t all = (size_t)heft_ix_tensors(&a->f->x) + a->rows.len + 1;
    a->order = heft_mem_alloc(mem, ((size_t)a->rows.len * 2 + 1) * sizeof *a->order);
    a->rule_of = heft_mem_alloc(mem, all * sizeof *a->rule_of);
    if (!a->order || !a->rule_of)
        return no_memory(a);
    memset(a->rule_of, 0xFF, all * sizeof *a->rule_of);
    heft_sort_numbers(a->order, a->rows.len, is_before, a->rows.ptr);
    return HEFT_OK;
}

static heft_status fill(heft_map_run *a)
{
    heft_index *x = &a->out->x;
    HEFT_TRY(heft_map_add_groups(a));
    HEFT_TRY(add_extras(a));
    HEFT_TRY(reserve(a));
    a->results = a->gather.results.ptr; /* the source takes the column */
    HEFT_TRY(add_source(a));
    HEFT_TRY(heft_map_tie_all(a));
    HEFT_TRY(heft_ix_merge_with(x, &a->f->x, a->out->joined_files->first_shard,
                                (heft_str){ NULL, 0 }, a->matches.is_kept, add_instead, a));
    HEFT_TRY(rename_all(a));
    while (a->next_row < a->rows.len)
        HEFT_TRY(add_tensor(a, a->order[a->next_row++]));
    HEFT_TRY(add_values(a));
    HEFT_TRY(check_names(a));
    HEFT_TRY(heft_map_check_shapes(a));
    HEFT_TRY(heft_ix_build_name_table(x));
    return x->lost_notes ? no_memory(a) : HEFT_OK;
}

/* ---- the call ---- */

static heft_status begin(heft_map_run *a)
{
    heft_map_direction side = a->opt.direction;
    heft_memory *mem = &a->matches.mem;
    uint32_t tensors = heft_ix_tensors(&a->f->x);
    if (side == HEFT_MAP_EITHER)
        side = heft_map_side(a->m, a->f);
    a->numbers = (heft_map_numbers){ a->m, a->opt.config, &a->f->x, .err = a->err };
    HEFT_TRY(heft_map_numbers_begin(&a->numbers));
    a->matches = (heft_map_matches_of){ .m = a->m,
                                        .f = a->f,
                                        .opt = &a->opt,
                                        .numbers = &a->numbers,
                                        .err = a->err,
                                        .side = side == HEFT_MAP_INVERSE };
    HEFT_TRY(heft_map_match_all(&a->matches));
    a->work.mem = mem;
    a->work.err = a->err;
    a->names = heft_mem_alloc(mem, ((size_t)tensors + 1) * sizeof *a->names);
    if (!a->names)
        return no_memory(a);
    for (uint32_t i = 0; i < tensors; i++)
        a->names[i] = (heft_map_new_name){ .rule = HEFT_NONE };
    return heft_join_begin(&a->out, &a->f, 1, 1, a->err);
}

static void release(heft_map_run *a)
{
    heft_memory *mem = &a->matches.mem;
    size_t tensors = (size_t)heft_ix_tensors(&a->f->x) + 1;
    heft_map_gather_free(&a->gather);
    heft_vec_free(mem, &a->work.pieces, sizeof(heft_map_piece));
    heft_vec_free(mem, &a->work.values, sizeof(heft_map_value));
    heft_vec_free(mem, &a->work.next, sizeof(heft_map_value));
    heft_mem_free(mem, a->names, tensors * sizeof *a->names);
    heft_mem_free(mem, a->order, ((size_t)a->rows.len * 2 + 1) * sizeof *a->order);
    heft_mem_free(mem, a->rule_of, (tensors + a->rows.len) * sizeof *a->rule_of);
    heft_vec_free(mem, &a->rows, sizeof(heft_map_row));
    heft_map_match_free(&a->matches);
    heft_map_numbers_end(&a->numbers);
}

heft_status heft_map_apply(heft_file **out, const heft_map *m, const heft_file *f,
                           const heft_map_options *opt, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    heft_map_run a = { .m = m, .f = f, .opt = HEFT_MAP_OPTIONS_INIT, .err = err };
    *out = NULL;
    HEFT_TRY(heft_sized_copy(&a.opt, sizeof a.opt, opt, err));
    a.gather.f = f;
    a.gather.mem = (heft_memory){ f->host->allocator, UINT64_MAX, 0 };
    a.matches.mem = a.gather.mem;
    heft_file_enter(f); /* names are mapped */
    heft_status st = begin(&a);
    if (!st)
        st = fill(&a);
    if (a.out)
        a.out->x.err = NULL;
    st = heft_file_leave_after(f, st, err);
    release(&a);
    *out = a.out;
    return heft_join_end(out, st, err);
}
