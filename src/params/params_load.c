/* params_load.c - loading an entry: map its part, read the part, or derive a form. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "params/params_store.h"
#include "scheme/refuse.h"

enum {
    ALIGN = 64,
    MAP_FROM = 256 << 10 /* bytes; smaller parts are copied, since whole pages would cost more */
};

/* Return the bytes in place, or NULL if a copy is needed. */
static const void *view_in_place(const heft_params *p, const entry *e)
{
    const void *view = heft_part_view(e->file, e->part);
    const heft_dtype_info *info = heft_dtype_get(e->view.dtype);
    if (!view || p->opt.copy || (uintptr_t)view % (info->block_elems == 1 ? info->block_bytes : 1))
        return NULL;
    return heft_file_is_mapped(e->file) && e->view.bytes < MAP_FROM ? NULL : view;
}

/* ---- measuring ---- */

static heft_status measure_form(heft_params *p, entry *e, const heft_derivation *d, heft_error *err)
{
    HEFT_TRY(heft_uses_add(p, e->source, true)
                 ? HEFT_OK
                 : heft_cache_acquire(p, e->source, NULL, false, err));
    heft_param form = e->source->view;
    form.data = NULL;
    heft_status st = HEFT_OK;
    if (d->kind == heft_derivation_f32().kind && form.dtype != HEFT_F32)
        st = heft_refuse_cast(e->source->file, e->source->tensor, err);
    if (!st)
        st = d->shape(&form, &e->source->view, d->ctx, err);
    if (!st && form.rank > FORM_RANK && form.dims != e->source->view.dims)
        st = heft_error_plain(err, HEFT_E_ARGUMENT, "a derived form has more than 8 dimensions");
    if (st) {
        heft_cache_release(p, e->source);
        return st;
    }
    if (form.dims != e->source->view.dims) {
        memmove(e->dims, form.dims, form.rank * sizeof *form.dims);
        form.dims = e->dims;
    }
    e->view = form;
    e->weight = form.bytes;
    return HEFT_OK;
}

heft_status heft_load_measure(heft_params *p, entry *e, const heft_derivation *d, heft_error *err)
{
    if (!e->file)
        return measure_form(p, e, d, err);
    /* Memory of the caller does not count against the budget. */
    e->weight = view_in_place(p, e) && !heft_file_is_mapped(e->file) ? 0 : e->view.bytes;
    return HEFT_OK;
}

void heft_load_measured(heft_params *p, entry *e)
{
    if (!e->file)
        heft_cache_release(p, e->source);
}

/* ---- loading ---- */

static heft_status allocate(heft_params *p, entry *e, heft_error *err)
{
    const heft_allocator *al = p->host->allocator;
    holding *h = e->view.bytes < SIZE_MAX ? calloc(1, sizeof *h) : NULL;
    e->held = h;
    if (!h)
        return heft_store_no_memory(err);
    h->size = (size_t)e->view.bytes + 1;
    h->owned = heft_alloc(al, h->size, ALIGN);
    e->view.data = h->owned;
    return h->owned ? HEFT_OK : heft_store_no_memory(err);
}

static heft_status map(entry *e, const void *view, heft_error *err)
{
    e->view.data = view;
    if (!heft_file_is_mapped(e->file))
        return HEFT_OK;
    e->held = calloc(1, sizeof *e->held);
    if (!e->held)
        return heft_store_no_memory(err);
    e->held->mapped = e->file;
    e->held->part = e->part;
    return heft_part_populate(e->file, e->part, err);
}

/* An empty part is read as well, since it may have a digest.  Mapped pages that were copied are
 * dropped, because they would count as memory of the process beside the budget. */
static heft_status read_all(const heft_params *p, entry *e, heft_error *err)
{
    enum { STEP = 8 << 20 };
    heft_stream *s;
    uint64_t at = 0, left = e->view.bytes;
    HEFT_TRY(p->opt.check_parts ? heft_stream_open_checked(&s, e->file, e->part, err)
                                : heft_stream_open(&s, e->file, e->part, err));
    heft_status st;
    do {
        size_t n = left < STEP ? (size_t)left : STEP;
        st = heft_stream_read((uint8_t *)e->held->owned + at, s, n, err);
        if (heft_file_is_mapped(e->file))
            heft_part_dont_need(e->file, e->part);
        at += n;
        left -= n;
    } while (left && !st);
    heft_stream_close(s);
    return st;
}

heft_status heft_load_bytes(heft_params *p, entry *e, const heft_derivation *d, heft_error *err)
{
    const void *view = e->file ? view_in_place(p, e) : NULL;
    heft_status st = view ? map(e, view, err) : allocate(p, e, err);
    if (!st && view && p->opt.check_parts) /* the mapped bytes are resident now */
        st = heft_part_verify(NULL, e->file, e->part, err);
    if (!st && !view)
        st = e->file ? read_all(p, e, err)
                     : d->make(e->held->owned, &e->view, &e->source->view, d->ctx, err);
    if (st)
        heft_load_return(p, heft_load_take(e));
    return st;
}

holding *heft_load_take(entry *e)
{
    holding *h = e->held;
    e->held = NULL;
    e->view.data = NULL;
    return h;
}

void heft_load_return(const heft_params *p, holding *first)
{
    const heft_allocator *al = p->host->allocator;
    for (holding *h = first, *next; h; h = next) {
        next = h->next;
        heft_free(al, h->owned, h->size, ALIGN);
        if (h->mapped)
            heft_part_dont_need(h->mapped, h->part);
        free(h);
    }
}
