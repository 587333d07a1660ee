/* torch_member.c - a zip archive in a range of the file: a file of torch.save() in a package. */
#include "format/torch/torch.h"

typedef struct part { /* a window over a range of another; offsets count from its first byte */
    heft_window in;
    heft_window *outer;
    uint64_t base;
} part;

static const uint8_t *part_window(heft_window *in, uint64_t off, uint64_t want, uint64_t *have)
{
    part *p = (part *)(void *)in;
    uint64_t left = off < in->size ? in->size - off : 0;
    uint64_t from = off < in->size ? off : in->size;
    return p->outer->window(p->outer, p->base + from, want < left ? want : left, have);
}

static void part_need(heft_window *in, uint64_t off, uint64_t len)
{
    part *p = (part *)(void *)in;
    p->outer->need(p->outer, p->base + off, len);
}

/* Let offsets count from the first byte of the file. */
static void shift(heft_zip *z, uint64_t base)
{
    for (uint32_t i = 0; i < z->count; i++) {
        heft_zip_entry *e = &z->entries[i];
        e->name_at += base;
        e->head += base;
        e->data += base;
        e->end += base;
    }
    z->directory.offset += base;
}

heft_status heft_torch_open_member(heft_zip *out, const heft_torch *t)
{
    part p = { .in = { .size = t->member.length,
                       .window = part_window,
                       .need = part_need,
                       .err = t->x->err },
               .outer = t->in,
               .base = t->member.offset };
    heft_status st = heft_zip_open(out, &p.in, &t->x->arena, true);
    if (!st)
        shift(out, p.base);
    else if (st != HEFT_AGAIN && t->x->err && t->x->err->offset != HEFT_NOWHERE) {
        t->x->err->offset += p.base;
        t->x->err->expected_bytes = 0; /* the size was that of the member */
    }
    return st;
}
