/* hdf5_bands.c - the source of decoded arrays: bands of chunks that the worker has decoded.
 *
 * Bands are kept while they are few bytes, so that a chunk is decoded once when an array is read
 * from its beginning to its end, by a few threads. */
#include "port/libraries/hdf5_container.h"

#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"

enum { BANDS = 32, KEPT_BYTES = 256 << 20 };

typedef struct band {
    const heft_hdf5_decoded *a; /* NULL: free */
    uint64_t number, used;
    uint8_t *bytes;
    size_t len;
} band;

typedef struct heft_hdf5_cache {
    band bands[BANDS];
    uint64_t clock, bytes;
} heft_hdf5_cache;

static size_t least(uint64_t a, size_t b)
{
    return a < b ? (size_t)a : b;
}

static void drop(heft_hdf5_cache *c, band *b)
{
    free(b->bytes);
    c->bytes -= b->len;
    *b = (band){ .a = NULL };
}

/* Return a free band, after those that were used least recently have made room for `len` bytes. */
static band *make_room(heft_hdf5_cache *c, size_t len)
{
    for (;;) {
        band *old = NULL, *unused = NULL;
        for (int i = 0; i < BANDS; i++) {
            band *b = &c->bands[i];
            unused = b->a ? unused : b;
            old = b->a && (!old || b->used < old->used) ? b : old;
        }
        if (!old || (unused && c->bytes + len <= KEPT_BYTES))
            return unused;
        drop(c, old);
    }
}

static heft_status decode(heft_hdf5_container *c, band *made, heft_error *err)
{
    const heft_hdf5_file *f = heft_hdf5_worker_file(c->worker);
    uint32_t array = (uint32_t)(made->a - (const heft_hdf5_decoded *)f->decoded_arrays.ptr);
    made->bytes = malloc(made->len);
    if (!made->bytes)
        return heft_error_no_memory(err, "for chunks of an HDF5 file");
    heft_status st = heft_hdf5_worker_run(c->worker, HEFT_HDF5_DECODE, array, made->number, err);
    if (st)
        free(made->bytes);
    else
        memcpy(made->bytes, heft_hdf5_worker_elements(c->worker), made->len);
    return st;
}

static heft_status get_band(const band **out, heft_hdf5_container *c, const heft_hdf5_decoded *a,
                            uint64_t number, heft_error *err)
{
    heft_hdf5_cache *cache = c->cache;
    band *b = NULL;
    for (int i = 0; i < BANDS && !b; i++)
        b = cache->bands[i].a == a && cache->bands[i].number == number ? &cache->bands[i] : NULL;
    if (!b) {
        band made = { .a = a, .number = number, .len = heft_hdf5_band_bytes(a, number) };
        b = make_room(cache, made.len);
        HEFT_TRY(decode(c, &made, err));
        *b = made;
        cache->bytes += made.len;
    }
    b->used = ++cache->clock;
    *out = b;
    return HEFT_OK;
}

void heft_hdf5_cache_free(heft_hdf5_cache *c)
{
    for (int i = 0; c && i < BANDS; i++)
        free(c->bands[i].bytes);
    free(c);
}

/* ---- the source ---- */

static void copy_fill(const heft_hdf5_decoded *a, uint64_t at, uint8_t *to, size_t len)
{
    for (size_t i = 0; i < len; i++)
        to[i] = a->fill[(at + i) % a->element];
}

static heft_status read_array(heft_hdf5_container *c, const heft_hdf5_decoded *a, uint64_t at,
                              uint8_t *to, size_t len, heft_error *err)
{
    if (!a->rank && !a->is_compact) {
        copy_fill(a, at, to, len);
        return HEFT_OK;
    }
    uint64_t each = heft_hdf5_band_step(a);
    for (size_t done = 0, n; done < len; done += n) {
        const band *b = NULL;
        uint64_t from = (at + done) % each;
        HEFT_TRY(get_band(&b, c, a, (at + done) / each, err));
        n = least(b->len - from, len - done);
        memcpy(to + done, b->bytes + from, n);
    }
    return HEFT_OK;
}

static heft_status read_arrays(heft_hdf5_container *c, uint64_t at, uint8_t *to, size_t len,
                               heft_error *err)
{
    const heft_hdf5_file *f = heft_hdf5_worker_file(c->worker);
    const heft_hdf5_decoded *arrays = f->decoded_arrays.ptr;
    heft_bisect b = { .end = f->decoded_arrays.len };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, arrays[b.mid].start + arrays[b.mid].bytes <= at);
    for (const heft_hdf5_decoded *a = arrays + b.first; len; a++) {
        uint64_t from = at - a->start;
        size_t n = least(a->bytes - from, len);
        HEFT_TRY(read_array(c, a, from, to, n, err));
        at += n;
        to += n;
        len -= n;
    }
    return HEFT_OK;
}

static heft_status read_decoded(heft_source *s, uint64_t at, void *to, size_t len, heft_error *err)
{
    heft_hdf5_container *c =
        (heft_hdf5_container *)(void *)((char *)s - offsetof(heft_hdf5_container, decoded));
    heft_error own;
    err = heft_error_begin(err, &own);
    pthread_mutex_lock(&c->lock);
    if (!c->cache)
        c->cache = calloc(1, sizeof *c->cache);
    heft_status st = c->cache ? read_arrays(c, at, to, len, err)
                              : heft_error_no_memory(err, "for chunks of an HDF5 file");
    pthread_mutex_unlock(&c->lock);
    return heft_error_end(err, st);
}

static void close_decoded(heft_source *s)
{
    (void)s; /* closed with the container */
}

const heft_source_ops heft_hdf5_decoded_ops = { .size = sizeof(heft_source_ops),
                                                .read = read_decoded,
                                                .close = close_decoded };
