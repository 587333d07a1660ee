/* other_schemes.c - schemes that are recognised, mainly by the names of the parts, but not decoded:
 * nobody may take packed bytes for numbers. */
#include "base/checked_math.h"
#include "scheme/recognition.h"

/* The weight, or what takes its place, has packed numbers. */
static bool has_packed_weight(heft_scheme_group *g)
{
    return heft_is_packed(heft_group_dtype(g, "weight"));
}

static bool has_quantised_weight(heft_scheme_group *g)
{
    return has_packed_weight(g) || heft_is_float8(heft_group_dtype(g, "weight"));
}

static bool always(heft_scheme_group *g)
{
    (void)g;
    return true;
}

/* A matrix of integers with scales.  An integer beside a number that is called its scale is not
 * enough: counters and tables are such pairs, too. */
static bool is_scaled_matrix(heft_scheme_group *g)
{
    return has_packed_weight(g) && heft_group_rank(g, "weight") > 1 &&
           heft_is_scale(heft_group_dtype(g, "scale")) && heft_group_rank(g, "scale") > 0;
}

static bool is_int8_with_scales(heft_scheme_group *g)
{
    g->bits = 8;
    heft_group_rows(g, 0);
    return is_scaled_matrix(g) && heft_group_dtype(g, "weight") == HEFT_I8;
}

/* clang-format off */
static const heft_scheme_names marlin[] = {
    { NULL, "/weight", { { "weight", "/B", false }, { "scale", "/s", false },
                         { "workspace", "/workspace", true } } },
};
static const heft_scheme_names sparse_24[] = {
    { "Marlin", "/weight", { { "weight", "/B_24", false }, { "scale", "/s", false },
                             { "metadata", "/B_meta", true } } },
    { "Marlin", "/weight", { { "scale", "/scale_packed", false },
                             { "weight", "/weight_packed", false },
                             { "metadata", "/meta", true } } },
    { "bitmask", "", { { "bitmask", ".bitmask", false }, { "weight", ".compressed", false },
                       { "shape", ".shape", true }, { "row_offsets", ".row_offsets", true } } },
};
static const heft_scheme_names exl2[] = {
    { NULL, "/weight", { { "weight", "/q_weight", false }, { "scale", "/q_scale", false },
                         { "scale", "/q_scale_max", true }, { "groups", "/q_groups", true },
                         { "groups", "/q_group_map", true }, { "order", "/q_invperm", true },
                         { "order", "/q_perm", true } } },
};
static const heft_scheme_names exl3[] = {
    { NULL, "/weight", { { "weight", "/trellis", false }, { "signs", "/suh", true },
                         { "signs", "/svh", true }, { "signs", "/su", true },
                         { "signs", "/sv", true }, { "codebook", "/mcg", true },
                         { "codebook", "/mul1", true } } },
};
static const heft_scheme_names hqq[] = {
    { NULL, "/weight", { { "weight", "/W_q", false }, { "scale", "/scale", true },
                         { "zero_point", "/zero", true }, { "scale", "/scale_q", true },
                         { "zero_point", "/zero_q", true } } },
};
static const heft_scheme_names aqlm[] = {
    { NULL, "/weight", { { "weight", "/codes", false }, { "codebook", "/codebooks", false },
                         { "scale", "/scales", true } } },
};
static const heft_scheme_names vptq[] = {
    { NULL, "/weight", { { "codebook", "/centroids.weight", false },
                         { "weight", "/indices", false },
                         { "codebook", "/res_centroids.weight", true },
                         { "codebook", "/outlier_centroids.weight", true },
                         { "scale", "/weight_scale", true }, { "bias", "/weight_bias", true },
                         { "order", "/perm", true } } },
};
static const heft_scheme_names quip[] = {
    { NULL, "/weight", { { "weight", "/Qidxs", false }, { "signs", "/SU", true },
                         { "signs", "/SV", true }, { "scale", "/Wscale", true },
                         { "codebook", "/codebook_id", true } } },
};
static const heft_scheme_names spqr[] = {
    { NULL, "/weight", { { "weight", "/dense_weights", false },
                         { "row_offsets", "/row_offsets", true },
                         { "outliers", "/col_vals", false }, { "order", "/in_perm", true } } },
};
static const heft_scheme_names torchao[] = {
    { NULL, "", { { "weight", "_qdata", false }, { "scale", "_scale", true },
                  { "zero_point", "_zero_point", true } } },
    { NULL, "", { { "weight", ":qdata", false }, { "scale", ":scale", true },
                  { "zero_point", ":zero_point", true } } },
};
static const heft_scheme_names quanto[] = {
    { NULL, "", { { "weight", "._data", false }, { "scale", "._scale", false },
                  { "zero_point", "._shift", true } } },
};
static const heft_scheme_names onnx[] = {
    { NULL, "", { { "weight", "_quantized", false }, { "scale", "_scale", false },
                  { "zero_point", "_zero_point", true } } },
};
static const heft_scheme_names higgs[] = {
    { NULL, "/weight", { { "codebook", "/tables", false }, { "weight", "/weight", false },
                         { "scale", "/scales", false } } },
};
static const heft_scheme_names svdquant[] = {
    { NULL, "/weight", { { "scale", "/wscales", false }, { "weight", "/qweight", false },
                         { "zero_point", "/wzeros", true }, { "low_rank", "/proj_down", true },
                         { "low_rank", "/proj_up", true }, { "smooth", "/smooth_factor", true } } },
};
static const heft_scheme_names qweight[] = {
    { NULL, "/weight", { { "weight", "/qweight", false }, { "scale", "/scales", false },
                         { "zero_point", "/qzeros", true },
                         { "zero_point", "/scaled_zeros", true },
                         { "group_index", "/g_idx", true } } },
};
static const heft_scheme_names eetq[] = {
    { NULL, "", { { "scale", "_scales", false }, { "weight", "", false } } },
};
static const heft_scheme_names scaled[] = {
    { NULL, "/weight", { { "scale", "/weight_scale", false }, { "weight", "/weight", false },
                         { "zero_point", "/weight_zero_point", true },
                         { "pre_quant_scale", "/pre_quant_scale", true },
                         { "global_scale", "/weight_scale_2", true } } },
    { NULL, "/weight", { { "scale", "/scales", false }, { "weight", "/weight", false },
                         { "zero_point", "/zero_points", true } } },
};

/* Ways on; the texts end a sentence. */
static const char own_library[] = "decode it with the library that has made it, or start from the "
                                  "model before it was quantised";
static const char kernel_layout[] = "its numbers are in the order of one GPU kernel: use the "
                                    "model, such as one of gptq, from which it was made";
static const char before[] = "start from the model before it was quantised";

#define ROW(title, names, recognise, advice) \
    { title, names, sizeof(names) / sizeof *(names), NULL, NULL, false, advice, recognise }
#define VAGUE_ROW(title, names, recognise, advice) \
    { title, names, sizeof(names) / sizeof *(names), NULL, NULL, true, advice, recognise }
static const heft_scheme others[] = {
    ROW("sparse-24", sparse_24, always, "decompress it with compressed-tensors first"),
    ROW("marlin", marlin, has_packed_weight, kernel_layout),
    ROW("exl2", exl2, has_packed_weight, before),
    ROW("exl3", exl3, has_packed_weight, before),
    ROW("hqq", hqq, always, "load it with hqq and save what its layers dequantise to"),
    ROW("aqlm", aqlm, has_packed_weight, own_library),
    ROW("vptq", vptq, has_packed_weight, own_library),
    ROW("quip", quip, always, own_library),
    ROW("spqr", spqr, always, own_library),
    ROW("torchao", torchao, has_quantised_weight,
        "load it with torchao and save what its tensors dequantize() to"),
    ROW("quanto", quanto, has_quantised_weight,
        "load it with optimum-quanto and save what its tensors dequantize() to"),
    ROW("higgs", higgs, has_packed_weight, own_library),
    ROW("svdquant", svdquant, has_packed_weight, before),
    VAGUE_ROW("packed words", qweight, has_packed_weight,
              "name its method in config.json, or start from the model before it was quantised"),
    VAGUE_ROW("integers with scales", onnx, has_packed_weight, before),
    ROW("eetq", eetq, is_int8_with_scales, before),
    VAGUE_ROW("integers with scales", scaled, is_scaled_matrix, before),
};
/* clang-format on */

const heft_scheme *heft_other_scheme_at(uint32_t i)
{
    return i < sizeof others / sizeof *others ? &others[i] : NULL;
}
