/* shard_set_writer.c - read each file back before the commit, to get the digest and the offsets
 * of the parts. */
#include "core/write/split/shard_set_writer.h"

#include <heft/write.h>

#include "core/read/input_window.h"
#include "core/read/stored_checksum.h"
#include "core/write/plan/plan.h"

enum { LABEL = 20 };

/* A sink that holds the file back until the whole set is committed. */
typedef struct held_sink {
    heft_sink base;
    heft_sink_ops ops; /* the operations that the inner sink supports */
    heft_sink *inner;  /* NULL: committed or discarded */
    heft_file *file;
    char label[LABEL];
} held_sink;

/* A source that reads the written file back. */
typedef struct read_back {
    heft_source base;
    heft_sink *from;
    const heft_allocator *al;
} read_back;

struct heft_shard_set_writer {
    const heft_host *host;
    const heft_format *format;
    held_sink *files;
    heft_plan_shard *shards;
    uint32_t capacity, count;
    heft_file *joined;
};

static const char purpose[] = "for the files of a model";

/* ---- the sink ---- */

static heft_status write_at(heft_sink *s, uint64_t off, const void *data, size_t len,
                            heft_error *err)
{
    heft_sink *inner = ((const held_sink *)s)->inner;
    return inner->ops->write_at(inner, off, data, len, err);
}

static heft_status reserve(heft_sink *s, uint64_t size, heft_error *err)
{
    heft_sink *inner = ((const held_sink *)s)->inner;
    return inner->ops->reserve(inner, size, err);
}

static heft_status scratch(heft_sink *s, heft_scratch **out, uint64_t bytes, heft_error *err)
{
    heft_sink *inner = ((const held_sink *)s)->inner;
    return inner->ops->scratch(inner, out, bytes, err);
}

static heft_status finish(heft_sink *s, heft_error *err)
{
    (void)s;
    (void)err;
    return HEFT_OK;
}

static void discard(heft_sink *s)
{
    held_sink *k = (held_sink *)s;
    heft_sink_discard(k->inner);
    k->inner = NULL;
}

heft_sink *heft_shard_set_writer_sink(heft_shard_set_writer *l, heft_sink *inner)
{
    held_sink *k = &l->files[l->count];
    k->ops = (heft_sink_ops){ .size = sizeof(heft_sink_ops),
                              .write_at = write_at,
                              .reserve = inner->ops->reserve ? reserve : NULL,
                              .finish = finish,
                              .discard = discard,
                              .scratch = HEFT_HAS(inner->ops, scratch) ? scratch : NULL };
    k->base.ops = &k->ops;
    k->inner = inner;
    return &k->base;
}

/* ---- the source ---- */

static heft_status read_source(heft_source *s, uint64_t offset, void *buf, size_t len,
                               heft_error *err)
{
    heft_sink *from = ((const read_back *)s)->from;
    return heft_sink_read_back(from, offset, buf, len, err);
}

static void close_source(heft_source *s)
{
    const heft_allocator *al = ((const read_back *)s)->al;
    heft_free(al, s, sizeof(read_back), 16);
}

static heft_status open_written(heft_shard_set_writer *l, held_sink *k, uint64_t size,
                                heft_error *err)
{
    static const heft_source_ops ops = { .size = sizeof(heft_source_ops),
                                         .read = read_source,
                                         .close = close_source };
    const heft_allocator *al = l->host->allocator;
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    read_back *s = heft_alloc(al, sizeof *s, 16);
    if (!s)
        return heft_error_no_memory(err, purpose);
    *s = (read_back){ { &ops, size }, k->inner, al };
    opt.host = l->host;
    opt.format = l->format;
    return heft_file_open_source(&k->file, &s->base, &opt, err);
}

static heft_status digest(const heft_shard_set_writer *l, const held_sink *k,
                          heft_plan_shard *shard, heft_error *err)
{
    const heft_allocator *al = l->host->allocator;
    const heft_digest *d = heft_host_digest(l->host, shard->algorithm);
    heft_running_digest own = { .digest = NULL };
    heft_chunks c = { .buf = NULL };
    if (!d)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, "this build cannot compute %s digests",
                                shard->algorithm);
    heft_status st = heft_running_digest_begin(&own, d, al, purpose, err);
    if (!st)
        st = heft_chunks_open(&c, al, NULL, shard->size, err);
    while (!st && heft_chunks_next(&c)) {
        st = heft_sink_read_back(k->inner, c.at, c.buf, c.len, err);
        if (!st)
            heft_running_digest_update(&own, c.data, c.len);
    }
    if (!st)
        heft_running_digest_end(&own, shard->digest);
    heft_running_digest_close(&own);
    heft_chunks_close(&c);
    return st;
}

heft_status heft_shard_set_writer_add(heft_shard_set_writer *l, uint64_t size, heft_error *err)
{
    held_sink *k = &l->files[l->count];
    heft_plan_shard *shard = &l->shards[l->count];
    if (!size || !HEFT_HAS(k->inner->ops, read_at))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "cannot read back a shard that the index refers to");
    size_t len = heft_u64_text(k->label, l->count + 1);
    *shard = (heft_plan_shard){ { k->label, len }, "xxh3", { 0 }, size };
    l->count++;
    HEFT_TRY(digest(l, k, shard, err));
    return open_written(l, k, size, err);
}

/* ---- the set ---- */

heft_status heft_shard_set_writer_begin(heft_shard_set_writer **out, const heft_host *h,
                                        const heft_format *format, uint32_t count, heft_error *err)
{
    const heft_allocator *al = h->allocator;
    size_t bytes = count * (sizeof(held_sink) + sizeof(heft_plan_shard));
    heft_shard_set_writer *l = heft_alloc(al, sizeof *l, 16);
    *out = NULL;
    if (!l)
        return heft_error_no_memory(err, purpose);
    *l = (heft_shard_set_writer){ .host = h, .format = format, .capacity = count };
    l->files = heft_alloc(al, bytes, 16);
    if (!l->files) {
        heft_free(al, l, sizeof *l, 16);
        return heft_error_no_memory(err, purpose);
    }
    memset(l->files, 0, bytes);
    l->shards = (heft_plan_shard *)(void *)(l->files + count);
    *out = l;
    return HEFT_OK;
}

heft_status heft_shard_set_writer_join(heft_shard_set_writer *l, const heft_file **out,
                                       const heft_plan_shard **shards, heft_error *err)
{
    const heft_allocator *al = l->host->allocator;
    size_t bytes = l->count * sizeof(heft_file *);
    const heft_file **files = heft_alloc(al, bytes, 16);
    if (!files)
        return heft_error_no_memory(err, purpose);
    for (uint32_t i = 0; i < l->count; i++)
        files[i] = l->files[i].file;
    heft_status st = heft_file_join(&l->joined, files, l->count, NULL, err);
    heft_free(al, files, bytes, 16);
    *out = l->joined;
    *shards = l->shards;
    return st;
}

static void close_files(heft_shard_set_writer *l)
{
    heft_file_close(l->joined);
    l->joined = NULL;
    for (uint32_t i = 0; i < l->count; i++) {
        heft_file_close(l->files[i].file);
        l->files[i].file = NULL;
    }
}

heft_status heft_shard_set_writer_finish(heft_shard_set_writer *l, heft_error *err)
{
    close_files(l);
    for (uint32_t i = 0; i < l->capacity; i++) {
        heft_sink *inner = l->files[i].inner;
        l->files[i].inner = NULL;
        if (inner)
            HEFT_TRY(heft_sink_finish(inner, err));
    }
    return HEFT_OK;
}

void heft_shard_set_writer_free(heft_shard_set_writer *l)
{
    if (!l)
        return;
    const heft_allocator *al = l->host->allocator;
    close_files(l);
    for (uint32_t i = 0; i < l->capacity; i++)
        heft_sink_discard(l->files[i].inner);
    heft_free(al, l->files, l->capacity * (sizeof(held_sink) + sizeof(heft_plan_shard)), 16);
    heft_free(al, l, sizeof *l, 16);
}
