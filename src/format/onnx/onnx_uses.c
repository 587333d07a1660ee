/* onnx_uses.c - which initializers are quantised: the nodes that decode them say how.
 *
 * DequantizeLinear and MatMulNBits have the weight, its scale and its zero point as inputs, the
 * second one also the block of each column.  Their names and the attributes of the node become
 * attributes of the weight. */
#include "format/onnx/onnx.h"

enum { NODE = 1, INPUT = 1, OPERATOR = 4, ATTRIBUTE = 5, INPUTS = 4 };

/* Operators, the number of the first of their inputs that are noted, and how many these are:
 * weight, scale, zero point, blocks of the columns. */
static const struct {
    const char *name;
    uint8_t weight, inputs;
} operators[] = { { "DequantizeLinear", 0, 3 }, { "MatMulNBits", 1, INPUTS } };
enum { OPERATORS = sizeof operators / sizeof *operators };

typedef struct use {
    heft_str inputs[INPUTS]; /* names, as above; empty: none */
    uint32_t op;
    int64_t axis, block, columns, bits; /* 0: not stated */
} use;

static const struct {
    const char *name, *key;
    size_t at;
} numbers[] = { { "axis", "onnx.axis", offsetof(use, axis) },
                { "block_size", "onnx.block_size", offsetof(use, block) },
                { "K", "onnx.columns", offsetof(use, columns) },
                { "bits", "onnx.bits", offsetof(use, bits) } };
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static heft_str use_name(const void *ctx, uint32_t i)
{
    return ((const use *)((const heft_onnx *)ctx)->uses.ptr)[i].inputs[0];
}

/* ---- nodes ---- */

static heft_status read_number(heft_onnx *o, use *u, heft_range attribute)
{
    heft_str name = { "", 0 };
    int64_t value = 0;
    heft_cur c = heft_protobuf_open(o->in, attribute, "an attribute");
    for (heft_protobuf_field f; heft_protobuf_next(&c, &f);)
        if (f.number == 1)
            name = heft_protobuf_text(&c, &f);
        else if (f.number == 3 && f.wire == HEFT_WIRE_VARINT)
            value = (int64_t)f.u;
    for (size_t i = 0; i < NUMBERS; i++)
        if (heft_str_is(name, numbers[i].name))
            memcpy((char *)u + numbers[i].at, &value, sizeof value);
    return c.st;
}

/* Return the name of an input of a graph as the walk names tensors. */
static heft_status full_name(heft_onnx *o, heft_str path, heft_str own, heft_str *out)
{
    *out = !path.len || !own.len ? own : heft_arena_join(&o->x->arena, path, heft_lit("/"), own);
    return out->ptr ? HEFT_OK : heft_ix_no_memory(o->x);
}

/* Read inputs and attributes of a node that decodes a weight. */
static heft_status read_use(heft_onnx *o, heft_range node, heft_str path, use *u)
{
    uint32_t input = 0, first = operators[u->op].weight;
    heft_cur c = heft_protobuf_open(o->in, node, "a node");
    for (heft_protobuf_field f; heft_protobuf_next(&c, &f);) {
        if (f.number == INPUT) {
            heft_str name = heft_protobuf_text(&c, &f);
            if (!c.st && input >= first && input - first < operators[u->op].inputs)
                HEFT_TRY(full_name(o, path, name, &u->inputs[input - first]));
            input++;
        } else if (f.number == ATTRIBUTE && f.wire == HEFT_WIRE_BYTES)
            HEFT_TRY(read_number(o, u, f.bytes));
    }
    return c.st;
}

static heft_status add_use(heft_onnx *o, const use *u)
{
    heft_names_of of = { use_name, o };
    uint32_t count = o->uses.len, hash = heft_names_hash(&o->x->key, u->inputs[0]);
    if (count && heft_names_find(&o->used, of, hash, u->inputs[0]) != HEFT_NONE)
        return HEFT_OK; /* decoded by several nodes: the first one tells how */
    if (!heft_names_grow(&o->x->mem, &o->used, &o->x->key, of, count) ||
        !heft_vec_add(&o->x->mem, &o->uses, u, sizeof *u))
        return heft_ix_no_memory(o->x);
    heft_names_add(&o->used, of, hash, u->inputs[0], count);
    return HEFT_OK;
}

static heft_status take_node(heft_onnx *o, heft_range node, heft_str path)
{
    use u = { .inputs = { { "", 0 }, { "", 0 }, { "", 0 }, { "", 0 } },
              .axis = 1,
              .op = OPERATORS };
    heft_cur c = heft_protobuf_open(o->in, node, "a node");
    for (heft_protobuf_field f; u.op == OPERATORS && heft_protobuf_next(&c, &f);) {
        heft_str name = f.number == OPERATOR ? heft_protobuf_text(&c, &f) : (heft_str){ "", 0 };
        for (uint32_t i = 0; i < OPERATORS && name.len; i++)
            u.op = heft_str_is(name, operators[i].name) ? i : u.op;
    }
    if (c.st || u.op == OPERATORS)
        return c.st;
    HEFT_TRY(read_use(o, node, path, &u));
    return u.inputs[0].len && u.inputs[1].len ? add_use(o, &u) : HEFT_OK;
}

heft_status heft_onnx_find_uses(heft_onnx *o, heft_range graph, heft_str path)
{
    heft_cur c = heft_protobuf_open(o->in, graph, "a graph");
    for (heft_protobuf_field f; heft_protobuf_next(&c, &f);)
        if (f.number == NODE && f.wire == HEFT_WIRE_BYTES)
            HEFT_TRY(take_node(o, f.bytes, path));
    return c.st;
}

/* ---- tensors ---- */

heft_status heft_onnx_add_use(heft_onnx *o, uint32_t id)
{
    static const char *const keys[] = { "onnx.operator", "onnx.scale", "onnx.zero_point",
                                        "onnx.group_index" };
    heft_names_of of = { use_name, o };
    heft_str name = heft_ix_name(o->x, id);
    uint32_t i = o->uses.len
                     ? heft_names_find(&o->used, of, heft_names_hash(&o->x->key, name), name)
                     : HEFT_NONE;
    if (i == HEFT_NONE)
        return HEFT_OK;
    const use *u = (const use *)o->uses.ptr + i;
    for (int k = 0; k < INPUTS; k++) {
        heft_str text = k ? u->inputs[k] : heft_lit(operators[u->op].name);
        if (text.len)
            HEFT_TRY(heft_ix_attr_text(o->x, id, heft_lit(keys[k]), text));
    }
    for (size_t k = 0; k < NUMBERS; k++) {
        heft_value v = { .kind = HEFT_KIND_INT,
                         .stored = HEFT_I64,
                         .key = heft_lit(numbers[k].key) };
        memcpy(&v.as.i, (const char *)u + numbers[k].at, sizeof v.as.i);
        if (v.as.i || !k)
            HEFT_TRY(heft_ix_attr(o->x, id, v));
    }
    return HEFT_OK;
}

void heft_onnx_free_uses(heft_onnx *o)
{
    heft_names_free(&o->x->mem, &o->used);
    heft_vec_free(&o->x->mem, &o->uses, sizeof(use));
}
