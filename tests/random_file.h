/* random_file.h - an open file over random bytes, for tests that add tensors to its index. */
#ifndef RANDOM_FILE_H
#define RANDOM_FILE_H
#include "core/read/file.h"

enum { STORAGE = 1 << 18 };

typedef struct random_file {
    heft_source source;
    heft_file f;
    heft_error err;
    uint64_t bytes_read; /* by the source, which maps nothing */
    uint8_t bytes[STORAGE];
} random_file;

static uint32_t seed = 1;

static uint32_t random_below(uint32_t limit)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % limit;
}

static heft_status read_random_bytes(heft_source *s, uint64_t offset, void *buf, size_t len,
                                     heft_error *err)
{
    random_file *r = (random_file *)(void *)s;
    (void)err;
    assert_true(offset <= STORAGE && len <= STORAGE - offset);
    r->bytes_read += len;
    memcpy(buf, r->bytes + offset, len);
    return HEFT_OK;
}

static const heft_source_ops random_ops = { .size = sizeof(heft_source_ops),
                                            .read = read_random_bytes };

/* is_mapped: all bytes are in place, and nothing is read from the source. */
static random_file *open_random_file(bool is_mapped)
{
    random_file *r = calloc(1, sizeof *r);
    heft_limits limits = { 0 };
    assert_non_null(r);
    for (size_t i = 0; i < STORAGE; i++)
        r->bytes[i] = (uint8_t)random_below(256);
    r->source = (heft_source){ &random_ops, STORAGE };
    r->f.host = heft_host_default();
    r->f.source = &r->source;
    heft_ix_init(&r->f.x, r->f.host->allocator, &limits, (uint64_t[2]){ 0, 0 });
    heft_input_init(&r->f.input, &r->f.x.mem, STORAGE, UINT64_MAX);
    r->f.input.whole_file = is_mapped ? r->bytes : NULL;
    r->f.x.err = &r->err;
    r->f.x.file_bytes = STORAGE;
    return r;
}

static void close_random_file(random_file *r)
{
    heft_shards_close(&r->f);
    heft_input_free(&r->f.input);
    heft_ix_free(&r->f.x);
    free(r);
}

#endif
