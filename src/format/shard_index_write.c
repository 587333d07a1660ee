/* shard_index_write.c - writes the JSON index of a model in several files, in the layout of the
 * transformers library. */
#include "base/path_risk.h"
#include "format/shard_index.h"
#include "grammar/json.h"

enum { DIGITS = 5 };

void heft_shard_index_put_name(heft_out *o, heft_str stem, uint32_t i, uint32_t count,
                               const char *suffix)
{
    heft_out_str(o, stem);
    if (i < count) {
        heft_out_u8(o, '-');
        heft_out_decimal(o, i + 1, DIGITS);
        heft_out_str(o, heft_lit("-of-"));
        heft_out_decimal(o, count, DIGITS);
    }
    heft_out_str(o, heft_lit(suffix));
    if (i == count)
        heft_out_str(o, heft_lit(".index.json"));
}

void heft_shard_index_put(heft_out *o, const heft_shard_set *s,
                          void (*put_name)(heft_out *o, heft_str stem, uint32_t i, uint32_t count))
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
