/* map_rules.c - reads the rules of a map: patterns, operations, and sets of words. */
#include "base/error.h"
#include "base/text.h"
#include "map/map_reader.h"

enum { WORDS_PER_RULE = 4 };

/* ---- patterns ---- */

/* Return the slot of a capture; HEFT_MAP_CAPTURES: there are too many. */
static uint32_t slot_of(heft_map_reader *r, heft_str name)
{
    uint32_t i = 0;
    while (i < r->capture_count && !heft_str_eq(r->captures[i], name))
        i++;
    if (i == r->capture_count && i < HEFT_MAP_CAPTURES)
        r->captures[r->capture_count++] = name;
    return i;
}

static heft_status add_token(heft_map_reader *r, heft_map_pattern *p, heft_str text, bool captures)
{
    heft_map_token t = { .text = text };
    if (!text.len)
        return captures ? heft_map_fail(r, "a capture without a name in", p->text) : HEFT_OK;
    if (captures) {
        t.kind = text.ptr[text.len - 1] == '*' ? HEFT_MAP_REST : HEFT_MAP_NUMBER;
        uint32_t slot = slot_of(r, text);
        if (slot == HEFT_MAP_CAPTURES)
            return heft_map_fail(r, "too many captures with", text);
        if (p->slots >> slot & 1)
            return heft_map_fail(r, "a capture is there twice:", text);
        for (uint32_t i = 0; t.kind == HEFT_MAP_REST && i < p->tokens; i++)
            if (HEFT_MAP_AT(r->m, tokens, heft_map_token, p->first_token + i)->kind ==
                HEFT_MAP_REST)
                return heft_map_fail(r, "a pattern has two captures of any text:", p->text);
        t.slot = (uint8_t)slot;
        p->slots = (uint8_t)(p->slots | 1u << slot);
    }
    p->tokens++;
    return heft_vec_add(&r->m->mem, &r->m->tokens, &t, sizeof t) ? HEFT_OK
                                                                 : heft_map_no_memory(r->err);
}

heft_status heft_map_add_pattern(heft_map_reader *r, heft_str text, uint32_t *pattern,
                                 uint8_t *slots)
{
    heft_map_pattern p = { .text = text, .first_token = r->m->tokens.len };
    heft_str rest = text, part;
    if (!text.len)
        return heft_map_fail(r, "a name is missing beside", text);
    for (bool is_open = true; is_open && rest.len;) {
        is_open = heft_map_cut(&rest, &part, "{");
        HEFT_TRY(add_token(r, &p, part, false));
        if (is_open && !heft_map_cut(&rest, &part, "}"))
            return heft_map_fail(r, "} is missing in", text);
        if (is_open)
            HEFT_TRY(add_token(r, &p, part, true));
    }
    *pattern = r->m->patterns.len;
    *slots = p.slots;
    return heft_vec_add(&r->m->mem, &r->m->patterns, &p, sizeof p) ? HEFT_OK
                                                                   : heft_map_no_memory(r->err);
}

static heft_status add_side(heft_map_reader *r, heft_map_rule *rule, uint32_t side, heft_str text)
{
    rule->first_pattern[side] = r->m->patterns.len;
    for (bool more = true; more;) {
        heft_str one;
        uint32_t pattern;
        uint8_t slots;
        more = heft_map_cut(&text, &one, ",");
        HEFT_TRY(heft_map_add_pattern(r, one, &pattern, &slots));
        if (rule->patterns[side] && slots != rule->slots[side])
            return heft_map_fail(r, "the names of a side need the same captures:", one);
        if (++rule->patterns[side] == HEFT_MAP_ALL)
            return heft_map_fail(r, "too many names beside", one);
        rule->slots[side] = slots;
    }
    return HEFT_OK;
}

/* ---- operations ---- */

static heft_status add_args(heft_map_reader *r, heft_map_op *op, heft_str rest)
{
    const heft_map_op_row *row = &heft_map_op_rows[op->kind];
    op->first_arg = r->m->args.len;
    for (heft_str a = heft_map_word(&rest); a.len; a = heft_map_word(&rest)) {
        if (op->args++ == row->most)
            return heft_map_fail(r, "too many arguments at", a);
        if (!heft_vec_add(&r->m->mem, &r->m->args, &a, sizeof a))
            return heft_map_no_memory(r->err);
    }
    return op->args < row->fewest ? heft_map_fail(r, "too few arguments of", heft_lit(row->name))
                                  : HEFT_OK;
}

/* Read "NAME" or "NAME@2", which applies to one value alone. */
static heft_status add_operation(heft_map_reader *r, heft_map_rule *rule, heft_str text)
{
    heft_str rest = text, word = heft_map_word(&rest), name;
    heft_map_op op = { .only = HEFT_MAP_ALL };
    if (heft_map_cut(&word, &name, "@")) {
        op.only = word.len == 1 ? (uint8_t)(*word.ptr - '0') : HEFT_MAP_ALL;
        if (op.only > 9)
            return heft_map_fail(r, "a digit is expected after @, not", word);
    }
    while (op.kind < HEFT_MAP_KINDS && !heft_str_is(name, heft_map_op_rows[op.kind].name))
        op.kind++;
    if (op.kind == HEFT_MAP_KINDS)
        return heft_map_fail(r, "there is no operation", name);
    if (heft_map_op_rows[op.kind].has_capture) {
        heft_str capture = heft_map_word(&rest);
        while (op.slot < r->capture_count && !heft_str_eq(r->captures[op.slot], capture))
            op.slot++;
        if (op.slot == r->capture_count)
            return heft_map_fail(r, "the rule has no capture", capture);
    }
    HEFT_TRY(add_args(r, &op, rest));
    rule->ops++;
    return heft_vec_add(&r->m->mem, &r->m->ops, &op, sizeof op) ? HEFT_OK
                                                                : heft_map_no_memory(r->err);
}

/* Replace $1, $2 and $+ in the text of a macro; *len: of the result, which is written unless `to`
 * is NULL. */
static bool expand(char *to, size_t *len, heft_str text, const heft_str *args)
{
    *len = 0;
    for (size_t i = 0; i < text.len; i++) {
        heft_str s = { text.ptr + i, 1 };
        char after;
        if (text.ptr[i] == '$') {
            char which = text.ptr[++i];
            s = args[which == '2'];
            after = s.len == 1 ? (char)(*s.ptr + 1) : 0;
            s = which == '+' ? (heft_str){ &after, 1 } : s;
            if (!s.len || (which == '+' && (after < '1' || after > '9')))
                return false;
        }
        if (to)
            memcpy(to + *len, s.ptr, s.len);
        *len += s.len;
    }
    return true;
}

static heft_status add_operations(heft_map_reader *r, heft_map_rule *rule, heft_str text)
{
    for (bool more = true; more;) {
        heft_str one;
        more = heft_map_cut(&text, &one, ";");
        HEFT_TRY(add_operation(r, rule, one));
    }
    return HEFT_OK;
}

/* Read an operation, a macro, or a condition of the rule: "if EXPRESSION", or "unless". */
static heft_status add_step(heft_map_reader *r, heft_map_rule *rule, heft_str text)
{
    heft_str rest = text, word = heft_map_word(&rest), args[2];
    size_t i = 0, len;
    if (heft_str_is(word, "if") || heft_str_is(word, "unless")) {
        rule->is_negated = heft_str_is(word, "unless");
        rule->condition = heft_map_trim(rest);
        return HEFT_OK;
    }
    while (heft_map_macros[i].name && !heft_str_is(word, heft_map_macros[i].name))
        i++;
    if (!heft_map_macros[i].name)
        return add_operation(r, rule, text);
    heft_str macro = heft_lit(heft_map_macros[i].text);
    args[0] = heft_map_word(&rest);
    args[1] = heft_map_word(&rest);
    if (!expand(NULL, &len, macro, args))
        return heft_map_fail(r, "too few arguments of", word);
    char *to = heft_arena_alloc(&r->m->arena, len + 1, 1);
    if (!to)
        return heft_map_no_memory(r->err);
    expand(to, &len, macro, args);
    return add_operations(r, rule, (heft_str){ to, len });
}

/* ---- rules ---- */

/* A capture that one side has is a number, by which tensors are stacked or unstacked, once. */
static heft_status check_own_captures(const heft_map_reader *r, const heft_map_rule *rule,
                                      heft_str text)
{
    for (uint32_t side = 0; side < 2; side++) {
        uint32_t own = rule->slots[side] & ~(uint32_t)rule->slots[!side], times[2] = { 0, 0 };
        for (uint32_t i = 0; i < rule->ops; i++) {
            const heft_map_op *op = HEFT_MAP_AT(r->m, ops, heft_map_op, rule->first_op + i);
            bool unstacks = op->kind == HEFT_MAP_UNSTACK;
            if (unstacks == side && (unstacks || op->kind == HEFT_MAP_STACK))
                times[!(own >> op->slot & 1)]++;
        }
        if (times[0] != (own != 0) || times[1] || own & (own - 1))
            return heft_map_fail(r, "one side has a capture without stack or unstack:", text);
        for (uint32_t i = 0; i < r->capture_count; i++)
            if (own >> i & 1 && r->captures[i].ptr[r->captures[i].len - 1] == '*')
                return heft_map_fail(r, "one side has a capture of any text:", text);
    }
    return HEFT_OK;
}

static heft_str first_name(heft_str side)
{
    heft_str first;
    heft_map_cut(&side, &first, ",");
    return first;
}

/* A rule takes the place of those with the same first name on a side in maps that are used. */
static void replace_used(heft_map_reader *r, const heft_map_rule *rule, heft_str left,
                         heft_str right)
{
    heft_map_rule *all = r->m->rules.ptr;
    heft_str names[] = { first_name(left), first_name(right) };
    for (uint32_t i = 0; i < r->m->rules.len; i++)
        for (uint32_t side = 0; side < 2 - (uint32_t)rule->is_forward_only; side++) {
            const heft_map_pattern *p = HEFT_MAP_AT(r->m, patterns, heft_map_pattern,
                                                    all[i].first_pattern[side]);
            if (all[i].depth > r->depth && heft_str_eq(p->text, names[side]))
                all[i].is_replaced = true;
        }
}

static heft_status add_rule(heft_map_reader *r, heft_str left, heft_str right, heft_str steps)
{
    heft_map_rule rule = { .line = r->line, .depth = r->depth, .first_op = r->m->ops.len };
    rule.is_forward_only = r->is_forward_only;
    r->capture_count = 0;
    if (r->m->rules.len == HEFT_MAP_RULES)
        return heft_map_too_many(r);
    HEFT_TRY(add_side(r, &rule, 0, left));
    HEFT_TRY(add_side(r, &rule, 1, right));
    for (bool more = steps.len; more;) {
        heft_str one;
        more = heft_map_cut(&steps, &one, ";");
        HEFT_TRY(add_step(r, &rule, one));
    }
    HEFT_TRY(check_own_captures(r, &rule, left));
    replace_used(r, &rule, left, right);
    return heft_vec_add(&r->m->mem, &r->m->rules, &rule, sizeof rule) ? HEFT_OK
                                                                      : heft_map_no_memory(r->err);
}

/* ---- sets of words ---- */

typedef struct choice { /* a pair of a set */
    heft_str name, left, right, more;
} choice;

static void next_pair(choice *c)
{
    heft_str pair = heft_map_word(&c->more);
    c->more = heft_map_trim(c->more);
    if (!heft_map_cut(&pair, &c->left, ":"))
        pair = c->left;
    c->right = pair;
}

/* Find a set whose name is in braces in the text and not among the choices. */
static const heft_map_words *find_set(const heft_map_reader *r, heft_str text, const choice *c,
                                      uint32_t count)
{
    heft_str name;
    while (heft_map_cut(&text, &name, "{") && heft_map_cut(&text, &name, "}"))
        for (uint32_t i = r->words.len; i--;) {
            const heft_map_words *w = (const heft_map_words *)r->words.ptr + i;
            uint32_t k = 0;
            while (k < count && !heft_str_eq(c[k].name, w->name))
                k++;
            if (k == count && heft_str_eq(w->name, name))
                return w;
        }
    return NULL;
}

/* Return the text with the words of all choices; ptr NULL: out of memory. */
static heft_str put_words(heft_map_reader *r, heft_str text, bool is_left, const choice *c,
                          uint32_t count)
{
    heft_arena *a = &r->m->arena;
    for (uint32_t i = 0; i < count && text.ptr; i++) {
        heft_str done = { "", 0 }, rest = text, before, name;
        while (heft_map_cut(&rest, &before, "{") && done.ptr) {
            bool is_closed = heft_map_cut(&rest, &name, "}");
            heft_str word = is_left ? c[i].left : c[i].right;
            done = heft_arena_join(a, done, before, heft_lit(""));
            if (done.ptr && heft_str_eq(name, c[i].name))
                done = heft_arena_join(a, done, word, heft_lit(""));
            else if (done.ptr)
                done = heft_arena_join(a, heft_arena_join(a, done, heft_lit("{"), name),
                                       heft_lit(""), heft_lit(is_closed ? "}" : ""));
        }
        text = done.ptr ? heft_arena_join(a, done, before, heft_lit("")) : done;
    }
    return text;
}

heft_status heft_map_add_rules(heft_map_reader *r, heft_str left, heft_str rest)
{
    choice c[WORDS_PER_RULE];
    uint32_t count = 0;
    heft_str right, steps = rest;
    heft_map_cut(&steps, &right, " : ");
    const heft_map_words *w;
    while ((w = find_set(r, left, c, count)) != NULL) {
        if (count == WORDS_PER_RULE)
            return heft_map_fail(r, "too many sets of words in", left);
        c[count] = (choice){ .name = w->name, .more = w->pairs };
        next_pair(&c[count++]);
    }
    for (;;) {
        heft_str a = put_words(r, left, true, c, count), b = put_words(r, right, false, c, count);
        HEFT_TRY(a.ptr && b.ptr ? add_rule(r, a, b, heft_map_trim(steps))
                                : heft_map_no_memory(r->err));
        uint32_t i = count;
        while (i && !c[i - 1].more.len) { /* begin this set again */
            const heft_map_words *all = r->words.ptr;
            uint32_t k = r->words.len;
            while (!heft_str_eq(all[--k].name, c[i - 1].name))
                ;
            c[i - 1].more = all[k].pairs;
            next_pair(&c[--i]);
        }
        if (!i)
            return HEFT_OK;
        next_pair(&c[i - 1]);
    }
}
