#include "gptrs_options.h"

#include <stdlib.h>
#include <string.h>

#include <heft/params.h>

#include "model.h"

typedef struct grad_rule {
    char *glob; /* NULL: every tensor */
    bool is_known, value, has_matched;
} grad_rule;

bool gptrs_are_given(const gptrs_rules *r)
{
    return r->grads.count || r->base_ids;
}

static int no_memory(void)
{
    say(NULL, "no memory for --requires-grad");
    return CODE_SYSTEM;
}

/* Names may have a = in them: the last one counts. */
static int read_rule(grad_rule *to, const char *who, const char *given)
{
    const char *equals = strrchr(given, '=');
    const char *word = equals ? equals + 1 : given;
    to->value = !strcmp(word, "true");
    to->is_known = to->value || !strcmp(word, "false");
    if (!to->is_known && strcmp(word, "unset") != 0)
        return say_usage(who, "--requires-grad: '%s' is not [GLOB=]true, false or unset", given);
    to->glob = equals ? strndup(given, (size_t)(equals - given)) : NULL;
    return equals && !to->glob ? no_memory() : CODE_DONE;
}

int gptrs_prepare(gptrs_rules *r, const char *who)
{
    int code = CODE_DONE;
    if (r->base_ids && strcmp(r->base_ids, "name") != 0 && strcmp(r->base_ids, "none") != 0)
        return say_usage(who, "--base-ids is name or none, not '%s'", r->base_ids);
    r->rules = calloc(r->grads.count + 1, sizeof *r->rules);
    if (!r->rules)
        return no_memory();
    for (size_t i = 0; i < r->grads.count && !code; i++)
        code = read_rule(&r->rules[i], who, r->grads.item[i]);
    return code;
}

int gptrs_check_target(const gptrs_rules *r, const heft_format *target, const char *path)
{
    if (!r->base_ids || !strncmp(heft_format_name(target), "gptrs-", 6))
        return CODE_DONE;
    say(path, "--base-ids: %s files have no base ids", heft_format_name(target));
    return CODE_CANNOT;
}

/* The first rule that matches; all learn whether they would. */
static const grad_rule *find_rule(gptrs_rules *r, heft_str name)
{
    const grad_rule *first = NULL;
    for (size_t i = 0; i < r->grads.count; i++) {
        grad_rule *g = &r->rules[i];
        bool matches = !g->glob || name_matches(&r->no_memory, name, g->glob);
        g->has_matched = g->has_matched || matches;
        first = first || !matches ? first : g;
    }
    return first;
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

bool gptrs_identify(gptrs_rules *r, const heft_tensor *t, heft_str name, bool keeps_ids,
                    heft_identity *id)
{
    const grad_rule *rule = find_rule(r, t->name);
    if (rule) {
        id->has &= ~(uint32_t)HEFT_HAS_REQUIRES_GRAD;
        id->has |= rule->is_known ? HEFT_HAS_REQUIRES_GRAD : 0;
        id->requires_grad = rule->value;
    }
    return set_base_id(r, name, keeps_ids, id) || rule;
}

bool identity_of(identities *ids, gptrs_rules *r, const heft_tensor *t, heft_str name,
                 bool keeps_ids, heft_identity *id)
{
    bool has_burn_id = identities_are_given(ids) && identities_identify(ids, t, id);
    return gptrs_identify(r, t, name, keeps_ids, id) || has_burn_id;
}

int gptrs_check(const gptrs_rules *r, const char *path)
{
    if (r->no_memory)
        return no_memory();
    for (size_t i = 0; r->rules && i < r->grads.count; i++)
        if (r->rules[i].glob && !r->rules[i].has_matched)
            say(path, "warning: no tensor matches --requires-grad '%s'", r->rules[i].glob);
    return CODE_DONE;
}

void gptrs_release(gptrs_rules *r)
{
    for (size_t i = 0; r->rules && i < r->grads.count; i++)
        free(r->rules[i].glob);
    free(r->rules);
}
