/* doctor_values.c - counts NaN and infinities: training that diverged leaves a file that is whole,
 * and a model that answers nothing. */
#include "base/error.h"
#include "core/check/diagnosis.h"
#include "core/read/input_window.h"
#include "core/read/stream.h"
#include "model/blocks.h"
#include "model/dtype.h"

typedef struct odd_values { /* odd values in a tensor */
    uint64_t nans, infinities;
} odd_values;

typedef struct value_count {
    const heft_doctor *d;
    heft_progress *progress;
    odd_values *of; /* by tensor */
} value_count;

/* ---- one chunk ---- */

static void count_f32(odd_values *o, const uint32_t *f, size_t n)
{
    enum { INFINITE = 0x7F800000 };
    uint32_t nans = 0, infinities = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t magnitude = heft_le32((const uint8_t *)&f[i]) & 0x7FFFFFFF;
        nans += magnitude > INFINITE;
        infinities += magnitude == INFINITE;
    }
    o->nans += nans;
    o->infinities += infinities;
}

static void count_f64(odd_values *o, const uint8_t *p, size_t n)
{
    static const uint64_t infinite = UINT64_C(0x7FF0000000000000);
    for (size_t i = 0; i < n; i++) {
        uint64_t magnitude = heft_le64(p + 8 * i) & (UINT64_MAX >> 1);
        o->nans += magnitude > infinite;
        o->infinities += magnitude == infinite;
    }
}

/* Count in whole elements or blocks of a type that real_type() returns. */
static void count_chunk(odd_values *o, heft_dtype t, const uint8_t *p, size_t len)
{
    enum { STEP = 2 * HEFT_BLOCK_ELEMENTS };
    uint32_t f[STEP];
    const heft_dtype_info *d = heft_dtype_get(t);
    uint64_t blocks = heft_div(len, d->block_bytes);
    uint32_t step = STEP / d->block_elems;
    if (t == HEFT_F64) {
        count_f64(o, p, (size_t)blocks);
        return;
    }
    for (uint64_t at = 0; at < blocks; at += step) {
        uint64_t run = blocks - at < step ? blocks - at : step;
        size_t n = (size_t)run * d->block_elems;
        if (!heft_dtype_cast(f, HEFT_F32, p + at * d->block_bytes, t, n))
            return;
        count_f32(o, f, n);
    }
}

/* Return the real type of the numbers of a part; HEFT_UNTYPED: none is NaN, or none is known. */
static heft_dtype real_type(heft_dtype t)
{
    if (t == HEFT_C64 || t == HEFT_C128)
        return t == HEFT_C64 ? HEFT_F32 : HEFT_F64;
    return heft_dtype_is_float(t) || heft_block_is_known(t) ? t : HEFT_UNTYPED;
}

/* ---- one tensor ---- */

static heft_status count_part(const value_count *v, odd_values *o, uint32_t part, heft_error *err)
{
    heft_stream s;
    heft_chunks c;
    const heft_file *f = v->d->file;
    heft_dtype t = real_type(heft_ix_part_row_at(&f->x, part)->dtype);
    if (!t)
        return HEFT_OK;
    HEFT_TRY(heft_stream_start(&s, f, part, err));
    heft_status st = heft_chunks_open(&c, f->host->allocator, NULL, s.row.length, err);
    c.unit = heft_dtype_get(t)->block_bytes;
    while (!st && !heft_progress_halted(v->progress) && heft_chunks_next(&c)) {
        st = heft_stream_read(c.buf, &s, c.len, err);
        if (!st)
            count_chunk(o, t, c.data, c.len);
        heft_progress_add(v->progress, c.len);
    }
    heft_chunks_close(&c);
    heft_stream_stop(&s);
    return st;
}

static void count_tensor(void *arg, size_t t)
{
    const value_count *v = arg;
    const heft_ix_tensor_row *row = heft_ix_row(&v->d->file->x, (uint32_t)t);
    heft_error err = { .status = HEFT_OK };
    heft_status st = HEFT_OK;
    if (heft_doctor_is_lost(v->d, (uint32_t)t))
        return;
    for (uint32_t i = 0; i < row->part_count && !st; i++)
        st = count_part(v, &v->of[t], row->first_part + i, &err);
    if (st == HEFT_E_IO || st == HEFT_E_NOMEM) /* verify has reported bytes that do not decode */
        heft_progress_fail(v->progress, st, &err);
}

/* ---- all tensors ---- */

static void add_diagnosis(heft_doctor *d, const odd_values *of, bool is_nan)
{
    uint64_t tensors = 0, values = 0;
    uint32_t first = HEFT_NONE;
    for (uint32_t t = heft_ix_tensors(&d->file->x); t-- > 0;) {
        uint64_t n = is_nan ? of[t].nans : of[t].infinities;
        values += n;
        tensors += n > 0;
        first = n ? t : first;
    }
    heft_doctor_row row = { is_nan ? HEFT_WARNING : HEFT_NOTE,
                            first,
                            is_nan ? "nan" : "infinity",
                            NULL,
                            "'heft stats --finite FILE' lists the tensors",
                            { HEFT_NOWHERE, 0 } };
    if (tensors)
        heft_doctor_add(d, row, "%U %s %s, in %U %s", values,
                        values == 1 ? "value is" : "values are", is_nan ? "NaN" : "infinite",
                        tensors, tensors == 1 ? "tensor" : "tensors");
}

heft_status heft_doctor_check_values(heft_doctor *d, const heft_progress *progress, heft_error *err)
{
    uint32_t tensors = heft_ix_tensors(&d->file->x);
    size_t bytes = tensors * sizeof(odd_values);
    heft_progress p = { .fn = progress->fn, .ctx = progress->ctx };
    value_count v = { d, &p, tensors ? heft_mem_alloc(&d->mem, bytes) : NULL };
    if (!tensors)
        return HEFT_OK;
    if (!v.of)
        return heft_error_no_memory(err, "to count values that are not finite");
    memset(v.of, 0, bytes);
    for (uint32_t i = 0; i < d->file->x.parts.len; i++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(&d->file->x, i);
        p.total += real_type(part->dtype) ? part->length : 0;
    }
    heft_file_enter(d->file);
    heft_host_run(d->host, tensors, count_tensor, &v);
    heft_status st = heft_file_leave(d->file, err);
    heft_status counted = heft_progress_end(&p, err);
    st = st ? st : counted;
    if (!st)
        add_diagnosis(d, v.of, true);
    if (!st)
        add_diagnosis(d, v.of, false);
    heft_mem_free(&d->mem, v.of, bytes);
    return st;
}
