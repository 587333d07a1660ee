/* test_parallel_text.c - very many tensors in a header of JSON or CBOR, whose records several workers look for: the same
 * index, and the same refusals, as when one reads them in order; also where what they find is none. */
#include "workers.h"

#include "grammar/cbor.h"
#include "model/parallel.h"
#include "model/records.h"

enum { TENSORS = 80001, ROOM = 40 << 20, LONG = 200 };

/* Where records are another than elsewhere. */
static const uint32_t places[] = { 1, TENSORS / 4, TENSORS / 2 + 7, TENSORS - 1 };

static bool is_place(uint32_t i, uint32_t which)
{
    for (size_t k = 0; k < HEFT_COUNT(places); k++)
        if (which >> k & 1 && places[k] == i)
            return true;
    return false;
}

/* Of so many choices, fewer in builds that take ten times as long. */
static size_t some(size_t count)
{
    return getenv("HEFT_TEST_FEWER") ? (count + 2) / 3 : count;
}

/* ---- JSON ---- */

enum { USUAL, WITH_METADATA, TOO_SHORT, TWICE, LONG_AT_TIMES, FIRST_OTHER };

/* # is the tensor's number, where its one byte begins, and < where that ends.  Where slices begin, @ is long: there is
 * room for fewer records than there are. */
static const char *const entries[] = {
    [USUAL] = "'layer.#.weight':{'dtype':'U8','shape':[1],'data_offsets':[#,<]}",
    [WITH_METADATA] =
        "'__metadata__':{'a':'b'},'n#':{'dtype':'U8','shape':[1],'data_offsets':[#,<]}",
    [TOO_SHORT] = "'layer.#':{'dtype':'U8','shape':[2],'data_offsets':[#,<]}",
    [TWICE] = "'twice':{'dtype':'U8','shape':[1],'data_offsets':[#,<]}",
    [LONG_AT_TIMES] = "'@#':{'dtype':'U8','shape':[1],'data_offsets':[#,<]}",
    [FIRST_OTHER] = "'t#':{'data_offsets':[#,<],'shape':[1,1,1,1,1,1,1,1,1],'dtype':'U8'}",
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
    char *text = malloc(ROOM);
    assert_non_null(text);
    size_t at = 8;
    text[at++] = '{';
    for (uint32_t i = 0; i < TENSORS; i++) {
        bool is_odd = is_place(i, which) || odd == LONG_AT_TIMES;
        at += put_entry(text + at, entries[is_odd ? odd : USUAL], i);
        text[at++] = ',';
    }
    text[at - 1] = '}';
    for (unsigned k = 0; k < 8; k++)
        text[k] = (char)((at - 8) >> 8 * k & 255);
    memset(text + at, 0, TENSORS);
    heft_bytes b = heft_test_copy(text, at + TENSORS);
    free(text);
    return b;
}

static void odd_entries_are_read_in_order(void **state)
{
    static const uint32_t which[] = { 4, 1, 2, 8, 6 };
    (void)state;
    for (size_t k = 0; k < HEFT_COUNT(entries); k++)
        for (size_t i = 0; i < some(HEFT_COUNT(which)); i++) {
            heft_bytes b = json_file(k, which[i]);
            heft_expect_same_by_workers(b, NULL);
            heft_test_free(&b);
        }
}

static void what_is_wrong_is_said_all_the_same(void **state)
{
    heft_bytes b = json_file(TOO_SHORT, 4), c = json_file(TWICE, 9),
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

/* fewer: than there are announced. */
static heft_bytes burnpack_file(uint32_t odd, uint32_t which, uint32_t fewer)
{
    uint8_t *bytes = malloc(ROOM);
    assert_non_null(bytes);
    heft_out o = { .buf = bytes, .cap = ROOM };
    heft_out_bytes(&o, "NRUB\1\0\0\0\0\0", 10);
    heft_cbor_put_map(&o, 2);
    put_name(&o, "tensors");
    heft_cbor_put_map(&o, TENSORS - fewer);
    for (uint32_t i = 0; i < TENSORS; i++)
        put_tensor(&o, is_place(i, which) ? odd : odd == WITH_ID && i % 3 ? WITH_ID : PLAIN, i);
    put_name(&o, "metadata");
    heft_cbor_put_map(&o, 0);
    size_t n = o.len - 10, size = (o.len + 255) / 256 * 256 + 256ull * TENSORS + 1;
    for (unsigned k = 0; k < 4; k++)
        bytes[6 + k] = (uint8_t)(n >> 8 * k);
    assert_true(size <= ROOM);
    memset(bytes + o.len, 0, size - o.len);
    heft_bytes b = heft_test_copy(bytes, size);
    free(bytes);
    return b;
}

static void odd_descriptors_are_read_in_order(void **state)
{
    static const uint32_t which[] = { 0, 1, 2, 4, 8, 6 };
    (void)state;
    for (uint32_t kind = 0; kind < CBOR_KINDS; kind++)
        for (size_t i = 0; i < some(HEFT_COUNT(which)); i++) {
            heft_bytes b = burnpack_file(kind, which[i], 0);
            heft_expect_same_by_workers(b, NULL);
            heft_test_free(&b);
        }
}

static void more_than_announced_is_more(void **state)
{
    static const uint32_t fewer[] = { 1, 1000, TENSORS / 2, TENSORS - 20 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(fewer); i++) {
        heft_bytes b = burnpack_file(PLAIN, 0, fewer[i]);
        heft_expect_same_by_workers(b, NULL);
        heft_test_free(&b);
    }
}

/* ---- what is made of guesses ---- */

enum { RECORD = 20, SLICES = HEFT_IX_CHUNKS };

/* Records of 20 bytes; a guess is off by `off`, a slice ends after `stops`, or is refused. */
typedef struct fake {
    const uint8_t *bytes;
    uint32_t off, stops[SLICES], joined, moved[SLICES];
    bool refuses[SLICES];
} fake;

static const uint8_t *seek_fake(const void *ctx, const uint8_t *p, const uint8_t *end)
{
    const fake *f = ctx;
    const uint8_t *next = f->bytes + ((size_t)(p - f->bytes) / RECORD + 1) * RECORD + f->off;
    return next < end ? next : NULL;
}

static const uint8_t *read_fake(void *ctx, const uint8_t *p, const uint8_t *end, heft_index *x,
                                uint32_t slice)
{
    static const uint8_t shape[8] = { 1 };
    const fake *f = ctx;
    for (uint32_t n = 0; p < end && n < f->stops[slice]; n++, p += RECORD) {
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
    return f->refuses[slice] ? NULL : p;
}

static void join_fake(void *ctx, uint32_t slice, uint32_t moved)
{
    fake *f = ctx;
    assert_int_equal(slice, f->joined++);
    f->moved[slice] = moved;
}

/* Rows are those of the records in order, whichever worker made them. */
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

/* How many records were read. */
static uint32_t sought(fake f, uint32_t most)
{
    heft_executor threads = heft_executor_threads(4);
    heft_test_memory m;
    heft_index x;
    heft_error err;
    size_t len = (size_t)TENSORS * RECORD;
    uint8_t *bytes = calloc(len + RECORD, 1); /* a wrong guess reads on */
    heft_ix_text_records how = {
        .seek = seek_fake, .read = read_fake, .join = join_fake, .ctx = &f, .param_ids = true
    };
    assert_non_null(bytes);
    f.bytes = bytes;
    heft_test_memory_init(&m, 0);
    heft_ix_init(&x, &m.al, NULL, (uint64_t[2]){ 0, 0 });
    x.err = &err;
    x.run = threads.run;
    x.run_ctx = threads.ctx;
    const uint8_t *stop = heft_ix_parallel_text(&x, bytes, bytes + len, most, &how);
    uint32_t read = x.tensors.len;
    assert_ptr_equal(stop, bytes + (size_t)read * RECORD);
    expect_in_order(&x, &f);
    heft_ix_free(&x);
    heft_assert_all_freed(&m);
    free(bytes);
    return read;
}

static void guesses_count_while_they_are_right(void **state)
{
    enum { ALL = UINT32_MAX };
    fake good = { .stops = { ALL, ALL, ALL, ALL } }, wrong = good, early = good, refused = good;
    (void)state;
    assert_int_equal(sought(good, ALL), TENSORS);
    assert_int_equal(sought(good, TENSORS), TENSORS);
    uint32_t three = sought(good, TENSORS - 1), one = sought(good, TENSORS / 2 - 9);
    assert_in_range(three, TENSORS / 2 + 1, TENSORS - 2);
    assert_in_range(one, 1, TENSORS / 2 - 9);
    wrong.off = 3; /* the first slice reads over the guess */
    assert_in_range(sought(wrong, ALL), TENSORS / 4, TENSORS / 4 + 9);
    early.stops[1] = 100;
    assert_in_range(sought(early, ALL), TENSORS / 4 + 99, TENSORS / 4 + 109);
    refused.refuses[2] = true;
    assert_in_range(sought(refused, ALL), TENSORS / 2 - 9, TENSORS / 2 + 9);
    refused.refuses[0] = true;
    assert_int_equal(sought(refused, ALL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_entries_are_read_in_order),
        cmocka_unit_test(what_is_wrong_is_said_all_the_same),
        cmocka_unit_test(odd_descriptors_are_read_in_order),
        cmocka_unit_test(more_than_announced_is_more),
        cmocka_unit_test(guesses_count_while_they_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
