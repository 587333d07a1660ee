/* module_settings.c - keeps the settings of modules, and finds those of a module. */
#include "scheme/module_settings.h"

#include "base/text.h"

enum { MOST_PATTERNS = 512, MOST_COMPONENTS = 16 };

static const heft_module_rule *rule_at(const heft_module_settings *m, uint32_t i)
{
    return (const heft_module_rule *)m->rules.ptr + i;
}

static heft_str rule_name(const void *ctx, uint32_t i)
{
    return rule_at(ctx, i)->text;
}

/* ---- adding ---- */

static bool copy_text(heft_module_settings *m, heft_str *text)
{
    *text = heft_arena_copy(m->arena, *text);
    return text->ptr;
}

static bool add_name(heft_module_settings *m, heft_module_rule *rule)
{
    const heft_names_of of = { rule_name, m };
    uint32_t hash = heft_names_hash(m->key, rule->text), number = m->rules.len;
    if (!heft_names_grow(m->mem, &m->names, m->key, of, number))
        return false;
    if (heft_names_find(&m->names, of, hash, rule->text) != HEFT_NONE)
        return true;
    if (!heft_vec_add(m->mem, &m->rules, rule, sizeof *rule))
        return false;
    heft_names_add(&m->names, of, hash, rule->text, number);
    return true;
}

static bool add_pattern(heft_module_settings *m, heft_module_rule *rule)
{
    heft_name_pattern compiled;
    bool is_regex = rule->kind == HEFT_RULE_REGEX && m->patterns.len < MOST_PATTERNS;
    if (is_regex && heft_pattern_compile(&compiled, rule->text)) {
        rule->pattern = heft_arena_alloc(m->arena, sizeof compiled, 8);
        if (!rule->pattern)
            return false;
        *rule->pattern = compiled;
    }
    bool is_known = rule->kind == HEFT_RULE_REGEX ? rule->pattern != NULL
                                                  : m->patterns.len < MOST_PATTERNS;
    if (!is_known && !rule->is_exempt && !m->not_known.len)
        m->not_known = rule->text;
    return heft_vec_add(m->mem, &m->patterns, rule, sizeof *rule);
}

bool heft_module_rule_add(heft_module_settings *m, const heft_module_rule *rule)
{
    heft_module_rule own = *rule;
    if (!own.text.len)
        return true;
    if (!copy_text(m, &own.text) || !copy_text(m, &own.of.method) || !copy_text(m, &own.of.form))
        return false;
    m->has_exemptions = m->has_exemptions || own.is_exempt;
    m->has_endings = m->has_endings || own.kind == HEFT_RULE_ENDING;
    return own.kind <= HEFT_RULE_ENDING ? add_name(m, &own) : add_pattern(m, &own);
}

void heft_module_settings_free(heft_module_settings *m)
{
    heft_vec_free(m->mem, &m->rules, sizeof(heft_module_rule));
    heft_vec_free(m->mem, &m->patterns, sizeof(heft_module_rule));
    heft_names_free(m->mem, &m->names);
}

/* ---- finding ---- */

static const heft_module_rule *find_name(const heft_module_settings *m, heft_str name)
{
    const heft_names_of of = { rule_name, m };
    uint32_t i = m->names.slots
                     ? heft_names_find(&m->names, of, heft_names_hash(m->key, name), name)
                     : HEFT_NONE;
    return i == HEFT_NONE ? NULL : rule_at(m, i);
}

/* Return the name without its first component. */
static heft_str without_first(heft_str name)
{
    size_t i = 0;
    while (i < name.len && name.ptr[i] != '.')
        i++;
    i += i < name.len;
    return (heft_str){ name.ptr + i, name.len - i };
}

static heft_str without_last(heft_str name)
{
    while (name.len && name.ptr[name.len - 1] != '.')
        name.len--;
    name.len -= name.len > 0;
    return name;
}

static bool matches(const heft_module_rule *r, heft_str name, uint64_t *work)
{
    if (r->kind == HEFT_RULE_REGEX)
        return r->pattern && heft_pattern_matches(r->pattern, name, work);
    if (r->kind != HEFT_RULE_GLOB)
        return false;
    uint64_t most = (uint64_t)r->text.len * name.len;
    bool is_affordable = most <= *work;
    *work -= is_affordable ? most : *work;
    return is_affordable && heft_glob(r->text, name);
}

/* A class is not in the names of tensors: "Linear" is every module that nothing else names, and
 * embeddings are known by their names. */
static bool is_of_class(heft_str class_name, heft_str module)
{
    heft_str word = heft_lit("embed");
    const uint8_t *p = (const uint8_t *)module.ptr;
    bool is_embedding = p && heft_str_seek(p, p + module.len, word.ptr, word.len);
    return heft_str_is(class_name, "Embedding") == is_embedding;
}

static const heft_module_rule *find_pattern(const heft_module_settings *m, heft_str name,
                                            uint64_t *work)
{
    const heft_module_rule *all = m->patterns.ptr;
    for (uint32_t i = 0; i < m->patterns.len; i++)
        if (!all[i].is_exempt && matches(&all[i], name, work))
            return &all[i];
    for (uint32_t i = 0; i < m->patterns.len; i++)
        if (!all[i].is_exempt && all[i].kind == HEFT_RULE_CLASS && is_of_class(all[i].text, name))
            return &all[i];
    return NULL;
}

const heft_quantisation_settings *heft_module_settings_of(const heft_module_settings *m,
                                                          heft_str module, uint64_t *work)
{
    heft_str name = { module.ptr, module.len - (module.len > 0) }; /* without the dot */
    const heft_module_rule *r = find_name(m, name);
    heft_str end = m->has_endings ? without_first(name) : (heft_str){ NULL, 0 };
    for (int i = 0; !r && end.len && i < MOST_COMPONENTS; i++, end = without_first(end)) {
        r = find_name(m, end);
        r = r && r->kind == HEFT_RULE_ENDING ? r : NULL;
    }
    if (!r || r->is_exempt)
        r = find_pattern(m, name, work);
    return r ? &r->of : &m->model;
}

/* The name of an exempt module may lack components at the beginning or at the end. */
static bool has_exempt_name(const heft_module_settings *m, heft_str tensor)
{
    for (int i = 0; tensor.len && i < MOST_COMPONENTS; i++, tensor = without_first(tensor)) {
        heft_str name = tensor;
        for (int k = 0; name.len && k < MOST_COMPONENTS; k++, name = without_last(name)) {
            const heft_module_rule *r = find_name(m, name);
            if (r && r->is_exempt)
                return true;
        }
    }
    return false;
}

bool heft_module_is_exempt(const heft_module_settings *m, heft_str tensor, uint64_t *work)
{
    const heft_module_rule *all = m->patterns.ptr;
    heft_str module = without_last(tensor);
    if (!m->has_exemptions)
        return false;
    if (has_exempt_name(m, tensor))
        return true;
    for (uint32_t i = 0; i < m->patterns.len; i++) {
        const heft_module_rule *r = &all[i];
        bool is_unknown = r->kind == HEFT_RULE_REGEX && !r->pattern;
        if (r->is_exempt && (is_unknown || matches(r, module, work) || matches(r, tensor, work)))
            return true;
    }
    return false;
}
