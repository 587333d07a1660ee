/* map_match.c - finds the tensors of the rules of a map, each of which must match one rule. */
#include "map/map_match.h"

#include "base/error.h"
#include "base/sort.h"
#include "base/text.h"
#include "map/map_ties.h"

static const heft_map_rule *rule_at(const heft_map *m, uint32_t i)
{
    return HEFT_MAP_AT(m, rules, heft_map_rule, i);
}

uint8_t heft_map_common(const heft_map_rule *r)
{
    return r->slots[0] & r->slots[1];
}

uint32_t heft_map_own_capture(const heft_map_rule *r, uint32_t side)
{
    uint32_t slot = 0, own = r->slots[side] & ~(uint32_t)r->slots[!side];
    while (slot < HEFT_MAP_CAPTURES && !(own >> slot & 1))
        slot++;
    return slot;
}

/* ---- each tensor ---- */

bool heft_map_find_rule(const heft_map *m, uint32_t side, heft_str name, heft_map_match *out)
{
    for (; out->rule < m->rules.len; out->rule++) {
        const heft_map_rule *r = rule_at(m, out->rule);
        if (r->is_replaced || (side && r->is_forward_only))
            continue;
        for (out->pattern = 0; out->pattern < r->patterns[side]; out->pattern++)
            if (heft_map_matches(m, r->first_pattern[side] + out->pattern, name, &out->captures))
                return true;
    }
    return false;
}

static bool applies(const heft_map_matches_of *w, const heft_map_rule *r)
{
    heft_map_number v = { 1, true };
    if (r->condition.len)
        v = heft_map_evaluate(w->numbers, r->condition);
    return (v.is_known && v.value) != r->is_negated;
}

/* A tensor of the input may be dropped: it has no form in the other framework. */
static bool is_dropped(const heft_map_matches_of *w, heft_str name)
{
    heft_map_captures unused;
    for (uint32_t i = 0; i < w->m->mentions.len; i++) {
        const heft_map_mention *x = HEFT_MAP_AT(w->m, mentions, heft_map_mention, i);
        if (x->kind == HEFT_MAP_DROP && x->side == w->side &&
            heft_map_matches(w->m, x->pattern, name, &unused))
            return true;
    }
    return false;
}

/* Append the match of a name, whose numbers are those of the tensor; *has_rule: there is one. */
static heft_status match_name(heft_map_matches_of *w, heft_str name, uint32_t tensor, bool is_again,
                              bool *has_rule)
{
    heft_map_match found = { .tensor = tensor, .is_again = is_again }, kept;
    *has_rule = false;
    for (; heft_map_find_rule(w->m, w->side, name, &found); found.rule++) {
        const heft_map_rule *r = rule_at(w->m, found.rule);
        if (!applies(w, r))
            continue;
        if (*has_rule)
            return heft_error_plain(
                w->err, HEFT_E_FORMAT, "tensor %q matches two rules of the map, of lines %U and %U",
                name, (uint64_t)rule_at(w->m, kept.rule)->line, (uint64_t)r->line);
        kept = found;
        *has_rule = true;
    }
    return !*has_rule || heft_vec_add(&w->mem, &w->all, &kept, sizeof kept)
               ? HEFT_OK
               : heft_error_no_memory(w->err, "to apply a map");
}

static heft_status match_tensor(heft_map_matches_of *w, uint32_t tensor)
{
    heft_str name = heft_ix_name(&w->f->x, tensor);
    bool has_rule;
    HEFT_TRY(match_name(w, name, tensor, false, &has_rule));
    if (has_rule)
        return HEFT_OK;
    bool is_lost = is_dropped(w, name);
    w->is_kept[tensor] = !is_lost;
    if (is_lost && w->opt->texts && heft_gguf_texts_has(w->opt->texts, name))
        return HEFT_OK;
    if (!is_lost && w->m->keeps_others)
        return HEFT_OK;
    void (*say)(void *ctx, heft_str name) = is_lost ? w->opt->on_dropped : w->opt->on_unmatched;
    if (say)
        say(w->opt->ctx, name);
    w->unmatched += !is_lost;
    w->first_unmatched = !is_lost && w->unmatched == 1 ? tensor : w->first_unmatched;
    return HEFT_OK;
}

/* Let tensors stand for the tied ones that the input lacks. */
static heft_status match_untied(heft_map_matches_of *w)
{
    for (uint32_t i = 0; i < w->m->ties.len; i++) {
        const heft_map_tie *t = HEFT_MAP_AT(w->m, ties, heft_map_tie, i);
        bool has_rule;
        uint32_t tensor = heft_tensor_find(w->f, t->first);
        if (!heft_map_tie_holds(t, w->numbers, w->side, true) || tensor == HEFT_NONE ||
            heft_tensor_find(w->f, t->second) != HEFT_NONE)
            continue;
        HEFT_TRY(match_name(w, t->second, tensor, true, &has_rule));
        if (!has_rule)
            return heft_error_plain(w->err, HEFT_E_FORMAT,
                                    "line %U of the map unties %q, which no rule matches",
                                    (uint64_t)t->line, t->second);
    }
    return HEFT_OK;
}

/* ---- all tensors ---- */

static int order_u32(uint32_t a, uint32_t b)
{
    return a < b ? -1 : a > b;
}

/* Compare the captures that both sides have. */
static int order_captures(const heft_map_captures *a, const heft_map_captures *b, uint8_t common)
{
    int order = 0;
    for (uint32_t i = 0; i < HEFT_MAP_CAPTURES && !order; i++)
        if (common >> i & 1)
            order = order_u32(a->number[i], b->number[i]);
    return order ? order : heft_str_order(a->rest, b->rest);
}

bool heft_map_same_group(const heft_map_match *a, const heft_map_match *b, uint8_t common)
{
    return a->rule == b->rule && !order_captures(&a->captures, &b->captures, common);
}

static bool comes_before(const void *ctx, uint32_t i, uint32_t k)
{
    const heft_map_matches_of *w = ctx;
    const heft_map_match *a = (const heft_map_match *)w->all.ptr + i;
    const heft_map_match *b = (const heft_map_match *)w->all.ptr + k;
    const heft_map_rule *r = rule_at(w->m, a->rule);
    int order = order_u32(a->rule, b->rule);
    if (!order)
        order = order_captures(&a->captures, &b->captures, heft_map_common(r));
    if (!order)
        order = order_u32(a->pattern, b->pattern);
    uint32_t own = heft_map_own_capture(r, w->side);
    if (!order && own < HEFT_MAP_CAPTURES)
        order = order_u32(a->captures.number[own], b->captures.number[own]);
    return order < 0;
}

static heft_status sort_matches(heft_map_matches_of *w)
{
    uint32_t count = w->all.len;
    size_t bytes = (size_t)count * (sizeof(heft_map_match) + 2 * sizeof(uint32_t));
    if (!count)
        return HEFT_OK;
    heft_map_match *sorted = heft_mem_alloc(&w->mem, bytes), *all = w->all.ptr;
    if (!sorted)
        return heft_error_no_memory(w->err, "to apply a map");
    uint32_t *order = (uint32_t *)(sorted + count);
    heft_sort_numbers(order, count, comes_before, w);
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = all[order[i]];
    memcpy(all, sorted, count * sizeof *all);
    heft_mem_free(&w->mem, sorted, bytes);
    return HEFT_OK;
}

static bool has_mentioned(const heft_map_matches_of *w, const heft_map_mention *x)
{
    heft_map_captures unused;
    for (uint32_t i = 0; i < heft_ix_tensors(&w->f->x); i++)
        if (heft_map_matches(w->m, x->pattern, heft_ix_name(&w->f->x, i), &unused))
            return true;
    return false;
}

/* Refuse a model without a tensor that the map requires; report one without an expected tensor. */
static heft_status check_mentioned(const heft_map_matches_of *w)
{
    for (uint32_t i = 0; i < w->m->mentions.len && !w->side; i++) {
        const heft_map_mention *x = HEFT_MAP_AT(w->m, mentions, heft_map_mention, i);
        heft_str text = HEFT_MAP_AT(w->m, patterns, heft_map_pattern, x->pattern)->text;
        if (x->kind == HEFT_MAP_DROP || has_mentioned(w, x))
            continue;
        if (x->kind == HEFT_MAP_REQUIRE)
            return heft_error_plain(w->err, HEFT_E_FORMAT,
                                    "the model has no tensor %q, which line %U of the map requires",
                                    text, (uint64_t)x->line);
        if (w->opt->on_missing && heft_map_holds(w->numbers, &x->condition))
            w->opt->on_missing(w->opt->ctx, text);
    }
    return HEFT_OK;
}

static heft_status refuse_unmatched(const heft_map_matches_of *w)
{
    return heft_error_plain(w->err, HEFT_E_FORMAT,
                            "no rule of the map %q matches tensor %q (%U of %U tensors)",
                            w->m->info.name, heft_ix_name(&w->f->x, w->first_unmatched),
                            (uint64_t)w->unmatched, (uint64_t)heft_ix_tensors(&w->f->x));
}

heft_status heft_map_match_all(heft_map_matches_of *w)
{
    uint32_t tensors = heft_ix_tensors(&w->f->x);
    w->mem = (heft_memory){ w->f->host->allocator, UINT64_MAX, 0 };
    w->is_kept = heft_mem_alloc(&w->mem, (size_t)tensors + 1);
    if (!w->is_kept)
        return heft_error_no_memory(w->err, "to apply a map");
    memset(w->is_kept, 0, (size_t)tensors + 1);
    for (uint32_t i = 0; i < tensors; i++)
        HEFT_TRY(match_tensor(w, i));
    HEFT_TRY(match_untied(w));
    HEFT_TRY(check_mentioned(w));
    if (w->unmatched && !w->opt->allow_unmatched)
        return heft_error_rule(w->err, refuse_unmatched(w), "heft/unmatched");
    return sort_matches(w);
}

void heft_map_match_free(heft_map_matches_of *w)
{
    if (w->is_kept)
        heft_mem_free(&w->mem, w->is_kept, (size_t)heft_ix_tensors(&w->f->x) + 1);
    heft_vec_free(&w->mem, &w->all, sizeof(heft_map_match));
}
