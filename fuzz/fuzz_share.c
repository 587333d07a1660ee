/* fuzz_share.c - fuzzes the records of shares.  The data become the lists of a record, or replace
 * bytes of a real record, and the record gets a hash that matches: every status is one that the
 * header names, memory is proportional to the text, and the same plan then joins real records. */
#include <stdlib.h>
#include <string.h>

#include "base/blake3.h"
#include "fuzz.h"
#include "share/share_plan.h"

enum { SHARES = 3, TENSORS = 5, ELEMENTS = 300, PER_BYTE = 100, ROOM = 1 << 20 };
enum { TAIL = sizeof ",\"blake3\":\"\"}\n" - 1 + 2 * HEFT_HASH_BYTES };

/* ---- models --------------------------------------------------------------------------------- */

static const heft_dtype value_type = HEFT_F32;

static heft_dtype halve(void *ctx, const heft_tensor *t)
{
    (void)ctx;
    return t->dtype == value_type ? HEFT_F16 : t->dtype;
}

static void add_tensors(heft_writer *w, const float *values, size_t bytes)
{
    static const char *const names[TENSORS] = { "a", "b", "c", "d", "e" };
    const uint64_t dims[] = { ELEMENTS };
    uint32_t parts[TENSORS];
    for (uint32_t i = 0; i < TENSORS; i++)
        fuzz_require(!heft_writer_add_dense(&parts[i], w, (heft_str){ names[i], 1 }, value_type,
                                            dims, 1, NULL));
    fuzz_require(!heft_writer_begin(w, NULL));
    for (uint32_t i = 0; i < TENSORS; i++)
        fuzz_require(!heft_writer_write(w, parts[i], values, bytes, NULL));
}

static fuzz_bytes make_model(const char *format, const char *digest)
{
    static float values[ELEMENTS];
    fuzz_bytes out = { .ptr = NULL };
    heft_writer *w;
    heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
    opt.storage.digest = digest;
    for (uint32_t i = 0; i < ELEMENTS; i++)
        values[i] = 1e5f * (float)i; /* too large for f16 from the first values on */
    fuzz_require(!heft_writer_open(&w, heft_format_find(heft_str_from(format)), fuzz_sink(&out),
                                   &opt, NULL));
    add_tensors(w, values, sizeof values);
    fuzz_require(!heft_writer_finish(w, NULL));
    return out;
}

/* ---- conversions whose shares are joined ---------------------------------------------------- */

typedef struct fuzz_case { /* real records, made once */
    const char *digest;
    bool casts;
    fuzz_bytes model;
    heft_blob records[SHARES];
} fuzz_case;

typedef struct opened {
    fuzz_memory m;
    heft_file *in;
    heft_share_plan *plan;
} opened;

static void open_case(opened *o, const fuzz_case *c)
{
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    heft_open_options open = HEFT_OPEN_OPTIONS_INIT;
    opt.cast = c->casts ? halve : NULL;
    fuzz_memory_init(&o->m, UINT32_MAX);
    open.host = &o->m.host;
    fuzz_require(!fuzz_open(&o->in, c->model.ptr, c->model.len, &open));
    fuzz_require(!heft_share_open(&o->plan, o->in, heft_format_find(HEFT_STR("ztensor")), SHARES,
                                  &opt, NULL));
}

static void close_case(opened *o)
{
    heft_share_close(o->plan);
    heft_file_close(o->in);
    fuzz_require(!o->m.live);
}

static void write_shares(fuzz_case *c)
{
    opened o;
    open_case(&o, c);
    for (uint32_t i = 0; i < SHARES; i++) {
        heft_blob out, record;
        heft_sink *sink; /* a share leaves gaps, which fuzz_sink_at() would not accept */
        fuzz_require(!heft_sink_open_memory(&sink, &out, NULL, NULL));
        fuzz_require(!heft_share_write(&record, o.plan, i + 1, sink, NULL));
        char *copy = calloc(1, record.size + 1); /* terminated, to be searched */
        fuzz_require(copy);
        memcpy(copy, record.data, record.size);
        c->records[i] = (heft_blob){ copy, record.size, NULL };
        heft_blob_free(&record);
        heft_blob_free(&out);
    }
    close_case(&o);
}

static const fuzz_case *case_of(uint32_t number)
{
    static fuzz_case cases[] = { { .digest = "crc32c" }, { .digest = "sha256", .casts = true } };
    fuzz_case *c = &cases[number % (sizeof cases / sizeof *cases)];
    if (!c->model.ptr) {
        c->model = make_model("ztensor", c->digest);
        write_shares(c);
    }
    return c;
}

static heft_status join(const opened *o, const fuzz_case *c, heft_str changed, uint32_t which)
{
    heft_str records[SHARES];
    heft_blob out;
    heft_sink *sink;
    heft_error err = fuzz_no_error();
    for (uint32_t i = 0; i < SHARES; i++)
        records[i] = (heft_str){ c->records[i].data, c->records[i].size };
    if (changed.len)
        records[which] = changed;
    fuzz_require(!heft_sink_open_memory(&sink, &out, NULL, NULL));
    heft_status st = heft_share_join(o->plan, records, SHARES, sink, &err);
    fuzz_require_error(st, &err);
    heft_blob_free(&out);
    return st;
}

static void try_record(const fuzz_case *c, heft_str record, uint32_t which)
{
    opened o;
    heft_error err = fuzz_no_error();
    open_case(&o, c);
    uint64_t before = o.m.live;
    o.m.peak = before;
    heft_status checked = heft_share_check(o.plan, record, which + 1, &err);
    fuzz_require_error(checked, &err);
    heft_status st = join(&o, c, record, which);
    fuzz_require(!st || st == HEFT_E_ARGUMENT || st == HEFT_E_CHECKSUM);
    fuzz_require(st == HEFT_E_ARGUMENT || !checked);
    fuzz_require(o.m.peak - before <= ROOM + (uint64_t)PER_BYTE * record.len);
    fuzz_require(!join(&o, c, (heft_str){ NULL, 0 }, 0));
    close_case(&o);
}

/* ---- records -------------------------------------------------------------------------------- */

/* End a record of `len` bytes with a hash that matches. */
static heft_str end_record(char *text, size_t len)
{
    heft_blake3 h;
    heft_hash hash;
    heft_blake3_init(&h);
    heft_blake3_update(&h, text, len);
    heft_blake3_final(&h, hash.bytes);
    heft_out o = { .buf = (uint8_t *)text + len, .cap = TAIL };
    heft_share_record_end(&o, &hash);
    return (heft_str){ text, len + TAIL };
}

/* Make a record with the head of a real one and the data as lists. */
static heft_str with_lists(char *text, const heft_blob *real, const uint8_t *data, size_t size)
{
    const char *lists = strstr(real->data, ",\"target\"");
    fuzz_require(lists);
    size_t head = (size_t)(lists - (const char *)real->data);
    memcpy(text, real->data, head);
    if (size)
        memcpy(text + head, data, size);
    return end_record(text, head + size);
}

/* Replace bytes of a real record by bytes of the data. */
static heft_str with_changes(char *text, const heft_blob *real, const uint8_t *data, size_t size,
                             fuzz_script *s)
{
    enum { CHANGES = 3, LONGEST = 24 };
    static const char digits[] = "0123456789,[]\"{}:-.";
    size_t len = real->size - TAIL;
    memcpy(text, real->data, len);
    for (int i = 0; i < CHANGES; i++) {
        size_t at = (fuzz_next(s) << 8 | fuzz_next(s)) % len, n = fuzz_next(s) % LONGEST;
        bool is_spelled = fuzz_next(s) % 4; /* mostly signs that JSON allows */
        for (size_t k = 0; k < n && at + k < len && size; k++) {
            uint8_t byte = data[(at + k) % size];
            text[at + k] = (char)(is_spelled ? digits[byte % (sizeof digits - 1)] : byte);
        }
    }
    return end_record(text, len);
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    const fuzz_case *c = case_of(fuzz_next(s));
    uint32_t which = fuzz_next(s) % SHARES;
    const heft_blob *real = &c->records[which];
    char *text = malloc(real->size + size + TAIL);
    fuzz_require(text);
    try_record(c, with_changes(text, real, data, size, s), which);
    try_record(c, with_lists(text, real, data, size), which);
    free(text);
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = 16 };
