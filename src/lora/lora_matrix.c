/* lora_matrix.c - reads a part of a matrix: rows that are stored as such, or picked from columns,
 * or from the matrices of several experts between each other. */
#include "lora/lora_matrix.h"

#include "base/checked_math.h"

enum { STRIP = HEFT_COMBINE_STRIP };

typedef struct pick { /* elements of a line: a row or a column of the box */
    uint64_t first;   /* element of the input */
    uint64_t step;    /* distance of two elements */
    size_t count;
    size_t out_step;
} pick;

/* Read `count` elements in a row. */
static heft_status read_run(heft_combine_reader *r, const heft_combine_input *in, uint64_t from,
                            size_t count, float *out, heft_error *err)
{
    for (size_t n; count; from += n, out += n, count -= n) {
        n = count < STRIP ? count : STRIP;
        HEFT_TRY(heft_combine_read(r, in, from, n, out, err));
    }
    return HEFT_OK;
}

/* Read a line with what is between its elements. */
static heft_status read_line(heft_combine_reader *r, heft_lora_span *span,
                             const heft_combine_input *in, const pick *p, float *out,
                             heft_error *err)
{
    uint64_t most = p->step < STRIP ? heft_div(STRIP - 1, p->step) + 1 : 1;
    for (size_t done = 0, n; done < p->count; done += n) {
        n = p->count - done < most ? p->count - done : (size_t)most;
        size_t extent = (n - 1) * (size_t)(n > 1 ? p->step : 0) + 1;
        HEFT_TRY(heft_combine_read(r, in, p->first + done * p->step, extent, span->x, err));
        for (size_t i = 0; i < n; i++)
            out[(done + i) * p->out_step] = span->x[n > 1 ? i * (size_t)p->step : 0];
    }
    return HEFT_OK;
}

/* Columns that follow each other without a gap are read several at a time. */
static heft_status read_columns(heft_combine_reader *r, heft_lora_span *span,
                                const heft_lora_view *v, uint64_t first, const heft_lora_box *b,
                                float *out, heft_error *err)
{
    size_t most = STRIP / b->rows;
    for (size_t done = 0, n; done < b->columns; done += n) {
        n = b->columns - done < most ? b->columns - done : most;
        HEFT_TRY(heft_combine_read(r, &v->in, first + done * v->column, n * b->rows, span->x, err));
        for (size_t k = 0; k < n; k++)
            for (size_t i = 0; i < b->rows; i++)
                out[i * b->columns + done + k] = span->x[k * b->rows + i];
    }
    return HEFT_OK;
}

static void copy_memory(const heft_lora_view *v, uint64_t first, const heft_lora_box *b, float *out)
{
    for (size_t i = 0; i < b->rows; i++)
        memcpy(out + i * b->columns, v->memory + first + i * v->row, b->columns * sizeof *out);
}

heft_status heft_lora_matrix_read(heft_combine_reader *r, heft_lora_span *span,
                                  const heft_lora_view *v, const heft_lora_box *b, float *out,
                                  heft_error *err)
{
    uint64_t first = b->matrix * v->matrix + b->row * v->row + b->column * v->column;
    if (!b->rows || !b->columns)
        return HEFT_OK;
    if (v->memory) {
        copy_memory(v, first, b, out);
        return HEFT_OK;
    }
    if (v->column == 1 && v->row == b->columns)
        return read_run(r, &v->in, first, b->rows * b->columns, out, err);
    if (v->row == 1 && v->column == b->rows && b->rows <= STRIP)
        return read_columns(r, span, v, first, b, out, err);
    bool is_by_row = v->column <= v->row;
    size_t lines = is_by_row ? b->rows : b->columns;
    for (size_t i = 0; i < lines; i++) {
        pick p = { .first = first + i * (is_by_row ? v->row : v->column),
                   .step = is_by_row ? v->column : v->row,
                   .count = is_by_row ? b->columns : b->rows,
                   .out_step = is_by_row ? 1 : b->columns };
        float *to = out + i * (is_by_row ? b->columns : 1);
        HEFT_TRY(p.step == 1 && is_by_row ? read_run(r, &v->in, p.first, p.count, to, err)
                                          : read_line(r, span, &v->in, &p, to, err));
    }
    return HEFT_OK;
}
