/* bytes.c - stored bytes of an open file and of the files beside it. */
#include "core/read/file.h"

heft_status heft_beside_status(const heft_file *f, uint32_t number, heft_error *err)
{
    const heft_beside *b = &f->beside[number - 1];
    if (b->status && err)
        *err = *b->why;
    return b->status;
}

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

/* ---- mapped pages ---- */

static bool is_mapped(const heft_source *s, const uint8_t *whole)
{
    return s && HEFT_HAS(s->ops, populate) && whole;
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

heft_status heft_file_find_part(const heft_file *f, uint32_t part, heft_error *err)
{
    if (heft_ix_has_part(&f->x, part))
        return HEFT_OK;
    return heft_error_rule(
        err, heft_error_plain(err, HEFT_E_ARGUMENT, "there is no part %U", (uint64_t)part),
        "heft/no-part");
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
    heft_status st = heft_file_find_part(f, part, err);
    if (st)
        return st;
    const heft_ix_part_row *p = heft_ix_part_row_at(&f->x, part);
    heft_source *s = mapping_of(f, p);
    if (!s)
        return HEFT_OK;
    return s->ops->populate(s, heft_ix_place_offset(&f->x, p->offset), p->stored, err);
}

void heft_part_forget(const heft_file *f, uint32_t part)
{
    if (!heft_ix_has_part(&f->x, part))
        return;
    const heft_ix_part_row *p = heft_ix_part_row_at(&f->x, part);
    heft_source *s = mapping_of(f, p);
    if (s && HEFT_HAS(s->ops, let_go))
        s->ops->let_go(s, heft_ix_place_offset(&f->x, p->offset), p->stored);
}
