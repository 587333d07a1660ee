#include "options/rules.h"

#include <heft/scheme.h>

#include <stdlib.h>
#include <string.h>

#include "models/model.h"
#include "models/quantised.h"
#include "options/command.h"

static bool matches_any(rules *r, heft_str name, const opt_list *globs)
{
    for (size_t i = 0; i < globs->count; i++)
        if (name_matches(&r->no_memory, name, globs->item[i]))
            return true;
    return false;
}

/* ---- what a conversion asks ---- */

static bool keep(void *ctx, const heft_tensor *t)
{
    /* A buffer 0, 1, 2, ... of BERT models, not a weight. */
    static const char ids[] = "position_ids";
    size_t len = sizeof ids - 1, n = t->name.len;
    const char *end = t->name.ptr + n;
    rules *r = ctx;
    if (r->encoder && n >= len && !memcmp(end - len, ids, len) &&
        (n == len || end[-(ptrdiff_t)len - 1] == '.'))
        return false;
    bool kept = !r->keep.count || matches_any(r, t->name, &r->keep);
    kept = kept && !matches_any(r, t->name, &r->drop);
    return kept || r->no_memory; /* on no_memory, rename_tensor() ends the conversion */
}

static bool transpose(void *ctx, const heft_tensor *t)
{
    rules *r = ctx;
    return matches_any(r, t->name, &r->transpose);
}

static bool densify(void *ctx, const heft_tensor *t)
{
    rules *r = ctx;
    return matches_any(r, t->name, &r->densify);
}

/* Without a pattern, --sparsify applies only to tensors that can have the layout. */
static heft_layout sparsify(void *ctx, const heft_tensor *t)
{
    rules *r = ctx;
    const heft_dtype_info *d = heft_dtype_get(t->dtype);
    bool plain = d && d->block_elems == 1 && t->part_count == 1;
    for (size_t i = 0; i < r->sparsify.args.count; i++) {
        const glob_rule *s = &r->sparsify.items[i];
        bool suits = plain && (s->layout == HEFT_SPARSE_CSR ? t->rank == 2 : t->rank > 0);
        if (s->glob ? name_matches(&r->no_memory, t->name, s->glob) : suits)
            return s->layout;
    }
    return HEFT_DENSE;
}

static heft_dtype cast(void *ctx, const heft_tensor *t)
{
    rules *r = ctx;
    heft_dtype to = cast_rules_find(&r->no_memory, &r->cast, t);
    return to || !r->mix ? to : rules_mix_type(r, t);
}

static bool storage(void *ctx, const heft_tensor *t, heft_str role, heft_storage *out)
{
    rules *r = ctx;
    bool is_asked = storage_rules_choose(&r->storage, t, role, out);
    r->no_memory = r->no_memory || r->storage.no_memory;
    return is_asked;
}

static bool identify(void *ctx, const heft_tensor *t, heft_identity *id)
{
    rules *r = ctx;
    bool changed = identity_of(&r->ids, &r->gptrs, t, t->name, false, id);
    r->no_memory = r->no_memory || r->gptrs.no_memory;
    return changed;
}

/* ---- renaming ---- */

static heft_str rename_tensor(void *ctx, const heft_tensor *t)
{
    static const char prefix[] = "bert.";
    size_t len = sizeof prefix - 1;
    rules *r = ctx;
    heft_str name = renames_apply(&r->rename, t->name);
    r->no_memory = r->no_memory || r->rename.no_memory;
    if (r->no_memory)
        /* An invalid name ends the conversion before it writes. */
        return (heft_str){ "\xFF", 1 };
    if (r->encoder && name.len > len && !memcmp(name.ptr, prefix, len))
        name = (heft_str){ name.ptr + len, name.len - len };
    return name;
}

/* ---- what was given ---- */

int rules_prepare(rules *r, const char *cmd, heft_write_options *o)
{
    int code = gptrs_prepare(&r->gptrs, cmd);
    if (!code)
        code = renames_prepare(&r->rename, cmd);
    if (!code)
        code = cast_rules_prepare(&r->cast, cmd);
    if (!code)
        code = glob_rules_prepare(&r->sparsify, GLOB_SPARSIFY, cmd);
    if (!code)
        code = storage_rules_prepare(&r->storage, cmd, o);
    if (!code)
        code = set_options_prepare(&r->set, cmd);
    return code;
}

void rules_set(rules *r, heft_convert_options *o)
{
    bool filters = r->keep.count || r->drop.count || r->encoder, casts = r->cast.args.count;
    bool transposes = r->transpose.count, densifies = r->densify.count;
    bool sparsifies = r->sparsify.args.count;
    bool is_given = filters || r->rename.args.count || casts || transposes || densifies ||
                    sparsifies;
    bool has_identities = identities_are_given(&r->ids) || gptrs_are_given(&r->gptrs);
    o->keep = filters ? keep : NULL;
    o->rename = is_given ? rename_tensor : NULL; /* also ends the conversion on no_memory */
    o->cast = casts || r->mix ? cast : NULL;
    o->importance = r->mix ? rules_mix_importance : NULL;
    o->transpose = transposes ? transpose : NULL;
    o->densify = densifies ? densify : NULL;
    o->sparsify = sparsifies ? sparsify : NULL;
    o->identify = has_identities ? identify : NULL;
    o->storage = storage_rules_are_given(&r->storage) ? storage : NULL;
    o->ctx = r;
    o->raw_tensors = r->raw_tensors;
    o->schemes = r->schemes;
    o->set = r->set.values;
    o->set_count = r->set.value_count;
}

/* ---- what has no effect ---- */

static void check_patterns(unmatched *u, const char *option, const opt_list *globs)
{
    for (size_t i = 0; i < globs->count; i++)
        unmatched_check(u, option, globs->item[i]);
}

static int check_renames(unmatched *u, rules *r)
{
    if (!r->rename.args.count)
        return CODE_DONE;
    heft_str *names = renames_apply_to_file(&r->rename, u->f);
    if (!names)
        return say_no_memory_to_match(u->path);
    renames_check(u, &r->rename);
    int code = renames_refuse_collisions(u->f, u->path, names, keep, r);
    free(names);
    return code;
}

/* Refuse to write an empty model: patterns that leave no tensor are most likely a mistake. */
static int refuse_empty(rules *r, const heft_file *f, const char *path)
{
    uint32_t count = heft_tensor_count(f);
    if (!r->keep.count && !r->drop.count)
        return CODE_DONE;
    for (uint32_t i = 0; i < count; i++) {
        heft_tensor t = heft_tensor_at(f, i);
        if (keep(r, &t))
            return CODE_DONE;
    }
    int code = model_check_unchanged(f, path);
    return code ? code
                : say_status(HEFT_E_ARGUMENT, path,
                             "--keep and --drop leave none of the %u tensors: nothing written",
                             count);
}

/* A pattern may select a part of a quantised tensor, so they are found before the patterns are
 * tried. */
static int find_quantised(rules *r, const heft_file *f, const char *path)
{
    bool is_given = r->cast.args.count || r->transpose.count;
    bool is_needed = is_given && !r->raw_tensors && !r->is_decoded;
    int code = is_needed ? quantised_open(&r->schemes, f, path) : CODE_DONE;
    r->cast.f = f;
    r->cast.schemes = r->schemes;
    return code;
}

int rules_check(rules *r, const session *s, const heft_file *f, const char *path)
{
    int code = find_quantised(r, f, path);
    if (code)
        return code;
    unmatched u = { .f = f, .path = path, .strict = s->strict };
    check_patterns(&u, "keep", &r->keep);
    check_patterns(&u, "drop", &r->drop);
    check_patterns(&u, "transpose", &r->transpose);
    check_patterns(&u, "densify", &r->densify);
    cast_rules_check(&u, &r->cast);
    glob_rules_check(&u, &r->sparsify, GLOB_SPARSIFY);
    storage_rules_check(&u, &r->storage);
    glob_rules_check(&u, &r->gptrs.grads, GLOB_GRAD);
    code = refuse_empty(r, f, path);
    if (!code)
        code = check_renames(&u, r);
    if (!code && identities_are_given(&r->ids))
        code = identities_prepare(&r->ids, s->command->name, f, path, keep, r);
    r->no_memory = r->no_memory || u.no_memory;
    if (r->no_memory)
        return say_no_memory_to_match(path);
    return code ? code : u.code;
}

void rules_release(rules *r)
{
    renames_release(&r->rename);
    cast_rules_release(&r->cast);
    glob_rules_release(&r->sparsify);
    storage_rules_release(&r->storage);
    identities_release(&r->ids);
    gptrs_release(&r->gptrs);
    heft_schemes_close(r->schemes);
    set_options_release(&r->set);
}
