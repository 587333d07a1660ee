/* index_output.c - the text of an index goes to a sink. */
#include "core/write/split/index_output.h"

#include "core/write/plan/plan.h"

typedef struct output {
    heft_sink *sink;
    heft_error *err;
} output;

static heft_status flush(void *ctx, uint64_t at, const void *data, size_t len)
{
    const output *f = ctx;
    return heft_sink_put(f->sink, at, data, len, f->err);
}

heft_status heft_index_output(const heft_sharding *sharding, const heft_shard_set *set,
                              heft_sink *sink, const heft_allocator *al, heft_error *err)
{
    enum { BUFFER = 64 << 10 };
    output f = { sink, err };
    uint8_t *buf = heft_alloc(al, BUFFER, 64);
    heft_out o = { .buf = buf, .cap = BUFFER, .flush = flush, .ctx = &f };
    if (!buf)
        return heft_error_no_memory(err, "to write the index of a model");
    sharding->index(&o, set);
    heft_status st = heft_out_flush(&o);
    heft_free(al, buf, BUFFER, 64);
    return st;
}
