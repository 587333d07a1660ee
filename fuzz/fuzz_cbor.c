/* fuzz_cbor.c - fuzzes the CBOR reader: reads stay inside the input, skipping agrees with reading,
 * and a document that a strict reader accepts is equal after being written again. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "grammar/cbor.h"

enum { DEPTH = 128 };

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

static void write_item(heft_out *o, const heft_cbor *c, heft_cbor_kind k)
{
    double number;
    switch (k) {
    case HEFT_CBOR_UINT:
        heft_cbor_put_u64(o, c->u);
        break;
    case HEFT_CBOR_BYTES:
        heft_cbor_put_bytes(o, c->str);
        break;
    case HEFT_CBOR_TEXT:
        heft_cbor_put_text(o, c->str);
        break;
    case HEFT_CBOR_ARRAY:
        heft_cbor_put_array(o, c->u);
        break;
    case HEFT_CBOR_MAP:
        heft_cbor_put_map(o, c->u);
        break;
    case HEFT_CBOR_FALSE:
    case HEFT_CBOR_TRUE:
        heft_cbor_put_bool(o, k == HEFT_CBOR_TRUE);
        break;
    case HEFT_CBOR_NULL:
        heft_cbor_put_null(o);
        break;
    case HEFT_CBOR_FLOAT:
        heft_cbor_f64(&number, c);
        heft_cbor_put_f64(o, number);
        break;
    case HEFT_CBOR_ARRAY_END:
    case HEFT_CBOR_MAP_END:
        break;
    default: /* there is no writer for integers below -2^63, undefined and other simple values */
        heft_out_bytes(o, c->item, (size_t)(c->p - c->item));
    }
}

/* Read one item and write it to o.  Return its length; 0 if the bytes are not an item. */
static size_t read_all(const uint8_t *data, size_t size, bool strict, heft_out *o)
{
    heft_allocator al = { .size = sizeof al, .resize = resize };
    heft_memory m = { .al = &al, .limit = UINT64_MAX };
    heft_arena arena = { .mem = &m };
    heft_error err;
    heft_cbor c = heft_cbor_open(data, size, 0, DEPTH, &arena, &err);
    heft_cbor_kind k;
    c.strict = strict;
    while ((k = heft_cbor_next(&c)) != HEFT_CBOR_END && k != HEFT_CBOR_FAILED) {
        fuzz_require(c.item >= data && c.item <= c.p && c.p <= data + size && c.depth <= DEPTH);
        write_item(o, &c, k);
    }
    fuzz_require(k == HEFT_CBOR_END || (err.status == c.st && err.offset <= size));
    heft_arena_free(&arena);
    return k == HEFT_CBOR_END ? (size_t)(c.p - data) : 0;
}

static size_t skip_all(const uint8_t *data, size_t size)
{
    heft_cbor c = heft_cbor_open(data, size, 0, DEPTH, NULL, NULL);
    heft_cbor_kind k = heft_cbor_next(&c);
    if (c.st == HEFT_E_UNSUPPORTED) /* a chunked string needs an arena, and there is none */
        return SIZE_MAX;
    return heft_cbor_skip(&c, k) ? 0 : (size_t)(c.p - data);
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    (void)s;
    uint8_t *again = malloc(size + 16);
    heft_out nothing = heft_out_counting();
    heft_out o = { .buf = again, .cap = size + 16 };
    fuzz_require(again);
    size_t len = read_all(data, size, false, &nothing), skipped = skip_all(data, size);
    fuzz_require(skipped == len || skipped == SIZE_MAX);
    size_t strictly = read_all(data, size, true, &o);
    fuzz_require(!strictly || (strictly == len && o.len == len && !memcmp(again, data, len)));
    free(again);
}

const fuzz_target fuzz_this = { .run = run };
