/* onnx.c - reads the tensors of ONNX models (ModelProto), without running them.
 *
 *   ModelProto     1 ir_version  2, 3 producer  4 domain  5 version  6 text  7 graph
 *                  8 opset_import  14 metadata_props  20 training_info  25 functions
 *   GraphProto     1 node  2 name  5 initializer  15 sparse_initializer  11 input  12 output
 *   NodeProto      2 output  3 name  4 op_type  5 attribute
 *   AttributeProto 1 name  5 t  6 g  10 tensors  11 graphs  22 sparse_tensor  23 sparse_tensors,
 *                  and the numbers of Constant: 2 f  3 i  7 floats  8 ints
 *   FunctionProto  1 name  7 node  10 domain  11 attribute_proto  13 overload
 *
 * Initializers of the graph keep their names.  The value of a Constant is named by its output,
 * other tensors by the output of their node and the attribute; those of an inner graph, a function
 * or training get the names on the way in front.
 *
 * Reference: onnx/onnx.in.proto of ONNX 1.20.
 */
#include "format/onnx/onnx.h"

#include "model/values.h"

static const char what[] = "the model";

typedef enum kind { MODEL, GRAPH, NODE, ATTRIBUTE, FUNCTION, TRAINING, LEAF } kind;

enum { MAX_DEPTH = 96 }; /* nested messages; protobuf allows 100 */

typedef struct frame { /* an open message */
    heft_cur c;
    kind kind;
    bool is_constant;  /* NODE: an attribute is its value */
    uint32_t path_len; /* length of the path of the message */
    uint32_t count[2]; /* inner messages so far that have a number in the path, of two kinds */
} frame;

typedef struct walk {
    heft_onnx o;
    heft_vec frames; /* frame: the open messages, the innermost last */
    heft_vec path;   /* char: names on the way, joined by "/" */
    uint64_t nodes, functions, inputs, outputs;
    uint64_t budget; /* bytes of names that may be copied */
    bool has_graph;
} walk;

static frame *frame_at(const walk *w, uint32_t i)
{
    return (frame *)w->frames.ptr + i;
}

/* ---- names ---- */

static heft_status no_memory(const walk *w)
{
    return heft_error_no_memory(w->o.x->err, "for the names of an ONNX model");
}

/* Append a name to the path. */
static heft_status push(walk *w, heft_str name)
{
    enum { MAX_PATH = 4096 };
    heft_vec *p = &w->path;
    if (name.len > MAX_PATH || p->len + name.len > MAX_PATH)
        return heft_error_plain(w->o.x->err, HEFT_E_LIMIT,
                                "the names on the way to a tensor have more than %U bytes",
                                (uint64_t)MAX_PATH);
    if (!heft_vec_reserve(&w->o.x->mem, p, (uint64_t)name.len + 1, 1))
        return no_memory(w);
    if (p->len)
        ((char *)p->ptr)[p->len++] = '/';
    if (name.len)
        memcpy((char *)p->ptr + p->len, name.ptr, name.len);
    p->len += (uint32_t)name.len;
    return HEFT_OK;
}

static heft_status push_number(walk *w, uint32_t n)
{
    char digits[20];
    size_t len = heft_u64_text(digits, n);
    return push(w, (heft_str){ digits, len });
}

/* The path, until it changes. */
static heft_str path_of(const walk *w)
{
    return (heft_str){ w->path.ptr ? w->path.ptr : "", w->path.len };
}

/* Get the name of a tensor: the path, and a name of its own unless that is empty. */
static heft_status tensor_name(walk *w, heft_str own, heft_str *out)
{
    uint32_t len = w->path.len;
    heft_status st = own.len ? push(w, own) : HEFT_OK;
    heft_str name = path_of(w);
    w->path.len = len;
    HEFT_TRY(st);
    if (name.len > w->budget)
        return heft_error_plain(w->o.x->err, HEFT_E_LIMIT,
                                "%s: names take far more memory than the file", what);
    w->budget -= name.len;
    *out = heft_ix_copy(w->o.x, name);
    return out->ptr ? HEFT_OK : no_memory(w);
}

/* Set texts[n] to the first text in field n of a message, for each n of the mask. */
static heft_status read_texts(walk *w, heft_range message, uint32_t mask, heft_str texts[16])
{
    heft_cur c = heft_protobuf_open(w->o.in, message, what);
    for (int i = 0; i < 16; i++)
        texts[i] = (heft_str){ "", 0 };
    for (heft_protobuf_field f; mask && heft_protobuf_next(&c, &f);)
        if (f.number < 16 && mask >> f.number & 1) {
            texts[f.number] = heft_protobuf_text(&c, &f);
            mask &= ~(1u << f.number);
        }
    return c.st;
}

/* ---- messages with names ---- */

/* A node has the name of its first output, since names of nodes need not be unique. */
static heft_status enter_node(walk *w, heft_range message, frame *f)
{
    enum { OUTPUT = 2, NAME = 3, OPERATOR = 4, DOMAIN = 7 };
    heft_str texts[16];
    w->nodes++;
    HEFT_TRY(read_texts(w, message, 1 << OUTPUT | 1 << NAME | 1 << OPERATOR | 1 << DOMAIN, texts));
    f->is_constant = heft_str_is(texts[OPERATOR], "Constant") &&
                     (!texts[DOMAIN].len || heft_str_is(texts[DOMAIN], "ai.onnx"));
    return push(w, texts[OUTPUT].len ? texts[OUTPUT]
                   : texts[NAME].len ? texts[NAME]
                                     : texts[OPERATOR]);
}

static heft_status enter_function(walk *w, heft_range message)
{
    enum { NAME = 1, DOMAIN = 10, OVERLOAD = 13 };
    heft_str texts[16], name;
    w->functions++;
    HEFT_TRY(read_texts(w, message, 1 << NAME | 1 << DOMAIN | 1 << OVERLOAD, texts));
    name = texts[NAME];
    if (texts[DOMAIN].len)
        name = heft_arena_join(&w->o.x->arena, texts[DOMAIN], heft_lit("."), name);
    if (name.ptr && texts[OVERLOAD].len)
        name = heft_arena_join(&w->o.x->arena, name, heft_lit("."), texts[OVERLOAD]);
    return name.ptr ? push(w, name) : no_memory(w);
}

static heft_status enter_attribute(walk *w, heft_range message)
{
    heft_str texts[16];
    HEFT_TRY(read_texts(w, message, 1 << 1, texts));
    return push(w, texts[1]);
}

/* The graphs of training are its initialization and its algorithm; an attribute may have a list of
 * graphs. */
static heft_status enter_graph(walk *w, frame *parent, const heft_protobuf_field *field)
{
    enum { INITIALIZATION = 1, LIST = 11 };
    if (parent->kind == TRAINING)
        return push(w, heft_lit(field->number == INITIALIZATION ? "initialization" : "algorithm"));
    w->has_graph = w->has_graph || parent->kind == MODEL;
    return parent->kind == ATTRIBUTE && field->number == LIST ? push_number(w, parent->count[0]++)
                                                              : HEFT_OK;
}

/* Open a message inside the innermost one. */
static heft_status enter(walk *w, const heft_protobuf_field *field, kind k)
{
    uint32_t depth = w->frames.len;
    if (depth == MAX_DEPTH)
        return heft_cur_fail_at(&frame_at(w, depth - 1)->c, field->at,
                                "graphs are nested too deeply");
    if (!heft_vec_reserve(&w->o.x->mem, &w->frames, 1, sizeof(frame)))
        return no_memory(w);
    frame *f = frame_at(w, depth), *parent = depth ? f - 1 : NULL;
    *f = (frame){ .c = heft_protobuf_open(w->o.in, field->bytes, what), .kind = k };
    heft_status st = HEFT_OK;
    if (k == NODE)
        st = enter_node(w, field->bytes, f);
    else if (k == FUNCTION)
        st = enter_function(w, field->bytes);
    else if (k == ATTRIBUTE)
        st = enter_attribute(w, field->bytes);
    else if (k == GRAPH)
        st = enter_graph(w, parent, field);
    else if (k == TRAINING && !(st = push(w, heft_lit("training"))))
        st = push_number(w, parent->count[0]++);
    f->path_len = w->path.len;
    w->frames.len++;
    if (!st && k == GRAPH)
        st = heft_onnx_find_uses(&w->o, field->bytes, path_of(w));
    return st;
}

/* ---- tensors ---- */

/* Let the engine drop mapped pages: data lie between the messages. */
static void pass_pages(heft_index *x, const heft_cur *c)
{
    if (x->on_parsed_upto)
        x->on_parsed_upto(x->on_parsed_ctx, &x->parsed_from, (const char *)c->p);
}

static heft_status add_tensor(walk *w, heft_range message, bool is_named)
{
    heft_onnx_tensor t;
    heft_str name;
    HEFT_TRY(heft_onnx_read_tensor(&w->o, message, &t));
    HEFT_TRY(tensor_name(w, is_named ? t.name : (heft_str){ "", 0 }, &name));
    w->o.is_initializer = is_named;
    heft_status st = heft_onnx_add_tensor(&w->o, &t, name);
    w->o.is_initializer = false;
    return st;
}

/* The name of a sparse initializer is that of its values. */
static heft_status add_sparse(walk *w, heft_range message, bool is_named)
{
    heft_onnx_tensor values = { .name = { "", 0 } };
    heft_str name;
    heft_cur c = heft_protobuf_open(w->o.in, message, what);
    for (heft_protobuf_field f; is_named && heft_protobuf_next(&c, &f);)
        if (f.number == 1)
            HEFT_TRY(heft_onnx_read_tensor(&w->o, f.bytes, &values));
    HEFT_TRY(c.st);
    HEFT_TRY(tensor_name(w, values.name, &name));
    return heft_onnx_add_sparse(&w->o, message, name);
}

/* Add a tensor of a list, which has its number in the name. */
static heft_status add_item(walk *w, frame *f, const heft_protobuf_field *field)
{
    enum { TENSORS = 10 };
    bool is_sparse = field->number != TENSORS;
    uint32_t len = w->path.len;
    HEFT_TRY(push_number(w, f->count[1]++));
    heft_status st = is_sparse ? add_sparse(w, field->bytes, false)
                               : add_tensor(w, field->bytes, false);
    w->path.len = len;
    return st;
}

/* ---- the walk ---- */

typedef enum action { OPEN, TENSOR, SPARSE, ITEM, CONSTANT } action;

static const struct {
    uint8_t in, field, action, opens;
} inner[] = {
    { MODEL, 7, OPEN, GRAPH },         { MODEL, 20, OPEN, TRAINING },
    { MODEL, 25, OPEN, FUNCTION },     { TRAINING, 1, OPEN, GRAPH },
    { TRAINING, 2, OPEN, GRAPH },      { FUNCTION, 7, OPEN, NODE },
    { FUNCTION, 11, OPEN, ATTRIBUTE }, { GRAPH, 1, OPEN, NODE },
    { GRAPH, 5, TENSOR, LEAF },        { GRAPH, 15, SPARSE, LEAF },
    { NODE, 5, OPEN, ATTRIBUTE },      { ATTRIBUTE, 5, TENSOR, LEAF },
    { ATTRIBUTE, 22, SPARSE, LEAF },   { ATTRIBUTE, 10, ITEM, LEAF },
    { ATTRIBUTE, 23, ITEM, LEAF },     { ATTRIBUTE, 6, OPEN, GRAPH },
    { ATTRIBUTE, 11, OPEN, GRAPH },
};

static heft_status add_constant(walk *w, heft_range attribute)
{
    heft_str name;
    HEFT_TRY(tensor_name(w, (heft_str){ "", 0 }, &name));
    return heft_onnx_add_constant(&w->o, attribute, name);
}

static heft_status take_inner(walk *w, frame *f, const heft_protobuf_field *field, size_t row)
{
    bool is_named = f->kind == GRAPH;
    if (f->kind == NODE && f->is_constant)
        return add_constant(w, field->bytes);
    switch (inner[row].action) {
    case OPEN:
        return enter(w, field, (kind)inner[row].opens);
    case TENSOR:
        return add_tensor(w, field->bytes, is_named);
    case SPARSE:
        return add_sparse(w, field->bytes, is_named);
    default:
        return add_item(w, f, field);
    }
}

static heft_status take(walk *w, frame *f, const heft_protobuf_field *field)
{
    enum { INPUT = 11, OUTPUT = 12 };
    bool is_main = f->kind == GRAPH && w->frames.len == 2;
    w->inputs += is_main && field->number == INPUT;
    w->outputs += is_main && field->number == OUTPUT;
    if (field->wire == HEFT_WIRE_BYTES)
        for (size_t i = 0; i < sizeof inner / sizeof *inner; i++)
            if (inner[i].in == f->kind && inner[i].field == field->number)
                return take_inner(w, f, field, i);
    return f->kind == MODEL ? heft_onnx_add_fact(&w->o, &f->c, field) : HEFT_OK;
}

/* Take the next field of the innermost message, or close the message. */
static heft_status step(walk *w)
{
    frame *f = frame_at(w, w->frames.len - 1);
    heft_protobuf_field field;
    w->path.len = f->path_len;
    pass_pages(w->o.x, &f->c);
    if (heft_protobuf_next(&f->c, &field))
        return take(w, f, &field);
    w->frames.len -= !f->c.st;
    return f->c.st;
}

static heft_status walk_messages(walk *w)
{
    heft_status st = HEFT_OK;
    uint64_t at = 0;
    while (!st && w->frames.len) {
        at = heft_cur_pos(&frame_at(w, w->frames.len - 1)->c);
        st = step(w);
    }
    if (st == HEFT_AGAIN)
        heft_window_ask_ahead(w->o.in, at, heft_ix_tensors(w->o.x) + w->nodes);
    return st;
}

static heft_status add_counts(walk *w)
{
    HEFT_TRY(heft_onnx_add_count(&w->o, "onnx.nodes", w->nodes));
    HEFT_TRY(heft_onnx_add_count(&w->o, "onnx.inputs", w->inputs));
    HEFT_TRY(heft_onnx_add_count(&w->o, "onnx.outputs", w->outputs));
    return w->functions ? heft_onnx_add_count(&w->o, "onnx.functions", w->functions) : HEFT_OK;
}

heft_status heft_onnx_parse(heft_window *in, heft_index *x, heft_vec *listed)
{
    enum { TIMES = 8, BASE = 32 << 10 };
    walk w = { .o = { .in = in, .x = x, .listed = listed } };
    heft_protobuf_field root = { .bytes = { 0, in->size } };
    w.budget = in->size > (UINT64_MAX - BASE) / TIMES ? UINT64_MAX : in->size * TIMES + BASE;
    heft_status st = enter(&w, &root, MODEL);
    st = st ? st : walk_messages(&w);
    heft_vec_free(&x->mem, &w.frames, sizeof(frame));
    heft_vec_free(&x->mem, &w.path, 1);
    heft_names_free(&x->mem, &w.o.files);
    heft_onnx_free_uses(&w.o);
    if (!st && !w.has_graph)
        st = heft_error_set(x->err, HEFT_E_FORMAT, in->size, "%s has no graph", what);
    if (!st)
        st = add_counts(&w);
    return st ? st : heft_meta_unique(x, what);
}

static heft_status parse(heft_window *in, heft_index *x)
{
    return heft_onnx_parse(in, x, NULL);
}

/* ---- recognition ---- */

/* ModelProto begins with the version of the format, field 1; the producer, the graph or the sets of
 * operators follow. */
static int probe(const uint8_t *head, size_t head_len, const uint8_t *tail, size_t tail_len,
                 uint64_t size)
{
    enum {
        SURE = 24,
        IR_VERSION = 0x08,
        NEWEST = 64,
        PRODUCER = 0x12,
        GRAPH_FIELD = 0x3A,
        OPERATORS = 0x42
    };
    (void)tail;
    (void)tail_len;
    (void)size;
    return head_len >= 4 && head[0] == IR_VERSION && head[1] && head[1] <= NEWEST &&
                   (head[2] == PRODUCER || head[2] == GRAPH_FIELD || head[2] == OPERATORS)
               ? SURE
               : 0;
}

static const heft_name_rules name_rules = { "onnx/name", NULL, NULL, "onnx/rank" };

const heft_format heft_format_onnx = {
    .name = "onnx",
    .title = "ONNX",
    .structure_rule = "onnx/structure",
    .name_rules = &name_rules,
    .suffixes = ".onnx",
    .versions = "",
    .caps = HEFT_CAN_READ | HEFT_CAN_META | HEFT_CAN_SPARSE | HEFT_CAN_REPLACE,
    .align = 1,
    .probe = probe,
    .parse = parse,
};
