#include "models/kept_blocks.h"

#include <stdio.h>
#include <string.h>

#include "models/model.h"
#include "models/quantised.h"

typedef struct form {
    const char *format, *title, *method;
    /* The only scheme that is copied; NULL: any that the method can copy, and blocks of GGUF. */
    const char *scheme;
    const char *becomes;
} form;

static const form forms[] = {
    { "gguf", "GGUF", "mxfp4:gguf", "mxfp4", "blocks" },
    { "burnpack", "Burn", "qfloat", NULL, "QFloat" },
};

static const form *form_in(const heft_format *target)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (!strcmp(heft_format_name(target), forms[i].format))
            return &forms[i];
    return NULL;
}

typedef struct wishes {
    const heft_file *f;
    const heft_schemes *schemes;
    const form *to;
    const kept_options *o;
} wishes;

/* True for blocks that become QFloat; those whose type --cast changes are decoded. */
static bool is_kept_block(const wishes *w, const heft_tensor *t)
{
    bool is_block = t->dtype == HEFT_Q8_0 || t->dtype == HEFT_Q4_0;
    return !w->to->scheme && is_block && !w->o->is_cast(w->o->ctx, t);
}

static heft_quantise_wish wish(void *ctx, const heft_tensor *t)
{
    const wishes *w = ctx;
    bool is_part = heft_schemes_find(w->schemes, heft_tensor_find(w->f, t->name)) != HEFT_NONE;
    return is_part || is_kept_block(w, t) ? HEFT_QUANTISE_ALWAYS : HEFT_QUANTISE_NEVER;
}

/* A model that has QFloat already keeps it: nothing is to be copied. */
static bool all_are_copied(const wishes *w)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < heft_schemes_count(w->schemes); i++) {
        heft_str scheme = heft_schemes_at(w->schemes, i).scheme;
        if (w->to->scheme && !str_same(scheme, str_of(w->to->scheme)))
            return false;
        count += !str_same(scheme, str_of(w->to->method));
    }
    for (uint32_t i = 0; i < heft_tensor_count(w->f) && !count; i++) {
        heft_tensor t = heft_tensor_at(w->f, i);
        count = is_kept_block(w, &t);
    }
    return count > 0;
}

/* Return the scheme of the quantised tensor `name`. */
static heft_str scheme_of(const heft_schemes *found, heft_str name)
{
    for (uint32_t i = 0; i < heft_schemes_count(found); i++) {
        heft_quantised q = heft_schemes_at(found, i);
        if (str_same(q.name, name))
            return q.scheme;
    }
    return (heft_str){ NULL, 0 };
}

static int say_formless(const kept_blocks *k, const form *to, const char *path,
                        const heft_quantise_item *item)
{
    heft_str scheme = scheme_of(k->schemes, item->name);
    heft_error err = { .status = HEFT_E_UNSUPPORTED,
                       .rule = "heft/quantised",
                       .offset = HEFT_NOWHERE };
    snprintf(err.message, sizeof err.message,
             "tensor '%.*s' (%.*s) has no form in %s: %s. --dequantize decodes it%s",
             (int)item->name.len, item->name.ptr, (int)scheme.len, scheme.ptr, to->title,
             item->reason ? item->reason : "",
             to->scheme ? "" : "; --raw-tensors stores the parts as tensors of their own");
    return say_error(path, &err);
}

static bool is_block(const wishes *w, heft_str name)
{
    uint32_t i = heft_tensor_find(w->f, name);
    if (i == HEFT_NONE)
        return false;
    heft_tensor t = heft_tensor_at(w->f, i);
    return is_kept_block(w, &t);
}

/* Refuse what would be decoded: rows that do not fill blocks, zero points. Blocks that have no form
 * in the target, which are one tensor, are for the target to refuse. */
static int check_copies(const kept_blocks *k, const wishes *w, const char *path)
{
    for (uint32_t i = 0; i < heft_quantisation_count(k->plan); i++) {
        heft_quantise_item item = heft_quantisation_at(k->plan, i);
        if (item.wish == HEFT_QUANTISE_ALWAYS && !item.scheme && !is_block(w, item.name))
            return say_formless(k, w->to, path, &item);
    }
    return CODE_DONE;
}

static void say_kept(const kept_blocks *k, const form *to, const char *path, bool has_casts)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < heft_quantisation_count(k->plan); i++)
        count += heft_quantisation_at(k->plan, i).scheme != NULL;
    if (!count)
        return;
    say(MESSAGE_NOTE, path, "%u quantised tensor%s%s%s%s %s %s with the same numbers%s", count,
        count == 1 ? "" : "s", to->scheme ? " (" : "", to->scheme ? to->scheme : "",
        to->scheme ? ")" : "", count == 1 ? "becomes" : "become", to->becomes,
        has_casts && to->scheme ? ", unless --cast decodes them" : "");
}

/* Say that the plan fails, and the way on. */
static int say_refusal(const form *to, const char *path, heft_error *err)
{
    size_t used = strlen(err->message);
    bool is_block = err->rule && !strcmp(err->rule, "heft/requantise");
    bool is_unknown = !to->scheme && !err->rule && err->status == HEFT_E_UNSUPPORTED;
    snprintf(err->message + used, sizeof err->message - used, "%s",
             is_block     ? ". Its rows do not fill blocks of GGUF; --dequantize decodes it"
             : is_unknown ? "; --raw-tensors stores the parts as tensors of their own"
                          : "");
    return say_error(path, err);
}

int kept_blocks_open(kept_blocks *k, const session *s, const heft_file *f, const char *path,
                     const kept_options *o)
{
    heft_error err;
    heft_quantise_options opt = HEFT_QUANTISE_OPTIONS_INIT;
    const form *to = form_in(o->target);
    *k = (kept_blocks){ NULL, NULL };
    if (!to || o->target == heft_file_format(f))
        return CODE_DONE;
    /* Without blocks to fill, a server is asked for no settings, as for other formats. */
    int code = to->scheme ? quantised_open_to_convert(&k->schemes, f, path)
                          : quantised_open(&k->schemes, f, path);
    wishes w = { f, k->schemes, to, o };
    if (code || !all_are_copied(&w))
        return code;
    opt.method = to->method;
    opt.wish = wish;
    opt.ctx = &w;
    opt.schemes = k->schemes;
    opt.verify = !s->no_verify;
    if (heft_quantisation_open(&k->plan, f, &opt, &err))
        return say_refusal(to, path, &err);
    code = check_copies(k, &w, path);
    if (!code && !s->quiet)
        say_kept(k, to, path, o->has_casts);
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
