/* source_memory.c - bytes in the caller's memory as a source. */
#include "port/port.h"

#include <stdlib.h>
#include <string.h>

typedef struct memory_source {
    heft_source base;
    const uint8_t *data;
} memory_source;

static heft_status read_memory(heft_source *s, uint64_t off, void *buf, size_t len, heft_error *err)
{
    (void)err;
    memcpy(buf, ((const memory_source *)s)->data + off, len);
    return HEFT_OK;
}

static const void *map_memory(heft_source *s, uint64_t off, uint64_t len)
{
    (void)len;
    return ((const memory_source *)s)->data + off;
}

static void close_memory(heft_source *s)
{
    free(s);
}

static const heft_source_ops ops = {
    .size = sizeof(heft_source_ops), .read = read_memory, .map = map_memory, .close = close_memory
};

heft_status heft_source_open_memory(heft_source **out, const void *data, size_t len,
                                    heft_error *err)
{
    memory_source *m = calloc(1, sizeof *m);
    *out = NULL;
    if (!m)
        return heft_error_no_memory(err, "for a source");
    *m = (memory_source){ { &ops, len }, data };
    *out = &m->base;
    return HEFT_OK;
}
