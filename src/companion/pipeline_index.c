/* pipeline_index.c - lists the components of a pipeline in model_index.json, as written by the
 * diffusers library:
 *
 *   {"_class_name": "StableDiffusionPipeline", "unet": ["diffusers", "UNet2DConditionModel"],
 *    "safety_checker": [null, null], "requires_safety_checker": false, ...} */
#include <heft/companion.h>

#include "base/error.h"
#include "base/text.h"
#include "model/index.h"

/* Ends of the names of classes without weights. */
static const char *const weightless[] = { "Scheduler", "Tokenizer", "TokenizerFast",
                                          "Extractor", "Processor", "ProcessorFast" };

/* Return true for a Python identifier in ASCII.
 * The identifier is a single component of a path, too. */
static bool is_identifier(heft_str s)
{
    enum { MOST = 64 };
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i], lower = (char)(c | 0x20);
        bool is_letter = (lower >= 'a' && lower <= 'z') || c == '_';
        if (!is_letter && (c < '0' || c > '9' || !i))
            return false;
    }
    return s.len && s.len <= MOST;
}

static bool is_weightless(heft_str class_name)
{
    for (size_t i = 0; i < sizeof weightless / sizeof *weightless; i++)
        if (heft_str_ends(class_name, weightless[i]))
            return true;
    return false;
}

/* Read a list of library and class; false for any other value. */
static bool read_component(heft_pipeline_component *out, const heft_settings *s, uint32_t i)
{
    heft_value list = heft_settings_value_at(s, i), pair[2];
    if (list.kind != HEFT_KIND_LIST || list.as.container.count != 2)
        return false;
    for (uint32_t k = 0; k < 2; k++) {
        pair[k] = heft_settings_value_at(s, i + 1 + k);
        if (pair[k].kind != HEFT_KIND_STR && pair[k].kind != HEFT_KIND_NULL)
            return false;
    }
    if (pair[0].kind != pair[1].kind && pair[1].kind == HEFT_KIND_NULL)
        return false;
    bool is_present = pair[1].kind == HEFT_KIND_STR;
    heft_str none = { "", 0 };
    *out = (heft_pipeline_component){
        .name = list.key,
        .library = pair[0].kind == HEFT_KIND_STR ? pair[0].as.s : none,
        .class_name = is_present ? pair[1].as.s : none,
        .is_present = is_present,
        .has_weights = is_present && !is_weightless(pair[1].as.s),
    };
    return true;
}

static heft_status check_component(const heft_pipeline_component *all, uint32_t count,
                                   heft_error *err)
{
    heft_str name = all[count].name;
    if (!is_identifier(name))
        return heft_error_plain(err, HEFT_E_FORMAT,
                                "component %q is not the name of a folder: expected letters, "
                                "digits and _",
                                name);
    for (uint32_t i = 0; i < count; i++)
        if (heft_str_eq(all[i].name, name))
            return heft_error_plain(err, HEFT_E_FORMAT, "component %q is listed twice", name);
    return HEFT_OK;
}

heft_status heft_settings_pipeline(heft_pipeline_component out[HEFT_PIPELINE_COMPONENTS],
                                   uint32_t *count, const heft_settings *s, heft_error *err)
{
    heft_value v;
    heft_pipeline_component c;
    *count = 0;
    if (!heft_settings_find(&v, s, heft_lit("_class_name")) || v.kind != HEFT_KIND_STR)
        return HEFT_OK;
    uint32_t found = 0;
    for (uint32_t i = 0; i < heft_settings_value_count(s); i = heft_settings_next(s, i)) {
        if (!read_component(&c, s, i))
            continue;
        if (found == HEFT_PIPELINE_COMPONENTS)
            return heft_error_plain(err, HEFT_E_LIMIT, "the pipeline has more than %U components",
                                    (uint64_t)HEFT_PIPELINE_COMPONENTS);
        out[found] = c;
        HEFT_TRY(check_component(out, found, err));
        found++;
    }
    *count = found;
    return HEFT_OK;
}
