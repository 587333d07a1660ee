/* quantised_config.c - writes config.json for a quantised model: the text of another one, with
 * "quantization_config" in place of what it said of quantisation. */
#include "base/error.h"
#include "base/text.h"
#include "grammar/json.h"
#include "logical/config_text.h"
#include "logical/quantisation.h"

static void put_quantisation(heft_out *o, const heft_quantisation *q)
{
    bool is_first = true;
    heft_out_str(o, heft_lit("{"));
    q->choice.row->config(o, &q->choice);
    heft_out_str(o, heft_lit(": ["));
    for (uint32_t i = 0; i < q->rows.len; i++) {
        const heft_quantised_row *row = (const heft_quantised_row *)q->rows.ptr + i;
        heft_str name = row->item.name;
        if (!row->is_exempt)
            continue;
        if (!is_first)
            heft_out_str(o, heft_lit(", "));
        is_first = false;
        name.len -= sizeof ".weight" - 1;
        heft_json_put_str(o, name);
    }
    heft_out_str(o, heft_lit("]}"));
}

static void put_config(heft_out *o, const heft_config_text *c, const heft_quantisation *q)
{
    heft_config_text_put(o, c, 0, c->end);
    heft_out_str(o, heft_lit(c->has_members ? ",\n  " : "\n  "));
    heft_out_str(o, heft_lit("\"quantization_config\": "));
    put_quantisation(o, q);
    if (!c->has_members)
        heft_out_str(o, heft_lit("\n"));
    heft_config_text_put(o, c, c->end, c->text.len);
}

static heft_status put_all(heft_blob *out, const heft_config_text *c, const heft_quantisation *q,
                           heft_error *err)
{
    enum { ALIGN = 64 };
    const heft_allocator *al = q->f->host->allocator;
    heft_out o = heft_out_counting();
    put_config(&o, c, q);
    size_t bytes = (size_t)o.total;
    uint8_t *buf = o.total <= SIZE_MAX ? heft_alloc(al, bytes, ALIGN) : NULL;
    if (!buf)
        return heft_error_no_memory(err, "for config.json");
    o = (heft_out){ .buf = buf, .cap = bytes };
    put_config(&o, c, q);
    *out = (heft_blob){ buf, bytes, al };
    return HEFT_OK;
}

heft_status heft_quantisation_config(heft_blob *out, const heft_quantisation *q, heft_str config,
                                     heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    heft_config_text c;
    *out = (heft_blob){ .data = NULL };
    if (!q->choice.row->config)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, "%s has no settings in config.json",
                                q->choice.row->name);
    heft_file_enter(q->f); /* names are mapped */
    heft_status st = heft_config_text_read(&c, config.len ? config : heft_lit("{}\n"),
                                           q->f->host->allocator, err);
    if (!st)
        st = put_all(out, &c, q, err);
    st = heft_file_leave_after(q->f, st, err);
    return heft_error_end(err, st);
}
