/* web_logical.c - a model as the tensors that its quantised tensors represent.
 *
 * The stored model, its schemes and settings stay until the instance of the module ends. */
#include "heft_web.h"

#include <heft/companion.h>
#include <heft/scheme.h>

static heft_schemes *schemes; /* of the model that was decoded last */

/* Parse the text of a settings file such as config.json.  NULL: it is none, or says nothing of
 * quantisation. */
static heft_settings *settings_from(heft_str text)
{
    heft_settings *s = NULL;
    if (!text.len || heft_settings_parse_json(&s, text, &web_host, NULL))
        return NULL;
    if (heft_settings_are_quantised(s))
        return s;
    heft_settings_close(s);
    return NULL;
}

WEB_EXPORT(settings_are_quantised)
bool settings_are_quantised(const char *text, uint32_t len)
{
    heft_settings *s = settings_from((heft_str){ text, len });
    heft_settings_close(s);
    return s;
}

/* Find the quantised tensors of a model, and put the model that they represent in its place.
 * Number 0 becomes their number; without any the model stays.  text: settings, or empty. */
WEB_EXPORT(model_decode) int32_t model_decode(web_model *m, const char *text, uint32_t len)
{
    heft_decode_options opt = HEFT_DECODE_OPTIONS_INIT;
    heft_settings *settings = settings_from((heft_str){ text, len });
    heft_file *decoded = NULL;
    heft_status st = heft_schemes_open(&schemes, m->file, settings, &web_error);
    heft_settings_close(settings);
    opt.keeps_undecoded = true;
    web_result.number[0] = st ? 0 : heft_schemes_count(schemes);
    if (!st && heft_schemes_count(schemes))
        st = heft_schemes_decode(&decoded, m->file, schemes, &opt, &web_error);
    if (st || !decoded) {
        heft_schemes_close(schemes);
        schemes = NULL;
        return st;
    }
    m->file = decoded;
    return HEFT_OK;
}

/* Quantised tensor i: texts are its name, its scheme and variant; numbers are its bits, and rows
 * and columns of a block if they are known. */
WEB_EXPORT(quantised_at) void quantised_at(uint32_t i)
{
    heft_quantised q = heft_schemes_at(schemes, i);
    web_set_text(0, q.name);
    web_set_text(1, q.scheme);
    web_set_text(2, q.variant);
    web_result.number[0] = q.bits;
    web_result.number[1] = q.has_block;
    web_result.number[2] = (double)q.block[0];
    web_result.number[3] = (double)q.block[1];
}
