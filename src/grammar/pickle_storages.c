/* pickle_storages.c - the persistent ids of PyTorch's storages: ("storage", class, key, location,
 * elements), after which legacy files have None or a view: (key, offset, elements). */
#include "grammar/pickle_trace.h"
#include "grammar/torch_types.h"

static uint32_t element_bytes(const heft_trace *x, const heft_trace_value *class)
{
    const heft_trace_import *i = heft_trace_import_of(x, class);
    return i ? heft_torch_storage_bytes(i->name) : 0;
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
