/* failing_arena.h - requests to arenas that fail. An arena asks the allocator only when a block is
 * full, so an allocator that fails would miss most requests of a small model. A program that
 * includes this header is linked with --wrap for the three functions. */
#ifndef FAILING_ARENA_H
#define FAILING_ARENA_H
#include "base/arena.h"

static uint32_t arena_calls, arena_fails_at; /* number of the call that fails, from 1; 0: none */

static bool arena_fails(void)
{
    return ++arena_calls == arena_fails_at;
}

void *__real_heft_arena_alloc(heft_arena *a, size_t size, size_t align);
heft_str __real_heft_arena_copy(heft_arena *a, heft_str s);
heft_str __real_heft_arena_join(heft_arena *a, heft_str first, heft_str second, heft_str third);
void *__wrap_heft_arena_alloc(heft_arena *a, size_t size, size_t align);
heft_str __wrap_heft_arena_copy(heft_arena *a, heft_str s);
heft_str __wrap_heft_arena_join(heft_arena *a, heft_str first, heft_str second, heft_str third);

void *__wrap_heft_arena_alloc(heft_arena *a, size_t size, size_t align)
{
    return arena_fails() ? NULL : __real_heft_arena_alloc(a, size, align);
}

heft_str __wrap_heft_arena_copy(heft_arena *a, heft_str s)
{
    return arena_fails() ? (heft_str){ NULL, 0 } : __real_heft_arena_copy(a, s);
}

heft_str __wrap_heft_arena_join(heft_arena *a, heft_str first, heft_str second, heft_str third)
{
    return arena_fails() ? (heft_str){ NULL, 0 } : __real_heft_arena_join(a, first, second, third);
}

#endif
