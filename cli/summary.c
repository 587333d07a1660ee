#include "summary.h"

#include <math.h>
#include <stdio.h>

#include "model.h"
#include "number_text.h"

enum { BLOCK = 4096 }; /* doubles converted at a time */

typedef struct stream {
    chunk_reader bytes;
    heft_dtype type;
    uint64_t elements; /* elements not yet read */
    size_t numbers_per_element;
    bool has_quantiles;
    quantiles q;
} stream;

typedef void (*visit)(summary *s, stream *t, double *values, size_t n);

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

static void add_values(summary *s, stream *t, double *values, size_t n)
{
    size_t finite = keep_finite(s, values, n);
    s->count += n;
    n = finite;
    if (t->has_quantiles)
        quantiles_count(&t->q, values, n);
    double mean = mean_of(s, values, n);
    merge_moments(s, n, mean, squares_of(values, n, mean));
}

/* ---- second pass ---- */

/* Count values into bins; values outside the range are ignored, since the file may have changed
 * since the first pass. Values are halved because max - min may overflow a double. */
static void fill_bins(summary *s, stream *t, double *values, size_t n)
{
    if (t->has_quantiles)
        quantiles_refine(&t->q, values, n);
    double low = s->min / 2, range = s->max / 2 - low;
    double scale = range > 1e-300 ? SUMMARY_BINS / range : 0;
    uint64_t bins[2][SUMMARY_BINS] = { { 0 } };
    for (size_t i = 0; i < n; i++) {
        double v = values[i], at = (v / 2 - low) * scale;
        if (v >= s->min && v <= s->max)
            bins[i % 2][!(at > 0) ? 0 : at < SUMMARY_BINS ? (size_t)at : SUMMARY_BINS - 1]++;
    }
    for (size_t i = 0; i < SUMMARY_BINS; i++)
        s->bins[i] += bins[0][i] + bins[1][i];
}

/* ---- reading ---- */

static void visit_chunk(summary *s, stream *t, const uint8_t *bytes, size_t len, visit fn)
{
    double values[BLOCK];
    uint64_t elements = elements_in(t->type, len, t->elements),
             numbers = elements * t->numbers_per_element;
    t->elements -= elements;
    for (uint64_t at = 0; at < numbers; at += BLOCK) {
        size_t n = numbers - at < BLOCK ? (size_t)(numbers - at) : BLOCK;
        if (!heft_dtype_to_f64(values, t->type, bytes, at, n))
            return;
        fn(s, t, values, n);
    }
}

static bool pass(summary *s, work *w, stream *t, visit fn)
{
    uint64_t elements = t->elements;
    for (uint64_t from = 0; from < t->bytes.length;) {
        size_t len = chunk_length(from, t->bytes.length, t->type);
        const uint8_t *bytes = chunk_reader_at(&t->bytes, w, from, len);
        if (!bytes || !work_step(w, len))
            return false;
        visit_chunk(s, t, bytes, len, fn);
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
    return !o->quantiles || quantiles_open(&t->q, t->type, most) || fail_without_memory(w, path);
}

/* Fill the bins and compute the quantiles. */
static bool second_pass(summary *s, work *w, stream *t)
{
    if (t->has_quantiles && !quantiles_find_ranks(&t->q))
        return fail_without_memory(w, t->bytes.path);
    if (!pass(s, w, t, fill_bins) || !check_bins(s, w, t))
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

bool summarise(summary *s, work *w, const heft_file *f, const char *path, uint32_t tensor,
               const summary_options *options)
{
    stream t;
    *s = summary_of_nothing();
    s->numeric = summary_part(f, tensor) != HEFT_NONE;
    if (!s->numeric)
        return true;
    bool ok = open_stream(&t, w, f, path, tensor, options) && pass(s, w, &t, add_values);
    if (isnan(s->deviation)) /* infinity minus infinity, or times 0: the squares have overflowed */
        s->deviation = HUGE_VAL;
    s->deviation = s->finite ? sqrt(s->deviation / (double)s->finite) : 0;
    if (ok && s->finite)
        ok = second_pass(s, w, &t);
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
