/* test_memory.h - an allocator for tests: counts calls and bytes, checks old sizes and guard bytes,
 * fails at a chosen call. */
#ifndef TEST_MEMORY_H
#define TEST_MEMORY_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <heft/heft.h>
#include <heft/memory_limits.h>

typedef struct test_memory {
    heft_allocator al;
    uint64_t live;           /* bytes allocated */
    uint32_t calls, fail_at; /* number of the call that fails; 0: no call fails */
} test_memory;

enum {
    TEST_MEMORY_HEAD = 16, /* bytes before each allocation; they hold the size */
    TEST_MEMORY_TAIL = 16, /* guard bytes after each allocation */
    TEST_MEMORY_MARK = 0xA7
};

static inline void *test_memory_resize(void *ctx, void *p, size_t old_size, size_t new_size,
                                       size_t align)
{
    test_memory *m = ctx;
    assert_true(align <= TEST_MEMORY_HEAD);
    char *block = p ? (char *)p - TEST_MEMORY_HEAD : NULL;
    assert_int_equal(block ? *(size_t *)(void *)block : 0, old_size);
    for (size_t i = 0; block && i < TEST_MEMORY_TAIL; i++)
        assert_int_equal(((uint8_t *)p)[old_size + i], TEST_MEMORY_MARK);
    if (!new_size) {
        free(block);
        m->live -= old_size;
        return NULL;
    }
    if (++m->calls == m->fail_at)
        return NULL;
    block = realloc(block, TEST_MEMORY_HEAD + new_size + TEST_MEMORY_TAIL);
    assert_non_null(block);
    memset(block + TEST_MEMORY_HEAD + new_size, TEST_MEMORY_MARK, TEST_MEMORY_TAIL);
    *(size_t *)(void *)block = new_size;
    m->live += new_size; /* the difference of two sizes may be negative */
    m->live -= old_size;
    return block + TEST_MEMORY_HEAD;
}

static inline void test_memory_init(test_memory *m, uint32_t fail_at)
{
    *m = (test_memory){
        .al = { .size = sizeof(heft_allocator), .resize = test_memory_resize, .ctx = m },
        .fail_at = fail_at
    };
}

#endif
