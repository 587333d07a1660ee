/* threads.c - the default executor: threads that live for one run and take work items from a shared
 * counter. */
#include "port/port.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MAX_THREADS = 64 };

typedef struct work {
    atomic_size_t next;
    size_t n;
    void (*fn)(void *arg, size_t i);
    void *arg;
} work;

static void *worker(void *p)
{
    work *w = p;
    for (size_t i; (i = atomic_fetch_add(&w->next, 1)) < w->n;)
        w->fn(w->arg, i);
    return NULL;
}

/* The processors that the process may use, at most as many as the executor has threads. */
static uint32_t count_processors(void)
{
    uint32_t n = heft_processors();
    return n < MAX_THREADS ? n : MAX_THREADS;
}

/* Run all items; the calling thread works, too.  If a thread cannot be created, continue with fewer
 * threads. */
static void run(void *ctx, size_t n, void (*fn)(void *arg, size_t i), void *arg)
{
    size_t width = (uintptr_t)ctx ? (uintptr_t)ctx : count_processors(), started = 0;
    work w = { 0, n, fn, arg };
    pthread_t threads[MAX_THREADS];
    width = width < n ? width : n;
    width = width < MAX_THREADS ? width : MAX_THREADS;
    while (started + 1 < width && !pthread_create(&threads[started], NULL, worker, &w))
        started++;
    worker(&w);
    while (started)
        pthread_join(threads[--started], NULL);
}

const heft_executor heft_all_threads = { .size = sizeof heft_all_threads,
                                         .run = run,
                                         .width = MAX_THREADS };

heft_executor heft_executor_threads(uint32_t width)
{
    uint32_t threads = width ? width : count_processors();
    return (heft_executor){ .size = sizeof(heft_executor),
                            .run = run,
                            .ctx = (void *)(uintptr_t)threads,
                            .width = threads };
}
