#include "options/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <heft/params.h>

#include "models/burn.h"
#include "models/model.h"

typedef struct id_assignment { /* parsed NAME=ID */
    heft_str name;
    bool is_none; /* NAME=none: remove the id */
    uint64_t id;
    const char *text; /* the argument */
    size_t number;    /* position of the argument */
} id_assignment;

typedef struct owned_id {
    uint64_t id;
    heft_str name; /* of the tensor with this id */
    size_t number; /* position of the tensor in the file */
} owned_id;

bool identities_are_given(const identities *r)
{
    return r->set.count || r->all_new || r->fill;
}

static int no_memory(void)
{
    return say_status(HEFT_E_NOMEM, NULL, "no memory for the ids of tensors");
}

/* ---- what was given ---- */

/* Parse NAME=ID, where ID may be "none". */
static int parse_assignment(id_assignment *g, const char *cmd, const char *arg)
{
    const char *equals = strrchr(arg, '=');
    *g = (id_assignment){ .text = arg };
    if (!equals)
        return say_usage(cmd, "'%s' is not NAME=ID", arg);
    g->name = (heft_str){ arg, (size_t)(equals - arg) };
    g->is_none = !strcmp(equals + 1, "none");
    if (g->is_none || burn_read_id(&g->id, equals + 1))
        return CODE_DONE;
    return say_usage(cmd,
                     "'%s': an id is a number below 2^64, the 13 characters that Burn prints, or "
                     "none",
                     arg);
}

static int compare_names(const void *a, const void *b)
{
    const id_assignment *x = a, *y = b;
    size_t least = x->name.len < y->name.len ? x->name.len : y->name.len;
    int order = least ? memcmp(x->name.ptr, y->name.ptr, least) : 0;
    return order ? order : (x->name.len > y->name.len) - (x->name.len < y->name.len);
}

static int compare_counts(size_t x, size_t y)
{
    return (x > y) - (x < y);
}

/* Sort by name; qsort() does not keep equal elements in order everywhere. */
static int order_names(const void *a, const void *b)
{
    int order = compare_names(a, b);
    const id_assignment *x = a, *y = b;
    return order ? order : compare_counts(x->number, y->number);
}

static int parse_assignments(identities *r, const char *cmd, const heft_file *f, const char *path)
{
    int code = CODE_DONE;
    r->assigned = calloc(r->set.count + 1, sizeof *r->assigned);
    if (!r->assigned)
        return no_memory();
    for (size_t i = 0; i < r->set.count && !code; i++) {
        id_assignment *g = &r->assigned[i];
        code = parse_assignment(g, cmd, r->set.item[i]);
        g->number = i;
        if (!code && heft_tensor_find(f, g->name) == HEFT_NONE) {
            code = model_check_unchanged(f, path);
            code = code ? code
                        : say_status(HEFT_E_NOTFOUND, path,
                                     "--set-id '%s': no tensor has that name", g->text);
        }
    }
    if (code)
        return code;
    qsort(r->assigned, r->set.count, sizeof *r->assigned, order_names);
    for (size_t i = 1; i < r->set.count; i++)
        if (!compare_names(&r->assigned[i - 1], &r->assigned[i]))
            return say_usage(cmd, "'%s' and '%s' are for the same tensor", r->assigned[i - 1].text,
                             r->assigned[i].text);
    return CODE_DONE;
}

static const id_assignment *find_assignment(const identities *r, heft_str name)
{
    id_assignment key = { .name = name };
    return bsearch(&key, r->assigned, r->set.count, sizeof *r->assigned, compare_names);
}

/* ---- ids that there will be ---- */

static int compare_ids(const void *a, const void *b)
{
    uint64_t x = ((const owned_id *)a)->id, y = ((const owned_id *)b)->id;
    return (x > y) - (x < y);
}

static int order_ids(const void *a, const void *b)
{
    int order = compare_ids(a, b);
    const owned_id *x = a, *y = b;
    return order ? order : compare_counts(x->number, y->number);
}

/* Refuse to change an id in an optimizer record: tensors, scalars and metadata name the parameter
 * by its id and would no longer agree. */
static int refuse_record(const char *path, heft_str name)
{
    outbuf text;
    out_open(&text, -1);
    out_escaped(&text, name);
    int code = say_status(
        HEFT_E_UNSUPPORTED, path,
        "tensor '%s' is part of an optimizer record: its id names a parameter of the model and "
        "cannot be changed alone",
        out_cstr(&text));
    out_free(&text);
    return code;
}

static int refuse_duplicate(const char *path, const id_assignment *g, heft_str other)
{
    outbuf text;
    out_open(&text, -1);
    out_escaped(&text, other);
    int code = say_status(HEFT_E_ARGUMENT, path, "--set-id '%s': tensor '%s' already has that id",
                          g->text, out_cstr(&text));
    out_free(&text);
    return code;
}

typedef struct id_survey { /* ids of the selected tensors after the change */
    owned_id *owned;       /* ids that are kept or assigned, without new ones */
    size_t owned_count, fresh;
} id_survey;

static int survey_tensor(identities *r, id_survey *s, const heft_file *f, uint32_t t,
                         const char *path)
{
    heft_str name = heft_tensor_at(f, t).name, field;
    uint64_t id;
    bool has = burn_id_of(&id, f, t);
    const id_assignment *g = find_assignment(r, name);
    bool is_fresh = !g && (r->all_new || (r->fill && !has));
    if ((g || is_fresh) && has && burn_field_of(&field, name, id))
        return refuse_record(path, name);
    s->fresh += is_fresh;
    if (g ? g->is_none : !has || is_fresh)
        return CODE_DONE;
    s->owned[s->owned_count] = (owned_id){ g ? g->id : id, name, s->owned_count };
    s->owned_count++;
    return CODE_DONE;
}

/* Refuse to assign an id that another tensor has. Equal ids in the input may stay equal. */
static int check_duplicates(const identities *r, const id_survey *s, const char *path)
{
    for (size_t i = 1; i < s->owned_count; i++) {
        const owned_id *a = &s->owned[i - 1], *b = &s->owned[i];
        const id_assignment *of_a = find_assignment(r, a->name),
                            *of_b = find_assignment(r, b->name);
        if (a->id == b->id && (of_a || of_b))
            return of_b ? refuse_duplicate(path, of_b, a->name)
                        : refuse_duplicate(path, of_a, b->name);
    }
    return CODE_DONE;
}

/* ---- new ids ---- */

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Generate an unused id. With --id-seed, ids are successive numbers of SplitMix64, so that equal
 * seeds give equal ids. */
static int generate_id(uint64_t *id, const identities *r, uint64_t *state, const id_survey *s)
{
    heft_error err;
    owned_id key = { 0, { NULL, 0 }, 0 };
    do {
        uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
        z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
        z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
        *id = z ^ z >> 31;
        if (!r->seed && heft_param_id_new(id, &err))
            return say_status(HEFT_E_IO, NULL, "cannot generate ids: %s", err.message);
        key.id = *id;
    } while (bsearch(&key, s->owned, s->owned_count, sizeof key, compare_ids));
    return CODE_DONE;
}

/* Generate an id for each tensor that needs a new id; start over if two are equal. */
static int generate_ids(identities *r, const id_survey *s, uint64_t state)
{
    size_t n = s->fresh;
    uint64_t *sorted = calloc(n + 1, sizeof *sorted);
    r->fresh = calloc(n + 1, sizeof *r->fresh);
    int code = sorted && r->fresh ? CODE_DONE : no_memory();
    for (bool twice = true; twice && !code;) {
        for (size_t i = 0; i < n && !code; i++)
            code = generate_id(&r->fresh[i], r, &state, s);
        memcpy(sorted, r->fresh, n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, compare_numbers);
        twice = false;
        for (size_t i = 1; i < n; i++)
            twice = twice || sorted[i - 1] == sorted[i];
    }
    r->fresh_count = code ? 0 : n;
    free(sorted);
    return code;
}

/* ---- for a file ---- */

static int prepare(identities *r, id_survey *s, const heft_file *f, const char *path,
                   bool (*keep)(void *ctx, const heft_tensor *t), void *ctx)
{
    int code = CODE_DONE;
    s->owned = calloc((size_t)heft_tensor_count(f) + 1, sizeof *s->owned);
    if (!s->owned)
        return no_memory();
    for (uint32_t t = 0; t < heft_tensor_count(f) && !code; t++) {
        heft_tensor tensor = heft_tensor_at(f, t);
        if (!keep || keep(ctx, &tensor))
            code = survey_tensor(r, s, f, t, path);
    }
    if (code)
        return code;
    qsort(s->owned, s->owned_count, sizeof *s->owned, order_ids);
    return check_duplicates(r, s, path);
}

int identities_prepare(identities *r, const char *cmd, const heft_file *f, const char *path,
                       bool (*keep)(void *ctx, const heft_tensor *t), void *ctx)
{
    id_survey s = { NULL, 0, 0 };
    uint64_t seed = 0;
    if (r->seed && !r->all_new && !r->fill)
        return say_usage(cmd, "--id-seed requires --new-ids or --fill-ids");
    if (r->seed && !burn_read_number(&seed, r->seed))
        return say_usage(cmd, "--id-seed must be a number below 2^64, not '%s'", r->seed);
    int code = parse_assignments(r, cmd, f, path);
    if (!code)
        code = prepare(r, &s, f, path, keep, ctx);
    if (!code)
        code = generate_ids(r, &s, seed);
    free(s.owned);
    return code;
}

bool identity_make_invalid(heft_identity *id)
{
    id->has = UINT32_MAX;
    return true;
}

bool identities_identify(void *ctx, const heft_tensor *t, heft_identity *id)
{
    identities *r = ctx;
    const id_assignment *g = find_assignment(r, t->name);
    bool is_fresh = !g && (r->all_new || (r->fill && !(id->has & HEFT_HAS_PARAM_ID)));
    bool ran_out = is_fresh && r->next == r->fresh_count;
    if (!g && !is_fresh)
        return false;
    if (ran_out) {
        r->ran_out = true;
        return identity_make_invalid(id);
    }
    id->has |= HEFT_HAS_PARAM_ID;
    if (g && g->is_none)
        id->has &= ~(uint32_t)HEFT_HAS_PARAM_ID;
    id->param_id = g ? g->id : r->fresh[r->next++];
    return true;
}

void identities_release(identities *r)
{
    free(r->assigned);
    free(r->fresh);
    r->assigned = NULL;
    r->fresh = NULL;
}

/* ---- --requires-grad and --base-ids, for gpt-rs files ---- */

bool gptrs_are_given(const gptrs_rules *r)
{
    return r->grads.args.count || r->base_ids;
}

int gptrs_prepare(gptrs_rules *r, const char *cmd)
{
    return glob_rules_prepare(&r->grads, GLOB_GRAD, cmd);
}

int gptrs_check_target(const gptrs_rules *r, const heft_format *target, const char *path)
{
    if (!r->base_ids || !strncmp(heft_format_name(target), "gptrs-", 6))
        return CODE_DONE;
    return say_status(HEFT_E_UNSUPPORTED, path, "--base-ids: %s files have no base ids",
                      heft_format_name(target));
}

static bool set_base_id(const gptrs_rules *r, heft_str name, bool keeps_ids, heft_identity *id)
{
    bool is_none = r->base_ids && !strcmp(r->base_ids, "none");
    if (!r->base_ids || (!is_none && !keeps_ids))
        return false;
    memset(id->base_id.bytes, 0, sizeof id->base_id.bytes);
    if (!is_none && !heft_param_base_id(&id->base_id, name))
        return false;
    id->has |= HEFT_HAS_BASE_ID;
    return true;
}

bool identity_of(identities *ids, gptrs_rules *r, const heft_tensor *t, heft_str name,
                 bool keeps_ids, heft_identity *id)
{
    bool changed = identities_are_given(ids) && identities_identify(ids, t, id);
    const glob_rule *grad = glob_rules_find(&r->no_memory, &r->grads, t->name);
    if (r->no_memory)
        return identity_make_invalid(id);
    if (grad) {
        id->has &= ~(uint32_t)HEFT_HAS_REQUIRES_GRAD;
        id->has |= grad->is_known ? HEFT_HAS_REQUIRES_GRAD : 0;
        id->requires_grad = grad->value;
    }
    return set_base_id(r, name, keeps_ids, id) || grad || changed;
}

void gptrs_release(gptrs_rules *r)
{
    glob_rules_release(&r->grads);
}
