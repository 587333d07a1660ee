/* pair_picture.c - both tensors are read in steps of as many elements: once for figures and maps,
 * and once for the histograms, whose range is known then. */
#include "values/pair_picture.h"

#include <math.h>
#include <string.h>

#include "models/model.h"
#include "text/number_text.h"

enum {
    STEP = 1 << 16, /* elements: whole blocks of every type, and at most WORK_CHUNK bytes */
    BLOCK = 1024    /* values converted at a time; even, since a complex number has two */
};

typedef struct place { /* in a map */
    uint64_t row, column;
    size_t x, y; /* field */
} place;

typedef struct stream { /* a tensor that is read */
    bool is_open;
    chunk_reader bytes;
    heft_dtype type;
    uint64_t elements, at; /* at: bytes */
    size_t per_element;    /* values */
} stream;

typedef struct drawing {
    pair_picture *p;
    work *work;
    stream streams[2];
    place places[3];
    bool has_difference, is_second;
} drawing;

/* ---- maps ---- */

/* Return the first of `all` rows or columns that field i of n has. */
static uint64_t first_of(size_t i, size_t n, uint64_t all)
{
    return all / n * i + (all % n * i + n - 1) / n; /* all * i may overflow */
}

/* The values of a sparse tensor are one row: their places are elsewhere. */
static void map_begin(value_map *m, const heft_tensor *t, uint64_t values, size_t per_element)
{
    m->columns = t->rank > 1 && t->layout == HEFT_DENSE ? t->dims[t->rank - 1] * per_element
                                                        : values;
    m->columns = m->columns ? m->columns : 1;
    m->rows = values / m->columns + (values % m->columns != 0);
    m->width = m->columns < PICTURE_SIDE ? (size_t)m->columns : PICTURE_SIDE;
    m->height = m->rows < PICTURE_SIDE ? (size_t)m->rows : PICTURE_SIDE;
}

static void add_run(value_map *m, size_t field, const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isfinite(v[i])) {
            m->sums[field] += v[i];
            m->counts[field]++;
        } else {
            m->kinds[field] |= isnan(v[i]) ? 1 : 2;
        }
}

/* Add values from a place on; the place moves behind them. */
static void map_add(value_map *m, place *at, const double *v, size_t n)
{
    for (size_t i = 0; i < n && at->y < m->height;) {
        uint64_t end = first_of(at->x + 1, m->width, m->columns);
        size_t run = end - at->column < n - i ? (size_t)(end - at->column) : n - i;
        add_run(m, at->y * m->width + at->x, v + i, run);
        i += run;
        at->column += run;
        at->x += at->column == end;
        if (at->column < m->columns)
            continue;
        at->column = at->x = 0;
        at->y += ++at->row == first_of(at->y + 1, m->height, m->rows);
    }
}

/* ---- histograms ---- */

/* Values outside the range are ignored, since the file may have changed since the first pass. */
static void bins_add(pair_picture *p, int k, const double *v, size_t n)
{
    bins b = bins_between(p->min, p->max, PICTURE_BINS);
    for (size_t i = 0; i < n; i++)
        if (v[i] >= p->min && v[i] <= p->max)
            p->bins[k][bin_of(&b, v[i])]++;
}

/* ---- reading ---- */

static bool stream_open(stream *s, work *w, const side *from)
{
    if (from->tensor == HEFT_NONE || summary_part(from->f, from->tensor) == HEFT_NONE)
        return true;
    uint32_t part = summary_part(from->f, from->tensor);
    heft_tensor t = heft_tensor_at(from->f, from->tensor);
    s->type = heft_part_at(from->f, part).dtype;
    s->per_element = number_kind_of(s->type) == NUMBER_COMPLEX ? 2 : 1;
    s->is_open = true;
    if (!chunk_reader_open(&s->bytes, w, from->f, from->path, part, NULL))
        return false;
    chunk_reader_keep(&s->bytes);
    uint64_t most = t.layout == HEFT_DENSE ? tensor_elements(&t) : UINT64_MAX;
    s->elements = elements_in(s->type, s->bytes.length, most);
    return true;
}

/* Read the next n elements; NULL on failure. *n becomes the number that there is. */
static const uint8_t *stream_next(stream *s, work *w, uint64_t from, uint64_t *n)
{
    const heft_dtype_info *d = heft_dtype_get(s->type);
    uint64_t left = from < s->elements ? s->elements - from : 0;
    *n = left < STEP ? left : STEP;
    uint64_t len = (*n + d->block_elems - 1) / d->block_elems * d->block_bytes;
    len = len < s->bytes.length - s->at ? len : s->bytes.length - s->at;
    const uint8_t *bytes = chunk_reader_at(&s->bytes, w, s->at, (size_t)len);
    s->at += len;
    return bytes && work_step(w, len) ? bytes : NULL;
}

/* The order of the values is lost. */
static void add_block(drawing *d, int k, double *v, size_t n)
{
    pair_picture *p = d->p;
    if (d->is_second) {
        bins_add(p, k, v, n);
        return;
    }
    map_add(&p->maps[k], &d->places[k], v, n);
    (void)summary_add(&p->figures[k], v, n);
}

static void add_difference(drawing *d, const double *a, const double *b, size_t n)
{
    double minus[BLOCK];
    for (size_t i = 0; i < n; i++)
        minus[i] = a[i] - b[i];
    map_add(&d->p->difference_map, &d->places[2], minus, n);
    (void)summary_add(&d->p->difference, minus, n);
}

/* Add the values of a step; values[k]: their number, bytes[k]: where they are. */
static bool add_step(drawing *d, const uint8_t *const bytes[2], const uint64_t values[2])
{
    double v[2][BLOCK];
    uint64_t most = values[0] > values[1] ? values[0] : values[1];
    for (uint64_t at = 0; at < most; at += BLOCK) {
        size_t n[2] = { 0 };
        for (int k = 0; k < 2; k++) {
            uint64_t left = at < values[k] ? values[k] - at : 0;
            n[k] = left < BLOCK ? (size_t)left : BLOCK;
            if (n[k] && !heft_dtype_to_f64(v[k], d->streams[k].type, bytes[k], at, n[k]))
                return false;
        }
        if (d->has_difference && !d->is_second)
            add_difference(d, v[0], v[1], n[0]);
        for (int k = 0; k < 2; k++)
            add_block(d, k, v[k], n[k]);
    }
    return true;
}

/* Read both tensors once. Values that cannot be decoded leave the picture as it is. */
static bool pass(drawing *d)
{
    const stream *a = &d->streams[0], *b = &d->streams[1];
    uint64_t most = a->elements > b->elements ? a->elements : b->elements;
    for (uint64_t from = 0; from < most; from += STEP) {
        const uint8_t *bytes[2] = { NULL, NULL };
        uint64_t values[2] = { 0 };
        for (int k = 0; k < 2; k++) {
            stream *s = &d->streams[k];
            if (from >= s->elements)
                continue;
            bytes[k] = stream_next(s, d->work, from, &values[k]);
            values[k] *= s->per_element;
            if (!bytes[k])
                return false;
        }
        if (!add_step(d, bytes, values))
            return true;
    }
    d->streams[0].at = d->streams[1].at = 0;
    return true;
}

/* ---- the picture ---- */

static bool is_alike(const heft_tensor *a, const heft_tensor *b)
{
    return a->layout == HEFT_DENSE && b->layout == HEFT_DENSE && a->rank == b->rank &&
           (!a->rank || !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims));
}

static void begin(drawing *d, const side sides[2])
{
    heft_tensor t[2] = { { .rank = 0 }, { .rank = 0 } };
    for (int k = 0; k < 2; k++) {
        stream *s = &d->streams[k];
        d->p->figures[k] = summary_of_nothing();
        d->p->figures[k].numeric = s->is_open;
        if (!s->is_open)
            continue;
        t[k] = heft_tensor_at(sides[k].f, sides[k].tensor);
        map_begin(&d->p->maps[k], &t[k], s->elements * s->per_element, s->per_element);
    }
    const stream *a = &d->streams[0], *b = &d->streams[1];
    d->has_difference = a->is_open && b->is_open && is_alike(&t[0], &t[1]) &&
                        a->elements == b->elements && a->per_element == b->per_element;
    d->p->difference = summary_of_nothing();
    d->p->difference.numeric = d->has_difference;
    if (d->has_difference)
        map_begin(&d->p->difference_map, &t[0], a->elements * a->per_element, a->per_element);
}

bool pair_picture_draw(pair_picture *p, work *w, const side sides[2])
{
    drawing d = { .p = p, .work = w };
    memset(p, 0, sizeof *p);
    bool ok = stream_open(&d.streams[0], w, &sides[0]) && stream_open(&d.streams[1], w, &sides[1]);
    if (ok) {
        begin(&d, sides);
        ok = pass(&d);
        for (int k = 0; k < 2; k++)
            summary_end(&p->figures[k]);
        summary_end(&p->difference);
    }
    const summary *a = &p->figures[0], *b = &p->figures[1];
    p->min = a->min < b->min ? a->min : b->min;
    p->max = a->max > b->max ? a->max : b->max;
    if (ok && p->min <= p->max) {
        d.is_second = true;
        ok = pass(&d);
    }
    for (int k = 0; k < 2; k++)
        if (d.streams[k].is_open)
            chunk_reader_close(&d.streams[k].bytes);
    return ok;
}
