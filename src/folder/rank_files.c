/* rank_files.c - finds the files of ranks in a checkpoint of DeepSpeed ZeRO. */
#include "folder/rank_files.h"

#include "base/error.h"
#include "base/path_risk.h"
#include "base/sort.h"
#include "base/text.h"

static const heft_rank_row *row_at(const heft_folder_listing *l, uint32_t i)
{
    return (const heft_rank_row *)l->ranks.ptr + i;
}

bool heft_rank_files_keep(heft_folder_listing *l, const char *name)
{
    heft_rank_row row = { .name = name };
    return !heft_rank_name_read(&row.n, heft_lit(name)) ||
           heft_vec_add(&l->mem, &l->ranks, &row, sizeof row);
}

/* Files with the names and shapes come first. */
static int order(const heft_rank_row *a, const heft_rank_row *b)
{
    if (a->n.is_states != b->n.is_states)
        return a->n.is_states ? -1 : 1;
    if (a->n.is_cut != b->n.is_cut)
        return a->n.is_cut ? 1 : -1;
    if (a->n.rank != b->n.rank)
        return a->n.rank < b->n.rank ? -1 : 1;
    return 0;
}

static bool is_before(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_rank_row *rows = ctx;
    int by = order(&rows[a], &rows[b]);
    return by ? by < 0 : heft_str_order(heft_lit(rows[a].name), heft_lit(rows[b].name)) < 0;
}

/* Sort the rows, and drop names that were added twice; false: no memory. */
static bool sort_rows(heft_folder_listing *l)
{
    uint32_t n = l->ranks.len, kept = 0;
    heft_rank_row *rows = l->ranks.ptr;
    uint32_t *ids = heft_arena_alloc(&l->arena, (2 * (size_t)n + 1) * sizeof *ids, 4);
    heft_rank_row *sorted = heft_arena_alloc(&l->arena, ((size_t)n + 1) * sizeof *sorted, 8);
    l->has_no_memory = l->has_no_memory || !ids || !sorted;
    if (l->has_no_memory)
        return false;
    heft_sort_numbers(ids, n, is_before, rows);
    for (uint32_t i = 0; i < n; i++)
        if (!kept || !heft_str_is(heft_lit(sorted[kept - 1].name), rows[ids[i]].name))
            sorted[kept++] = rows[ids[i]];
    if (kept)
        memcpy(rows, sorted, kept * sizeof *rows);
    l->ranks.len = kept;
    return true;
}

bool heft_rank_files_are_one(heft_folder_listing *l)
{
    bool are = l->ranks.len && sort_rows(l) && !l->parallel && !l->has_zero && !l->has_experts;
    for (uint32_t i = 0; are && i < l->ranks.len; i++)
        are = !row_at(l, i)->n.parallel && (!i || order(row_at(l, i - 1), row_at(l, i)));
    return are && !row_at(l, l->ranks.len - 1)->n.is_states;
}

bool heft_rank_files_are_universal(heft_folder_listing *l)
{
    return l->zero.len && !l->zero_gap && l->ranks.len && sort_rows(l);
}

const char *heft_rank_files_main(const heft_folder_listing *l)
{
    const heft_rank_row *first = l->ranks.len ? row_at(l, 0) : NULL;
    return first && first->n.is_states && first->n.is_cut ? first->name : NULL;
}

/* ---- refusals ---- */

static const char zero[] =
    "the folder has %q of DeepSpeed ZeRO-3, which cuts all tensors into pieces, and no files "
    "*_optim_states.pt with the elements, which zero_to_fp32.py and Heft join: copy them, too";
static const char parallel[] =
    "the checkpoint of DeepSpeed is of tensor or pipeline parallelism: files such as %q "
    "have parts of tensors, and Heft does not know how they are cut; ds_to_universal.py of "
    "DeepSpeed makes a universal checkpoint, which Heft joins";
static const char universal[] =
    "the folder is a universal checkpoint of DeepSpeed, with the folder 'zero', but without its "
    "files zero/NAME/fp32.pt, or %q with the shapes: copy it whole";
static const char universal_gap[] =
    "the folder is a universal checkpoint of DeepSpeed and incomplete: %q does not have the file "
    "fp32.pt with the weights";

heft_status heft_rank_files_report(const heft_folder_listing *l, heft_error *err)
{
    if (l->parallel && !l->zero_gap)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, parallel, heft_lit(l->parallel));
    if (l->deepspeed && !l->has_zero)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, zero, heft_lit(l->deepspeed));
    if (l->zero_gap)
        return heft_error_plain(err, HEFT_E_IO, universal_gap, heft_lit(l->zero_gap));
    return heft_error_plain(err, HEFT_E_UNSUPPORTED, universal, heft_lit(HEFT_DEEPSPEED_MODEL));
}

/* ---- the files of a model ---- */

/* Each kind of file has the ranks from 0 on, and there are not fewer files of the last kind. */
static heft_status check(const heft_folder_listing *l, heft_error *err)
{
    uint32_t count[2] = { 0, 0 };
    for (uint32_t i = 0; i < l->ranks.len; i++) {
        const heft_rank_row *row = row_at(l, i);
        uint32_t *next = &count[row->n.is_states];
        if (row->n.rank != *next)
            return heft_error_plain(err, HEFT_E_IO,
                                    "the checkpoint is incomplete: the folder has %q, but no such "
                                    "file of rank %U",
                                    heft_lit(row->name), (uint64_t)*next);
        ++*next;
    }
    return count[0] >= count[1]
               ? HEFT_OK
               : heft_error_plain(err, HEFT_E_IO,
                                  "the checkpoint is incomplete: the folder has files "
                                  "*_model_states.pt of %U ranks, and files *_optim_states.pt of "
                                  "%U",
                                  (uint64_t)count[1], (uint64_t)count[0]);
}

heft_status heft_rank_files_add(heft_folder_listing *l, const char *main, bool cut, heft_error *err)
{
    if (l->ranks.len > HEFT_MAX_SHARDS)
        return heft_error_plain(err, HEFT_E_LIMIT, "the folder has %U files of ranks, more than %U",
                                (uint64_t)l->ranks.len, (uint64_t)HEFT_MAX_SHARDS);
    if (cut)
        HEFT_TRY(check(l, err));
    for (uint32_t i = 0; i < l->ranks.len; i++) {
        heft_folder_file file = { .name = row_at(l, i)->name, .role = HEFT_FOLDER_SHARD };
        if (!heft_str_is(heft_lit(file.name), main) &&
            !heft_vec_add(&l->mem, &l->files, &file, sizeof file))
            return heft_error_no_memory(err, "to list a folder");
    }
    return HEFT_OK;
}

static bool is_name_before(const void *ctx, uint32_t a, uint32_t b)
{
    const char *const *names = ctx;
    return heft_str_order(heft_lit(names[a]), heft_lit(names[b])) < 0;
}

static bool add_shard(heft_folder_listing *l, const char *name, const char *main)
{
    heft_folder_file file = { .name = name, .role = HEFT_FOLDER_SHARD };
    return heft_str_is(heft_lit(name), main) ||
           heft_vec_add(&l->mem, &l->files, &file, sizeof file);
}

heft_status heft_rank_files_add_universal(heft_folder_listing *l, const char *main, heft_error *err)
{
    uint32_t n = l->zero.len;
    const char *const *names = l->zero.ptr;
    if ((uint64_t)n + l->ranks.len > HEFT_MAX_SHARDS)
        return heft_error_plain(err, HEFT_E_LIMIT,
                                "the folder has files of %U tensors and ranks, "
                                "more than %U",
                                (uint64_t)n + l->ranks.len, (uint64_t)HEFT_MAX_SHARDS);
    uint32_t *ids = heft_arena_alloc(&l->arena, (2 * (size_t)n + 1) * sizeof *ids, 4);
    bool fits = ids;
    if (fits)
        heft_sort_numbers(ids, n, is_name_before, names);
    for (uint32_t i = 0; i < n && fits; i++)
        if (!i || !heft_str_is(heft_lit(names[ids[i]]), names[ids[i - 1]]))
            fits = add_shard(l, names[ids[i]], main);
    for (uint32_t i = 0; i < l->ranks.len && fits; i++) {
        const heft_rank_row *row = row_at(l, i);
        if (row->n.is_states && row->n.is_cut && !row->n.parallel)
            fits = add_shard(l, row->name, main);
    }
    return fits ? HEFT_OK : heft_error_no_memory(err, "to list a folder");
}
