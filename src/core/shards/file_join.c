/* file_join.c - joins open files that the caller keeps to one model. */
#include "core/shards/shard_join.h"

static const char purpose[] = "to join the files of a model";

/* A joined file has no bytes of its own: nothing is read from what takes their place. */
static heft_source *source_of(const heft_file *from)
{
    return from->source               ? from->source
           : from->opened_shard_count ? from->opened_shards[0].source
                                      : NULL;
}

static heft_status add_file(heft_file *f, const heft_file *from, heft_error *err)
{
    uint32_t number;
    heft_str name = from->name.len ? from->name : heft_lit("one of the files");
    heft_ix_shard s = { name, NULL, from->input.in.size, true, NULL };
    heft_shard *b = &f->opened_shards[f->opened_shard_count];
    if (!from->ready || !source_of(from))
        return heft_error_plain(err, HEFT_E_ARGUMENT, "a file to be joined has no source");
    if (from->x.has_pieces)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "%q has pieces of tensors of a distributed checkpoint (DCP), which "
                                "this build does not join",
                                name);
    *b = (heft_shard){ .name = s.label,
                       .source = source_of(from),
                       .whole_file = from->input.whole_file,
                       .is_borrowed = true };
    HEFT_TRY(heft_ix_shard_add(&f->x, s, &number));
    f->opened_shard_count++;
    f->joined_files[f->joined_count++] = (heft_joined_file){ .file = from, .first_shard = number };
    for (uint32_t i = 0; i < from->opened_shard_count; i++) {
        heft_ix_shard own = *heft_ix_shard_at(&from->x, i + 1);
        own.label = from->opened_shards[i].name;
        own.suffix = NULL;
        f->opened_shards[f->opened_shard_count] = from->opened_shards[i];
        f->opened_shards[f->opened_shard_count].model = NULL;
        f->opened_shards[f->opened_shard_count++].is_borrowed = true;
        HEFT_TRY(heft_ix_shard_add(&f->x, own, &number));
    }
    if (from->missing)
        heft_file_set_missing(f, from->missing);
    return HEFT_OK;
}

static heft_status add_files(heft_file *f, const heft_file *const *files, uint32_t count,
                             uint32_t more, heft_error *err)
{
    uint64_t total = more;
    for (uint32_t i = 0; i < count; i++)
        total += 1 + (uint64_t)files[i]->opened_shard_count;
    if (total > UINT32_MAX || !heft_join_reserve(f, count))
        return heft_error_no_memory(err, purpose);
    f->opened_shards = heft_mem_alloc(&f->x.mem, (size_t)total * sizeof *f->opened_shards);
    f->opened_shard_capacity = f->opened_shards ? (uint32_t)total : 0;
    if (!f->opened_shards)
        return heft_error_no_memory(err, purpose);
    f->x.err = err;
    for (uint32_t i = 0; i < count; i++)
        HEFT_TRY(add_file(f, files[i], err));
    for (uint32_t i = 0; count > 1 && i < f->opened_shard_count; i++)
        f->opened_shards[i].input = 0; /* of another join */
    return HEFT_OK;
}

heft_status heft_join_begin(heft_file **out, const heft_file *const *files, uint32_t count,
                            uint32_t more, heft_error *err)
{
    heft_open_options open = HEFT_OPEN_OPTIONS_INIT;
    heft_limits limits = HEFT_LIMITS_INIT;
    limits.memory = UINT64_MAX;
    limits.read_bytes = files[0]->x.limits.read_bytes;
    limits.read_counter = files[0]->x.limits.read_counter;
    open.host = files[0]->host;
    open.limits = &limits;
    for (uint32_t i = 0; i < count; i++) /* the highest limit of any file applies */
        if (files[i]->x.limits.tensors > limits.tensors)
            limits.tensors = files[i]->x.limits.tensors;
    HEFT_TRY(heft_file_begin(out, 0, &open, err));
    heft_file *f = *out;
    f->format = files[0]->format;
    f->x.version = files[0]->x.version;
    /* Keep the version only if all files agree. */
    for (uint32_t i = 1; i < count; i++)
        if (files[i]->format != files[0]->format ||
            !heft_str_eq(files[i]->x.version, files[0]->x.version))
            f->x.version = (heft_str){ NULL, 0 };
    f->x.generator = files[0]->x.generator;
    f->x.strict = files[0]->x.strict;
    for (uint32_t i = 0; i < count; i++)
        f->check_parts = f->check_parts || files[i]->check_parts;
    return add_files(f, files, count, more, err);
}

heft_status heft_join_source(heft_file *f, heft_str label, heft_source *take, uint32_t *shard)
{
    heft_ix_shard row = { label, NULL, take->size, false, NULL };
    f->opened_shards[f->opened_shard_count++] = (heft_shard){ .name = label, .source = take };
    return heft_ix_shard_add(&f->x, row, shard);
}

heft_status heft_join_computed(heft_file *f, const heft_tensor *t, uint32_t shard, uint64_t start,
                               uint64_t bytes)
{
    uint64_t *dims;
    uint32_t id;
    HEFT_TRY(heft_ix_tensor(&f->x, t->name, t->dtype, t->rank, &dims, &id));
    if (t->rank)
        memcpy(dims, t->dims, t->rank * sizeof *dims);
    heft_range where = { heft_global_offset(shard, start), bytes };
    return heft_ix_part(&f->x, id, heft_ix_data, t->dtype, where, bytes, HEFT_RAW);
}

heft_status heft_join_end(heft_file **out, heft_status st, heft_error *err)
{
    if (!st && !heft_ix_list_tensor_checksums(&(*out)->x))
        st = heft_error_no_memory(err, purpose);
    if (*out)
        (*out)->ready = !st;
    if (st) {
        heft_file_close(*out);
        *out = NULL;
    }
    return heft_error_end(err, st);
}

/* Let errors say which file they are about. */
static void number_inputs(heft_file *f)
{
    for (uint32_t m = 0, i = 0; m < f->joined_count; m++) {
        uint32_t end = m + 1 < f->joined_count ? f->joined_files[m + 1].first_shard - 1
                                               : f->opened_shard_count;
        for (; i < end; i++)
            f->opened_shards[i].input = m + 1;
    }
}

heft_status heft_file_join(heft_file **out, const heft_file *const *files, uint32_t count,
                           const heft_join_options *opt, heft_error *err)
{
    heft_error own;
    heft_join_options o = HEFT_JOIN_OPTIONS_INIT;
    err = heft_error_begin(err, &own);
    *out = NULL;
    if (!count)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "there are no files to join");
    heft_status st = heft_sized_copy(&o, sizeof o, opt, err);
    if (!st)
        st = heft_join_begin(out, files, count, 0, err);
    if (!st) {
        number_inputs(*out);
        st = heft_join_files(*out, &o, err);
    }
    return heft_join_end(out, st, err);
}
