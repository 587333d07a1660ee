/* test_pickle.c - the pickle machine: values of every opcode, truncation, memory. */
#include "grammar/pickle.h"

#include <stdio.h>
#include <sys/mman.h>

#include "base/text.h"
#include "core/read/input_window.h"
#include "test_bytes.h"
#include "test_memory.h"

typedef struct reader {
    test_memory t;
    heft_memory m;
    heft_arena arena;
    heft_error err;
    heft_input input;
    heft_pickle p;
    heft_status st;
} reader;

static void begin(reader *r, uint32_t fail_at)
{
    memset(r, 0, sizeof *r);
    test_memory_init(&r->t, fail_at);
    r->m = (heft_memory){ .al = &r->t.al, .limit = UINT64_MAX };
    r->arena.mem = &r->m;
}

static void open_file(reader *r, const uint8_t *file, heft_range where)
{
    heft_input_init(&r->input, &r->m, where.offset + where.length, UINT64_MAX);
    r->input.whole_file = file;
    r->input.in.err = &r->err;
    r->st = heft_pickle_read(&r->p, &r->input.in, where, &r->arena, "it");
}

/* Read a pickle that begins at offset 4 of the input. */
static void open_bytes(reader *r, const void *data, size_t len)
{
    enum { OFFSET = 4 };
    static uint8_t file[70000];
    assert_true(len + OFFSET <= sizeof file);
    memset(file, 'x', OFFSET);
    memcpy(file + OFFSET, data, len);
    open_file(r, file, (heft_range){ OFFSET, len });
}

static void close_reader(reader *r)
{
    heft_pickle_free(&r->p);
    heft_arena_free(&r->arena);
    heft_input_free(&r->input);
    assert_int_equal(r->t.live, 0);
}

/* ---- a value as text ---- */

enum { MAX_TEXT = 400 };

static void put(char *to, const char *text, size_t len)
{
    size_t at = strlen(to);
    assert_true(at + len < MAX_TEXT);
    memcpy(to + at, text, len);
    to[at + len] = 0;
}

static void print_value(char *to, const heft_pickle *p, uint32_t v, int depth);

static void print_items(char *to, const heft_pickle *p, uint32_t v, const char *ends, int depth)
{
    uint32_t item, n = 0;
    bool is_dict = heft_pickle_is(p, v, HEFT_PICKLE_DICT);
    heft_pickle_items i = heft_pickle_items_of(p, v);
    put(to, ends, 1);
    for (; heft_pickle_next(p, &i, &item); n++) {
        if (n)
            put(to, is_dict && n % 2 ? ":" : ",", 1);
        print_value(to, p, item, depth);
    }
    put(to, ends + 1, 1);
    assert_int_equal(n, heft_pickle_at(p, v)->as.items.count);
}

static void print_object(char *to, const heft_pickle *p, const heft_pickle_value *o, int depth)
{
    put(to, o->is_instance ? "new " : "call ", o->is_instance ? 4 : 5);
    print_value(to, p, o->as.object.callable, depth);
    print_value(to, p, o->as.object.args, depth);
    if (o->as.object.state != HEFT_NONE) {
        put(to, "|", 1);
        print_value(to, p, o->as.object.state, depth);
    }
    if (o->as.object.content != HEFT_NONE) {
        put(to, "+", 1);
        print_value(to, p, o->as.object.content, depth);
    }
}

static void print_value(char *to, const heft_pickle *p, uint32_t v, int depth)
{
    static const char *const ends[] = { [HEFT_PICKLE_TUPLE] = "()",
                                        [HEFT_PICKLE_LIST] = "[]",
                                        [HEFT_PICKLE_DICT] = "{}",
                                        [HEFT_PICKLE_SET] = "<>" };
    const heft_pickle_value *o = heft_pickle_at(p, v);
    char number[40] = "";
    if (!depth) {
        put(to, "...", 3);
        return;
    }
    switch (o->kind) {
    case HEFT_PICKLE_NONE:
        put(to, "None", 4);
        break;
    case HEFT_PICKLE_BOOL:
        put(to, o->as.b ? "T" : "F", 1);
        break;
    case HEFT_PICKLE_INT:
        snprintf(number, sizeof number, "%lld", (long long)o->as.i);
        break;
    case HEFT_PICKLE_FLOAT:
        snprintf(number, sizeof number, "%.17gf", o->as.f);
        break;
    case HEFT_PICKLE_BIG:
        snprintf(number, sizeof number, "big%zu", o->as.s.len);
        break;
    case HEFT_PICKLE_DECIMAL:
    case HEFT_PICKLE_TEXT:
    case HEFT_PICKLE_BYTES:
        put(to,
            o->kind == HEFT_PICKLE_TEXT    ? "'"
            : o->kind == HEFT_PICKLE_BYTES ? "b'"
                                           : "d'",
            o->kind == HEFT_PICKLE_TEXT ? 1 : 2);
        put(to, o->as.s.ptr, o->as.s.len);
        put(to, "'", 1);
        break;
    case HEFT_PICKLE_GLOBAL:
        put(to, heft_pickle_module(p, v).ptr, heft_pickle_module(p, v).len);
        put(to, ".", 1);
        put(to, heft_pickle_name(p, v).ptr, heft_pickle_name(p, v).len);
        break;
    case HEFT_PICKLE_OBJECT:
        print_object(to, p, o, depth - 1);
        break;
    case HEFT_PICKLE_PERSISTENT:
        put(to, "@", 1);
        print_value(to, p, o->as.id, depth - 1);
        break;
    default:
        print_items(to, p, v, ends[o->kind], depth - 1);
    }
    put(to, number, strlen(number));
}

/* ---- tests ---- */

#define BYTES(literal) literal, sizeof(literal) - 1

static const struct {
    const char *data;
    size_t len;
    const char *value;
} good[] = {
    { BYTES("N."), "None" },
    { BYTES("\x80\x02\x88."), "T" },
    { BYTES("I01\n."), "T" },
    { BYTES("I00\n."), "F" },
    { BYTES("I-12\n."), "-12" },
    { BYTES("I9223372036854775807\n."), "9223372036854775807" },
    { BYTES("I-9223372036854775808\n."), "-9223372036854775808" },
    { BYTES("I9223372036854775808\n."), "d'9223372036854775808'" },
    { BYTES("I-9223372036854775809\n."), "d'-9223372036854775809'" },
    { BYTES("I-\n."), "d'-'" },
    { BYTES("I/\n."), "d'/'" },
    { BYTES("I:\n."), "d':'" },
    { BYTES("I001\n."), "1" },
    { BYTES("L00\n."), "0" },
    { BYTES("I5L\n."), "d'5L'" },
    { BYTES("L5\n."), "5" },
    { BYTES("F5\n."), "d'5'" },
    { BYTES("J\xff\xff\xff\x7f."), "2147483647" },
    { BYTES("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f."), "9223372036854775807" },
    { BYTES("\x8a\x01\x7f."), "127" },
    { BYTES("\x8a\x01\x80."), "-128" },
    { BYTES("\x8a\x09"
            "123456789."),
      "big9" },
    { BYTES("X\x00\x00\x00\x00."), "''" },
    { BYTES("V\n."), "''" },
    { BYTES("V\\\n."), "'\\'" },
    { BYTES("V\\uD7FF\\uE000\\U0010FFFF\n."), "'\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf'" },
    { BYTES("S''\n."), "''" },
    { BYTES("\x80\x05N."), "None" },
    { BYTES("(0N."), "None" },
    { BYTES("N((00."), "None" },
    { BYTES("](e."), "[]" },
    { BYTES("}(u."), "{}" },
    { BYTES("Np256\ng256\n\x86."), "(None,None)" },
    { BYTES("N\x94K\x05q\x01\x94h\x02\x86."), "(5,5)" },
    { BYTES("S\"\"\n."), "''" },
    { BYTES("S\"a'b\"\n."), "'a'b'" },
    { BYTES("S'\\\\\\'\\\"\\n\\r\\t\\a\\b\\f\\v'\n."), "'\\'\"\n\r\t\a\b\f\v'" },
    { BYTES("S'\\xff'\n."), "b'\xff'" },
    { BYTES("L5L\n."), "5" },
    { BYTES("F1e5\n."), "d'1e5'" },
    { BYTES("K\xff."), "255" },
    { BYTES("M\x01\x02."), "513" },
    { BYTES("J\xfe\xff\xff\xff."), "-2" },
    { BYTES("\x8a\x00."), "0" },
    { BYTES("\x8a\x01\xff."), "-1" },
    { BYTES("\x8a\x02\xff\x00."), "255" },
    { BYTES("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80."), "-9223372036854775808" },
    { BYTES("\x8b\x09\x00\x00\x00"
            "123456789."),
      "big9" },
    { BYTES("G\x3f\xf8\x00\x00\x00\x00\x00\x00."), "1.5f" },
    { BYTES("X\x02\x00\x00\x00\xc3\xa9."), "'\xc3\xa9'" },
    { BYTES("\x8c\x01"
            "a."),
      "'a'" },
    { BYTES("U\x01"
            "a."),
      "'a'" },
    { BYTES("U\x01\xe9."), "b'\xe9'" },
    { BYTES("C\x01\xe9."), "b'\xe9'" },
    { BYTES("V\xe9\\u4e2d\\U0001F600\\x\n."), "'\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80\\x'" },
    { BYTES("S'a\\n\\x41\\''\n."), "'a\nA''" },
    { BYTES(")."), "()" },
    { BYTES("NN\x86\x85."), "((None,None))" },
    { BYTES("(NNt."), "(None,None)" },
    { BYTES("](K\x01K\x02"
            "eK\x03"
            "a."),
      "[1,2,3]" },
    { BYTES("](]K\x01"
            "aK\x02"
            "eK\x03"
            "a."),
      "[[1],2,3]" },
    { BYTES("}(NK\x01u\x88K\x02s."), "{None:1,T:2}" },
    { BYTES("(NK\x01"
            "d."),
      "{None:1}" },
    { BYTES("\x8f(K\x01\x90."), "<1>" },
    { BYTES("(K\x01K\x02\x91."), "<1,2>" },
    { BYTES("(K\x01(K\x02"
            "001N."),
      "None" },
    { BYTES("K\x07q\x00"
            "0h\x00h\x00\x86."),
      "(7,7)" },
    { BYTES("K\x07p10\n0g10\n."), "7" },
    { BYTES("K\x07\x94K\x08\x94"
            "00h\x00h\x01\x86."),
      "(7,8)" },
    { BYTES("K\x07"
            "2\x86."),
      "(7,7)" },
    { BYTES("]q\x00h\x00"
            "a."),
      "[[[[[[...]]]]]]" },
    { BYTES("cmod\nname\n."), "mod.name" },
    { BYTES("\x8c\x01m\x8c\x01n\x93."), "m.n" },
    { BYTES("cm\nn\nK\x01\x85R."), "call m.n(1)" },
    { BYTES("cm\nn\n)\x81}b."), "new m.n()|{}" },
    { BYTES("cm\nn\n)}\x92."), "new m.n()" },
    { BYTES("(K\x01im\nn\n."), "call m.n(1)" },
    { BYTES("(cm\nn\nK\x01o."), "call m.n(1)" },
    { BYTES("cm\nn\n)RNNs."), "call m.n()+{None:None}" },
    { BYTES("cm\nn\n)R(NNe."), "call m.n()+[None,None]" },
    { BYTES("NQ."), "@None" },
    { BYTES("P12\n."), "@'12'" },
    { BYTES("\x80\x04\x95\x02\x00\x00\x00\x00\x00\x00\x00N."), "None" },
    { BYTES("\x96\x01\x00\x00\x00\x00\x00\x00\x00z."), "b'z'" },
};

static void reads_the_value_of_every_opcode(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char text[MAX_TEXT] = "";
        reader r;
        begin(&r, 0);
        open_bytes(&r, good[i].data, good[i].len);
        if (r.st)
            fail_msg("%s: %s", good[i].value, r.err.message);
        print_value(text, &r.p, r.p.root, 6);
        assert_string_equal(text, good[i].value);
        assert_int_equal(heft_pickle_end(&r.p), 4 + good[i].len);
        close_reader(&r);
    }
}

static void refuses_every_truncation(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        for (size_t len = 0; len < good[i].len; len++) {
            reader r;
            begin(&r, 0);
            open_bytes(&r, good[i].data, len);
            assert_int_equal(r.st, HEFT_E_FORMAT);
            assert_in_range(r.err.offset, 4, 4 + len);
            close_reader(&r);
        }
}

static void reports_every_failed_allocation(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        for (uint32_t n = 1;; n++) {
            reader r;
            begin(&r, n);
            open_bytes(&r, good[i].data, good[i].len);
            uint32_t calls = r.t.calls;
            assert_int_equal(r.st, calls >= n ? HEFT_E_NOMEM : HEFT_OK);
            close_reader(&r);
            if (calls < n)
                break;
        }
}

static void finds_the_last_of_equal_dict_keys(void **state)
{
    (void)state;
    reader r;
    uint64_t n;
    begin(&r, 0);
    open_bytes(&r, BYTES("}(\x8c\x01"
                         "aK\x01\x8c\x01"
                         "bK\x02\x8c\x01"
                         "aK\x03u."));
    assert_true(heft_pickle_u64(&n, &r.p, heft_pickle_dict_get(&r.p, r.p.root, "a")));
    assert_int_equal(n, 3);
    assert_int_equal(heft_pickle_dict_get(&r.p, r.p.root, "c"), HEFT_NONE);
    assert_int_equal(heft_pickle_dict_get(&r.p, 1, "a"), HEFT_NONE);
    assert_int_equal(heft_pickle_item(&r.p, r.p.root, 0), HEFT_NONE);
    close_reader(&r);
}

/* The worst case: every byte makes a value. */
static void memory_is_proportional_to_the_bytes(void **state)
{
    enum { LEN = 60000, MAX_PER_BYTE = 100 };
    static const char worst[] = { ']', '}', '(', '2', 'N' };
    static char data[LEN];
    (void)state;
    for (size_t i = 0; i < sizeof worst; i++) {
        reader r;
        memset(data, worst[i], LEN);
        data[0] = 'N';
        data[LEN - 1] = '.';
        begin(&r, 0);
        open_bytes(&r, data, LEN);
        assert_in_range(r.t.live, 0, LEN * MAX_PER_BYTE);
        close_reader(&r);
    }
}

static void refuses_malformed_pickles(void **state)
{
    static const struct {
        const char *data;
        size_t len;
        const char *words;
    } rows[] = {
        { BYTES("."), "an opcode needs 1 values, the stack has 0" },
        { BYTES("(."), "an opcode needs 1 values, the stack has 0" },
        { BYTES("N(."), "an opcode needs 1 values, the stack has 0" },
        { BYTES("t."), "an opcode needs a mark, but the stack has none" },
        { BYTES("0."), "an opcode needs 1 values, the stack has 0" },
        { BYTES("2."), "an opcode needs 1 values, the stack has 0" },
        { BYTES("N(2."), "an opcode needs 1 values, the stack has 0" },
        { BYTES("N\x86."), "an opcode needs 2 values, the stack has 1" },
        { BYTES("N(N\x86."), "an opcode needs 2 values, the stack has 1" },
        { BYTES("1."), "an opcode needs a mark, but the stack has none" },
        { BYTES("a."), "an opcode needs 2 values, the stack has 0" },
        { BYTES("Na."), "an opcode needs 2 values, the stack has 1" },
        { BYTES("NNa."), "items are added to a value that is not a container of that kind" },
        { BYTES("](Na."), "an opcode needs 2 values, the stack has 1" },
        { BYTES("e."), "an opcode needs a mark, but the stack has none" },
        { BYTES("(Ne."), "items without a container" },
        { BYTES("}(Nu."), "a key without a value" },
        { BYTES("](NNu."), "items are added to a value that is not a container of that kind" },
        { BYTES("]NNs."), "items are added to a value that is not a container of that kind" },
        { BYTES("}Ns."), "an opcode needs 3 values, the stack has 2" },
        { BYTES("h\x00."), "memo entry 0 was never stored" },
        { BYTES("Nq\x00h\x01."), "memo entry 1 was never stored" },
        { BYTES("Nq\x02h\x01."), "memo entry 1 was never stored" },
        { BYTES("q\x00N."), "an opcode needs 1 values, the stack has 0" },
        { BYTES("Np-1\n."), "the number of a memo entry is not an integer" },
        { BYTES("Npx\n."), "the number of a memo entry is not an integer" },
        { BYTES("Np\n."), "the number of a memo entry is not an integer" },
        { BYTES("Np12"), "a line does not end" },
        { BYTES("Np257\n."), "memo entry 257 after only 1 bytes" },
        { BYTES("Nr\xff\xff\xff\xff."), "memo entry 4294967295 after only 1 bytes" },
        { BYTES("\x95\x03\x00\x00\x00\x00\x00\x00\x00N."), "a frame has 3 bytes, only 2 are left" },
        { BYTES("N\x81."), "an opcode needs 2 values, the stack has 1" },
        { BYTES("NR."), "an opcode needs 2 values, the stack has 1" },
        { BYTES("\x93."), "an opcode needs 2 values, the stack has 0" },
        { BYTES("NN\x93."), "the name of a global is not a text" },
        { BYTES("I\n."), "a decimal number is invalid" },
        { BYTES("L\n."), "a decimal number is invalid" },
        { BYTES("L5\xe9\n."), "a decimal number is invalid" },
        { BYTES("S\n."), "a text has no quotes" },
        { BYTES("S'\n."), "a text has no quotes" },
        { BYTES("Sab\n."), "a text has no quotes" },
        { BYTES("Saba\n."), "a text has no quotes" },
        { BYTES("S'a\"\n."), "a text has no quotes" },
        { BYTES("S\"a'\n."), "a text has no quotes" },
        { BYTES("S'\\'\n."), "a text has an unknown escape" },
        { BYTES("S'\\q'\n."), "a text has an unknown escape" },
        { BYTES("S'\\x4'\n."), "a text has an unknown escape" },
        { BYTES("S'\\x4g'\n."), "a text has an unknown escape" },
        { BYTES("S'a"), "a line does not end" },
        { BYTES("V\\u12\n."), "an escape in a text is not a character" },
        { BYTES("V\\u123g\n."), "an escape in a text is not a character" },
        { BYTES("V\\uD800\n."), "an escape in a text is not a character" },
        { BYTES("V\\uDFFF\n."), "an escape in a text is not a character" },
        { BYTES("V\\U00110000\n."), "an escape in a text is not a character" },
        { BYTES("V\\UFFFFFFFF\n."), "an escape in a text is not a character" },
        { BYTES("V\\U80000041\n."), "an escape in a text is not a character" },
        { BYTES("X\x01\x00\x00\x00\xff."), "UTF-8" },
        { BYTES("\x8b\xff\xff\xff\xff."), "an integer has a negative length" },
        { BYTES("\x8b\x00\x00\x00\x80."), "an integer has a negative length" },
        { BYTES("\x8b\xff\xff\xff\x7f."), "bytes are needed" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        reader r;
        begin(&r, 0);
        open_bytes(&r, rows[i].data, rows[i].len);
        assert_int_equal(r.st, HEFT_E_FORMAT);
        if (!strstr(r.err.message, rows[i].words))
            fail_msg("row %zu: %s", i, r.err.message);
        close_reader(&r);
    }
}

/* After a text of zero bytes, in pages of memory that nobody touches, other opcodes follow. */
static void refuses_opcodes_beyond_4_gib(void **state)
{
    enum { SKIP = 9 }; /* bytes of the opcode that skips, and of the length */
    static const uint64_t last = UINT32_MAX, reserved = last + 4096;
    static const struct {
        uint64_t at; /* offset of the opcodes */
        const char *data;
        size_t len;
        heft_status st;
        const char *words;
    } rows[] = {
        { last, BYTES("."), HEFT_OK, "" },
        { last + 1, BYTES("."), HEFT_E_LIMIT, "the pickle is larger than 4 GiB" },
        { last, BYTES("r\xff\xff\xff\xff."), HEFT_E_FORMAT,
          "memo entry 4294967295 after only 4294967295 bytes" },
    };
    (void)state;
    if (SIZE_MAX == UINT32_MAX)
        skip();
    uint8_t *file = mmap(NULL, (size_t)reserved, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (file == MAP_FAILED)
        skip();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        reader r;
        uint64_t skipped = rows[i].at - SKIP;
        begin(&r, 0);
        file[0] = 0x8E;
        heft_test_put(file + 1, skipped, sizeof skipped);
        memcpy(file + rows[i].at, rows[i].data, rows[i].len);
        open_file(&r, file, (heft_range){ 0, rows[i].at + rows[i].len });
        assert_int_equal(r.st, rows[i].st);
        if (r.st && !strstr(r.err.message, rows[i].words))
            fail_msg("row %zu: %s", i, r.err.message);
        close_reader(&r);
    }
    munmap(file, (size_t)reserved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_value_of_every_opcode),
        cmocka_unit_test(refuses_every_truncation),
        cmocka_unit_test(reports_every_failed_allocation),
        cmocka_unit_test(finds_the_last_of_equal_dict_keys),
        cmocka_unit_test(memory_is_proportional_to_the_bytes),
        cmocka_unit_test(refuses_malformed_pickles),
        cmocka_unit_test(refuses_opcodes_beyond_4_gib),
    };
    return cmocka_run_group_tests_name("pickle", tests, NULL, NULL);
}
