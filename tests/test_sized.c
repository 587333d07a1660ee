/* test_sized.c - structs of the caller that begin with their size: options, tables of functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/sized.h"

typedef struct options { /* the options that the library knows */
    size_t size;
    uint64_t first, second;
} options;

enum {
    FIRST = offsetof(options, first),
    SECOND = offsetof(options, second),
    ALL = sizeof(options),
    LONGEST = (1 << 16) + 8,
};

/* A number whose first byte in memory is 7. */
static uint64_t seven(void)
{
    uint64_t v = 0;
    memset(&v, 7, 1);
    return v;
}

/* Options of a caller with `size` bytes; the byte at `set`, if any, is not 0. */
static heft_status copy_from_caller(options *to, size_t size, size_t set, heft_error *err)
{
    static union {
        size_t size;
        uint8_t bytes[LONGEST];
    } caller;
    memset(&caller, 0, sizeof caller);
    caller.size = size;
    if (set)
        caller.bytes[set] = 7;
    *to = (options){ sizeof *to, 1, 2 };
    return heft_sized_copy(to, sizeof *to, &caller, err);
}

static void options_are_copied_over_the_defaults(void **state)
{
    (void)state;
    heft_error err;
    options to = { sizeof to, 1, 2 };
    assert_int_equal(heft_sized_copy(&to, sizeof to, NULL, &err), HEFT_OK);
    assert_true(to.first == 1 && to.second == 2);
    assert_int_equal(copy_from_caller(&to, sizeof(size_t), 0, &err), HEFT_OK);
    assert_true(to.size == sizeof to && to.first == 1 && to.second == 2);
    assert_int_equal(copy_from_caller(&to, SECOND, FIRST, &err), HEFT_OK); /* without `second` */
    assert_true(to.size == sizeof to && to.first == seven() && to.second == 2);
    assert_int_equal(copy_from_caller(&to, sizeof to, SECOND, &err), HEFT_OK);
    assert_true(to.size == sizeof to && to.first == 0 && to.second == seven());
    assert_int_equal(copy_from_caller(&to, 1 << 16, 0, &err), HEFT_OK); /* newer */
    assert_true(to.size == sizeof to && to.first == 0 && to.second == 0);
}

static void impossible_sizes_and_unknown_members_are_refused(void **state)
{
    (void)state;
    heft_error err;
    options to;
    char words[160];
    assert_int_equal(copy_from_caller(&to, sizeof(size_t) - 1, 0, &err), HEFT_E_ARGUMENT);
    snprintf(words, sizeof words, "options have the invalid size %d: initialise with %s",
             (int)sizeof(size_t) - 1, "HEFT_..._INIT");
    assert_string_equal(err.message, words);
    assert_int_equal(copy_from_caller(&to, (1 << 16) + 1, 0, &err), HEFT_E_ARGUMENT);
    assert_int_equal(copy_from_caller(&to, 0, 0, &err), HEFT_E_ARGUMENT);
    assert_int_equal(copy_from_caller(&to, ALL + 8, ALL, &err), HEFT_E_ARGUMENT);
    snprintf(words, sizeof words,
             "options have byte %d set, which this version of the library "
             "does not know: use a newer library",
             (int)ALL);
    assert_string_equal(err.message, words);
    assert_int_equal(copy_from_caller(&to, ALL + 8, ALL + 7, &err), HEFT_E_ARGUMENT);
    assert_int_equal(copy_from_caller(&to, ALL + 8, ALL + 8, &err), HEFT_OK); /* past the options */
    assert_true(to.first == 0);
}

static void options_of_append_are_checked_at_every_level(void **state)
{
    (void)state;
    heft_error err;
    heft_append_settings s;
    assert_int_equal(heft_append_read_options(&s, NULL, &err), HEFT_OK);
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
    heft_append_options append = HEFT_APPEND_OPTIONS_INIT;
    append.convert = &convert;
    convert.write = &write;
    assert_int_equal(heft_append_read_options(&s, &append, &err), HEFT_OK);
    assert_ptr_equal(s.append.convert, &s.convert);
    assert_ptr_equal(s.convert.write, &s.write);
    write.size = 1;
    assert_int_equal(heft_append_read_options(&s, &append, &err), HEFT_E_ARGUMENT);
    write.size = sizeof write;
    convert.size = 1;
    assert_int_equal(heft_append_read_options(&s, &append, &err), HEFT_E_ARGUMENT);
    convert.size = sizeof convert;
    append.size = 1;
    assert_int_equal(heft_append_read_options(&s, &append, &err), HEFT_E_ARGUMENT);
}

/* ---- tables of functions ---- */

static void *no_memory(void *ctx, void *p, size_t old_size, size_t new_size, size_t align)
{
    (void)ctx;
    (void)p;
    (void)old_size;
    (void)new_size;
    (void)align;
    return NULL;
}

typedef struct tables { /* a host with one table of each kind */
    heft_allocator al;
    heft_executor executor;
    heft_digest digest;
    heft_codec codec;
    const heft_digest *digests[2];
    const heft_codec *codecs[2];
    heft_host host;
} tables;

static void make_tables(tables *t)
{
    *t = (tables){ .al = { .size = sizeof t->al, .resize = no_memory },
                   .executor = { .size = sizeof t->executor },
                   .digest = { .size = offsetof(heft_digest, combine), .name = "sum", .bytes = 4 },
                   .codec = { .size = offsetof(heft_codec, bound) } };
    t->digests[0] = &t->digest;
    t->codecs[0] = &t->codec;
    t->host = (heft_host){ .size = offsetof(heft_host, scratch),
                           .allocator = &t->al,
                           .executor = &t->executor,
                           .digests = t->digests,
                           .codecs = t->codecs };
}

static void refuse_host(tables *t, const char *words)
{
    heft_error err;
    assert_int_equal(heft_host_check(&t->host, &err), HEFT_E_ARGUMENT);
    if (!strstr(err.message, words))
        fail_msg("%s", err.message);
    make_tables(t);
    assert_int_equal(heft_host_check(&t->host, &err), HEFT_OK);
}

static void every_table_of_a_host_is_checked(void **state)
{
    (void)state;
    tables t;
    make_tables(&t);
    t.host.size--;
    refuse_host(&t, "heft_host has size");
    t.host.allocator = NULL;
    refuse_host(&t, "the host has no allocator");
    t.al.size--;
    refuse_host(&t, "heft_allocator has size");
    t.al.size--;
    t.al.resize = NULL;
    refuse_host(&t, "heft_allocator has size");
    t.al.resize = NULL;
    refuse_host(&t, "has no resize()");
    t.executor.size--;
    refuse_host(&t, "heft_executor has size");
    t.digest.size--;
    refuse_host(&t, "heft_digest has size");
    t.digest.bytes = 0;
    refuse_host(&t, "digest sum has 0 bytes");
    t.digest.size--;
    t.digest.bytes = 0;
    refuse_host(&t, "heft_digest has size");
    t.digest.bytes = HEFT_HASH_BYTES + 1;
    refuse_host(&t, "bytes; 1 to");
    t.codec.size--;
    refuse_host(&t, "heft_codec has size");
}

static void a_host_needs_only_an_allocator(void **state)
{
    (void)state;
    heft_error err;
    tables t;
    make_tables(&t);
    t.digest.bytes = HEFT_HASH_BYTES;
    assert_int_equal(heft_host_check(&t.host, &err), HEFT_OK);
    t.digest.bytes = 1;
    assert_int_equal(heft_host_check(&t.host, &err), HEFT_OK);
    t.host.executor = NULL;
    t.host.digests = NULL;
    t.host.codecs = NULL;
    assert_int_equal(heft_host_check(&t.host, &err), HEFT_OK);
}

static void sources_and_sinks_have_the_functions_of_the_first_version(void **state)
{
    (void)state;
    heft_error err;
    heft_source_ops source_ops = { .size = offsetof(heft_source_ops, dont_need) };
    heft_sink_ops sink_ops = { .size = offsetof(heft_sink_ops, reflink) };
    heft_source source = { .ops = &source_ops };
    heft_sink sink = { .ops = &sink_ops };
    assert_int_equal(heft_source_check(&source, &err), HEFT_OK);
    assert_int_equal(heft_sink_check(&sink, &err), HEFT_OK);
    source_ops.size--;
    sink_ops.size--;
    assert_int_equal(heft_source_check(&source, &err), HEFT_E_ARGUMENT);
    assert_int_equal(heft_sink_check(&sink, &err), HEFT_E_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_copied_over_the_defaults),
        cmocka_unit_test(impossible_sizes_and_unknown_members_are_refused),
        cmocka_unit_test(options_of_append_are_checked_at_every_level),
        cmocka_unit_test(every_table_of_a_host_is_checked),
        cmocka_unit_test(a_host_needs_only_an_allocator),
        cmocka_unit_test(sources_and_sinks_have_the_functions_of_the_first_version),
    };
    return cmocka_run_group_tests_name("sized", tests, NULL, NULL);
}
