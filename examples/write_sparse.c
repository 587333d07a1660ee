/* write_sparse OUT.zt [N] - writes the matrix of a ring of N places, each joined to both of its neighbours, as
 * sparse_csr, and the corners of an N x N x N grid as sparse_coo.  Neither is in memory as a whole: the numbers are made
 * as they are written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heft/heft.h>

typedef struct job {
    heft_writer *w;
    uint32_t part; /* the one that comes */
    heft_error *err;
} job;

static heft_status put(const job *j, const void *bytes, size_t len)
{
    return heft_writer_write(j->w, j->part, bytes, len, j->err);
}

/* ---- compressed rows ---- */

static heft_status add_ring(job *j, uint32_t n)
{
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    const heft_component components[] = { { { "indptr", 6 }, HEFT_U64, n + 1ull, NULL },
                                          { { "indices", 7 }, HEFT_U32, 2ull * n, NULL },
                                          { { "values", 6 }, HEFT_F32, 2ull * n, NULL } };
    spec.name = (heft_str){ "ring", 4 };
    spec.dtype = HEFT_F32;
    spec.dims = (const uint64_t[]){ n, n };
    spec.rank = 2;
    spec.layout = (heft_str){ "sparse_csr", 10 };
    spec.components = components;
    spec.component_count = 3;
    return heft_writer_add_tensor(&j->part, j->w, &spec, j->err);
}

/* Row i has entries in the columns of both neighbours, the lower one first. */
static heft_status write_ring(job *j, uint32_t n)
{
    heft_status st = HEFT_OK;
    for (uint64_t i = 0; i <= n && !st; i++) {
        uint64_t begin = 2 * i;
        st = put(j, &begin, sizeof begin);
    }
    j->part++;
    for (uint32_t i = 0; i < n && !st; i++) {
        uint32_t before = (i + n - 1) % n, after = (i + 1) % n;
        uint32_t columns[2] = { before < after ? before : after, before < after ? after : before };
        st = put(j, columns, sizeof columns);
    }
    j->part++;
    for (uint32_t i = 0; i < n && !st; i++)
        st = put(j, (const float[]){ 0.5f, 0.5f }, 2 * sizeof(float));
    return st;
}

/* ---- coordinates ---- */

enum { CORNERS = 8 };

static heft_status add_corners(job *j, uint32_t n)
{
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    const heft_component components[] = { { { "values", 6 }, HEFT_F64, CORNERS, NULL },
                                          { { "coords", 6 }, HEFT_I64, 3 * CORNERS, NULL } };
    spec.name = (heft_str){ "corners", 7 };
    spec.dtype = HEFT_F64;
    spec.dims = (const uint64_t[]){ n, n, n };
    spec.rank = 3;
    spec.layout = (heft_str){ "sparse_coo", 10 };
    spec.components = components;
    spec.component_count = 2;
    return heft_writer_add_tensor(&j->part, j->w, &spec, j->err);
}

/* All indices of the first dimension, then those of the second, then those of the third. */
static heft_status write_corners(job *j, uint32_t n)
{
    heft_status st = HEFT_OK;
    for (int c = 0; c < CORNERS && !st; c++) {
        double value = c;
        st = put(j, &value, sizeof value);
    }
    j->part++;
    for (int axis = 2; axis >= 0; axis--)
        for (int c = 0; c < CORNERS && !st; c++) {
            int64_t index = c >> axis & 1 ? (int64_t)n - 1 : 0;
            st = put(j, &index, sizeof index);
        }
    return st;
}

static heft_status write_both(heft_writer *w, uint32_t n, heft_error *err)
{
    job ring = { .w = w, .err = err }, corners = ring;
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
        st = heft_writer_open(&w, heft_format_find("ztensor"), sink, NULL, &err);
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
