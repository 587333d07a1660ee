/* test_parallel_text.c - parallel parsing of JSON and CBOR headers, where workers guess the starts
 * of records: the same index and the same errors as with one thread, also after wrong guesses. */
#include "workers.h"

#include "grammar/cbor.h"
#include "model/parallel.h"
#include "model/records.h"

enum { TENSORS = 80001, MAX_BYTES = 40 << 20, LONG = 200 };

/* Numbers of the records that differ. */
static const uint32_t odd_records[] = { 1, TENSORS / 4, TENSORS / 2 + 7, TENSORS - 1 };

static bool is_odd_record(uint32_t i, uint32_t which)
{
    for (size_t k = 0; k < HEFT_COUNT(odd_records); k++)
        if (which >> k & 1 && odd_records[k] == i)
            return true;
    return false;
}

/* ---- JSON ---- */

enum { CANONICAL, WITH_METADATA, WRONG_SHAPE, DUPLICATE, LONG_AT_CHUNKS, OTHER_MEMBER_ORDER };

/* # is the number of the tensor, and the offset of the one byte of data; < is the end offset. @ is
 * long where chunks begin, so that the number of records is underestimated. */
static const char *const entries[] = {
    [CANONICAL] = "'layer.#.weight':{'dtype':'U8','shape':[1],'data_offsets':[#,<]}",
    [WITH_METADATA] =
        "'__metadata__':{'a':'b'},'n#':{'dtype':'U8','shape':[1],'data_offsets':[#,<]}",
    [WRONG_SHAPE] = "'layer.#':{'dtype':'U8','shape':[2],'data_offsets':[#,<]}",
    [DUPLICATE] = "'twice':{'dtype':'U8','shape':[1],'data_offsets':[#,<]}",
    [LONG_AT_CHUNKS] = "'@#':{'dtype':'U8','shape':[1],'data_offsets':[#,<]}",
    [OTHER_MEMBER_ORDER] = "'t#':{'data_offsets':[#,<],'shape':[1,1,1,1,1,1,1,1,1],'dtype':'U8'}",
    "\n 's#' :\t{ 'dtype' : 'U8' , 'shape' : [ 1 ] , 'data_offsets' : [ # , < ] } ",
    "'a},b},#':{'dtype':'U8','shape':[1],'data_offsets':[#,<]}",
    "'\\u0041#':{'dtype':'U8','shape':[1],'data_offsets':[#,<]}",
    "'m#':{'x':{'y':{},'z':1},'dtype':'U8','shape':[1],'data_offsets':[#,<]}",
};

static size_t put_entry(char *to, const char *entry, uint32_t i)
{
    char *p = to;
    for (; *entry; entry++)
        if (*entry == '#' || *entry == '<')
            p += sprintf(p, "%u", i + (*entry == '<'));
        else if (*entry != '@')
            *p++ = *entry == '\'' ? '"' : *entry;
        else if (i % (TENSORS / 16) < LONG)
            p = (char *)memset(p, 'x', LONG) + LONG;
    return (size_t)(p - to);
}

static heft_bytes json_file(size_t odd, uint32_t which)
{
    char *text = malloc(MAX_BYTES);
    assert_non_null(text);
    size_t at = 8;
    text[at++] = '{';
    for (uint32_t i = 0; i < TENSORS; i++) {
        bool is_odd = is_odd_record(i, which) || odd == LONG_AT_CHUNKS;
        at += put_entry(text + at, entries[is_odd ? odd : CANONICAL], i);
        text[at++] = ',';
    }
    text[at - 1] = '}';
    for (unsigned k = 0; k < 8; k++)
        text[k] = (char)((uint64_t)(at - 8) >> 8 * k & 255);
    memset(text + at, 0, TENSORS);
    heft_bytes b = heft_test_copy(text, at + TENSORS);
    free(text);
    return b;
}

static void reads_unusual_json_entries_as_one_thread_does(void **state)
{
    static const uint32_t which[] = { 4, 1, 2, 8, 6 };
    (void)state;
    for (size_t k = 0; k < HEFT_COUNT(entries); k++)
        for (size_t i = 0; i < heft_test_fewer(HEFT_COUNT(which)); i++) {
            heft_bytes b = json_file(k, which[i]);
            heft_expect_same_by_workers(b, NULL);
            heft_test_free(&b);
        }
}

static void reports_errors_as_one_thread_does(void **state)
{
    heft_bytes b = json_file(WRONG_SHAPE, 4), c = json_file(DUPLICATE, 9),
               d = json_file(WITH_METADATA, 9);
    (void)state;
    heft_expect_same_by_workers(b, "its shape as u8 takes 2");
    heft_expect_same_by_workers(c, "occurs twice");
    heft_expect_same_by_workers(d, "__metadata__ occurs twice");
    heft_test_free(&b);
    heft_test_free(&c);
    heft_test_free(&d);
}

/* ---- CBOR ---- */

enum { PLAIN, WITH_ID, LONG_NUMBER, TAGGED, TEXT_BOOL, OTHER_ORDER, CBOR_KINDS };

static void put_name(heft_out *o, const char *name)
{
    heft_cbor_put_text(o, heft_lit(name));
}

static void put_offset(heft_out *o, uint32_t kind, uint64_t v)
{
    if (kind == LONG_NUMBER) {
        heft_out_u8(o, 0x1B);
        for (unsigned k = 8; k--;)
            heft_out_u8(o, (uint8_t)(v >> 8 * k));
    } else {
        heft_cbor_put_u64(o, v);
    }
}

static void put_shape(heft_out *o)
{
    put_name(o, "shape");
    heft_cbor_put_array(o, 1);
    heft_cbor_put_u64(o, 1);
}

static void put_tensor(heft_out *o, uint32_t kind, uint32_t i)
{
    char name[32];
    snprintf(name, sizeof name, "layer.%06u.weight", i * 7919 % TENSORS);
    put_name(o, name);
    if (kind == TAGGED)
        heft_out_u8(o, 0xC1);
    heft_cbor_put_map(o, kind == WITH_ID ? 4 : 3);
    if (kind == OTHER_ORDER)
        put_shape(o);
    put_name(o, "dtype");
    put_name(o, kind == TEXT_BOOL ? "Bool" : "U8");
    if (kind != OTHER_ORDER)
        put_shape(o);
    put_name(o, "data_offsets");
    heft_cbor_put_array(o, 2);
    put_offset(o, kind, 256ull * (TENSORS - i));
    put_offset(o, kind, 256ull * (TENSORS - i) + 1);
    if (kind == WITH_ID) {
        put_name(o, "param_id");
        heft_cbor_put_u64(o, i);
    }
}

/* Make a Burnpack with a manifest that announces `fewer` tensors less than follow. */
static heft_bytes burnpack_file(uint32_t odd, uint32_t which, uint32_t fewer)
{
    uint8_t *bytes = malloc(MAX_BYTES);
    assert_non_null(bytes);
    heft_out o = { .buf = bytes, .cap = MAX_BYTES };
    heft_out_bytes(&o, "NRUB\1\0\0\0\0\0", 10);
    heft_cbor_put_map(&o, 2);
    put_name(&o, "tensors");
    heft_cbor_put_map(&o, TENSORS - fewer);
    for (uint32_t i = 0; i < TENSORS; i++)
        put_tensor(&o,
                   is_odd_record(i, which)   ? odd
                   : odd == WITH_ID && i % 3 ? WITH_ID
                                             : PLAIN,
                   i);
    put_name(&o, "metadata");
    heft_cbor_put_map(&o, 0);
    size_t n = o.len - 10, size = (o.len + 255) / 256 * 256 + 256ull * TENSORS + 1;
    for (unsigned k = 0; k < 4; k++)
        bytes[6 + k] = (uint8_t)(n >> 8 * k);
    assert_true(size <= MAX_BYTES);
    memset(bytes + o.len, 0, size - o.len);
    heft_bytes b = heft_test_copy(bytes, size);
    free(bytes);
    return b;
}

static void reads_unusual_cbor_descriptors_as_one_thread_does(void **state)
{
    static const uint32_t which[] = { 0, 1, 2, 4, 8, 6 };
    (void)state;
    for (uint32_t kind = 0; kind < CBOR_KINDS; kind++)
        for (size_t i = 0; i < heft_test_fewer(HEFT_COUNT(which)); i++) {
            heft_bytes b = burnpack_file(kind, which[i], 0);
            heft_expect_same_by_workers(b, NULL);
            heft_test_free(&b);
        }
}

static void ignores_no_record_beyond_the_announced_count(void **state)
{
    static const uint32_t fewer[] = { 1, 1000, TENSORS / 2, TENSORS - 20 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(fewer); i++) {
        heft_bytes b = burnpack_file(PLAIN, 0, fewer[i]);
        heft_expect_same_by_workers(b, NULL);
        heft_test_free(&b);
    }
}

/* ---- guesses ---- */

enum { RECORD = 20, CHUNKS = HEFT_IX_CHUNKS };

/* Records of 20 bytes. Guesses are wrong by `off` bytes; a chunk fails, or ends after `stops`. */
typedef struct fake {
    const uint8_t *bytes;
    uint32_t off, stops[CHUNKS], joined, moved[CHUNKS];
    bool fails[CHUNKS];
} fake;

static const uint8_t *seek_fake(const void *ctx, const uint8_t *p, const uint8_t *end)
{
    const fake *f = ctx;
    const uint8_t *next = f->bytes + ((size_t)(p - f->bytes) / RECORD + 1) * RECORD + f->off;
    return next < end ? next : NULL;
}

static const uint8_t *read_fake(void *ctx, const uint8_t *p, const uint8_t *end, heft_index *x,
                                uint32_t chunk)
{
    static const uint8_t shape[8] = { 1 };
    const fake *f = ctx;
    for (uint32_t n = 0; p < end && n < f->stops[chunk]; n++, p += RECORD) {
        heft_ix_record r = { .name = { (const char *)p, RECORD },
                             .shape = shape,
                             .length = HEFT_UNKNOWN_LENGTH,
                             .rank = 1,
                             .dtype = HEFT_U8 };
        if (heft_ix_add(x, &r))
            return NULL;
        if (n % 3 == 0 && heft_ix_param_id(x, x->tensors.len - 1, (uint64_t)(p - f->bytes)))
            return NULL;
    }
    return f->fails[chunk] ? NULL : p;
}

static void join_fake(void *ctx, uint32_t chunk, uint32_t moved)
{
    fake *f = ctx;
    assert_int_equal(chunk, f->joined++);
    f->moved[chunk] = moved;
}

/* Rows are in the order of the records. */
static void expect_in_order(const heft_index *x, const fake *f)
{
    assert_int_equal(x->parts.len, x->tensors.len);
    assert_int_equal(x->hashes.len, x->tensors.len);
    assert_int_equal(x->dims.len, x->tensors.len);
    assert_true(x->param_ids.len <= x->tensors.len);
    for (uint32_t i = 0; i < x->tensors.len; i++) {
        const heft_ix_tensor_row *row = heft_ix_row(x, i);
        assert_ptr_equal(row->name, f->bytes + (size_t)i * RECORD);
        assert_int_equal(row->first_part, i);
        assert_int_equal(row->dims, i);
        if (i < x->param_ids.len)
            assert_int_equal(((const uint64_t *)x->param_ids.ptr)[i],
                             row->flags & HEFT_T_PARAM_ID ? i * RECORD : 0);
    }
}

/* Return the number of records that were read. */
static uint32_t read_records(fake f, uint32_t max_records)
{
    heft_executor threads = heft_executor_threads(4);
    heft_test_memory m;
    heft_index x;
    heft_error err;
    size_t len = (size_t)TENSORS * RECORD;
    uint8_t *bytes = calloc(len + RECORD, 1); /* a wrong guess reads beyond the last record */
    heft_ix_text_records records = {
        .seek = seek_fake, .read = read_fake, .join = join_fake, .ctx = &f, .param_ids = true
    };
    assert_non_null(bytes);
    f.bytes = bytes;
    heft_test_memory_init(&m, 0);
    heft_ix_init(&x, &m.al, NULL, (uint64_t[2]){ 0, 0 });
    x.err = &err;
    x.run = threads.run;
    x.run_ctx = threads.ctx;
    const uint8_t *stop = heft_ix_parallel_text(&x, bytes, bytes + len, max_records, &records);
    uint32_t read = x.tensors.len;
    assert_ptr_equal(stop, bytes + (size_t)read * RECORD);
    expect_in_order(&x, &f);
    heft_ix_free(&x);
    heft_assert_all_freed(&m);
    free(bytes);
    return read;
}

static void keeps_records_up_to_the_first_wrong_guess(void **state)
{
    enum { ALL = UINT32_MAX };
    fake good = { .stops = { ALL, ALL, ALL, ALL } }, wrong = good, early = good, refused = good;
    (void)state;
    assert_int_equal(read_records(good, ALL), TENSORS);
    assert_int_equal(read_records(good, TENSORS), TENSORS);
    uint32_t three = read_records(good, TENSORS - 1), one = read_records(good, TENSORS / 2 - 9);
    assert_in_range(three, TENSORS / 2 + 1, TENSORS - 2);
    assert_in_range(one, 1, TENSORS / 2 - 9);
    wrong.off = 3; /* the first chunk does not end at the guess */
    assert_in_range(read_records(wrong, ALL), TENSORS / 4, TENSORS / 4 + 9);
    early.stops[1] = 100;
    assert_in_range(read_records(early, ALL), TENSORS / 4 + 99, TENSORS / 4 + 109);
    refused.fails[2] = true;
    assert_in_range(read_records(refused, ALL), TENSORS / 2 - 9, TENSORS / 2 + 9);
    refused.fails[0] = true;
    assert_int_equal(read_records(refused, ALL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_unusual_json_entries_as_one_thread_does),
        cmocka_unit_test(reports_errors_as_one_thread_does),
        cmocka_unit_test(reads_unusual_cbor_descriptors_as_one_thread_does),
        cmocka_unit_test(ignores_no_record_beyond_the_announced_count),
        cmocka_unit_test(keeps_records_up_to_the_first_wrong_guess),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
