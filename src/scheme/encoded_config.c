/* encoded_config.c - writes what vLLM, transformers and compressed-tensors expect in config.json.
 *
 * transformers loads blocks of fp8 by the method "fp8" of DeepSeek; all else here are formats of
 * compressed-tensors. The callers add the list of modules and the closing brace. */
#include "scheme/encoded_config.h"

#include "base/text.h"
#include "grammar/json.h"

static void put(heft_out *o, const char *text)
{
    heft_out_str(o, heft_lit(text));
}

/* Write the beginning of the configuration of compressed-tensors: one group with all modules of the
 * class Linear.  `weights` are further members. */
static void put_compressed(heft_out *o, const char *format, uint32_t bits, const char *type,
                           const char *strategy, uint64_t group, const char *further)
{
    put(o, "\"quant_method\": \"compressed-tensors\", \"format\": \"");
    put(o, format);
    put(o, "\", \"quantization_status\": \"compressed\", \"config_groups\": {\"group_0\": "
           "{\"targets\": [\"Linear\"], \"weights\": {\"num_bits\": ");
    heft_json_put_u64(o, bits);
    put(o, ", \"type\": \"");
    put(o, type);
    put(o, "\", \"symmetric\": true, \"strategy\": \"");
    put(o, strategy);
    put(o, "\"");
    if (group) {
        put(o, ", \"group_size\": ");
        heft_json_put_u64(o, group);
    }
    put(o, further);
    put(o, ", \"dynamic\": false}, \"input_activations\": null, \"output_activations\": null}}, "
           "\"kv_cache_scheme\": null, \"ignore\"");
}

void heft_config_of_fp8(heft_out *o, const heft_encode_choice *c)
{
    if (heft_has_row_scales(c)) {
        put_compressed(o, "float-quantized", 8, "float", "channel", 0, "");
        return;
    }
    put(o, "\"quant_method\": \"fp8\", \"fmt\": \"e4m3\", \"activation_scheme\": \"dynamic\", "
           "\"weight_block_size\": [");
    heft_json_put_u64(o, c->block[0]);
    put(o, ", ");
    heft_json_put_u64(o, c->block[1]);
    put(o, "], \"modules_to_not_convert\"");
}

/* A float of 8 bits is the type of scales of nvfp4, a byte that of powers of two. */
static const char of_bytes[] = ", \"scale_dtype\": \"torch.uint8\"";
static const char of_floats[] = ", \"scale_dtype\": \"torch.float8_e4m3fn\"";

void heft_config_of_mxfp8(heft_out *o, const heft_encode_choice *c)
{
    put_compressed(o, "mxfp8-quantized", 8, "float", "group", c->block[1], of_bytes);
}

/* Only gpt-oss has this method; the form of GGUF needs no settings. */
void heft_config_of_mxfp4(heft_out *o, const heft_encode_choice *c)
{
    if (c->form)
        put(o, "\"quant_method\": \"mxfp4\", \"modules_to_not_convert\"");
    else
        put_compressed(o, "mxfp4-pack-quantized", 4, "float", "group", c->block[1], of_bytes);
}

/* The activations stay in 16 bits, for which ModelOpt has a name of its own. */
void heft_config_of_nvfp4(heft_out *o, const heft_encode_choice *c)
{
    if (!c->form) {
        put_compressed(o, "nvfp4-pack-quantized", 4, "float", "tensor_group", c->block[1],
                       of_floats);
        return;
    }
    put(o, "\"quant_method\": \"modelopt\", \"quant_algo\": \"W4A16_NVFP4\", \"config_groups\": "
           "{\"group_0\": {\"weights\": {\"num_bits\": 4, \"type\": \"float\", \"group_size\": 16, "
           "\"dynamic\": false}, \"targets\": [\"Linear\"]}}, \"ignore\"");
}

void heft_config_of_integers(heft_out *o, const heft_encode_choice *c)
{
    put_compressed(o, "pack-quantized", c->row->bits, "int", c->block[1] ? "group" : "channel",
                   c->block[1], "");
}
