/* scan.c - scans a source for pickles: the pieces of the scan, and the memory and work allowed. */
#include "scan/scan.h"
#include "base/error.h"
#include "base/sized.h"
#include "core/read/file.h"

enum { FREE_WORK = 384 << 20, WORK_RATIO = 64, FREE_MEMORY = 256 << 20, MEMORY_RATIO = 32 };

/* ---- the bytes of the source ---- */

typedef struct contents {
    const uint8_t *bytes;
    void *memory; /* NULL if mapped */
    size_t size;
} contents;

static heft_status read_contents(contents *out, heft_scan *s, heft_source *source)
{
    out->size = (size_t)source->size;
    if (!source->size)
        return HEFT_OK;
    if (source->ops->map)
        out->bytes = source->ops->map(source, 0, source->size);
    if (out->bytes)
        return HEFT_OK;
    if (source->size < SIZE_MAX)
        out->memory = heft_alloc(s->host->allocator, out->size, 64);
    if (!out->memory)
        return heft_error_no_memory(s->err, "for the file");
    out->bytes = out->memory;
    return source->ops->read(source, 0, out->memory, out->size, s->err);
}

static void begin_access(heft_source *source)
{
    if (source->ops->begin_access)
        source->ops->begin_access(source);
}

/* Return an error if bytes were missing or changed while they were scanned. */
static heft_status end_access(heft_source *source, heft_status st, heft_error *err)
{
    if (source->ops->end_access)
        source->ops->end_access(source);
    if (!st && source->ops->check)
        st = source->ops->check(source, err);
    if (!st && HEFT_HAS(source->ops, check_unchanged))
        st = source->ops->check_unchanged(source, err);
    return st;
}

/* ---- the scan ---- */

static uint64_t in_proportion(uint64_t size, uint64_t ratio, uint64_t more)
{
    return size > (UINT64_MAX - more) / ratio ? UINT64_MAX : size * ratio + more;
}

/* Scan a compressed piece; its content is kept if the content holds further pieces. */
static heft_status scan_packed(heft_scan *s, heft_scan_piece *p)
{
    heft_scan_decoded d = { 0 };
    uint32_t others = s->pieces.len;
    heft_status st = heft_scan_unpack(&d, s, p);
    if (!st)
        st = heft_scan_content(s, p);
    if (!st && s->pieces.len > others)
        st = heft_scan_keep(s, &d);
    heft_scan_free(s, &d);
    return st;
}

static heft_status scan_pieces(heft_scan *s)
{
    while (s->pieces.len && !s->is_spent) {
        heft_scan_piece p = ((heft_scan_piece *)s->pieces.ptr)[--s->pieces.len];
        HEFT_TRY(p.packing ? scan_packed(s, &p) : heft_scan_content(s, &p));
    }
    return HEFT_OK;
}

static heft_str last_part(const char *path)
{
    heft_str name = heft_str_from(path ? path : "");
    for (size_t i = name.len; i--;)
        if (name.ptr[i] == '/')
            return (heft_str){ name.ptr + i + 1, name.len - i - 1 };
    return name;
}

static heft_status scan_source(heft_scan *s, heft_source *source, const char *name)
{
    contents c = { 0 };
    begin_access(source);
    heft_status st = read_contents(&c, s, source);
    heft_scan_piece whole = { .bytes = c.bytes, .size = c.size, .name = last_part(name) };
    if (!st)
        st = heft_scan_add(s, &whole);
    if (!st)
        st = scan_pieces(s);
    st = end_access(source, st, s->err);
    heft_free(s->host->allocator, c.memory, c.size, 64);
    return st;
}

static void free_scan(heft_scan *s)
{
    for (uint32_t i = 0; i < s->kept.len; i++)
        heft_scan_free(s, (heft_scan_decoded *)s->kept.ptr + i);
    heft_vec_free(&s->mem, &s->kept, sizeof(heft_scan_decoded));
    heft_vec_free(&s->mem, &s->pieces, sizeof(heft_scan_piece));
    heft_arena_free(&s->names);
}

heft_status heft_source_scan(heft_scan_result *out, heft_source *source,
                             const heft_scan_options *opt, heft_error *err)
{
    heft_error own;
    heft_scan_options o = HEFT_SCAN_OPTIONS_INIT;
    err = heft_error_begin(err, &own);
    heft_status st = heft_sized_copy(&o, sizeof o, opt, err);
    heft_scan s = { .on_finding = o.on_finding, .ctx = o.ctx, .err = err };
    if (!st)
        st = heft_host_resolve(&s.host, o.host, err);
    if (!st)
        st = heft_source_check(source, err);
    if (!st) {
        s.mem = (heft_memory){ .al = s.host->allocator,
                               .limit = in_proportion(source->size, MEMORY_RATIO, FREE_MEMORY) };
        s.names.mem = &s.mem;
        s.work = in_proportion(source->size, WORK_RATIO, FREE_WORK);
        st = scan_source(&s, source, o.name);
        free_scan(&s);
    }
    if (out)
        *out = s.result;
    return heft_error_end(err, st);
}
