/* scan_onnx.c - ONNX models: operators that run Python, programs for accelerators, and paths of
 * external data that leave the folder of the model.
 *
 * Other operators cannot name code: a program registers the libraries of custom operators itself.
 *
 *   ModelProto 7 graph 20 training_info 25 functions   GraphProto 1 node 5 initializer 15 sparse
 *   NodeProto 4 op_type 5 attribute                    AttributeProto 5, 10 tensors 6, 11 graphs
 *   TensorProto 13 external_data {1 key, 2 value} */
#include "base/error.h"
#include "base/path_risk.h"
#include "base/text.h"
#include "core/read/input_window.h"
#include "grammar/protobuf.h"
#include "scan/scan.h"

typedef enum kind { MODEL, TRAINING, GRAPH, FUNCTION, NODE, ATTRIBUTE, SPARSE, TENSOR, ENTRY } kind;

static const struct {
    uint8_t in, field, opens;
} inner[] = {
    { MODEL, 7, GRAPH },         { MODEL, 20, TRAINING },   { MODEL, 25, FUNCTION },
    { TRAINING, 1, GRAPH },      { TRAINING, 2, GRAPH },    { FUNCTION, 7, NODE },
    { FUNCTION, 11, ATTRIBUTE }, { GRAPH, 1, NODE },        { GRAPH, 5, TENSOR },
    { GRAPH, 15, SPARSE },       { NODE, 5, ATTRIBUTE },    { ATTRIBUTE, 5, TENSOR },
    { ATTRIBUTE, 6, GRAPH },     { ATTRIBUTE, 10, TENSOR }, { ATTRIBUTE, 11, GRAPH },
    { ATTRIBUTE, 22, SPARSE },   { ATTRIBUTE, 23, SPARSE }, { SPARSE, 1, TENSOR },
    { SPARSE, 2, TENSOR },       { TENSOR, 13, ENTRY },
};

/* Operators by which a runtime runs code that the model names, or has inside. */
static const struct {
    const char *name, *rule, *text;
    heft_severity severity;
} operators[] = {
    { "PyOp", "onnx/python", "the operator 'PyOp' imports a module of Python and calls its class",
      HEFT_FAULT },
    { "PythonOp", "onnx/python", "the operator 'PythonOp' calls a function of Python by its name",
      HEFT_FAULT },
    { "PythonOpGrad", "onnx/python",
      "the operator 'PythonOpGrad' calls a function of Python by its name", HEFT_FAULT },
    { "EPContext", "onnx/program", "the operator 'EPContext' has a program for an accelerator",
      HEFT_WARNING },
};

enum { MAX_DEPTH = 96 }; /* nested messages; protobuf allows 100 */

typedef struct walk {
    heft_scan *s;
    const heft_scan_piece *p;
    heft_input in;
    struct open {
        heft_cur c;
        kind kind;
        heft_str key, value; /* only for ENTRY */
        uint64_t at;         /* offset of the message */
    } open[MAX_DEPTH];
    uint32_t depth;
} walk;

static void report(walk *w, heft_severity severity, const char *rule, uint64_t at, const char *text)
{
    heft_scan_finding f = { .severity = severity,
                            .rule = rule,
                            .member = w->p->member,
                            .offset = w->p->at + at,
                            .text = text,
                            .is_decoded = w->p->is_decoded };
    w->s->result.findings++;
    if (w->s->on_finding)
        w->s->on_finding(w->s->ctx, &f);
}

/* ---- what is looked at ---- */

static void check_operator(walk *w, heft_cur *c, const heft_protobuf_field *f)
{
    heft_str name = heft_protobuf_bytes(c, f);
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (heft_str_is(name, operators[i].name))
            report(w, operators[i].severity, operators[i].rule, f->at, operators[i].text);
}

/* Old readers of ONNX follow any path. */
static void check_entry(walk *w, const struct open *o)
{
    heft_path_risk risk = heft_str_path_risk(o->value);
    if (o->kind != ENTRY || !heft_str_is(o->key, "location"))
        return;
    if (risk == HEFT_PATH_ABSOLUTE || risk == HEFT_PATH_PARENT || risk == HEFT_PATH_DRIVE)
        report(w, HEFT_FAULT, "onnx/path", o->at,
               "external data are in a file outside of the folder of the model");
}

static void look_at(walk *w, struct open *o, const heft_protobuf_field *f)
{
    enum { KEY = 1, VALUE = 2, OPERATOR = 4 };
    if (f->wire != HEFT_WIRE_BYTES)
        return;
    if (o->kind == NODE && f->number == OPERATOR)
        check_operator(w, &o->c, f);
    if (o->kind == ENTRY && f->number == KEY)
        o->key = heft_protobuf_bytes(&o->c, f);
    if (o->kind == ENTRY && f->number == VALUE)
        o->value = heft_protobuf_bytes(&o->c, f);
}

/* ---- the walk ---- */

static void open_message(walk *w, heft_range message, kind k)
{
    if (w->depth == MAX_DEPTH) {
        heft_scan_unreadable(w->s, w->p, "nests graphs too deeply to be searched");
        w->depth = 0;
        return;
    }
    w->open[w->depth++] = (struct open){ .c = heft_protobuf_open(&w->in.in, message, "the model"),
                                         .kind = k,
                                         .key = { "", 0 },
                                         .value = { "", 0 },
                                         .at = message.offset };
}

static void take(walk *w, const heft_protobuf_field *f)
{
    struct open *o = &w->open[w->depth - 1];
    look_at(w, o, f);
    for (size_t i = 0; i < sizeof inner / sizeof *inner && f->wire == HEFT_WIRE_BYTES; i++)
        if (inner[i].in == o->kind && inner[i].field == f->number) {
            open_message(w, f->bytes, (kind)inner[i].opens);
            return;
        }
}

static bool is_onnx(const heft_scan_piece *p)
{
    enum { IR_VERSION = 0x08, NEWEST = 64, PRODUCER = 0x12, GRAPH_FIELD = 0x3A, OPERATORS = 0x42 };
    const uint8_t *b = p->bytes;
    return p->size > 3 && b[0] == IR_VERSION && b[1] && b[1] <= NEWEST &&
           (b[2] == PRODUCER || b[2] == GRAPH_FIELD || b[2] == OPERATORS);
}

void heft_scan_onnx(heft_scan *s, const heft_scan_piece *p)
{
    heft_error ignored; /* a damaged message is loaded by no program */
    heft_protobuf_field f;
    if (!is_onnx(p) || !heft_scan_charge(s, p, p->size))
        return;
    walk *w = heft_mem_alloc(&s->mem, sizeof *w);
    if (!w) {
        heft_scan_unreadable(s, p, "needs more memory to be searched");
        return;
    }
    memset(w, 0, sizeof *w);
    w->s = s;
    w->p = p;
    heft_input_init(&w->in, &s->mem, p->size, UINT64_MAX);
    w->in.whole_file = p->bytes;
    w->in.in.err = &ignored;
    open_message(w, (heft_range){ 0, p->size }, MODEL);
    while (w->depth) {
        heft_cur *c = &w->open[w->depth - 1].c;
        if (heft_protobuf_next(c, &f))
            take(w, &f);
        else if (c->st)
            break;
        else
            check_entry(w, &w->open[--w->depth]);
    }
    heft_input_free(&w->in);
    heft_mem_free(&s->mem, w, sizeof *w);
}
