/* test_zt1_fast_path.c - the fast path of zTensor 1.0 to 1.2 reads what their writers spell. */
#include "heft_test.h"

#include "base/error.h"
#include "format/ztensor/ztensor.h"
#include "model/dtype.h"
#include "model/index.h"

enum { BASE = 5000, OFFSET = 64, COUNT = 3 };

/* CBOR of a map with a tensor and another key. */
typedef struct spelling {
    uint8_t bytes[256];
    size_t len;
} spelling;

static void head(spelling *s, uint8_t kind, size_t n)
{
    assert_true(n < 256 && s->len + 2 <= sizeof s->bytes);
    s->bytes[s->len++] = (uint8_t)((size_t)kind << 5 | (n < 24 ? n : 24));
    if (n >= 24)
        s->bytes[s->len++] = (uint8_t)n;
}

static void text(spelling *s, const char *t)
{
    size_t n = strlen(t);
    head(s, 3, n);
    assert_true(s->len + n <= sizeof s->bytes);
    memcpy(s->bytes + s->len, t, n);
    s->len += n;
}

static void number(spelling *s, const char *key, size_t n)
{
    text(s, key);
    head(s, 0, n);
}

static void pair(spelling *s, const char *key, const char *value)
{
    text(s, key);
    text(s, value);
}

static spelling spell_tensor(const heft_zt_type *t, size_t length, bool is_10, bool has_digest)
{
    spelling s = { .len = 0 };
    head(&s, 5, 2);
    text(&s, "w");
    head(&s, 5, is_10 ? 4 : 3);
    if (is_10)
        pair(&s, "dtype", t->long_name);
    text(&s, "shape");
    head(&s, 4, 1);
    head(&s, 0, COUNT);
    pair(&s, "format", "dense");
    text(&s, "components");
    head(&s, 5, 1);
    text(&s, "data");
    head(&s, 5, (is_10 ? 2u : 3u) + has_digest);
    if (!is_10)
        pair(&s, "dtype", t->name);
    number(&s, "offset", OFFSET);
    number(&s, "length", length);
    if (has_digest)
        pair(&s, "digest", "crc32c:0x00000000");
    pair(&s, "the next tensor", "");
    return s;
}

static void assert_fast(const heft_zt_type *t, bool is_10, bool has_digest)
{
    uint64_t length;
    assert_true(heft_dtype_bytes(&length, t->dtype, COUNT));
    spelling s = spell_tensor(t, (size_t)length, is_10, has_digest);
    heft_test_memory m;
    heft_index x;
    heft_error err = { 0 };
    bool read = false;
    heft_test_memory_init(&m, 0);
    heft_ix_init(&x, &m.al, NULL, (uint64_t[2]){ 0, 0 });
    x.err = &err;
    x.file_bytes = x.data_end = 10000;
    heft_cbor c = heft_cbor_open(s.bytes, s.len, BASE, 128, &x.arena, &err);
    assert_int_equal(heft_cbor_next(&c), HEFT_CBOR_MAP);
    heft_assert_ok(heft_zt1_read_canonical(&c, &x, is_10, &read), &err);
    assert_true(read);
    assert_int_equal(heft_ix_tensors(&x), 1);
    assert_int_equal(heft_ix_row(&x, 0)->dtype, t->dtype);
    assert_int_equal(heft_ix_part_row_at(&x, 0)->offset, OFFSET);
    assert_int_equal(heft_ix_part_row_at(&x, 0)->length, length);
    assert_int_equal(heft_cbor_next(&c), HEFT_CBOR_TEXT);
    heft_ix_free(&x);
    heft_assert_all_freed(&m);
}

static void reads_every_element_type_of_every_generation(void **state)
{
    (void)state;
    for (size_t i = 0; i < heft_zt_type_count; i++)
        for (int variant = 0; *heft_zt_types[i].name && variant < 4; variant++)
            assert_fast(&heft_zt_types[i], variant & 1, variant & 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_element_type_of_every_generation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
