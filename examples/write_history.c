/* write_history.c - write a file tensor by tensor: the weights after each step of a loop.
 *
 *     cc -std=c11 write_history.c -o write_history $(pkg-config --cflags --libs heft)
 *     ./write_history OUT.zt [STEPS [VERSION]]
 *
 * OUT.zt may be a pipe or /dev/stdout.  Each snapshot is a tensor with its own attributes; every
 * fourth one is compressed and has a digest.  The file appears under its name when the loop ends;
 * if the program is killed before, no file appears. */
#include <stdio.h>
#include <stdlib.h>

#include <heft/heft.h>
#include <heft/write.h>

enum { SIDE = 64 };

static float weights[SIDE][SIDE];

/* One step of gradient descent on |w - 1|^2, in place of a real model; return the loss. */
static float train(void)
{
    float loss = 0;
    for (int i = 0; i < SIDE; i++)
        for (int k = 0; k < SIDE; k++) {
            float distance = weights[i][k] - 1;
            loss += distance * distance;
            weights[i][k] -= 0.125f * distance;
        }
    return loss;
}

static heft_status save_step(heft_writer *w, uint32_t step, float loss, heft_error *err)
{
    static const heft_storage compact = { .encoding = HEFT_ZSTD, .level = 3, .digest = "sha256" };
    char name[32];
    int len = snprintf(name, sizeof name, "step.%u.weight", (unsigned)step);
    heft_value attributes[2] = { { .kind = HEFT_KIND_UINT, .key = HEFT_STR("step") },
                                 { .kind = HEFT_KIND_FLOAT, .key = HEFT_STR("loss") } };
    attributes[0].as.u = step;
    attributes[1].as.f = (double)loss;
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    spec.name = (heft_str){ name, (size_t)len };
    spec.dtype = HEFT_F32;
    spec.dims = (const uint64_t[]){ SIDE, SIDE };
    spec.rank = 2;
    spec.storage = step % 4 ? NULL : &compact;
    spec.attributes = attributes;
    spec.attribute_count = 2;
    uint32_t part;
    heft_status st = heft_writer_add_tensor(&part, w, &spec, err);
    return st ? st : heft_writer_write(w, part, weights, sizeof weights, err);
}

static heft_status run(heft_writer *w, uint32_t steps, heft_error *err)
{
    heft_value last = { .kind = HEFT_KIND_FLOAT, .key = HEFT_STR("final_loss") };
    heft_status st = heft_writer_begin(w, err);
    for (uint32_t step = 0; step < steps && !st; step++) {
        float loss = train();
        last.as.f = (double)loss;
        st = save_step(w, step, loss, err);
    }
    return st ? st : heft_writer_add_meta(w, last, err); /* not known before the end */
}

int main(int argc, char **argv)
{
    heft_error err;
    heft_sink *sink = NULL;
    heft_writer *w = NULL;
    heft_write_options options = HEFT_WRITE_OPTIONS_INIT;
    if (argc < 2) {
        fputs("usage: write_history OUT.zt [STEPS [1.1, 1.2 or 2]]\n", stderr);
        return 2;
    }
    options.version = argc > 3 ? argv[3] : "1.2"; /* version 1.0 has no tensor attributes */
    heft_status st = heft_sink_open_file(&sink, argv[1], HEFT_SINK_REPLACE, &err);
    if (!st)
        st = heft_writer_open(&w, heft_format_find(HEFT_STR("ztensor")), sink, &options, &err);
    if (!st)
        st = run(w, argc > 2 ? (uint32_t)atol(argv[2]) : 10, &err);
    if (!st)
        st = heft_writer_finish(w, &err);
    else
        heft_writer_discard(w);
    if (st)
        fprintf(stderr, "%s: %s\n", argv[1], err.message);
    return st != HEFT_OK;
}
