/* torch_settings.c - reads the dictionary of settings that Heft writes beside the tensors: keys are
 * texts, values are scalars, lists and dictionaries.  Their structure is kept, and names have no
 * prefix. */
#include "format/torch/torch.h"

const char heft_torch_metadata[] = "__metadata__", heft_torch_checkpoint[] = "checkpoint";

typedef struct frame { /* an open container */
    heft_pickle_items items;
    bool is_dict;
} frame;

typedef struct reader {
    heft_torch *t;
    bool adds; /* add the values to the index; otherwise only look at them */
    bool fits; /* every value so far can be a setting */
    frame frames[HEFT_MAX_DEPTH + 1];
    uint32_t depth;
} reader;

static void open_frame(reader *r, uint32_t container)
{
    const heft_pickle *p = &r->t->p;
    r->fits = r->depth <= r->t->x->limits.depth;
    if (r->fits)
        r->frames[r->depth++] =
            (frame){ .items = heft_pickle_items_of(p, container),
                     .is_dict = heft_pickle_is(p, container, HEFT_PICKLE_DICT) };
}

/* Take a container or a scalar. */
static heft_status take_value(reader *r, heft_str key, uint32_t value)
{
    heft_torch *t = r->t;
    heft_torch_interpretation m = heft_torch_interpret(t, value);
    bool is_dict = m.kind == HEFT_TORCH_VALUE && heft_pickle_is(&t->p, m.value, HEFT_PICKLE_DICT);
    heft_value v = { .kind = is_dict ? HEFT_KIND_MAP : HEFT_KIND_LIST };
    HEFT_TRY(heft_torch_charge(t, 1, heft_pickle_offset(&t->p, value)));
    if (is_dict || (m.kind == HEFT_TORCH_VALUE && heft_pickle_is_sequence(&t->p, m.value)))
        open_frame(r, m.value);
    else
        r->fits = heft_torch_scalar(t, &v, value);
    v.key = key;
    return t->st || !r->adds || !r->fits ? t->st : heft_ix_meta(t->x, v);
}

static heft_status take_item(reader *r, frame *f, uint32_t item)
{
    const heft_pickle *p = &r->t->p;
    heft_str key = { "", 0 };
    if (!f->is_dict)
        return take_value(r, key, item);
    r->fits = heft_pickle_is(p, item, HEFT_PICKLE_TEXT);
    if (!r->fits)
        return HEFT_OK;
    key = heft_pickle_at(p, item)->as.s;
    heft_pickle_next(p, &f->items, &item);
    return take_value(r, key, item);
}

static heft_status take_all(reader *r, uint32_t dict, bool adds)
{
    uint32_t item;
    r->adds = adds;
    r->depth = 0;
    open_frame(r, dict);
    while (r->fits && r->depth) {
        frame *f = &r->frames[r->depth - 1];
        if (heft_pickle_next(&r->t->p, &f->items, &item)) {
            HEFT_TRY(take_item(r, f, item));
            continue;
        }
        r->depth--;
        if (r->depth && r->adds)
            heft_ix_meta_end(r->t->x);
    }
    return HEFT_OK;
}

heft_status heft_torch_settings(heft_torch *t, uint32_t dict, bool *taken)
{
    reader r;
    r.t = t;
    *taken = false;
    HEFT_TRY(take_all(&r, dict, false));
    if (!r.fits)
        return HEFT_OK;
    *taken = true;
    t->x->version = heft_lit(heft_torch_checkpoint);
    return take_all(&r, dict, true);
}
