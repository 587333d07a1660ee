/* decoded_boxes.c - keeps decoded boxes, since a tensor is read in portions, which take a part of
 * the elements of a box each.
 *
 * A box has one slot, by its number, which other boxes share.  A reader that finds its slot in use
 * by another box, or while another thread decodes, decodes the box for itself, so that nobody
 * waits. */
#include "core/shards/decoded_boxes.h"

#include "base/compiler.h"
#include "core/shards/box_file.h"

enum { SLOTS = 256 }; /* the boxes of a tensor that is cut by columns are read in turn */

typedef struct slot {
    uint32_t lock, readers;
    uint32_t content; /* number of a box, plus 1; 0: none */
    bool is_ready;    /* false while the only reader decodes */
    heft_decoded_box box;
    uint64_t elements; /* their offset in the content */
} slot;

struct heft_decoded_boxes {
    const heft_file *f;
    slot slots[SLOTS];
};

heft_decoded_boxes *heft_decoded_boxes_new(const heft_file *f)
{
    heft_decoded_boxes *d = heft_alloc(f->host->allocator, sizeof *d, 16);
    if (d)
        memset(d, 0, sizeof *d);
    if (d)
        d->f = f;
    return d;
}

void heft_decoded_boxes_free(heft_decoded_boxes *d)
{
    if (!d)
        return;
    for (uint32_t i = 0; i < SLOTS; i++)
        heft_decoded_box_close(&d->slots[i].box);
    heft_free(d->f->host->allocator, d, sizeof *d, 16);
}

/* ---- slots ---- */

typedef enum use { USE_READ, USE_FILL, USE_NONE } use;

/* Begin to use a slot: its content is the box, the caller has to fill it, or it is not free. */
static use begin_use(slot *s, uint32_t content)
{
    use how = USE_NONE;
    heft_spin_lock(&s->lock);
    if (s->content == content && s->is_ready)
        how = USE_READ;
    else if (!s->readers)
        how = USE_FILL;
    if (how == USE_FILL) {
        s->content = content;
        s->is_ready = false;
    }
    s->readers += how != USE_NONE;
    heft_spin_unlock(&s->lock);
    return how;
}

static void end_filling(slot *s, bool is_ready)
{
    heft_spin_lock(&s->lock);
    s->is_ready = is_ready;
    heft_spin_unlock(&s->lock);
}

static void end_use(slot *s)
{
    heft_spin_lock(&s->lock);
    s->readers--;
    heft_spin_unlock(&s->lock);
}

/* ---- reading ---- */

static heft_status fill(slot *s, const heft_file *f, uint32_t row, uint32_t box, heft_error *err)
{
    heft_decoded_box_close(&s->box);
    return heft_box_open_decoded(&s->box, &s->elements, f, row, box, err);
}

static heft_status copy(const slot *s, uint64_t at, void *buf, size_t len, heft_error *err)
{
    memcpy(buf, s->box.spill.bytes + s->elements + at, len);
    return heft_spill_state(&s->box.spill, err);
}

heft_status heft_decoded_boxes_read(heft_decoded_boxes *d, uint32_t id, uint32_t row, uint32_t box,
                                    uint64_t at, void *buf, size_t len, heft_error *err)
{
    slot own = { .lock = 0 }, *s = &d->slots[id % SLOTS];
    use how = begin_use(s, id + 1);
    heft_status st = HEFT_OK;
    if (how == USE_NONE)
        st = fill(&own, d->f, row, box, err);
    else if (how == USE_FILL)
        st = fill(s, d->f, row, box, err);
    if (how == USE_FILL)
        end_filling(s, !st);
    if (!st)
        st = copy(how == USE_NONE ? &own : s, at, buf, len, err);
    heft_decoded_box_close(&own.box);
    if (how != USE_NONE)
        end_use(s);
    return st;
}
