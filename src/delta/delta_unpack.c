/* delta_unpack.c - decodes the changes that other programs store. */
#include "base/checked_math.h"
#include "base/error.h"
#include "core/read/stream.h"
#include "delta/delta_foreign.h"
#include "delta/delta_scan.h"

static const char purpose[] = "for the changes of a tensor";

/* The whole of a part of the delta, and a decoder of it. */
typedef struct packed {
    const heft_delta *d;
    heft_str name;
    uint8_t *bytes, *buf;
    size_t length, at, buf_size;
    const heft_codec *codec;
    void *state;
    bool whole;
    heft_error *err;
} packed;

static heft_status open_packed(packed *p, const heft_delta *d, heft_str name, uint32_t part,
                               heft_error *err)
{
    const heft_allocator *al = d->f->host->allocator;
    uint64_t length = heft_ix_part_row_at(&d->f->x, part)->length;
    *p = (packed){ .d = d, .name = name, .length = (size_t)length, .err = err };
    p->bytes = length < SIZE_MAX ? heft_alloc(al, (size_t)length + 1, 64) : NULL;
    if (!p->bytes)
        return heft_error_no_memory(err, purpose);
    return heft_read_checked(p->bytes, d->f, part, heft_part_checksum(d->f, part, false), err);
}

static void close_packed(packed *p)
{
    const heft_allocator *al = p->d->f->host->allocator;
    if (p->state)
        p->codec->close(p->state);
    heft_free(al, p->bytes, p->length + 1, 64);
    heft_free(al, p->buf, p->buf_size, 64);
}

/* ---- zstd streams ---- */

static heft_status open_stream(packed *p, uint64_t decoded)
{
    p->codec = heft_host_codec(p->d->f->host, HEFT_ZSTD);
    if (!p->codec)
        return heft_error_plain(p->err, HEFT_E_UNSUPPORTED, "this build cannot decode zstd");
    return p->codec->open(&p->state, decoded, p->err);
}

static heft_status decode(packed *p, uint8_t *to, size_t len)
{
    while (len) {
        size_t in = p->length - p->at, out = len;
        HEFT_TRY(p->codec->decode(p->state, p->bytes + p->at, &in, to, &out, &p->whole, p->err));
        if (!in && !out)
            return heft_delta_bad(p->err, p->name, "ends too early");
        p->at += in;
        to += out;
        len -= out;
    }
    return HEFT_OK;
}

/* Return an error unless the stream ends here. */
static heft_status end_stream(packed *p)
{
    uint8_t byte;
    size_t in = p->length - p->at, out = 1;
    if (!p->whole || in) {
        HEFT_TRY(p->codec->decode(p->state, p->bytes + p->at, &in, &byte, &out, &p->whole, p->err));
        p->at += in;
    } else {
        out = 0;
    }
    return out || !p->whole || p->at != p->length
               ? heft_delta_bad(p->err, p->name, "is longer than its tensor needs")
               : HEFT_OK;
}

/* ---- exclusive ors of all bytes ---- */

typedef struct unpacked {
    heft_memory mem;
    heft_vec counts, gaps, values;
    heft_delta_found found;
    uint8_t *zeros, *block, *memory;
    size_t bytes;
} unpacked;

static heft_status open_unpacked(unpacked *u, const heft_delta *d, unsigned unit, heft_error *err)
{
    size_t block = (size_t)HEFT_DELTA_BLOCK * unit;
    *u = (unpacked){ .mem = { d->f->host->allocator, UINT64_MAX, 0 },
                     .bytes = 4 * block + HEFT_DELTA_BLOCK * sizeof(uint16_t) };
    u->memory = heft_mem_alloc(&u->mem, u->bytes);
    if (!u->memory)
        return heft_error_no_memory(err, purpose);
    u->zeros = u->memory;
    u->block = u->zeros + block;
    u->found = (heft_delta_found){ (uint16_t *)(void *)(u->memory + 4 * block), u->block + block,
                                   u->block + 2 * block };
    memset(u->zeros, 0, block);
    return HEFT_OK;
}

static void close_unpacked(unpacked *u)
{
    heft_mem_free(&u->mem, u->memory, u->bytes);
    heft_vec_free(&u->mem, &u->counts, sizeof(uint32_t));
    heft_vec_free(&u->mem, &u->gaps, sizeof(uint16_t));
    heft_vec_free(&u->mem, &u->values, 1);
}

/* Find the units of each block that are not zero. */
static heft_status find_units(unpacked *u, packed *p, const heft_delta_loaded *l)
{
    for (uint64_t b = 0; b < l->blocks; b++) {
        uint32_t units = heft_delta_block_units(l, b);
        HEFT_TRY(decode(p, u->block, (size_t)units * l->unit));
        uint32_t n = heft_delta_scan(&u->found, u->zeros, u->block, units, l->unit);
        if (!heft_vec_add_many(&u->mem, &u->counts, &n, 1, sizeof n) ||
            !heft_vec_add_many(&u->mem, &u->gaps, u->found.gaps, n, sizeof *u->found.gaps) ||
            !heft_vec_add_many(&u->mem, &u->values, u->found.new, n * l->unit, 1))
            return heft_error_no_memory(p->err, purpose);
    }
    return end_stream(p);
}

static heft_status take_units(heft_delta_loaded *l, const unpacked *u, const heft_delta *d,
                              heft_error *err)
{
    const uint32_t *counts = u->counts.ptr;
    uint64_t sum = 0;
    HEFT_TRY(heft_delta_reserve(l, d, u->gaps.len, err));
    for (uint64_t b = 0; b < l->blocks; b++) {
        l->starts[b] = sum;
        (void)heft_delta_positions(l->positions + sum, (const uint16_t *)u->gaps.ptr + sum,
                                   counts[b], HEFT_DELTA_BLOCK);
        sum += counts[b];
    }
    l->starts[l->blocks] = sum;
    if (u->values.len)
        memcpy(l->values, u->values.ptr, u->values.len);
    l->is_xor = true;
    return HEFT_OK;
}

static heft_status load_disk_xor(heft_delta_loaded *l, const heft_delta *d,
                                 const heft_delta_item *item, heft_error *err)
{
    packed p;
    unpacked u = { .bytes = 0 };
    heft_status st = open_packed(&p, d, item->row.name, item->part[0], err);
    if (!st)
        st = open_unpacked(&u, d, l->unit, err);
    if (!st)
        st = open_stream(&p, l->units * l->unit);
    if (!st)
        st = find_units(&u, &p, l);
    if (!st)
        st = take_units(l, &u, d, err);
    close_unpacked(&u);
    close_packed(&p);
    return st;
}

/* ---- a count, positions, and bytes ---- */

static heft_status load_disk_overwrite(heft_delta_loaded *l, const heft_delta *d,
                                       const heft_delta_item *item, heft_error *err)
{
    packed p;
    uint8_t head[4];
    heft_status st = open_packed(&p, d, item->row.name, item->part[0], err);
    if (!st)
        st = open_stream(&p, UINT64_C(5) * l->units + sizeof head);
    if (!st)
        st = decode(&p, head, sizeof head);
    uint32_t count = st ? 0 : heft_le32(head);
    if (!st && count > l->units)
        st = heft_delta_bad(err, item->row.name, "has more positions than the tensor has");
    size_t positions = (size_t)count * sizeof count;
    p.buf_size = positions + count + 1;
    if (!st && !(p.buf = heft_alloc(d->f->host->allocator, p.buf_size, 64)))
        st = heft_error_no_memory(err, purpose);
    if (!st)
        st = decode(&p, p.buf, positions + count);
    if (!st)
        st = end_stream(&p);
    heft_delta_flat flat = { p.buf, p.buf + (p.buf ? positions : 0), count, sizeof count };
    if (!st)
        st = heft_delta_load_flat(l, d, item->row.name, &flat, err);
    close_packed(&p);
    return st;
}

/* ---- patches ---- */

/* Turn gaps of 2 or 4 bytes, each one less than the distance to the position before, into
 * positions. */
static void sum_gaps(uint8_t *to, const uint8_t *gaps, uint64_t count, size_t width)
{
    uint64_t at = UINT64_MAX;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t gap = 0;
        for (size_t k = 0; k < width; k++)
            gap |= (uint64_t)gaps[i * width + k] << 8 * k;
        at += gap + 1;
        heft_put_le64(to + i * sizeof at, at);
    }
}

static heft_status load_patch(heft_delta_loaded *l, const heft_delta *d,
                              const heft_delta_item *item, heft_error *err)
{
    packed indices = { .d = d }, values = { .d = d };
    heft_status st = open_packed(&indices, d, item->row.name, item->part[0], err);
    if (!st)
        st = open_packed(&values, d, item->row.name, item->part[1], err);
    uint64_t count = item->row.changed;
    heft_delta_flat flat = { indices.bytes, values.bytes, count, 4 };
    if (!st && values.length != count * l->unit)
        st = heft_delta_bad(err, item->row.name, "has values of another size than the tensor");
    if (!st && item->coding == HEFT_DELTA_PATCH_GAPS) {
        indices.buf_size = (size_t)count * sizeof count + 1;
        indices.buf = heft_alloc(d->f->host->allocator, indices.buf_size, 64);
        flat.indices = indices.buf;
        flat.index_bytes = sizeof count;
        if (indices.buf)
            sum_gaps(indices.buf, indices.bytes, count,
                     count ? indices.length / (size_t)count : sizeof(uint16_t));
        else
            st = heft_error_no_memory(err, purpose);
    }
    if (!st)
        st = heft_delta_load_flat(l, d, item->row.name, &flat, err);
    close_packed(&indices);
    close_packed(&values);
    return st;
}

heft_status heft_delta_load_foreign(heft_delta_loaded *l, const heft_delta *d,
                                    const heft_delta_item *item, heft_error *err)
{
    if (item->coding == HEFT_DELTA_DISK_XOR)
        return load_disk_xor(l, d, item, err);
    if (item->coding == HEFT_DELTA_DISK_OVERWRITE)
        return load_disk_overwrite(l, d, item, err);
    return load_patch(l, d, item, err);
}
