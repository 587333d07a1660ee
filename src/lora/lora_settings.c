/* lora_settings.c - writes the adapter_config.json of an extracted adapter, as PEFT reads it. */
#include "base/error.h"
#include "base/text.h"
#include "grammar/json.h"
#include "lora/extraction.h"

static const heft_extracted_row *weight_at(const heft_extraction *x, uint32_t i)
{
    return heft_extracted_row_at(x, x->weights[i]);
}

/* Name the weights that have too few rows or columns for the rank. */
static void put_ranks(heft_out *o, const heft_extraction *x, const char *key)
{
    bool is_first = true;
    heft_out_str(o, heft_lit(key));
    for (uint32_t i = 0; i < x->weight_count; i++) {
        const heft_extracted_row *row = weight_at(x, i);
        if (row->item.rank == x->opt.rank)
            continue;
        heft_out_str(o, heft_lit(is_first ? "\n    " : ",\n    "));
        heft_json_put_str(o, heft_extracted_module(row));
        heft_out_str(o, heft_lit(": "));
        heft_json_put_u64(o, row->item.rank);
        is_first = false;
    }
    heft_out_str(o, heft_lit(is_first ? "},\n" : "\n  },\n"));
}

/* Alpha is the rank: the scale is 1. */
static void put_all(heft_out *o, const heft_extraction *x)
{
    heft_out_str(o, heft_lit("{\n  \"alpha_pattern\": "));
    put_ranks(o, x, "{");
    heft_out_str(o, heft_lit("  \"base_model_name_or_path\": "));
    if (x->opt.base_name.len)
        heft_json_put_str(o, x->opt.base_name);
    else
        heft_out_str(o, heft_lit("null"));
    heft_out_str(o, heft_lit(",\n  \"bias\": \"none\",\n  \"fan_in_fan_out\": false,\n"
                             "  \"inference_mode\": true,\n  \"lora_alpha\": "));
    heft_json_put_u64(o, x->opt.rank);
    heft_out_str(o, heft_lit(",\n  \"lora_dropout\": 0.0,\n  \"modules_to_save\": null,\n"
                             "  \"peft_type\": \"LORA\",\n  \"r\": "));
    heft_json_put_u64(o, x->opt.rank);
    heft_out_str(o, heft_lit(",\n  \"rank_pattern\": "));
    put_ranks(o, x, "{");
    heft_out_str(o, heft_lit("  \"target_modules\": ["));
    for (uint32_t i = 0; i < x->weight_count; i++) {
        heft_out_str(o, heft_lit(i ? ",\n    " : "\n    "));
        heft_json_put_str(o, heft_extracted_module(weight_at(x, i)));
    }
    heft_out_str(o, heft_lit("\n  ],\n  \"task_type\": null,\n  \"use_dora\": false,\n"
                             "  \"use_rslora\": false\n}\n"));
}

heft_status heft_extraction_config(heft_blob *out, const heft_extraction *x, heft_error *err)
{
    enum { ALIGN = 64 };
    heft_error own;
    err = heft_error_begin(err, &own);
    const heft_allocator *al = x->base->host->allocator;
    heft_out o = heft_out_counting();
    *out = (heft_blob){ .data = NULL };
    heft_file_enter(x->tuned); /* names are mapped */
    put_all(&o, x);
    size_t bytes = o.total <= SIZE_MAX ? (size_t)o.total : 0;
    uint8_t *buf = bytes ? heft_alloc(al, bytes, ALIGN) : NULL;
    o = (heft_out){ .buf = buf, .cap = bytes };
    if (buf) {
        put_all(&o, x);
        *out = (heft_blob){ buf, bytes, al };
    }
    heft_status st = buf ? HEFT_OK : heft_error_no_memory(err, "for adapter_config.json");
    return heft_error_end(err, heft_file_leave_after(x->tuned, st, err));
}
