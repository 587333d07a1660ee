/* stored_bytes.c - reads stored bytes of an open file and its shards. */
#include "core/read/file.h"

enum { READ_MIN = 64 << 10 }; /* shorter ranges are not read out of a mapped file */

heft_status heft_shard_status(const heft_file *f, uint32_t number, heft_error *err)
{
    const heft_shard *shard = &f->opened_shards[number - 1];
    if (shard->status && err)
        *err = *shard->error;
    return shard->status;
}

heft_status heft_file_error_in(const heft_file *f, uint32_t number, heft_status st, heft_error *err)
{
    if (!st || !number)
        return st;
    const heft_shard *shard = &f->opened_shards[number - 1];
    heft_file_enter(f); /* the name may be mapped */
    heft_error_in(err, st, shard->name);
    heft_file_disarm(f);
    if (shard->input)
        heft_error_input(err, st, shard->input);
    return st;
}

heft_status heft_file_error_at(const heft_file *f, uint64_t offset, heft_status st, heft_error *err)
{
    if (err)
        err->offset = heft_global_offset_local(&f->x, offset);
    return heft_file_error_in(f, heft_global_offset_file(&f->x, offset), st, err);
}

void heft_file_enter(const heft_file *f)
{
    for (uint32_t i = 0; i <= f->opened_shard_count; i++) {
        heft_source *s = heft_file_source(f, i);
        if (s && s->ops->begin_access)
            s->ops->begin_access(s);
    }
}

void heft_file_disarm(const heft_file *f)
{
    for (uint32_t i = 0; i <= f->opened_shard_count; i++) {
        heft_source *s = heft_file_source(f, i);
        if (s && s->ops->end_access)
            s->ops->end_access(s);
    }
}

heft_status heft_file_leave(const heft_file *f, heft_error *err)
{
    heft_status st = HEFT_OK;
    heft_file_disarm(f);
    for (uint32_t i = 0; i <= f->opened_shard_count; i++) {
        heft_source *s = heft_file_source(f, i);
        heft_status source_st = s && s->ops->check ? s->ops->check(s, err) : HEFT_OK;
        heft_file_error_in(f, i, source_st, err);
        st = st ? st : source_st;
    }
    return st;
}

void heft_file_guard(const heft_file *f)
{
    heft_file_enter(f);
}

heft_status heft_file_unguard(const heft_file *f, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    return heft_error_end(err, heft_file_leave(f, err));
}

heft_status heft_file_is_unchanged(const heft_file *f, heft_error *err)
{
    for (uint32_t i = 0; i <= f->opened_shard_count; i++) {
        heft_source *s = heft_file_source(f, i);
        if (s && HEFT_HAS(s->ops, check_unchanged))
            HEFT_TRY(heft_file_error_in(f, i, s->ops->check_unchanged(s, err), err));
    }
    return HEFT_OK;
}

heft_status heft_file_end_reading(const heft_file *f, heft_status st, heft_error *err)
{
    st = heft_file_leave_after(f, st, err);
    return st ? st : heft_file_is_unchanged(f, err);
}

void heft_file_begin_origin_digests(const heft_file *f)
{
    for (uint32_t i = 0; i <= f->opened_shard_count; i++) {
        heft_source *s = heft_file_source(f, i);
        if (s && HEFT_HAS(s->ops, begin_digest) && s->ops->begin_digest)
            s->ops->begin_digest(s);
    }
}

heft_status heft_file_check_origin_digest(const heft_file *f, uint32_t number, bool *is_stated,
                                          heft_error *err)
{
    heft_source *s = heft_file_source(f, number);
    *is_stated = false;
    return s && HEFT_HAS(s->ops, check_digest) && s->ops->check_digest
               ? s->ops->check_digest(s, is_stated, err)
               : HEFT_OK;
}

bool heft_file_has_bytes(const heft_file *f, uint64_t offset)
{
    uint32_t number = heft_global_offset_file(&f->x, offset);
    return !number || !heft_shard_status(f, number, NULL);
}

void heft_file_announce(const heft_file *f, uint64_t offset, uint64_t length)
{
    heft_source *s = heft_file_source(f, heft_global_offset_file(&f->x, offset));
    if (s && s->ops->will_need && heft_file_has_bytes(f, offset))
        s->ops->will_need(s, heft_global_offset_local(&f->x, offset), length);
}

/* Return all bytes of a file or shard in memory, or NULL. */
static const uint8_t *whole_file_of(const heft_file *f, uint32_t number)
{
    return number ? f->opened_shards[number - 1].whole_file : f->input.whole_file;
}

const uint8_t *heft_file_map(const heft_file *f, uint64_t offset, uint64_t len)
{
    (void)len;
    const uint8_t *whole_file = whole_file_of(f, heft_global_offset_file(&f->x, offset));
    return whole_file ? whole_file + heft_global_offset_local(&f->x, offset) : NULL;
}

heft_status heft_file_read_stored(const heft_file *f, uint64_t offset, void *buf, size_t len,
                                  heft_error *err)
{
    uint32_t number = heft_global_offset_file(&f->x, offset);
    heft_source *s = heft_file_source(f, number);
    bool is_fed = !number && !f->source;
    if (number)
        HEFT_TRY(heft_shard_status(f, number, err));
    uint64_t have, size = number ? s->size : f->input.in.size;
    offset = heft_global_offset_local(&f->x, offset);
    heft_status st = HEFT_OK;
    if (!heft_range_in((heft_range){ offset, len }, size))
        st = heft_error_set(err, HEFT_E_ARGUMENT, offset,
                            "%U bytes exceed the file, which has %U bytes", (uint64_t)len, size);
    else if (len && !is_fed)
        st = s->ops->read(s, offset, buf, len, err);
    if (st || !len || !is_fed)
        return heft_file_error_in(f, number, st, err);
    const uint8_t *p = f->input.in.window((heft_window *)(uintptr_t)&f->input.in, offset, len,
                                          &have);
    if (have < len)
        return heft_error_set(err, HEFT_E_IO, offset + have, "these bytes were not fed");
    memcpy(buf, p, len);
    return HEFT_OK;
}

/* ---- mapped pages ---- */

static bool is_mapped(const heft_file *f, uint32_t number)
{
    const heft_source *s = heft_file_source(f, number);
    return s && HEFT_HAS(s->ops, populate) && whole_file_of(f, number);
}

bool heft_file_is_mapped(const heft_file *f)
{
    bool all = f->source || f->opened_shard_count;
    for (uint32_t i = 0; i <= f->opened_shard_count; i++) {
        bool is_absent = i ? f->opened_shards[i - 1].status != HEFT_OK : !f->source;
        all = all && (is_absent || is_mapped(f, i));
    }
    return all;
}

const uint8_t *heft_file_in_place(const heft_file *f, uint64_t offset, uint64_t len)
{
    bool is_read = len >= READ_MIN && is_mapped(f, heft_global_offset_file(&f->x, offset));
    return is_read ? NULL : heft_file_map(f, offset, len);
}

heft_status heft_file_find_part(const heft_file *f, uint32_t part, heft_error *err)
{
    if (heft_ix_has_part(&f->x, part))
        return HEFT_OK;
    heft_error_plain(err, HEFT_E_ARGUMENT, "there is no part %U", (uint64_t)part);
    return heft_error_rule(err, HEFT_E_ARGUMENT, "heft/no-part");
}

/* Return the mapped file that contains the part, or NULL. */
static heft_source *mapped_source(const heft_file *f, const heft_ix_part_row *p)
{
    uint32_t number = heft_global_offset_file(&f->x, p->offset);
    return p->stored && is_mapped(f, number) ? heft_file_source(f, number) : NULL;
}

heft_status heft_part_populate(const heft_file *f, uint32_t part, heft_error *err)
{
    HEFT_TRY(heft_file_find_part(f, part, err));
    const heft_ix_part_row *p = heft_ix_part_row_at(&f->x, part);
    heft_source *s = mapped_source(f, p);
    uint64_t offset = heft_global_offset_local(&f->x, p->offset);
    return s ? s->ops->populate(s, offset, p->stored, err) : HEFT_OK;
}

void heft_part_dont_need(const heft_file *f, uint32_t part)
{
    if (!heft_ix_has_part(&f->x, part))
        return;
    const heft_ix_part_row *p = heft_ix_part_row_at(&f->x, part);
    heft_source *s = mapped_source(f, p);
    if (s && HEFT_HAS(s->ops, dont_need))
        s->ops->dont_need(s, heft_global_offset_local(&f->x, p->offset), p->stored);
}
