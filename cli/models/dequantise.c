#include "models/dequantise.h"

#include <stdio.h>
#include <string.h>

#include "models/model.h"
#include "models/quantised.h"

static int parse_type(heft_dtype *out, const session *s, const char *type)
{
    *out = heft_dtype_find(str_of(type));
    bool is_float = *out == HEFT_F32 || *out == HEFT_F16 || *out == HEFT_BF16;
    return !*type || is_float
               ? CODE_DONE
               : say_usage(s->name, "--dequantize takes f32, f16 or bf16, not '%s'", type);
}

/* Say how many tensors were decoded, by scheme, in one line. */
static void say_decoded(const session *s, const dequantised *d, const char *path)
{
    uint64_t count = heft_schemes_count(d->schemes);
    heft_str scheme = heft_schemes_at(d->schemes, 0).scheme;
    if (!s->quiet)
        say(MESSAGE_NOTE, path, "%llu quantised tensor%s decoded (%.*s%s); scales are left out",
            (unsigned long long)count, count == 1 ? " is" : "s are", (int)scheme.len, scheme.ptr,
            count > 1 ? " ..." : "");
}

int dequantise(dequantised *d, const session *s, const heft_file *f, const char *path,
               const char *type)
{
    heft_error err;
    heft_decode_options opt = HEFT_DECODE_OPTIONS_INIT;
    *d = (dequantised){ NULL, NULL };
    int code = parse_type(&opt.as, s, type);
    if (!code)
        code = quantised_open(&d->schemes, f, path);
    if (!code && !heft_schemes_count(d->schemes))
        code = say_status(HEFT_E_UNSUPPORTED, path,
                          "no quantised tensor is recognised: --dequantize has nothing to decode");
    opt.verify = !s->no_verify;
    if (!code && heft_schemes_decode(&d->model, f, d->schemes, &opt, &err))
        code = say_error(path, &err);
    if (!code)
        say_decoded(s, d, path);
    return code;
}

/* nvfp4 with a factor is in GGUF, too. */
static bool has_form(const heft_format *target, const heft_quantised *q)
{
    return heft_format_caps(target) & HEFT_CAN_SCHEMES ||
           str_same(q->variant, str_of(heft_format_title(target)));
}

static int say_formless(const heft_quantised *q, const session *s, const char *path,
                        const heft_format *target)
{
    bool has_option = !strcmp(s->name, "convert") || !strcmp(s->name, "append");
    heft_error err = { .status = HEFT_E_UNSUPPORTED,
                       .rule = "heft/quantised",
                       .offset = HEFT_NOWHERE };
    snprintf(err.message, sizeof err.message,
             "tensor '%.*s' is quantised (%.*s), for which %s files have no form. "
             "--dequantize decodes it%s",
             (int)q->name.len, q->name.ptr, (int)q->scheme.len, q->scheme.ptr,
             heft_format_name(target),
             has_option ? "; --raw-tensors stores the parts as tensors of their own" : "");
    return say_error(path, &err);
}

int dequantise_check_target(const session *s, const heft_file *f, const char *path,
                            const heft_format *target)
{
    heft_schemes *found = NULL;
    if (target == heft_file_format(f) || heft_format_caps(target) & HEFT_CAN_SCHEMES)
        return CODE_DONE;
    int code = quantised_open(&found, f, path);
    for (uint32_t i = 0; !code && i < heft_schemes_count(found); i++) {
        heft_quantised q = heft_schemes_at(found, i);
        if (!has_form(target, &q))
            code = say_formless(&q, s, path, target);
    }
    heft_schemes_close(found);
    return code;
}

void dequantised_release(dequantised *d)
{
    heft_file_close(d->model);
    heft_schemes_close(d->schemes);
    *d = (dequantised){ NULL, NULL };
}
