/* open_notices.c - collects notices while a file is opened: the format's own, and warnings about
 * names that look like paths and about ranks that other libraries do not support. */
#include "core/read/file.h"

#include "base/path_risk.h"

enum { MAX_RANK = 64 };

static const char *const path_texts[] = {
    [HEFT_PATH_ABSOLUTE] = "its name looks like a path: it begins with '/'",
    [HEFT_PATH_PARENT] = "its name looks like a path that leaves its folder: it has a '..'",
    [HEFT_PATH_DRIVE] = "its name looks like a path: it begins with the letter of a drive",
    [HEFT_PATH_BACKSLASH] = "its name looks like a path: it has a backslash",
};

heft_status heft_file_add_notes(heft_file *f)
{
    heft_index *x = &f->x;
    const heft_name_rules *rules = f->format->name_rules;
    bool is_odd = rules && (x->odd_names || x->max_rank > MAX_RANK);
    for (uint32_t t = 0; is_odd && t < heft_ix_tensors(x); t++) {
        heft_path_risk risk = heft_str_path_risk(heft_ix_name(x, t));
        if (risk == HEFT_PATH_NUL)
            heft_ix_note(x, HEFT_WARNING, rules->nul_rule ? rules->nul_rule : rules->path_rule,
                         HEFT_NOWHERE, t,
                         rules->nul_text ? rules->nul_text : "there is a NUL in its name");
        else if (risk != HEFT_PATH_PLAIN)
            heft_ix_note(x, HEFT_WARNING, rules->path_rule, HEFT_NOWHERE, t, path_texts[risk]);
        if (rules->rank_rule && heft_ix_row(x, t)->rank > MAX_RANK)
            heft_ix_note(x, HEFT_WARNING, rules->rank_rule, HEFT_NOWHERE, t,
                         "it exceeds the limit of 64 dimensions of NumPy and PyTorch");
    }
    heft_status st = f->format->notice ? f->format->notice(x) : HEFT_OK;
    return !st && x->lost_notes ? heft_error_no_memory(x->err, "for the notes about the file") : st;
}

heft_finding heft_file_finding(const heft_file *f, const heft_note *note)
{
    heft_range where = note->where;
    uint32_t file = heft_global_offset_file(&f->x, where.offset);
    if (file)
        where.offset = heft_global_offset_local(&f->x, where.offset);
    return (heft_finding){ .severity = note->severity,
                           .rule = note->rule,
                           .where = where,
                           .tensor = note->tensor,
                           .text = note->text,
                           .shard = file,
                           .left_out = note->left_out != HEFT_LEFT_OUT_NOT };
}

uint32_t heft_notice_count(const heft_file *f)
{
    return f->x.notes.len + f->x.notes_cut;
}

heft_finding heft_notice_at(const heft_file *f, uint32_t i)
{
    static const heft_note truncated = {
        HEFT_WARNING,        "heft/notices", "there are more findings; only the first are listed",
        { HEFT_NOWHERE, 0 }, HEFT_NONE,      false,
        HEFT_LEFT_OUT_NOT
    };
    const heft_note *notes = f->x.notes.ptr;
    if (i >= heft_notice_count(f))
        return (heft_finding){ .rule = NULL };
    return heft_file_finding(f, i < f->x.notes.len ? &notes[i] : &truncated);
}
