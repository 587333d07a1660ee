#include "values/summary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "models/model.h"
#include "models/model_view.h"
#include "text/number_text.h"
#include "values/bins.h"
#include "values/quantiles.h"

enum { BLOCK = 4096 }; /* values converted at a time */

typedef struct stream {
    chunk_reader bytes;
    heft_dtype type;
    uint64_t elements; /* elements not yet read */
    size_t numbers_per_element;
    bool has_quantiles;
    quantiles q;
    bins bins;            /* in the second pass */
    heft_f32_edges edges; /* f32: the same */
    value_counts counts;  /* types with few codes */
} stream;

/* Visit n numbers, which begin at number `at` of the chunk. */
typedef bool (*visit)(summary *s, stream *t, const uint8_t *chunk, uint64_t at, size_t n);

/* ---- first pass ---- */

/* Merge two means and sums of squares (Chan). Until the end of the pass, s->deviation holds the sum
 * of squares. */
static void merge_moments(summary *s, uint64_t n, double mean, double squares)
{
    double all = (double)(s->finite + n), delta = mean - s->mean;
    if (!n)
        return;
    s->mean += delta * (double)n / all;
    s->deviation += squares + delta * delta * (double)s->finite * (double)n / all;
    s->finite += n;
}

/* Independent accumulators, so that an addition need not wait for the previous sum. */
enum { LANES = 8 };

/* Move the finite values to the front and count the others. Return the number of finite values. */
static size_t keep_finite(summary *s, double *values, size_t n)
{
    double probe[LANES] = { 0 }, sum = 0;
    for (size_t i = 0; i < n; i++)
        probe[i % LANES] += values[i] * 0; /* NaN after the first NaN or infinity */
    for (size_t k = 0; k < LANES; k++)
        sum += probe[k];
    if (!isnan(sum))
        return n;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        s->nans += isnan(values[i]) ? 1 : 0;
        s->infinities += isinf(values[i]) ? 1 : 0;
        if (isfinite(values[i]))
            values[kept++] = values[i];
        else if (s->first_not_finite == UINT64_MAX)
            s->first_not_finite = s->count + i;
    }
    return kept;
}

static double mean_of(summary *s, const double *values, size_t n)
{
    double sums[LANES] = { 0 }, sum = 0;
    for (size_t i = 0; i < n; i++) {
        s->min = values[i] < s->min ? values[i] : s->min;
        s->max = values[i] > s->max ? values[i] : s->max;
        s->zeros += values[i] == 0;
        sums[i % LANES] += values[i];
    }
    for (size_t k = 0; k < LANES; k++)
        sum += sums[k];
    return n ? sum / (double)n : 0;
}

static double squares_of(const double *values, size_t n, double mean)
{
    double sums[LANES] = { 0 }, sum = 0;
    for (size_t i = 0; i < n; i++)
        sums[i % LANES] += (values[i] - mean) * (values[i] - mean);
    for (size_t k = 0; k < LANES; k++)
        sum += sums[k];
    return sum;
}

size_t summary_add(summary *s, double *values, size_t n)
{
    size_t finite = keep_finite(s, values, n);
    double mean = mean_of(s, values, finite);
    s->count += n;
    merge_moments(s, finite, mean, squares_of(values, finite, mean));
    return finite;
}

static bool add_values(summary *s, stream *t, const uint8_t *chunk, uint64_t at, size_t n)
{
    double values[BLOCK];
    if (!heft_dtype_to_f64(values, t->type, chunk, at, n))
        return false;
    size_t finite = summary_add(s, values, n);
    if (t->has_quantiles)
        quantiles_count(&t->q, values, finite);
    return true;
}

static bool read_floats(float *out, const uint8_t *chunk, uint64_t at, size_t n)
{
    return heft_dtype_cast(out, HEFT_F32, chunk + at * sizeof *out, HEFT_F32, n);
}

static bool add_floats(summary *s, stream *t, const uint8_t *chunk, uint64_t at, size_t n)
{
    float values[BLOCK];
    if (!read_floats(values, chunk, at, n))
        return false;
    heft_f32_summary b = heft_f32_summarize(values, n);
    if (!b.is_finite)
        return add_values(s, t, chunk, at, n);
    if (t->has_quantiles)
        quantiles_count_floats(&t->q, values, n);
    double mean = b.sum / (double)n;
    s->count += n;
    s->zeros += b.zeros;
    s->min = (double)b.min < s->min ? (double)b.min : s->min;
    s->max = (double)b.max > s->max ? (double)b.max : s->max;
    merge_moments(s, n, mean, heft_f32_squares(values, n, mean));
    return true;
}

/* ---- second pass ---- */

/* Count values into bins; values outside the range are ignored, since the file may have changed
 * since the first pass. */
static bool fill_bins(summary *s, stream *t, const uint8_t *chunk, uint64_t at, size_t n)
{
    double values[BLOCK];
    uint64_t counts[2][SUMMARY_BINS] = { { 0 } };
    if (!heft_dtype_to_f64(values, t->type, chunk, at, n))
        return false;
    if (t->has_quantiles)
        quantiles_refine(&t->q, values, n);
    for (size_t i = 0; i < n; i++)
        if (values[i] >= s->min && values[i] <= s->max)
            counts[i % 2][bin_of(&t->bins, values[i])]++;
    for (size_t i = 0; i < SUMMARY_BINS; i++)
        s->bins[i] += counts[0][i] + counts[1][i];
    return true;
}

static bool fill_float_bins(summary *s, stream *t, const uint8_t *chunk, uint64_t at, size_t n)
{
    float values[BLOCK];
    if (!read_floats(values, chunk, at, n))
        return false;
    if (t->has_quantiles)
        quantiles_refine_floats(&t->q, values, n);
    heft_f32_count(s->bins, values, n, &t->edges);
    return true;
}

/* ---- reading ---- */

static bool visit_chunk(summary *s, stream *t, const uint8_t *bytes, size_t len, visit fn)
{
    uint64_t elements = elements_in(t->type, len, t->elements),
             numbers = elements * t->numbers_per_element;
    t->elements -= elements;
    for (uint64_t at = 0; at < numbers; at += BLOCK)
        if (!fn(s, t, bytes, at, numbers - at < BLOCK ? (size_t)(numbers - at) : BLOCK))
            return false;
    return true;
}

static bool pass(summary *s, work *w, stream *t, visit fn)
{
    uint64_t elements = t->elements;
    for (uint64_t from = 0; from < t->bytes.length;) {
        size_t len = chunk_length(from, t->bytes.length, t->type);
        const uint8_t *bytes = chunk_reader_at(&t->bytes, w, from, len);
        if (!bytes || !work_step(w, len))
            return false;
        if (!visit_chunk(s, t, bytes, len, fn))
            break; /* the type has no numbers, or everything is known */
        from += len;
    }
    t->elements = elements; /* reset for the second pass */
    return true;
}

/* Return true if every finite value of the first pass was counted in the second. */
static bool check_bins(const summary *s, work *w, const stream *t)
{
    heft_error err = { .status = HEFT_E_IO, .offset = HEFT_NOWHERE };
    uint64_t binned = 0;
    for (size_t i = 0; i < SUMMARY_BINS; i++)
        binned += s->bins[i];
    if (binned == s->finite)
        return true;
    snprintf(err.message, sizeof err.message, "the file changed while it was being read");
    work_fail(w, t->bytes.path, &err);
    return false;
}

uint32_t summary_part(const heft_file *f, uint32_t tensor)
{
    uint32_t part = model_values(f, tensor);
    bool is_numeric = part != HEFT_NONE && heft_tensor_at(f, tensor).layout != HEFT_LAYOUT_OTHER &&
                      number_kind_of(heft_part_at(f, part).dtype) != NUMBER_NONE;
    return is_numeric ? part : HEFT_NONE;
}

static bool fail_without_memory(work *w, const char *path)
{
    heft_error err = { .status = HEFT_E_NOMEM, .offset = HEFT_NOWHERE };
    snprintf(err.message, sizeof err.message, "no memory for quantiles");
    work_fail(w, path, &err);
    return false;
}

static bool open_stream(stream *t, work *w, const heft_file *f, const char *path, uint32_t tensor,
                        const summary_options *o)
{
    heft_tensor info = heft_tensor_at(f, tensor);
    uint32_t part = summary_part(f, tensor);
    *t = (stream){ .type = heft_part_at(f, part).dtype, .has_quantiles = o->quantiles };
    t->numbers_per_element = number_kind_of(t->type) == NUMBER_COMPLEX ? 2 : 1;
    t->elements = info.layout == HEFT_DENSE ? tensor_elements(&info) : UINT64_MAX;
    uint64_t most = t->elements < UINT64_MAX / 2 ? t->elements * t->numbers_per_element
                                                 : UINT64_MAX;
    if (!chunk_reader_open(&t->bytes, w, f, path, part, o->checks))
        return false;
    chunk_reader_keep(&t->bytes);
    return !o->quantiles || quantiles_open(&t->q, t->type, most) || fail_without_memory(w, path);
}

void summary_end(summary *s)
{
    if (isnan(s->deviation)) /* infinity minus infinity, or times 0: the squares have overflowed */
        s->deviation = HUGE_VAL;
    s->deviation = s->finite ? sqrt(s->deviation / (double)s->finite) : 0;
}

/* Fill the bins and compute the quantiles. */
static bool second_pass(summary *s, work *w, stream *t)
{
    if (t->has_quantiles && !quantiles_find_ranks(&t->q))
        return fail_without_memory(w, t->bytes.path);
    t->bins = bins_between(s->min, s->max, SUMMARY_BINS);
    if (t->type == HEFT_F32)
        t->edges = float_edges_of(&t->bins);
    if (!pass(s, w, t, t->type == HEFT_F32 ? fill_float_bins : fill_bins) || !check_bins(s, w, t))
        return false;
    s->has_quantiles = t->has_quantiles;
    if (t->has_quantiles)
        quantiles_end(s->quantiles, &t->q, s->min, s->max);
    return true;
}

summary summary_of_nothing(void)
{
    return (summary){ .min = HUGE_VAL, .max = -HUGE_VAL, .first_not_finite = UINT64_MAX };
}

/* ---- types with few codes ---- */

static bool count_codes(summary *s, stream *t, const uint8_t *chunk, uint64_t at, size_t n)
{
    (void)s;
    value_counts_add(&t->counts, chunk + at * heft_dtype_get(t->type)->block_bytes, n);
    return true;
}

static bool find_not_finite(summary *s, stream *t, const uint8_t *chunk, uint64_t at, size_t n)
{
    const uint8_t *bytes = chunk + at * heft_dtype_get(t->type)->block_bytes;
    size_t i = value_counts_find_not_finite(&t->counts, bytes, n);
    s->first_not_finite += i;
    return i == n;
}

/* Add the range, the numbers of values, and their sum. */
static double add_counts(summary *s, stream *t)
{
    double sum = 0;
    for (size_t code = 0; code < t->counts.codes; code++) {
        double v = t->counts.values[code];
        uint64_t n = value_counts_at(&t->counts, code);
        s->count += n;
        s->nans += isnan(v) ? n : 0;
        s->infinities += isinf(v) ? n : 0;
        if (!n || !isfinite(v))
            continue;
        s->zeros += v == 0 ? n : 0;
        s->finite += n;
        s->min = v < s->min ? v : s->min;
        s->max = v > s->max ? v : s->max;
        sum += v * (double)n;
        if (t->has_quantiles)
            quantiles_count_equal(&t->q, v, n);
    }
    return sum;
}

/* Add what depends on the mean and the range. */
static void add_spread(summary *s, stream *t)
{
    t->bins = bins_between(s->min, s->max, SUMMARY_BINS);
    for (size_t code = 0; code < t->counts.codes; code++) {
        double v = t->counts.values[code];
        uint64_t n = value_counts_at(&t->counts, code);
        if (!n || !isfinite(v))
            continue;
        s->deviation += (v - s->mean) * (v - s->mean) * (double)n;
        s->bins[bin_of(&t->bins, v)] += n;
        if (t->has_quantiles)
            quantiles_refine_equal(&t->q, v, n);
    }
}

static bool summarize_counts(summary *s, work *w, stream *t)
{
    if (!value_counts_open(&t->counts, t->type))
        return fail_without_memory(w, t->bytes.path);
    if (!pass(s, w, t, count_codes))
        return false;
    double sum = add_counts(s, t);
    s->mean = s->finite ? sum / (double)s->finite : 0;
    if (t->has_quantiles && !quantiles_find_ranks(&t->q))
        return fail_without_memory(w, t->bytes.path);
    add_spread(s, t);
    summary_end(s);
    s->has_quantiles = t->has_quantiles && s->finite;
    if (s->has_quantiles)
        quantiles_end(s->quantiles, &t->q, s->min, s->max);
    if (s->finite == s->count)
        return true;
    s->first_not_finite = 0;
    return pass(s, w, t, find_not_finite);
}

static bool summarize_values(summary *s, work *w, stream *t)
{
    if (!pass(s, w, t, t->type == HEFT_F32 ? add_floats : add_values))
        return false;
    summary_end(s);
    return !s->finite || second_pass(s, w, t);
}

bool summarize(summary *s, work *w, const heft_file *f, const char *path, uint32_t tensor,
               const summary_options *options)
{
    stream t;
    *s = summary_of_nothing();
    s->numeric = summary_part(f, tensor) != HEFT_NONE;
    if (!s->numeric)
        return true;
    bool ok = open_stream(&t, w, f, path, tensor, options);
    if (ok && value_counts_suit(t.type, elements_in(t.type, t.bytes.length, t.elements)))
        ok = summarize_counts(s, w, &t);
    else if (ok)
        ok = summarize_values(s, w, &t);
    value_counts_close(&t.counts);
    quantiles_close(&t.q);
    chunk_reader_close(&t.bytes);
    return ok;
}

void summary_merge(summary *to, const summary *from)
{
    if (!from->numeric)
        return;
    to->deviation = to->deviation * to->deviation * (double)to->finite;
    merge_moments(to, from->finite, from->mean,
                  from->deviation * from->deviation * (double)from->finite);
    to->deviation = to->finite ? sqrt(to->deviation / (double)to->finite) : 0;
    to->numeric = true;
    to->count += from->count;
    to->zeros += from->zeros;
    to->nans += from->nans;
    to->infinities += from->infinities;
    to->min = from->min < to->min ? from->min : to->min;
    to->max = from->max > to->max ? from->max : to->max;
}

/* ---- many tensors, on all processors ---- */

typedef struct job {
    const session *session;
    const model_view *view;
    const heft_file *f; /* the view of the model */
    const char *path;
    const selection *chosen;
    summary *sums;
    checks checks;
    bool quantiles;
} job;

static void summarize_one(void *ctx, size_t i)
{
    work *w = ctx;
    job *v = w->ctx;
    summary_options options = { v->checks.read, v->quantiles };
    if (work_step(w, 0))
        (void)summarize(&v->sums[i], w, v->f, v->path, selected(v->chosen, (uint32_t)i), &options);
}

/* Register the parts with the elements of tensors. */
static int begin_checks(job *v)
{
    bool ok = true;
    for (uint32_t i = 0; i < v->chosen->count && ok; i++) {
        uint32_t part = summary_part(v->f, selected(v->chosen, i));
        ok = part == HEFT_NONE || checks_add(&v->checks, part);
    }
    return checks_begin(&v->checks, v->session, v->f, v->path);
}

static int compute(job *v)
{
    work w = { .session = v->session, .ctx = v, .path = v->path };
    for (uint32_t i = 0; i < v->chosen->count; i++)
        w.total = add_length(w.total, heft_tensor_bytes(v->f, selected(v->chosen, i)));
    w.total *= 2;
    if (work_run(&w, v->chosen->count, summarize_one))
        return say_error(w.path, &w.err);
    return checks_end(&v->checks, v->path);
}

int statistics_compute(const session *s, summary **out, const model_view *view, const char *path,
                       const selection *chosen, const statistics_options *options)
{
    job v = { .session = s,
              .view = view,
              .f = view->f,
              .path = path,
              .chosen = chosen,
              .quantiles = options->quantiles };
    *out = NULL;
    v.sums = calloc((size_t)chosen->count + 1, sizeof *v.sums);
    if (!v.sums)
        return say_status(HEFT_E_NOMEM, path, "no memory for the results");
    int code = options->verifies ? view_verify_selected(view, s, path, chosen) : CODE_DONE;
    if (!code && options->verifies)
        code = begin_checks(&v);
    if (!code)
        code = compute(&v);
    checks_close(&v.checks);
    if (code)
        free(v.sums);
    else
        *out = v.sums;
    return code;
}
