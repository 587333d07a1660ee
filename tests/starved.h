/* starved.h - operations that take memory from the allocator and from arenas: each request for
 * memory fails in turn, and each time the operation ends with HEFT_E_NOMEM. */
#ifndef STARVED_H
#define STARVED_H
#include "failing_arena.h"
#include "models.h"

typedef enum supplier { ALLOCATOR, ARENA, SUPPLIERS } supplier;

static heft_test_memory memory;

typedef struct input {
    heft_bytes bytes;
    heft_file *f; /* NULL: the operation opens the bytes */
} input;

typedef struct operation {
    const char *name;
    heft_status (*run)(const input *in, heft_error *err);
    heft_bytes (*make)(void);
    bool opens; /* the operation opens the input */
    /* Number of requests that are not necessary: a text that only explains is left out. */
    uint32_t optional;
} operation;

static inline heft_bytes nothing(void)
{
    return heft_test_copy("", 0);
}

static inline heft_source *source_of(const void *bytes, size_t len)
{
    heft_source *s;
    heft_error err;
    heft_assert_ok(heft_source_open_memory(&s, bytes, len, &err), &err);
    return s;
}

static inline heft_status open_input(heft_file **out, heft_bytes b, heft_error *err)
{
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    o.host = &memory.host;
    return heft_file_open_source(out, source_of(b.p, b.len), &o, err);
}

/* Run an operation while request number `at` fails; return false if there are fewer requests.
 * Count the operations that succeed without the memory. */
static inline bool run_starved(const operation *o, heft_bytes b, supplier s, uint32_t at,
                               uint32_t *successes)
{
    input in = { .bytes = b };
    heft_error err;
    arena_fails_at = 0;
    heft_test_memory_init(&memory, 0);
    if (!o->opens)
        heft_assert_ok(open_input(&in.f, b, &err), &err);
    heft_test_memory_rewind(&memory);
    arena_calls = 0;
    arena_fails_at = s == ARENA ? at : 0;
    memory.fail_at = s == ALLOCATOR ? at : 0;
    heft_test_poison(&err);
    heft_status st = o->run(&in, &err);
    bool is_reached = at <= (s == ARENA ? arena_calls : atomic_load(&memory.calls));
    *successes += is_reached && !st;
    bool may_succeed = !is_reached || (!st && *successes <= o->optional);
    heft_status expected = may_succeed ? HEFT_OK : HEFT_E_NOMEM;
    if (st != expected)
        print_error("%s, %s %u: ", o->name, s == ARENA ? "arena" : "allocator", (unsigned)at);
    heft_assert_status(st, expected, &err);
    memory.fail_at = arena_fails_at = 0;
    heft_file_close(in.f);
    heft_assert_all_freed(&memory);
    return is_reached;
}

static inline void starve(const operation *operations, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        heft_bytes b = operations[i].make();
        uint32_t successes = 0;
        for (int s = 0; s < SUPPLIERS; s++)
            for (uint32_t at = 1; run_starved(&operations[i], b, (supplier)s, at, &successes);)
                at++;
        assert_int_equal(successes, operations[i].optional);
        heft_test_free(&b);
    }
}

#endif
