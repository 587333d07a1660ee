/* write_sparse.c - write sparse tensors without holding them in memory.
 *
 *     cc -std=c11 write_sparse.c -o write_sparse $(pkg-config --cflags --libs heft)
 *     ./write_sparse OUT.zt [N]
 *
 * Writes the adjacency matrix of a ring of N nodes as sparse_csr, and the eight corners of an
 * N x N x N grid as sparse_coo; the numbers are computed while they are written. */
#include <stdio.h>
#include <stdlib.h>

#include <heft/heft.h>
#include <heft/write.h>

typedef struct output {
    heft_writer *w;
    uint32_t part; /* number of the part that is written next */
    heft_error *err;
} output;

static heft_status write_bytes(const output *o, const void *bytes, size_t len)
{
    return heft_writer_write(o->w, o->part, bytes, len, o->err);
}

/* ---- compressed rows ---- */

static heft_status add_ring(output *o, uint32_t n)
{
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    const heft_component components[] = { { HEFT_STR("indptr"), HEFT_U64, n + 1ull, NULL },
                                          { HEFT_STR("indices"), HEFT_U32, 2ull * n, NULL },
                                          { HEFT_STR("values"), HEFT_F32, 2ull * n, NULL } };
    spec.name = HEFT_STR("ring");
    spec.dtype = HEFT_F32;
    spec.dims = (const uint64_t[]){ n, n };
    spec.rank = 2;
    spec.layout = HEFT_STR("sparse_csr");
    spec.components = components;
    spec.component_count = 3;
    return heft_writer_add_tensor(&o->part, o->w, &spec, o->err);
}

/* Row i has entries in the columns of both neighbours, in ascending order. */
static heft_status write_ring(output *o, uint32_t n)
{
    heft_status st = HEFT_OK;
    for (uint64_t i = 0; i <= n && !st; i++) {
        uint64_t begin = 2 * i;
        st = write_bytes(o, &begin, sizeof begin);
    }
    o->part++;
    for (uint32_t i = 0; i < n && !st; i++) {
        uint32_t left = (i + n - 1) % n, right = (i + 1) % n;
        uint32_t columns[2] = { left < right ? left : right, left < right ? right : left };
        st = write_bytes(o, columns, sizeof columns);
    }
    o->part++;
    for (uint32_t i = 0; i < n && !st; i++)
        st = write_bytes(o, (const float[]){ 0.5f, 0.5f }, 2 * sizeof(float));
    return st;
}

/* ---- coordinates ---- */

enum { CORNERS = 8 };

static heft_status add_corners(output *o, uint32_t n)
{
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    const heft_component components[] = { { HEFT_STR("values"), HEFT_F64, CORNERS, NULL },
                                          { HEFT_STR("coords"), HEFT_I64, 3 * CORNERS, NULL } };
    spec.name = HEFT_STR("corners");
    spec.dtype = HEFT_F64;
    spec.dims = (const uint64_t[]){ n, n, n };
    spec.rank = 3;
    spec.layout = HEFT_STR("sparse_coo");
    spec.components = components;
    spec.component_count = 2;
    return heft_writer_add_tensor(&o->part, o->w, &spec, o->err);
}

/* Coordinates are written dimension by dimension: all indices of the first, then the second. */
static heft_status write_corners(output *o, uint32_t n)
{
    heft_status st = HEFT_OK;
    for (int c = 0; c < CORNERS && !st; c++) {
        double value = c;
        st = write_bytes(o, &value, sizeof value);
    }
    o->part++;
    for (int axis = 2; axis >= 0; axis--)
        for (int c = 0; c < CORNERS && !st; c++) {
            int64_t index = c >> axis & 1 ? (int64_t)n - 1 : 0;
            st = write_bytes(o, &index, sizeof index);
        }
    return st;
}

static heft_status write_both(heft_writer *w, uint32_t n, heft_error *err)
{
    output ring = { .w = w, .err = err }, corners = ring;
    heft_status st = add_ring(&ring, n);
    if (!st)
        st = add_corners(&corners, n);
    if (!st)
        st = heft_writer_begin(w, err);
    if (!st)
        st = write_ring(&ring, n);
    return st ? st : write_corners(&corners, n);
}

int main(int argc, char **argv)
{
    long n = argc > 2 ? atol(argv[2]) : 1000;
    heft_error err;
    heft_sink *sink = NULL;
    heft_writer *w = NULL;
    if (argc < 2 || n < 3 || n > 1000000000) {
        fputs("usage: write_sparse OUT.zt [N of at least 3]\n", stderr);
        return 2;
    }
    heft_status st = heft_sink_open_file(&sink, argv[1], HEFT_SINK_REPLACE, &err);
    if (!st)
        st = heft_writer_open(&w, heft_format_find(HEFT_STR("ztensor")), sink, NULL, &err);
    if (!st)
        st = write_both(w, (uint32_t)n, &err);
    if (!st)
        st = heft_writer_finish(w, &err);
    else
        heft_writer_discard(w);
    if (st)
        fprintf(stderr, "%s: %s\n", argv[1], err.message);
    return st != HEFT_OK;
}
