/* shard_join.c - joins the shards of an index, or other open files, to one model.
 *
 * Each file keeps a separate index; the rows are copied to the joined index with global offsets.
 * The index's list of tensors is compared with the content of the shards. */
#include "core/shards/shard_join.h"

#include "base/bisect.h"
#include "model/names.h"

typedef struct join_job {
    heft_file *f;
    const heft_join_options *opt;
    uint32_t *first_tensor;   /* by joined file, counted across all files */
    uint8_t *is_kept;         /* by tensor, counted across all files, beginning with f */
    heft_names shard_entries; /* f->x.shard_entries by name */
    uint32_t own_tensors;     /* number of tensors of f alone */
    heft_error *err;
} join_job;

static const char purpose[] = "to join the files of a model";

/* ---- names ---- */

static uint32_t joined_file_of(const join_job *j, uint32_t tensor)
{
    heft_bisect b = { .first = 1, .end = j->f->joined_count };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, j->first_tensor[b.mid] <= tensor);
    return b.first - 1;
}

static heft_str name_of(const void *ctx, uint32_t tensor)
{
    const join_job *j = ctx;
    if (tensor < j->own_tensors)
        return heft_ix_name(&j->f->x, tensor);
    uint32_t m = joined_file_of(j, tensor);
    return heft_ix_name(&j->f->joined_files[m].file->x, tensor - j->first_tensor[m]);
}

static heft_str entry_name(const void *ctx, uint32_t i)
{
    return ((const heft_ix_shard_entry *)((const heft_file *)ctx)->x.shard_entries.ptr)[i].name;
}

/* Pieces of tensors are joined later. */
static bool is_piece(const join_job *j, uint32_t tensor)
{
    if (HEFT_IS_LEAN || j->f->has_ranks)
        return !HEFT_IS_LEAN;
    return tensor < j->own_tensors
               ? j->f->x.has_pieces
               : j->f->joined_files[joined_file_of(j, tensor)].file->x.has_pieces;
}

static uint32_t shard_of(const join_job *j, uint32_t tensor)
{
    return tensor < j->own_tensors ? 0 : j->f->joined_files[joined_file_of(j, tensor)].first_shard;
}

/* ---- tensors in two files ---- */

/* Keep the tensor in the shard that the index names, by default the first; for the caller's files,
 * opt->duplicates decides. */
static heft_status choose_duplicate(join_job *j, uint32_t before, uint32_t tensor, heft_str name)
{
    const heft_ix_shard_entry *entries = j->f->x.shard_entries.ptr;
    heft_names_of of = { entry_name, j->f };
    uint32_t i = heft_names_find(&j->shard_entries, of, heft_names_hash(&j->f->x.key, name), name);
    bool keep_second = j->opt ? j->opt->duplicates == HEFT_DUPLICATES_LAST
                              : i != HEFT_NONE && shard_of(j, tensor) == entries[i].shard;
    j->is_kept[keep_second ? before : tensor] = 0;
    if (j->opt && j->opt->duplicates != HEFT_DUPLICATES_REFUSE)
        return HEFT_OK;
    if (j->opt)
        return heft_error_plain(j->err, HEFT_E_ARGUMENT,
                                "tensor %q is in more than one of the files", name);
    return heft_join_note(j->f, HEFT_FAULT, "heft/shard-twice", HEFT_NOWHERE, HEFT_NONE,
                          "tensor %q is in %q and in %q", name,
                          heft_shard_name(j->f, shard_of(j, before)),
                          heft_shard_name(j->f, shard_of(j, tensor)));
}

/* The table holds only the kept tensor of each name. */
static heft_status choose_tensors(join_job *j, heft_names *seen, uint32_t total)
{
    heft_names_of of = { name_of, j };
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < total && !st; i++) {
        heft_str name = name_of(j, i);
        j->is_kept[i] = 0;
        if (is_piece(j, i))
            continue;
        uint32_t hash = heft_names_hash(&j->f->x.key, name);
        uint32_t before = heft_names_add(seen, of, hash, name, i);
        j->is_kept[i] = 1;
        if (before != HEFT_NONE)
            st = choose_duplicate(j, before, i, name);
        if (before != HEFT_NONE && j->is_kept[i])
            heft_names_replace(seen, of, hash, name, i);
    }
    return st;
}

/* ---- tensors ---- */

static heft_status add_entries(join_job *j)
{
    heft_index *x = &j->f->x;
    heft_names_of of = { entry_name, j->f };
    if (!x->shard_entries.len)
        return HEFT_OK;
    if (!heft_names_reserve(&x->mem, &j->shard_entries, x->shard_entries.len))
        return heft_error_no_memory(j->err, purpose);
    for (uint32_t i = 0; i < x->shard_entries.len; i++) {
        const heft_ix_shard_entry *entry = (const heft_ix_shard_entry *)x->shard_entries.ptr + i;
        if (heft_names_add(&j->shard_entries, of, heft_names_hash(&x->key, entry->name),
                           entry->name, i) != HEFT_NONE)
            return heft_error_set(j->err, HEFT_E_FORMAT, entry->at, "tensor %q is listed twice",
                                  entry->name);
    }
    return HEFT_OK;
}

static heft_status join_tensors(join_job *j)
{
    heft_memory *mem = &j->f->x.mem;
    uint32_t file_count = j->f->joined_count;
    uint64_t total = j->own_tensors = heft_ix_tensors(&j->f->x);
    heft_names seen = { NULL, 0, 0 };
    for (uint32_t m = 0; m < file_count; m++) {
        j->first_tensor[m] = (uint32_t)total;
        total += heft_ix_tensors(&j->f->joined_files[m].file->x);
    }
    if (total > j->f->x.limits.tensors) {
        heft_error_plain(j->err, HEFT_E_LIMIT, "%U tensors exceed the limit of %U", total,
                         (uint64_t)j->f->x.limits.tensors);
        return heft_error_rule(j->err, HEFT_E_LIMIT, "heft/limit-tensors");
    }
    j->is_kept = heft_mem_alloc(mem, (size_t)total + 1);
    heft_status st = j->is_kept && heft_names_reserve(mem, &seen, (uint32_t)total)
                         ? HEFT_OK
                         : heft_error_no_memory(j->err, purpose);
    if (!st && j->f->is_pipeline) /* the prefixes differ, so all names do */
        for (uint32_t i = 0; i < total; i++)
            j->is_kept[i] = !is_piece(j, i);
    else if (!st)
        st = choose_tensors(j, &seen, (uint32_t)total);
    heft_names_free(mem, &seen);
    for (uint32_t m = 0; m < file_count && !st; m++) {
        heft_joined_file *from = &j->f->joined_files[m];
        from->first_tensor = heft_ix_tensors(&j->f->x);
        from->first_checksum = j->f->x.checksums.len;
        st = !HEFT_IS_LEAN && j->f->has_ranks
                 ? heft_ix_merge_checksums(&j->f->x, &from->file->x, from->first_shard)
                 : heft_ix_merge(&j->f->x, &from->file->x, from->first_shard, from->prefix,
                                 j->is_kept + j->first_tensor[m]);
    }
    if (!st && !HEFT_IS_LEAN)
        st = j->f->has_ranks ? heft_join_ranks(j->f, j->err) : heft_join_pieces(j->f, j->err);
    if (!st)
        st = heft_ix_build_name_table(&j->f->x);
    heft_mem_free(mem, j->is_kept, (size_t)total + 1);
    return st;
}

/* ---- metadata: the first value of a key wins ---- */

static heft_str value_key(const void *ctx, uint32_t i)
{
    return heft_ix_value(ctx, i)->key;
}

static heft_status report_conflict(join_job *j, heft_str key, uint32_t m)
{
    if (j->opt) {
        if (j->opt->on_conflict)
            j->opt->on_conflict(j->opt->ctx, key, m);
        return HEFT_OK;
    }
    return heft_join_note(j->f, HEFT_WARNING, "heft/shard-metadata", HEFT_NOWHERE, HEFT_NONE,
                          "metadata %q of %q differs from another file", key,
                          heft_shard_name(j->f, j->f->joined_files[m].first_shard));
}

static heft_status join_file_values(join_job *j, heft_names *seen, uint32_t m)
{
    heft_index *x = &j->f->x;
    const heft_index *from = &j->f->joined_files[m].file->x;
    heft_names_of of = { value_key, x };
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < from->values.len && !st; i = heft_ix_value_next(from, i)) {
        heft_str key = heft_ix_value(from, i)->key;
        if (heft_ix_is_shard_key(from, key))
            continue;
        uint32_t hash = heft_names_hash(&x->key, key);
        uint32_t known = heft_names_find(seen, of, hash, key), at = x->values.len;
        if (known == HEFT_NONE) {
            st = heft_ix_copy_value(x, from, i, HEFT_NONE);
            if (!st)
                heft_names_add(seen, of, hash, key, at);
        } else if (!heft_ix_same_value(x, known, from, i)) {
            st = report_conflict(j, key, m);
        }
    }
    return st;
}

static void drop_shard_values(heft_index *x)
{
    for (uint32_t i = 0; i < x->values.len;) {
        const heft_value *v = heft_ix_value(x, i);
        bool is_plain = v->kind != HEFT_KIND_LIST && v->kind != HEFT_KIND_MAP;
        if (is_plain && heft_ix_is_shard_key(x, v->key))
            heft_ix_drop_value(x, i);
        else
            i = heft_ix_value_next(x, i);
    }
}

static heft_status join_metadata(join_job *j)
{
    heft_index *x = &j->f->x;
    drop_shard_values(x);
    heft_names seen = { NULL, 0, 0 };
    heft_names_of of = { value_key, x };
    uint64_t max_values = x->values.len;
    for (uint32_t m = 0; m < j->f->joined_count; m++)
        max_values += j->f->joined_files[m].file->x.values.len;
    if (max_values > UINT32_MAX / 4 || !heft_names_reserve(&x->mem, &seen, (uint32_t)max_values))
        return heft_error_no_memory(j->err, purpose);
    for (uint32_t i = 0; i < x->values.len; i = heft_ix_value_next(x, i)) {
        heft_str key = heft_ix_value(x, i)->key;
        heft_names_add(&seen, of, heft_names_hash(&x->key, key), key, i);
    }
    heft_status st = HEFT_OK;
    uint32_t count = j->f->has_ranks ? 1 : j->f->joined_count; /* settings of a rank are its own */
    for (uint32_t m = 0; m < count && !st; m++)
        st = join_file_values(j, &seen, m);
    heft_names_free(&x->mem, &seen);
    return st;
}

/* ---- joining ---- */

heft_status heft_join_files(heft_file *f, const heft_join_options *opt, heft_error *err)
{
    join_job j = { .f = f, .opt = opt, .err = err };
    size_t bytes = (f->joined_count + (size_t)1) * sizeof *j.first_tensor;
    heft_memory *mem = &f->x.mem;
    f->x.err = err;
    j.first_tensor = heft_mem_alloc(mem, bytes);
    heft_status st = j.first_tensor ? add_entries(&j) : heft_error_no_memory(err, purpose);
    if (!st)
        st = join_tensors(&j);
    if (!st)
        st = join_metadata(&j);
    if (!st)
        st = heft_check_shard_index(f, err);
    if (!st)
        st = heft_check_shard_info(f);
    if (!st && f->x.lost_notes)
        st = HEFT_E_NOMEM;
    heft_names_free(mem, &j.shard_entries);
    heft_mem_free(mem, j.first_tensor, bytes);
    f->x.err = NULL;
    return st == HEFT_E_NOMEM ? heft_error_no_memory(err, purpose) : st;
}

bool heft_join_reserve(heft_file *f, uint32_t count)
{
    size_t bytes = (count + (size_t)1) * sizeof *f->joined_files;
    f->joined_files = heft_mem_alloc(&f->x.mem, bytes);
    f->joined_capacity = f->joined_files ? count + 1 : 0;
    f->joined_count = 0;
    return f->joined_files;
}

/* Report tensors that lie past the end of a file of bytes, whose size the parser did not know. */
static heft_status check_extents(heft_file *f)
{
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < f->x.parts.len && !st; i++) {
        const heft_ix_part_row *p = heft_ix_part_row_at(&f->x, i);
        uint32_t number = heft_global_offset_file(&f->x, p->offset);
        heft_range where = { heft_global_offset_local(&f->x, p->offset), p->stored };
        const heft_source *s = number ? f->opened_shards[number - 1].source : NULL;
        uint32_t owner = heft_ix_owner(&f->x, i);
        if (s && !heft_range_in(where, s->size))
            st = heft_join_note(f, HEFT_FAULT, "heft/shard-tensor", HEFT_NOWHERE, owner,
                                "tensor %q: %U bytes at offset %U pass the end of %q, which has "
                                "%U bytes",
                                heft_ix_name(&f->x, owner), where.length, where.offset,
                                heft_shard_name(f, number), s->size);
    }
    return st;
}

/* An index of what changed between two models (docs/delta.md) lists nothing if nothing did. */
static bool lists_changes(const heft_index *x)
{
    for (uint32_t i = 0; i < x->values.len; i = heft_ix_value_next(x, i))
        if (heft_str_is(heft_ix_value(x, i)->key, "delta_encoding"))
            return true;
    return false;
}

heft_status heft_join_shards(heft_file *f, heft_error *err)
{
    bool is_set = false;
    heft_joined_files_free(f);
    f->missing = NULL;
    for (uint32_t i = 0; i < f->opened_shard_count; i++) {
        bool is_model = heft_ix_shard_at(&f->x, i + 1)->is_model;
        is_set = is_set || is_model;
        if (is_model && f->opened_shards[i].status)
            heft_file_set_missing(f, f->opened_shards[i].error);
    }
    if (f->x.is_shard_index && !f->opened_shard_count && !lists_changes(&f->x))
        return heft_join_note(f, HEFT_FAULT, "heft/shard-index", HEFT_NOWHERE, HEFT_NONE,
                              "the weight_map of the index lists no tensor and no shard: write the "
                              "index anew, or remove it to open the shards by their numbers")
                   ? heft_error_no_memory(err, purpose)
                   : HEFT_OK;
    if (!is_set)
        return HEFT_IS_LEAN || !check_extents(f) ? HEFT_OK : heft_error_no_memory(err, purpose);
    if (!heft_join_reserve(f, f->opened_shard_count))
        return heft_error_no_memory(err, purpose);
    for (uint32_t i = 0; i < f->opened_shard_count; i++)
        if (f->opened_shards[i].model)
            f->joined_files[f->joined_count++] = (heft_joined_file){
                .file = f->opened_shards[i].model,
                .first_shard = i + 1,
            };
    heft_file_enter(f);
    HEFT_TRY(heft_file_leave_after(f, heft_join_files(f, NULL, err), err));
    if (heft_check_shard_numbers(f))
        return heft_error_no_memory(err, purpose);
    return HEFT_OK;
}

/* ---- tensors appended to a file ---- */

heft_status heft_join_second(heft_file *f, uint64_t bytes, heft_source *source, uint32_t *number,
                             heft_error *err)
{
    heft_ix_shard s = { heft_lit("what is added"), NULL, bytes, true, NULL };
    f->x.err = err;
    heft_status st = heft_ix_shard_add(&f->x, s, number);
    if (!st && source) {
        f->opened_shards = heft_mem_alloc(&f->x.mem, sizeof *f->opened_shards);
        st = f->opened_shards ? HEFT_OK : heft_error_no_memory(err, purpose);
    }
    if (!st && source) {
        f->opened_shard_capacity = f->opened_shard_count = 1;
        *f->opened_shards = (heft_shard){ .name = s.label, .source = source, .is_borrowed = true };
        if (source->ops->map && source->size)
            f->opened_shards->whole_file = source->ops->map(source, 0, source->size);
    }
    f->x.err = NULL;
    return st;
}

heft_status heft_join_added(heft_file *f, const heft_index *x, uint64_t bytes, heft_source *source,
                            heft_error *err)
{
    size_t count = (size_t)heft_ix_tensors(x) + 1;
    uint32_t number;
    uint8_t *is_kept = heft_mem_alloc(&f->x.mem, count);
    if (!is_kept)
        return heft_error_no_memory(err, purpose);
    memset(is_kept, 1, count);
    heft_status st = heft_join_second(f, bytes, source, &number, err);
    f->x.err = err;
    heft_file_enter(f);
    if (!st)
        st = heft_ix_merge(&f->x, x, number, (heft_str){ NULL, 0 }, is_kept);
    if (!st)
        st = heft_ix_build_name_table(&f->x);
    st = heft_file_leave_after(f, st, err);
    heft_mem_free(&f->x.mem, is_kept, count);
    f->x.err = NULL;
    return st;
}
