/* map_choice.c - opens shipped maps, by name or for a model. */
#include "base/error.h"
#include "base/text.h"
#include "map/map_match.h"
#include "map/map_reader.h"

heft_status heft_map_open(heft_map **out, heft_str name, const heft_host *host, heft_error *err)
{
    heft_str text = heft_map_find_text(name);
    *out = NULL;
    if (!text.ptr)
        return heft_error_plain(err, HEFT_E_NOTFOUND, "no map %q is shipped", name);
    return heft_map_parse(out, text, host, err);
}

/* ---- the direction ---- */

static uint32_t count_matches(const heft_map *m, const heft_file *f, uint32_t side)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < heft_ix_tensors(&f->x); i++) {
        heft_map_match found = { .tensor = i };
        count += heft_map_find_rule(m, side, heft_ix_name(&f->x, i), &found);
    }
    return count;
}

heft_map_direction heft_map_side(const heft_map *m, const heft_file *f)
{
    heft_file_enter(f); /* names are mapped */
    bool is_left = count_matches(m, f, 0) >= count_matches(m, f, 1);
    heft_file_disarm(f);
    return is_left ? HEFT_MAP_FORWARD : HEFT_MAP_INVERSE;
}

size_t heft_map_rename(char *to, size_t bytes, const heft_map *m, heft_map_direction from,
                       heft_str name)
{
    heft_map_match found = { .tensor = 0 };
    uint32_t side = from == HEFT_MAP_INVERSE;
    heft_memory mem = { m->host->allocator, UINT64_MAX, 0 };
    heft_arena a = { .mem = &mem };
    if (!heft_map_find_rule(m, side, name, &found))
        return 0;
    const heft_map_rule *r = HEFT_MAP_AT(m, rules, heft_map_rule, found.rule);
    if (r->ops || r->condition.len || r->patterns[0] != 1 || r->patterns[1] != 1)
        return 0;
    heft_str other = heft_map_name(m, r->first_pattern[!side], &found.captures, &a);
    bool fits = other.len <= bytes;
    if (fits && other.len)
        memcpy(to, other.ptr, other.len);
    heft_arena_free(&a);
    return fits ? other.len : 0;
}

/* Return the text of a metadata key; ptr NULL: there is none. */
static heft_str metadata_text(const heft_index *x, const char *key)
{
    for (uint32_t i = 0; i < x->values.len; i = heft_ix_value_next(x, i))
        if (heft_ix_value(x, i)->kind == HEFT_KIND_STR &&
            heft_str_is(heft_ix_value(x, i)->key, key))
            return heft_ix_value(x, i)->as.s;
    return (heft_str){ NULL, 0 };
}

heft_status heft_map_open_for(heft_map **out, const heft_file *f, const heft_settings *config,
                              heft_error *err)
{
    heft_value type;
    bool has_type = config && heft_settings_find(&type, config, heft_lit("model_type")) &&
                    type.kind == HEFT_KIND_STR;
    heft_str arch = metadata_text(&f->x, "general.architecture");
    uint32_t most = 0;
    heft_status st = HEFT_OK;
    *out = NULL;
    for (uint32_t i = 0; !st && heft_map_shipped(i).ptr; i++) {
        heft_map *m;
        HEFT_TRY(heft_map_parse(&m, heft_map_shipped(i), f->host, err));
        bool is_for = arch.len ? heft_str_eq(m->info.architecture, arch)
                               : has_type && heft_str_has_word(m->info.models, type.as.s);
        uint32_t count = is_for ? 1 + count_matches(m, f, arch.len != 0) : 0;
        bool is_better = count > most;
        heft_map_close(is_better ? *out : m);
        *out = is_better ? m : *out;
        most = is_better ? count : most;
    }
    if (*out || st)
        return st;
    if (!arch.len && !has_type)
        return heft_error_plain(err, HEFT_E_NOTFOUND,
                                "the model says nothing of its type: it has no config.json with a "
                                "\"model_type\", and no general.architecture");
    return heft_error_plain(err, HEFT_E_NOTFOUND, "no shipped map is for models of the type %q",
                            arch.len ? arch : type.as.s);
}
