/* hdf5_chunks.c - decodes arrays whose elements are in chunks, or in the header; in the worker. */
#include "port/libraries/hdf5_library.h"

#include <stdlib.h>
#include <string.h>

enum { SLACK = 64 };

/* ---- one chunk ---- */

typedef struct decoding {
    heft_hdf5_file *f;
    const heft_hdf5_decoded *a;
    hid_t id;
    uint8_t *chunk, *other; /* `capacity` bytes each */
    size_t chunk_bytes, capacity;
} decoding;

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static heft_status name_array(const heft_hdf5_decoded *a, heft_status st, heft_error *err)
{
    heft_error why = *err;
    heft_error_plain(err, st, "%q: %s", (heft_str){ a->path, strlen(a->path) }, why.message);
    return heft_error_rule(err, st, why.rule);
}

static heft_status fail(const decoding *d, const char *what)
{
    return heft_hdf5_fail(d->f, what, (heft_str){ d->a->path, strlen(d->a->path) });
}

static void fill_elements(const heft_hdf5_decoded *a, uint8_t *to, size_t len)
{
    for (size_t i = 0; i < len; i += a->element)
        memcpy(to + i, a->fill, a->element);
}

/* Read the chunk at the offsets `at` to d->chunk. */
static heft_status read_chunk(decoding *d, const hsize_t *at)
{
    hsize_t stored = 0;
    haddr_t place = HADDR_UNDEF;
    unsigned filters = 0;
    uint32_t skipped = 0;
    if (heft_hdf5->H5Dget_chunk_info_by_coord(d->id, at, &filters, &place, &stored) < 0)
        return fail(d, "a chunk of");
    if (place == HADDR_UNDEF || !stored) { /* never written */
        fill_elements(d->a, d->chunk, d->chunk_bytes);
        return HEFT_OK;
    }
    if (stored > d->capacity)
        return name_array(d->a,
                          heft_error_plain(d->f->err, HEFT_E_FORMAT,
                                           "a chunk of %U bytes takes %U in the file",
                                           (uint64_t)d->chunk_bytes, (uint64_t)stored),
                          d->f->err);
    if (heft_hdf5->H5Dread_chunk(d->id, H5P_DEFAULT, at, &skipped, d->chunk) < 0)
        return fail(d, "a chunk of");
    size_t len = (size_t)stored;
    heft_status st = heft_hdf5_unfilter(d->a, skipped, &d->chunk, &len, &d->other, d->capacity,
                                        d->f->err);
    if (!st && len != d->chunk_bytes)
        st = heft_error_plain(d->f->err, HEFT_E_FORMAT, "a chunk has %U bytes, %U are expected",
                              (uint64_t)len, (uint64_t)d->chunk_bytes);
    return st ? name_array(d->a, st, d->f->err) : HEFT_OK;
}

/* Advance a place in a grid of `rank` dimensions; the first, `fixed`, do not change. */
static bool advance(uint64_t *at, const uint64_t *step, const uint64_t *end, uint32_t fixed,
                    uint32_t rank)
{
    for (uint32_t i = rank; i-- > fixed;) {
        at[i] += step ? step[i] : 1;
        if (at[i] < end[i])
            return true;
        at[i] = 0;
    }
    return false;
}

/* Copy what the chunk at `at` has of the array to its places in the band. */
static void place_chunk(const decoding *d, const hsize_t *at, uint8_t *to)
{
    const heft_hdf5_decoded *a = d->a;
    const uint64_t *chunk = a->dims + a->rank;
    uint64_t i[H5S_MAX_RANK] = { 0 }, size[H5S_MAX_RANK] = { 0 };
    for (uint32_t k = 0; k < a->rank; k++)
        size[k] = least(chunk[k], a->dims[k] - at[k]);
    size_t run = (size_t)size[a->rank - 1] * a->element;
    do {
        uint64_t from = 0, place = 0;
        for (uint32_t k = 0; k < a->rank; k++) {
            from = from * chunk[k] + i[k];
            place = place * (k ? a->dims[k] : 1) + (k ? at[k] : 0) + i[k];
        }
        memcpy(to + place * a->element, d->chunk + from * a->element, run);
    } while (advance(i, NULL, size, 0, a->rank - 1));
}

/* ---- bands ---- */

static uint64_t row_bytes(const heft_hdf5_decoded *a)
{
    uint64_t n = a->element;
    for (uint32_t i = 1; i < a->rank; i++)
        n *= a->dims[i];
    return n;
}

static heft_status decode_chunks(decoding *d, uint64_t number, uint8_t *to)
{
    const heft_hdf5_decoded *a = d->a;
    const uint64_t *chunk = a->dims + a->rank;
    uint64_t at[H5S_MAX_RANK] = { number * chunk[0] };
    hsize_t offsets[H5S_MAX_RANK];
    do {
        for (uint32_t k = 0; k < a->rank; k++)
            offsets[k] = at[k];
        HEFT_TRY(read_chunk(d, offsets));
        place_chunk(d, offsets, to);
    } while (advance(at, chunk, a->dims, 1, a->rank));
    return HEFT_OK;
}

static heft_status decode_band(heft_hdf5_file *f, const heft_hdf5_decoded *a, uint64_t number,
                               uint8_t *to)
{
    decoding d = { .f = f, .a = a, .chunk_bytes = a->element };
    for (uint32_t i = 0; i < a->rank; i++)
        d.chunk_bytes *= (size_t)a->dims[a->rank + i];
    d.capacity = d.chunk_bytes + d.chunk_bytes / 512 + SLACK; /* deflating may add bytes */
    d.id = heft_hdf5->H5Dopen2(f->file, a->path, H5P_DEFAULT);
    if (d.id < 0)
        return fail(&d, "the dataset");
    d.chunk = malloc(d.capacity);
    d.other = malloc(d.capacity);
    heft_status st = d.chunk && d.other
                         ? decode_chunks(&d, number, to)
                         : heft_error_no_memory(f->err, "for a chunk of an HDF5 file");
    free(d.chunk);
    free(d.other);
    heft_hdf5->H5Dclose(d.id);
    return st;
}

static heft_status decode_compact(heft_hdf5_file *f, const heft_hdf5_decoded *a, uint8_t *to)
{
    decoding d = { .f = f, .a = a };
    hid_t id = heft_hdf5->H5Dopen2(f->file, a->path, H5P_DEFAULT);
    hid_t type = id < 0 ? -1 : heft_hdf5->H5Dget_type(id);
    bool ok = type >= 0 && heft_hdf5->H5Dread(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, to) >= 0;
    heft_status st = ok ? HEFT_OK : fail(&d, "the dataset");
    if (type >= 0)
        heft_hdf5->H5Tclose(type);
    if (id >= 0)
        heft_hdf5->H5Dclose(id);
    return st;
}

heft_status heft_hdf5_decode(heft_hdf5_file *f, const heft_hdf5_decoded *a, uint64_t number,
                             uint8_t *to)
{
    return a->rank ? decode_band(f, a, number, to) : decode_compact(f, a, to);
}

uint64_t heft_hdf5_band_step(const heft_hdf5_decoded *a)
{
    return a->rank ? a->dims[a->rank] * row_bytes(a) : a->bytes;
}

size_t heft_hdf5_band_bytes(const heft_hdf5_decoded *a, uint64_t number)
{
    uint64_t step = heft_hdf5_band_step(a);
    return (size_t)least(step, a->bytes - number * step);
}
