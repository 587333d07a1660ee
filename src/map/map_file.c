/* map_file.c - opens the model that a file is under a map.
 *
 * Matches of one rule that give the same tensors are a group.  A tensor that only has another name
 * keeps its parts and checksums; the results of other groups are in a source, which is the last
 * shard of the model. */
#include "base/error.h"
#include "base/sized.h"
#include "base/sort.h"
#include "base/text.h"
#include "core/shards/shard_join.h"
#include "map/map_match.h"
#include "model/names.h"
#include "model/values.h"

typedef struct result_row { /* describes the result with the same number */
    heft_str name;
    uint64_t dims[HEFT_MAP_RANK];
    uint32_t rank, rule;
    uint32_t place; /* the first input, in whose place it is */
} result_row;

typedef struct new_name { /* for a tensor that is not rearranged */
    heft_str name;
    uint32_t rule; /* HEFT_NONE: it keeps its name */
} new_name;

typedef struct map_file {
    const heft_map *m;
    const heft_file *f;
    heft_map_options opt;
    heft_map_numbers numbers;
    heft_map_matches_of matches;
    heft_map_work work;
    heft_map_gather gather;
    heft_vec rows;                  /* result_row */
    const heft_map_result *results; /* numbered as the rows; in the source */
    new_name *names;                /* by tensor of f */
    uint32_t *order;                /* numbers of the rows, by place */
    uint32_t next_row;              /* in order */
    uint32_t *rule_of;              /* by tensor of out: its rule, or HEFT_NONE */
    heft_file *out;
    uint32_t shard; /* number of the source */
    heft_error *err;
} map_file;

static heft_status no_memory(const map_file *a)
{
    return heft_error_no_memory(a->err, "to apply a map");
}

static const heft_map_rule *rule_at(const map_file *a, uint32_t i)
{
    return HEFT_MAP_AT(a->m, rules, heft_map_rule, i);
}

static const heft_map_match *match_at(const map_file *a, uint32_t i)
{
    return (const heft_map_match *)a->matches.all.ptr + i;
}

static uint32_t line_of(const map_file *a, uint32_t rule)
{
    return rule == HEFT_NONE ? 0 : rule_at(a, rule)->line;
}

/* ---- groups ---- */

typedef struct group { /* matches [first, end) of a rule */
    const heft_map_rule *r;
    uint32_t rule, first, end;
    uint32_t counts[HEFT_MAP_ALL]; /* by pattern */
} group;

/* Return the name that pattern p of the input would have with the captures of the group. */
static heft_str missing_name(map_file *a, const group *g, uint32_t p, uint32_t number)
{
    heft_map_captures c = match_at(a, g->first)->captures;
    uint32_t own = heft_map_own_capture(g->r, a->matches.side);
    if (own < HEFT_MAP_CAPTURES)
        c.number[own] = number;
    return heft_map_name(a->m, g->r->first_pattern[a->matches.side] + p, &c, &a->out->x.arena);
}

static heft_status refuse_missing(map_file *a, const group *g, uint32_t p, uint32_t number)
{
    heft_str beside = heft_ix_name(&a->f->x, match_at(a, g->first)->tensor);
    heft_str name = missing_name(a, g, p, number);
    if (!name.ptr)
        return no_memory(a);
    return heft_error_plain(a->err, HEFT_E_FORMAT,
                            "tensor %q is missing, which line %U of the map needs beside %q", name,
                            (uint64_t)g->r->line, beside);
}

/* Count the matches of each pattern.  Tensors that are stacked have the numbers from 0 on, without
 * one missing. */
static heft_status count_matches(map_file *a, group *g)
{
    uint32_t own = heft_map_own_capture(g->r, a->matches.side), i = g->first, most = 0;
    for (uint32_t p = 0; p < g->r->patterns[a->matches.side]; p++) {
        g->counts[p] = 0;
        for (; i < g->end && match_at(a, i)->pattern == p; i++, g->counts[p]++)
            if (own < HEFT_MAP_CAPTURES && match_at(a, i)->captures.number[own] != g->counts[p])
                return refuse_missing(a, g, p, g->counts[p]);
        if (!g->counts[p])
            return refuse_missing(a, g, p, 0);
        most = g->counts[p] > most ? g->counts[p] : most;
    }
    for (uint32_t p = 0; p < g->r->patterns[a->matches.side]; p++)
        if (g->counts[p] < most)
            return refuse_missing(a, g, p, g->counts[p]);
    return HEFT_OK;
}

/* Stack the values of each pattern, one for each number. */
static heft_status stack(map_file *a, const group *g, const uint64_t *args, uint32_t arg_count)
{
    heft_map_work *w = &a->work;
    uint32_t first = 0, patterns = g->r->patterns[a->matches.side];
    if (w->values.len != g->counts[0] * patterns)
        return heft_error_plain(a->err, HEFT_E_FORMAT,
                                "line %U of the map: stack must precede what joins or takes apart",
                                (uint64_t)g->r->line);
    if (arg_count > 1 && args[1] > g->counts[0])
        return refuse_missing(a, g, 0, g->counts[0]);
    if (arg_count > 1 && args[1] < g->counts[0])
        return heft_error_plain(
            a->err, HEFT_E_FORMAT, "%U tensors like %q are there, but line %U of the map stacks %U",
            (uint64_t)g->counts[0], heft_ix_name(&a->f->x, match_at(a, g->first)->tensor),
            (uint64_t)g->r->line, args[1]);
    for (uint32_t p = 0; p < patterns; first += g->counts[p++]) {
        heft_map_value one;
        HEFT_TRY(heft_map_stack(w, args[0], first, g->counts[p], &one));
        if (!heft_vec_add(w->mem, &w->next, &one, sizeof one))
            return no_memory(a);
    }
    heft_vec done = w->values;
    w->values = w->next;
    w->next = done;
    w->next.len = 0;
    return HEFT_OK;
}

/* Evaluate the arguments of an operation, for the kind that it has in this direction. */
static heft_status read_args(const map_file *a, const group *g, const heft_map_op *op,
                             uint64_t *args)
{
    for (uint32_t i = 0; i < op->args; i++) {
        heft_str text = *HEFT_MAP_AT(a->m, args, heft_str, op->first_arg + i);
        heft_map_number v = { HEFT_NOWHERE, true };
        if (!heft_str_is(text, "_"))
            v = heft_map_evaluate(&a->numbers, text);
        if (!v.is_known)
            return heft_error_plain(a->err, HEFT_E_NOTFOUND,
                                    "line %U of the map needs the number %q, which neither "
                                    "config.json nor the metadata of the model state",
                                    (uint64_t)g->r->line, text);
        args[i] = v.value;
    }
    bool is_inverse = a->matches.side;
    if (is_inverse && op->kind == HEFT_MAP_ADD)
        args[0] = 0 - args[0];
    if (is_inverse && op->kind == HEFT_MAP_RESIZE) {
        uint64_t size = args[1];
        args[1] = args[2];
        args[2] = size;
    }
    return HEFT_OK;
}

static heft_status operate(map_file *a, const group *g)
{
    bool is_inverse = a->matches.side;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < g->r->ops && !st; i++) {
        uint32_t k = g->r->first_op + (is_inverse ? g->r->ops - 1 - i : i);
        const heft_map_op *op = HEFT_MAP_AT(a->m, ops, heft_map_op, k);
        uint32_t kind = is_inverse ? heft_map_op_rows[op->kind].inverse : op->kind;
        uint64_t args[HEFT_MAP_ARGS] = { 0 };
        if (is_inverse && kind == HEFT_MAP_F32)
            continue;
        HEFT_TRY(read_args(a, g, op, args));
        st = kind == HEFT_MAP_STACK ? stack(a, g, args, op->args)
                                    : heft_map_operate(&a->work, (heft_map_kind)kind, op->only,
                                                       args, op->args, g->r->patterns[!is_inverse]);
    }
    return st;
}

/* ---- results ---- */

static heft_status add_row(map_file *a, const group *g, const heft_map_value *v, uint32_t pattern,
                           uint32_t place)
{
    uint32_t to = !a->matches.side, own = heft_map_own_capture(g->r, to);
    heft_map_captures c = match_at(a, g->first)->captures;
    result_row row = { .rank = v->rank, .rule = g->rule, .place = place };
    heft_map_value done = *v;
    const heft_dtype_info *type = heft_dtype_get(v->dtype);
    if (own < HEFT_MAP_CAPTURES)
        c.number[own] = v->index;
    memcpy(row.dims, v->dims, sizeof row.dims);
    if (type->block_elems > 1 && v->rank)
        row.dims[v->rank - 1] = heft_div(row.dims[v->rank - 1], type->block_bytes) *
                                type->block_elems;
    bool is_float = v->dtype == HEFT_F16 || v->dtype == HEFT_BF16;
    if (a->m->has_f32_vectors && !a->matches.side && v->rank == 1 && is_float)
        done.as = HEFT_F32;
    row.name = heft_map_name(a->m, g->r->first_pattern[to] + pattern, &c, &a->out->x.arena);
    if (!row.name.ptr || !heft_vec_add(&a->matches.mem, &a->rows, &row, sizeof row))
        return no_memory(a);
    return heft_map_add_result(&a->gather, &a->work, &done, a->err);
}

/* Append the tensors that a group gives: for each name one value, or one for each number. */
static heft_status add_rows(map_file *a, const group *g, uint32_t place)
{
    uint32_t to = !a->matches.side, names = g->r->patterns[to], values = a->work.values.len;
    bool is_unstacked = heft_map_own_capture(g->r, to) < HEFT_MAP_CAPTURES;
    uint32_t each = (uint32_t)heft_div(values, names);
    heft_status st = HEFT_OK;
    if (each * names != values || (!is_unstacked && each != 1))
        return heft_error_plain(a->err, HEFT_E_FORMAT,
                                "line %U of the map gives %U tensors and has %U names",
                                (uint64_t)g->r->line, (uint64_t)values, (uint64_t)names);
    for (uint32_t i = 0; i < values && !st; i++)
        st = add_row(a, g, (const heft_map_value *)a->work.values.ptr + i,
                     (uint32_t)heft_div(i, each), place);
    return st;
}

/* A rule without operations gives a tensor another name, and nothing else. */
static bool only_renames(const map_file *a, const group *g)
{
    const heft_ix_tensor_row *row = heft_ix_row(&a->f->x, match_at(a, g->first)->tensor);
    bool is_vector = row->rank == 1 && (row->dtype == HEFT_F16 || row->dtype == HEFT_BF16);
    bool changes = is_vector && a->m->has_f32_vectors && !a->matches.side;
    return !g->r->ops && g->end - g->first == 1 && g->r->patterns[0] == 1 &&
           g->r->patterns[1] == 1 && !changes;
}

static heft_status rename_tensor(map_file *a, const group *g)
{
    const heft_map_match *x = match_at(a, g->first);
    new_name n = { .rule = g->rule };
    n.name = heft_map_name(a->m, g->r->first_pattern[!a->matches.side], &x->captures,
                           &a->out->x.arena);
    a->names[x->tensor] = n;
    a->matches.is_kept[x->tensor] = 1;
    return n.name.ptr ? HEFT_OK : no_memory(a);
}

static heft_status add_group(map_file *a, group *g)
{
    heft_map_work *w = &a->work;
    uint32_t place = HEFT_NONE;
    HEFT_TRY(count_matches(a, g));
    if (only_renames(a, g))
        return rename_tensor(a, g);
    w->pieces.len = w->values.len = w->next.len = 0;
    w->line = g->r->line;
    for (uint32_t i = g->first; i < g->end; i++) {
        uint32_t tensor = match_at(a, i)->tensor;
        place = tensor < place ? tensor : place;
        HEFT_TRY(heft_map_add_input(w, a->f, tensor));
        if (a->opt.verify)
            HEFT_TRY(
                heft_part_verify(NULL, a->f, heft_ix_row(&a->f->x, tensor)->first_part, a->err));
    }
    HEFT_TRY(operate(a, g));
    return add_rows(a, g, place);
}

static heft_status add_groups(map_file *a)
{
    for (group g = { .first = 0 }; g.first < a->matches.all.len; g.first = g.end) {
        const heft_map_match *x = match_at(a, g.first);
        g.rule = x->rule;
        g.r = rule_at(a, g.rule);
        g.end = g.first + 1;
        uint8_t common = heft_map_common(g.r);
        while (g.end < a->matches.all.len && heft_map_same_group(x, match_at(a, g.end), common))
            g.end++;
        HEFT_TRY(add_group(a, &g));
    }
    return HEFT_OK;
}

/* Add the tensors that the weights lack; they are in the place of none. */
static heft_status add_extras(map_file *a)
{
    for (uint32_t i = 0; a->opt.gguf; i++) {
        heft_gguf_extra e = heft_gguf_metadata_extra(a->opt.gguf, i);
        if (!e.name)
            break;
        result_row row = { heft_str_from(e.name), { e.count }, 1, HEFT_NONE, HEFT_NONE };
        if (!heft_vec_add(&a->matches.mem, &a->rows, &row, sizeof row))
            return no_memory(a);
        HEFT_TRY(heft_map_add_vector(&a->gather, e.values, e.count, a->err));
    }
    return HEFT_OK;
}

/* ---- the index ---- */

static bool is_before(const void *ctx, uint32_t i, uint32_t k)
{
    const result_row *rows = ctx;
    return rows[i].place < rows[k].place;
}

static heft_status add_source(map_file *a)
{
    heft_file *f = a->out;
    heft_source *source;
    HEFT_TRY(heft_map_source(&source, &a->gather, a->err));
    heft_ix_shard shard = { heft_lit("rearranged tensors"), NULL, source->size, false, NULL };
    f->opened_shards[f->opened_shard_count++] = (heft_shard){ .name = shard.label,
                                                              .source = source };
    return heft_ix_shard_add(&f->x, shard, &a->shard);
}

static heft_status add_tensor(map_file *a, uint32_t i)
{
    const result_row *row = (const result_row *)a->rows.ptr + i;
    const heft_map_result *r = &a->results[i];
    uint64_t *dims;
    uint32_t id;
    HEFT_TRY(heft_ix_tensor(&a->out->x, row->name, r->as, row->rank, &dims, &id));
    if (row->rank)
        memcpy(dims, row->dims, row->rank * sizeof *dims);
    a->rule_of[id] = row->rule;
    heft_range where = { heft_global_offset(a->shard, r->start), r->bytes };
    return heft_ix_part(&a->out->x, id, heft_ix_data, r->as, where, r->bytes, HEFT_RAW);
}

/* Add the results whose first input is the tensor. */
static heft_status add_instead(void *ctx, uint32_t tensor)
{
    map_file *a = ctx;
    const result_row *rows = a->rows.ptr;
    heft_status st = HEFT_OK;
    while (!st && a->next_row < a->rows.len && rows[a->order[a->next_row]].place == tensor)
        st = add_tensor(a, a->order[a->next_row++]);
    return st;
}

/* Give the tensors that are kept their new names. */
static heft_status rename_all(map_file *a)
{
    const result_row *rows = a->rows.ptr;
    heft_index *x = &a->out->x;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0, id = 0, row = 0; i < heft_ix_tensors(&a->f->x) && !st; i++) {
        const new_name *n = &a->names[i];
        for (; row < a->rows.len && rows[a->order[row]].place == i; row++)
            id++;
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
static heft_status check_names(map_file *a)
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

static heft_status add_values(map_file *a)
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
static heft_status reserve(map_file *a)
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

static heft_status fill(map_file *a)
{
    heft_index *x = &a->out->x;
    HEFT_TRY(add_groups(a));
    HEFT_TRY(add_extras(a));
    HEFT_TRY(reserve(a));
    a->results = a->gather.results.ptr; /* the source takes the column */
    HEFT_TRY(add_source(a));
    HEFT_TRY(heft_ix_merge_with(x, &a->f->x, a->out->joined_files->first_shard,
                                (heft_str){ NULL, 0 }, a->matches.is_kept, add_instead, a));
    HEFT_TRY(rename_all(a));
    while (a->next_row < a->rows.len)
        HEFT_TRY(add_tensor(a, a->order[a->next_row++]));
    HEFT_TRY(add_values(a));
    HEFT_TRY(check_names(a));
    HEFT_TRY(heft_ix_build_name_table(x));
    return x->lost_notes ? no_memory(a) : HEFT_OK;
}

/* ---- the call ---- */

static heft_status begin(map_file *a)
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
        a->names[i] = (new_name){ .rule = HEFT_NONE };
    return heft_join_begin(&a->out, &a->f, 1, 1, a->err);
}

static void release(map_file *a)
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
    heft_vec_free(mem, &a->rows, sizeof(result_row));
    heft_map_match_free(&a->matches);
    heft_map_numbers_end(&a->numbers);
}

heft_status heft_map_apply(heft_file **out, const heft_map *m, const heft_file *f,
                           const heft_map_options *opt, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    map_file a = { .m = m, .f = f, .opt = HEFT_MAP_OPTIONS_INIT, .err = err };
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
