/* map_groups.c - computes the results of a map: for each rule, and each choice of its captures, the
 * tensors that take part are a group. */
#include "base/checked_math.h"
#include "base/error.h"
#include "base/text.h"
#include "map/map_file.h"
#include "model/dtype.h"

static heft_status no_memory(const heft_map_run *a)
{
    return heft_error_no_memory(a->err, "to apply a map");
}

static const heft_map_rule *rule_at(const heft_map_run *a, uint32_t i)
{
    return HEFT_MAP_AT(a->m, rules, heft_map_rule, i);
}

static const heft_map_match *match_at(const heft_map_run *a, uint32_t i)
{
    return (const heft_map_match *)a->matches.all.ptr + i;
}

typedef struct group { /* matches [first, end) of a rule */
    const heft_map_rule *r;
    uint32_t rule, first, end;
    uint32_t counts[HEFT_MAP_ALL]; /* by pattern */
} group;

/* Return the name that pattern p of the input would have with the captures of the group. */
static heft_str missing_name(heft_map_run *a, const group *g, uint32_t p, uint32_t number)
{
    heft_map_captures c = match_at(a, g->first)->captures;
    uint32_t own = heft_map_own_capture(g->r, a->matches.side);
    if (own < HEFT_MAP_CAPTURES)
        c.number[own] = number;
    return heft_map_name(a->m, g->r->first_pattern[a->matches.side] + p, &c, &a->out->x.arena);
}

static heft_status refuse_missing(heft_map_run *a, const group *g, uint32_t p, uint32_t number)
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
static heft_status count_matches(heft_map_run *a, group *g)
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
static heft_status stack(heft_map_run *a, const group *g, const uint64_t *args, uint32_t arg_count)
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
static heft_status read_args(const heft_map_run *a, const group *g, const heft_map_op *op,
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

static heft_status operate(heft_map_run *a, const group *g)
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

static heft_status add_row(heft_map_run *a, const group *g, const heft_map_value *v,
                           uint32_t pattern, uint32_t place)
{
    uint32_t to = !a->matches.side, own = heft_map_own_capture(g->r, to);
    heft_map_captures c = match_at(a, g->first)->captures;
    heft_map_row row = { .rank = v->rank, .rule = g->rule, .place = place };
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
static heft_status add_rows(heft_map_run *a, const group *g, uint32_t place)
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
static bool only_renames(const heft_map_run *a, const group *g)
{
    const heft_ix_tensor_row *row = heft_ix_row(&a->f->x, match_at(a, g->first)->tensor);
    bool is_vector = row->rank == 1 && (row->dtype == HEFT_F16 || row->dtype == HEFT_BF16);
    bool changes = is_vector && a->m->has_f32_vectors && !a->matches.side;
    return !match_at(a, g->first)->is_again && !g->r->ops && g->end - g->first == 1 &&
           g->r->patterns[0] == 1 && g->r->patterns[1] == 1 && !changes;
}

static heft_status rename_tensor(heft_map_run *a, const group *g)
{
    const heft_map_match *x = match_at(a, g->first);
    heft_map_new_name n = { .rule = g->rule };
    n.name = heft_map_name(a->m, g->r->first_pattern[!a->matches.side], &x->captures,
                           &a->out->x.arena);
    a->names[x->tensor] = n;
    a->matches.is_kept[x->tensor] = 1;
    return n.name.ptr ? HEFT_OK : no_memory(a);
}

static heft_status add_group(heft_map_run *a, group *g)
{
    heft_map_work *w = &a->work;
    uint32_t place = HEFT_NONE;
    bool is_again = false;
    HEFT_TRY(count_matches(a, g));
    if (only_renames(a, g))
        return rename_tensor(a, g);
    w->pieces.len = w->values.len = w->next.len = 0;
    w->line = g->r->line;
    for (uint32_t i = g->first; i < g->end; i++) {
        uint32_t tensor = match_at(a, i)->tensor;
        place = tensor < place ? tensor : place;
        is_again = is_again || match_at(a, i)->is_again;
        HEFT_TRY(heft_map_add_input(w, a->f, tensor));
        if (a->opt.verify)
            HEFT_TRY(
                heft_part_verify(NULL, a->f, heft_ix_row(&a->f->x, tensor)->first_part, a->err));
    }
    HEFT_TRY(operate(a, g));
    return add_rows(a, g, is_again ? HEFT_NONE : place);
}

heft_status heft_map_add_groups(heft_map_run *a)
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
