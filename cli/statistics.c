#include "statistics.h"

#include <stdlib.h>

#include "checks.h"

typedef struct job {
    const heft_file *f;
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
    return checks_begin(&v->checks, v->f, v->path);
}

static int compute(job *v)
{
    work w = { .ctx = v, .path = v->path };
    for (uint32_t i = 0; i < v->chosen->count; i++)
        w.total += 2 * heft_tensor_bytes(v->f, selected(v->chosen, i));
    if (work_run(&w, v->chosen->count, summarize_one))
        return say_error(w.path, &w.err);
    return checks_end(&v->checks, v->path);
}

int statistics_compute(summary **out, const heft_file *f, const char *path, const selection *chosen,
                       const statistics_options *options)
{
    job v = { .f = f, .path = path, .chosen = chosen, .quantiles = options->quantiles };
    *out = NULL;
    v.sums = calloc((size_t)chosen->count + 1, sizeof *v.sums);
    if (!v.sums)
        return say_status(HEFT_E_NOMEM, path, "no memory for the results");
    int code = options->verifies ? begin_checks(&v) : CODE_DONE;
    if (!code)
        code = compute(&v);
    checks_close(&v.checks);
    if (code)
        free(v.sums);
    else
        *out = v.sums;
    return code;
}
