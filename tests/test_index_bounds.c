/* test_index_bounds.c - the limits of the index, and each half of a condition. */
#include "heft_test.h"

#include "base/text.h"
#include "model/dtype.h"
#include "model/index.h"
#include "model/records.h"
#include "model/values.h"
#include "model/vocab.h"

typedef struct fixture {
    heft_test_memory m;
    heft_index x;
    heft_error err;
} fixture;

static void begin(fixture *f)
{
    memset(&f->err, 0, sizeof f->err);
    heft_test_memory_init(&f->m, 0);
    heft_ix_init(&f->x, &f->m.al, NULL, (uint64_t[2]){ 0, 0 });
    f->x.err = &f->err;
    f->x.file_bytes = 10000;
}

static void end(fixture *f)
{
    heft_ix_free(&f->x);
    heft_assert_all_freed(&f->m);
}

static uint32_t add_shape(fixture *f, const char *name, heft_dtype t, const uint64_t *shape,
                          uint32_t rank)
{
    uint64_t *dims;
    uint32_t id;
    heft_str copy = heft_ix_copy(&f->x, heft_test_str(name));
    heft_assert_ok(heft_ix_tensor(&f->x, copy, t, rank, &dims, &id), &f->err);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = shape[i];
    return id;
}

static uint32_t add(fixture *f, const char *name, uint64_t offset, uint64_t bytes)
{
    uint32_t id = add_shape(f, name, HEFT_U8, &bytes, 1);
    heft_assert_ok(heft_ix_dense(&f->x, id, 0, offset, bytes), &f->err);
    return id;
}

/* ---- counts --------------------------------------------------------------------------------- */

static void dimensions_parts_and_names_have_limits(void **state)
{
    fixture f;
    uint64_t *dims;
    uint32_t id;
    heft_range where = { 0, 1 };
    (void)state;
    begin(&f);
    heft_assert_ok(heft_ix_tensor(&f.x, heft_test_str("deep"), HEFT_U8, UINT16_MAX, &dims, &id),
                   &f.err);
    assert_int_equal(f.x.max_rank, UINT16_MAX);
    heft_assert_fails(heft_ix_dim(&f.x, 1), HEFT_E_LIMIT, &f.err, "more than 65535 dimensions");
    f.x.limits.tensors = 1;
    heft_assert_fails(heft_ix_tensor(&f.x, heft_test_str("w"), HEFT_U8, UINT16_MAX, &dims, &id),
                      HEFT_E_LIMIT, &f.err, "tensor 'w': more than 1 tensors");
    heft_assert_fails(heft_ix_tensor(&f.x, heft_test_str("w"), HEFT_U8, UINT16_MAX + 1, &dims, &id),
                      HEFT_E_LIMIT, &f.err, "tensor 'w': more than 65535 dimensions");
    f.x.limits.tensors = UINT32_MAX;
    if (SIZE_MAX > UINT32_MAX)
        heft_assert_fails(
            heft_ix_tensor(&f.x, (heft_str){ "x", (size_t)UINT32_MAX + 1 }, HEFT_U8, 0, &dims, &id),
            HEFT_E_LIMIT, &f.err, "a name of 4294967296 bytes");
    heft_assert_ok(heft_ix_tensor(&f.x, heft_test_str("parts"), HEFT_U8, 0, &dims, &id), &f.err);
    for (uint32_t i = 0; i < UINT16_MAX; i++)
        heft_assert_ok(heft_ix_part(&f.x, id, heft_test_str("p"), HEFT_U8, where, 1, HEFT_RAW),
                       &f.err);
    heft_assert_fails(heft_ix_part(&f.x, id, heft_test_str("p"), HEFT_U8, where, 1, HEFT_RAW),
                      HEFT_E_LIMIT, &f.err, "tensor 'parts': more than 65535 parts");
    assert_int_equal(heft_ix_row(&f.x, id)->part_count, UINT16_MAX);
    end(&f);
}

static void dimensions_are_added_one_by_one(void **state)
{
    fixture f;
    uint64_t *dims;
    uint32_t id;
    (void)state;
    begin(&f);
    heft_assert_ok(heft_ix_tensor(&f.x, heft_test_str("w"), HEFT_U8, 0, &dims, &id), &f.err);
    for (uint64_t i = 0; i < 100; i++)
        heft_assert_ok(heft_ix_dim(&f.x, i), &f.err);
    assert_int_equal(heft_ix_row(&f.x, id)->rank, 100);
    assert_int_equal(f.x.max_rank, 100);
    for (uint64_t i = 0; i < 100; i++)
        assert_int_equal(heft_ix_dims(&f.x, id)[i], i);
    end(&f);
}

static void shards_are_counted_and_their_bytes_limited(void **state)
{
    static const uint64_t max_bytes = UINT64_C(1) << HEFT_GLOBAL_OFFSET_BITS;
    static const uint64_t max_shards = (UINT64_C(1) << (64 - HEFT_GLOBAL_OFFSET_BITS)) - 1;
    heft_ix_shard s = { .label = { "s", 1 }, .size = max_bytes };
    fixture f;
    uint32_t number;
    (void)state;
    begin(&f);
    f.x.file_bytes = max_bytes;
    heft_assert_ok(heft_ix_shard_add(&f.x, s, &number), &f.err);
    assert_int_equal(number, 1);
    s.size = HEFT_UNKNOWN_LENGTH;
    heft_assert_ok(heft_ix_shard_add(&f.x, s, &number), &f.err);
    assert_int_equal(number, 2);
    s.size = max_bytes + 1;
    heft_assert_fails(heft_ix_shard_add(&f.x, s, &number), HEFT_E_LIMIT, &f.err, "cannot be one");
    s.size = 1;
    f.x.file_bytes = max_bytes + 1;
    heft_assert_fails(heft_ix_shard_add(&f.x, s, &number), HEFT_E_LIMIT, &f.err, "cannot be one");
    f.x.file_bytes = max_bytes;
    while (f.x.shards.len < max_shards)
        heft_assert_ok(heft_ix_shard_add(&f.x, s, &number), &f.err);
    assert_int_equal(number, max_shards);
    heft_assert_fails(heft_ix_shard_add(&f.x, s, &number), HEFT_E_LIMIT, &f.err, "cannot be one");
    end(&f);
}

static void notes_and_omissions_are_limited(void **state)
{
    enum { MAX_NOTES = 10000, MAX_OMISSIONS = 32 };
    static const char *const text = "is lost";
    char name[8];
    fixture f;
    (void)state;
    begin(&f);
    for (int i = 0; i < MAX_NOTES; i++)
        heft_ix_note(&f.x, HEFT_NOTE, "heft/x", 1, HEFT_NONE, text);
    assert_false(f.x.notes_cut);
    heft_ix_note(&f.x, HEFT_NOTE, "heft/x", 1, HEFT_NONE, text);
    assert_true(f.x.notes_cut);
    assert_int_equal(f.x.notes.len, MAX_NOTES);
    const heft_ix_omission *omitted = f.x.omitted.ptr;
    for (int i = 0; i < MAX_OMISSIONS + 3; i++) {
        snprintf(name, sizeof name, "%d", i);
        heft_ix_omit(&f.x, HEFT_WARNING, "heft/x", heft_test_str(name), text);
    }
    heft_ix_omit(&f.x, HEFT_WARNING, "heft/x", heft_test_str("0"), text);
    omitted = f.x.omitted.ptr;
    assert_int_equal(f.x.omitted.len, MAX_OMISSIONS);
    assert_int_equal(omitted[0].count, 2);
    assert_int_equal(omitted[1].count, 1);
    assert_int_equal(omitted[MAX_OMISSIONS - 1].count, 4);
    end(&f);
}

static void omissions_differ_in_rule_name_and_text(void **state)
{
    static const struct {
        const char *rule, *name, *text;
        uint32_t rows;
    } rows[] = {
        { "heft/x", "n", "text", 1 }, { "heft/x", "n", "text", 1 },  { "heft/y", "n", "text", 2 },
        { "heft/x", "m", "text", 3 }, { "heft/x", "n", "other", 4 }, { "heft/x", NULL, "text", 5 },
    };
    fixture f;
    (void)state;
    begin(&f);
    assert_false(f.x.has_omissions);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_str name = { rows[i].name, rows[i].name ? 1 : 0 };
        heft_ix_omit(&f.x, HEFT_WARNING, rows[i].rule, name, rows[i].text);
        assert_int_equal(f.x.omitted.len, rows[i].rows);
    }
    assert_true(f.x.has_omissions && !f.x.lost_omissions);
    end(&f);
}

static void what_is_lost_without_memory_is_remembered(void **state)
{
    fixture f;
    (void)state;
    for (uint32_t n = 1; n <= 2; n++) {
        begin(&f);
        heft_test_memory_rewind(&f.m);
        f.m.fail_at = n;
        heft_ix_omit(&f.x, HEFT_NOTE, "heft/x", heft_test_str("name"), "text");
        assert_true(f.x.has_omissions && f.x.lost_omissions);
        assert_int_equal(f.x.omitted.len, n - 1);
        end(&f);
    }
    begin(&f);
    heft_test_memory_rewind(&f.m);
    f.m.fail_at = 1;
    heft_ix_note(&f.x, HEFT_NOTE, "heft/x", 1, HEFT_NONE, "text");
    assert_true(f.x.lost_notes && !f.x.notes_cut);
    end(&f);
}

/* ---- offsets -------------------------------------------------------------------------------- */

static void note_texts(const fixture *f, char *out)
{
    const heft_note *notes = f->x.notes.ptr;
    *out = '\0';
    for (uint32_t i = 0; i < f->x.notes.len; i++)
        sprintf(out + strlen(out), "%u@%u ", notes[i].tensor, (unsigned)notes[i].where.offset);
}

static void data_may_touch_but_not_overlap(void **state)
{
    static const struct {
        uint64_t ranges[3][2];
        const char *fault; /* the second of the tensors that overlap, or NULL */
        const char *notes, *shared_notes;
    } rows[] = {
        { { { 0, 10 }, { 10, 10 }, { 20, 1 } }, NULL, "", "" },
        { { { 0, 10 }, { 9, 10 }, { 20, 1 } }, "'b'", "1@9 ", "1@9 " },
        { { { 0, 10 }, { 0, 10 }, { 20, 1 } }, "'b'", "1@0 ", "" },
        { { { 0, 10 }, { 0, 9 }, { 20, 1 } }, "'a'", "0@0 ", "0@0 " },
        { { { 0, 10 }, { 5, 0 }, { 20, 1 } }, NULL, "", "" },
        { { { 0, 30 }, { 5, 5 }, { 29, 1 } }, "'b'", "1@5 2@29 ", "1@5 2@29 " },
        { { { 20, 5 }, { 5, 16 }, { 30, 1 } }, "'a'", "0@20 ", "0@20 " },
        { { { 20, 5 }, { 5, 15 }, { 25, 1 } }, NULL, "", "" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        fixture f;
        uint32_t *order, count;
        char notes[64];
        begin(&f);
        for (uint32_t k = 0; k < 3; k++)
            add(&f, (const char *[]){ "a", "b", "c" }[k], rows[i].ranges[k][0],
                rows[i].ranges[k][1]);
        heft_assert_ok(heft_ix_order(&f.x, &order, &count), &f.err);
        heft_status st = heft_ix_refuse_overlap(&f.x, order, count);
        if (rows[i].fault)
            heft_assert_fails(st, HEFT_E_FORMAT, &f.err, rows[i].fault);
        else
            heft_assert_ok(st, &f.err);
        heft_ix_order_free(&f.x, order);
        heft_assert_ok(heft_ix_note_overlaps(&f.x, "heft/x", "overlaps", false), &f.err);
        note_texts(&f, notes);
        assert_string_equal(notes, rows[i].notes);
        f.x.notes.len = 0;
        heft_assert_ok(heft_ix_note_overlaps(&f.x, "heft/x", "overlaps", true), &f.err);
        note_texts(&f, notes);
        assert_string_equal(notes, rows[i].shared_notes);
        end(&f);
    }
}

static void parts_of_the_file_are_no_overlap(void **state)
{
    fixture f;
    char notes[64];
    heft_range where = { 5, 10 };
    (void)state;
    begin(&f);
    add(&f, "a", 0, 10);
    heft_assert_ok(
        heft_ix_part(&f.x, HEFT_NONE, heft_test_str("config"), HEFT_UNTYPED, where, 10, HEFT_RAW),
        &f.err);
    heft_assert_ok(heft_ix_note_overlaps(&f.x, "heft/x", "overlaps", false), &f.err);
    note_texts(&f, notes);
    assert_string_equal(notes, "");
    end(&f);
}

static void odd_offsets_are_noted(void **state)
{
    fixture f;
    char notes[64];
    (void)state;
    begin(&f);
    add(&f, "a", 0, 10);
    add(&f, "b", 64, 1);
    heft_ix_note_offsets(&f.x, 64, "heft/x", "is odd");
    assert_int_equal(f.x.notes.len, 0);
    add(&f, "c", 65, 1);
    add(&f, "d", 128, 1);
    add(&f, "e", 160, 1);
    heft_ix_note_offsets(&f.x, 64, "heft/x", "is odd");
    note_texts(&f, notes);
    assert_string_equal(notes, "2@65 4@160 ");
    end(&f);
}

static void every_part_has_an_owner(void **state)
{
    fixture f;
    heft_range where = { 0, 1 };
    (void)state;
    begin(&f);
    assert_int_equal(heft_ix_owner(&f.x, 0), HEFT_NONE);
    for (uint32_t t = 0; t < 9; t++) {
        uint64_t one = 1;
        char name[4];
        snprintf(name, sizeof name, "%u", t);
        uint32_t id = add_shape(&f, name, HEFT_U8, &one, 1);
        for (uint32_t k = 0; k <= t % 3; k++)
            heft_assert_ok(heft_ix_part(&f.x, id, heft_test_str("p"), HEFT_U8, where, 1, HEFT_RAW),
                           &f.err);
    }
    for (uint32_t t = 0, part = 0; t < 9; t++)
        for (uint32_t k = 0; k <= t % 3; k++, part++)
            assert_int_equal(heft_ix_owner(&f.x, part), t);
    assert_int_equal(heft_ix_owner(&f.x, 18), HEFT_NONE);
    end(&f);
}

/* ---- checksums ------------------------------------------------------------------------------ */

static void digits_of_a_digest_are_checked(void **state)
{
    static const struct {
        const char *algorithm, *hex;
        bool is_valid;
        uint8_t first;
    } rows[] = {
        { "crc32", "0123abCD", true, 0xCD },
        { "crc32", "f", true, 0x0F },
        { "crc32c", "123456789", false, 0 },
        { "crc32", "", false, 0 },
        { "crc32", "0000000g", false, 0 },
        { "crc32", "0000000`", false, 0 },
        { "crc32", "0000000@", false, 0 },
        { "crc32", "0000000/", false, 0 },
        { "crc32", "0000000:", false, 0 },
        { "xxh3", "0123456789abcdef", true, 0xEF },
        { "xxh3", "0123456789abcdef0", false, 0 },
        { "sha256", "1234567890123456789012345678901234567890123456789012345678901234", true,
          0x12 },
        { "sha256", "123456789012345678901234567890123456789012345678901234567890123", false, 0 },
        { "sha256", "12345678901234567890123456789012345678901234567890123456789012345", false, 0 },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        uint8_t out[HEFT_CHECKSUM_BYTES];
        bool is_valid = heft_ix_digits(out, rows[i].algorithm, heft_test_str(rows[i].hex));
        assert_int_equal(is_valid, rows[i].is_valid);
        if (is_valid)
            assert_int_equal(out[0], rows[i].first);
    }
}

static void digests_are_found_by_part(void **state)
{
    fixture f;
    char longest[UINT16_MAX + 1];
    (void)state;
    begin(&f);
    for (uint32_t part = 1; part < 8; part += 3)
        heft_assert_ok(heft_ix_digest_crc32(&f.x, part, "heft/x", 0xC0FFEE00 + part), &f.err);
    for (uint32_t part = 0; part < 10; part++) {
        uint32_t i = heft_ix_digest_find(&f.x, part);
        assert_int_equal(i, part % 3 == 1 && part < 8 ? part / 3 : HEFT_NONE);
        heft_str text = heft_ix_digest_of(&f.x, part);
        assert_int_equal(text.len, i == HEFT_NONE ? 0 : 16);
        assert_non_null(text.ptr);
    }
    assert_true(heft_str_is(heft_ix_digest_of(&f.x, 4), "crc32:0xc0ffee04"));
    /* The digits may begin at byte 255 of 65535, and there must be a digit. */
    memset(longest, '0', sizeof longest);
    heft_str spelled = { longest, 263 };
    heft_assert_ok(heft_ix_digest(&f.x, 8, "heft/x", "crc32", spelled, 255, false), &f.err);
    heft_assert_status(heft_ix_digest(&f.x, 9, "heft/x", "crc32", spelled, 256, false),
                       HEFT_E_FORMAT, &f.err);
    heft_assert_status(
        heft_ix_digest(&f.x, 9, "heft/x", "crc32", (heft_str){ longest, 8 }, 8, false),
        HEFT_E_FORMAT, &f.err);
    heft_assert_status(
        heft_ix_digest(&f.x, 9, "heft/x", "crc32", (heft_str){ longest, 7 }, 8, false),
        HEFT_E_FORMAT, &f.err);
    spelled.len = sizeof longest;
    heft_assert_status(heft_ix_digest(&f.x, 9, "heft/x", "crc32", spelled, 0, false), HEFT_E_FORMAT,
                       &f.err);
    end(&f);
}

static void a_checksum_covers_whole_parts(void **state)
{
    static const heft_stored_checksum sums[] = {
        { .range = { { 300, 50 } }, .tensor = 2 },
        { .range = { { 100, 50 } }, .tensor = 0 },
        { .range = { { 200, 50 } }, .tensor = HEFT_NONE },
        { .range = { { 200, 50 } }, .tensor = 1, .covers_metadata_only = true },
        { .range = { { 200, 50 } }, .tensor = 1, .advisory = true },
        { .range = { { 200, 0 } }, .tensor = 1 },
        { .range = { { 200, 50 }, { 260, 1 } }, .tensor = 1 },
        { .range = { { 200, 50 } }, .tensor = 1, .is_alternative = true },
        { .range = { { 200, 50 } }, .tensor = 1 }, /* the last interpretation */
    };
    static const struct {
        uint64_t offset, bytes;
        uint32_t checksum;
    } parts[] = {
        { 100, 50, 1 },         { 100, 1, 1 },          { 149, 1, 1 },
        { 149, 2, HEFT_NONE },  { 150, 1, HEFT_NONE },  { 99, 2, HEFT_NONE },
        { 100, 51, HEFT_NONE }, { 110, 0, HEFT_NONE },  { 0, 1, HEFT_NONE },
        { 200, 50, HEFT_NONE }, { 300, 50, 0 },         { 349, 1, 0 },
        { 350, 1, HEFT_NONE },  { 9999, 1, HEFT_NONE },
    };
    fixture f;
    (void)state;
    begin(&f);
    for (uint32_t i = 0; i < HEFT_COUNT(parts); i++) {
        char name[8];
        snprintf(name, sizeof name, "%u", i);
        add(&f, name, parts[i].offset, parts[i].bytes);
    }
    for (size_t i = 0; i < HEFT_COUNT(sums); i++)
        heft_assert_ok(heft_ix_checksum(&f.x, sums[i]), &f.err);
    assert_true(f.x.has_alternatives); /* although the last has none */
    assert_true(heft_ix_list_tensor_checksums(&f.x));
    for (uint32_t i = 0; i < HEFT_COUNT(parts); i++)
        assert_int_equal(heft_ix_checksum_covering(&f.x, i), parts[i].checksum);
    assert_int_equal(heft_ix_checksums(&f.x), HEFT_COUNT(sums));
    assert_true(heft_ix_checksum_is_alternative(&f.x, 7));
    assert_false(heft_ix_checksum_is_alternative(&f.x, 8));
    assert_false(heft_ix_checksum_is_alternative(&f.x, HEFT_COUNT(sums)));
    end(&f);
}

/* ---- values --------------------------------------------------------------------------------- */

static heft_value value(heft_kind kind, const char *key)
{
    return (heft_value){ .kind = kind, .key = heft_test_str(key) };
}

static void values_are_equal_in_kind_key_and_content(void **state)
{
    heft_value a = value(HEFT_KIND_INT, "k"), b = a;
    (void)state;
    assert_true(heft_value_same(&a, &b));
    b.kind = HEFT_KIND_UINT;
    assert_false(heft_value_same(&a, &b));
    b = value(HEFT_KIND_INT, "l");
    assert_false(heft_value_same(&a, &b));
    static const heft_kind kinds[] = { HEFT_KIND_INT, HEFT_KIND_UINT, HEFT_KIND_FLOAT };
    for (size_t i = 0; i < HEFT_COUNT(kinds); i++) {
        a = b = value(kinds[i], "k");
        assert_true(heft_value_same(&a, &b));
        b.as.u = UINT64_C(1) << 63; /* -0.0, the number 0.0 */
        assert_false(heft_value_same(&a, &b));
    }
    a = b = value(HEFT_KIND_NULL, "k");
    b.as.u = 7;
    assert_true(heft_value_same(&a, &b));
    a = b = value(HEFT_KIND_BOOL, "k");
    assert_true(heft_value_same(&a, &b));
    b.as.b = true;
    assert_false(heft_value_same(&a, &b));
    static const heft_kind texts[] = { HEFT_KIND_STR, HEFT_KIND_BYTES, HEFT_KIND_ID128 };
    for (size_t i = 0; i < HEFT_COUNT(texts); i++) {
        a = b = value(texts[i], "k");
        a.as.s = b.as.s = heft_test_str("0123456789abcdef");
        assert_true(heft_value_same(&a, &b));
        b.as.s = heft_test_str("0123456789abcdeg");
        assert_false(heft_value_same(&a, &b));
    }
    static const heft_kind nests[] = { HEFT_KIND_LIST, HEFT_KIND_MAP };
    for (size_t i = 0; i < HEFT_COUNT(nests); i++) {
        a = b = value(nests[i], "k");
        assert_true(heft_value_same(&a, &b));
        b.as.container.count = 1;
        assert_false(heft_value_same(&a, &b));
    }
}

static void scalars_become_text(void **state)
{
    static const struct {
        heft_kind kind;
        uint64_t bits;
        const char *text; /* NULL: there is none */
    } rows[] = {
        { HEFT_KIND_INT, 0, "0" },
        { HEFT_KIND_INT, UINT64_MAX, "-1" },
        { HEFT_KIND_INT, UINT64_C(1) << 63, "-9223372036854775808" },
        { HEFT_KIND_INT, INT64_MAX, "9223372036854775807" },
        { HEFT_KIND_UINT, UINT64_MAX, "18446744073709551615" },
        { HEFT_KIND_BOOL, 1, "true" },
        { HEFT_KIND_BOOL, 0, "false" },
        { HEFT_KIND_NULL, 0, NULL },
        { HEFT_KIND_LIST, 0, NULL },
        { HEFT_KIND_BYTES, 0, NULL },
    };
    char buffer[HEFT_F64_TEXT];
    heft_str text;
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_value v = value(rows[i].kind, "k");
        if (v.kind == HEFT_KIND_BOOL)
            v.as.b = rows[i].bits;
        else
            v.as.u = rows[i].bits;
        assert_int_equal(heft_value_text(&text, &v, buffer), rows[i].text != NULL);
        if (rows[i].text)
            assert_true(heft_str_is(text, rows[i].text));
    }
    heft_value v = value(HEFT_KIND_STR, "k");
    v.as.s = heft_test_str("\xC3\xA9");
    assert_true(heft_value_text(&text, &v, buffer));
    v.as.s.len = 1;
    assert_false(heft_value_text(&text, &v, buffer)); /* an incomplete character */
}

static void values_that_formats_forbid_are_found(void **state)
{
    uint8_t bytes[200];
    (void)state;
    for (size_t len = 0; len <= sizeof bytes; len += len % 64 == 63 ? 1 : len < 3 ? 1 : 9) {
        memset(bytes, 1, sizeof bytes);
        assert_int_equal(heft_value_rule_broken_at(HEFT_BOOL_VALUE, bytes, len, true), len);
        for (size_t at = 0; at < len; at++) {
            bytes[at] = 2;
            assert_int_equal(heft_value_rule_broken_at(HEFT_BOOL_VALUE, bytes, len, true), at);
            bytes[at] = 0;
        }
    }
    uint8_t half[2] = { 0xF7, 0x0F };
    assert_int_equal(heft_value_rule_broken_at(HEFT_HALF_BYTE, half, 2, true), 2);
    half[1] = 0x10;
    assert_int_equal(heft_value_rule_broken_at(HEFT_HALF_BYTE, half, 2, true), 1);
    assert_int_equal(heft_value_rule_broken_at(HEFT_HALF_BYTE, half, 2, false), 2);
    assert_int_equal(heft_value_rule_broken_at(HEFT_HALF_BYTE, half, 0, true), 0);
    assert_int_equal(heft_value_rule_broken_at(HEFT_ANY_VALUE, half, 2, true), 2);
}

static void a_rule_depends_on_type_shape_and_layout(void **state)
{
    static const struct {
        heft_dtype t;
        uint64_t dims[2];
        const char *layout;
        uint64_t bytes;
        heft_value_rule rule;
    } rows[] = {
        { HEFT_BOOL, { 1, 3 }, "dense", 3, HEFT_BOOL_VALUE },
        { HEFT_BOOL, { 0, 3 }, "dense", 0, HEFT_ANY_VALUE },
        { HEFT_BOOL, { 1, 3 }, "sparse_coo", 3, HEFT_BOOL_VALUE },
        { HEFT_U8, { 1, 3 }, "dense", 3, HEFT_ANY_VALUE },
        { HEFT_F4_E2M1, { 3, 5 }, "dense", 8, HEFT_HALF_BYTE },
        { HEFT_F4_E2M1, { 2, 5 }, "dense", 5, HEFT_ANY_VALUE },
        { HEFT_F4_E2M1, { 3, 5 }, "sparse_coo", 8, HEFT_ANY_VALUE },
        { HEFT_F4_E2M1, { 0, 5 }, "dense", 0, HEFT_ANY_VALUE },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        fixture f;
        begin(&f);
        uint32_t id = add_shape(&f, "t", rows[i].t, rows[i].dims, 2);
        heft_range where = { 0, rows[i].bytes };
        heft_assert_ok(heft_ix_set_layout(&f.x, id, heft_test_str(rows[i].layout)), &f.err);
        heft_assert_ok(heft_ix_part(&f.x, id, heft_test_str("data"), rows[i].t, where,
                                    rows[i].bytes, HEFT_RAW),
                       &f.err);
        assert_int_equal(heft_value_rule_of(&f.x, 0), rows[i].rule);
        end(&f);
    }
}

/* ---- identities ----------------------------------------------------------------------------- */

static void identities_may_have_gaps(void **state)
{
    static const uint8_t base[16] = { 1, 2, 3 }, none[16] = { 0 };
    fixture f;
    (void)state;
    begin(&f);
    for (uint32_t t = 0; t < 6; t++) {
        char name[4];
        snprintf(name, sizeof name, "%u", t);
        add(&f, name, t, 1);
    }
    heft_identity id = { .has = HEFT_HAS_PARAM_ID | HEFT_HAS_REQUIRES_GRAD, .param_id = 77 };
    heft_assert_ok(heft_ix_identify(&f.x, 4, &id), &f.err);
    heft_assert_ok(heft_ix_base_id(&f.x, 3, base), &f.err);
    for (uint32_t t = 0; t < 6; t++) {
        heft_identity got = heft_ix_identity(&f.x, t);
        assert_int_equal(got.has, t == 4 ? id.has : 0);
        assert_true(!got.requires_grad && got.param_id == (t == 4 ? 77 : 0));
        const uint8_t *stored = heft_ix_base_id_at(&f.x, t);
        assert_int_equal(stored != NULL, t == 3);
        if (stored)
            assert_memory_equal(stored, base, 16);
    }
    for (uint32_t t = 0; t < 3; t++)
        assert_memory_equal((const uint8_t *)f.x.base_ids.ptr + 16 * t, none, 16);
    id = (heft_identity){ .has = HEFT_HAS_REQUIRES_GRAD | HEFT_HAS_BASE_ID, .requires_grad = true };
    memcpy(id.base_id.bytes, base, 16);
    heft_assert_ok(heft_ix_identify(&f.x, 0, &id), &f.err);
    assert_true(heft_ix_identity(&f.x, 0).requires_grad);
    assert_memory_equal(heft_ix_base_id_at(&f.x, 0), base, 16);
    end(&f);
}

/* ---- vocabularies --------------------------------------------------------------------------- */

static void a_vocabulary_has_limits_and_bounds(void **state)
{
    heft_test_memory m;
    heft_error err;
    heft_vocab *v, *copy;
    (void)state;
    heft_test_memory_init(&m, 0);
    heft_assert_status(heft_vocab_begin(&v, &m.al, UINT32_MAX, 0, &err), HEFT_E_LIMIT, &err);
    heft_assert_status(heft_vocab_begin(&v, &m.al, 1, (uint64_t)UINT32_MAX + 1, &err), HEFT_E_LIMIT,
                       &err);
    assert_null(v);
    m.fail_at = 1;
    heft_assert_status(heft_vocab_begin(&v, &m.al, UINT32_MAX - 1, UINT32_MAX, &err), HEFT_E_NOMEM,
                       &err);
    heft_test_memory_init(&m, 0);
    heft_assert_ok(heft_vocab_begin(&v, &m.al, 3, 3, &err), &err);
    heft_vocab_add(v, heft_test_str("a"));
    heft_vocab_add(v, (heft_str){ NULL, 0 });
    heft_vocab_add(v, heft_test_str("bc"));
    heft_assert_ok(heft_vocab_end(v, true, &err), &err);
    heft_vocab_set_special(v, HEFT_CLS, 2);
    heft_vocab_set_special(v, (heft_special)HEFT_SPECIALS, 1);
    heft_assert_ok(heft_vocab_copy(&copy, v, &m.al, &err), &err);
    const heft_vocab *both[] = { v, copy };
    for (int i = 0; i < 2; i++) {
        assert_true(heft_str_is(heft_vocab_at(both[i], 0), "a"));
        assert_true(heft_str_is(heft_vocab_at(both[i], 1), ""));
        assert_true(heft_str_is(heft_vocab_at(both[i], 2), "bc"));
        assert_null(heft_vocab_at(both[i], 3).ptr);
        assert_int_equal(heft_vocab_find(both[i], heft_test_str("bc")), 2);
        assert_int_equal(heft_vocab_special(both[i], HEFT_CLS), 2);
        assert_int_equal(heft_vocab_special(both[i], HEFT_PAD), HEFT_NONE);
        assert_int_equal(heft_vocab_special(both[i], (heft_special)HEFT_SPECIALS), HEFT_NONE);
    }
    assert_string_equal(heft_vocab_special_name((heft_special)HEFT_SPECIALS), "unknown");
    for (uint32_t n = 1; n <= 4; n++) {
        heft_vocab *failed;
        heft_test_memory_rewind(&m);
        m.fail_at = n;
        heft_assert_status(heft_vocab_copy(&failed, v, &m.al, &err), HEFT_E_NOMEM, &err);
        assert_null(failed);
        m.fail_at = 0;
    }
    heft_vocab_close(copy);
    heft_vocab_close(v);
    heft_assert_all_freed(&m);
}

static void attributes_nest_up_to_the_limit(void **state)
{
    fixture f;
    (void)state;
    begin(&f);
    f.x.limits.depth = 2;
    uint32_t id = add(&f, "t", 0, 1);
    heft_assert_ok(heft_ix_attr(&f.x, id, value(HEFT_KIND_LIST, "outer")), &f.err);
    heft_assert_ok(heft_ix_attr(&f.x, id, value(HEFT_KIND_LIST, "inner")), &f.err);
    heft_assert_fails(heft_ix_attr(&f.x, id, value(HEFT_KIND_MAP, "third")), HEFT_E_LIMIT, &f.err,
                      "metadata 'outer' is nested deeper than 2");
    assert_string_equal(f.err.rule, "heft/limit-depth");
    heft_assert_ok(heft_ix_attr(&f.x, id, value(HEFT_KIND_INT, "leaf")), &f.err);
    heft_ix_attr_end(&f.x);
    heft_ix_attr_end(&f.x);
    heft_value v;
    assert_true(heft_ix_attribute(&v, &f.x, id, 0));
    assert_int_equal(v.as.container.end, 3);
    assert_int_equal(v.as.container.count, 1);
    assert_true(heft_ix_attribute(&v, &f.x, id, 2));
    assert_false(heft_ix_attribute(&v, &f.x, id, 3));
    end(&f);
}

static void a_container_without_memory_is_reported(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 2; n++) {
        fixture f;
        begin(&f);
        uint32_t id = add(&f, "t", 0, 1);
        heft_test_memory_rewind(&f.m);
        f.m.fail_at = n;
        heft_assert_status(heft_ix_meta(&f.x, value(HEFT_KIND_MAP, "m")), HEFT_E_NOMEM, &f.err);
        heft_test_memory_rewind(&f.m);
        f.m.fail_at = 1;
        heft_assert_status(heft_ix_attr(&f.x, id, value(HEFT_KIND_MAP, "m")), HEFT_E_NOMEM, &f.err);
        end(&f);
    }
}

static void count_names(void *ctx, const char **from, const char *name)
{
    *from = name;
    ++*(uint32_t *)ctx;
}

static void the_engine_hears_of_every_1024th_name(void **state)
{
    fixture f;
    uint32_t calls = 0;
    (void)state;
    begin(&f);
    f.x.on_parsed_upto = count_names;
    f.x.on_parsed_ctx = &calls;
    for (uint32_t i = 0; i < 3000; i++)
        add(&f, "t", 0, 1);
    assert_in_range(calls, 2, 3);
    end(&f);
}

static void keys_of_shards_have_the_prefix(void **state)
{
    fixture f;
    (void)state;
    begin(&f);
    assert_false(heft_ix_is_shard_key(&f.x, heft_test_str("split.no")));
    f.x.shard_info.prefix = heft_test_str("split.");
    assert_true(heft_ix_is_shard_key(&f.x, heft_test_str("split.no")));
    assert_false(heft_ix_is_shard_key(&f.x, heft_test_str("split.")));
    assert_false(heft_ix_is_shard_key(&f.x, heft_test_str("split")));
    assert_false(heft_ix_is_shard_key(&f.x, heft_test_str("splits.no")));
    end(&f);
}

static void merged_indexes_keep_what_was_lost_or_cut(void **state)
{
    static const uint8_t kept[2] = { 1, 0 };
    (void)state;
    for (int i = 0; i < 4; i++) {
        fixture into, from;
        begin(&into);
        begin(&from);
        add(&from, "a", 0, 1);
        add(&from, "b", 5, 1);
        add(&into, "c", 0, 1);
        (i & 1 ? &from : &into)->x.lost_omissions = true;
        (i & 2 ? &from : &into)->x.notes_cut = true;
        heft_assert_ok(heft_ix_build_name_table(&into.x), &into.err);
        heft_assert_ok(heft_ix_merge(&into.x, &from.x, 0, (heft_str){ NULL, 0 }, kept), &into.err);
        assert_true(into.x.lost_omissions && into.x.notes_cut && !into.x.has_name_table);
        assert_int_equal(heft_ix_tensors(&into.x), 2);
        assert_true(heft_str_is(heft_ix_name(&into.x, 1), "a"));
        end(&into);
        end(&from);
    }
}

/* ---- records -------------------------------------------------------------------------------- */

typedef struct record_row {
    heft_dtype t;
    uint32_t rank;
    uint64_t dims[3];
    uint64_t offset, length;
    heft_status st;
    const char *words;
} record_row;

static const record_row records[] = {
    { HEFT_F32, 0, { 0 }, 0, 4, HEFT_OK, "" },
    { HEFT_F32, 3, { 2, 3, 4 }, 9904, 96, HEFT_OK, "" },
    { HEFT_F32, 3, { 2, 3, 4 }, 9904, HEFT_UNKNOWN_LENGTH, HEFT_OK, "" },
    { HEFT_F32, 3, { 2, 3, 4 }, 9905, 96, HEFT_E_FORMAT, "96 bytes at offset 9905 pass the end" },
    { HEFT_F32, 3, { 2, 3, 4 }, UINT64_MAX, 96, HEFT_E_FORMAT, "pass the end" },
    { HEFT_F32, 3, { 2, 3, 4 }, 0, 95, HEFT_E_FORMAT, "95 bytes are stored" },
    { HEFT_F32, 2, { UINT64_C(1) << 32, UINT64_C(1) << 32 }, 0, 0, HEFT_E_FORMAT, "64 bits" },
    { HEFT_F32, 2, { UINT64_C(1) << 62, 1 }, 0, 0, HEFT_E_FORMAT, "64 bits" },
    { HEFT_U8, 2, { 0, UINT64_MAX }, 10000, 0, HEFT_OK, "" },
    { HEFT_U8, 2, { 0, UINT64_MAX }, 10001, 0, HEFT_E_FORMAT, "pass the end" },
    { HEFT_F4_E2M1, 1, { 5 }, 0, 3, HEFT_OK, "" },
};

/* Add a record with or without reserved rows: the fast path and the general functions agree. */
static heft_status add_record(fixture *f, const record_row *r, uint64_t reserved, heft_str name)
{
    uint8_t shape[24];
    for (uint32_t i = 0; i < r->rank && i < 3; i++)
        for (uint32_t k = 0; k < 8; k++)
            shape[8 * i + k] = (uint8_t)(r->dims[i] >> 8 * k);
    heft_ix_record record = { .name = name,
                              .shape = shape,
                              .at = 7,
                              .offset = r->offset,
                              .length = r->length,
                              .rank = r->rank,
                              .dtype = r->t };
    assert_true(heft_ix_cache_data_role(&f->x));
    if (reserved)
        assert_true(heft_ix_reserve_rows(&f->x, reserved, 8));
    return heft_ix_add(&f->x, &record);
}

static void records_are_checked_with_and_without_reserved_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(records); i++)
        for (uint64_t reserved = 0; reserved < 2; reserved++) {
            fixture f;
            begin(&f);
            heft_status st = add_record(&f, &records[i], 4 * reserved, heft_test_str("t"));
            heft_assert_status(st, records[i].st, &f.err);
            if (st)
                heft_assert_fails(st, records[i].st, &f.err, records[i].words);
            else
                assert_int_equal(heft_ix_row(&f.x, 0)->rank, records[i].rank);
            end(&f);
        }
}

static void records_respect_the_limits_of_the_index(void **state)
{
    record_row row = { HEFT_U8, 1, { 1 }, 0, 1, HEFT_OK, "" };
    fixture f;
    (void)state;
    begin(&f);
    f.x.limits.tensors = 2;
    heft_assert_ok(add_record(&f, &row, 8, heft_test_str("a")), &f.err);
    heft_assert_ok(add_record(&f, &row, 0, heft_test_str("b")), &f.err);
    heft_assert_fails(add_record(&f, &row, 0, heft_test_str("c")), HEFT_E_LIMIT, &f.err,
                      "more than 2 tensors");
    assert_string_equal(f.err.rule, "heft/limit-tensors");
    f.x.limits.tensors = 8;
    if (SIZE_MAX > UINT32_MAX)
        heft_assert_fails(add_record(&f, &row, 0, (heft_str){ "x", (size_t)UINT32_MAX + 1 }),
                          HEFT_E_LIMIT, &f.err, "a name of 4294967296 bytes");
    assert_int_equal(heft_ix_tensors(&f.x), 2);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dimensions_parts_and_names_have_limits),
        cmocka_unit_test(dimensions_are_added_one_by_one),
        cmocka_unit_test(shards_are_counted_and_their_bytes_limited),
        cmocka_unit_test(notes_and_omissions_are_limited),
        cmocka_unit_test(omissions_differ_in_rule_name_and_text),
        cmocka_unit_test(what_is_lost_without_memory_is_remembered),
        cmocka_unit_test(data_may_touch_but_not_overlap),
        cmocka_unit_test(parts_of_the_file_are_no_overlap),
        cmocka_unit_test(odd_offsets_are_noted),
        cmocka_unit_test(every_part_has_an_owner),
        cmocka_unit_test(digits_of_a_digest_are_checked),
        cmocka_unit_test(digests_are_found_by_part),
        cmocka_unit_test(a_checksum_covers_whole_parts),
        cmocka_unit_test(values_are_equal_in_kind_key_and_content),
        cmocka_unit_test(scalars_become_text),
        cmocka_unit_test(values_that_formats_forbid_are_found),
        cmocka_unit_test(a_rule_depends_on_type_shape_and_layout),
        cmocka_unit_test(identities_may_have_gaps),
        cmocka_unit_test(a_vocabulary_has_limits_and_bounds),
        cmocka_unit_test(attributes_nest_up_to_the_limit),
        cmocka_unit_test(a_container_without_memory_is_reported),
        cmocka_unit_test(the_engine_hears_of_every_1024th_name),
        cmocka_unit_test(keys_of_shards_have_the_prefix),
        cmocka_unit_test(merged_indexes_keep_what_was_lost_or_cut),
        cmocka_unit_test(records_are_checked_with_and_without_reserved_rows),
        cmocka_unit_test(records_respect_the_limits_of_the_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
