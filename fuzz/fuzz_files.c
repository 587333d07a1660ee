/* fuzz_files.c - opens, verifies and compares models in memory, and sinks that write to memory. */
#include <stdlib.h>
#include <string.h>

#include <heft/check.h>
#include <heft/split.h>

#include "fuzz.h"

const heft_limits fuzz_limits = { .size = sizeof fuzz_limits,
                                  .memory = 64 << 20,
                                  .tensors = 1 << 12 };

heft_status fuzz_open(heft_file **out, const void *data, size_t size, const heft_open_options *opt)
{
    heft_source *source = NULL;
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    if (opt)
        o = *opt;
    o.no_verify = true; /* few mutations have a correct checksum */
    fuzz_require(!heft_source_open_memory(&source, data, size, NULL));
    return heft_file_open_source(out, source, &o, NULL);
}

bool fuzz_is_small(const heft_file *f)
{
    uint64_t total = 0;
    for (uint32_t id = 0; id < heft_tensor_count(f) && total <= FUZZ_MAX_PAYLOAD; id++) {
        uint64_t bytes = heft_tensor_bytes(f, id);
        total += bytes < FUZZ_MAX_PAYLOAD ? bytes : FUZZ_MAX_PAYLOAD + 1;
    }
    return total <= FUZZ_MAX_PAYLOAD;
}

heft_file *fuzz_open_model(const heft_host *host, const void *data, size_t size)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_file *f = NULL;
    opt.host = host;
    opt.limits = &fuzz_limits;
    if (fuzz_open(&f, data, size, &opt) || fuzz_is_small(f))
        return f;
    heft_file_close(f);
    return NULL;
}

uint32_t fuzz_faults(const heft_file *f)
{
    heft_verify_result result;
    fuzz_require(!heft_file_verify(&result, f, NULL, NULL));
    return result.faults;
}

/* Clear *is_sound for a fault, and for a value that some formats allow and others forbid. */
static void judge(void *ctx, const heft_finding *finding)
{
    bool *is_sound = ctx;
    if (finding->severity == HEFT_FAULT || !strcmp(finding->rule, "heft/bool-value") ||
        !strcmp(finding->rule, "heft/half-byte"))
        *is_sound = false;
}

bool fuzz_is_sound(const heft_file *f)
{
    heft_verify_options opt = HEFT_VERIFY_OPTIONS_INIT;
    bool is_sound = !heft_file_is_complete(f, NULL);
    opt.on_finding = judge;
    opt.ctx = &is_sound;
    fuzz_require(!heft_file_verify(NULL, f, &opt, NULL));
    return is_sound;
}

typedef struct checksum_search {
    const heft_file *f;
    bool is_wrong;
} checksum_search;

static void find_wrong(void *ctx, const heft_finding *finding)
{
    checksum_search *s = ctx;
    heft_checksum c;
    if (finding->severity != HEFT_FAULT)
        return;
    for (uint32_t i = 0, n = heft_checksum_count(s->f); i < n; i++) {
        c = heft_checksum_at(s->f, i);
        s->is_wrong = s->is_wrong || !strcmp(c.rule, finding->rule);
    }
}

bool fuzz_has_wrong_checksum(const heft_file *f)
{
    heft_verify_options opt = HEFT_VERIFY_OPTIONS_INIT;
    checksum_search s = { f, false };
    opt.on_finding = find_wrong;
    opt.ctx = &s;
    fuzz_require(!heft_file_verify(NULL, f, &opt, NULL));
    return s.is_wrong;
}

bool fuzz_hash(heft_hash *out, const heft_file *f)
{
    heft_hash *tensors = malloc((heft_tensor_count(f) + (size_t)1) * sizeof *tensors);
    fuzz_require(tensors);
    heft_status st = heft_file_hash(out, tensors, f, NULL, NULL, NULL);
    free(tensors);
    return !st;
}

void fuzz_require_same(const heft_file *a, const heft_file *b)
{
    heft_hash of_a, of_b;
    fuzz_require(heft_tensor_count(a) == heft_tensor_count(b));
    fuzz_require(fuzz_hash(&of_a, a) && fuzz_hash(&of_b, b));
    fuzz_require(!memcmp(of_a.bytes, of_b.bytes, sizeof of_a.bytes));
}

static bool is_writable(const heft_format *f)
{
    return heft_format_caps(f) & HEFT_CAN_WRITE;
}

static const heft_format *choose(uint32_t number, bool (*is_one)(const heft_format *f))
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < heft_format_count(); i++)
        count += is_one(heft_format_at(i));
    fuzz_require(count);
    number %= count;
    for (uint32_t i = 0;; i++)
        if (is_one(heft_format_at(i)) && !number--)
            return heft_format_at(i);
}

const heft_format *fuzz_writable(uint32_t number)
{
    return choose(number, is_writable);
}

const heft_format *fuzz_splittable(uint32_t number)
{
    return choose(number, heft_format_can_split);
}

/* ---- sinks ---------------------------------------------------------------------------------- */

enum { MAX_OUTPUT = 32 << 20 };

typedef struct memory_sink {
    heft_sink sink;
    fuzz_bytes *to;
    uint64_t reserved; /* HEFT_UNKNOWN_LENGTH: not announced */
    uint64_t written;
} memory_sink;

static void grow(fuzz_bytes *to, size_t cap)
{
    if (cap <= to->cap)
        return;
    to->cap = 2 * to->cap > cap ? 2 * to->cap : cap;
    to->ptr = realloc(to->ptr, to->cap);
    fuzz_require(to->ptr);
}

static heft_status write_at(heft_sink *s, uint64_t offset, const void *data, size_t len,
                            heft_error *err)
{
    memory_sink *m = (memory_sink *)s;
    fuzz_bytes *to = m->to;
    (void)err;
    m->written += len;
    fuzz_require(offset + len <= m->reserved && m->written <= m->reserved);
    fuzz_require(offset + len <= MAX_OUTPUT);
    grow(to, (size_t)offset + len);
    if (len)
        memcpy(to->ptr + offset, data, len);
    to->len = to->len > offset + len ? to->len : (size_t)offset + len;
    return HEFT_OK;
}

static heft_status read_at(heft_sink *s, uint64_t offset, void *buf, size_t len, heft_error *err)
{
    const fuzz_bytes *to = ((const memory_sink *)s)->to;
    (void)err;
    fuzz_require(offset <= to->len && len <= to->len - offset);
    if (len)
        memcpy(buf, to->ptr + offset, len);
    return HEFT_OK;
}

static heft_status append(heft_sink *s, const void *data, size_t len, heft_error *err)
{
    return write_at(s, ((memory_sink *)s)->to->len, data, len, err);
}

static heft_status reserve(heft_sink *s, uint64_t size, heft_error *err)
{
    (void)err;
    ((memory_sink *)s)->reserved = size;
    return HEFT_OK;
}

static heft_status finish(heft_sink *s, heft_error *err)
{
    const memory_sink *m = (const memory_sink *)s;
    (void)err;
    fuzz_require(m->reserved == HEFT_UNKNOWN_LENGTH || m->written == m->reserved);
    free(s);
    return HEFT_OK;
}

static void discard(heft_sink *s)
{
    free(s);
}

static heft_sink *open_sink(fuzz_bytes *to, const heft_sink_ops *ops)
{
    memory_sink *s = malloc(sizeof *s);
    fuzz_require(s);
    *s = (memory_sink){ .sink = { ops }, .to = to, .reserved = HEFT_UNKNOWN_LENGTH };
    to->len = 0;
    return &s->sink;
}

heft_sink *fuzz_sink(fuzz_bytes *to)
{
    static const heft_sink_ops ops = { .size = sizeof ops,
                                       .write = append,
                                       .reserve = reserve,
                                       .finish = finish,
                                       .discard = discard };
    return open_sink(to, &ops);
}

heft_sink *fuzz_sink_at(fuzz_bytes *to)
{
    static const heft_sink_ops ops = { .size = sizeof ops,
                                       .write_at = write_at,
                                       .reserve = reserve,
                                       .finish = finish,
                                       .discard = discard,
                                       .read_at = read_at };
    return open_sink(to, &ops);
}

void fuzz_require_sections(const heft_file *f, uint32_t part, fuzz_script *s)
{
    heft_part p = heft_part_at(f, part);
    if (p.length > FUZZ_MAX_PAYLOAD)
        return;
    size_t len = (size_t)p.length;
    uint8_t *whole = malloc(len + 1), *pieces = malloc(len + 1);
    heft_error err = fuzz_no_error();
    fuzz_require(whole && pieces);
    heft_status st = heft_part_read(whole, f, part, 0, len, &err);
    fuzz_require_error(st, &err);
    for (size_t at = 0, n; !st && at < len; at += n) {
        n = fuzz_next(s) + 1U;
        n = n < len - at ? n : len - at;
        fuzz_require(!heft_part_read(pieces + at, f, part, at, n, NULL));
    }
    fuzz_require(st || !memcmp(whole, pieces, len));
    free(whole);
    free(pieces);
}
