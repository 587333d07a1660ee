/* read.c - bytes of an open file. */
#include "core/spread.h"
#include "core/stream.h"

static void enter(heft_source *s)
{
    if (s && s->ops->enter)
        s->ops->enter(s);
}

void heft_file_enter(const heft_file *f)
{
    enter(f->source);
    for (uint32_t i = 0; i < f->beside_count; i++)
        enter(f->beside[i].source);
}

static void disarm(heft_source *s)
{
    if (s && s->ops->leave)
        s->ops->leave(s);
}

void heft_file_disarm(const heft_file *f)
{
    disarm(f->source);
    for (uint32_t i = 0; i < f->beside_count; i++)
        disarm(f->beside[i].source);
}

static heft_status leave(heft_source *s, heft_error *err)
{
    disarm(s);
    return s && s->ops->state ? s->ops->state(s, err) : HEFT_OK;
}

heft_status heft_file_leave(const heft_file *f, heft_error *err)
{
    heft_status st = leave(f->source, err);
    for (uint32_t i = 0; i < f->beside_count; i++) {
        heft_status there = leave(f->beside[i].source, err);
        st = st ? st : there;
    }
    return st;
}

bool heft_file_has(const heft_file *f, uint64_t place)
{
    uint32_t number = heft_ix_place_file(&f->x, place);
    return !number || !heft_beside_status(f, number, NULL);
}

const uint8_t *heft_file_lend(const heft_file *f, uint64_t place, uint64_t len)
{
    uint32_t number = heft_ix_place_file(&f->x, place);
    (void)len;
    const uint8_t *whole = number ? f->beside[number - 1].whole : f->inbox.whole;
    return whole ? whole + heft_ix_place_offset(&f->x, place) : NULL;
}

static heft_status read_sibling(const heft_file *f, uint64_t place, void *buf, size_t len,
                                heft_error *err)
{
    uint32_t number = heft_ix_place_file(&f->x, place);
    heft_status st = heft_beside_status(f, number, err);
    if (st)
        return st;
    heft_source *s = f->beside[number - 1].source;
    uint64_t offset = heft_ix_place_offset(&f->x, place);
    if (!heft_range_in((heft_range){ offset, len }, s->size))
        return heft_error_set(err, HEFT_E_ARGUMENT, offset, "%U bytes pass the end of %q, %U",
                              (uint64_t)len, f->beside[number - 1].name, s->size);
    return len ? s->ops->read(s, offset, buf, len, err) : HEFT_OK;
}

heft_status heft_file_bytes(const heft_file *f, uint64_t place, void *buf, size_t len,
                            heft_error *err)
{
    if (heft_ix_place_file(&f->x, place))
        return read_sibling(f, place, buf, len, err);
    if (!heft_range_in((heft_range){ place, len }, f->inbox.in.size))
        return heft_error_set(err, HEFT_E_ARGUMENT, place, "%U bytes pass the end of the file, %U",
                              (uint64_t)len, f->inbox.in.size);
    if (!len)
        return HEFT_OK;
    if (f->source)
        return f->source->ops->read(f->source, place, buf, len, err);
    uint64_t have;
    const uint8_t *p = f->inbox.in.window((heft_in *)(uintptr_t)&f->inbox.in, place, len, &have);
    if (have < len)
        return heft_error_set(err, HEFT_E_IO, place + have, "these bytes were not fed");
    memcpy(buf, p, len);
    return HEFT_OK;
}

const void *heft_view(const heft_file *f, uint32_t part)
{
    const heft_ix_part_row *p = heft_ix_part_row_at(&f->x, part);
    return heft_ix_is_plain(p) && p->stored ? heft_file_lend(f, p->offset, p->stored) : NULL;
}

/* A compressed part has no middle to begin at: what lies before `from` is decoded and dropped. */
static heft_status read_decoded(void *buf, const heft_file *f, uint32_t part, uint64_t from,
                                size_t len, heft_error *err)
{
    heft_stream s;
    heft_status st = heft_stream_start(&s, f, part, err);
    if (st)
        return st;
    heft_file_enter(f);
    st = heft_stream_skip(&s, from, err);
    if (!st)
        st = heft_stream_read(buf, &s, len, err);
    heft_stream_stop(&s);
    heft_status there = heft_file_leave(f, err);
    return there ? there : st;
}

heft_status heft_read(void *buf, const heft_file *f, uint32_t part, uint64_t from, size_t len,
                      heft_error *err)
{
    if (part >= f->x.parts.len + f->x.model_parts.len)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "there is no part %U", (uint64_t)part);
    const heft_ix_part_row *p = heft_ix_part_row_at(&f->x, part);
    if (p->length != HEFT_NOWHERE && !heft_range_in((heft_range){ from, len }, p->length))
        return heft_error_plain(err, HEFT_E_ARGUMENT, "%U bytes at %U pass the end of the part, %U",
                                (uint64_t)len, from, p->length);
    if (p->encoding != HEFT_RAW)
        return read_decoded(buf, f, part, from, len, err);
    if (heft_ix_is_plain(p))
        return heft_file_bytes(f, p->offset + from, buf, len, err);
    heft_spread e = heft_spread_of(f, part, NULL);
    heft_file_enter(f); /* elements may be lent */
    heft_status st = heft_spread_read(&e, from, buf, len, err);
    heft_status there = heft_file_leave(f, err);
    return there ? there : st;
}

void heft_prefetch(const heft_file *f, const uint32_t *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const heft_ix_part_row *p = heft_ix_part_row_at(&f->x, parts[i]);
        uint32_t number = heft_ix_place_file(&f->x, p->offset);
        heft_source *s = number ? f->beside[number - 1].source : f->source;
        if (s && s->ops->will_need && heft_file_has(f, p->offset))
            s->ops->will_need(s, heft_ix_place_offset(&f->x, p->offset), p->stored);
    }
}

/* ---- mapped pages ---- */

static bool is_mapped(const heft_source *s, const uint8_t *whole)
{
    return s && s->ops->populate && whole;
}

bool heft_file_is_mapped(const heft_file *f)
{
    bool all = f->source || f->beside_count;
    if (f->source)
        all = is_mapped(f->source, f->inbox.whole);
    for (uint32_t i = 0; i < f->beside_count; i++)
        all = all && (f->beside[i].status || is_mapped(f->beside[i].source, f->beside[i].whole));
    return all;
}

/* The mapped file that the part lies in, or NULL. */
static heft_source *mapping_of(const heft_file *f, const heft_ix_part_row *p)
{
    uint32_t number = heft_ix_place_file(&f->x, p->offset);
    heft_source *s = number ? f->beside[number - 1].source : f->source;
    const uint8_t *whole = number ? f->beside[number - 1].whole : f->inbox.whole;
    return p->stored && is_mapped(s, whole) ? s : NULL;
}

heft_status heft_part_populate(const heft_file *f, uint32_t part, heft_error *err)
{
    const heft_ix_part_row *p = heft_ix_part_row_at(&f->x, part);
    heft_source *s = mapping_of(f, p);
    if (!s)
        return HEFT_OK;
    return s->ops->populate(s, heft_ix_place_offset(&f->x, p->offset), p->stored, err);
}

void heft_part_forget(const heft_file *f, uint32_t part)
{
    const heft_ix_part_row *p = heft_ix_part_row_at(&f->x, part);
    heft_source *s = mapping_of(f, p);
    if (s)
        s->ops->let_go(s, heft_ix_place_offset(&f->x, p->offset), p->stored);
}
