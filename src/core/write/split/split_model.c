/* split_model.c - split a model into several files: cut the sequence of units (split_units.c)
 * into runs, convert each run to a file, and write an index of the files. */
#include "core/check/source_verifier.h"

#include "core/shards/shard_join.h"
#include "core/write/convert/convert.h"
#include "core/write/split/index_output.h"
#include "core/write/split/shard_cut.h"
#include "core/write/split/shard_set_writer.h"
#include "core/write/split/split_units.h"
#include <heft/split.h>

#include "base/path_risk.h"
#include "base/sort.h"
#include "core/write/plan/plan.h"

typedef struct split_job {
    const heft_file *in;
    const heft_format *to;
    const heft_sharding *sharding; /* rules of the format `to` */
    /* Options of the caller, with the conversion and write options that `opt` refers to */
    heft_split_options opt;
    heft_convert_options caller;
    heft_write_options caller_write;
    heft_convert_options convert; /* options for every file */
    heft_write_options write;
    heft_split_units units;
    heft_memory mem;
    heft_shard_cut cut;
    uint32_t *run;         /* tensors of the next conversion, then scratch space for sorting */
    uint64_t done;         /* bytes of data in the files written so far */
    uint64_t file_payload; /* bytes of data in the file that is being written */
    uint64_t planned;
    heft_shard_set_writer *shard_writer; /* NULL: the index does not refer to the files */
    heft_error *err;
} split_job;

static const char purpose[] = "to split a model";

static uint32_t files(const split_job *s)
{
    return s->cut.ends.len;
}

static size_t run_bytes(const split_job *s)
{
    return (2 * (size_t)s->units.tensors + 1) * sizeof *s->run;
}

/* Readers find shards by their tensors, and the format by the first shard that the beginning of the
 * index names. */
static heft_status check_index(const split_job *s)
{
    enum { MAX_NAME = 8192 };
    const heft_index *x = &s->units.x;
    if (!s->units.tensors)
        return heft_error_plain(s->err, HEFT_E_UNSUPPORTED,
                                "a model without tensors cannot be split, because an index names "
                                "shards only beside tensors: convert it to one file");
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++)
        if (heft_ix_name(x, t).len > MAX_NAME)
            return heft_error_plain(s->err, HEFT_E_UNSUPPORTED,
                                    "tensor %q cannot be listed in an index of shards, because its "
                                    "name has more than %U bytes: convert the model to one file",
                                    heft_ix_name(x, t), (uint64_t)MAX_NAME);
    return HEFT_OK;
}

/* Plan the whole model once, to report losses once for all files. */
static heft_status survey(split_job *s)
{
    heft_convert_options o = s->convert;
    heft_conversion c;
    heft_conversion_scope scope = { .is_shard = true, .progress_ctx = s };
    o.dry_run = true;
    heft_write_options write = s->write;
    write.on_loss = s->caller_write.on_loss;
    write.sums = s->caller_write.sums;
    o.write = &write;
    o.planned_bytes = &s->planned;
    heft_status st = heft_conversion_plan(&c, s->in, s->to, &o, &scope, s->err);
    if (!st)
        st = heft_split_units_collect(&s->units, s->in, &c.p, s->err);
    if (!st)
        st = heft_conversion_write(&c, NULL);
    st = heft_conversion_end(&c, NULL, st);
    if (st)
        return st;
    if (s->sharding->index)
        HEFT_TRY(check_index(s));
    s->run = heft_mem_alloc(&s->mem, run_bytes(s));
    return s->run ? HEFT_OK : heft_error_no_memory(s->err, purpose);
}

/* ---- runs ---- */

static bool is_below(const void *ctx, uint32_t a, uint32_t b)
{
    (void)ctx;
    return a < b;
}

typedef struct run {
    uint32_t first, end;  /* units */
    uint32_t file, files; /* number of this file, and number of files */
} run;

/* take NULL: only plan the run, and read no tensor that is cast. */
static heft_status convert_run(split_job *s, run r, heft_sink *take)
{
    const heft_split_units *u = &s->units;
    const heft_sharding *sharding = s->sharding;
    heft_value values[HEFT_SHARD_SET_VALUES];
    heft_convert_options o = s->convert;
    uint32_t from = u->first_of[r.first], count = u->first_of[r.end] - from;
    heft_conversion_scope scope = { .is_shard = true,
                                    .own_metadata = sharding->values && r.file,
                                    .only = s->run,
                                    .only_count = count,
                                    .progress_ctx = s,
                                    .equal_id = u->equal_id };
    memcpy(s->run, u->members + from, count * sizeof *s->run);
    heft_sort(s->run, s->run + u->tensors, count, is_below, NULL);
    o.dry_run = !take;
    if (sharding->values) {
        o.set = values;
        o.set_count = sharding->values(values, r.file, r.files, u->tensors);
    }
    o.planned_bytes = &s->planned;
    if (take)
        return heft_convert_as(s->in, s->to, take, &o, &scope, s->err);
    heft_conversion c;
    heft_status st = heft_conversion_plan(&c, s->in, s->to, &o, &scope, s->err);
    return heft_conversion_end(&c, NULL, st);
}

/* Shard numbers in the metadata have the same length in all files, so the first two stand for
 * any. */
static heft_status plan_run(void *ctx, uint32_t first, uint32_t end, uint64_t *bytes)
{
    split_job *s = ctx;
    const heft_convert_options *o = &s->caller;
    if (o->progress && !o->progress(o->ctx, 0, s->units.total))
        return heft_error_plain(s->err, HEFT_E_CANCELLED, "stopped");
    heft_status st = convert_run(s, (run){ first, end, first ? 1 : 0, 2 }, NULL);
    *bytes = s->planned;
    return st;
}

/* Report tensors that are larger than a file should be. */
static heft_status report_oversized(const split_job *s)
{
    const uint64_t *sizes = s->cut.sizes.ptr;
    const uint32_t *ends = s->cut.ends.ptr;
    const heft_write_options *o = &s->caller_write;
    uint32_t count = 0;
    for (uint32_t i = 0; s->opt.max_bytes && i < files(s); i++) {
        heft_error text;
        if (sizes[i] <= s->opt.max_bytes)
            continue;
        count++;
        heft_error_plain(&text, HEFT_OK,
                         "the tensor needs a shard of %U bytes, more than --max-size %U", sizes[i],
                         s->opt.max_bytes);
        heft_str name = heft_ix_name(&s->in->x, s->units.members[s->units.first_of[ends[i] - 1]]);
        if (o->on_loss)
            o->on_loss(o->ctx, o->strict ? HEFT_FAULT : HEFT_WARNING, "heft/shard-size", name,
                       text.message);
    }
    return count && o->strict
               ? heft_error_rule(s->err,
                                 heft_error_plain(
                                     s->err, HEFT_E_LOSSY, "%U %s a shard larger than --max-size",
                                     (uint64_t)count, count == 1 ? "tensor needs" : "tensors need"),
                                 "heft/shard-size")
               : HEFT_OK;
}

static heft_status cut(split_job *s)
{
    uint32_t count = s->opt.count;
    if (count > s->units.count && count > 1)
        return heft_error_plain(s->err, HEFT_E_ARGUMENT, "cannot make %U files from %U tensors%s",
                                (uint64_t)count, (uint64_t)s->units.count,
                                s->units.count < s->units.tensors ? " with bytes of their own"
                                                                  : "");
    s->cut = (heft_shard_cut){ .mem = &s->mem,
                               .payload = s->units.bytes,
                               .units = s->units.count,
                               .max_bytes = s->opt.max_bytes,
                               .plan = plan_run,
                               .ctx = s,
                               .err = s->err };
    if (s->planned > s->units.total && s->units.count)
        s->cut.header_bytes = heft_div(s->planned - s->units.total, s->units.count);
    HEFT_TRY(heft_shard_cut_model(&s->cut, count));
    return report_oversized(s);
}

/* ---- files ---- */

static heft_status open_file(const split_job *s, uint32_t i, heft_sink **out)
{
    char text[HEFT_MAX_SHARD_NAME + 1];
    heft_out name = { .buf = (uint8_t *)text, .cap = HEFT_MAX_SHARD_NAME };
    *out = NULL;
    s->sharding->name(&name, heft_lit(s->opt.stem), i, files(s));
    if (name.st)
        return heft_error_plain(s->err, HEFT_E_ARGUMENT, "the file names would exceed %U bytes",
                                (uint64_t)HEFT_MAX_SHARD_NAME);
    text[name.len] = '\0';
    return heft_error_about(s->err, s->opt.open(out, s->opt.ctx, text, s->err), HEFT_ABOUT_TARGET);
}

/* Report payload only: the conversion of a file also counts padding between the parts. */
static bool progress(void *ctx, uint64_t done, uint64_t total)
{
    const split_job *s = ctx;
    done = done < s->file_payload ? done : s->file_payload;
    return s->caller.progress(s->caller.ctx, s->done + done,
                              s->units.total ? s->units.total : total);
}

static run run_of(const split_job *s, uint32_t file)
{
    const uint32_t *ends = s->cut.ends.ptr;
    return (run){ file ? ends[file - 1] : 0, ends[file], file, files(s) };
}

static heft_status write_file(split_job *s, uint32_t i)
{
    run r = run_of(s, i);
    heft_sink *sink;
    s->file_payload = 0;
    for (uint32_t u = r.first; u < r.end; u++)
        s->file_payload += s->cut.payload[u];
    heft_status st = open_file(s, i, &sink);
    if (!st && s->shard_writer)
        sink = heft_shard_set_writer_sink(s->shard_writer, sink);
    if (!st)
        st = convert_run(s, r, sink);
    if (!st && s->shard_writer)
        st = heft_shard_set_writer_add(s->shard_writer, s->planned, s->err);
    s->done += s->file_payload;
    return st;
}

/* ---- the index as a text ---- */

static heft_status write_text_index(split_job *s)
{
    heft_shard_set set = {
        .stem = heft_lit(s->opt.stem), .count = files(s), .x = &s->units.x, .bytes = s->units.total
    };
    size_t n = s->units.tensors, bytes = (3 * n + s->units.count + 1) * sizeof(uint32_t);
    uint32_t *ids = heft_mem_resize(&s->mem, NULL, 0, bytes);
    heft_sink *sink = NULL;
    if (!ids)
        return heft_error_no_memory(s->err, purpose);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = i;
    heft_sort(ids, ids + n, (uint32_t)n, heft_ix_name_before, &s->units.x);
    for (uint32_t f = 0; f < files(s); f++) {
        run r = run_of(s, f);
        for (uint32_t u = r.first; u < r.end; u++)
            ids[3 * n + u] = f;
    }
    for (uint32_t t = 0; t < n; t++)
        ids[2 * n + t] = ids[3 * n + s->units.unit[t]];
    set.order = ids;
    set.file = ids + 2 * n;
    heft_status st = open_file(s, files(s), &sink);
    if (!st)
        st = heft_index_output(s->sharding, &set, sink, s->in->host->allocator, s->err);
    heft_mem_resize(&s->mem, ids, bytes, 0);
    return heft_sink_end(sink, st, s->err);
}

/* ---- the index as a file that links the shards ---- */

static heft_status write_linked_index(split_job *s)
{
    const heft_file *joined;
    const heft_convert_options *from = &s->convert;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT; /* the shards have the changes already */
    heft_conversion_scope scope = { .shard_count = files(s) };
    heft_sink *sink;
    heft_status st = heft_shard_set_writer_join(s->shard_writer, &joined, &scope.shards, s->err);
    if (!st)
        st = open_file(s, files(s), &sink);
    if (!st)
        sink = heft_shard_set_writer_sink(s->shard_writer, sink);
    o.write = from->write;
    o.exact_metadata = from->exact_metadata;
    o.vocab = from->vocab;
    o.storage = from->storage;
    o.ctx = from->ctx;
    o.no_verify = true; /* the files were just written */
    if (!st)
        st = heft_convert_as(joined, s->to, sink, &o, &scope, s->err);
    return st ? st : heft_shard_set_writer_finish(s->shard_writer, s->err);
}

/* ---- the whole split ---- */

/* Add up the files, without an index in text. */
static heft_status plan_all(split_job *s)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < files(s); i++) {
        HEFT_TRY(convert_run(s, run_of(s, i), NULL));
        sum += s->planned;
    }
    if (s->caller.planned_bytes)
        *s->caller.planned_bytes = sum;
    return HEFT_OK;
}

static heft_status write_all(split_job *s)
{
    const heft_sharding *sharding = s->sharding;
    heft_status st = HEFT_OK;
    if (sharding->index_refers_to_parts)
        st = heft_shard_set_writer_begin(&s->shard_writer, s->in->host, s->to, files(s) + 1,
                                         s->err);
    for (uint32_t i = 0; i < files(s) && !st; i++)
        st = write_file(s, i);
    if (!st && sharding->index_refers_to_parts)
        st = write_linked_index(s);
    heft_shard_set_writer_free(s->shard_writer);
    return st || !sharding->index ? st : write_text_index(s);
}

/* Verify the input once if checksums cover more than a part, since every shard would verify them
 * again, or if they cover the header and no part has a digest, since copies skip them then. */
static heft_status check_input(split_job *s)
{
    const heft_stored_checksum *checksums = s->in->x.checksums.ptr;
    bool covers_more = false;
    for (uint32_t i = 0; i < s->in->x.checksums.len; i++)
        covers_more = covers_more || !checksums[i].at_open || !s->in->x.digests.len;
    if (!covers_more || s->convert.no_verify || files(s) < 2)
        return HEFT_OK;
    s->convert.no_verify = true;
    return heft_check_all(s->in, s->err);
}

/* Return how the format splits models, or NULL. */
static const heft_sharding *sharding_of(const heft_format *f)
{
    const heft_format_writer *writer = f ? heft_registry_writer(f) : NULL;
    return writer ? writer->sharding : NULL;
}

static heft_status read_options(split_job *s, const heft_split_options *opt)
{
    HEFT_TRY(heft_sized_copy(&s->opt, sizeof s->opt, opt, s->err));
    HEFT_TRY(heft_sized_copy(&s->caller, sizeof s->caller, s->opt.convert, s->err));
    HEFT_TRY(heft_sized_copy(&s->caller_write, sizeof s->caller_write, s->caller.write, s->err));
    heft_str stem = heft_lit(s->opt.stem ? s->opt.stem : "");
    bool is_name = stem.len;
    for (size_t i = 0; i < stem.len; i++)
        is_name = is_name && stem.ptr[i] != '/' && stem.ptr[i] != '\\';
    s->sharding = sharding_of(s->to);
    if (!s->sharding)
        return heft_error_plain(s->err, HEFT_E_UNSUPPORTED,
                                "%s does not support splitting: a model is always one file",
                                s->to ? s->to->name : "this format");
    if (!is_name || stem.ptr[0] == '.' || heft_utf8_valid(stem.ptr, stem.len) != stem.len)
        return heft_error_plain(s->err, HEFT_E_ARGUMENT, "%q cannot begin a file name", stem);
    if (!s->opt.max_bytes && !s->opt.count)
        return heft_error_plain(s->err, HEFT_E_ARGUMENT,
                                "neither a size limit nor a number of files is given");
    if (!s->opt.open)
        return heft_error_plain(s->err, HEFT_E_ARGUMENT, "heft_split_options.open is not set");
    return heft_file_is_complete(s->in, s->err);
}

static void init_file_options(split_job *s)
{
    s->convert = s->caller;
    s->convert.dry_run = false;
    s->write = s->caller_write;
    s->write.on_loss = NULL; /* survey() reports losses */
    s->write.sums = NULL;
    s->convert.write = &s->write;
    if (s->sharding->version)
        s->write.version = s->sharding->version;
    if (s->caller.progress)
        s->convert.progress = progress;
}

heft_status heft_file_split(const heft_file *in, const heft_format *to,
                            const heft_split_options *opt, heft_error *err)
{
    heft_error own;
    split_job s = { .in = in,
                    .to = to,
                    .opt = HEFT_SPLIT_OPTIONS_INIT,
                    .caller = HEFT_CONVERT_OPTIONS_INIT,
                    .caller_write = HEFT_WRITE_OPTIONS_INIT,
                    .convert = HEFT_CONVERT_OPTIONS_INIT,
                    .mem = { in->host->allocator, UINT64_MAX, 0 },
                    .err = heft_error_begin(err, &own) };
    HEFT_TRY(read_options(&s, opt));
    init_file_options(&s);
    heft_status st = survey(&s);
    if (!st)
        st = cut(&s);
    if (!st && s.caller.dry_run)
        st = plan_all(&s);
    else if (!st)
        st = check_input(&s);
    if (!st && !s.caller.dry_run)
        st = write_all(&s);
    heft_shard_cut_free(&s.cut);
    heft_mem_free(&s.mem, s.run, run_bytes(&s));
    heft_split_units_free(&s.units);
    return heft_error_end(s.err, st);
}

bool heft_format_can_split(const heft_format *f)
{
    return sharding_of(f);
}
