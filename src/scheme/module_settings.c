#include "scheme/module_settings.h"

#include <heft/companion.h>

#include "base/text.h"

/* ---- modules with settings of their own ---- */

typedef struct module_row {
    heft_str name;
    uint32_t bits;
    uint64_t group;
} module_row;

static heft_str row_name(const void *ctx, uint32_t i)
{
    return ((const module_row *)((const heft_module_settings *)ctx)->rows.ptr)[i].name;
}

/* Read the map of value `at`; a module has settings of its own if it states both numbers. */
static module_row read_row(const heft_settings *s, uint32_t at)
{
    enum { MOST_BITS = 64 };
    heft_value map = heft_settings_value_at(s, at);
    module_row row = { .name = map.key };
    for (uint32_t i = at + 1; i < map.as.container.end; i = heft_settings_next(s, i)) {
        heft_value n = heft_settings_value_at(s, i);
        if (n.kind != HEFT_KIND_INT || n.as.i <= 0)
            continue;
        if (heft_str_is(n.key, "bits") && n.as.i <= MOST_BITS)
            row.bits = (uint32_t)n.as.i;
        if (heft_str_is(n.key, "group_size"))
            row.group = (uint64_t)n.as.i;
    }
    return row;
}

static bool add_row(heft_module_settings *m, heft_memory *mem, const heft_name_hash *key,
                    const module_row *row)
{
    const heft_names_of of = { row_name, m };
    uint32_t hash = heft_names_hash(key, row->name), number = m->rows.len;
    if (m->names.slots && heft_names_find(&m->names, of, hash, row->name) != HEFT_NONE)
        return true;
    if (!heft_vec_add(mem, &m->rows, row, sizeof *row) ||
        !heft_names_grow(mem, &m->names, key, of, number))
        return false;
    heft_names_add(&m->names, of, hash, row->name, number);
    return true;
}

bool heft_module_settings_read(heft_module_settings *out, heft_memory *mem,
                               const heft_name_hash *key, const heft_settings *s)
{
    uint32_t at = s ? heft_settings_find_path(s, heft_lit("quantization")) : HEFT_NONE;
    bool ok = true;
    if (at == HEFT_NONE || heft_settings_value_at(s, at).kind != HEFT_KIND_MAP)
        return true;
    uint32_t end = heft_settings_value_at(s, at).as.container.end;
    for (uint32_t i = at + 1; ok && i < end; i = heft_settings_next(s, i)) {
        if (heft_settings_value_at(s, i).kind != HEFT_KIND_MAP)
            continue;
        module_row row = read_row(s, i);
        ok = !row.bits || !row.group || add_row(out, mem, key, &row);
    }
    return ok;
}

void heft_module_settings_free(heft_module_settings *m, heft_memory *mem)
{
    heft_vec_free(mem, &m->rows, sizeof(module_row));
    heft_names_free(mem, &m->names);
}

heft_quantisation_settings heft_module_settings_of(const heft_module_settings *m,
                                                   const heft_name_hash *key,
                                                   const heft_quantisation_settings *model,
                                                   heft_str module)
{
    heft_quantisation_settings of = *model;
    const heft_names_of names = { row_name, m };
    module.len -= module.len > 0; /* the dot */
    uint32_t i = m->rows.len
                     ? heft_names_find(&m->names, names, heft_names_hash(key, module), module)
                     : HEFT_NONE;
    if (i != HEFT_NONE) {
        const module_row *row = (const module_row *)m->rows.ptr + i;
        of.bits = row->bits;
        of.group = row->group;
        of.has_group = true;
    }
    return of;
}

/* ---- modules that are not quantised ---- */

static bool add_list(heft_vec *out, heft_memory *mem, heft_arena *arena, const heft_settings *s,
                     const char *path)
{
    uint32_t at = heft_settings_find_path(s, heft_lit(path));
    if (at == HEFT_NONE || heft_settings_value_at(s, at).kind != HEFT_KIND_LIST)
        return true;
    uint32_t end = heft_settings_value_at(s, at).as.container.end;
    for (uint32_t i = at + 1; i < end; i = heft_settings_next(s, i)) {
        heft_value v = heft_settings_value_at(s, i);
        if (v.kind != HEFT_KIND_STR || !v.as.s.len)
            continue;
        heft_str name = heft_arena_copy(arena, v.as.s);
        if (!name.ptr || !heft_vec_add(mem, out, &name, sizeof name))
            return false;
    }
    return true;
}

bool heft_exempt_modules(heft_vec *out, heft_memory *mem, heft_arena *arena, const heft_settings *s)
{
    static const char *const lists[] = { "quantization_config.modules_to_not_convert",
                                         "quantization_config.ignore",
                                         "quantization_config.ignored_layers",
                                         "quantization_config.llm_int8_skip_modules",
                                         "text_config.quantization_config.modules_to_not_convert",
                                         "text_config.quantization_config.ignore",
                                         "quantization.exclude_modules",
                                         "modules_to_not_convert" };
    bool ok = true;
    for (size_t i = 0; s && ok && i < sizeof lists / sizeof *lists; i++)
        ok = add_list(out, mem, arena, s, lists[i]);
    return ok;
}

bool heft_is_exempt(const heft_vec *exempt, heft_str tensor)
{
    const heft_str *modules = exempt->ptr;
    for (uint32_t i = 0; i < exempt->len; i++) {
        heft_str m = modules[i];
        bool is_pattern = m.len >= 3 && !memcmp(m.ptr, "re:", 3);
        bool is_same = m.len <= tensor.len && !memcmp(m.ptr, tensor.ptr, m.len) &&
                       (m.len == tensor.len || tensor.ptr[m.len] == '.');
        if (is_pattern || is_same)
            return true;
    }
    return false;
}
