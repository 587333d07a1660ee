/* oracle_cbor.c - compares the CBOR parser with libcbor on random and damaged items: both must
 * accept or both refuse, and accepted items must have equal content and length.
 *
 * libcbor does not check UTF-8; this program does. Not compared are items that RFC 8949 calls
 * well formed and libcbor refuses (tags 6 to 20 in one byte, unassigned simple values), and
 * items nested deeper than TREE_DEPTH. Neither parser checks for duplicate keys.
 *
 * libcbor allocates the memory that a length announces before it compares the length with the
 * bytes left; a memory limit makes this allocation fail.
 *
 * Every prefix of some random documents and of each FILE is compared, too.
 *
 *   oracle_cbor [ROUNDS [SEED [FILE...]]]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cbor.h>

#include "base/text.h"
#include "grammar/cbor.h"

enum { CAPACITY = 4096, MAX_DEPTH = 6, TREE_DEPTH = 200, MAX_MEMORY = 1 << 26 };

typedef struct document {
    uint8_t bytes[CAPACITY];
    size_t len;
} document;

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static uint32_t below(uint32_t n)
{
    return (uint32_t)(next_random() >> 32) % n;
}

/* ---- random documents ---- */

static void put(document *d, const void *p, size_t len)
{
    if (len > CAPACITY - d->len)
        return; /* the truncated document counts as damaged */
    memcpy(d->bytes + d->len, p, len);
    d->len += len;
}

static void put_byte(document *d, unsigned byte)
{
    uint8_t b = (uint8_t)byte;
    put(d, &b, 1);
}

/* Append a head, in the shortest form or a longer form. */
static void put_head(document *d, unsigned major, uint64_t v)
{
    unsigned least = v < 24 ? 0 : v < 1u << 8 ? 1 : v < 1u << 16 ? 2 : v <= UINT32_MAX ? 3 : 4;
    unsigned size = below(6) ? least : least + below(5 - least);
    put_byte(d, major << 5 | (size ? 23 + size : (unsigned)v));
    for (unsigned i = size ? 1u << (size - 1) : 0; i--;)
        put_byte(d, (unsigned)(v >> 8 * i) & 255);
}

static void put_string(document *d, unsigned major)
{
    static const char *const fragments[] = {
        "a", "weight", "layers.0.", "é", "€", "😀", "dtype", ""
    };
    char text[100] = "";
    for (uint32_t n = below(6); n; n--)
        strcat(text, fragments[below(sizeof fragments / sizeof *fragments)]);
    put_head(d, major, strlen(text));
    put(d, text, strlen(text));
}

static void put_chunks(document *d, unsigned major)
{
    put_byte(d, major << 5 | 31);
    for (uint32_t n = below(4); n; n--)
        put_string(d, major);
    put_byte(d, 0xFF);
}

static void put_float(document *d)
{
    unsigned size = 1 + below(3);
    put_byte(d, 7u << 5 | (24 + size));
    for (unsigned i = 1u << size; i--;)
        put_byte(d, below(256));
}

static void put_item(document *d, uint32_t depth); /* recursive, up to MAX_DEPTH */

static void put_members(document *d, uint32_t depth, bool is_map)
{
    uint32_t n = below(5), major = is_map ? 5 : 4;
    bool is_open = !below(3);
    if (is_open)
        put_byte(d, major << 5 | 31);
    else
        put_head(d, major, n);
    for (uint32_t i = 0; i < n << is_map; i++)
        put_item(d, depth + 1);
    if (is_open)
        put_byte(d, 0xFF);
}

static void put_item(document *d, uint32_t depth)
{
    uint32_t kind = below(depth < MAX_DEPTH ? 14 : 8);
    if (kind < 2)
        put_head(d, kind, next_random() >> below(64));
    else if (kind < 4)
        put_string(d, kind);
    else if (kind == 4)
        put_chunks(d, 2 + below(2));
    else if (kind == 5)
        put_float(d);
    else if (kind == 6)
        put_byte(d, 0xF4 + below(4));
    else if (kind == 7)
        put_string(d, 3);
    else if (kind == 8) {
        put_head(d, 6, next_random() >> below(64));
        put_item(d, depth + 1);
    } else
        put_members(d, depth, kind & 1);
}

static void damage(document *d)
{
    static const uint8_t significant[] = { 0x00, 0x17, 0x18, 0x19, 0x1B, 0x1C, 0x1F, 0x40,
                                           0x41, 0x5F, 0x61, 0x78, 0x7F, 0x80, 0x81, 0x9F,
                                           0xA0, 0xA1, 0xBF, 0xC1, 0xC3, 0xD8, 0xDF, 0xF4,
                                           0xF8, 0xF9, 0xFB, 0xFC, 0xFF };
    for (uint32_t n = below(3) + 1; n && d->len; n--) {
        size_t at = below((uint32_t)d->len);
        uint8_t byte = below(2) ? (uint8_t)below(256) : significant[below(sizeof significant)];
        switch (below(4)) {
        case 0:
            d->bytes[at] = byte;
            break;
        case 1:
            d->len = at;
            break;
        case 2:
            memmove(d->bytes + at, d->bytes + at + 1, d->len - at - 1);
            d->len--;
            break;
        default:
            if (d->len == CAPACITY)
                break;
            memmove(d->bytes + at + 1, d->bytes + at, d->len - at);
            d->bytes[at] = byte;
            d->len++;
        }
    }
}

/* ---- transcript: the content of a document, one line for each item ---- */

typedef struct transcript {
    char *text;
    size_t len, cap;
    bool not_utf8;
} transcript;

static void append(transcript *t, const void *p, size_t len)
{
    if (t->cap - t->len < len) {
        t->cap = 2 * t->cap + len;
        t->text = realloc(t->text, t->cap);
    }
    memcpy(t->text + t->len, p, len);
    t->len += len;
}

static void append_number(transcript *t, char letter, uint64_t v)
{
    char line[40];
    append(t, line, (size_t)snprintf(line, sizeof line, "%c%" PRIx64 "\n", letter, v));
}

static void append_string(transcript *t, char letter, const void *p, size_t len)
{
    append_number(t, letter, len);
    append(t, p, len);
}

static void append_double(transcript *t, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    append_number(t, 'f', v != v ? 0 : bits); /* libcbor may change the payload of a NaN */
}

/* ---- parser of Heft ---- */

static void *resize(void *ctx, void *p, size_t old_size, size_t new_size, size_t align)
{
    (void)ctx;
    (void)old_size;
    (void)align;
    if (new_size)
        return realloc(p, new_size);
    free(p);
    return NULL;
}

static void append_ours(transcript *t, const heft_cbor *c, heft_cbor_kind k)
{
    bool is_open = c->flags & HEFT_CBOR_INDEFINITE;
    double number;
    if (k != HEFT_CBOR_ARRAY_END && k != HEFT_CBOR_MAP_END && c->flags & HEFT_CBOR_TAGGED)
        append_number(t, '#', c->tag);
    switch (k) {
    case HEFT_CBOR_UINT:
    case HEFT_CBOR_NINT:
        append_number(t, k == HEFT_CBOR_UINT ? 'u' : 'n', c->u);
        break;
    case HEFT_CBOR_BYTES:
    case HEFT_CBOR_TEXT:
        append_string(t, k == HEFT_CBOR_BYTES ? 'b' : 't', c->str.ptr, c->str.len);
        break;
    case HEFT_CBOR_ARRAY:
    case HEFT_CBOR_MAP:
        append_number(t, k == HEFT_CBOR_ARRAY ? 'a' : 'm', is_open);
        break;
    case HEFT_CBOR_FLOAT:
        heft_cbor_f64(&number, c);
        append_double(t, number);
        break;
    case HEFT_CBOR_ARRAY_END:
    case HEFT_CBOR_MAP_END:
        append_number(t, 'e', 0);
        break;
    default:
        append_number(t, 's', (uint64_t)(k - HEFT_CBOR_FALSE));
    }
}

/* Parse with Heft; return the length of the item, or 0 with `err` if the item is refused. */
static size_t read_ours(transcript *t, const uint8_t *data, size_t len, heft_error *err)
{
    heft_allocator al = { .size = sizeof al, .resize = resize };
    heft_memory m = { .al = &al, .limit = UINT64_MAX };
    heft_arena arena = { .mem = &m };
    heft_cbor c = heft_cbor_open(data, len, 0, TREE_DEPTH, &arena, err);
    heft_cbor_kind k;
    while ((k = heft_cbor_next(&c)) != HEFT_CBOR_END && k != HEFT_CBOR_FAILED)
        append_ours(t, &c, k);
    heft_arena_free(&arena);
    return k == HEFT_CBOR_END ? (size_t)(c.p - c.start) : 0;
}

/* ---- parser of libcbor ---- */

static void append_chunks(transcript *t, cbor_item_t *item, bool is_text)
{
    cbor_item_t *single = item, **chunks = &single;
    size_t count = 1, total = 0;
    if (is_text ? cbor_string_is_indefinite(item) : cbor_bytestring_is_indefinite(item)) {
        chunks = is_text ? cbor_string_chunks_handle(item) : cbor_bytestring_chunks_handle(item);
        count = is_text ? cbor_string_chunk_count(item) : cbor_bytestring_chunk_count(item);
    }
    for (size_t i = 0; i < count; i++)
        total += is_text ? cbor_string_length(chunks[i]) : cbor_bytestring_length(chunks[i]);
    append_number(t, is_text ? 't' : 'b', total);
    for (size_t i = 0; i < count; i++) {
        const void *p = is_text ? cbor_string_handle(chunks[i]) : cbor_bytestring_handle(chunks[i]);
        size_t len = is_text ? cbor_string_length(chunks[i]) : cbor_bytestring_length(chunks[i]);
        append(t, p, len);
        t->not_utf8 = t->not_utf8 || (is_text && heft_utf8_valid(p, len) < len);
    }
}

static void append_theirs(transcript *t, cbor_item_t *item);

static void append_container(transcript *t, cbor_item_t *item)
{
    bool is_map = cbor_isa_map(item);
    append_number(t, is_map ? 'm' : 'a',
                  is_map ? cbor_map_is_indefinite(item) : cbor_array_is_indefinite(item));
    for (size_t i = 0; is_map && i < cbor_map_size(item); i++) {
        append_theirs(t, cbor_map_handle(item)[i].key);
        append_theirs(t, cbor_map_handle(item)[i].value);
    }
    for (size_t i = 0; !is_map && i < cbor_array_size(item); i++)
        append_theirs(t, cbor_array_handle(item)[i]);
    append_number(t, 'e', 0);
}

/* Recursive: libcbor has limited the depth of the tree. */
static void append_theirs(transcript *t, cbor_item_t *item)
{
    uint64_t tag = 0;
    switch (cbor_typeof(item)) {
    case CBOR_TYPE_UINT:
    case CBOR_TYPE_NEGINT:
        append_number(t, cbor_isa_uint(item) ? 'u' : 'n', cbor_get_int(item));
        break;
    case CBOR_TYPE_BYTESTRING:
    case CBOR_TYPE_STRING:
        append_chunks(t, item, cbor_isa_string(item));
        break;
    case CBOR_TYPE_ARRAY:
    case CBOR_TYPE_MAP:
        append_container(t, item);
        break;
    case CBOR_TYPE_TAG:
        tag = cbor_tag_value(item);
        if (!cbor_isa_tag(cbor_move(cbor_tag_item(item))))
            append_number(t, '#', tag);
        append_theirs(t, cbor_move(cbor_tag_item(item)));
        break;
    case CBOR_TYPE_FLOAT_CTRL:
        if (cbor_float_get_width(item) == CBOR_FLOAT_0)
            append_number(t, 's', cbor_ctrl_value(item) - 20u);
        else
            append_double(t, cbor_float_get_float(item));
    }
}

/* ---- comparison ---- */

typedef struct tally {
    uint64_t accepted, refused, is_skipped;
} tally;

/* True for a head that is well formed, but refused by libcbor. */
static bool libcbor_refuses(uint8_t head)
{
    return (head >= 0xC6 && head <= 0xD4) || (head >= 0xE0 && head <= 0xF3) || head == 0xF8;
}

static void show(const document *d, size_t ours, size_t theirs, const heft_error *err,
                 const transcript *a, const transcript *b)
{
    fprintf(stderr, "disagreement on:\n");
    for (size_t i = 0; i < d->len; i++)
        fprintf(stderr, "%02x", d->bytes[i]);
    fprintf(stderr, "\nours: %zu bytes, %s\n%.*s\ntheirs: %zu bytes\n%.*s\n", ours, err->message,
            (int)a->len, a->text, theirs, (int)b->len, b->text);
}

/* Return true if libcbor agrees. `data` is a heap block of exactly d->len bytes, so that
 * sanitizers see overruns. */
static bool agrees(const document *d, const uint8_t *data, const transcript *a, size_t ours,
                   const heft_error *err, tally *counts)
{
    transcript b = { .len = 0 };
    struct cbor_load_result result;
    cbor_item_t *tree = cbor_load(data, d->len, &result);
    bool is_skipped = err->status == HEFT_E_LIMIT ||
                      (!tree && ours && libcbor_refuses(data[result.error.position]));
    if (tree)
        append_theirs(&b, tree);
    size_t theirs = tree && !b.not_utf8 ? result.read : 0;
    bool is_equal = ours == theirs &&
                    (!ours || (a->len == b.len && !memcmp(a->text, b.text, a->len)));
    if (!is_skipped && !is_equal)
        show(d, ours, theirs, err, a, &b);
    *(is_skipped ? &counts->is_skipped : ours ? &counts->accepted : &counts->refused) += 1;
    if (tree)
        cbor_decref(&tree);
    free(b.text);
    return is_skipped || is_equal;
}

static bool compare(const document *d, tally *counts)
{
    uint8_t *data = malloc(d->len ? d->len : 1);
    memcpy(data, d->bytes, d->len);
    transcript a = { .len = 0 };
    heft_error err = { .status = HEFT_OK, .message = "" };
    size_t ours = read_ours(&a, data, d->len, &err);
    bool is_equal = agrees(d, data, &a, ours, &err, counts);
    free(a.text);
    free(data);
    return is_equal;
}

/* Compare a document and every prefix of the document. */
static bool compare_prefixes(const document *d, tally *counts)
{
    document part = { .len = 0 };
    bool is_equal = compare(d, counts);
    for (size_t n = 0; n < d->len && is_equal; n++) {
        part.len = n;
        memcpy(part.bytes, d->bytes, n);
        is_equal = compare(&part, counts);
    }
    return is_equal;
}

static bool compare_file(const char *path, tally *counts)
{
    document d = { .len = 0 };
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "%s cannot be read\n", path);
        return false;
    }
    d.len = fread(d.bytes, 1, CAPACITY, f);
    fclose(f);
    return compare_prefixes(&d, counts);
}

/* The address sanitizer needs much address space and has a separate limit for allocations. */
extern void __asan_init(void) __attribute__((weak));
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=16";
}

static void limit_memory(void)
{
    struct rlimit limit;
    if (!__asan_init && !getrlimit(RLIMIT_AS, &limit)) {
        limit.rlim_cur = MAX_MEMORY;
        setrlimit(RLIMIT_AS, &limit);
    }
}

int main(int argc, char **argv)
{
    uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000;
    if (argc > 2)
        random_state ^= strtoull(argv[2], NULL, 10) * UINT64_C(0x9E3779B97F4A7C15);
    tally counts = { 0 };
    limit_memory();
    for (uint64_t i = 0; i < rounds; i++) {
        document d = { .len = 0 };
        put_item(&d, 0);
        if (i % 16 || d.len > 500 ? !compare(&d, &counts) : !compare_prefixes(&d, &counts))
            return 1;
        for (int k = 0; k < 10; k++) {
            document damaged = d;
            damage(&damaged);
            if (!compare(&damaged, &counts))
                return 1;
        }
    }
    for (int i = 3; i < argc; i++)
        if (!compare_file(argv[i], &counts))
            return 1;
    printf("accepted by both %" PRIu64 ", refused by both %" PRIu64 ", not compared %" PRIu64 "\n",
           counts.accepted, counts.refused, counts.is_skipped);
    return counts.accepted && counts.refused ? 0 : 1;
}
