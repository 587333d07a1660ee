/* train_loop.c - train a small model, and save checkpoints, from which the next run continues.
 *
 *     cc -std=c11 train_loop.c -o train_loop $(pkg-config --cflags --libs heft)
 *     ./train_loop CHECKPOINT.mag [STEPS]
 *
 * A run takes STEPS further steps, 1000 by default, and replaces the checkpoint after every 100
 * steps. A program that is killed leaves the previous checkpoint unchanged. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <heft/heft.h>
#include <heft/write.h>

enum { INPUTS = 3, SAMPLES = 64, SAVE_EVERY = 100 };

typedef struct model {
    float weight[INPUTS], bias;
    uint64_t step;
} model;

/* Return the loss on y = x0 - 2 x1 + 3 x2 + 0.5, after one step of gradient descent. */
static float train(model *m)
{
    float loss = 0, slope[INPUTS + 1] = { 0 };
    for (int i = 0; i < SAMPLES; i++) {
        float x[INPUTS] = { (float)(i % 4) / 4, (float)(i / 4 % 4) / 4, (float)(i / 16) / 4 };
        float error = m->bias - (x[0] - 2 * x[1] + 3 * x[2] + 0.5f);
        for (int k = 0; k < INPUTS; k++)
            error += m->weight[k] * x[k];
        for (int k = 0; k < INPUTS; k++)
            slope[k] += error * x[k] / SAMPLES;
        slope[INPUTS] += error / SAMPLES;
        loss += error * error / SAMPLES;
    }
    for (int k = 0; k < INPUTS; k++)
        m->weight[k] -= 0.1f * slope[k];
    m->bias -= 0.1f * slope[INPUTS];
    m->step++;
    return loss;
}

static heft_status save(const char *path, const model *m, float loss, heft_error *err)
{
    static const uint64_t inputs[] = { INPUTS }, one[] = { 1 };
    heft_value meta[2] = { { .kind = HEFT_KIND_INT, .key = HEFT_STR("step") },
                           { .kind = HEFT_KIND_FLOAT, .key = HEFT_STR("loss") } };
    meta[0].as.i = (int64_t)m->step;
    meta[1].as.f = (double)loss;
    const heft_array arrays[] = {
        { HEFT_STR("weight"), m->weight, sizeof m->weight, inputs, 1, HEFT_F32, NULL },
        { HEFT_STR("bias"), &m->bias, sizeof m->bias, one, 1, HEFT_F32, NULL },
    };
    heft_save_options options = HEFT_SAVE_OPTIONS_INIT;
    options.flags = HEFT_SINK_REPLACE;
    options.meta = meta;
    options.meta_count = 2;
    return heft_array_save(path, arrays, 2, &options, err);
}

/* Read the checkpoint; leave the model unchanged if there is no checkpoint. */
static heft_status resume(const char *path, model *m, heft_error *err)
{
    heft_file *f;
    heft_array a;
    heft_status st = heft_file_open(&f, path, NULL, err);
    if (st)
        return err->os == ENOENT ? HEFT_OK : st;
    st = heft_array_read(&a, f, HEFT_STR("weight"), HEFT_F32, m->weight, sizeof m->weight, err);
    if (!st)
        st = heft_array_read(&a, f, HEFT_STR("bias"), HEFT_F32, &m->bias, sizeof m->bias, err);
    heft_value step;
    if (!st && heft_meta_find(&step, f, HEFT_STR("step")) && step.kind == HEFT_KIND_INT)
        m->step = (uint64_t)step.as.i;
    heft_file_close(f);
    return st;
}

int main(int argc, char **argv)
{
    heft_error err;
    model m = { .step = 0 };
    if (argc < 2)
        return fputs("usage: train_loop CHECKPOINT.mag [STEPS]\n", stderr), 2;
    heft_status st = resume(argv[1], &m, &err);
    uint64_t end = m.step + (argc > 2 ? strtoull(argv[2], NULL, 10) : 1000);
    while (!st && m.step < end) {
        float loss = train(&m);
        if (m.step % SAVE_EVERY)
            continue;
        st = save(argv[1], &m, loss, &err);
        printf("step %llu: loss %.6f\n", (unsigned long long)m.step, (double)loss);
    }
    if (st)
        fprintf(stderr, "%s: %s\n", argv[1], err.message);
    return st != HEFT_OK;
}
