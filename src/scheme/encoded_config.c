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
    if (c->block[0] == 1 && !c->block[1]) {
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
