/* embedded_settings.c - finds settings of a quantised model in the metadata of its file, where some
 * programs store them as JSON. */
#include <heft/companion.h>

#include "base/error.h"
#include "base/text.h"
#include "core/read/file.h"
#include "scheme/recognition.h"

/* In the order of precedence. */
static const char layers[] = "_quantization_metadata";
static const char *const keys[] = { layers, "quantization_config", "quantization", "config" };

static bool find_text(heft_str *out, const heft_index *x, const char *key)
{
    const heft_value *all = x->values.ptr;
    for (uint32_t i = 0; i < x->values.len; i = heft_value_next(&all[i], i))
        if (all[i].kind == HEFT_KIND_STR && heft_str_is(all[i].key, key) &&
            heft_str_begins(all[i].as.s, "{")) {
            *out = all[i].as.s;
            return true;
        }
    return false;
}

/* Without the layers of ComfyUI, its numbers would be taken for those of another program; other
 * texts may be anything. */
heft_status heft_embedded_settings(heft_settings **out, const heft_file *f, heft_error *err)
{
    heft_str text;
    *out = NULL;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && !*out; i++) {
        if (!find_text(&text, &f->x, keys[i]))
            continue;
        heft_status st = heft_settings_parse_json(out, text, f->host, err);
        if (st == HEFT_E_NOMEM)
            return st;
        if (st && keys[i] == layers)
            return heft_error_plain(err, HEFT_E_FORMAT,
                                    "the metadata %q of the file are no JSON that can be read, so "
                                    "that its quantised tensors are not known",
                                    heft_lit(layers));
    }
    return HEFT_OK;
}
