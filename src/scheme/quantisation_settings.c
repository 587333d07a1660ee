/* quantisation_settings.c - reads what config.json, quantize_config.json, hf_quant_config.json or
 * the metadata of a file say about a quantised model.
 *
 * Where the programs that write the settings differ:
 *
 *   compressed-tensors   config_groups, each with targets and numbers; ignore
 *   ModelOpt             quantized_layers by name; exclude_modules and ignore are shell patterns
 *   MLX                  modules beside the numbers of the model, or false
 *   GPTQModel            dynamic: "+:REGEX" with other numbers, "-:REGEX" for not quantised
 *   AutoRound            extra_config by name or regular expression; 16 bits are not quantised
 *   ComfyUI              metadata _quantization_metadata: layers by the end of their names
 *   others               lists of modules that are not converted */
#include "scheme/module_settings.h"

#include <heft/companion.h>
#include <heft/scheme.h>

#include "base/text.h"

enum { MOST_BITS = 64, UNQUANTISED_BITS = 16 };

/* ---- values ---- */

/* A map among the settings: its index, or HEFT_NONE for the whole document. */
static uint32_t first_of(uint32_t map)
{
    return map == HEFT_NONE ? 0 : map + 1;
}

static uint32_t end_of(const heft_settings *s, uint32_t map)
{
    return map == HEFT_NONE ? heft_settings_value_count(s) : heft_settings_next(s, map);
}

static uint32_t find(const heft_settings *s, uint32_t map, const char *key)
{
    for (uint32_t i = first_of(map); i < end_of(s, map); i = heft_settings_next(s, i))
        if (heft_str_is(heft_settings_value_at(s, i).key, key))
            return i;
    return HEFT_NONE;
}

static uint32_t find_map(const heft_settings *s, uint32_t map, const char *key)
{
    uint32_t i = find(s, map, key);
    return i != HEFT_NONE && heft_settings_value_at(s, i).kind == HEFT_KIND_MAP ? i : HEFT_NONE;
}

/* Return the first of the keys with a text that is not empty. */
static heft_str find_text(const heft_settings *s, uint32_t map, const char *const *keys)
{
    for (; *keys; keys++) {
        uint32_t i = find(s, map, *keys);
        heft_value v = heft_settings_value_at(s, i);
        if (i != HEFT_NONE && v.kind == HEFT_KIND_STR && v.as.s.len)
            return v.as.s;
    }
    return heft_lit("");
}

static bool to_number(int64_t *out, const heft_settings *s, uint32_t i)
{
    heft_value v = heft_settings_value_at(s, i);
    *out = i != HEFT_NONE && v.kind == HEFT_KIND_INT ? v.as.i : 0;
    return i != HEFT_NONE && v.kind == HEFT_KIND_INT;
}

/* Find the first of the keys with an integer. */
static bool find_number(int64_t *out, const heft_settings *s, uint32_t map, const char *const *keys)
{
    for (; *keys; keys++)
        if (to_number(out, s, find(s, map, *keys)))
            return true;
    return false;
}

/* ---- numbers and forms of a map ---- */

/* Name the method that the keys belong to, where no key names it. */
static heft_str guess_method(const heft_settings *s, uint32_t map)
{
    static const struct {
        const char *key, *method;
    } rows[] = { { "quant_algo", "modelopt" },
                 { "w_bit", "awq" },
                 { "desc_act", "gptq" },
                 { "load_in_4bit", "bitsandbytes" },
                 { "load_in_8bit", "bitsandbytes" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (find(s, map, rows[i].key) != HEFT_NONE)
            return heft_lit(rows[i].method);
    /* MLX names no method in "quantization". */
    bool is_mlx = map != HEFT_NONE &&
                  heft_str_is(heft_settings_value_at(s, map).key, "quantization") &&
                  find(s, map, "group_size") != HEFT_NONE;
    return heft_lit(is_mlx ? "mlx" : "");
}

/* Replace the numbers that the map states. */
static void read_sizes(heft_quantisation_settings *out, const heft_settings *s, uint32_t map)
{
    static const char *const bits[] = { "bits", "w_bit", "num_bits", NULL };
    static const char *const groups[] = { "group_size", "q_group_size", NULL };
    static const char *const blocks[] = { "weight_block_size", "block_structure" };
    int64_t n;
    if (find_number(&n, s, map, bits) && n > 0 && n <= MOST_BITS)
        out->bits = (uint32_t)n;
    if (find_number(&n, s, map, groups)) {
        out->has_group = true;
        out->group = n > 0 ? (uint64_t)n : 0;
    }
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        uint32_t list = find(s, map, blocks[i]);
        if (list == HEFT_NONE || heft_settings_value_at(s, list).kind != HEFT_KIND_LIST ||
            heft_settings_value_at(s, list).as.container.count != 2)
            continue;
        out->block[0] = to_number(&n, s, list + 1) && n > 0 ? (uint64_t)n : 0;
        out->block[1] = to_number(&n, s, list + 2) && n > 0 ? (uint64_t)n : 0;
    }
}

static void read_form(heft_quantisation_settings *out, const heft_settings *s, uint32_t map)
{
    static const char *const forms[] = {
        "checkpoint_format", "format", "version", "bnb_4bit_quant_type", "mode", "quant_algo", NULL
    };
    heft_str form = find_text(s, map, forms);
    if (form.len)
        out->form = form;
}

/* Older files have the two sizes of a block as a text, "128x128". */
static void read_weights(heft_quantisation_settings *out, const heft_settings *s, uint32_t map)
{
    uint32_t weights = find_map(s, map, "weights");
    if (weights == HEFT_NONE)
        return;
    static const char *const key[] = { "block_structure", NULL };
    heft_str text = find_text(s, weights, key);
    uint64_t sizes[2] = { 0, 0 };
    size_t k = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == 'x')
            k = 1;
        else if (text.ptr[i] >= '0' && text.ptr[i] <= '9' && sizes[k] < UINT32_MAX)
            sizes[k] = sizes[k] * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    read_sizes(out, s, weights);
    if (sizes[0] && sizes[1]) {
        out->block[0] = sizes[0];
        out->block[1] = sizes[1];
    }
}

/* ---- the map with the settings ---- */

static bool is_map_of_settings(const heft_settings *s, uint32_t map)
{
    static const char *const methods[] = { "quant_method", NULL };
    return map == HEFT_NONE || heft_settings_value_at(s, map).kind == HEFT_KIND_MAP
               ? find_text(s, map, methods).len || guess_method(s, map).len
               : false;
}

/* Set *out to the map with the settings: by usual names at the top level, else the first anywhere,
 * in text_config and the like; else the whole document, as quantize_config.json has them. */
static bool find_settings(uint32_t *out, const heft_settings *s)
{
    static const char *const keys[] = { "quantization_config", "compression_config",
                                        "quantization" };
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        *out = find_map(s, HEFT_NONE, keys[k]);
        if (*out != HEFT_NONE && is_map_of_settings(s, *out))
            return true;
    }
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        for (uint32_t i = 0; i < heft_settings_value_count(s); i++) {
            heft_value v = heft_settings_value_at(s, i);
            *out = i;
            if (v.kind == HEFT_KIND_MAP && heft_str_is(v.key, keys[k]) && is_map_of_settings(s, i))
                return true;
        }
    *out = HEFT_NONE;
    return is_map_of_settings(s, HEFT_NONE);
}

/* A matrix among the weights or the settings of one rotates the weights. */
static bool has_rotation(const heft_settings *s, uint32_t map)
{
    static const char *const keys[] = { "transform_config", "hadamard_rotation", "use_hadamard" };
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        uint32_t i = find(s, map, keys[k]);
        heft_value v = heft_settings_value_at(s, i);
        if (i != HEFT_NONE && ((v.kind == HEFT_KIND_MAP && v.as.container.count) ||
                               (v.kind == HEFT_KIND_BOOL && v.as.b)))
            return true;
    }
    return false;
}

static void read_map(heft_quantisation_settings *out, const heft_settings *s, uint32_t map)
{
    static const char *const methods[] = { "quant_method", NULL };
    *out = (heft_quantisation_settings){ .bits = 0 };
    out->method = find_text(s, map, methods);
    if (!out->method.len)
        out->method = guess_method(s, map);
    read_sizes(out, s, map);
    read_form(out, s, map);
    out->is_rotated = has_rotation(s, map);
    uint32_t groups = find_map(s, map, "config_groups");
    if (groups != HEFT_NONE && heft_settings_value_at(s, groups).as.container.count == 1)
        read_weights(out, s, groups + 1);
}

void heft_quantisation_settings_read(heft_quantisation_settings *out, const heft_settings *s)
{
    uint32_t map;
    *out = (heft_quantisation_settings){ .bits = 0 };
    if (s && find_settings(&map, s))
        read_map(out, s, map);
}

bool heft_settings_are_quantised(const heft_settings *s)
{
    heft_quantisation_settings q;
    heft_quantisation_settings_read(&q, s);
    return q.method.len;
}

/* ---- modules ---- */

static bool is_plain_name(heft_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool is_word = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
        if (!is_word && c != '_' && c != '.' && c != '-')
            return false;
    }
    return true;
}

/* Name a module, or modules, as compressed-tensors does. */
static void set_target(heft_module_rule *rule, heft_str text)
{
    bool is_regex = heft_str_begins(text, "re:");
    bool has_dot = false;
    for (size_t i = 0; i < text.len; i++)
        has_dot = has_dot || text.ptr[i] == '.';
    rule->kind = is_regex                                                       ? HEFT_RULE_REGEX
                 : text.len && *text.ptr >= 'A' && *text.ptr <= 'Z' && !has_dot ? HEFT_RULE_CLASS
                                                                                : HEFT_RULE_NAME;
    rule->text = is_regex ? (heft_str){ text.ptr + 3, text.len - 3 } : text;
}

static void set_exempt(heft_module_rule *rule, heft_str text)
{
    set_target(rule, text);
    if (rule->kind != HEFT_RULE_REGEX && !is_plain_name(text))
        rule->kind = HEFT_RULE_GLOB;
}

static bool read_exempt_list(heft_module_settings *m, const heft_settings *s, uint32_t list)
{
    heft_module_rule rule = { .is_exempt = true };
    for (uint32_t i = list + 1; i < heft_settings_next(s, list); i = heft_settings_next(s, i)) {
        heft_value v = heft_settings_value_at(s, i);
        if (v.kind != HEFT_KIND_STR)
            continue;
        set_exempt(&rule, v.as.s);
        if (!heft_module_rule_add(m, &rule))
            return false;
    }
    return true;
}

static bool read_exempt(heft_module_settings *m, const heft_settings *s, uint32_t map)
{
    static const char *const lists[] = { "modules_to_not_convert", "ignore", "ignored_layers",
                                         "llm_int8_skip_modules", "exclude_modules" };
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        uint32_t list = find(s, map, lists[k]);
        if (list != HEFT_NONE && heft_settings_value_at(s, list).kind == HEFT_KIND_LIST &&
            !read_exempt_list(m, s, list))
            return false;
    }
    return true;
}

/* The groups of compressed-tensors: each has a list of targets. */
static bool read_groups(heft_module_settings *m, const heft_settings *s, uint32_t map)
{
    uint32_t groups = find_map(s, map, "config_groups");
    if (groups == HEFT_NONE)
        return true;
    for (uint32_t g = groups + 1; g < heft_settings_next(s, groups); g = heft_settings_next(s, g)) {
        heft_module_rule rule = { .of = m->model };
        uint32_t targets = heft_settings_value_at(s, g).kind == HEFT_KIND_MAP
                               ? find(s, g, "targets")
                               : HEFT_NONE;
        if (targets == HEFT_NONE || heft_settings_value_at(s, targets).kind != HEFT_KIND_LIST)
            continue;
        rule.of.bits = 0;
        rule.of.has_group = false;
        rule.of.group = rule.of.block[0] = rule.of.block[1] = 0;
        read_form(&rule.of, s, g);
        read_weights(&rule.of, s, g);
        for (uint32_t i = targets + 1; i < heft_settings_next(s, targets);
             i = heft_settings_next(s, i)) {
            heft_value v = heft_settings_value_at(s, i);
            if (v.kind != HEFT_KIND_STR)
                continue;
            set_target(&rule, v.as.s);
            if (!heft_module_rule_add(m, &rule))
                return false;
        }
    }
    return true;
}

/* A map from names of modules, or patterns, to maps with their numbers. */
typedef struct map_of_modules {
    const char *key;     /* NULL: modules are beside the numbers of the model */
    heft_rule_kind kind; /* kind of the keys that are not plain names */
    bool has_signs;      /* keys begin with "+:" or "-:" */
} map_of_modules;

static bool read_module(heft_module_settings *m, const heft_settings *s, const map_of_modules *of,
                        uint32_t at)
{
    heft_value v = heft_settings_value_at(s, at);
    heft_module_rule rule = { .of = m->model, .text = v.key };
    bool is_minus = of->has_signs && heft_str_begins(v.key, "-:");
    bool has_sign = is_minus || (of->has_signs && heft_str_begins(v.key, "+:"));
    if (v.kind != HEFT_KIND_MAP && !(v.kind == HEFT_KIND_BOOL && !v.as.b))
        return true;
    if (has_sign)
        rule.text = (heft_str){ v.key.ptr + 2, v.key.len - 2 };
    rule.kind = of->has_signs || !is_plain_name(rule.text) ? of->kind : HEFT_RULE_NAME;
    if (v.kind == HEFT_KIND_MAP) {
        read_sizes(&rule.of, s, at);
        read_form(&rule.of, s, at);
    }
    rule.is_exempt = v.kind == HEFT_KIND_BOOL || is_minus ||
                     (rule.of.bits >= UNQUANTISED_BITS && of->key);
    return heft_module_rule_add(m, &rule);
}

static bool read_modules(heft_module_settings *m, const heft_settings *s, uint32_t map)
{
    static const map_of_modules all[] = { { "dynamic", HEFT_RULE_REGEX, true },
                                          { "extra_config", HEFT_RULE_REGEX, false },
                                          { "quantized_layers", HEFT_RULE_GLOB, false },
                                          { NULL, HEFT_RULE_NAME, false } };
    bool is_mlx = heft_str_is(m->model.method, "mlx");
    bool ok = true;
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        uint32_t in = all[k].key ? find_map(s, map, all[k].key) : map;
        if (all[k].key ? in == HEFT_NONE : !is_mlx)
            continue;
        for (uint32_t i = first_of(in); ok && i < end_of(s, in); i = heft_settings_next(s, i))
            ok = read_module(m, s, &all[k], i);
    }
    return ok;
}

/* ---- metadata of ComfyUI ---- */

static bool read_layers(heft_module_settings *m, const heft_settings *s)
{
    uint32_t layers = find_map(s, HEFT_NONE, "layers");
    uint32_t i = layers == HEFT_NONE ? 0 : layers + 1;
    uint32_t end = layers == HEFT_NONE ? 0 : heft_settings_next(s, layers);
    for (; i < end; i = heft_settings_next(s, i)) {
        static const char *const size[] = { "convrot_groupsize", NULL };
        enum { USUAL_ROTATION = 256 };
        heft_value v = heft_settings_value_at(s, i);
        heft_module_rule rule = { .kind = HEFT_RULE_ENDING, .text = v.key };
        uint32_t rotates = v.kind == HEFT_KIND_MAP ? find(s, i, "convrot") : HEFT_NONE;
        heft_value is_rotated = heft_settings_value_at(s, rotates);
        int64_t n;
        if (v.kind != HEFT_KIND_MAP)
            continue;
        rule.of.method = heft_lit("comfyui");
        read_form(&rule.of, s, i);
        read_sizes(&rule.of, s, i);
        if (rotates != HEFT_NONE && is_rotated.kind == HEFT_KIND_BOOL && is_rotated.as.b)
            rule.of.rotation = find_number(&n, s, i, size) ? (uint64_t)n : USUAL_ROTATION;
        if (!heft_module_rule_add(m, &rule))
            return false;
    }
    return true;
}

/* ---- all ---- */

static bool read_document(heft_module_settings *m, const heft_settings *s)
{
    uint32_t map;
    if (!s || !find_settings(&map, s))
        return true;
    read_map(&m->model, s, map);
    bool ok = read_groups(m, s, map) && read_modules(m, s, map) && read_exempt(m, s, map);
    m->model.method = heft_arena_copy(m->arena, m->model.method);
    m->model.form = heft_arena_copy(m->arena, m->model.form);
    return ok && m->model.method.ptr && m->model.form.ptr;
}

bool heft_module_settings_read(heft_module_settings *m, const heft_settings *s,
                               const heft_settings *embedded)
{
    m->model = (heft_quantisation_settings){ .bits = 0 };
    return read_document(m, s) && (m->model.method.len || read_document(m, embedded)) &&
           (!embedded || read_layers(m, embedded));
}
