/* hdf5_filters.c - undoes the filters of a chunk: deflate, shuffle, Fletcher-32.
 *
 * The library would undo them, too, but a damaged or hostile chunk decides then how much memory
 * that takes; here a chunk never takes more than its size. */
#include "port/libraries/hdf5_library.h"

#include <string.h>
#include <zlib.h>

enum { SUM = 4 };

/* ---- Fletcher-32, of HDF5: numbers of 16 bits, the most significant byte first ---- */

static uint32_t fletcher32(const uint8_t *p, size_t len)
{
    enum { TOGETHER = 360 }; /* numbers before a sum may pass 32 bits */
    uint32_t a = 0, b = 0;
    for (size_t words = len / 2; words;) {
        size_t n = words < TOGETHER ? words : TOGETHER;
        words -= n;
        for (; n; n--, p += 2) {
            a += (uint32_t)p[0] << 8 | p[1];
            b += a;
        }
        a = (a & 0xffff) + (a >> 16);
        b = (b & 0xffff) + (b >> 16);
    }
    if (len % 2) {
        a += (uint32_t)*p << 8;
        b += a;
        a = (a & 0xffff) + (a >> 16);
        b = (b & 0xffff) + (b >> 16);
    }
    a = (a & 0xffff) + (a >> 16);
    b = (b & 0xffff) + (b >> 16);
    return b << 16 | a;
}

/* Releases of HDF5 before 1.6.3 wrote the sum with its bytes in each half exchanged. */
static heft_status check_sum(const uint8_t *chunk, size_t *len, heft_error *err)
{
    if (*len < SUM)
        return heft_error_plain(err, HEFT_E_FORMAT, "a chunk is shorter than its checksum");
    *len -= SUM;
    const uint8_t *p = chunk + *len;
    uint32_t stored = heft_le32(p), sum = fletcher32(chunk, *len);
    uint32_t exchanged = (sum & 0x00ff00ff) << 8 | (sum & 0xff00ff00) >> 8;
    if (stored == sum || stored == exchanged)
        return HEFT_OK;
    return heft_error_rule(err,
                           heft_error_plain(err, HEFT_E_CHECKSUM,
                                            "the Fletcher-32 checksum of a chunk does not match"),
                           "keras/fletcher32");
}

/* ---- the other filters ---- */

static heft_status inflate_chunk(const uint8_t *from, size_t *len, uint8_t *to, size_t capacity,
                                 heft_error *err)
{
    z_stream z = { .next_in = (z_const Bytef *)(uintptr_t)from,
                   .avail_in = (uInt)*len,
                   .next_out = to,
                   .avail_out = (uInt)capacity };
    if (inflateInit(&z) != Z_OK)
        return heft_error_no_memory(err, "for zlib");
    int code = inflate(&z, Z_FINISH);
    inflateEnd(&z);
    *len = capacity - z.avail_out;
    if (code == Z_MEM_ERROR)
        return heft_error_no_memory(err, "for zlib");
    return code == Z_STREAM_END
               ? HEFT_OK
               : heft_error_plain(err, HEFT_E_FORMAT, "a deflated chunk is corrupt or truncated");
}

/* Put the bytes of each element together again; bytes after the last whole element follow. */
static void unshuffle(const uint8_t *from, size_t len, uint8_t *to, size_t element)
{
    size_t n = element ? len / element : 0;
    for (size_t k = 0; k < element; k++)
        for (size_t i = 0; i < n; i++)
            to[i * element + k] = from[k * n + i];
    memcpy(to + n * element, from + n * element, len - n * element);
}

static void exchange(uint8_t **a, uint8_t **b)
{
    uint8_t *kept = *a;
    *a = *b;
    *b = kept;
}

heft_status heft_hdf5_unfilter(const heft_hdf5_decoded *a, uint32_t skipped, uint8_t **chunk,
                               size_t *len, uint8_t **other, size_t capacity, heft_error *err)
{
    for (uint32_t i = a->filter_count; i-- > 0;) {
        if (skipped >> i & 1)
            continue;
        if (a->filters[i] == H5Z_FILTER_FLETCHER32) {
            HEFT_TRY(check_sum(*chunk, len, err));
            continue;
        }
        if (a->filters[i] == H5Z_FILTER_DEFLATE)
            HEFT_TRY(inflate_chunk(*chunk, len, *other, capacity, err));
        else
            unshuffle(*chunk, *len, *other, a->element);
        exchange(chunk, other);
    }
    return HEFT_OK;
}
