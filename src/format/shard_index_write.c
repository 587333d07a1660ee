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

/* Put the texts that describe the model. */
static void put_settings(heft_out *o, const heft_index *x)
{
    for (uint32_t i = 0; i < x->values.len; i = heft_ix_value_next(x, i)) {
        const heft_value *v = heft_ix_value(x, i);
        if (v->kind != HEFT_KIND_STR)
            continue;
        heft_out_str(o, heft_lit(",\n    "));
        heft_json_put_str(o, v->key);
        heft_out_str(o, heft_lit(": "));
        heft_json_put_str(o, v->as.s);
    }
}

static void put_shard(heft_out *o, const heft_shard_set *s, uint32_t shard,
                      void (*put_name)(heft_out *o, heft_str stem, uint32_t i, uint32_t count))
{
    uint8_t buf[HEFT_MAX_SHARD_NAME + 1];
    heft_out name = { .buf = buf, .cap = sizeof buf };
    if (s->names) {
        heft_json_put_str(o, heft_lit(s->names[shard]));
        return;
    }
    /* File names are bytes, JSON is text; the stem was checked to be UTF-8. */
    put_name(&name, s->stem, shard, s->count);
    heft_json_put_str(o, (heft_str){ (const char *)buf, name.len });
}

void heft_shard_index_put(heft_out *o, const heft_shard_set *s,
                          void (*put_name)(heft_out *o, heft_str stem, uint32_t i, uint32_t count))
{
    heft_out_str(o, heft_lit("{\n  \"metadata\": {\n    \"total_size\": "));
    heft_json_put_u64(o, s->bytes);
    if (s->settings)
        put_settings(o, s->settings);
    heft_out_str(o, heft_lit("\n  },\n  \"weight_map\": {"));
    for (uint32_t i = 0; i < heft_ix_tensors(s->x); i++) {
        heft_out_str(o, heft_lit(i ? ",\n    " : "\n    "));
        heft_json_put_str(o, heft_ix_name(s->x, s->order[i]));
        heft_out_str(o, heft_lit(": "));
        put_shard(o, s, s->file[s->order[i]], put_name);
    }
    heft_out_str(o, heft_lit(heft_ix_tensors(s->x) ? "\n  }\n}\n" : "}\n}\n"));
}
