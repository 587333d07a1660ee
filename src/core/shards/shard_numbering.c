/* shard_numbering.c - checks numbered file names such as "model-00001-of-00003.safetensors" against
 * the index's list and against the other files in the folder. */
#include "core/shards/shard_join.h"

#include "base/bisect.h"

enum { DIGITS = 5, NUMBERS_LENGTH = 2 * DIGITS + 5 };

typedef struct numbered_name { /* a name of that form */
    heft_str stem, suffix;
    uint32_t number, count;
} numbered_name;

static bool read_digits(uint32_t *out, const char *p)
{
    *out = 0;
    for (int i = 0; i < DIGITS; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        *out = *out * 10 + (uint32_t)(p[i] - '0');
    }
    return true;
}

static bool read_name(numbered_name *out, heft_str name)
{
    size_t dot = name.len;
    while (dot && name.ptr[dot - 1] != '.')
        dot--;
    if (dot < NUMBERS_LENGTH + 1)
        return false;
    size_t at = dot - 1 - NUMBERS_LENGTH;
    const char *p = name.ptr + at;
    out->stem = (heft_str){ name.ptr, at };
    out->suffix = (heft_str){ name.ptr + dot - 1, name.len - dot + 1 };
    return *p == '-' && read_digits(&out->number, p + 1) && !memcmp(p + 1 + DIGITS, "-of-", 4) &&
           read_digits(&out->count, p + DIGITS + 5);
}

static bool is_same_set(const numbered_name *a, const numbered_name *b)
{
    return heft_str_eq(a->stem, b->stem) && heft_str_eq(a->suffix, b->suffix);
}

/* ---- files that are not listed ---- */

typedef struct folder_scan {
    heft_file *f;
    numbered_name first;
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
    numbered_name n;
    heft_str name = heft_lit(text);
    if (s->st || !read_name(&n, name) || !is_same_set(&n, &s->first) || is_listed(s->f, name))
        return;
    s->st = heft_join_note(s->f, HEFT_WARNING, "heft/shard-extra", HEFT_NOWHERE, HEFT_NONE,
                           "the file %q is numbered like a shard of this model, but not listed",
                           name);
}

/* ---- numbers ---- */

heft_status heft_check_shard_numbers(heft_file *f)
{
    numbered_name first, n;
    bool agree = true;
    if (!f->x.shard_entries.len || !read_name(&first, heft_ix_shard_at(&f->x, 1)->label))
        return HEFT_OK;
    for (uint32_t i = 2; i <= f->opened_shard_count; i++) {
        if (!read_name(&n, heft_ix_shard_at(&f->x, i)->label))
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
    if (st || !f->shards || !HEFT_HAS(f->shards, list))
        return st;
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
