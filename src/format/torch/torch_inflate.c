/* torch_inflate.c - members of archives that were packed again: PyTorch stores them, and reads deflated ones, too. */
#include "base/crc.h"
#include "format/torch/torch.h"

/* Pickles of weights deflate to a fifth of their size.  Listing takes memory in proportion to the pickle, so
 * what is hardly there in the file must not make a large one. */
enum { TIMES = 64, ANY = 1 << 20 };

static heft_status fail(const heft_torch *t, const heft_zip_entry *e, heft_status st,
                        const char *what)
{
    return heft_error_set(t->x->err, st, e->data, "member %q: %s", e->name, what);
}

/* One byte more is asked for than there should be. */
heft_status heft_torch_inflate(const heft_torch *t, const heft_zip_entry *e, heft_str *out)
{
    if (e->content > ANY && heft_div(e->content, TIMES) > e->stored)
        return heft_error_set(t->x->err, HEFT_E_LIMIT, e->data,
                              "member %q: its %U bytes would inflate to %U, more than %U times as "
                              "many",
                              e->name, e->stored, e->content, (uint64_t)TIMES);
    heft_cur c = heft_cur_whole(t->in, e->data, e->stored, "a member of the archive");
    if (c.st)
        return c.st;
    uint8_t *to = e->content < SIZE_MAX ? heft_arena_alloc(&t->x->arena, (size_t)e->content + 1, 1)
                                        : NULL;
    if (!to)
        return fail(t, e, HEFT_E_NOMEM, "no memory to inflate it");
    *out = (heft_str){ (const char *)to, (size_t)e->content };
    size_t have = out->len + 1;
    heft_status st = heft_window_decode(t->in, HEFT_DEFLATE, (heft_range){ e->data, e->stored }, to,
                                        &have);
    if (!st && have != e->content)
        return heft_error_set(t->x->err, HEFT_E_FORMAT, e->data,
                              "member %q: it inflates to %s bytes than the %U of the directory",
                              e->name, have < e->content ? "fewer" : "more", e->content);
    if (!st && e->crc && heft_crc32(0, to, have) != e->crc)
        return fail(t, e, HEFT_E_CHECKSUM, "its CRC-32 is not that of what it inflates to");
    return st;
}
