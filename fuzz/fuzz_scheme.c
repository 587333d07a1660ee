/* fuzz_scheme.c - fuzzes decoding, and copying to Burn's form: what quantised tensors represent has
 * the same bytes read as a whole and in sections, whatever the file says. The script chooses the
 * settings of the model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heft/companion.h>
#include <heft/quantise.h>
#include <heft/scheme.h>

#include "fuzz.h"

/* Write a pattern of any characters that have a meaning. */
static void choose_pattern(char *out, size_t len, fuzz_script *s)
{
    static const char known[] = "ab.*(|)[]?+{2,3}^$-0w";
    for (size_t i = 0; i < len; i++)
        out[i] = known[fuzz_next(s) % (sizeof known - 1)];
    out[len] = 0;
}

/* Settings of single modules, by patterns and in all forms. */
static heft_settings *choose_module_settings(const heft_host *host, fuzz_script *s)
{
    static const char *const texts[] = {
        "{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":"
        "\"mixed-precision\",\"ignore\":[\"re:%s\",\"Linear\"],\"config_groups\":{\"a\":{"
        "\"targets\":[\"re:%s\"],\"weights\":{\"num_bits\":%u}},\"b\":{\"targets\":"
        "[\"Linear\"],\"weights\":{\"group_size\":32}}}}}",
        "{\"a\":{\"quantization_config\":{\"quant_method\":\"gptq\",\"dynamic\":{\"-:%s\":{},"
        "\"+:%s\":{\"bits\":%u}}}}}",
        "{\"quantization\":{\"quant_algo\":\"NVFP4\",\"exclude_modules\":[\"%s\"],"
        "\"quantized_layers\":{\"%s\":{\"group_size\":%u}}}}",
    };
    char text[512], first[8], second[8];
    heft_settings *out = NULL;
    uint32_t choice = fuzz_next(s);
    choose_pattern(first, sizeof first - 1, s);
    choose_pattern(second, sizeof second - 1, s);
    snprintf(text, sizeof text, texts[choice % 3], first, second, (unsigned)(choice / 3 % 9));
    (void)!heft_settings_parse_json(&out, heft_str_from(text), host, NULL);
    return out;
}

static heft_settings *choose_settings(const heft_host *host, fuzz_script *s)
{
    static const char *const methods[] = { "fp8", "gptq",        "awq", "compressed-tensors",
                                           "mlx", "bitsandbytes" };
    static const char *const forms[] = { "", "gptq_v2", "gemm", "mxfp4", "marlin" };
    char text[256];
    heft_settings *out = NULL;
    uint32_t choice = fuzz_next(s), size = fuzz_next(s);
    if (choice % 4 == 0)
        return NULL;
    if (choice % 4 == 1)
        return choose_module_settings(host, s);
    snprintf(text, sizeof text,
             "{\"quantization_config\":{\"quant_method\":\"%s\",\"format\":\"%s\",\"bits\":%u,"
             "\"group_size\":%d,\"weight_block_size\":[%u,%u]}}",
             methods[choice / 4 % 6], forms[choice / 24 % 5], (unsigned)(size % 9),
             (int)(size % 5) * 16 - 16, (unsigned)(size % 7) * 8, (unsigned)(size % 3) * 16);
    (void)!heft_settings_parse_json(&out, heft_str_from(text), host, NULL);
    return out;
}

static void require_sections(const heft_file *made, fuzz_script *s)
{
    enum { MOST = 64 };
    for (uint32_t id = 0; id < heft_tensor_count(made) && id < MOST; id++) {
        heft_tensor t = heft_tensor_at(made, id);
        for (uint32_t i = 0; i < t.part_count; i++)
            fuzz_require_sections(made, t.first_part + i, s);
    }
}

static heft_quantise_wish always(void *ctx, const heft_tensor *t)
{
    (void)ctx, (void)t;
    return HEFT_QUANTISE_ALWAYS;
}

static void copy_integers(const heft_file *f, const heft_schemes *schemes, fuzz_script *s)
{
    heft_quantise_options opt = HEFT_QUANTISE_OPTIONS_INIT;
    heft_error err = fuzz_no_error();
    heft_quantisation *q = NULL;
    opt.method = "qfloat";
    opt.wish = always;
    opt.schemes = schemes;
    opt.requantise = true;
    heft_status st = heft_quantisation_open(&q, f, &opt, &err);
    fuzz_require_error(st, &err);
    if (!st)
        require_sections(heft_quantisation_file(q), s);
    heft_quantisation_close(q);
}

static void decode(const heft_file *f, const heft_schemes *schemes, fuzz_script *s)
{
    static const heft_dtype types[] = { HEFT_UNTYPED, HEFT_F32, HEFT_F16, HEFT_BF16 };
    heft_decode_options opt = HEFT_DECODE_OPTIONS_INIT;
    heft_error err = fuzz_no_error();
    heft_file *logical = NULL;
    uint32_t choice = fuzz_next(s);
    opt.as = types[choice % 4];
    opt.keeps_undecoded = choice / 4 % 2;
    opt.verify = choice / 8 % 2;
    opt.decodes_blocks = choice / 16 % 2;
    opt.refuses_infinity = choice / 32 % 2;
    heft_status st = heft_schemes_decode(&logical, f, schemes, &opt, &err);
    fuzz_require_error(st, &err);
    if (!st)
        require_sections(logical, s);
    heft_file_close(logical);
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    fuzz_memory m;
    fuzz_memory_init(&m, UINT32_MAX);
    heft_file *f = fuzz_open_model(&m.host, data, size);
    heft_settings *settings = f ? choose_settings(&m.host, s) : NULL;
    heft_schemes *schemes = NULL;
    if (f && !heft_schemes_open(&schemes, f, settings, NULL)) {
        decode(f, schemes, s);
        copy_integers(f, schemes, s);
    }
    heft_schemes_close(schemes);
    heft_settings_close(settings);
    heft_file_close(f);
    fuzz_require(!m.live);
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = 48, .takes_models = true };
