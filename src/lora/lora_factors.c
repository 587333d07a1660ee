/* lora_factors.c - finds two matrices of low rank whose product is nearest to the difference D of
 * two weights, by subspace iteration.
 *
 * D is never in memory: each pass reads both weights in strips and multiplies the strip by a narrow
 * matrix.  Y = D @ (random signs) spans nearly the directions in which D is largest; Z = Q' D and
 * Y = D Z', with Q and Z made orthonormal in between, brings them closer.  The eigenvectors of the
 * small matrix Z Z' then order the directions, and the first of them are kept.  The last pass adds
 * the squares of what the product leaves of D, in f64. */
#include "base/checked_math.h"
#include "base/error.h"
#include "lora/extraction.h"
#include "lora/merging.h"
#include "model/products.h"

enum { STRIP = HEFT_COMBINE_STRIP, ALIGN = 64, MORE = 8, TURNS = 2, MOST_SWEEPS = 30 };
static const char purpose[] = "to extract an adapter";

typedef struct finding {
    heft_factors *f;
    const heft_extracted_row *row;
    uint64_t rows, columns;
    size_t wide, rank; /* columns of the narrow matrices, and those that are kept */
    uint64_t height;   /* rows that are read at once */
    float *y;          /* rows x wide */
    float *z;          /* wide x columns */
    float *turned;     /* columns x wide, z transposed */
    float *strip, *other;
    float *part;                        /* wide x height: rows of y, transposed */
    double *small, *vectors, *singular; /* wide x wide, wide x wide, wide */
    heft_error *err;
} finding;

/* ---- memory ---- */

static bool take(uint8_t **at, size_t *left, void *out, uint64_t count, size_t size)
{
    uint64_t bytes;
    if (!heft_mul(&bytes, count, size) || !heft_align_up(&bytes, bytes, ALIGN) ||
        (*at && bytes > *left) || bytes > SIZE_MAX - *left)
        return false;
    if (*at) {
        memcpy(out, at, sizeof *at);
        *at += bytes;
        *left -= (size_t)bytes;
    } else {
        *left += (size_t)bytes;
    }
    return true;
}

/* Divide the memory at `at`, or with NULL count the bytes. */
static bool divide(finding *g, uint8_t *at, size_t *left)
{
    uint64_t wide = g->wide;
    return take(&at, left, &g->f->up, g->rows * g->rank, sizeof(float)) &&
           take(&at, left, &g->f->down, g->rank * g->columns, sizeof(float)) &&
           take(&at, left, &g->y, g->rows * wide, sizeof(float)) &&
           take(&at, left, &g->z, wide * g->columns, sizeof(float)) &&
           take(&at, left, &g->turned, g->columns * wide, sizeof(float)) &&
           take(&at, left, &g->strip, STRIP, sizeof(float)) &&
           take(&at, left, &g->other, STRIP, sizeof(float)) &&
           take(&at, left, &g->part, wide * g->height, sizeof(float)) &&
           take(&at, left, &g->small, wide * wide, sizeof(double)) &&
           take(&at, left, &g->vectors, wide * wide, sizeof(double)) &&
           take(&at, left, &g->singular, wide, sizeof(double));
}

static heft_status allocate(finding *g)
{
    heft_factors *f = g->f;
    size_t bytes = 0;
    if (!divide(g, NULL, &bytes))
        return heft_error_no_memory(g->err, purpose);
    if (bytes > f->bytes) {
        heft_free(f->al, f->memory, f->bytes, ALIGN);
        f->memory = heft_alloc(f->al, bytes, ALIGN);
        f->bytes = f->memory ? bytes : 0;
    }
    if (!f->memory)
        return heft_error_no_memory(g->err, purpose);
    bytes = f->bytes;
    return divide(g, f->memory, &bytes) ? HEFT_OK : heft_error_no_memory(g->err, purpose);
}

/* ---- passes ---- */

typedef struct box {
    uint64_t row, column;
    size_t rows, columns;
} box;

/* Read D in boxes, rows as a whole if they fit, and call fn for each. */
static heft_status pass(finding *g, void (*fn)(finding *g, const box *b, double *sum), double *sum)
{
    uint64_t width = g->columns < STRIP ? g->columns : STRIP;
    for (uint64_t i = 0, rows; i < g->rows; i += rows) {
        rows = g->rows - i < g->height ? g->rows - i : g->height;
        for (uint64_t k = 0, columns; k < g->columns; k += columns) {
            columns = g->columns - k < width ? g->columns - k : width;
            box b = { i, k, (size_t)rows, (size_t)columns };
            uint64_t from = i * g->columns + k;
            size_t n = b.rows * b.columns;
            HEFT_TRY(heft_combine_read(&g->f->tuned, &g->row->tuned, from, n, g->strip, g->err));
            HEFT_TRY(heft_combine_read(&g->f->base, &g->row->base, from, n, g->other, g->err));
            for (size_t e = 0; e < n; e++)
                g->strip[e] -= g->other[e];
            fn(g, &b, sum);
        }
    }
    return HEFT_OK;
}

static void add_squares(const float *x, size_t n, double *sum)
{
    for (size_t i = 0; i < n; i++)
        *sum += (double)x[i] * (double)x[i];
}

/* Y += D @ turned */
static void multiply_right(finding *g, const box *b, double *sum)
{
    heft_products p = { .out = g->y + b->row * g->wide,
                        .stride = g->wide,
                        .rows = b->rows,
                        .columns = g->wide,
                        .left = g->strip,
                        .rank = b->columns,
                        .right = g->turned + b->column * g->wide,
                        .right_stride = g->wide,
                        .scale = 1 };
    heft_products_add(&p);
    if (sum)
        add_squares(g->strip, b->rows * b->columns, sum);
}

/* Z += Y' @ D */
static void multiply_left(finding *g, const box *b, double *sum)
{
    (void)sum;
    for (size_t i = 0; i < b->rows; i++)
        for (size_t k = 0; k < g->wide; k++)
            g->part[k * b->rows + i] = g->y[(b->row + i) * g->wide + k];
    heft_products p = { .out = g->z + b->column,
                        .stride = (size_t)g->columns,
                        .rows = g->wide,
                        .columns = b->columns,
                        .left = g->part,
                        .rank = b->rows,
                        .right = g->strip,
                        .right_stride = b->columns,
                        .scale = 1 };
    heft_products_add(&p);
}

/* Add the squares of D - up @ down. */
static void measure(finding *g, const box *b, double *sum)
{
    heft_products p = { .out = g->strip,
                        .stride = b->columns,
                        .rows = b->rows,
                        .columns = b->columns,
                        .left = g->f->up + b->row * g->rank,
                        .rank = g->rank,
                        .right = g->f->down + b->column,
                        .right_stride = (size_t)g->columns,
                        .scale = -1 };
    heft_products_add(&p);
    add_squares(g->strip, b->rows * b->columns, sum);
}

/* ---- narrow matrices ---- */

/* Make `count` vectors orthonormal, twice, since once is not exact; one that depends on those
 * before it becomes 0.  Element e of vector v is x[v * vector + e * element]. */
static void orthonormalise(float *x, size_t count, size_t vector, uint64_t length, size_t element)
{
    for (size_t v = 0; v < count; v++) {
        float *of = x + v * vector;
        double before = 0, norm = 0;
        for (uint64_t e = 0; e < length; e++)
            before += (double)of[e * element] * (double)of[e * element];
        for (size_t k = 0; k < 2 * v; k++) {
            const float *by = x + k % v * vector;
            double dot = 0;
            for (uint64_t e = 0; e < length; e++)
                dot += (double)of[e * element] * (double)by[e * element];
            for (uint64_t e = 0; e < length; e++)
                of[e * element] = (float)((double)of[e * element] - dot * (double)by[e * element]);
        }
        for (uint64_t e = 0; e < length; e++)
            norm += (double)of[e * element] * (double)of[e * element];
        double by = norm > before * 0x1p-40 ? 1 / heft_lora_square_root(norm) : 0;
        for (uint64_t e = 0; e < length; e++)
            of[e * element] = (float)((double)of[e * element] * by);
    }
}

static void turn(finding *g)
{
    for (size_t k = 0; k < g->wide; k++)
        for (uint64_t c = 0; c < g->columns; c++)
            g->turned[c * g->wide + k] = g->z[k * g->columns + c];
}

/* Fill with random signs, by the generator SplitMix64. */
static void fill_signs(float *x, uint64_t n, uint64_t seed)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t r = seed + (i + 1) * UINT64_C(0x9E3779B97F4A7C15);
        r = (r ^ r >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
        r = (r ^ r >> 27) * UINT64_C(0x94D049BB133111EB);
        x[i] = (r ^ r >> 31) >> 63 ? 1.0F : -1.0F;
    }
}

static void clear(float *x, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        x[i] = 0;
}

/* ---- the small matrix ---- */

/* Turn rows and columns p and q of the small matrix so that element (p, q) becomes 0. */
static void rotate(finding *g, size_t p, size_t q)
{
    size_t n = g->wide;
    double *a = g->small, *v = g->vectors, apq = a[p * n + q];
    if (apq == 0)
        return;
    double half = (a[q * n + q] - a[p * n + p]) / (2 * apq);
    double size = half < 0 ? -half : half;
    double t = 1 / (size + heft_lora_square_root(half * half + 1));
    t = half < 0 ? -t : t;
    double c = 1 / heft_lora_square_root(t * t + 1), s = t * c;
    for (size_t k = 0; k < n; k++) {
        double x = a[k * n + p], y = a[k * n + q];
        a[k * n + p] = c * x - s * y;
        a[k * n + q] = s * x + c * y;
    }
    for (size_t k = 0; k < n; k++) {
        double x = a[p * n + k], y = a[q * n + k];
        a[p * n + k] = c * x - s * y;
        a[q * n + k] = s * x + c * y;
    }
    for (size_t k = 0; k < n; k++) {
        double x = v[k * n + p], y = v[k * n + q];
        v[k * n + p] = c * x - s * y;
        v[k * n + q] = s * x + c * y;
    }
}

/* Find the eigenvectors of Z Z', by the method of Jacobi. */
static void find_vectors(finding *g)
{
    size_t n = g->wide;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            double sum = 0;
            for (uint64_t c = 0; c < g->columns; c++)
                sum += (double)g->z[i * g->columns + c] * (double)g->z[k * g->columns + c];
            g->small[i * n + k] = sum;
            g->vectors[i * n + k] = i == k;
        }
    for (int sweep = 0; sweep < MOST_SWEEPS; sweep++) {
        double off = 0, on = 0;
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < n; k++)
                *(i == k ? &on : &off) += g->small[i * n + k] * g->small[i * n + k];
        if (off <= on * 0x1p-90)
            return;
        for (size_t p = 0; p + 1 < n; p++)
            for (size_t q = p + 1; q < n; q++)
                rotate(g, p, q);
    }
}

/* Return the number of the largest eigenvalue that is left, and take it out. */
static size_t next_largest(finding *g, double *value)
{
    size_t n = g->wide, best = 0;
    for (size_t i = 1; i < n; i++)
        best = g->singular[i] > g->singular[best] ? i : best;
    *value = g->singular[best];
    g->singular[best] = -1;
    return best;
}

/* Set column k of `up` and row k of `down` to the direction with the k-th largest singular value,
 * which both share equally. */
static void set_factors(finding *g)
{
    size_t n = g->wide;
    for (size_t i = 0; i < n; i++)
        g->singular[i] = g->small[i * n + i];
    for (size_t k = 0; k < g->rank; k++) {
        double value;
        size_t at = next_largest(g, &value);
        double root = value > 0 ? heft_lora_square_root(heft_lora_square_root(value)) : 0;
        double by = root > 0 ? 1 / root : 0;
        for (uint64_t i = 0; i < g->rows; i++) {
            double sum = 0;
            for (size_t v = 0; v < n; v++)
                sum += (double)g->y[i * n + v] * g->vectors[v * n + at];
            g->f->up[i * g->rank + k] = (float)(sum * root);
        }
        for (uint64_t c = 0; c < g->columns; c++) {
            double sum = 0;
            for (size_t v = 0; v < n; v++)
                sum += g->vectors[v * n + at] * (double)g->z[v * g->columns + c];
            g->f->down[k * g->columns + c] = (float)(sum * by);
        }
    }
}

/* ---- the call ---- */

static heft_status iterate(finding *g, uint64_t seed)
{
    double squares = 0, left = 0;
    fill_signs(g->turned, g->columns * g->wide, seed);
    clear(g->y, g->rows * g->wide);
    HEFT_TRY(pass(g, multiply_right, &squares));
    for (int i = 0; i <= TURNS; i++) {
        orthonormalise(g->y, g->wide, 1, g->rows, g->wide);
        clear(g->z, g->wide * g->columns);
        HEFT_TRY(pass(g, multiply_left, NULL));
        if (i == TURNS)
            break;
        orthonormalise(g->z, g->wide, (size_t)g->columns, g->columns, 1);
        turn(g);
        clear(g->y, g->rows * g->wide);
        HEFT_TRY(pass(g, multiply_right, NULL));
    }
    find_vectors(g);
    set_factors(g);
    HEFT_TRY(pass(g, measure, &left));
    g->f->difference = heft_lora_square_root(squares);
    g->f->remainder = heft_lora_square_root(left);
    return HEFT_OK;
}

/* The random numbers depend on the name, not on the place of a weight: FNV-1a. */
static uint64_t seed_of(heft_str name, uint64_t seed)
{
    uint64_t h = UINT64_C(0xCBF29CE484222325) ^ seed;
    for (size_t i = 0; i < name.len; i++)
        h = (h ^ (uint8_t)name.ptr[i]) * UINT64_C(0x100000001B3);
    return h;
}

heft_status heft_factors_find(heft_factors *f, const heft_extracted_row *row, uint64_t seed,
                              heft_error *err)
{
    uint64_t least = row->rows < row->columns ? row->rows : row->columns;
    if (f->of == row)
        return HEFT_OK;
    f->of = NULL;
    f->al = row->tuned.f->host->allocator;
    finding g = { .f = f, .row = row, .rows = row->rows, .columns = row->columns, .err = err };
    g.rank = row->item.rank;
    g.wide = least - g.rank < MORE ? (size_t)least : g.rank + MORE;
    g.height = row->columns < STRIP ? heft_div(STRIP, row->columns) : 1;
    HEFT_TRY(allocate(&g));
    HEFT_TRY(iterate(&g, seed_of(row->item.name, seed)));
    f->of = row;
    return HEFT_OK;
}

void heft_factors_free(heft_factors *f)
{
    heft_combine_reader_free(&f->base);
    heft_combine_reader_free(&f->tuned);
    if (f->memory)
        heft_free(f->al, f->memory, f->bytes, ALIGN);
}
