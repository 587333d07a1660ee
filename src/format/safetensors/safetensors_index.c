/* safetensors_index.c - reads and writes the index of a model in several safetensors files. */
#include "base/path_risk.h"
#include "format/safetensors/safetensors.h"
#include "format/shard_index.h"
#include "grammar/json.h"

enum { DIGITS = 5 };

/* PyTorch shards have an index of the same form, with other file names. */
static bool is_own(heft_str file)
{
    return !heft_shard_index_is_torch_name(file);
}

heft_status heft_st_parse_index(heft_window *in, heft_index *x)
{
    static const heft_shard_index_kind kind = { .total_rule = "safetensors/total-size",
                                                .mark_rule = "safetensors/byte-order-mark",
                                                .is_own = is_own,
                                                .title = "safetensors" };
    return heft_shard_index_parse(in, x, &kind);
}

/* ---- writing: in the layout of the transformers library ---- */

static void put_name(heft_out *o, heft_str stem, uint32_t i, uint32_t count)
{
    heft_out_str(o, stem);
    if (i < count) {
        heft_out_u8(o, '-');
        heft_out_decimal(o, i + 1, DIGITS);
        heft_out_str(o, heft_lit("-of-"));
        heft_out_decimal(o, count, DIGITS);
    }
    heft_out_str(o, heft_lit(i < count ? ".safetensors" : ".safetensors.index.json"));
}

static void put_index(heft_out *o, const heft_shard_set *s)
{
    uint8_t buf[HEFT_MAX_SHARD_NAME + 1];
    heft_out_str(o, heft_lit("{\n  \"metadata\": {\n    \"total_size\": "));
    heft_json_put_u64(o, s->bytes);
    heft_out_str(o, heft_lit("\n  },\n  \"weight_map\": {"));
    for (uint32_t i = 0; i < heft_ix_tensors(s->x); i++) {
        heft_out_str(o, heft_lit(i ? ",\n    " : "\n    "));
        heft_json_put_str(o, heft_ix_name(s->x, s->order[i]));
        heft_out_str(o, heft_lit(": "));
        /* File names are bytes, JSON is text; the stem was checked to be UTF-8. */
        heft_out name = { .buf = buf, .cap = sizeof buf };
        put_name(&name, s->stem, s->file[s->order[i]], s->count);
        heft_json_put_str(o, (heft_str){ (const char *)buf, name.len });
    }
    heft_out_str(o, heft_lit(heft_ix_tensors(s->x) ? "\n  }\n}\n" : "}\n}\n"));
}

const heft_sharding heft_st_sharding = { .name = put_name, .index = put_index };
