#include "gptrs_options.h"

#include <stdlib.h>
#include <string.h>

#include <heft/params.h>

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
