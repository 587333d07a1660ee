/* no_quantised_model.c - options about quantised weights in a build without the module 'quantise'.
 * job_mix_prepare() refuses all of them, before an input is open. */
#include "commands/job.h"
#include "models/kept_blocks.h"
#include "values/compare.h"

static int refuse(const char *option)
{
    return command_say_left_out(option, "quantise");
}

/* ---- --quantize, and mixes ---- */

int job_mix_prepare(job *j)
{
    const job_mix *m = &j->mix;
    const struct {
        bool is_given;
        const char *option;
    } rows[] = {
        { j->quantise.args.count, "--quantize" },
        { j->quantise.requantise, "--requantize" },
        { j->quantise.allow_nan, "--allow-nan" },
        { j->verify_quality, "--verify-quality" },
        { j->dequantize, "--dequantize" },
        { m->types.count, "--tensor-type" },
        { m->embedding, "--token-embedding-type" },
        { m->output, "--output-tensor-type" },
        { m->keeps_output, "--leave-output-tensor" },
        { m->pure, "--pure" },
        { m->imatrix, "--imatrix" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].is_given)
            return refuse(rows[i].option);
    return CODE_DONE;
}

int job_mix_choose(job *j, const heft_file *f)
{
    (void)j, (void)f;
    return CODE_DONE;
}

void job_mix_print(outbuf *o, job *j, const heft_file *f)
{
    (void)o, (void)j, (void)f;
}

void job_mix_release(job *j)
{
    (void)j;
}

heft_dtype rules_mix_type(const rules *r, const heft_tensor *t)
{
    (void)r, (void)t;
    return HEFT_UNTYPED;
}

const float *rules_mix_importance(void *ctx, const heft_tensor *t, uint64_t *count)
{
    (void)ctx, (void)t;
    *count = 0;
    return NULL;
}

/* ---- the quantised model ---- */

int quantise(quantised_model *q, const quantise_options *o, const session *s, const heft_file *f,
             const char *path, quantise_output to)
{
    (void)q, (void)o, (void)s, (void)f, (void)path, (void)to;
    return refuse("--quantize");
}

int quantised_end(const quantised_model *q, const session *s, quantise_output to)
{
    (void)q, (void)s, (void)to;
    return CODE_DONE;
}

void quantised_release(quantised_model *q)
{
    *q = (quantised_model){ .plan = NULL };
}

const heft_file *quantised_file(const quantised_model *q)
{
    (void)q;
    return NULL;
}

void quantise_each_method(void (*fn)(void *ctx, const char *name, const char *summary), void *ctx)
{
    (void)fn, (void)ctx;
}

const char *quantise_mix_name(uint64_t file_type)
{
    (void)file_type;
    return NULL;
}

/* ---- --verify-quality ---- */

int quantise_open_quality(heft_quality **out, const session *s, const char *path)
{
    (void)s, (void)path;
    *out = NULL;
    return refuse("--verify-quality");
}

void quantise_close_quality(heft_quality *q)
{
    (void)q;
}

int quality_print(const heft_quality *q, const session *s, int fd, bool as_json)
{
    (void)q, (void)s, (void)fd, (void)as_json;
    return CODE_DONE;
}

int kept_blocks_open(kept_blocks *k, const session *s, const heft_file *f, const char *path,
                     const kept_options *o)
{
    (void)s;
    (void)f;
    (void)path;
    (void)o;
    *k = (kept_blocks){ NULL, NULL };
    return CODE_DONE;
}

const heft_file *kept_blocks_file(const kept_blocks *k)
{
    (void)k;
    return NULL;
}

void kept_blocks_release(kept_blocks *k)
{
    (void)k;
}
