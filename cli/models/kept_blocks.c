#include "models/kept_blocks.h"

#include <stdio.h>
#include <string.h>

#include "models/model.h"
#include "models/quantised.h"
#include "text/outbuf.h"

static const char scheme[] = "mxfp4", method[] = "mxfp4:gguf";

static bool all_are_copied(const heft_schemes *found)
{
    uint32_t count = heft_schemes_count(found);
    for (uint32_t i = 0; i < count; i++)
        if (!str_same(heft_schemes_at(found, i).scheme, str_of(scheme)))
            return false;
    return count > 0;
}

typedef struct wishes {
    const heft_file *f;
    const heft_schemes *schemes;
} wishes;

static heft_quantise_wish wish(void *ctx, const heft_tensor *t)
{
    const wishes *w = ctx;
    bool is_part = heft_schemes_find(w->schemes, heft_tensor_find(w->f, t->name)) != HEFT_NONE;
    return is_part ? HEFT_QUANTISE_ALWAYS : HEFT_QUANTISE_NEVER;
}

/* Refuse what would be decoded: rows that do not fill blocks. */
static int check_copies(const kept_blocks *k, const char *path)
{
    for (uint32_t i = 0; i < heft_quantisation_count(k->plan); i++) {
        heft_quantise_item item = heft_quantisation_at(k->plan, i);
        if (item.wish != HEFT_QUANTISE_ALWAYS || item.scheme)
            continue;
        outbuf name;
        out_open(&name, -1);
        out_escaped(&name, item.name);
        int code = say_status(HEFT_E_UNSUPPORTED, path,
                              "tensor '%s' (%s) has no form in GGUF: %s. --dequantize decodes it",
                              out_cstr(&name), scheme, item.reason ? item.reason : "");
        out_free(&name);
        return code;
    }
    return CODE_DONE;
}

int kept_blocks_open(kept_blocks *k, const session *s, const heft_file *f, const char *path,
                     bool has_casts)
{
    heft_error err;
    heft_quantise_options opt = HEFT_QUANTISE_OPTIONS_INIT;
    *k = (kept_blocks){ NULL, NULL };
    int code = quantised_open_to_convert(&k->schemes, f, path);
    if (code || !all_are_copied(k->schemes))
        return code;
    wishes w = { f, k->schemes };
    opt.method = method;
    opt.wish = wish;
    opt.ctx = &w;
    opt.schemes = k->schemes;
    opt.verify = !s->no_verify;
    if (heft_quantisation_open(&k->plan, f, &opt, &err)) {
        size_t used = strlen(err.message);
        if (err.rule && !strcmp(err.rule, "heft/requantise"))
            snprintf(err.message + used, sizeof err.message - used,
                     ". Its rows do not fill blocks of GGUF; --dequantize decodes it");
        return say_error(path, &err);
    }
    code = check_copies(k, path);
    uint32_t count = heft_schemes_count(k->schemes);
    if (!code && !s->quiet)
        say(MESSAGE_NOTE, path, "%u quantised tensor%s (%s) %s blocks with the same numbers%s",
            count, count == 1 ? "" : "s", scheme, count == 1 ? "becomes" : "become",
            has_casts ? ", unless --cast decodes them" : "");
    return code;
}

const heft_file *kept_blocks_file(const kept_blocks *k)
{
    return heft_quantisation_file(k->plan);
}

void kept_blocks_release(kept_blocks *k)
{
    heft_quantisation_close(k->plan);
    heft_schemes_close(k->schemes);
    *k = (kept_blocks){ NULL, NULL };
}
