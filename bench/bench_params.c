/* params MODE FILE N - measures the parameter store.
 *
 *     resident FILE THREADS   acquires and releases of resident parameters per second and thread
 *     same FILE THREADS       the same, of one parameter
 *     stream FILE MIB         seconds to acquire all parameters once under a budget of MIB, with
 *                             prefetch, reading one byte per page
 *     sum FILE MIB            like stream, but sum every byte
 *     checked FILE MIB        like sum, and check the digest of each parameter
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heft/params.h>

#include "bench_measure.h"

enum { ROUNDS = 2000000, MAX_THREADS = 64, PREFETCH = 3 };

static heft_params *open_store(const char *path, uint64_t budget, bool check)
{
    heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
    heft_params *p;
    heft_file *f;
    heft_id128 model;
    heft_error err;
    opt.budget = budget;
    opt.check_parts = check;
    if (heft_file_open(&f, path, NULL, &err) || heft_params_open(&p, &opt, &err) ||
        heft_params_add(&model, p, f, &err))
        die(path, err.message);
    return p;
}

static void use(heft_params *p, heft_id128 key)
{
    heft_param w;
    heft_error err;
    if (heft_params_acquire(&w, p, key, &err))
        die("acquire", err.message);
    keep(w.data);
    heft_params_release(p, key);
}

static void *use_one(void *arg)
{
    heft_params *p = arg;
    heft_id128 key = heft_params_key_at(p, 0);
    for (int i = 0; i < ROUNDS; i++)
        use(p, key);
    return NULL;
}

static void *use_many(void *arg)
{
    heft_params *p = arg;
    uint32_t n = heft_params_count(p), r = 1;
    for (int i = 0; i < ROUNDS; i++) {
        r = r * 1664525 + 1013904223;
        use(p, heft_params_key_at(p, (uint32_t)((uint64_t)r * n >> 32)));
    }
    return NULL;
}

static void resident(const char *path, unsigned threads, void *(*use_resident)(void *p))
{
    heft_params *p = open_store(path, 0, false);
    pthread_t t[MAX_THREADS];
    threads = threads < MAX_THREADS ? threads : MAX_THREADS;
    for (uint32_t i = 0; i < heft_params_count(p); i++)
        use(p, heft_params_key_at(p, i));
    double begin = now();
    for (unsigned i = 0; i < threads; i++)
        if (pthread_create(&t[i], NULL, use_resident, p))
            die("thread", "cannot be created");
    for (unsigned i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
    printf("%.0f\n", ROUNDS / (now() - begin));
    heft_params_close(p);
}

static uint64_t sum(const heft_param *w)
{
    uint64_t s[4] = { 0 }, word[4];
    const uint8_t *p = w->data;
    for (uint64_t at = 0; at + sizeof word <= w->bytes; at += sizeof word) {
        memcpy(word, p + at, sizeof word);
        for (int i = 0; i < 4; i++)
            s[i] += word[i];
    }
    return s[0] + s[1] + s[2] + s[3];
}

static uint64_t touch_pages(const heft_param *w)
{
    uint64_t s = 0;
    for (uint64_t at = 0; at < w->bytes; at += 4096)
        s += ((const uint8_t *)w->data)[at];
    return s;
}

static void stream(const char *path, uint64_t mib, uint64_t (*use_bytes)(const heft_param *w),
                   bool check)
{
    heft_params *p = open_store(path, mib << 20, check);
    uint32_t n = heft_params_count(p);
    heft_id128 *keys = malloc((n + 1) * sizeof *keys);
    uint64_t all = 0;
    heft_error err;
    heft_param w;
    for (uint32_t i = 0; keys && i < n; i++)
        keys[i] = heft_params_key_at(p, i);
    double begin = now();
    if (keys)
        heft_params_prefetch(p, keys, n < PREFETCH ? n : PREFETCH);
    for (uint32_t i = 0; keys && i < n; i++) {
        if (i + PREFETCH < n)
            heft_params_prefetch(p, &keys[i + PREFETCH], 1);
        if (heft_params_acquire(&w, p, keys[i], &err))
            die(path, err.message);
        all += use_bytes(&w);
        heft_params_release(p, keys[i]);
    }
    double took = now() - begin;
    keep(&all);
    printf("%.6f\n", took);
    free(keys);
    heft_params_close(p);
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "resident"))
        resident(argv[2], (unsigned)strtoul(argv[3], NULL, 10), use_many);
    else if (argc == 4 && !strcmp(argv[1], "same"))
        resident(argv[2], (unsigned)strtoul(argv[3], NULL, 10), use_one);
    else if (argc == 4 && !strcmp(argv[1], "stream"))
        stream(argv[2], strtoull(argv[3], NULL, 10), touch_pages, false);
    else if (argc == 4 && !strcmp(argv[1], "sum"))
        stream(argv[2], strtoull(argv[3], NULL, 10), sum, false);
    else if (argc == 4 && !strcmp(argv[1], "checked"))
        stream(argv[2], strtoull(argv[3], NULL, 10), sum, true);
    else
        die("params", "usage: params resident|same|stream|sum|checked FILE N");
    return 0;
}
