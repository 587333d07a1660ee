/* fail_memory.c - allocation functions, preloaded into the command, that fail at a chosen call.
 * HEFT_FAIL_AT is the number of the call; with HEFT_FAIL_ON all later calls fail, too. When the
 * call is reached, a byte is written to the file descriptor HEFT_FAIL_TELL. Only calls during
 * main() count: a build for coverage also allocates memory before main() and at the exit. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

/* glibc's implementations of the functions that this file replaces. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *ptr, size_t size);
void *__libc_memalign(size_t align, size_t size);

typedef int main_function(int argc, char **argv, char **env);
typedef int start_function(main_function *entry, int argc, char **argv, void (*init)(void),
                           void (*fini)(void), void (*linker_fini)(void), void *stack_end);

static atomic_ulong calls;
static atomic_int in_main;
static unsigned long fail_at;
static int reached_fd = -1, keeps_failing;
static main_function *real_main;

__attribute__((constructor)) static void prepare(void)
{
    const char *at = getenv("HEFT_FAIL_AT"), *fd = getenv("HEFT_FAIL_TELL");
    fail_at = at ? strtoul(at, NULL, 10) : 0;
    reached_fd = fd ? atoi(fd) : -1;
    keeps_failing = getenv("HEFT_FAIL_ON") != NULL;
}

static int fails(void)
{
    unsigned long call = fail_at && atomic_load(&in_main) ? atomic_fetch_add(&calls, 1) + 1 : 0;
    if (!call || call < fail_at || (call > fail_at && !keeps_failing))
        return 0;
    if (call == fail_at && write(reached_fd, "x", 1) != 1)
        _exit(120); /* the test would not notice that the call was reached */
    errno = ENOMEM;
    return 1;
}

static int run_main(int argc, char **argv, char **env)
{
    atomic_store(&in_main, 1);
    int code = real_main(argc, argv, env);
    atomic_store(&in_main, 0);
    return code;
}

/* glibc's start code calls this function, which calls main(). */
start_function __libc_start_main;
int __libc_start_main(main_function *entry, int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*linker_fini)(void), void *stack_end)
{
    start_function *start;
    *(void **)&start = dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = entry;
    return start(run_main, argc, argv, init, fini, linker_fini, stack_end);
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *ptr, size_t size)
{
    return fails() ? NULL : __libc_realloc(ptr, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    return fails() ? NULL : __libc_memalign(align, size);
}

void *memalign(size_t align, size_t size)
{
    return fails() ? NULL : __libc_memalign(align, size);
}

int posix_memalign(void **out, size_t align, size_t size)
{
    *out = fails() ? NULL : __libc_memalign(align, size);
    return *out ? 0 : ENOMEM;
}
