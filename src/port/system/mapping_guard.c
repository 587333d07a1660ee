/* mapping_guard.c - survive the truncation of a mapped file.
 *
 * When another program truncates a mapped file, access to the lost pages raises SIGBUS.  If the
 * address lies in an armed mapping, the signal handler maps zeros instead of the lost pages and
 * marks the guard as tripped; the call that reads then reports an error.  Every other SIGBUS goes
 * to the previous handler.
 *
 * The list of guards is the only state that outlives a file.  Guards are reused and never freed, so
 * that the handler can walk the list without a lock. */
#include "port/port.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct heft_guard {
    _Atomic(uintptr_t) base; /* 0: no mapping */
    atomic_size_t len;
    atomic_int armed, tripped, in_use;
    _Atomic(heft_guard *) next;
};

static _Atomic(heft_guard *) guards;
static struct sigaction previous;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static heft_guard *find_guard(uintptr_t address)
{
    for (heft_guard *g = atomic_load(&guards); g; g = atomic_load(&g->next)) {
        uintptr_t base = atomic_load(&g->base);
        if (base && address - base < atomic_load(&g->len) && atomic_load(&g->armed) > 0)
            return g;
    }
    return NULL;
}

static void forward_signal(int sig, siginfo_t *info, void *context)
{
    if (previous.sa_flags & SA_SIGINFO && previous.sa_sigaction)
        previous.sa_sigaction(sig, info, context);
    else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
        previous.sa_handler(sig);
    else
        sigaction(sig, &previous, NULL); /* the access faults again and ends the program */
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
    uintptr_t address = (uintptr_t)info->si_addr;
    heft_guard *g = find_guard(address);
    void *zeros = MAP_FAILED;
    if (g) {
        /* the file was truncated, so all pages up to the end of the mapping are lost */
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = address & ~(page - 1);
        uintptr_t end = atomic_load(&g->base) + atomic_load(&g->len);
        int flags = MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        atomic_store(&g->tripped, 1);
        zeros = mmap((void *)from, end - from, PROT_READ, flags, -1, 0);
    }
    if (zeros == MAP_FAILED)
        forward_signal(sig, info, context);
}

static void install(void)
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER };
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &previous);
}

static heft_guard *free_slot(void)
{
    for (heft_guard *g = atomic_load(&guards); g; g = atomic_load(&g->next))
        if (!atomic_exchange(&g->in_use, 1))
            return g;
    heft_guard *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    atomic_store(&g->in_use, 1);
    heft_guard *first = atomic_load(&guards);
    do
        atomic_store(&g->next, first);
    while (!atomic_compare_exchange_weak(&guards, &first, g));
    return g;
}

heft_guard *heft_guard_new(void *base, size_t len)
{
    pthread_once(&once, install);
    heft_guard *g = free_slot();
    if (!g)
        return NULL;
    atomic_store(&g->armed, 0);
    atomic_store(&g->tripped, 0);
    atomic_store(&g->len, len);
    atomic_store(&g->base, (uintptr_t)base);
    return g;
}

void heft_guard_free(heft_guard *g)
{
    atomic_store(&g->base, 0);
    atomic_store(&g->in_use, 0);
}

void heft_guard_arm(heft_guard *g)
{
    atomic_fetch_add(&g->armed, 1);
}

void heft_guard_disarm(heft_guard *g)
{
    atomic_fetch_sub(&g->armed, 1);
}

bool heft_guard_tripped(const heft_guard *g)
{
    return atomic_load(&g->tripped);
}
