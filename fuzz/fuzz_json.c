/* fuzz_json.c - fuzzes the JSON reader: an accepted document has the same tokens after being
 * written again, and skipping a document agrees with reading. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "grammar/json.h"

enum { DEPTH = 40 };

typedef struct reading {
    heft_memory mem;
    heft_arena arena;
    heft_error err;
    heft_json j;
} reading;

static void begin(reading *r, heft_str text)
{
    *r = (reading){ .mem = { heft_host_default()->allocator, 64 << 20, 0 } };
    r->arena.mem = &r->mem;
    r->j = heft_json_open(text, 0, DEPTH, &r->arena, &r->err);
}

static heft_status keep(void *ctx, uint64_t at, const void *data, size_t len)
{
    fuzz_bytes *to = ctx;
    (void)at;
    if (to->cap - to->len < len) {
        to->cap = 2 * to->cap + len;
        to->ptr = realloc(to->ptr, to->cap);
        fuzz_require(to->ptr);
    }
    memcpy(to->ptr + to->len, data, len);
    to->len += len;
    return HEFT_OK;
}

static void put_token(heft_out *o, const heft_json *j, heft_json_kind k, bool comma)
{
    static const char *const words[] = {
        [HEFT_JSON_OBJECT] = "{",    [HEFT_JSON_OBJECT_END] = "}", [HEFT_JSON_ARRAY] = "[",
        [HEFT_JSON_ARRAY_END] = "]", [HEFT_JSON_TRUE] = "true",    [HEFT_JSON_FALSE] = "false",
        [HEFT_JSON_NULL] = "null",
    };
    bool closes = k == HEFT_JSON_OBJECT_END || k == HEFT_JSON_ARRAY_END;
    if (comma && !closes)
        heft_out_u8(o, ',');
    if (k == HEFT_JSON_KEY || k == HEFT_JSON_STRING)
        heft_json_put_str(o, j->text);
    else if (k == HEFT_JSON_NUMBER)
        heft_out_str(o, j->text);
    else
        heft_out_bytes(o, words[k], strlen(words[k]));
    if (k == HEFT_JSON_KEY)
        heft_out_u8(o, ':');
}

/* Write the document without white space; false if the document is refused. */
static bool write_again(fuzz_bytes *to, heft_str text)
{
    static uint8_t buffer[256];
    reading r;
    heft_json_kind k;
    heft_out o = { .buf = buffer, .cap = sizeof buffer, .flush = keep, .ctx = to };
    bool comma = false;
    begin(&r, text);
    while ((k = heft_json_next(&r.j)) != HEFT_JSON_END && k != HEFT_JSON_FAILED) {
        put_token(&o, &r.j, k, comma);
        comma = k != HEFT_JSON_KEY && k != HEFT_JSON_OBJECT && k != HEFT_JSON_ARRAY;
        fuzz_require(r.j.token >= text.ptr && r.j.p <= text.ptr + text.len);
    }
    fuzz_require(!heft_out_flush(&o));
    fuzz_require((k == HEFT_JSON_FAILED) == (r.j.st != HEFT_OK));
    fuzz_require(heft_json_next(&r.j) == k); /* the error and the end persist */
    heft_arena_free(&r.arena);
    fuzz_require(!r.mem.used);
    return k == HEFT_JSON_END;
}

static bool passes(heft_str text)
{
    reading r;
    begin(&r, text);
    r.j.arena = NULL; /* skipped values need no memory */
    heft_json_kind k = heft_json_next(&r.j);
    bool is_string = k == HEFT_JSON_STRING || r.j.st == HEFT_E_UNSUPPORTED;
    bool fits = k != HEFT_JSON_FAILED && !heft_json_skip(&r.j, k) &&
                heft_json_next(&r.j) == HEFT_JSON_END;
    return fits || is_string; /* a string of its own cannot be skipped */
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    (void)s;
    heft_str text = { (const char *)data, size };
    fuzz_bytes once = { NULL, 0, 0 }, twice = { NULL, 0, 0 };
    if (write_again(&once, text)) {
        heft_str written = { (const char *)once.ptr, once.len };
        fuzz_require(write_again(&twice, written));
        fuzz_require(once.len == twice.len && !memcmp(once.ptr, twice.ptr, once.len));
        fuzz_require(passes(text));
    }
    free(once.ptr);
    free(twice.ptr);
}

const fuzz_target fuzz_this = { .run = run };
