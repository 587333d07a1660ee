/* test_cbor.c - tests of the CBOR reader and writer, with the values of RFC 8949, Appendix A. */
#include "grammar/cbor.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "test_memory.h"

enum { BASE = 1000, MAX_BYTES = 700, CAPACITY = 4000 };

/* A parser and a heap copy of the data without slack, so that sanitizers see overruns. */
typedef struct parser {
    test_memory t;
    heft_memory m;
    heft_arena arena;
    heft_error err;
    uint8_t *data;
    size_t len;
    heft_cbor c;
} parser;

static size_t from_hex(uint8_t *to, const char *hex)
{
    size_t len = 0;
    unsigned byte;
    for (; *hex; hex += 2, len++) {
        assert_true(len < MAX_BYTES);
        assert_int_equal(sscanf(hex, "%2x", &byte), 1);
        to[len] = (uint8_t)byte;
    }
    return len;
}

static void open_bytes(parser *r, const uint8_t *data, size_t len, uint32_t max_depth)
{
    *r = (parser){ .data = malloc(len ? len : 1), .len = len };
    assert_non_null(r->data);
    memcpy(r->data, data, len);
    test_memory_init(&r->t, 0);
    r->m = (heft_memory){ .al = &r->t.al, .limit = UINT64_MAX };
    r->arena = (heft_arena){ .mem = &r->m };
    r->c = heft_cbor_open(r->data, len, BASE, max_depth, &r->arena, &r->err);
}

static void open_hex(parser *r, const char *hex)
{
    uint8_t data[MAX_BYTES];
    size_t len = from_hex(data, hex);
    open_bytes(r, data, len, 128);
}

static void close_parser(parser *r)
{
    heft_arena_free(&r->arena);
    assert_int_equal(r->t.live, 0);
    free(r->data);
}

/* Append a letter for the item, followed by the number, text or bytes: 82 01 61 61 is [u1 t(a)].
 * Prefixes: #TAG, _ for an indefinite length, ~ for a form longer than the shortest, : for a
 * value in a map. */
static void spell_next(char *out, size_t capacity, const heft_cbor *c, heft_cbor_kind k)
{
    static const char letters[] = "!.unbt[]{}FT0?sf";
    size_t at = strlen(out);
    if (k == HEFT_CBOR_END || k == HEFT_CBOR_FAILED || k == HEFT_CBOR_ARRAY_END ||
        k == HEFT_CBOR_MAP_END) {
        snprintf(out + at, capacity - at, "%c", letters[k]);
        return;
    }
    if (c->context == HEFT_CBOR_AS_VALUE)
        at += (size_t)snprintf(out + at, capacity - at, ":");
    if (c->flags & HEFT_CBOR_TAGGED)
        at += (size_t)snprintf(out + at, capacity - at, "#%" PRIu64 " ", c->tag);
    at += (size_t)snprintf(out + at, capacity - at, "%s%s%c",
                           c->flags & HEFT_CBOR_INDEFINITE ? "_" : "",
                           c->flags & HEFT_CBOR_NOT_SHORTEST ? "~" : "", letters[k]);
    if (k == HEFT_CBOR_UINT || k == HEFT_CBOR_NINT || k == HEFT_CBOR_SIMPLE)
        snprintf(out + at, capacity - at, "%" PRIu64 " ", c->u);
    else if (k == HEFT_CBOR_TEXT)
        snprintf(out + at, capacity - at, "(%.*s)", (int)c->str.len, c->str.ptr);
    else if (k == HEFT_CBOR_FLOAT) {
        double number;
        heft_cbor_f64(&number, c);
        snprintf(out + at, capacity - at, "%d:%.17g ", c->width, number);
    } else if (k == HEFT_CBOR_BYTES) {
        at += (size_t)snprintf(out + at, capacity - at, "<");
        for (size_t i = 0; i < c->str.len; i++)
            at += (size_t)snprintf(out + at, capacity - at, "%02x", (uint8_t)c->str.ptr[i]);
        snprintf(out + at, capacity - at, ">");
    }
}

static void spell(char *out, size_t capacity, heft_cbor *c)
{
    heft_cbor_kind k;
    *out = '\0';
    do {
        k = heft_cbor_next(c);
        spell_next(out, capacity, c, k);
    } while (k != HEFT_CBOR_END && k != HEFT_CBOR_FAILED);
    assert_int_equal(heft_cbor_next(c), k); /* END and FAILED are final */
}

typedef struct item {
    const char *hex, *spelled;
} item;

static const item accepted[] = {
    { "00", "u0 ." },
    { "01", "u1 ." },
    { "0a", "u10 ." },
    { "17", "u23 ." },
    { "1818", "u24 ." },
    { "1819", "u25 ." },
    { "1864", "u100 ." },
    { "1903e8", "u1000 ." },
    { "1a000f4240", "u1000000 ." },
    { "1b000000e8d4a51000", "u1000000000000 ." },
    { "1bffffffffffffffff", "u18446744073709551615 ." },
    { "c249010000000000000000", "#2 b<010000000000000000>." },
    { "3bffffffffffffffff", "n18446744073709551615 ." },
    { "c349010000000000000000", "#3 b<010000000000000000>." },
    { "20", "n0 ." },
    { "29", "n9 ." },
    { "3863", "n99 ." },
    { "3903e7", "n999 ." },
    { "f90000", "f2:0 ." },
    { "f98000", "f2:-0 ." },
    { "f93c00", "f2:1 ." },
    { "fb3ff199999999999a", "f8:1.1000000000000001 ." },
    { "f93e00", "f2:1.5 ." },
    { "f97bff", "f2:65504 ." },
    { "fa47c35000", "f4:100000 ." },
    { "fa7f7fffff", "f4:3.4028234663852886e+38 ." },
    { "fb7e37e43c8800759c", "f8:1.0000000000000001e+300 ." },
    { "f90001", "f2:5.9604644775390625e-08 ." },
    { "f90400", "f2:6.103515625e-05 ." },
    { "f9c400", "f2:-4 ." },
    { "fbc010666666666666", "f8:-4.0999999999999996 ." },
    { "f97c00", "f2:inf ." },
    { "f97e00", "f2:nan ." },
    { "f9fc00", "f2:-inf ." },
    { "fa7f800000", "~f4:inf ." },
    { "fa7fc00000", "~f4:nan ." },
    { "faff800000", "~f4:-inf ." },
    { "fb7ff0000000000000", "~f8:inf ." },
    { "fb7ff8000000000000", "~f8:nan ." },
    { "fbfff0000000000000", "~f8:-inf ." },
    { "f97e01", "~f2:nan ." },
    { "f9fe00", "~f2:-nan ." },
    { "f97d00", "~f2:nan ." },
    { "fa47c35001", "f4:100000.0078125 ." },
    { "fa3fc00000", "~f4:1.5 ." },
    { "fa33800000", "~f4:5.9604644775390625e-08 ." },
    { "fa33000000", "f4:2.9802322387695312e-08 ." },
    { "fb3ff8000000000000", "~f8:1.5 ." },
    { "fb36a0000000000000", "~f8:1.4012984643248171e-45 ." },
    { "fb3690000000000000", "f8:7.0064923216240854e-46 ." },
    { "fb0000000000000001", "f8:4.9406564584124654e-324 ." },
    { "f4", "F." },
    { "f5", "T." },
    { "f6", "0." },
    { "f7", "?." },
    { "f0", "s16 ." },
    { "e0", "s0 ." },
    { "f3", "s19 ." },
    { "f820", "s32 ." },
    { "f8ff", "s255 ." },
    { "c074323031332d30332d32315432303a30343a30305a", "#0 t(2013-03-21T20:04:00Z)." },
    { "c11a514b67b0", "#1 u1363896240 ." },
    { "c1fb41d452d9ec200000", "#1 f8:1363896240.5 ." },
    { "d74401020304", "#23 b<01020304>." },
    { "d818456449455446", "#24 b<6449455446>." },
    { "d82076687474703a2f2f7777772e6578616d706c652e636f6d", "#32 t(http://www.example.com)." },
    { "c1c2c300", "#3 u0 ." },
    { "40", "b<>." },
    { "4401020304", "b<01020304>." },
    { "60", "t()." },
    { "6161", "t(a)." },
    { "6449455446", "t(IETF)." },
    { "62225c", "t(\"\\)." },
    { "62c3bc", "t(ü)." },
    { "63e6b0b4", "t(水)." },
    { "64f0908591", "t(𐅑)." },
    { "80", "[]." },
    { "83010203", "[u1 u2 u3 ]." },
    { "8301820203820405", "[u1 [u2 u3 ][u4 u5 ]]." },
    { "98190102030405060708090a0b0c0d0e0f101112131415161718181819",
      "[u1 u2 u3 u4 u5 u6 u7 u8 u9 u10 u11 u12 u13 u14 u15 u16 u17 u18 u19 u20 u21 u22 u23 u24 "
      "u25 ]." },
    { "a0", "{}." },
    { "a201020304", "{u1 :u2 u3 :u4 }." },
    { "a26161016162820203", "{t(a):u1 t(b):[u2 u3 ]}." },
    { "826161a161626163", "[t(a){t(b):t(c)}]." },
    { "a56161614161626142616361436164614461656145",
      "{t(a):t(A)t(b):t(B)t(c):t(C)t(d):t(D)t(e):t(E)}." },
    { "5f42010243030405ff", "_b<0102030405>." },
    { "7f657374726561646d696e67ff", "_t(streaming)." },
    { "5fff", "_b<>." },
    { "7f6060ff", "_t()." },
    { "7f60616160ff", "_t(a)." },
    { "9fff", "_[]." },
    { "9f018202039f0405ffff", "_[u1 [u2 u3 ]_[u4 u5 ]]." },
    { "9f01820203820405ff", "_[u1 [u2 u3 ][u4 u5 ]]." },
    { "83018202039f0405ff", "[u1 [u2 u3 ]_[u4 u5 ]]." },
    { "83019f0203ff820405", "[u1 _[u2 u3 ][u4 u5 ]]." },
    { "bf61610161629f0203ffff", "_{t(a):u1 t(b):_[u2 u3 ]}." },
    { "826161bf61626163ff", "[t(a)_{t(b):t(c)}]." },
    { "bf6346756ef563416d7421ff", "_{t(Fun):Tt(Amt):n1 }." },
    { "bfff", "_{}." },
    { "a1a1010203", "{{u1 :u2 }:u3 }." },
    { "1800", "~u0 ." },
    { "1817", "~u23 ." },
    { "190018", "~u24 ." },
    { "1900ff", "~u255 ." },
    { "1a0000ffff", "~u65535 ." },
    { "1b00000000ffffffff", "~u4294967295 ." },
    { "3817", "~n23 ." },
    { "580161", "~b<61>." },
    { "7a0000000161", "~t(a)." },
    { "5f580161ff", "_~b<61>." },
    { "980101", "~[u1 ]." },
    { "b8010102", "~{u1 :u2 }." },
    { "d80101", "#1 ~u1 ." },
    { "83d9d9f701c102c103", "[#55799 u1 #1 u2 #1 u3 ]." },
};

static void well_formed_items_give_their_tokens(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        parser r;
        char got[CAPACITY];
        open_hex(&r, accepted[i].hex);
        spell(got, sizeof got, &r.c);
        /* C libraries differ in whether they print the sign of a NaN. */
        if (!strstr(accepted[i].spelled, "-nan"))
            assert_string_equal(got, accepted[i].spelled);
        assert_int_equal(r.c.st, HEFT_OK);
        assert_ptr_equal(r.c.p, r.data + r.len);
        assert_string_equal(r.err.message, "");
        close_parser(&r);
    }
}

static void bytes_after_the_item_are_not_read(void **state)
{
    (void)state;
    parser r;
    char got[CAPACITY];
    open_hex(&r, "a18001ffff1c");
    spell(got, sizeof got, &r.c);
    assert_string_equal(got, "{[]:u1 }.");
    assert_ptr_equal(r.c.p, r.data + 3);
    close_parser(&r);
}

static void every_truncation_is_refused_within_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        uint8_t data[MAX_BYTES];
        size_t whole = from_hex(data, accepted[i].hex);
        for (size_t len = 0; len < whole; len++) {
            parser r;
            char got[CAPACITY];
            open_bytes(&r, data, len, 128);
            spell(got, sizeof got, &r.c);
            assert_int_equal(r.c.st, HEFT_E_FORMAT);
            assert_true(r.err.offset >= BASE && r.err.offset <= BASE + len);
            close_parser(&r);
        }
    }
}

static void malformed_items_are_refused_with_their_offset(void **state)
{
    (void)state;
    static const struct {
        const char *hex;
        uint64_t at;
        const char *message; /* beginning of the message */
    } rows[] = {
        { "", 0, "CBOR: the next item takes 1 bytes, 0 are left" },
        { "1c", 0, "CBOR: byte 0x1c does not begin an item" },
        { "1d", 0, "CBOR: byte 0x1d does not begin an item" },
        { "1e", 0, "CBOR: byte 0x1e does not begin an item" },
        { "1f", 0, "CBOR: byte 0x1f does not begin an item" },
        { "3c", 0, "CBOR: byte 0x3c does not begin an item" },
        { "3f", 0, "CBOR: byte 0x3f does not begin an item" },
        { "5c", 0, "CBOR: byte 0x5c does not begin an item" },
        { "7d", 0, "CBOR: byte 0x7d does not begin an item" },
        { "9e", 0, "CBOR: byte 0x9e does not begin an item" },
        { "bc", 0, "CBOR: byte 0xbc does not begin an item" },
        { "dd", 0, "CBOR: byte 0xdd does not begin an item" },
        { "df00ff", 0, "CBOR: byte 0xdf does not begin an item" },
        { "fc", 0, "CBOR: byte 0xfc does not begin an item" },
        { "fd", 0, "CBOR: byte 0xfd does not begin an item" },
        { "fe", 0, "CBOR: byte 0xfe does not begin an item" },
        { "ff", 0, "CBOR: a break outside of an indefinite-length item" },
        { "81ff", 1, "CBOR: a break outside of an indefinite-length item" },
        { "8200ff", 2, "CBOR: a break outside of an indefinite-length item" },
        { "a1ff", 0, "CBOR: a map of 1 pairs is announced, 1 bytes are left" },
        { "a1ff00", 1, "CBOR: a break outside of an indefinite-length item" },
        { "a100ff", 2, "CBOR: a break outside of an indefinite-length item" },
        { "9f81ffff", 2, "CBOR: a break outside of an indefinite-length item" },
        { "bf00ff", 2, "CBOR: a map ends after a key without a value" },
        { "bf000000ff", 4, "CBOR: a map ends after a key without a value" },
        { "c1ff", 1, "CBOR: a tag without an item" },
        { "9fc1ff", 2, "CBOR: a tag without an item" },
        { "c1", 1, "CBOR: a tag without an item" },
        { "f800", 0, "CBOR: simple value 0 is encoded in two bytes" },
        { "f814", 0, "CBOR: simple value 20 is encoded in two bytes" },
        { "f81f", 0, "CBOR: simple value 31 is encoded in two bytes" },
        { "18", 1, "CBOR: the head of an item takes 1 bytes, 0 are left" },
        { "1b00000000000000", 1, "CBOR: the head of an item takes 8 bytes, 7 are left" },
        { "f97c", 1, "CBOR: the head of an item takes 2 bytes, 1 are left" },
        { "41", 1, "CBOR: a byte string takes 1 bytes, 0 are left" },
        { "6261", 1, "CBOR: a text takes 2 bytes, 1 are left" },
        { "5bffffffffffffffff00", 9, "CBOR: a byte string takes 18446744073709551615 bytes" },
        { "7b7fffffffffffffff", 9, "CBOR: a text takes 9223372036854775807 bytes" },
        { "9bffffffffffffffff", 0, "CBOR: an array of 18446744073709551615 members is announced" },
        { "bbffffffffffffffff", 0, "CBOR: a map of 18446744073709551615 pairs is announced" },
        { "bb8000000000000000", 0, "CBOR: a map of 9223372036854775808 pairs is announced" },
        { "9a1000000000", 0, "CBOR: an array of 268435456 members is announced, 1 bytes are left" },
        { "8200", 0, "CBOR: an array of 2 members is announced, 1 bytes are left" },
        { "a20000", 0, "CBOR: a map of 2 pairs is announced, 2 bytes are left" },
        { "8281", 0, "CBOR: an array of 2 members is announced" },
        { "828100", 3, "CBOR: the next item takes 1 bytes, 0 are left" },
        { "9f", 1, "CBOR: the next item takes 1 bytes, 0 are left" },
        { "5f", 1, "CBOR: a string in chunks takes 1 bytes, 0 are left" },
        { "5f4100", 3, "CBOR: a string in chunks takes 1 bytes, 0 are left" },
        { "5f00ff", 1, "CBOR: a chunk has another type than its string" },
        { "5f6100ff", 1, "CBOR: a chunk has another type than its string" },
        { "7f4100ff", 1, "CBOR: a chunk has another type than its string" },
        { "5f5f4100ffff", 1, "CBOR: a chunk has another type than its string" },
        { "5fc14100ff", 1, "CBOR: a chunk has another type than its string" },
        { "5f80ff", 1, "CBOR: a chunk has another type than its string" },
        { "5ff6ff", 1, "CBOR: a chunk has another type than its string" },
        { "61ff", 1, "CBOR: a text is not UTF-8: byte 0xff" },
        { "6361c0af", 2, "CBOR: a text is not UTF-8: byte 0xc0" },
        { "63eda080", 1, "CBOR: a text is not UTF-8: byte 0xed" },
        { "61c3", 1, "CBOR: a text is not UTF-8: byte 0xc3" },
        { "6c6162636465666768696a6bff", 12, "CBOR: a text is not UTF-8: byte 0xff" },
        { "7f61c361bcff", 2, "CBOR: a text is not UTF-8: byte 0xc3" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        parser r;
        char got[CAPACITY];
        open_hex(&r, rows[i].hex);
        spell(got, sizeof got, &r.c);
        if (r.c.st != HEFT_E_FORMAT || r.err.offset != BASE + rows[i].at ||
            strncmp(r.err.message, rows[i].message, strlen(rows[i].message)) != 0)
            fail_msg("%s: %d at %d: %s", rows[i].hex, r.c.st, (int)r.err.offset - BASE,
                     r.err.message);
        assert_null(r.err.rule);
        close_parser(&r);
    }
}

static void every_damaged_byte_leaves_the_reader_within_bounds(void **state)
{
    (void)state;
    uint8_t data[MAX_BYTES];
    size_t len = from_hex(data, "bf6774656e736f7273a2617ba46564747970656346333265736861706582190100"
                                "186c6c646174615f6f66667365747382001a0001000068706172616d5f69641bff"
                                "ffffffffffffff7f617c61c3bcff617dc2430102039f5f4101ff81fb3ff1999999"
                                "99999af6ffff");
    for (size_t at = 0; at < len; at++)
        for (unsigned byte = 0; byte < 256; byte++) {
            uint8_t original = data[at];
            parser r;
            char got[CAPACITY];
            data[at] = (uint8_t)byte;
            open_bytes(&r, data, len, 128);
            spell(got, sizeof got, &r.c);
            assert_int_equal(r.c.st != HEFT_OK, r.err.message[0] != '\0');
            close_parser(&r);
            data[at] = original;
        }
}

static void only_strings_of_several_chunks_allocate_memory(void **state)
{
    (void)state;
    parser r;
    open_hex(&r, "8561617f6161ff7f60616160ff4161"
                 "7f61616162ff");
    heft_cbor_next(&r.c);
    static const size_t offsets[] = { 2, 5, 10, 14 };
    for (size_t i = 0; i < 4; i++) {
        heft_cbor_next(&r.c);
        assert_ptr_equal(r.c.str.ptr, r.data + offsets[i]);
        assert_int_equal(r.c.str.len, 1);
    }
    assert_int_equal(r.t.live, 0);
    heft_cbor_next(&r.c);
    assert_true(r.t.live > 0);
    assert_true(heft_str_is(r.c.str, "ab"));
    close_parser(&r);
}

static void without_an_arena_joined_strings_are_unsupported(void **state)
{
    (void)state;
    static const uint8_t data[] = { 0x82, 0x61, 'a', 0x7F, 0x61, 'a', 0x61, 'b', 0xFF };
    heft_error err;
    heft_cbor c = heft_cbor_open(data, sizeof data, 0, 8, NULL, &err);
    heft_cbor_next(&c);
    assert_int_equal(heft_cbor_next(&c), HEFT_CBOR_TEXT);
    assert_int_equal(heft_cbor_next(&c), HEFT_CBOR_FAILED);
    assert_int_equal(c.st, HEFT_E_UNSUPPORTED);
    assert_int_equal(err.offset, 3);
    c = heft_cbor_open(data, sizeof data, 0, 8, NULL, &err);
    assert_int_equal(heft_cbor_skip(&c, heft_cbor_next(&c)), HEFT_OK);
    assert_int_equal(heft_cbor_next(&c), HEFT_CBOR_END);
}

static void joining_chunks_without_memory_fails(void **state)
{
    (void)state;
    parser r;
    open_hex(&r, "817f61616162ff");
    r.t.fail_at = 1;
    heft_cbor_next(&r.c);
    assert_int_equal(heft_cbor_next(&r.c), HEFT_CBOR_FAILED);
    assert_int_equal(r.c.st, HEFT_E_NOMEM);
    assert_int_equal(r.err.status, HEFT_E_NOMEM);
    close_parser(&r);
}

/* Write `depth` nested containers or tags of a kind around a 0; return the length. */
static size_t nest(uint8_t *data, uint32_t depth, unsigned kind)
{
    size_t len = 0, closing = 0;
    for (uint32_t d = 0; d < depth; d++)
        switch (kind < 5 ? kind : d % 5) {
        case 0:
            data[len++] = 0x81;
            break;
        case 1:
            data[len++] = 0x9F;
            closing++;
            break;
        case 2:
            data[len++] = 0xA1;
            data[len++] = 0x00;
            break;
        case 3:
            data[len++] = 0xC1;
            break;
        default:
            data[len++] = 0xBF;
            data[len++] = 0x00;
            closing++;
        }
    data[len++] = 0x00;
    memset(data + len, 0xFF, closing);
    return len + closing;
}

static void nesting_beyond_the_limit_is_refused(void **state)
{
    (void)state;
    static const uint32_t limits[] = { 0, 1, 2, 127, 128, 255, 256, 1000 };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        for (unsigned kind = 0; kind < 6; kind++)
            for (uint32_t depth = 0; depth < 300; depth++) {
                uint8_t data[1000];
                parser r;
                uint32_t limit = limits[i] < HEFT_CBOR_DEPTH ? limits[i] : HEFT_CBOR_DEPTH;
                open_bytes(&r, data, nest(data, depth, kind), limits[i]);
                assert_int_equal(heft_cbor_skip(&r.c, heft_cbor_next(&r.c)),
                                 depth <= limit ? HEFT_OK : HEFT_E_LIMIT);
                if (depth > limit)
                    assert_string_equal(r.err.rule, "heft/limit-depth");
                close_parser(&r);
            }
}

static void containers_and_tags_that_ended_do_not_count_as_depth(void **state)
{
    (void)state;
    parser r;
    char got[CAPACITY];
    uint8_t data[100] = { 0x98, 24 };
    for (unsigned i = 0; i < 24; i++) /* tag, array, tag, array */
        memcpy(data + 2 + 4 * i, "\xC1\x81\xC1\x80", 4);
    open_bytes(&r, data, 98, 5);
    spell(got, sizeof got, &r.c);
    assert_int_equal(r.c.st, HEFT_OK);
    close_parser(&r);
    open_bytes(&r, data, 98, 4);
    spell(got, sizeof got, &r.c);
    assert_int_equal(r.c.st, HEFT_E_LIMIT);
    assert_int_equal(r.err.offset, BASE + 4);
    close_parser(&r);
}

static void a_hundred_thousand_levels_are_refused_without_recursion(void **state)
{
    (void)state;
    static uint8_t data[100000];
    static const uint8_t kinds[] = { 0x81, 0x9F, 0xC1, 0xBF };
    for (size_t i = 0; i < sizeof kinds; i++) {
        parser r;
        memset(data, kinds[i], sizeof data);
        open_bytes(&r, data, sizeof data, 128);
        assert_int_equal(heft_cbor_skip(&r.c, heft_cbor_next(&r.c)), HEFT_E_LIMIT);
        close_parser(&r);
    }
}

/* Only the length is checked: nothing is read. */
static void more_bytes_than_numbers_of_items_are_refused(void **state)
{
    static const uint64_t most = UINT32_MAX - 1;
    parser r;
    (void)state;
    open_hex(&r, "00");
    heft_cbor c = heft_cbor_open(r.data, (size_t)most, BASE, 128, &r.arena, &r.err);
    assert_int_equal(c.st, HEFT_OK);
    c = heft_cbor_open(r.data, (size_t)most + 1, BASE, 128, &r.arena, &r.err);
    assert_int_equal(c.st, HEFT_E_LIMIT);
    assert_non_null(strstr(r.err.message, "CBOR: 4294967295 bytes exceed the limit of 4 GiB"));
    assert_int_equal(r.err.offset, BASE);
    assert_int_equal(heft_cbor_next(&c), HEFT_CBOR_FAILED);
    close_parser(&r);
}

static void skip_ends_after_the_item(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        uint8_t data[MAX_BYTES] = { 0x82 };
        parser r;
        size_t len = 1 + from_hex(data + 1, accepted[i].hex);
        data[len] = 0x07;
        open_bytes(&r, data, len + 1, 128);
        heft_cbor_next(&r.c);
        heft_cbor_kind k = heft_cbor_next(&r.c);
        assert_ptr_equal(r.c.item, r.data + 1);
        assert_int_equal(heft_cbor_skip(&r.c, k), HEFT_OK);
        assert_ptr_equal(r.c.p, r.data + len); /* the item's bytes are [1, len) */
        assert_int_equal(heft_cbor_next(&r.c), HEFT_CBOR_UINT);
        assert_int_equal(r.c.u, 7);
        assert_int_equal(heft_cbor_next(&r.c), HEFT_CBOR_ARRAY_END);
        close_parser(&r);
    }
}

static void skipped_items_are_checked(void **state)
{
    (void)state;
    static const char *const rows[] = { "8261ff00", "82811c00", "bf00ff", "82ff00", "8281c1" };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        parser r;
        open_hex(&r, rows[i]);
        assert_int_equal(heft_cbor_skip(&r.c, heft_cbor_next(&r.c)), HEFT_E_FORMAT);
        close_parser(&r);
    }
}

static void strict_mode_accepts_only_deterministic_encoding(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        parser r;
        char got[CAPACITY];
        bool is_nondeterministic = strpbrk(accepted[i].spelled, "#_~");
        open_hex(&r, accepted[i].hex);
        r.c.strict = true;
        spell(got, sizeof got, &r.c);
        if (r.c.st != (is_nondeterministic ? HEFT_E_FORMAT : HEFT_OK))
            fail_msg("%s, strictly: %d, %s", accepted[i].hex, r.c.st, r.err.message);
        close_parser(&r);
    }
}

static void strict_mode_accepts_only_sorted_keys(void **state)
{
    (void)state;
    static const struct {
        const char *hex;
        heft_status st;
    } rows[] = {
        { "a2616100616200", HEFT_OK },
        { "a2616200616100", HEFT_E_FORMAT }, /* b before a */
        { "a2616100616100", HEFT_E_FORMAT }, /* a twice */
        { "a2617a0062616100", HEFT_OK },     /* z before aa: the shorter first */
        { "a262616100617a00", HEFT_E_FORMAT },
        { "a20a00616100", HEFT_OK }, /* 10 before "a" */
        { "a26161000a00", HEFT_E_FORMAT },
        { "a20a002000", HEFT_OK }, /* 10 before -1 */
        { "a220000a00", HEFT_E_FORMAT },
        { "a26161a2616200616300616200", HEFT_OK }, /* nested keys are compared separately */
        { "a26162a2616100616300616100", HEFT_E_FORMAT },
        { "82a1616200a1616100", HEFT_OK }, /* each map in an array is compared separately */
        { "a28000810000", HEFT_OK },       /* a list before a longer one */
        { "a28100008000", HEFT_E_FORMAT },
        { "a281010081010000", HEFT_E_FORMAT },
        { "a2a10000a0a10001a0", HEFT_OK },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        parser r;
        char got[CAPACITY];
        open_hex(&r, rows[i].hex);
        r.c.strict = true;
        spell(got, sizeof got, &r.c);
        heft_status st = r.c.st || r.c.p == r.c.end ? r.c.st : HEFT_E_FORMAT;
        if (st != rows[i].st)
            fail_msg("%s, strictly: %d, %s", rows[i].hex, r.c.st, r.err.message);
        close_parser(&r);
    }
}

static void unsigned_numbers_and_small_bignums_fit_64_bits(void **state)
{
    (void)state;
    static const struct {
        const char *hex;
        bool fits;
        uint64_t value;
    } rows[] = {
        { "1bffffffffffffffff", true, UINT64_MAX },
        { "c11865", true, 101 },
        { "c240", true, 0 },
        { "c2420100", true, 256 },
        { "c248ffffffffffffffff", true, UINT64_MAX },
        { "c24a0000ffffffffffffffff", true, UINT64_MAX },
        { "c25f41014100ff", true, 256 },
        { "c249010000000000000000", false, 0 },
        { "c3420100", false, 0 },
        { "c1420100", false, 0 },
        { "420100", false, 0 },
        { "20", false, 0 },
        { "6131", false, 0 },
        { "f93c00", false, 0 },
        { "f6", false, 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        parser r;
        uint64_t v;
        open_hex(&r, rows[i].hex);
        assert_int_equal(heft_cbor_u64(&v, &r.c, heft_cbor_next(&r.c)), rows[i].fits);
        if (rows[i].fits)
            assert_true(v == rows[i].value);
        close_parser(&r);
    }
}

static void errors_of_the_caller_have_the_offset_of_the_item(void **state)
{
    (void)state;
    parser r;
    open_hex(&r, "8200c11903e8");
    for (int i = 0; i < 3; i++)
        heft_cbor_next(&r.c);
    assert_int_equal(heft_cbor_fail(&r.c, "%U is too many", r.c.u), HEFT_E_FORMAT);
    assert_string_equal(r.err.message, "1000 is too many");
    assert_int_equal(r.err.offset, BASE + 2);
    assert_int_equal(heft_cbor_fail(&r.c, "again"), HEFT_E_FORMAT);
    assert_string_equal(r.err.message, "1000 is too many");
    assert_int_equal(heft_cbor_next(&r.c), HEFT_CBOR_FAILED);
    close_parser(&r);
}

/* ---- fast path ---- */

/* Parse {"ab": number} on the fast path; return the number, or 0 if the fast path does not
 * apply. */
static uint64_t parse_map_fast(parser *r)
{
    heft_cbor_fast l;
    uint32_t pairs;
    uint64_t v;
    if (!heft_cbor_fast_at(&l, &r->c, 1, 1) ||
        !heft_cbor_fast_head(&l, HEFT_CBOR_HEAD_MAP, 1, &pairs) || pairs != 1 ||
        !heft_cbor_fast_text(&l, "ab", 2) || !heft_cbor_fast_u64(&l, &v))
        return 0;
    heft_cbor_accept(&r->c, &l, 1);
    return v;
}

static void the_fast_path_accepts_only_shortest_forms(void **state)
{
    (void)state;
    static const struct {
        const char *hex;
        uint64_t value;
    } rows[] = {
        { "a162616201", 1 },
        { "a162616217", 23 },
        { "a16261621818", 24 },
        { "a162616218ff", 255 },
        { "a1626162190100", 256 },
        { "a16261621a00010000", 65536 },
        { "a16261621b0000000100000000", UINT64_C(1) << 32 },
        { "a16261621bffffffffffffffff", UINT64_MAX },
        { "a16261621817", 0 }, /* not the shortest form */
        { "a16261621900ff", 0 },
        { "a16261621a0000ffff", 0 },
        { "a16261621b00000000ffffffff", 0 },
        { "a178026162187f", 0 },
        { "a162616220", 0 }, /* not an unsigned integer, or another key */
        { "a1626162f6", 0 },
        { "a162616301", 0 },
        { "a1426162187f", 0 },
        { "a261610162616201", 0 },
        { "bf62616201ff", 0 },
        { "c1a162616201", 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        parser r;
        open_hex(&r, rows[i].hex);
        uint64_t v = parse_map_fast(&r);
        assert_true(v == rows[i].value);
        assert_ptr_equal(r.c.p, v ? r.data + r.len : r.data);
        if (v)
            assert_int_equal(heft_cbor_next(&r.c), HEFT_CBOR_END);
        else
            assert_int_equal(heft_cbor_skip(&r.c, heft_cbor_next(&r.c)), HEFT_OK);
        close_parser(&r);
    }
}

static void the_fast_path_respects_length_and_depth(void **state)
{
    (void)state;
    uint8_t data[MAX_BYTES];
    size_t whole = from_hex(data, "a16261621b0000000100000000");
    for (size_t len = 1; len < whole; len++) {
        parser r;
        open_bytes(&r, data, len, 128);
        assert_int_equal(parse_map_fast(&r), 0);
        assert_ptr_equal(r.c.p, r.data);
        close_parser(&r);
    }
    parser r;
    open_bytes(&r, data, whole, 0);
    assert_int_equal(parse_map_fast(&r), 0);
    close_parser(&r);
    open_hex(&r, "80a162616201");
    heft_cbor_next(&r.c); /* the empty array ends before the map */
    assert_int_equal(parse_map_fast(&r), 0);
    close_parser(&r);
}

/* ---- floats ---- */

static double half_value(unsigned bits)
{
    int exp = bits >> 10 & 31, mant = bits & 1023;
    double v = exp == 31 ? (mant ? NAN : INFINITY)
               : exp     ? ldexp(1024 + mant, exp - 25)
                         : ldexp(mant, -24);
    return bits >> 15 ? -v : v;
}

static void every_f16_value_round_trips(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 1u << 16; bits++) {
        uint8_t data[3] = { 0xF9, (uint8_t)(bits >> 8), (uint8_t)bits }, reread[9];
        heft_cbor c = heft_cbor_open(data, sizeof data, 0, 1, NULL, NULL);
        heft_out o = { .buf = reread, .cap = sizeof reread };
        assert_int_equal(heft_cbor_next(&c), HEFT_CBOR_FLOAT);
        double v, expected = half_value(bits);
        heft_cbor_f64(&v, &c);
        assert_true(isnan(expected) ? isnan(v) : v == expected && signbit(v) == signbit(expected));
        heft_cbor_put_f64(&o, v);
        assert_int_equal(o.len, 3);
        assert_memory_equal(reread, data, 3);
    }
}

static void doubles_are_written_in_the_shortest_exact_form(void **state)
{
    (void)state;
    uint64_t x = 88172645463325252u;
    for (unsigned i = 0; i < 200000; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        uint64_t bits = i % 3 ? x & ~((UINT64_C(1) << (x >> 58)) - 1) : x;
        uint64_t edge = (i & 32 ? 1023u : 1023u - 127) - 30 + x % 60;
        if (i % 5 == 1) /* exponents near the limits of f16 and f32 */
            bits = (bits & UINT64_C(0x800FFFFFFFFFFFFF)) | edge << 52;
        double v, reread;
        memcpy(&v, &bits, sizeof v);
        uint8_t data[9];
        heft_out o = { .buf = data, .cap = sizeof data };
        heft_cbor_put_f64(&o, v);
        float f = (float)v;
        bool fits_f32 = isnan(v) ? !(bits << 35) : (double)f == v;
        assert_int_equal(o.len > 5, !fits_f32);
        heft_cbor c = heft_cbor_open(data, o.len, 0, 1, NULL, NULL);
        assert_int_equal(heft_cbor_next(&c), HEFT_CBOR_FLOAT);
        heft_cbor_f64(&reread, &c);
        assert_memory_equal(&reread, &v, sizeof v);
        assert_true(isnan(v) || !(c.flags & HEFT_CBOR_NOT_SHORTEST));
    }
}

/* ---- writing ---- */

static void put_number(heft_out *o, const char *digits)
{
    if (*digits == '-')
        heft_cbor_put_i64(o, strtoll(digits, NULL, 10));
    else
        heft_cbor_put_u64(o, strtoull(digits, NULL, 10));
}

static void integers_are_written_in_the_shortest_form(void **state)
{
    (void)state;
    static const item rows[] = {
        { "00", "0" },
        { "17", "23" },
        { "1818", "24" },
        { "18ff", "255" },
        { "190100", "256" },
        { "19ffff", "65535" },
        { "1a00010000", "65536" },
        { "1affffffff", "4294967295" },
        { "1b0000000100000000", "4294967296" },
        { "1bffffffffffffffff", "18446744073709551615" },
        { "20", "-1" },
        { "37", "-24" },
        { "3818", "-25" },
        { "3b7fffffffffffffff", "-9223372036854775808" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t buf[9], expected[MAX_BYTES];
        size_t len = from_hex(expected, rows[i].hex);
        heft_out o = { .buf = buf, .cap = sizeof buf };
        put_number(&o, rows[i].spelled);
        assert_int_equal(o.len, len);
        assert_memory_equal(buf, expected, len);
    }
    uint8_t buf[9];
    heft_out o = { .buf = buf, .cap = sizeof buf };
    heft_cbor_put_i64(&o, 500);
    assert_memory_equal(buf, "\x19\x01\xF4", 3);
}

static void maps_arrays_strings_and_bools_are_encoded(void **state)
{
    (void)state;
    uint8_t buf[200], expected[MAX_BYTES];
    heft_out o = { .buf = buf, .cap = sizeof buf };
    heft_cbor_put_map(&o, 2);
    heft_cbor_put_text(&o, heft_lit("a"));
    heft_cbor_put_array(&o, 24);
    for (unsigned i = 0; i < 24; i++)
        heft_cbor_put_null(&o);
    heft_cbor_put_text(&o, heft_lit(""));
    heft_cbor_put_array(&o, 3);
    heft_cbor_put_bytes(&o, (heft_str){ "\0\xFF", 2 });
    heft_cbor_put_bool(&o, true);
    heft_cbor_put_bool(&o, false);
    size_t len = from_hex(expected,
                          "a261619818f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6608342"
                          "00fff5f4");
    assert_int_equal(o.len, len);
    assert_memory_equal(buf, expected, len);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(well_formed_items_give_their_tokens),
        cmocka_unit_test(bytes_after_the_item_are_not_read),
        cmocka_unit_test(every_truncation_is_refused_within_bounds),
        cmocka_unit_test(malformed_items_are_refused_with_their_offset),
        cmocka_unit_test(every_damaged_byte_leaves_the_reader_within_bounds),
        cmocka_unit_test(only_strings_of_several_chunks_allocate_memory),
        cmocka_unit_test(without_an_arena_joined_strings_are_unsupported),
        cmocka_unit_test(joining_chunks_without_memory_fails),
        cmocka_unit_test(nesting_beyond_the_limit_is_refused),
        cmocka_unit_test(containers_and_tags_that_ended_do_not_count_as_depth),
        cmocka_unit_test(a_hundred_thousand_levels_are_refused_without_recursion),
        cmocka_unit_test(more_bytes_than_numbers_of_items_are_refused),
        cmocka_unit_test(skip_ends_after_the_item),
        cmocka_unit_test(skipped_items_are_checked),
        cmocka_unit_test(strict_mode_accepts_only_deterministic_encoding),
        cmocka_unit_test(strict_mode_accepts_only_sorted_keys),
        cmocka_unit_test(unsigned_numbers_and_small_bignums_fit_64_bits),
        cmocka_unit_test(errors_of_the_caller_have_the_offset_of_the_item),
        cmocka_unit_test(the_fast_path_accepts_only_shortest_forms),
        cmocka_unit_test(the_fast_path_respects_length_and_depth),
        cmocka_unit_test(every_f16_value_round_trips),
        cmocka_unit_test(doubles_are_written_in_the_shortest_exact_form),
        cmocka_unit_test(integers_are_written_in_the_shortest_form),
        cmocka_unit_test(maps_arrays_strings_and_bools_are_encoded),
    };
    return cmocka_run_group_tests_name("cbor", tests, NULL, NULL);
}
