/* shard_numbering.c - checks numbered file names such as "model-00001-of-00003.safetensors" against
 * the index's list and against the other files in the folder. */
#include "core/shards/shard_join.h"

#include "base/bisect.h"
#include "base/numbered_name.h"

static bool is_same_set(const heft_numbered_name *a, const heft_numbered_name *b)
{
    return heft_str_eq(a->head, b->head) && heft_str_eq(a->tail, b->tail);
}

/* ---- files that are not listed ---- */

typedef struct folder_scan {
    heft_file *f;
    heft_numbered_name first;
    heft_status st;
} folder_scan;

/* Binary search: shards of an index are sorted by name. */
static bool is_listed(const heft_file *f, heft_str name)
{
    heft_bisect b = { .end = f->opened_shard_count };
    while (heft_bisect_next(&b)) {
        int order = heft_str_order(heft_ix_shard_at(&f->x, b.mid + 1)->label, name);
        if (!order)
            return true;
        heft_bisect_narrow(&b, order < 0);
    }
    return false;
}

static void check_folder_entry(void *arg, const char *text)
{
    folder_scan *s = arg;
    heft_numbered_name n;
    heft_str name = heft_lit(text);
    if (s->st || !heft_numbered_name_read(&n, name) || !is_same_set(&n, &s->first) ||
        is_listed(s->f, name))
        return;
    s->st = heft_join_left_out(s->f, "heft/shard-extra",
                               "the file %q is numbered like a shard of this model, but not listed",
                               name);
}

/* ---- numbers ---- */

heft_status heft_check_shard_numbers(heft_file *f)
{
    heft_numbered_name first, n;
    bool agree = true;
    if (!f->x.shard_entries.len ||
        !heft_numbered_name_read(&first, heft_ix_shard_at(&f->x, 1)->label))
        return HEFT_OK;
    for (uint32_t i = 2; i <= f->opened_shard_count; i++) {
        if (!heft_numbered_name_read(&n, heft_ix_shard_at(&f->x, i)->label))
            return HEFT_OK; /* names without numbers carry no information */
        agree = agree && is_same_set(&n, &first) && n.count == first.count;
    }
    heft_status st = HEFT_OK;
    if (!agree)
        st = heft_join_note(f, HEFT_WARNING, "heft/shard-number", HEFT_NOWHERE, HEFT_NONE,
                            "the shards are numbered as parts of several models");
    else if (first.count != f->opened_shard_count)
        st = heft_join_note(f, HEFT_WARNING, "heft/shard-number", HEFT_NOWHERE, HEFT_NONE,
                            "the shards are numbered up to %U, but %U are listed",
                            (uint64_t)first.count, (uint64_t)f->opened_shard_count);
    if (st || HEFT_IS_LEAN || f->folder || !f->shards || !HEFT_HAS(f->shards, list))
        return st; /* heft_note_folder_files() reports further files of a folder */
    /* An unreadable folder is not a fault of the model; only heft_file_verify() reports the
     * error. */
    folder_scan s = { f, first, HEFT_OK };
    heft_error *error = heft_arena_alloc(&f->x.arena, sizeof *error, _Alignof(heft_error));
    if (!error)
        return HEFT_E_NOMEM;
    error->status = f->shards->list(f->shards->ctx, check_folder_entry, &s, error);
    f->list_error = error->status ? error : NULL;
    return error->status == HEFT_E_NOMEM ? HEFT_E_NOMEM : s.st;
}
