/* test_schemes.c - tests of recognising quantised tensors, and of refusing to cast their parts. */
#include "models.h"

#include <heft/private.h>

#include <stdio.h>

static heft_file *open_model(heft_bytes *b, const test_tensor *tensors, size_t count)
{
    /* safetensors has no types whose blocks have scales of their own */
    bool has_blocks = tensors[0].dtype == HEFT_NVFP4;
    *b = heft_test_model(has_blocks ? "gguf" : "safetensors", tensors, count);
    return heft_test_opened(*b, NULL, true);
}

static bool is(heft_str s, const char *text)
{
    return s.len == strlen(text) && !memcmp(s.ptr, text, s.len);
}

/* ---- recognition ---------------------------------------------------------------------------- */

enum { MOST_TENSORS = 8 };
typedef struct known {
    const char *scheme, *variant, *logical;
    uint32_t bits, parts;
    uint64_t block[2];
    test_tensor tensors[MOST_TENSORS]; /* the first `parts` are the parts */
} known;

enum { ANY = 9999 }; /* block that is not known */

static const known rows[] = {
    { "fp8",
      "",
      "l.weight",
      8,
      2,
      { 128, 128 },
      { { "l.weight", HEFT_F8_E4M3FN, 2, { 256, 384 } },
        { "l.weight_scale_inv", HEFT_F32, 2, { 2, 3 } },
        { "norm.weight", HEFT_BF16, 1, { 8 } } } },
    { "fp8",
      "",
      "l.weight",
      8,
      2,
      { 128, 128 }, /* the last block is partial */
      { { "l.weight", HEFT_F8_E4M3FN, 2, { 200, 130 } },
        { "l.weight_scale_inv", HEFT_BF16, 2, { 2, 2 } } } },
    { "fp8",
      "",
      "l.weight",
      8,
      2,
      { 0, 0 },
      { { "l.weight", HEFT_F8_E5M2, 2, { 4, 8 } }, { "l.weight_scale", HEFT_F32, 0, { 0 } } } },
    { "fp8",
      "",
      "l.weight",
      8,
      2,
      { 1, 0 },
      { { "l.weight", HEFT_F8_E4M3FN, 2, { 4, 8 } },
        { "l.weight_scale", HEFT_F32, 2, { 4, 1 } } } },
    { "fp8",
      "",
      "e.up_proj",
      8,
      2,
      { 128, 128 },
      { { "e.up_proj", HEFT_F8_E4M3FN, 3, { 2, 256, 128 } },
        { "e.up_proj_scale_inv", HEFT_F32, 3, { 2, 2, 1 } } } },
    { "fp8",
      "Mistral",
      "l.weight",
      8,
      3,
      { 0, 0 },
      { { "l.weight", HEFT_F8_E4M3FN, 2, { 4, 8 } },
        { "l.qscale_weight", HEFT_BF16, 0, { 0 } },
        { "l.qscale_act", HEFT_BF16, 0, { 0 } } } },
    { "fp8",
      "ComfyUI",
      "l.weight",
      8,
      2,
      { 0, 0 },
      { { "l.weight", HEFT_F8_E4M3FN, 2, { 4, 8 } },
        { "l.scale_weight", HEFT_F32, 0, { 0 } },
        { "scaled_fp8", HEFT_F8_E4M3FN, 1, { 0 } } } },
    { "fp8",
      "",
      "l.weight",
      8,
      2,
      { ANY, ANY }, /* a scale of the wrong shape is a scale, too */
      { { "l.weight", HEFT_F8_E4M3FN, 2, { 4, 8 } },
        { "l.weight_scale", HEFT_F32, 2, { 9, 9 } } } },
    { "mxfp8",
      "",
      "l.weight",
      8,
      2,
      { 1, 32 },
      { { "l.weight", HEFT_F8_E4M3FN, 2, { 4, 64 } },
        { "l.weight_scale", HEFT_U8, 2, { 4, 2 } } } },
    { "mxfp4",
      "gpt-oss",
      "e.up_proj",
      4,
      2,
      { 1, 32 },
      { { "e.up_proj_blocks", HEFT_U8, 4, { 2, 8, 3, 16 } },
        { "e.up_proj_scales", HEFT_U8, 3, { 2, 8, 3 } },
        { "e.up_proj_bias", HEFT_BF16, 2, { 2, 8 } } } },
    { "mxfp4",
      "DeepSeek",
      "l.weight",
      4,
      2,
      { 1, 32 },
      { { "l.weight", HEFT_I8, 2, { 8, 32 } }, { "l.scale", HEFT_F8_E8M0, 2, { 8, 2 } } } },
    { "mxfp4",
      "",
      "l.weight",
      4,
      3,
      { 1, 32 },
      { { "l.weight", HEFT_U8, 2, { 8, 32 } },
        { "l.weight_scale", HEFT_U8, 2, { 8, 2 } },
        { "l.input_scale", HEFT_F32, 0, { 0 } } } },
    { "fp8",
      "",
      "l.weight",
      8,
      2,
      { 128, 128 },
      { { "l.weight", HEFT_F8_E4M3FN, 2, { 256, 384 } },
        { "l.weight_scale", HEFT_F32, 4, { 2, 1, 3, 1 } } } },
    { "nvfp4",
      "ModelOpt",
      "l.weight",
      4,
      4,
      { 1, 16 },
      { { "l.weight", HEFT_U8, 2, { 8, 16 } },
        { "l.weight_scale", HEFT_F8_E4M3FN, 2, { 8, 2 } },
        { "l.weight_scale_2", HEFT_F32, 0, { 0 } },
        { "l.input_scale", HEFT_F32, 0, { 0 } } } },
    { "nvfp4",
      "compressed-tensors",
      "l.weight",
      4,
      3,
      { 1, 16 },
      { { "l.weight_packed", HEFT_U8, 2, { 8, 16 } },
        { "l.weight_scale", HEFT_F8_E4M3FN, 2, { 8, 2 } },
        { "l.weight_global_scale", HEFT_F32, 1, { 1 } } } },
    { "nvfp4",
      "GGUF",
      "blk.0.ffn_up.weight",
      4,
      3,
      { 1, 16 },
      { { "blk.0.ffn_up.weight", HEFT_NVFP4, 2, { 2, 64 } },
        { "blk.0.ffn_up.scale", HEFT_F32, 1, { 1 } },
        { "blk.0.ffn_up.input_scale", HEFT_F32, 1, { 1 } } } },
    { "nvfp4",
      "GGUF",
      "blk.0.ffn_up.weight",
      4,
      2,
      { 1, 16 },
      { { "blk.0.ffn_up.weight", HEFT_NVFP4, 2, { 2, 64 } },
        { "blk.0.ffn_up.weight.scale", HEFT_F32, 1, { 1 } },
        { "blk.0.ffn_down.weight", HEFT_NVFP4, 2, { 2, 64 } } } },
    { "compressed-tensors",
      "pack-quantized",
      "l.weight",
      0,
      4,
      { ANY, ANY },
      { { "l.weight_packed", HEFT_I32, 2, { 32, 8 } },
        { "l.weight_scale", HEFT_BF16, 2, { 32, 2 } },
        { "l.weight_shape", HEFT_I64, 1, { 2 } },
        { "l.weight_g_idx", HEFT_I32, 1, { 64 } } } },
    { "compressed-tensors",
      "int-quantized",
      "l.weight",
      8,
      3,
      { 1, 0 },
      { { "l.weight", HEFT_I8, 2, { 32, 8 } },
        { "l.weight_scale", HEFT_BF16, 2, { 32, 1 } },
        { "l.weight_zero_point", HEFT_I8, 2, { 32, 1 } } } },
    { "gptq",
      "",
      "l.weight",
      4,
      4,
      { 1, 32 },
      { { "l.qweight", HEFT_I32, 2, { 8, 24 } },
        { "l.qzeros", HEFT_I32, 2, { 2, 3 } },
        { "l.scales", HEFT_F16, 2, { 2, 24 } },
        { "l.g_idx", HEFT_I32, 1, { 64 } },
        { "l.bias", HEFT_F16, 1, { 24 } } } },
    { "awq",
      "",
      "l.weight",
      4,
      3,
      { 1, 32 },
      { { "l.qweight", HEFT_I32, 2, { 64, 4 } },
        { "l.qzeros", HEFT_I32, 2, { 2, 4 } },
        { "l.scales", HEFT_F16, 2, { 2, 32 } } } },
    { "bitsandbytes",
      "nf4",
      "l.weight",
      4,
      6,
      { ANY, ANY },
      { { "l.weight", HEFT_U8, 2, { 64, 1 } },
        { "l.weight.absmax", HEFT_U8, 1, { 2 } },
        { "l.weight.nested_absmax", HEFT_F32, 1, { 1 } },
        { "l.weight.nested_quant_map", HEFT_F32, 1, { 256 } },
        { "l.weight.quant_map", HEFT_F32, 1, { 16 } },
        { "l.weight.quant_state.bitsandbytes__nf4", HEFT_U8, 1, { 70 } } } },
    { "bitsandbytes",
      "int8",
      "l.weight",
      8,
      3,
      { 1, 0 },
      { { "l.weight", HEFT_I8, 2, { 8, 8 } },
        { "l.SCB", HEFT_F32, 1, { 8 } },
        { "l.weight_format", HEFT_U8, 0, { 0 } } } },
    { "mlx",
      "affine",
      "l.weight",
      0,
      3,
      { ANY, ANY },
      { { "l.weight", HEFT_U32, 2, { 8, 8 } },
        { "l.scales", HEFT_BF16, 2, { 8, 1 } },
        { "l.biases", HEFT_BF16, 2, { 8, 1 } } } },
    { "bitnet",
      "",
      "l.weight",
      2,
      2,
      { 0, 0 },
      { { "l.weight", HEFT_U8, 2, { 8, 32 } }, { "l.weight_scale", HEFT_BF16, 1, { 1 } } } },
    { "modelopt",
      "int4 awq",
      "l.weight",
      4,
      3,
      { 1, 16 },
      { { "l.weight", HEFT_U8, 2, { 4, 32 } },
        { "l.weight_scale", HEFT_BF16, 2, { 8, 2 } },
        { "l.pre_quant_scale", HEFT_F16, 1, { 32 } },
        { "l.bias", HEFT_F16, 1, { 8 } } } },
    { "comfyui",
      "",
      "l.weight",
      8,
      3,
      { ANY, ANY },
      { { "l.weight", HEFT_I8, 2, { 8, 32 } },
        { "l.weight_scale", HEFT_F32, 1, { 8 } },
        { "l.comfy_quant", HEFT_U8, 1, { 30 } } } },
    { "marlin",
      "",
      "l.weight",
      0,
      2,
      { ANY, ANY },
      { { "l.B", HEFT_I32, 2, { 8, 32 } }, { "l.s", HEFT_F16, 2, { 1, 32 } } } },
    { "exl2",
      "",
      "l.weight",
      0,
      4,
      { ANY, ANY },
      { { "l.q_weight", HEFT_I32, 2, { 8, 32 } },
        { "l.q_scale", HEFT_I32, 2, { 2, 4 } },
        { "l.q_scale_max", HEFT_F16, 1, { 2 } },
        { "l.q_groups", HEFT_I16, 1, { 4 } } } },
    { "exl3",
      "",
      "l.weight",
      0,
      3,
      { ANY, ANY },
      { { "l.trellis", HEFT_I16, 3, { 2, 2, 16 } },
        { "l.suh", HEFT_F16, 1, { 32 } },
        { "l.svh", HEFT_F16, 1, { 32 } } } },
    { "hqq",
      "",
      "l.weight",
      0,
      3,
      { ANY, ANY },
      { { "l.W_q", HEFT_U8, 2, { 8, 32 } },
        { "l.scale", HEFT_F16, 2, { 8, 1 } },
        { "l.zero", HEFT_F16, 2, { 8, 1 } } } },
    { "aqlm",
      "",
      "l.weight",
      0,
      3,
      { ANY, ANY },
      { { "l.codes", HEFT_I16, 3, { 8, 4, 1 } },
        { "l.codebooks", HEFT_F16, 4, { 1, 16, 1, 8 } },
        { "l.scales", HEFT_F16, 4, { 8, 1, 1, 1 } } } },
    { "vptq",
      "",
      "l.weight",
      0,
      2,
      { ANY, ANY },
      { { "l.indices", HEFT_I32, 3, { 1, 8, 4 } },
        { "l.centroids.weight", HEFT_F16, 2, { 1, 64 } } } },
    { "quip",
      "",
      "l.weight",
      0,
      3,
      { ANY, ANY },
      { { "l.Qidxs", HEFT_I16, 2, { 8, 4 } },
        { "l.SU", HEFT_F16, 1, { 8 } },
        { "l.SV", HEFT_F16, 1, { 8 } } } },
    { "spqr",
      "",
      "l.weight",
      0,
      3,
      { ANY, ANY },
      { { "l.dense_weights", HEFT_I64, 1, { 8 } },
        { "l.row_offsets", HEFT_I32, 1, { 8 } },
        { "l.col_vals", HEFT_I32, 1, { 8 } } } },
    { "sparse-24",
      "bitmask",
      "l.weight",
      0,
      3,
      { ANY, ANY },
      { { "l.weight.compressed", HEFT_F8_E4M3FN, 2, { 8, 4 } },
        { "l.weight.bitmask", HEFT_U8, 2, { 8, 1 } },
        { "l.weight.shape", HEFT_I64, 1, { 2 } } } },
    { "torchao",
      "",
      "l._weight",
      0,
      2,
      { ANY, ANY },
      { { "l._weight_qdata", HEFT_I8, 2, { 8, 8 } },
        { "l._weight_scale", HEFT_F32, 2, { 8, 1 } } } },
    { "quanto",
      "",
      "l.weight",
      0,
      2,
      { ANY, ANY },
      { { "l.weight._data", HEFT_I8, 2, { 8, 8 } },
        { "l.weight._scale", HEFT_F32, 2, { 8, 1 } } } },
    { "packed words",
      "",
      "l.weight",
      0,
      2,
      { ANY, ANY }, /* a layout of neither gptq nor awq */
      { { "l.qweight", HEFT_I16, 2, { 8, 8 } }, { "l.scales", HEFT_F16, 2, { 2, 32 } } } },
    { "integers with scales",
      "",
      "l.weight",
      0,
      2,
      { ANY, ANY },
      { { "l.weight", HEFT_U8, 2, { 8, 8 } }, { "l.weight_scale", HEFT_F32, 2, { 8, 2 } } } },
};

static size_t tensors_in(const test_tensor *tensors)
{
    size_t count = 0;
    while (count < MOST_TENSORS && tensors[count].name)
        count++;
    return count;
}

static void check_row(const known *row)
{
    heft_bytes b;
    heft_error err;
    heft_schemes *s;
    size_t count = tensors_in(row->tensors);
    heft_file *f = open_model(&b, row->tensors, count);
    heft_assert_ok(heft_schemes_open(&s, f, NULL, &err), &err);
    assert_int_equal(heft_schemes_count(s), 1);
    heft_quantised q = heft_schemes_at(s, 0);
    assert_true(is(q.scheme, row->scheme));
    assert_true(is(q.variant, row->variant));
    assert_true(is(q.name, row->logical));
    assert_int_equal(q.bits, row->bits);
    assert_int_equal(q.part_count, row->parts);
    assert_int_equal(q.has_block, row->block[0] != ANY);
    for (int i = 0; q.has_block && i < 2; i++)
        assert_int_equal(q.block[i], row->block[i]);
    for (size_t i = 0; i < count; i++) {
        uint32_t id = heft_tensor_find(f, heft_str_from(row->tensors[i].name));
        assert_int_equal(heft_schemes_find(s, id), i < row->parts ? 0 : HEFT_NONE);
    }
    heft_schemes_close(s);
    heft_file_close(f);
    heft_test_free(&b);
}

static void every_scheme_is_recognised(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        print_message("# %s %s\n", rows[i].scheme, rows[i].variant);
        check_row(&rows[i]);
    }
}

/* Ordinary models have tensors with the names of parts. */
static void ordinary_tensors_are_not_quantised(void **state)
{
    static const test_tensor tensors[] = {
        { "bn.weight", HEFT_F32, 1, { 8 } },
        { "bn.bias", HEFT_F32, 1, { 8 } },
        { "bn.running_mean", HEFT_F32, 1, { 8 } },
        { "bn.num_batches_tracked", HEFT_I64, 0, { 0 } },
        { "norm.weight", HEFT_F32, 1, { 8 } },
        { "norm.scale", HEFT_F32, 1, { 8 } },
        { "norm.scales", HEFT_F32, 1, { 8 } },
        { "absmax", HEFT_F32, 1, { 8 } },
        { "scales", HEFT_F32, 1, { 8 } },
        { "plain.weight", HEFT_F8_E4M3FN, 2, { 8, 8 } },
        { "plain.bias", HEFT_F32, 1, { 8 } },
        { "lora.weight", HEFT_F32, 2, { 8, 8 } },
        { "lora.weight_scale", HEFT_F32, 0, { 0 } },
        { "q.absmax", HEFT_F32, 1, { 8 } },
        { "q.weight", HEFT_F32, 2, { 8, 8 } },
        { "position_ids", HEFT_I64, 2, { 1, 512 } },
        { "table", HEFT_I32, 1, { 8 } },
        { "table_scale", HEFT_F32, 1, { 8 } },
        { "image", HEFT_U8, 2, { 8, 8 } },
        { "image_scale", HEFT_F32, 0, { 0 } },
        { "ssm.B", HEFT_F32, 2, { 8, 8 } },
        { "ssm.s", HEFT_F32, 2, { 8, 8 } },
        { "vq.codebooks", HEFT_F32, 2, { 8, 8 } },
        { "conv.weight", HEFT_F32, 4, { 2, 2, 3, 3 } },
        { "conv_blocks", HEFT_F32, 2, { 8, 8 } },
        { "conv_scales", HEFT_F32, 2, { 8, 8 } },
        { "logit_scale", HEFT_F32, 0, { 0 } },
        { "logit", HEFT_F32, 0, { 0 } },
        { "_scale", HEFT_F32, 0, { 0 } },
        { "_packed", HEFT_U8, 1, { 4 } },
    };
    heft_bytes b;
    heft_error err;
    heft_schemes *s;
    (void)state;
    heft_file *f = open_model(&b, tensors, sizeof tensors / sizeof *tensors);
    heft_assert_ok(heft_schemes_open(&s, f, NULL, &err), &err);
    for (uint32_t i = 0; i < heft_schemes_count(s); i++)
        print_message("# %.*s\n", (int)heft_schemes_at(s, i).name.len,
                      heft_schemes_at(s, i).name.ptr);
    assert_int_equal(heft_schemes_count(s), 0);
    heft_schemes_close(s);
    heft_schemes_close(NULL);
    heft_file_close(f);
    heft_test_free(&b);
}

/* ---- settings ------------------------------------------------------------------------------- */

static heft_settings *parse(const char *text)
{
    heft_error err;
    heft_settings *settings;
    heft_assert_ok(heft_settings_parse_json(&settings, heft_str_from(text), NULL, &err), &err);
    return settings;
}

static void settings_say_how_a_model_is_quantised(void **state)
{
    static const struct {
        const char *text;
        bool are;
    } all[] = {
        { "{\"quantization_config\": {\"quant_method\": \"awq\"}}", true },
        { "{\"text_config\": {\"quantization_config\": {\"quant_method\": \"fp8\"}}}", true },
        { "{\"quantization\": {\"group_size\": 64, \"bits\": 4}}", true },
        { "{\"quantization\": {\"quant_algo\": \"NVFP4\"}}", true },
        { "{\"bits\": 4, \"group_size\": 128, \"desc_act\": false}", true },
        { "{\"hidden_size\": 4}", false },
        { "{}", false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        heft_settings *settings = parse(all[i].text);
        assert_int_equal(heft_settings_are_quantised(settings), all[i].are);
        heft_settings_close(settings);
    }
    assert_false(heft_settings_are_quantised(NULL));
}

static void settings_complete_what_shapes_do_not_say(void **state)
{
    static const test_tensor tensors[] = { { "l.weight", HEFT_U32, 2, { 8, 8 } },
                                           { "l.scales", HEFT_BF16, 2, { 8, 1 } },
                                           { "l.biases", HEFT_BF16, 2, { 8, 1 } } };
    heft_bytes b;
    heft_error err;
    heft_schemes *s;
    (void)state;
    heft_file *f = open_model(&b, tensors, 3);
    heft_settings *settings = parse("{\"quantization\": {\"group_size\": 64, \"bits\": 4}}");
    heft_assert_ok(heft_schemes_open(&s, f, settings, &err), &err);
    heft_settings_close(settings);
    heft_quantised q = heft_schemes_at(s, 0);
    assert_int_equal(q.bits, 4);
    assert_int_equal(q.block[1], 64);
    heft_schemes_close(s);
    heft_file_close(f);
    heft_test_free(&b);
}

/* The settings name a scheme of which no tensor is recognised: packed tensors and their neighbours
 * count, other modules do not. */
static void an_unknown_method_protects_packed_modules(void **state)
{
    static const test_tensor tensors[] = { { "l.codes", HEFT_U8, 2, { 8, 8 } },
                                           { "l.range", HEFT_F16, 1, { 8 } },
                                           { "l.sub.weight", HEFT_F16, 1, { 8 } },
                                           { "norm.weight", HEFT_F16, 1, { 8 } } };
    heft_bytes b;
    heft_error err;
    heft_schemes *s;
    (void)state;
    heft_file *f = open_model(&b, tensors, 4);
    heft_settings *settings = parse("{\"quantization_config\": {\"quant_method\": \"new\"}}");
    heft_assert_ok(heft_schemes_open(&s, f, settings, &err), &err);
    heft_settings_close(settings);
    assert_int_equal(heft_schemes_count(s), 1);
    assert_true(is(heft_schemes_at(s, 0).scheme, "new"));
    assert_int_equal(heft_schemes_at(s, 0).part_count, 2);
    assert_string_equal(heft_schemes_part_at(s, 0, 1).role, "data");
    assert_int_equal(heft_schemes_find(s, heft_schemes_part_at(s, 0, 0).tensor), 0);
    assert_int_equal(heft_schemes_find(s, heft_tensor_find(f, heft_str_from("norm.weight"))),
                     HEFT_NONE);
    assert_int_equal(heft_schemes_find(s, heft_tensor_find(f, heft_str_from("l.sub.weight"))),
                     HEFT_NONE);
    assert_int_equal(heft_schemes_find(s, 99), HEFT_NONE);
    heft_schemes_close(s);
    heft_file_close(f);
    heft_test_free(&b);
}

/* ---- many tensors, and memory --------------------------------------------------------------- */

static void every_layer_of_a_large_model_is_found(void **state)
{
    enum { LAYERS = 3000, PARTS = 3 };
    static char names[LAYERS * PARTS][48];
    test_tensor *tensors = calloc(LAYERS * PARTS, sizeof *tensors);
    heft_bytes b;
    heft_error err;
    heft_schemes *s;
    (void)state;
    for (size_t i = 0; i < LAYERS; i++) {
        const char *const suffixes[PARTS] = { "qweight", "qzeros", "scales" };
        for (size_t k = 0; k < PARTS; k++) {
            test_tensor *t = &tensors[i * PARTS + k];
            snprintf(names[i * PARTS + k], sizeof *names, "layers.%zu.%s", i, suffixes[k]);
            *t = (test_tensor){ names[i * PARTS + k], k == 2 ? HEFT_F16 : HEFT_I32, 2, { 1, 1 } };
            t->dims[1] = k == 2 ? 8 : 1;
        }
    }
    heft_file *f = open_model(&b, tensors, LAYERS * PARTS);
    heft_assert_ok(heft_schemes_open(&s, f, NULL, &err), &err);
    assert_int_equal(heft_schemes_count(s), LAYERS);
    heft_schemes_close(s);
    heft_file_close(f);
    heft_test_free(&b);
    free(tensors);
}

static void missing_memory_is_reported(void **state)
{
    heft_test_memory m;
    heft_error err;
    heft_schemes *s;
    heft_status st = HEFT_E_NOMEM;
    (void)state;
    heft_test_memory_init(&m, 0);
    heft_bytes b = heft_test_model("safetensors", rows[0].tensors, 3);
    heft_file *f = heft_test_opened(b, &m.host, true);
    for (uint32_t fail_at = 1; st == HEFT_E_NOMEM; fail_at++) {
        heft_test_memory_rewind(&m);
        m.fail_at = fail_at;
        st = heft_schemes_open(&s, f, NULL, &err);
        heft_assert_error_set(st, &err);
        heft_schemes_close(s);
    }
    heft_assert_ok(st, &err);
    heft_file_close(f);
    heft_test_free(&b);
    heft_assert_all_freed(&m);
}

/* ---- casts ---------------------------------------------------------------------------------- */

static heft_dtype to_bf16(void *ctx, const heft_tensor *t)
{
    return !ctx || is(t->name, ctx) ? HEFT_BF16 : HEFT_UNTYPED;
}

static heft_status convert(const known *row, const char *tensor, bool raw_tensors, heft_error *err)
{
    heft_bytes b;
    heft_blob blob;
    heft_sink *sink;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    heft_file *f = open_model(&b, row->tensors, tensors_in(row->tensors));
    o.cast = to_bf16;
    o.ctx = (void *)(uintptr_t)tensor;
    o.raw_tensors = raw_tensors;
    heft_assert_ok(heft_sink_open_memory(&sink, &blob, NULL, err), err);
    heft_status st = heft_file_convert(f, heft_format_find(HEFT_STR("safetensors")), sink, &o, err);
    heft_blob_free(&blob);
    heft_file_close(f);
    heft_test_free(&b);
    return st;
}

static void a_cast_of_any_part_is_refused(void **state)
{
    heft_error err;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint32_t k = 0; k < rows[i].parts; k++) {
            if (rows[i].tensors[k].dtype == HEFT_BF16)
                continue;
            heft_status st = convert(&rows[i], rows[i].tensors[k].name, false, &err);
            heft_assert_fails(st, HEFT_E_UNSUPPORTED, &err, rows[i].tensors[k].name);
            assert_string_equal(err.rule, "heft/quantised");
            assert_non_null(strstr(err.message, rows[i].scheme));
        }
}

static void the_error_names_both_tensors(void **state)
{
    heft_error err;
    (void)state;
    assert_int_equal(convert(&rows[0], "l.weight", false, &err), HEFT_E_UNSUPPORTED);
    assert_string_equal(err.message, "tensor 'l.weight' is quantised (fp8, scaled by "
                                     "'l.weight_scale_inv'): a cast would lose the scale");
    assert_int_equal(convert(&rows[0], "l.weight_scale_inv", false, &err), HEFT_E_UNSUPPORTED);
    assert_string_equal(err.message,
                        "tensor 'l.weight_scale_inv' is the scale of the quantised tensor "
                        "'l.weight' (fp8): a cast could change what the numbers mean");
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Read a tensor of the first row as f32: whole, or the first element. */
static heft_status read_f32(const heft_file *f, const char *name, bool is_slice, heft_error *err)
{
    static float all[256 * 384];
    const heft_slice axes[2] = { { 0, 1, 1 }, { 0, 1, 1 } };
    heft_array a;
    heft_str text = heft_str_from(name);
    if (is_slice)
        return heft_array_read_slice(all, sizeof all, f, text, axes, HEFT_F32, err);
    heft_status st = heft_array_read(&a, f, text, HEFT_F32, all, sizeof all, err);
    heft_array_free(&a);
    return st;
}

static void reading_as_another_type_is_refused(void **state)
{
    heft_bytes b;
    heft_array a;
    heft_error err;
    (void)state;
    heft_file *f = open_model(&b, rows[0].tensors, 3);
    for (int is_slice = 0; is_slice < 2; is_slice++) {
        heft_assert_fails(read_f32(f, "l.weight", is_slice, &err), HEFT_E_UNSUPPORTED, &err,
                          "scaled by 'l.weight_scale_inv'): a cast would lose the scale");
        assert_string_equal(err.rule, "heft/quantised");
        heft_assert_ok(read_f32(f, "l.weight_scale_inv", is_slice, &err), &err); /* stored so */
    }
    heft_assert_ok(read_f32(f, "norm.weight", false, &err), &err);
    heft_assert_ok(heft_array_read(&a, f, HEFT_STR("l.weight"), HEFT_UNTYPED, NULL, 0, &err), &err);
    heft_array_free(&a);
    heft_file_close(f);
    heft_test_free(&b);
}

static void reading_stored_numbers_can_be_insisted_on(void **state)
{
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    heft_bytes b = heft_test_model("safetensors", rows[0].tensors, 3);
    heft_source *source;
    heft_file *f;
    heft_error err;
    (void)state;
    o.raw_tensors = true;
    heft_assert_ok(heft_source_open_memory(&source, b.p, b.len, &err), &err);
    heft_assert_ok(heft_file_open_source(&f, source, &o, &err), &err);
    heft_assert_ok(read_f32(f, "l.weight", false, &err), &err);
    heft_assert_ok(read_f32(f, "l.weight", true, &err), &err);
    heft_file_close(f);
    heft_test_free(&b);
}

typedef struct parallel_reads {
    const heft_file *f;
    uint32_t refused[16];
} parallel_reads;

static void read_refused(void *arg, size_t i)
{
    parallel_reads *r = arg;
    float element;
    const heft_slice axes[2] = { { 0, 1, 1 }, { 0, 1, 1 } };
    r->refused[i] = heft_array_read_slice(&element, sizeof element, r->f, HEFT_STR("l.weight"),
                                          axes, HEFT_F32, NULL) == HEFT_E_UNSUPPORTED;
}

/* All threads look for the quantised tensors of the file at first, and share what one finds. */
static void threads_agree_on_the_quantised_tensors(void **state)
{
    enum { READS = 16 };
    heft_executor e = heft_executor_threads(READS);
    heft_bytes b;
    (void)state;
    heft_file *f = open_model(&b, rows[0].tensors, 3);
    parallel_reads r = { .f = f };
    e.run(e.ctx, READS, read_refused, &r);
    for (size_t i = 0; i < READS; i++)
        assert_true(r.refused[i]);
    heft_file_close(f);
    heft_test_free(&b);
}

static void missing_memory_of_a_cast_is_reported(void **state)
{
    heft_test_memory m;
    heft_error err;
    heft_status st = HEFT_E_NOMEM;
    (void)state;
    heft_test_memory_init(&m, 0);
    heft_bytes b = heft_test_model("safetensors", rows[0].tensors, 3);
    for (uint32_t fail_at = 1; st == HEFT_E_NOMEM; fail_at++) {
        heft_file *f = heft_test_opened(b, &m.host, true);
        heft_test_memory_rewind(&m);
        m.fail_at = fail_at;
        st = read_f32(f, "l.weight", false, &err);
        heft_assert_error_set(st, &err);
        heft_file_close(f);
        m.fail_at = 0;
    }
    heft_assert_status(st, HEFT_E_UNSUPPORTED, &err);
    heft_test_free(&b);
    heft_assert_all_freed(&m);
}

/* ---- quantised tensors that are torn apart ---------------------------------------------- */

typedef struct tearing {
    const char *drop, *from, *to; /* name to drop; name to rename and the new name; or NULL */
    bool is_torn;
} tearing;

static bool keep_others(void *ctx, const heft_tensor *t)
{
    const tearing *c = ctx;
    return !c->drop || !is(t->name, c->drop);
}

static heft_str rename_one(void *ctx, const heft_tensor *t)
{
    const tearing *c = ctx;
    return c->from && is(t->name, c->from) ? heft_str_from(c->to) : t->name;
}

static void count_torn(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                       const char *text)
{
    (void)severity;
    (void)tensor;
    *(uint32_t *)ctx += !strcmp(rule, "heft/torn-tensor") &&
                        strstr(text, "quantised tensor 'l.weight' ('fp8'): its ") == text;
}

static heft_status convert_torn(uint32_t *reports, const tearing *c, bool is_strict)
{
    heft_bytes b;
    heft_blob blob;
    heft_sink *sink;
    heft_error err;
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    heft_file *f = open_model(&b, rows[0].tensors, 3);
    write.strict = is_strict;
    write.on_loss = count_torn;
    write.ctx = reports;
    o.write = &write;
    o.keep = keep_others;
    o.rename = rename_one;
    o.ctx = (void *)(uintptr_t)c;
    heft_assert_ok(heft_sink_open_memory(&sink, &blob, NULL, &err), &err);
    heft_status st = heft_file_convert(f, heft_format_find(HEFT_STR("safetensors")), sink, &o,
                                       &err);
    heft_blob_free(&blob);
    heft_file_close(f);
    heft_test_free(&b);
    return st;
}

static void parts_that_leave_each_other_are_reported(void **state)
{
    static const tearing cases[] = {
        { "l.weight_scale_inv", NULL, NULL, true },
        { "l.weight", NULL, NULL, true },
        { "norm.weight", NULL, NULL, false },
        { NULL, "l.weight_scale_inv", "l.factor", true },
        { NULL, "l.weight", "m.weight", true },
        { NULL, "norm.weight", "scale.weight", false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int is_strict = 0; is_strict < 2; is_strict++) {
            uint32_t reports = 0;
            heft_status st = convert_torn(&reports, &cases[i], is_strict);
            assert_int_equal(st, is_strict && cases[i].is_torn ? HEFT_E_LOSSY : HEFT_OK);
            assert_int_equal(reports, cases[i].is_torn);
        }
}

static void stored_numbers_and_other_tensors_are_cast(void **state)
{
    heft_error err;
    (void)state;
    heft_assert_ok(convert(&rows[0], NULL, true, &err), &err);
    heft_assert_ok(convert(&rows[9], "e.up_proj_bias", false, &err), &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scheme_is_recognised),
        cmocka_unit_test(ordinary_tensors_are_not_quantised),
        cmocka_unit_test(settings_say_how_a_model_is_quantised),
        cmocka_unit_test(settings_complete_what_shapes_do_not_say),
        cmocka_unit_test(an_unknown_method_protects_packed_modules),
        cmocka_unit_test(every_layer_of_a_large_model_is_found),
        cmocka_unit_test(missing_memory_is_reported),
        cmocka_unit_test(a_cast_of_any_part_is_refused),
        cmocka_unit_test(the_error_names_both_tensors),
        cmocka_unit_test(stored_numbers_and_other_tensors_are_cast),
        cmocka_unit_test(reading_as_another_type_is_refused),
        cmocka_unit_test(reading_stored_numbers_can_be_insisted_on),
        cmocka_unit_test(threads_agree_on_the_quantised_tensors),
        cmocka_unit_test(missing_memory_of_a_cast_is_reported),
        cmocka_unit_test(parts_that_leave_each_other_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
