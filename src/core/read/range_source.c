/* range_source.c - shows a range of an open file as a file of its own. */
#include "core/read/range_source.h"

static heft_status read_range(heft_source *base, uint64_t offset, void *buf, size_t len,
                              heft_error *err)
{
    const heft_range_source *s = (const heft_range_source *)base;
    return heft_file_read_stored(s->f, s->offset + offset, buf, len, err);
}

static void release_range(heft_source *base)
{
    (void)base;
}

static const heft_source_ops ops = { .size = sizeof(heft_source_ops),
                                     .read = read_range,
                                     .close = release_range };

heft_source *heft_range_source_init(heft_range_source *s, const heft_file *f, heft_range where)
{
    *s = (heft_range_source){ .base = { &ops, where.length }, .f = f, .offset = where.offset };
    return &s->base;
}
