/* settings_check.c - compares what the settings say about a module with how its weight is stored: a
 * contradiction means that one of the two belongs to another model. */
#include "base/checked_math.h"
#include "base/error.h"
#include "base/text.h"
#include "scheme/decoding.h"

/* ---- methods and forms, and the schemes of their weights ---- */

typedef struct known { /* schemes: names in a text, separated by blanks */
    const char *name, *schemes;
} known;

static const known methods[] = {
    { "awq", "awq" },
    { "bitnet", "bitnet" },
    { "bitsandbytes", "bitsandbytes" },
    { "comfyui", "comfyui" },
    { "compressed-tensors", "compressed-tensors fp8 mxfp4 mxfp8 nvfp4" },
    { "fbgemm_fp8", "fp8" },
    { "fp8", "fp8 mxfp4 mxfp8" }, /* DeepSeek's experts are mxfp4 */
    { "gptq", "gptq" },
    { "mlx", "mlx" },
    { "modelopt", "fp8 modelopt mxfp4 mxfp8 nvfp4" },
    { "mxfp4", "mxfp4" },
};

/* Forms of compressed-tensors and of ModelOpt. */
static const known forms[] = {
    { "FP8", "fp8" },
    { "FP8_PB_WO", "fp8" },
    { "FP8_PER_CHANNEL_PER_TOKEN", "fp8" },
    { "MXFP4", "mxfp4" },
    { "MXFP8", "mxfp8" },
    { "NVFP4", "nvfp4" },
    { "NVFP4_AWQ", "nvfp4" },
    { "W4A16_AWQ", "modelopt" },
    { "W4A16_NVFP4", "nvfp4" },
    { "float-quantized", "fp8 mxfp8" },
    { "int-quantized", "compressed-tensors" },
    { "mxfp4-pack-quantized", "mxfp4" },
    { "mxfp8-quantized", "fp8 mxfp8" },
    { "naive-quantized", "fp8 compressed-tensors" },
    { "nvfp4-pack-quantized", "nvfp4" },
    { "pack-quantized", "compressed-tensors" },
};

/* Forms whose weights have the tensors of a scheme that is decoded, and more. */
static const known refused[] = {
    { "NVFP4_SVD", "its weights lack a matrix of low rank, which ModelOpt keeps apart" },
    { "W4A8_AWQ", "start from the model before it was quantised" },
    { "gptq_p", "save the model as gptq or gptq_v2 with GPTQModel" },
    { "marlin-24", "decompress the model with compressed-tensors, or start from the one before" },
    { "sparse-24-bitmask", "decompress the model with compressed-tensors first" },
    { "sparse-bitmask", "decompress the model with compressed-tensors first" },
};

static const known *find(const known *rows, size_t count, heft_str name)
{
    for (size_t i = 0; i < count; i++)
        if (heft_str_is(name, rows[i].name))
            return &rows[i];
    return NULL;
}
#define FIND(rows, name) find(rows, sizeof(rows) / sizeof *(rows), name)

static bool has_scheme(const known *k, const char *scheme)
{
    heft_str list = heft_lit(k->schemes), word = heft_lit(scheme);
    for (size_t i = 0; i + word.len <= list.len; i++) {
        bool begins = !i || list.ptr[i - 1] == ' ';
        bool ends = i + word.len == list.len || list.ptr[i + word.len] == ' ';
        if (begins && ends && !memcmp(list.ptr + i, word.ptr, word.len))
            return true;
    }
    return false;
}

/* ---- checks ---- */

static heft_status contradict(const heft_decoding *d, const char *what, heft_str name,
                              heft_error *err)
{
    const heft_index *x = &d->f->x;
    const heft_decoding_part *w = &d->part[HEFT_ROLE_WEIGHT];
    heft_role other = HEFT_ROLE_SCALE; /* or else the first part beside the weight */
    while (other + 1 < HEFT_ROLES && !heft_decoding_part_of(d, other))
        other++;
    const heft_decoding_part *with = heft_decoding_part_of(d, other);
    heft_status st = heft_error_plain(
        err, HEFT_E_FORMAT,
        "quantised tensor %q: config.json or the like names the %s %q, but %q, with %q, is stored "
        "as %s: they belong to different models",
        d->name, what, name, heft_ix_name(x, w->tensor), heft_ix_name(x, (with ? with : w)->tensor),
        d->scheme->name);
    return heft_error_rule(err, st, "heft/quantised");
}

static heft_status check_bits(const heft_decoding *d, heft_error *err)
{
    const heft_quantisation_settings *s = d->settings;
    if (!s->bits || !d->bits || s->bits == d->bits)
        return HEFT_OK;
    heft_status st = heft_error_plain(
        err, HEFT_E_FORMAT,
        "quantised tensor %q (%s): its weight %q has numbers of %U bits, but the settings "
        "(config.json or the like) state bits of %U",
        d->name, d->scheme->name, heft_ix_name(&d->f->x, d->part[HEFT_ROLE_WEIGHT].tensor),
        (uint64_t)d->bits, (uint64_t)s->bits);
    return heft_error_rule(err, st, "heft/quantised");
}

heft_status heft_decoding_check_settings(const heft_decoding *d, const heft_module_settings *all,
                                         heft_error *err)
{
    const heft_quantisation_settings *s = d->settings;
    const known *method = FIND(methods, s->method), *form = FIND(forms, s->form);
    const known *bad = FIND(refused, s->form);
    /* A tensor of PyTorch or Burn says all by itself. */
    if (!s->method.len || d->scheme == &heft_scheme_torch || d->scheme == &heft_scheme_qfloat)
        return HEFT_OK;
    if (all->is_spent)
        return heft_error_plain(err, HEFT_E_LIMIT,
                                "the names of modules are too long to compare with all patterns of "
                                "the settings: remove patterns from config.json");
    if (all->not_known.len && s == &all->model)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "quantised tensor %q: whether the pattern %q of the settings names "
                                "its module is not known, since the pattern is not understood: "
                                "write it in config.json without assertions",
                                d->name, all->not_known);
    if (bad)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "tensor %q is quantised in the form %q, which is recognised and "
                                "not decoded: %s",
                                d->name, s->form, bad->schemes);
    if (s->is_rotated)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "tensor %q is quantised after a rotation (transform_config of the "
                                "settings, a Hadamard matrix) that is not undone: start from the "
                                "model before it was rotated",
                                d->name);
    if (method && !has_scheme(method, d->scheme->name))
        return contradict(d, "method", s->method, err);
    if (form && !has_scheme(form, d->scheme->name))
        return contradict(d, "form", s->form, err);
    return check_bits(d, err);
}

heft_status heft_decoding_check_groups(const heft_decoding *d, uint64_t inputs, uint64_t groups,
                                       heft_error *err)
{
    const heft_quantisation_settings *s = d->settings;
    uint64_t stated = s->group && inputs ? heft_div(inputs - 1, s->group) + 1 : 1;
    return !s->has_group || stated == groups
               ? HEFT_OK
               : heft_decoding_refuse(d, HEFT_ROLE_SCALE,
                                      "has another number of groups than the group_size of "
                                      "config.json gives",
                                      err);
}
