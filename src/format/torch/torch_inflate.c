/* torch_inflate.c - inflates members of repacked archives: PyTorch writes stored members, but also
 * reads deflated members. */
#include "base/crc.h"
#include "format/torch/torch.h"

/* Pickles of weights deflate to about a fifth.  Listing takes memory in proportion to the pickle,
 * so a tiny member must not inflate to a huge pickle. */
enum { MAX_RATIO = 64, ALWAYS_ALLOWED = 1 << 20 };

static heft_status fail(const heft_torch *t, const heft_zip_entry *e, heft_status st,
                        const char *what)
{
    return heft_error_set(t->x->err, st, e->data, "member %q: %s", e->name, what);
}

/* Request one byte more than expected, to detect a member that inflates to more. */
heft_status heft_torch_inflate(const heft_torch *t, const heft_zip_entry *e, heft_str *out)
{
    if (e->content > ALWAYS_ALLOWED && heft_div(e->content, MAX_RATIO) > e->stored)
        return heft_error_set(t->x->err, HEFT_E_LIMIT, e->data,
                              "member %q: %U bytes would inflate to %U, more than %U times as many",
                              e->name, e->stored, e->content, (uint64_t)MAX_RATIO);
    heft_cur c = heft_cur_whole(t->in, e->data, e->stored, "a member of the archive");
    if (c.st)
        return c.st;
    uint8_t *to = e->content < SIZE_MAX ? heft_arena_alloc(&t->x->arena, (size_t)e->content + 1, 1)
                                        : NULL;
    if (!to)
        return fail(t, e, HEFT_E_NOMEM, "no memory for inflating");
    *out = (heft_str){ (const char *)to, (size_t)e->content };
    size_t have = out->len + 1;
    HEFT_TRY(
        heft_window_decode(t->in, HEFT_DEFLATE, (heft_range){ e->data, e->stored }, to, &have));
    if (have != e->content)
        return heft_error_set(
            t->x->err, HEFT_E_FORMAT, e->data,
            "member %q: does not inflate to the %U bytes that the directory states", e->name,
            e->content);
    if (e->crc && heft_crc32(0, to, have) != e->crc)
        return fail(t, e, HEFT_E_CHECKSUM, "the CRC-32 does not match the inflated bytes");
    return HEFT_OK;
}
