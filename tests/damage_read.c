/* damage_read.c - reads a file that may be damaged, with bounded memory. */
#include "damage_read.h"

#include <heft/check.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PART_READ = 1 << 20 }; /* bytes that are read of each part */

/* ---- memory --------------------------------------------------------------------------------- */

typedef struct counter {
    size_t live, peak;
    bool is_exceeded;
} counter;

static void *resize(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    counter *c = ctx;
    if (new_size > DAMAGE_MEMORY || c->live - old_size + new_size > DAMAGE_MEMORY) {
        c->is_exceeded = true;
        return NULL;
    }
    void *p = NULL;
    if (new_size && align <= 16)
        p = realloc(ptr, new_size);
    else if (new_size && !posix_memalign(&p, align, new_size) && ptr)
        memcpy(p, ptr, old_size < new_size ? old_size : new_size);
    if (ptr && (!new_size || align > 16))
        free(ptr);
    if (new_size && !p)
        abort();
    c->live += new_size - old_size;
    c->peak = c->live > c->peak ? c->live : c->peak;
    return p;
}

/* ---- the answer ------------------------------------------------------------------------------ */

typedef struct answer {
    damage_answer *to;
    const damage_rules *rules;
    uint32_t findings; /* faults, and warnings about checksums */
} answer;

enum { FNV_PRIME = 16777619 };
static const uint32_t FNV_START = 2166136261;

static uint32_t mix(uint32_t hash, const void *data, size_t len)
{
    const uint8_t *p = data;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ p[i]) * FNV_PRIME;
    return hash;
}

static void add_bytes(answer *a, const void *data, size_t len)
{
    a->to->hash = mix(a->to->hash, data, len);
}

static void add_number(answer *a, uint64_t n)
{
    add_bytes(a, &n, sizeof n);
}

/* Add a message without the numbers. */
static void add_message(answer *a, const char *text)
{
    for (; *text; text++)
        if (*text < '0' || *text > '9')
            add_bytes(a, text, 1);
}

static void on_finding(void *ctx, const heft_finding *f)
{
    answer *a = ctx;
    bool is_checksum = false;
    for (size_t i = 0; i < a->rules->count && f->severity == HEFT_WARNING; i++)
        is_checksum = is_checksum || !strcmp(f->rule, a->rules->at[i]);
    a->findings += f->severity == HEFT_FAULT || is_checksum;
    a->to->warnings += f->severity == HEFT_WARNING;
    add_number(a, f->severity);
    add_message(a, f->rule);
}

static void list_values(answer *a, const heft_file *f)
{
    for (uint32_t i = 0; i < heft_meta_count(f); i++) {
        heft_value v = heft_meta_at(f, i);
        add_number(a, v.kind);
        add_bytes(a, v.key.ptr, v.key.len);
        if (v.kind == HEFT_KIND_STR || v.kind == HEFT_KIND_BYTES)
            add_bytes(a, v.as.s.ptr, v.as.s.len);
    }
}

static void list_tensors(answer *a, const heft_file *f)
{
    heft_value v;
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        heft_tensor t = heft_tensor_at(f, i);
        add_bytes(a, t.name.ptr, t.name.len);
        add_bytes(a, t.dims, t.rank * sizeof *t.dims);
        add_number(a, t.dtype);
        add_number(a, heft_tensor_bytes(f, i));
        add_number(a, heft_tensor_find(f, t.name));
        if (t.layout != HEFT_DENSE) /* the length of opaque data may depend on the file's */
            continue;
        a->to->content = mix(a->to->content, t.name.ptr, t.name.len);
        a->to->content = mix(a->to->content, t.dims, t.rank * sizeof *t.dims);
        for (uint32_t k = 0, n = heft_attribute_count(f, i); k < n; k++) {
            v = heft_attribute_at(f, i, k);
            add_bytes(a, v.key.ptr, v.key.len);
        }
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

static void complain(answer *a, heft_status st, const char *message)
{
    snprintf(a->to->violation, sizeof a->to->violation, "%s: %s", heft_status_name(st), message);
}

static bool is_refusal(heft_status st)
{
    return st == HEFT_E_FORMAT || st == HEFT_E_UNSUPPORTED || st == HEFT_E_LIMIT ||
           st == HEFT_E_CHECKSUM;
}

/* Read at most PART_READ bytes of a part. HEFT_E_IO: the part is in another file. */
static heft_status read_part(answer *a, const heft_file *f, uint32_t part, heft_error *err)
{
    static uint8_t buf[16 << 10];
    heft_stream *stream;
    heft_part p = heft_part_at(f, part);
    heft_status st = heft_stream_open(&stream, f, part, err);
    if (st)
        return st == HEFT_E_IO && p.shard ? HEFT_OK : st;
    uint64_t left = p.length == HEFT_UNKNOWN_LENGTH ? 0 : p.length;
    left = left < PART_READ ? left : PART_READ;
    for (size_t n; left && !st; left -= n) {
        n = left < sizeof buf ? (size_t)left : sizeof buf;
        st = heft_stream_read(buf, stream, n, err);
        a->to->hash = mix(a->to->hash, buf, st ? 0 : n);
    }
    heft_stream_close(stream);
    return st;
}

static heft_status read_tensor(answer *a, const heft_file *f, uint32_t id, heft_error *err)
{
    heft_tensor t = heft_tensor_at(f, id);
    heft_array array;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < t.part_count && !st; i++)
        st = read_part(a, f, t.first_part + i, err);
    if (st || t.layout != HEFT_DENSE || heft_tensor_bytes(f, id) > PART_READ)
        return st;
    st = heft_array_read(&array, f, t.name, HEFT_UNTYPED, NULL, 0, err);
    if (!st)
        a->to->content = mix(a->to->content, array.data, (size_t)array.bytes);
    heft_array_free(&array);
    return st == HEFT_E_NOTFOUND ? HEFT_OK : st;
}

static void use_file(answer *a, const heft_file *f)
{
    heft_verify_options opt = HEFT_VERIFY_OPTIONS_INIT;
    heft_error err = { .status = HEFT_OK };
    uint32_t first, parts = heft_file_parts(f, &first);
    opt.on_finding = on_finding;
    opt.ctx = a;
    list_tensors(a, f);
    list_values(a, f);
    heft_status st = heft_file_verify(NULL, f, &opt, &err);
    if (st)
        complain(a, st, err.message);
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        st = read_tensor(a, f, i, &err);
        if (st && !is_refusal(st))
            complain(a, st, err.message);
    }
    for (uint32_t i = 0; i < parts; i++) {
        st = read_part(a, f, first + i, &err);
        if (st && !is_refusal(st))
            complain(a, st, err.message);
    }
}

heft_status damage_open(heft_file **f, const uint8_t *p, size_t len, const heft_host *host,
                        bool no_verify, heft_error *err)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_source *source;
    heft_status st = heft_source_open_memory(&source, p, len, err);
    opt.host = host;
    opt.no_verify = no_verify;
    return st ? st : heft_file_open_source(f, source, &opt, err);
}

void damage_read(damage_answer *out, const uint8_t *p, size_t len, const damage_rules *rules)
{
    answer a = { .to = out, .rules = rules };
    counter count = { 0 };
    heft_allocator al = { .size = sizeof al, .resize = resize, .ctx = &count };
    heft_host host;
    heft_error err;
    heft_file *f = NULL;
    *out = (damage_answer){ .hash = FNV_START, .content = FNV_START };
    heft_host_copy(&host, heft_host_default(), sizeof host);
    host.allocator = &al;
    host.executor = NULL;
    host.entropy = NULL;
    host.scratch = NULL;
    heft_status st = damage_open(&f, p, len, &host, false, &err), first = st;
    if (st == HEFT_E_CHECKSUM)
        st = damage_open(&f, p, len, &host, true, &err);
    add_number(&a, (uint64_t)(int64_t)first);
    if (st)
        add_message(&a, err.message);
    if (st && (!is_refusal(st) || !err.message[0]))
        complain(&a, st, err.message);
    if (!st)
        use_file(&a, f);
    heft_file_close(f);
    if (count.live)
        complain(&a, HEFT_OK, "memory is not released");
    if (count.is_exceeded)
        complain(&a, HEFT_OK, "reading needs more than 64 MiB");
    out->peak = count.peak;
    out->is_accepted = !first && !a.findings;
}
