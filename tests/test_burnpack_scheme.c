/* test_burnpack_scheme.c - quantization schemes of Burn: which releases read a scheme, and the
 * spelling of other releases. */
#include <ctype.h>

#include "heft_test.h"

#include "base/out.h"
#include "format/burnpack/burnpack.h"
#include "grammar/cbor.h"

/* Encode words: M2 is a map of two pairs, A5 a list of five items; numbers, null; else texts. */
static heft_str encode(uint8_t *buf, size_t cap, const char *words)
{
    heft_out o = { .buf = buf, .cap = cap };
    while (*words) {
        size_t len = strcspn(words, " ");
        heft_str word = { words, len };
        bool is_count = len == 2 && isdigit((unsigned char)words[1]);
        if (is_count && *words == 'M')
            heft_cbor_put_map(&o, (uint64_t)(words[1] - '0'));
        else if (is_count && *words == 'A')
            heft_cbor_put_array(&o, (uint64_t)(words[1] - '0'));
        else if (isdigit((unsigned char)*words))
            heft_cbor_put_u64(&o, strtoull(words, NULL, 10));
        else if (len == 4 && !memcmp(words, "null", 4))
            heft_cbor_put_null(&o);
        else
            heft_cbor_put_text(&o, word);
        words += len + (words[len] == ' ');
    }
    assert_int_equal(o.st, HEFT_OK);
    return (heft_str){ (const char *)buf, o.len };
}

#define OLD(value, param, store, level) \
    "M1 QFloat M5 value " value " param " param " store " store " level " level " mode Symmetric"
#define NEW(value, store, tensor, block) \
    "M1 QFloat M5 value " value " store " store " mode Symmetric tensor " tensor " block " block
#define SIZE         "M2 storage A5 1 1 1 1 32 len 1"
#define BLOCK(dtype) "M2 size " SIZE " dtype " dtype
#define BOTH         "M1 BlockTensor M2 block " SIZE " global F32"

enum { V19 = 1, SINCE_0_20 = 30, OLDER = 15, PRE = 8, V22 = 16, EVERY = 31 };

typedef struct generations_row {
    const char *words;
    uint32_t generations;
} generations_row;

static const generations_row rows[] = {
    { OLD("Q8S", "F32", "Native", "Tensor"), OLDER },
    { OLD("Q8S", "F32", "U32", "Tensor"), V19 },
    { OLD("Q8S", "F32", "M1 PackedU32 0", "Tensor"), OLDER &SINCE_0_20 },
    { OLD("Q8S", "F32", "M1 PackedNative 7", "Tensor"), OLDER &SINCE_0_20 },
    { OLD("Q8S", "F32", "PackedU32", "Tensor"), 0 },
    { OLD("Q8S", "F32", "M1 Native 0", "Tensor"), 0 },
    { OLD("Q8S", "F32", "M1 U32 0", "Tensor"), 0 },
    { OLD("Q8S", "F32", "M1 PackedU32 null", "Tensor"), 0 },
    { OLD("Q8S", "F32", "M2 PackedU32 0 x 0", "Tensor"), 0 },
    { OLD("Q8S", "F32", "Other", "Tensor"), 0 },
    { OLD("Q8S", "F32", "5", "Tensor"), 0 },
    { OLD("Q8S", "F32", "M1 5 0", "Tensor"), 0 },
    { OLD("Q8S", "F32", "Native", "M1 Block " SIZE), OLDER },
    { OLD("Q8S", "F32", "Native", BOTH), PRE },
    { OLD("Q8S", "F32", "Native", "Other"), 0 },
    { OLD("Q8S", "F32", "Native", "5"), 0 },
    { OLD("Q8S", "F32", "Native", "M1 Other " SIZE), 0 },
    { OLD("Q8S", "F32", "Native", "M1 5 " SIZE), 0 },
    { OLD("Q8S", "F32", "Native", "M2 Block " SIZE " x 0"), 0 },
    { OLD("Q8S", "F32", "Native", "M1 Block 32"), 0 },
    { OLD("Q8S", "F32", "Native", "M1 BlockTensor M2 block " SIZE " global F33"), 0 },
    { OLD("Q8S", "F32", "Native", "M1 BlockTensor M2 block " SIZE " globe F32"), 0 },
    { OLD("Q8S", "F32", "Native", "M1 BlockTensor M2 black " SIZE " global F32"), 0 },
    { OLD("Q8S", "F32", "Native", "M1 BlockTensor M3 block " SIZE " global F32 x 0"), 0 },
    { OLD("Q8S", "F32", "Native", "M1 BlockTensor M1 block " SIZE), 0 },
    { OLD("Q8S", "F32", "Native", "M1 Block M2 storage A4 1 1 1 32 len 1"), 0 },
    { OLD("Q8S", "F32", "Native", "M1 Block M2 storage A6 1 1 1 1 1 32 len 1"), 0 },
    { OLD("Q8S", "F32", "Native", "M1 Block M2 storage A5 1 1 1 1 255 len 5"), OLDER },
    { OLD("Q8S", "F32", "Native", "M1 Block M2 storage A5 1 1 1 1 256 len 5"), 0 },
    { OLD("Q8S", "F32", "Native", "M1 Block M2 storage A5 1 1 1 1 x len 5"), 0 },
    { OLD("Q8S", "F32", "Native", "M1 Block M2 storage A5 1 1 1 1 32 len 6"), 0 },
    { OLD("Q8S", "F32", "Native", "M1 Block M2 storage A5 1 1 1 1 32 len x"), 0 },
    { OLD("Q8S", "F32", "Native", "M1 Block M2 storage A5 1 1 1 1 32 lan 1"), 0 },
    { OLD("Q8S", "F32", "Native", "M1 Block M2 stored A5 1 1 1 1 32 len 1"), 0 },
    { OLD("Q8S", "F32", "Native", "M1 Block M2 storage 5 len 1"), 0 },
    { OLD("Q8S", "F32", "Native", "M1 Block M3 storage A5 1 1 1 1 32 len 1 x 0"), 0 },
    { OLD("Q8S", "F33", "Native", "Tensor"), 0 },
    { OLD("Q8S", "5", "Native", "Tensor"), 0 },
    { OLD("Q3S", "F32", "Native", "Tensor"), 0 },
    { OLD("5", "F32", "Native", "Tensor"), 0 },
    { OLD("E2M1", "F32", "Native", "Tensor"), V19 },
    { OLD("E2M1", "F32", "M1 PackedNative 0", "Tensor"), OLDER &SINCE_0_20 },
    { OLD("E4M3", "F32", "Native", "Tensor"), OLDER },
    { NEW("Q8S", "Native", "F32", "null"), V22 },
    { NEW("Q8S", "Native", "null", "null"), V22 },
    { NEW("Q8S", "Native", "null", BLOCK("F16")), V22 },
    { NEW("Q8S", "Native", "BF16", BLOCK("UE8M0")), V22 },
    { NEW("Q8S", "U32", "F32", "null"), 0 },
    { NEW("E2M1", "Native", "F32", "null"), V22 },
    { NEW("Q8S", "Native", "5", "null"), 0 },
    { NEW("Q8S", "Native", "F33", "null"), 0 },
    { NEW("Q8S", "Native", "F32", "5"), 0 },
    { NEW("Q8S", "Native", "F32", BLOCK("F33")), 0 },
    { NEW("Q8S", "Native", "F32", BLOCK("null")), 0 },
    { NEW("Q8S", "Native", "F32", "M1 size " SIZE), 0 },
    { NEW("Q8S", "Native", "F32", "M3 size " SIZE " dtype F32 x 0"), 0 },
    { NEW("Q8S", "Native", "F32", "M2 siza " SIZE " dtype F32"), 0 },
    { NEW("Q8S", "Native", "F32", "M2 size " SIZE " dtypo F32"), 0 },
    { "M1 QFloat M3 value Q8S store Native mode Symmetric", V22 },
    { "M1 QFloat M3 value Q8S store Native mode Lookup", V22 },
    { "M1 QFloat M3 value Q8S store Native mode Other", 0 },
    { "M1 QFloat M3 value Q8S store Native mode 5", 0 },
    { "M1 QFloat M5 value Q8S param F32 store Native level Tensor mode Lookup", 0 },
    { "M1 QFloat M2 store Native mode Symmetric", 0 },
    { "M1 QFloat M2 value Q8S mode Symmetric", 0 },
    { "M1 QFloat M2 value Q8S store Native", 0 },
    { "M1 QFloat M4 value Q8S store Native level Tensor mode Symmetric", 0 },
    { "M1 QFloat M4 value Q8S store Native param F32 mode Symmetric", 0 },
    { "M1 QFloat M4 value Q8S store Native mode Symmetric value Q8S", 0 },
    { "M1 QFloat M4 value Q8S store Native mode Symmetric other 0", 0 },
    { "M1 QFloat M4 value Q8S store Native mode Symmetric 0 0", 0 },
    { "M1 QFloat M6 value Q8S param F32 store Native level Tensor mode Symmetric tensor F32", 0 },
    { "M1 QFloat M0", 0 },
    { "M1 QFlaot M3 value Q8S store Native mode Symmetric", 0 },
    { "M2 QFloat M3 value Q8S store Native mode Symmetric x 0", 0 },
    { "M1 QFloat A3 value Q8S store", 0 },
    { "A2 QFloat M3 value Q8S store Native mode Symmetric", 0 },
    { "QFloat", 0 },
};

static void releases_read_known_schemes_only(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        uint8_t buf[400];
        heft_str raw = encode(buf, sizeof buf, rows[i].words);
        uint32_t got = heft_burnpack_scheme_generations(raw);
        if (got != rows[i].generations)
            fail_msg("%s: %u, not %u", rows[i].words, got, rows[i].generations);
        for (size_t len = 0; len < raw.len; len++)
            assert_int_equal(heft_burnpack_scheme_generations((heft_str){ raw.ptr, len }), 0);
    }
}

static void maps_of_unknown_length_are_not_read(void **state)
{
    static const char indefinite[] = "\xA1\x66QFloat\xBF\x65value\x63Q8S\x65store\x66Native\x64mode"
                                     "\x69Symmetric\xFF";
    static const char outer[] = "\xBF\x66QFloat\xA3\x65value\x63Q8S\x65store\x66Native\x64mode"
                                "\x69Symmetric\xFF";
    static const char definite[] = "\xA1\x66QFloat\xA3\x65value\x63Q8S\x65store\x66Native\x64mode"
                                   "\x69Symmetric";
    (void)state;
    assert_int_equal(
        heft_burnpack_scheme_generations((heft_str){ indefinite, sizeof indefinite - 1 }), 0);
    assert_int_equal(heft_burnpack_scheme_generations((heft_str){ outer, sizeof outer - 1 }), 0);
    assert_int_equal(heft_burnpack_scheme_generations((heft_str){ definite, sizeof definite - 1 }),
                     V22);
}

static void assert_stored(heft_str stored, const char *expected, size_t len)
{
    uint8_t buf[100];
    heft_out o = { .buf = buf, .cap = sizeof buf };
    assert_int_equal(heft_burnpack_put_stored_dtype(&o, stored), expected != NULL);
    if (!expected)
        return;
    assert_int_equal(o.len, len);
    assert_memory_equal(buf, expected, len);
}

static void stored_types_become_the_cbor_that_they_describe(void **state)
{
    enum { TOO_LONG = (64 << 10) + 1 };
    static const struct {
        const char *stored, *cbor; /* NULL: not the text of a type */
    } types[] = {
        { "\"U8\"", "\x62U8" },
        { "{\"a\":[1,-2,true,null],\"b\":{}}", "\xA2\x61\x61\x84\x01\x21\xF5\xF6\x61\x62\xA0" },
        { "18446744073709551615", "\x1B\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF" },
        { "-9223372036854775808", "\x3B\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF" },
        { "18446744073709551616", NULL },
        { "-9223372036854775809", NULL },
        { "-0", NULL },
        { "0.5", NULL },
        { "[[1,}", NULL },
        { "[1", NULL },
        { "Flex32", NULL },
        { "cbor:624638", "\x62"
                         "F8" },
        { "cbor:62463", NULL },
        { "cbor:6246g8", NULL },
    };
    static char text[TOO_LONG];
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(types); i++)
        assert_stored(heft_test_str(types[i].stored), types[i].cbor,
                      types[i].cbor ? strlen(types[i].cbor) : 0);
    memset(text, ' ', sizeof text);
    text[0] = '7';
    assert_stored((heft_str){ text, TOO_LONG - 1 }, "\x07", 1);
    assert_stored((heft_str){ text, TOO_LONG }, NULL, 0);
}

typedef struct target_row {
    const char *words;
    uint64_t dims[2];
    uint32_t rank, targets;
} target_row;

static const target_row targets[] = {
    { OLD("Q8S", "F32", "Native", "Tensor"), { 8, 8 }, 2, EVERY },
    { OLD("Q8S", "F32", "Native", "Tensor"), { 2, 6 }, 2, EVERY },
    { OLD("Q8S", "F32", "Native", "Tensor"), { 3, 3 }, 2, OLDER },
    { OLD("Q8S", "F32", "Native", "Tensor"), { 0 }, 0, OLDER },
    { OLD("Q4S", "F32", "Native", "Tensor"), { 2, 6 }, 2, OLDER },
    { OLD("Q4S", "F32", "Native", "Tensor"), { 2, 4 }, 2, EVERY },
    { OLD("Q2S", "F32", "Native", "Tensor"), { 2, 8 }, 2, EVERY },
    { OLD("Q2S", "F32", "Native", "Tensor"), { 1, 8 }, 2, OLDER },
    { OLD("Q8S", "F32", "Native", BOTH), { 8, 8 }, 2, PRE | V22 },
    { OLD("Q8S", "F32", "M1 PackedU32 0", "Tensor"), { 3, 8 }, 2, EVERY },
    { OLD("Q8S", "F32", "M1 PackedU32 0", "Tensor"), { 8, 3 }, 2, OLDER },
    { OLD("Q8S", "F32", "M1 PackedU32 1", "Tensor"), { 8, 3 }, 2, EVERY },
    { OLD("Q8S", "F32", "M1 PackedU32 1", "Tensor"), { 3, 8 }, 2, OLDER },
    { OLD("Q8S", "F32", "M1 PackedU32 2", "Tensor"), { 8, 8 }, 2, OLDER },
    { OLD("E2M1", "F32", "Native", "Tensor"), { 3, 8 }, 2, EVERY },
    { OLD("E2M1", "F32", "Native", "Tensor"), { 8, 3 }, 2, OLDER },
    { NEW("Q8S", "Native", "F32", "null"), { 8, 8 }, 2, EVERY },
    { NEW("Q8S", "Native", "F32", "null"), { 3, 3 }, 2, V22 },
    { NEW("Q8S", "Native", "null", BLOCK("F16")), { 8, 8 }, 2, EVERY },
    { NEW("Q8S", "Native", "F32", BLOCK("F16")), { 8, 8 }, 2, PRE | V22 },
    { NEW("Q8S", "Native", "F32", BLOCK("F16")), { 3, 3 }, 2, V22 },
    { NEW("E2M1", "Native", "F32", "null"), { 8, 8 }, 2, V22 },
    { "M1 QFloat M3 value Q8S store Native mode Lookup", { 8, 8 }, 2, V22 },
    { "M1 QFloat M3 value Q8S store Native mode Other", { 8, 8 }, 2, 0 },
};

static void targets_depend_on_scales_and_padding(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(targets); i++) {
        uint8_t buf[400];
        const target_row *r = &targets[i];
        heft_str raw = encode(buf, sizeof buf, r->words);
        uint32_t got = heft_burnpack_scheme_targets(raw, r->dims, r->rank);
        if (got != r->targets)
            fail_msg("row %zu, %s: %u, not %u", i, r->words, got, r->targets);
    }
}

typedef struct spelling_row {
    const char *words;
    uint32_t generation;
    const char *spelled; /* NULL: unchanged */
} spelling_row;

static const spelling_row spellings[] = {
    { OLD("Q8S", "F32", "Native", "Tensor"), 2, NULL },
    { OLD("Q8S", "F32", "Native", "Tensor"), V22, NEW("Q8S", "Native", "F32", "null") },
    { OLD("Q8S", "F16", "Native", "M1 Block " SIZE), V22,
      NEW("Q8S", "Native", "null", BLOCK("F16")) },
    { OLD("Q8S", "F16", "Native", BOTH), V22, NEW("Q8S", "Native", "F32", BLOCK("F16")) },
    { OLD("Q8S", "F32", "U32", "Tensor"), 2, OLD("Q8S", "F32", "M1 PackedU32 0", "Tensor") },
    { OLD("E2M1", "F32", "Native", "Tensor"), 2,
      OLD("E2M1", "F32", "M1 PackedNative 0", "Tensor") },
    { OLD("Q4F", "F32", "M1 PackedU32 1", "Tensor"), V22,
      NEW("Q4F", "M1 PackedU32 1", "F32", "null") },
    { NEW("Q8S", "Native", "F16", "null"), V22, NULL },
    { NEW("Q8S", "Native", "F16", "null"), 2, OLD("Q8S", "F16", "Native", "Tensor") },
    { NEW("Q8S", "Native", "null", BLOCK("F16")), 2,
      OLD("Q8S", "F16", "Native", "M1 Block " SIZE) },
    { NEW("Q8S", "Native", "F32", BLOCK("F16")), PRE, OLD("Q8S", "F16", "Native", BOTH) },
    { "M1 QFloat M3 value Q8S store Native mode Symmetric", 1,
      OLD("Q8S", "F32", "Native", "Tensor") },
    { "M1 QFloat M3 value Q8S store Native mode Other", 2, NULL },
};

static void schemes_are_spelled_for_another_release(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(spellings); i++) {
        uint8_t raw_bytes[400], wanted_bytes[400], got[400];
        const spelling_row *r = &spellings[i];
        heft_str raw = encode(raw_bytes, sizeof raw_bytes, r->words);
        heft_str wanted = encode(wanted_bytes, sizeof wanted_bytes,
                                 r->spelled ? r->spelled : r->words);
        heft_out o = { .buf = got, .cap = sizeof got };
        heft_burnpack_put_scheme(&o, raw, r->generation);
        if (o.st || o.len != wanted.len || memcmp(got, wanted.ptr, o.len) != 0)
            fail_msg("row %zu, %s", i, r->words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(releases_read_known_schemes_only),
        cmocka_unit_test(maps_of_unknown_length_are_not_read),
        cmocka_unit_test(stored_types_become_the_cbor_that_they_describe),
        cmocka_unit_test(targets_depend_on_scales_and_padding),
        cmocka_unit_test(schemes_are_spelled_for_another_release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
