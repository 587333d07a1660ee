/* edit_extents.c - the edited file as a list of extents in order: new bytes, and ranges copied
 * from the file before the edit. */
#include "core/edit/edit.h"

#include "base/bisect.h"

static heft_status add_extent(heft_edit_job *g, heft_edit_extent extent)
{
    heft_edit_extent *last = g->e->extents.ptr;
    last = g->e->extents.len ? last + (g->e->extents.len - 1) : NULL;
    if (!extent.length)
        return HEFT_OK;
    if (last && !last->data && !extent.data && last->from + last->length == extent.from) {
        last->length += extent.length;
        return HEFT_OK;
    }
    heft_edit_extent *to = heft_vec_push(&g->e->mem, &g->e->extents, sizeof *to);
    if (!to)
        return heft_error_no_memory(g->err, "for the edited file's index");
    *to = extent;
    return HEFT_OK;
}

/* Return the first of the replaced ranges that end after the offset, or NULL. */
static const heft_edit_swap *swap_after(const heft_edit_job *g, uint64_t offset)
{
    heft_bisect b = { .end = g->swap_count };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, g->swaps[b.mid].at.offset + g->swaps[b.mid].at.length <= offset);
    return b.first < g->swap_count ? g->swaps + b.first : NULL;
}

heft_status heft_edit_add_copy(heft_edit_job *g, uint64_t at, uint64_t length, uint64_t from)
{
    for (uint64_t n; length; at += n, from += n, length -= n) {
        const heft_edit_swap *s = swap_after(g, from);
        bool is_replaced = s && s->at.offset <= from;
        uint64_t skip = is_replaced ? from - s->at.offset : 0;
        uint64_t most = !s ? length : is_replaced ? s->at.length - skip : s->at.offset - from;
        n = length < most ? length : most;
        uint64_t source = is_replaced ? s->from + skip : from;
        HEFT_TRY(add_extent(g, (heft_edit_extent){ at, n, source, NULL, 0 }));
    }
    return HEFT_OK;
}

heft_status heft_edit_add_bytes(heft_edit_job *g, uint64_t at, uint64_t length, uint8_t **to)
{
    *to = length <= SIZE_MAX - 1 ? heft_arena_alloc(&g->e->arena, (size_t)length + 1, 1) : NULL;
    if (!*to)
        return heft_error_no_memory(g->err, "for the edited file's index");
    return add_extent(g, (heft_edit_extent){ at, length, HEFT_NOWHERE, *to, 0 });
}

const heft_edit_extent *heft_edit_extent_at(const heft_edit *e, uint64_t at)
{
    const heft_edit_extent *extents = e->extents.ptr;
    heft_bisect b = { .end = e->extents.len };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, extents[b.mid].at + extents[b.mid].length <= at);
    return b.first < e->extents.len ? extents + b.first : NULL;
}

heft_status heft_edit_bytes(const heft_edit_job *g, uint64_t at, void *buf, size_t len,
                            heft_error *err)
{
    uint8_t *to = buf;
    heft_status st = HEFT_OK;
    while (len && !st) {
        const heft_edit_extent *p = heft_edit_extent_at(g->e, at);
        if (!p || at < p->at)
            return heft_error_set(err, HEFT_E_UNSUPPORTED, at, "no bytes are planned here");
        uint64_t skip = at - p->at, left = p->length - skip;
        size_t n = left < len ? (size_t)left : len;
        if (p->data)
            memcpy(to, (const uint8_t *)p->data + skip, n);
        else
            st = heft_file_count_read(g->in, HEFT_NONE, n, err);
        if (!st && !p->data)
            st = heft_file_read_stored(g->in, p->from + skip, to, n, err);
        to += n;
        at += n;
        len -= n;
    }
    return st;
}
