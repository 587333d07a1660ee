/* test_hdf5_lists.c - the lists of a worker that has gone astray: none leads out of its memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "port/libraries/hdf5_library.h"

enum { PLACES = 2, ROUNDS = 400000 };

/* Lists of two arrays, one of them in chunks, with attributes, and an alias. */
typedef struct memory {
    heft_container_array arrays[PLACES];
    heft_container_attribute attributes[4];
    heft_container_alias aliases[1];
    heft_hdf5_decoded decoded[1];
    uint64_t dims[2], chunks[4];
    uint8_t fill[4];
    char text[32];
} memory;

static memory m;
static heft_hdf5_file f;

static heft_container_attribute attribute(heft_value v, uint32_t index, uint32_t count)
{
    v.key = (heft_str){ m.text, 4 };
    return (heft_container_attribute){ { m.text, 3 }, v, index, count };
}

static void make(void)
{
    heft_value text = { .kind = HEFT_KIND_STR, .as.s = { m.text, 5 } };
    heft_value truth = { .kind = HEFT_KIND_BOOL, .as.b = true };
    m = (memory){ .dims = { 6, 4 }, .chunks = { 6, 4, 2, 4 }, .text = "name of it" };
    m.arrays[0] = (heft_container_array){ .name = { m.text, 4 },
                                          .dims = m.dims,
                                          .rank = 2,
                                          .dtype = HEFT_F32,
                                          .offset = 100,
                                          .bytes = 96,
                                          .element_bytes = 4,
                                          .attribute_count = 1 };
    m.arrays[1] = m.arrays[0];
    m.arrays[1].is_decoded = 1;
    m.arrays[1].offset = 0;
    m.arrays[1].first_attribute = 1;
    m.arrays[1].attribute_count = 2;
    m.attributes[0] = attribute(truth, 0, 0);
    m.attributes[1] = attribute(text, 0, 2);
    m.attributes[2] = attribute(text, 1, 2);
    m.attributes[3] = attribute(text, 0, 1);
    m.aliases[0] = (heft_container_alias){ { m.text, 2 }, { m.text, 4 } };
    m.decoded[0] = (heft_hdf5_decoded){
        .path = m.text, .bytes = 96, .rank = 2, .dims = m.chunks, .element = 4, .fill = m.fill
    };
    f = (heft_hdf5_file){ .file_bytes = 1000,
                          .decoded_bytes = 96,
                          .arrays = { m.arrays, PLACES, PLACES },
                          .attributes = { m.attributes, 4, 4 },
                          .group_attributes = { NULL, 1, 1 },
                          .aliases = { m.aliases, 1, 1 },
                          .decoded_arrays = { m.decoded, 1, 1 } };
}

static bool is_sound(void)
{
    return heft_hdf5_lists_are_sound(&f, &m, sizeof m);
}

static void sound(void **state)
{
    (void)state;
    make();
    assert_true(is_sound());
}

/* Each change makes the lists lead astray. */
static void astray(void **state)
{
    (void)state;
#define REFUSED(change)           \
    do {                          \
        make();                   \
        change;                   \
        assert_false(is_sound()); \
    } while (0)
    REFUSED(f.arrays.len = UINT32_MAX);
    REFUSED(f.arrays.ptr = (char *)f.arrays.ptr - 8);
    REFUSED(f.arrays.ptr = (char *)f.arrays.ptr + 1);
    REFUSED(f.attributes.ptr = NULL);
    REFUSED(f.aliases.len = 1U << 30);
    REFUSED(f.group_attributes.len = 5);
    REFUSED(f.decoded_bytes = 97);
    REFUSED(m.arrays[0].name.len = UINT32_MAX);
    REFUSED(m.arrays[0].name.ptr = "not here");
    REFUSED(m.text[0] = (char)0xff);
    REFUSED(m.arrays[0].dims = NULL);
    REFUSED(m.arrays[0].rank = 1);
    REFUSED(m.arrays[0].rank = UINT32_MAX);
    REFUSED(m.arrays[0].bytes = 92);
    REFUSED(m.arrays[0].offset = 905);
    REFUSED(m.arrays[0].offset = UINT64_MAX);
    REFUSED(m.arrays[0].dtype = (heft_dtype)0x7fff);
    REFUSED(m.arrays[0].dtype = HEFT_UNTYPED);
    REFUSED(m.arrays[0].type = "not here");
    REFUSED(m.arrays[0].type = m.text; memset(m.text, 'a', (size_t)((char *)(&m + 1) - m.text)));
    REFUSED(m.arrays[1].offset = 1);
    REFUSED(m.arrays[1].attribute_count = 3);
    REFUSED(m.arrays[1].attribute_count = 1);
    REFUSED(m.arrays[1].first_attribute = 2; m.arrays[1].attribute_count = 1);
    REFUSED(m.arrays[1].first_attribute = UINT32_MAX);
    REFUSED(m.attributes[0].value.kind = HEFT_KIND_LIST);
    REFUSED(m.attributes[0].value.kind = (heft_kind)99);
    REFUSED(memset(&m.attributes[0].value.as, 2, 1));
    REFUSED(m.attributes[1].count = 3);
    REFUSED(m.attributes[2].index = 0);
    REFUSED(m.attributes[3].count = 2);
    REFUSED(m.attributes[3].value.as.s.len = sizeof m);
    REFUSED(m.attributes[3].owner.ptr = NULL);
    REFUSED(m.aliases[0].target.len = sizeof m);
    REFUSED(m.decoded[0].start = 4);
    REFUSED(m.decoded[0].element = 0);
    REFUSED(m.decoded[0].bytes = 0);
    REFUSED(m.decoded[0].rank = 0; m.decoded[0].fill = NULL);
    REFUSED(m.decoded[0].rank = 33);
    REFUSED(m.decoded[0].dims = NULL);
    REFUSED(m.chunks[0] = 5);
    REFUSED(m.chunks[2] = 0);
    REFUSED(m.chunks[2] = 1 << 28);
    REFUSED(m.decoded[0].filter_count = HEFT_HDF5_FILTERS + 1);
#undef REFUSED
}

static uint64_t next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static size_t use(heft_str s)
{
    size_t sum = 0;
    for (size_t i = 0; i < s.len; i++)
        sum += (uint8_t)s.ptr[i];
    return sum;
}

/* Read everything that the lists lead to: outside of them it would be a fault. */
static size_t read_all(void)
{
    const heft_container_array *a = f.arrays.ptr;
    const heft_container_attribute *v = f.attributes.ptr;
    size_t sum = 0;
    for (uint32_t i = 0; i < f.arrays.len; i++) {
        sum += use(a[i].name) + (a[i].type ? strlen(a[i].type) : 0);
        for (uint32_t k = 0; k < a[i].rank; k++)
            sum += a[i].dims[k];
    }
    for (uint32_t i = 0; i < f.attributes.len; i++)
        sum += use(v[i].owner) + use(v[i].value.key) +
               (v[i].value.kind == HEFT_KIND_STR ? use(v[i].value.as.s) : 0);
    return sum;
}

/* Any bytes may have been overwritten: lists that are called sound can be read. */
static void overwritten(void **state)
{
    uint64_t seed = 0x9e3779b97f4a7c15;
    uint32_t count = 0;
    size_t sum = 0;
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        make();
        for (uint64_t n = next(&seed) % 3 + 1; n; n--) {
            uint8_t *at = next(&seed) % 8 ? (uint8_t *)&m : (uint8_t *)&f;
            size_t size = at == (uint8_t *)&m ? sizeof m : sizeof f;
            at[next(&seed) % size] ^= (uint8_t)(1 << next(&seed) % 8);
        }
        if (is_sound()) {
            count++;
            sum += read_all();
        }
    }
    assert_in_range(count, 1, ROUNDS - 1);
    assert_true(sum); /* so that everything was read */
}

static bool error_is_sound(const char *message, size_t len, int status, uint32_t rule)
{
    heft_error e = { .offset = HEFT_NOWHERE };
    memcpy(e.message, message, len);
    return heft_hdf5_error_is_sound(&e, (heft_status)status, rule);
}

static void errors(void **state)
{
    char full[240];
    memset(full, 'a', sizeof full);
    (void)state;
    assert_true(error_is_sound("damaged", 8, HEFT_E_FORMAT, 0));
    assert_true(error_is_sound("damaged", 8, HEFT_E_CHECKSUM, 1));
    assert_false(error_is_sound("damaged", 8, HEFT_E_FORMAT, 99));
    assert_false(error_is_sound("damaged", 8, HEFT_AGAIN, 0));
    assert_false(error_is_sound("damaged", 8, 1234, 0));
    assert_false(error_is_sound("a\x1b[2J", 6, HEFT_E_FORMAT, 0));
    assert_false(error_is_sound("a\xff", 3, HEFT_E_FORMAT, 0));
    assert_false(error_is_sound(full, sizeof full, HEFT_E_FORMAT, 0));
    assert_int_equal(heft_hdf5_rule_number(NULL), 0);
    assert_int_equal(heft_hdf5_rule_number("keras/outside"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(sound), cmocka_unit_test(astray),
                                        cmocka_unit_test(overwritten), cmocka_unit_test(errors) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
