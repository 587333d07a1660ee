/* pickle_storages.c - the persistent ids of PyTorch's storages: ("storage", class, key, location,
 * elements), after which legacy files have None or a view: (key, offset, elements). */
#include "grammar/pickle_trace.h"

uint32_t heft_trace_element_bytes(heft_str class_name)
{
    static const struct {
        const char *name;
        uint32_t bytes;
    } types[] = {
        { "FloatStorage", 4 },          { "HalfStorage", 2 },         { "BFloat16Storage", 2 },
        { "DoubleStorage", 8 },         { "LongStorage", 8 },         { "IntStorage", 4 },
        { "ShortStorage", 2 },          { "CharStorage", 1 },         { "ByteStorage", 1 },
        { "BoolStorage", 1 },           { "ComplexFloatStorage", 8 }, { "QInt8Storage", 1 },
        { "QUInt8Storage", 1 },         { "QInt32Storage", 4 },       { "QUInt4x2Storage", 1 },
        { "QUInt2x4Storage", 1 },       { "UntypedStorage", 1 },      { "_UntypedStorage", 1 },
        { "ComplexDoubleStorage", 16 },
    };
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (heft_str_is(class_name, types[k].name))
            return types[k].bytes;
    return 0;
}

static uint32_t element_bytes(const heft_trace *x, const heft_trace_value *class)
{
    const heft_trace_import *i = heft_trace_import_of(x, class);
    return i ? heft_trace_element_bytes(i->name) : 0;
}

static void add(heft_trace *x, const heft_trace_value *key, uint32_t bytes)
{
    const heft_pickle_scanner *s = x->s;
    bool is_text = key && key->kind == HEFT_TRACE_TEXT;
    if (s->storage && !s->storage(s->context, is_text ? heft_trace_text(key) : (heft_str){ "", 0 },
                                  is_text ? bytes : 0))
        x->is_out_of_memory = true;
}

void heft_trace_odd_storage(heft_trace *x)
{
    add(x, NULL, 0);
}

void heft_trace_push_storage(heft_trace *x, const heft_trace_value *id, uint32_t n)
{
    enum { CLASS = 1, KEY, VIEW = 5 };
    uint32_t bytes = n > CLASS ? element_bytes(x, id + CLASS) : 0, items = 0;
    add(x, n > KEY ? id + KEY : NULL, bytes);
    if (n > VIEW && id[VIEW].kind != HEFT_TRACE_NONE) {
        const heft_trace_value *view = heft_trace_items(x, id + VIEW, &items);
        add(x, items ? view : NULL, bytes);
    }
    heft_trace_push(x, (heft_trace_value){ .len = 1, .kind = HEFT_TRACE_OBJECT });
}
