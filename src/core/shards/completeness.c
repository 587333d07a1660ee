/* completeness.c - records and reports why a model is incomplete. */
#include "core/shards/shard_join.h"

enum { NOTE_TEXT = 240 };

heft_str heft_shard_name(const heft_file *f, uint32_t number)
{
    return number ? f->opened_shards[number - 1].name : heft_lit("this file");
}

/* Keep only the first reason: any operation on the whole model fails with this error. */
void heft_file_set_missing(heft_file *f, const heft_error *why)
{
    static const heft_error not_kept = { .status = HEFT_E_NOMEM,
                                         .offset = HEFT_NOWHERE,
                                         .message = "no memory: a shard is missing or damaged" };
    if (f->missing)
        return;
    heft_error *kept = heft_arena_alloc(&f->x.arena, sizeof *kept, _Alignof(heft_error));
    f->missing = kept ? kept : &not_kept;
    if (!kept)
        return;
    *kept = *why;
    kept->offset = HEFT_NOWHERE;
}

/* Allocate the text in the arena, because the note borrows it. */
heft_status heft_join_note(heft_file *f, heft_severity s, const char *rule, uint64_t at,
                           uint32_t tensor, const char *fmt, ...)
{
    heft_error why;
    va_list ap;
    char *text = heft_arena_alloc(&f->x.arena, NOTE_TEXT, 1);
    if (!text)
        return HEFT_E_NOMEM;
    va_start(ap, fmt);
    heft_error_set_list(&why, HEFT_E_FORMAT, HEFT_NOWHERE, fmt, &ap);
    va_end(ap);
    memcpy(text, why.message, NOTE_TEXT);
    heft_ix_note(&f->x, s, rule, at, tensor, text);
    if (s == HEFT_FAULT)
        heft_file_set_missing(f, &why);
    return f->x.lost_notes ? HEFT_E_NOMEM : HEFT_OK;
}

heft_status heft_join_left_out(heft_file *f, const char *rule, const char *fmt, ...)
{
    heft_error text;
    va_list ap;
    va_start(ap, fmt);
    heft_error_set_list(&text, HEFT_OK, HEFT_NOWHERE, fmt, &ap);
    va_end(ap);
    heft_ix_left_out(&f->x, HEFT_LEFT_OUT_READABLE, rule, (heft_range){ HEFT_NOWHERE, 0 }, "%s",
                     text.message);
    return f->x.lost_notes ? HEFT_E_NOMEM : HEFT_OK;
}

void heft_file_drop_shards(heft_file *f)
{
    heft_joined_files_free(f);
    heft_shards_close(f);
    f->x.shards.len = 0;
    f->missing = NULL;
}

heft_status heft_file_is_complete(const heft_file *f, heft_error *err)
{
    for (uint32_t i = 1; !f->missing && i <= f->opened_shard_count; i++)
        if (heft_shard_status(f, i, err))
            return f->opened_shards[i - 1].status;
    if (f->missing && err)
        *err = *f->missing;
    return f->missing ? f->missing->status : HEFT_OK;
}
