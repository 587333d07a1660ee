/* safetensors_index.c - reads and writes the index of a model in several safetensors files. */
#include "format/safetensors/safetensors.h"
#include "format/shard_index.h"

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
    heft_shard_index_put_name(o, stem, i, count, ".safetensors");
}

static void put_index(heft_out *o, const heft_shard_set *s)
{
    heft_shard_index_put(o, s, put_name);
}

const heft_sharding heft_st_sharding = { .name = put_name, .index = put_index };
