/* folder_shards.c - the other files of a model's folder: shards that no index lists, and files that
 * are not read, which are reported. */
#include "core/shards/shard_join.h"

#include "base/numbered_name.h"
#include "base/rank_name.h"
#include "model/names.h"

static const heft_folder *folder_of(const heft_file *f)
{
    return HEFT_IS_LEAN ? NULL : f->folder;
}

/* ---- shards without an index ---- */

/* A file of pieces, or of a rank, is a shard like the others: nothing of it is whole. */
static heft_status make_shard_of_pieces(heft_file *f)
{
    uint32_t number;
    heft_ix_shard s = { heft_lit(f->shards->name), NULL, HEFT_UNKNOWN_LENGTH, true, NULL };
    heft_ix_reset(&f->x);
    f->x.is_shard_index = true;
    return heft_ix_shard_add(&f->x, s, &number);
}

static bool has_shards(const heft_folder *folder)
{
    uint32_t i = 0, count = folder ? folder->count : 0;
    while (i < count && folder->files[i].role != HEFT_FOLDER_SHARD)
        i++;
    return i < count;
}

/* Return true if the name of the file is that of a rank, whose model the format joins. */
static bool is_of_rank(const heft_file *f, heft_rank_name *n)
{
    return !HEFT_IS_LEAN && f->shards && f->format->join_ranks && !f->x.has_pieces &&
           heft_rank_name_read(n, heft_lit(f->shards->name));
}

heft_status heft_add_folder_shards(heft_file *f, heft_error *err)
{
    const heft_folder *folder = folder_of(f);
    uint32_t number, count = folder ? folder->count : 0;
    heft_rank_name rank;
    bool skips_states = f->x.rank_has_states; /* they would take as much memory for each rank */
    f->has_folder_shards = f->has_ranks = false;
    if (f->x.shards.len) /* the file lists the shards itself */
        return HEFT_OK;
    f->has_ranks = is_of_rank(f, &rank) && has_shards(folder);
    if (f->x.pick.len && f->has_ranks && !rank.is_cut) { /* the key is looked for in this file */
        f->has_ranks = false;
        return HEFT_OK;
    }
    bool is_part = f->x.has_pieces || f->has_ranks;
    f->x.err = err;
    heft_status st = is_part && f->shards && has_shards(folder) ? make_shard_of_pieces(f) : HEFT_OK;
    for (uint32_t i = 0; i < count && !st; i++) {
        if (folder->files[i].role != HEFT_FOLDER_SHARD)
            continue;
        heft_str name = heft_lit(folder->files[i].name);
        if (f->has_ranks && skips_states && heft_rank_name_read(&rank, name) && rank.is_states)
            continue;
        heft_ix_shard s = { name, NULL, HEFT_UNKNOWN_LENGTH, true, NULL };
        st = f->x.pick.len
                 ? heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                    "key %q: --key applies only to a file, and %q is one of "
                                    "several shards",
                                    f->x.pick, name)
                 : heft_ix_shard_add(&f->x, s, &number);
        f->has_folder_shards = true;
    }
    f->x.err = NULL;
    return st;
}

static heft_status note_joined(heft_file *f)
{
    if (HEFT_IS_LEAN || !f->has_folder_shards || f->has_ranks || f->missing)
        return HEFT_OK;
    return heft_join_note(f, HEFT_NOTE, "heft/shard-joined", HEFT_NOWHERE, HEFT_NONE,
                          "the folder has no index of the model: %U numbered shards were joined",
                          (uint64_t)f->opened_shard_count + !f->x.is_shard_index);
}

/* Return true if the caller opens all other shards of the set, too. */
static bool are_all_given(const heft_file *f, const heft_numbered_name *n)
{
    enum { MOST = 4096 };
    bool is_given[MOST + 1] = { false };
    const heft_folder *folder = folder_of(f);
    uint32_t count = folder && n->count <= MOST ? folder->count : 0, given = 1;
    for (uint32_t i = 0; i < count; i++) {
        heft_numbered_name other;
        bool is = folder->files[i].role == HEFT_FOLDER_GIVEN &&
                  heft_numbered_name_read(&other, heft_lit(folder->files[i].name)) &&
                  heft_numbered_name_is_sibling(&other, n) && other.number <= n->count &&
                  other.number != n->number && !is_given[other.number];
        given += is;
        if (is)
            is_given[other.number] = true;
    }
    return given >= n->count;
}

/* Warn of a shard that is opened by its name, without the others. */
static heft_status note_alone(heft_file *f)
{
    heft_numbered_name n;
    heft_str name = f->shards ? heft_lit(f->shards->name) : (heft_str){ "", 0 };
    const heft_ix_shard_info *own = &f->x.shard_info;
    if (f->x.shards.len || f->x.is_shard_index)
        return HEFT_OK;
    bool is_numbered = heft_numbered_name_read(&n, name) && n.count > 1 && n.number <= n.count;
    if (is_numbered && are_all_given(f, &n))
        return HEFT_OK;
    if (own->count > 1)
        return heft_join_left_out(
            f, "heft/shard-alone",
            "the file is shard %U of %U of a model: open the folder or the first "
            "shard to read all of them",
            (uint64_t)own->number + 1, (uint64_t)own->count);
    if (!is_numbered)
        return HEFT_OK;
    return heft_join_left_out(
        f, "heft/shard-alone",
        "the file is numbered as shard %U of %U of a model: open the folder to "
        "read all of them",
        (uint64_t)n.number, (uint64_t)n.count);
}

/* ---- files that are not read ---- */

typedef struct rest { /* files of a role past those that are reported */
    heft_str name;
    uint64_t files;
    uint32_t reported;
} rest;

typedef struct other_files {
    heft_file *f;
    heft_names shards;         /* by name */
    heft_numbered_name listed; /* the first shard of the index; count 0: has no number */
    heft_str first;            /* a file that is not reported yet, and how many follow in its set */
    uint64_t more;
    uint8_t role;
    rest rest[2]; /* [1]: alternatives */
} other_files;

static heft_str shard_name_at(const void *ctx, uint32_t i)
{
    return ((const heft_file *)ctx)->opened_shards[i].name;
}

static bool is_shard(const other_files *o, heft_str name)
{
    heft_names_of of = { shard_name_at, o->f };
    return heft_names_find(&o->shards, of, heft_names_hash(&o->f->x.key, name), name) != HEFT_NONE;
}

/* Report a file, and how many others with it; numbered: they are numbered like a listed shard. */
static heft_status report_files(other_files *o, heft_str name, uint64_t more, const char *what,
                                bool is_numbered)
{
    static const char *const texts[2][2] = {
        { "the folder also contains %q, which was not read",
          "the folder also contains %q and %U other %s, which were not read" },
        { "the file %q is numbered like a shard of this model, but not listed",
          "the file %q and %U other %s are numbered like a shard of this model, but not listed" },
    };
    heft_str prefix = o->f->folder->prefix ? heft_lit(o->f->folder->prefix) : (heft_str){ "", 0 };
    const char *text = texts[is_numbered][more > 0];
    name = heft_arena_join(&o->f->x.arena, prefix, name, (heft_str){ "", 0 });
    if (!name.ptr)
        return HEFT_E_NOMEM;
    if (o->role == HEFT_FOLDER_ALTERNATIVE)
        return heft_join_note(o->f, HEFT_NOTE, "heft/passed-over", HEFT_NOWHERE, HEFT_NONE, text,
                              name, more, what);
    return heft_join_left_out(o->f, is_numbered ? "heft/shard-extra" : "heft/left-out", text, name,
                              more, what);
}

/* Report the file, or the set of files, that was kept back; after many, only count them. */
static heft_status report(other_files *o)
{
    enum { MOST = 16 };
    heft_numbered_name n;
    heft_str name = o->first;
    rest *r = &o->rest[o->role == HEFT_FOLDER_ALTERNATIVE];
    if (!name.ptr)
        return HEFT_OK;
    o->first = (heft_str){ NULL, 0 };
    if (r->reported++ >= MOST) {
        r->files += 1 + o->more;
        r->name = r->name.ptr ? r->name : name;
        return HEFT_OK;
    }
    bool is_numbered = heft_numbered_name_read(&n, name) && o->listed.count &&
                       heft_str_eq(n.head, o->listed.head) && heft_str_eq(n.tail, o->listed.tail);
    return report_files(o, name, o->more, "shards of the same set", is_numbered);
}

/* Report the files that were only counted. */
static heft_status report_rest(other_files *o)
{
    for (int form = 0; form < 2; form++) {
        const rest *r = &o->rest[form];
        o->role = form ? HEFT_FOLDER_ALTERNATIVE : HEFT_FOLDER_LEFT_OUT;
        if (r->files)
            HEFT_TRY(report_files(o, r->name, r->files - 1, "files", false));
    }
    return HEFT_OK;
}

/* Keep the file back if the next files may belong to the same set. */
static heft_status add(other_files *o, const heft_folder_file *file)
{
    heft_numbered_name n, before;
    heft_str name = heft_lit(file->name);
    if (file->role == HEFT_FOLDER_SHARD || file->role == HEFT_FOLDER_GIVEN || is_shard(o, name))
        return HEFT_OK;
    bool is_same = o->first.ptr && o->role == file->role && heft_numbered_name_read(&n, name) &&
                   heft_numbered_name_read(&before, o->first) &&
                   heft_numbered_name_is_sibling(&n, &before);
    if (is_same) {
        o->more++;
        return HEFT_OK;
    }
    heft_status st = report(o);
    o->first = name;
    o->role = file->role;
    o->more = 0;
    return st;
}

static heft_status report_others(other_files *o)
{
    heft_file *f = o->f;
    heft_names_of of = { shard_name_at, f };
    if (!heft_names_reserve(&f->x.mem, &o->shards, f->opened_shard_count))
        return HEFT_E_NOMEM;
    for (uint32_t i = 0; i < f->opened_shard_count; i++) {
        heft_str name = f->opened_shards[i].name;
        heft_names_add(&o->shards, of, heft_names_hash(&f->x.key, name), name, i);
    }
    if (!f->x.shard_entries.len ||
        !heft_numbered_name_read(&o->listed, heft_ix_shard_at(&f->x, 1)->label))
        o->listed.count = 0;
    for (uint32_t i = 0; i < f->folder->count; i++)
        HEFT_TRY(add(o, &f->folder->files[i]));
    HEFT_TRY(report(o));
    return report_rest(o);
}

heft_status heft_note_folder_files(heft_file *f, heft_error *err)
{
    other_files o = { .f = f, .first = { NULL, 0 } };
    heft_status st = note_joined(f);
    if (!st && !f->is_pipeline)
        st = note_alone(f);
    if (!st && folder_of(f))
        st = report_others(&o);
    heft_names_free(&f->x.mem, &o.shards);
    return st ? heft_error_no_memory(err, "for the notes about the file") : HEFT_OK;
}
