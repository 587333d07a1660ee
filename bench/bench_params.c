/* params MODE FILE N - measures the parameter store.
 *
 *     resident FILE THREADS   acquires and releases of resident parameters per second and thread,
 *                             each thread with parameters of its own
 *     mixed FILE THREADS      the same, each thread with all parameters
 *     same FILE THREADS       the same, all threads with one parameter
 *     atomics FILE THREADS    two atomic additions instead, in memory of the thread's own
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

enum { ROUNDS = 10000000, MAX_THREADS = 64, PREFETCH = 3 };

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

typedef struct user { /* a thread that uses `count` parameters from the first on */
    heft_params *p;
    uint32_t first, count, seed;
    pthread_t thread;
} user;

static void *use_some(void *arg)
{
    const user *u = arg;
    uint32_t r = u->seed;
    for (int i = 0; i < ROUNDS; i++) {
        r = r * 1664525 + 1013904223;
        uint32_t n = (uint32_t)((uint64_t)r * u->count >> 32);
        use(u->p, heft_params_key_at(u->p, u->first + n));
    }
    return NULL;
}

/* Two atomic additions per round, to memory that no other thread uses. */
static void *add_twice(void *unused)
{
    _Alignas(128) atomic_ulong own[16] = { 0 };
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        atomic_fetch_add(own, 2);
        atomic_fetch_sub(own, 1);
    }
    return NULL;
}

static user user_of(const char *how, heft_params *p, uint32_t i, uint32_t threads)
{
    uint32_t all = heft_params_count(p), own = all / threads;
    if (!strcmp(how, "same"))
        return (user){ .p = p, .count = 1, .seed = i + 1 };
    return !strcmp(how, "mixed") ? (user){ .p = p, .count = all, .seed = i + 1 }
                                 : (user){ .p = p, .first = i * own, .count = own, .seed = i + 1 };
}

static void resident(const char *path, const char *how, unsigned threads)
{
    heft_params *p = open_store(path, 0, false);
    user users[MAX_THREADS];
    if (!threads || threads > MAX_THREADS || threads > heft_params_count(p))
        die("params", "too few or too many threads");
    for (uint32_t i = 0; i < heft_params_count(p); i++)
        use(p, heft_params_key_at(p, i));
    bool is_bare = !strcmp(how, "atomics");
    double begin = now();
    for (unsigned i = 0; i < threads; i++) {
        users[i] = user_of(how, p, i, threads);
        if (pthread_create(&users[i].thread, NULL, is_bare ? add_twice : use_some, &users[i]))
            die("thread", "cannot be created");
    }
    for (unsigned i = 0; i < threads; i++)
        pthread_join(users[i].thread, NULL);
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

static bool is_mode(const char *how)
{
    static const char *const modes[] = { "resident", "mixed", "same",   "atomics",
                                         "stream",   "sum",   "checked" };
    size_t i = 0, count = sizeof modes / sizeof *modes;
    while (i < count && strcmp(how, modes[i]) != 0)
        i++;
    return i < count;
}

int main(int argc, char **argv)
{
    if (argc != 4 || !is_mode(argv[1]))
        die("params", "usage: params resident|mixed|same|atomics|stream|sum|checked FILE N");
    const char *how = argv[1], *path = argv[2];
    uint64_t n = strtoull(argv[3], NULL, 10);
    if (!strcmp(how, "stream"))
        stream(path, n, touch_pages, false);
    else if (!strcmp(how, "sum") || !strcmp(how, "checked"))
        stream(path, n, sum, !strcmp(how, "checked"));
    else
        resident(path, how, (unsigned)n);
    return 0;
}
