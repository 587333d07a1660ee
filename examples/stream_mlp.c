/* stream_mlp.c - run a stack of layers that need not fit into memory.
 *
 *     cc -std=c11 stream_mlp.c -o stream_mlp $(pkg-config --cflags --libs heft) -lm
 *     ./stream_mlp MODEL [BUDGET_MIB]
 *
 * MODEL, in any format, has f32 matrices layers.0.weight, layers.1.weight, ... of shape [n, n].
 * Each matrix is acquired for its layer, while the next one is prefetched, and released afterwards;
 * released matrices are evicted when the budget is reached.  Without a budget everything stays in
 * memory.  Prints the first eight outputs, and statistics to stderr. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <heft/params.h>

static void die(const char *what, const heft_error *err)
{
    fprintf(stderr, "stream_mlp: %s: %s\n", what, err->message);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* y = tanh(W x) / sqrt(n) */
static void forward(float *y, const heft_param *w, const float *x)
{
    size_t n = (size_t)w->dims[0];
    const float *row = w->data;
    for (size_t i = 0; i < n; i++, row += n) {
        float sum[8] = { 0 };
        size_t k = 0;
        for (; k + 8 <= n; k += 8)
            for (size_t j = 0; j < 8; j++)
                sum[j] += row[k + j] * x[k + j];
        for (; k < n; k++)
            sum[0] += row[k] * x[k];
        float total = 0;
        for (size_t j = 0; j < 8; j++)
            total += sum[j];
        y[i] = tanhf(total) / sqrtf((float)n);
    }
}

/* Find the keys of layers.0.weight, layers.1.weight, ...; return their number, at most max. */
static size_t find_layers(heft_id128 *keys, size_t max, heft_params *p, heft_id128 model)
{
    size_t n = 0;
    char name[64];
    for (; n < max; n++) {
        int len = snprintf(name, sizeof name, "layers.%zu.weight", n);
        if (!heft_params_find(&keys[n], p, model, (heft_str){ name, (size_t)len }))
            break;
    }
    return n;
}

static void run_layer(heft_params *p, const heft_id128 *keys, size_t i, size_t n, float **x,
                      float **y)
{
    heft_error err;
    heft_param w;
    if (i + 1 < n)
        heft_params_prefetch(p, &keys[i + 1], 1);
    if (heft_params_acquire(&w, p, keys[i], &err))
        die("layer", &err);
    forward(*y, &w, *x);
    heft_params_release(p, keys[i]);
    float *swap = *x;
    *x = *y;
    *y = swap;
}

/* Return n, the size of the square matrices. */
static size_t find_width(heft_params *p, heft_id128 key)
{
    heft_error err;
    heft_param w;
    if (heft_params_acquire(&w, p, key, &err))
        die("layer", &err);
    size_t n = w.rank == 2 && w.dims[0] == w.dims[1] && w.dtype == HEFT_F32 ? (size_t)w.dims[0] : 0;
    heft_params_release(p, key);
    if (!n) {
        fputs("stream_mlp: layers must be square matrices of f32\n", stderr);
        exit(1);
    }
    return n;
}

static void print_peak(void)
{
    char line[128];
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, "VmHWM", 5))
            fprintf(stderr, "peak memory      %s", line + 6);
    if (f)
        fclose(f);
}

static void report(const heft_params *p, double seconds)
{
    heft_params_stats s = heft_params_statistics(p);
    uint64_t uses = s.hits + s.stalls;
    fprintf(stderr, "time             %.3f s\n", seconds);
    fprintf(stderr, "bytes loaded     %" PRIu64 " (%.2f GB/s)\n", s.bytes_loaded,
            (double)s.bytes_loaded / seconds / 1e9);
    fprintf(stderr, "hit rate         %.0f %% of %" PRIu64 ", %" PRIu64 " evictions\n",
            uses ? 100.0 * (double)s.hits / (double)uses : 0, uses, s.evictions);
    fprintf(stderr, "peak resident    %" PRIu64 " bytes\n", s.peak);
    print_peak();
}

int main(int argc, char **argv)
{
    enum { MAX_LAYERS = 4096, PASSES = 2 };
    static heft_id128 keys[MAX_LAYERS];
    heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
    heft_params *p = NULL;
    heft_file *f = NULL;
    heft_id128 model;
    heft_error err;
    if (argc < 2) {
        fputs("usage: stream_mlp MODEL [BUDGET_MIB]\n", stderr);
        return 2;
    }
    opt.budget = argc > 2 ? strtoull(argv[2], NULL, 10) << 20 : 0;
    if (heft_file_open(&f, argv[1], NULL, &err) || heft_params_open(&p, &opt, &err))
        die(argv[1], &err);
    if (heft_params_add(&model, p, f, &err))
        die(argv[1], &err);
    size_t layers = find_layers(keys, MAX_LAYERS, p, model),
           n = layers ? find_width(p, keys[0]) : 0;
    float *x = calloc(n + 1, sizeof *x), *y = calloc(n + 1, sizeof *y);
    for (size_t i = 0; x && i < n; i++)
        x[i] = (float)(i % 17) / 17.0f - 0.5f;
    double start = now();
    for (int pass = 0; x && y && pass < PASSES; pass++)
        for (size_t i = 0; i < layers; i++)
            run_layer(p, keys, i, layers, &x, &y);
    for (size_t i = 0; x && i < n && i < 8; i++)
        printf("%.9g\n", (double)x[i]);
    report(p, now() - start);
    free(x);
    free(y);
    heft_params_close(p);
    return 0;
}
