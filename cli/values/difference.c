#include "values/difference.h"

#include <math.h>

double difference_mean_abs(const difference *d)
{
    return d->finite ? d->sum_abs / (double)d->finite : NAN;
}

double difference_rmse(const difference *d)
{
    return d->finite ? sqrt(d->sum_squares / (double)d->finite) : NAN;
}

double difference_nmse(const difference *d)
{
    return d->sum_squares == 0 ? (d->finite ? 0 : NAN)
           : d->squares_b == 0 ? HUGE_VAL
                               : d->sum_squares / d->squares_b;
}

double difference_cosine(const difference *d)
{
    double norms = sqrt(d->squares_a) * sqrt(d->squares_b);
    /* Rounding may exceed the range. */
    return norms > 0 ? fmax(-1, fmin(1, d->products / norms)) : NAN;
}

int statistic_order(double a, double b)
{
    if (isnan(a) || isnan(b))
        return (isnan(a) ? 1 : 0) - (isnan(b) ? 1 : 0);
    return (a < b) - (a > b);
}

void out_statistic(outbuf *o, int digits, double v)
{
    if (isnan(v))
        out_char(o, '-');
    else
        out_format(o, "%.*g", digits, v);
}

void json_statistics(json *j, const difference *d, bool has_numbers, bool has_all)
{
    const struct {
        const char *key;
        double value;
        bool is_left_out;
    } rows[] = {
        { "max_abs", d->max_abs, false },
        { "max_rel", d->max_rel, !has_all },
        { "mean_abs", difference_mean_abs(d), !has_all },
        { "rmse", difference_rmse(d), false },
        { "nmse", difference_nmse(d), false },
        { "cosine", difference_cosine(d), false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].is_left_out)
            continue;
        else if (has_numbers && !isnan(rows[i].value))
            json_member_f64(j, rows[i].key, rows[i].value);
        else
            json_member_null(j, rows[i].key);
}
