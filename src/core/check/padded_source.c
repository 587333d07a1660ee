/* padded_source.c - shows a truncated file at the expected size.  A file of that size is mapped as
 * before; a padded file is read, because no mapping contains the zeros. */
#include "core/check/padded_source.h"

#include <string.h>

static heft_source *from_of(heft_source *s)
{
    return ((heft_padded_source *)s)->from;
}

static heft_status read_padded(heft_source *s, uint64_t offset, void *buf, size_t len,
                               heft_error *err)
{
    heft_source *from = from_of(s);
    uint64_t left = offset < from->size ? from->size - offset : 0;
    size_t present = left < len ? (size_t)left : len;
    if (present < len)
        memset((uint8_t *)buf + present, 0, len - present);
    return present ? from->ops->read(from, offset, buf, present, err) : HEFT_OK;
}

static const void *map_padded(heft_source *s, uint64_t offset, uint64_t len)
{
    heft_source *from = from_of(s);
    bool is_padded = s->size != from->size;
    return !is_padded && HEFT_HAS(from->ops, map) ? from->ops->map(from, offset, len) : NULL;
}

static heft_status check_padded(heft_source *s, heft_error *err)
{
    heft_source *from = from_of(s);
    return HEFT_HAS(from->ops, check) ? from->ops->check(from, err) : HEFT_OK;
}

static void begin_inner_access(heft_source *s)
{
    heft_source *from = from_of(s);
    if (HEFT_HAS(from->ops, begin_access))
        from->ops->begin_access(from);
}

static void end_inner_access(heft_source *s)
{
    heft_source *from = from_of(s);
    if (HEFT_HAS(from->ops, end_access))
        from->ops->end_access(from);
}

static heft_status check_unchanged(heft_source *s, heft_error *err)
{
    heft_source *from = from_of(s);
    return HEFT_HAS(from->ops, check_unchanged) ? from->ops->check_unchanged(from, err) : HEFT_OK;
}

static void close_padded(heft_source *s)
{
    (void)s;
}

static const heft_source_ops padded_ops = { .size = sizeof(heft_source_ops),
                                            .read = read_padded,
                                            .map = map_padded,
                                            .check = check_padded,
                                            .begin_access = begin_inner_access,
                                            .end_access = end_inner_access,
                                            .close = close_padded,
                                            .check_unchanged = check_unchanged };

heft_padded_source heft_padded_source_of(heft_source *from, uint64_t size)
{
    return (heft_padded_source){ { &padded_ops, size }, from };
}

uint64_t heft_padded_present(heft_source *s)
{
    return s->ops == &padded_ops && from_of(s)->size < s->size ? from_of(s)->size : s->size;
}
