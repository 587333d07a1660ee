/* onnx_facts.c - the metadata of ONNX models: producer, versions, operator sets, properties. */
#include "format/onnx/onnx.h"

enum { TEXT, NUMBER };

static const struct {
    const char *key;
    uint8_t field, kind;
} facts[] = {
    { "onnx.ir_version", 1, NUMBER },     { "onnx.producer_name", 2, TEXT },
    { "onnx.producer_version", 3, TEXT }, { "onnx.domain", 4, TEXT },
    { "onnx.model_version", 5, NUMBER },  { "onnx.doc_string", 6, TEXT },
};
enum { OPERATORS = 8, PROPERTIES = 14 };

heft_status heft_onnx_add_count(heft_onnx *o, const char *key, uint64_t count)
{
    return heft_ix_meta(o->x, (heft_value){ .kind = HEFT_KIND_UINT,
                                            .stored = HEFT_U64,
                                            .key = heft_lit(key),
                                            .as.u = count });
}

/* Add a set of operators, "onnx.opset.ai.onnx": the version of its domain. */
static heft_status add_operators(heft_onnx *o, const heft_protobuf_field *f)
{
    heft_value v = { .kind = HEFT_KIND_INT, .stored = HEFT_I64 };
    heft_str domain = { "", 0 };
    heft_cur c = heft_protobuf_open(o->in, f->bytes, "a set of operators");
    for (heft_protobuf_field g; heft_protobuf_next(&c, &g);)
        if (g.number == 1)
            domain = heft_protobuf_text(&c, &g);
        else if (g.number == 2)
            v.as.i = (int64_t)g.u;
    if (c.st)
        return c.st;
    v.key = heft_arena_join(&o->x->arena, heft_lit("onnx.opset."),
                            domain.len ? domain : heft_lit("ai.onnx"), (heft_str){ "", 0 });
    return v.key.ptr ? heft_ix_meta(o->x, v) : heft_ix_no_memory(o->x);
}

/* Add an entry of metadata_props, whose key is the program's own. */
static heft_status add_property(heft_onnx *o, const heft_protobuf_field *f)
{
    heft_str texts[3] = { { "", 0 }, { "", 0 }, { "", 0 } };
    heft_cur c = heft_protobuf_open(o->in, f->bytes, "a property");
    for (heft_protobuf_field g; heft_protobuf_next(&c, &g);)
        if (g.number == 1 || g.number == 2)
            texts[g.number] = heft_protobuf_text(&c, &g);
    return c.st ? c.st : heft_ix_meta_text(o->x, texts[1], texts[2]);
}

heft_status heft_onnx_add_fact(heft_onnx *o, heft_cur *c, const heft_protobuf_field *f)
{
    if (f->wire == HEFT_WIRE_BYTES && (f->number == OPERATORS || f->number == PROPERTIES))
        return f->number == OPERATORS ? add_operators(o, f) : add_property(o, f);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        heft_value v = { .kind = HEFT_KIND_INT, .stored = HEFT_I64, .key = heft_lit(facts[i].key) };
        if (facts[i].field != f->number)
            continue;
        v.as.i = (int64_t)f->u;
        if (facts[i].kind == NUMBER)
            return f->wire == HEFT_WIRE_VARINT ? heft_ix_meta(o->x, v) : HEFT_OK;
        heft_str text = heft_protobuf_text(c, f);
        return c->st || !text.len ? c->st : heft_ix_meta_text(o->x, v.key, text);
    }
    return HEFT_OK;
}
