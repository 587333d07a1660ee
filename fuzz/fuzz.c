/* fuzz.c - requirements, files in memory, and a sink that writes to memory. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

void fuzz_require(bool holds)
{
    if (!holds)
        abort();
}

void fuzz_use(uint64_t v)
{
    static volatile uint64_t sink;
    sink = v;
    (void)sink;
}

heft_status fuzz_open(heft_file **out, const void *data, size_t size, const heft_open_options *opt)
{
    heft_source *source = NULL;
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    if (opt)
        o = *opt;
    o.no_verify = true; /* few mutations have a correct checksum */
    fuzz_require(!heft_source_open_memory(&source, data, size, NULL));
    return heft_file_open_source(out, source, &o, NULL);
}

typedef struct memory_sink {
    heft_sink sink;
    fuzz_bytes *to;
} memory_sink;

static heft_status append(heft_sink *s, const void *data, size_t len, heft_error *err)
{
    fuzz_bytes *to = ((memory_sink *)s)->to;
    (void)err;
    if (to->cap - to->len < len) {
        to->cap = 2 * to->cap + len;
        to->ptr = realloc(to->ptr, to->cap);
        fuzz_require(to->ptr);
    }
    if (len)
        memcpy(to->ptr + to->len, data, len);
    to->len += len;
    return HEFT_OK;
}

static heft_status finish(heft_sink *s, heft_error *err)
{
    (void)err;
    free(s);
    return HEFT_OK;
}

static void discard(heft_sink *s)
{
    free(s);
}

heft_sink *fuzz_sink(fuzz_bytes *to)
{
    static const heft_sink_ops ops = {
        .size = sizeof(heft_sink_ops), .write = append, .finish = finish, .discard = discard
    };
    memory_sink *s = malloc(sizeof *s);
    fuzz_require(s);
    *s = (memory_sink){ { &ops }, to };
    return &s->sink;
}
