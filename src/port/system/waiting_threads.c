/* waiting_threads.c - the executor for requests that take long: the threads mostly wait for
 * servers, so there are more threads than processors.  A file source asks whether the calling
 * thread belongs to this executor: then many threads read, and the file is not read ahead. */
#include "port/port.h"

enum { THREADS = 16 };

static _Thread_local bool is_waiting_thread;

typedef struct item {
    void (*fn)(void *arg, size_t i);
    void *arg;
} item;

static void run_item(void *arg, size_t i)
{
    const item *it = arg;
    bool before = is_waiting_thread;
    is_waiting_thread = true;
    it->fn(it->arg, i);
    is_waiting_thread = before;
}

static void run(void *ctx, size_t n, void (*fn)(void *arg, size_t i), void *arg)
{
    heft_executor threads = heft_executor_threads(THREADS);
    item it = { fn, arg };
    (void)ctx;
    threads.run(threads.ctx, n, run_item, &it);
}

const heft_executor heft_waiting_threads = { .size = sizeof heft_waiting_threads,
                                             .run = run,
                                             .width = THREADS };

bool heft_is_waiting_thread(void)
{
    return is_waiting_thread;
}
