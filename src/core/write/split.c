/* split.c - one model into several files: the tensors in their order are cut into runs, each run is a
 * conversion of its own, and an index says what is where.  Tensors that come from the same bytes and that the
 * target can keep in one place are one unit, which is where the first of them is, and is not cut. */
#include "core/check/watch.h"
#include "core/shards/join.h"
#include "core/write/convert.h"
#include "core/write/cut.h"
#include "core/write/linked.h"

#include "base/sort.h"

enum { MOST_NAME = 255, INDEX_BUFFER = 64 << 10 };

typedef struct splitting {
    const heft_file *in;
    const heft_format *to;
    heft_split_options opt; /* with those of conversion and writing that it names */
    heft_convert_options given;
    heft_write_options given_write;
    heft_convert_options convert; /* of every file, with its own options of writing */
    heft_write_options write;
    heft_index x;    /* the tensors that will be written, by name */
    heft_vec source; /* uint32_t, by tensor: the tensor of the input */
    heft_vec unit;   /* uint32_t, by tensor */
    heft_vec bytes;  /* uint64_t, by unit: of data */
    heft_cut cut;
    uint32_t
        *first_of;     /* by unit and once more: where the tensors of the unit begin in `members` */
    uint32_t *members; /* tensors of the input, by unit */
    uint32_t *run;     /* tensors of the input that the next conversion is about */
    uint32_t *equal;   /* by part of the input: see heft_converting; or NULL */
    uint64_t total;    /* bytes of data */
    uint64_t done;     /* bytes of the files before */
    uint64_t planned;
    heft_linked *linked; /* the files so far, when the index refers to them */
    heft_error *err;
} splitting;

static heft_status no_memory(heft_error *err)
{
    return heft_error_plain(err, HEFT_E_NOMEM, "no memory to split a model");
}

static uint32_t units(const splitting *s)
{
    return s->bytes.len;
}

static uint32_t unit_of(const splitting *s, uint32_t tensor)
{
    return ((const uint32_t *)s->unit.ptr)[tensor];
}

static uint32_t tensors(const splitting *s)
{
    return heft_ix_tensors(&s->x);
}

static uint32_t files(const splitting *s)
{
    return s->cut.ends.len;
}

static uint32_t *allocate(splitting *s, size_t count)
{
    uint32_t *ids = heft_mem_resize(&s->x.mem, NULL, 0, (count + 1) * sizeof *ids);
    if (ids)
        memset(ids, 0, (count + 1) * sizeof *ids);
    return ids;
}

static void release(splitting *s, uint32_t *ids, size_t count)
{
    if (ids)
        heft_mem_resize(&s->x.mem, ids, (count + 1) * sizeof *ids, 0);
}

/* ---- what there is to split ---- */

/* The first tensor that shares all of its parts with this one, or the tensor itself.  same: by part, or NULL. */
static uint32_t tied_to(const heft_index *x, const uint32_t *same, uint32_t tensor)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, tensor);
    uint32_t other = tensor;
    for (uint32_t k = 0; same && k < row->part_count; k++) {
        uint32_t owner = heft_ix_owner(x, same[row->first_part + k]);
        if (k && owner != other)
            return tensor;
        other = owner;
    }
    return other;
}

/* *unit: one more than the number of the tensor's unit; 0: the unit is new. */
static heft_status add_unit(splitting *s, const heft_index *x, uint32_t tensor, uint32_t *unit)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, tensor);
    uint32_t *to = heft_vec_push(&s->x.mem, &s->unit, sizeof *to);
    if (!to)
        return no_memory(s->err);
    if (!*unit) {
        uint64_t *bytes = heft_vec_push(&s->x.mem, &s->bytes, sizeof *bytes);
        if (!bytes)
            return no_memory(s->err);
        *bytes = 0;
        for (uint32_t k = 0; k < row->part_count; k++)
            *bytes += heft_ix_part_row_at(x, row->first_part + k)->length;
        s->total += *bytes;
        *unit = s->bytes.len;
    }
    *to = *unit - 1;
    return HEFT_OK;
}

static heft_status add_tensor(splitting *s, const heft_index *x, uint32_t tensor)
{
    uint64_t *dims;
    uint32_t id, *source = heft_vec_push(&s->x.mem, &s->source, sizeof *source);
    heft_str name = heft_ix_copy(&s->x, heft_ix_name(x, tensor));
    if (!source || !name.ptr ||
        heft_ix_tensor(&s->x, name, heft_ix_row(x, tensor)->dtype, 0, &dims, &id))
        return no_memory(s->err);
    *source = heft_ix_find(&s->in->x, name);
    return *source != HEFT_NONE
               ? HEFT_OK
               : heft_error_plain(s->err, HEFT_E_UNSUPPORTED, "tensor %q: not the input's", name);
}

/* Parts that will be equal, as numbers of the parts of the plan. */
static heft_status note_equal(splitting *s, const heft_planner *p)
{
    if (!p->plan.same)
        return HEFT_OK;
    s->equal = allocate(s, s->in->x.parts.len);
    if (!s->equal)
        return no_memory(s->err);
    for (uint32_t t = 0; t < tensors(s); t++) {
        const heft_ix_tensor_row *row = heft_ix_row(&p->x, t);
        uint32_t source = ((const uint32_t *)s->source.ptr)[t];
        uint32_t first = heft_ix_row(&s->in->x, source)->first_part;
        for (uint32_t k = 0; k < row->part_count; k++)
            s->equal[first + k] = p->plan.same[row->first_part + k];
    }
    return HEFT_OK;
}

/* A target that stores equal parts once keeps tensors together that come from the same bytes, but not those that
 * only happen to be equal. */
static heft_status share_sources(splitting *s, heft_planner *p, uint32_t **same)
{
    if (!p->plan.same)
        return HEFT_OK;
    *same = heft_plan_alloc(&p->plan, p->x.parts.len * sizeof **same);
    if (!*same)
        return no_memory(s->err);
    for (uint32_t i = 0; i < p->x.parts.len; i++)
        (*same)[i] = i;
    return p->plan.ties(&p->plan, *same, false);
}

static heft_status collect(void *ctx, heft_planner *p, heft_error *err)
{
    splitting *s = ctx;
    uint32_t count = heft_ix_tensors(&p->x), *same = NULL, *unit = allocate(s, count);
    heft_status st = unit ? share_sources(s, p, &same) : no_memory(err);
    s->x.err = err;
    for (uint32_t i = 0; i < count && !st; i++) {
        st = add_tensor(s, &p->x, i);
        if (!st)
            st = add_unit(s, &p->x, i, &unit[tied_to(&p->x, same, i)]);
    }
    release(s, unit, count);
    return st ? st : note_equal(s, p);
}

/* Lists the tensors by unit. */
static heft_status list_members(splitting *s)
{
    uint32_t n = tensors(s);
    s->first_of = allocate(s, units(s));
    s->members = allocate(s, n);
    s->run = allocate(s, 2 * (size_t)n);
    if (!s->first_of || !s->members || !s->run)
        return no_memory(s->err);
    for (uint32_t t = 0; t < n; t++)
        s->first_of[unit_of(s, t)]++;
    for (uint32_t u = 0, at = 0; u <= units(s); u++) {
        at += s->first_of[u];
        s->first_of[u] = at;
    }
    for (uint32_t t = n; t-- > 0;) /* from the last of each unit to the first */
        s->members[--s->first_of[unit_of(s, t)]] = ((const uint32_t *)s->source.ptr)[t];
    return HEFT_OK;
}

/* Losses are said here, once for all files. */
static heft_status survey(splitting *s)
{
    heft_convert_options o = s->convert;
    heft_converting how = { .ctx = s, .planned = collect };
    o.dry_run = true;
    heft_write_options write = s->write;
    write.on_loss = s->given_write.on_loss;
    o.write = &write;
    o.planned_bytes = &s->planned;
    heft_status st = heft_convert_as(s->in, s->to, NULL, &o, &how, s->err);
    if (!st)
        st = heft_ix_seal(&s->x);
    return st ? st : list_members(s);
}

/* ---- runs ---- */

static bool is_below(const void *ctx, uint32_t a, uint32_t b)
{
    (void)ctx;
    return a < b;
}

/* Lists the tensors of units [first, end) in the order of the input. */
static uint32_t list_run(splitting *s, uint32_t first, uint32_t end)
{
    uint32_t from = s->first_of[first], count = s->first_of[end] - from;
    memcpy(s->run, s->members + from, count * sizeof *s->run);
    heft_sort(s->run, s->run + tensors(s), count, is_below, NULL);
    return count;
}

static uint32_t metadata_of(const splitting *s, heft_value out[HEFT_SET_VALUES], uint32_t file,
                            uint32_t count)
{
    const heft_sharding *how = s->to->sharding;
    return how->values ? how->values(out, file, count, tensors(s)) : 0;
}

typedef struct run {
    uint32_t first, end;  /* units */
    uint32_t file, files; /* it is one of so many */
} run;

/* take NULL: on trial. */
static heft_status convert_run(splitting *s, run r, heft_sink *take)
{
    heft_value values[HEFT_SET_VALUES];
    heft_convert_options o = s->convert;
    heft_converting how = { .own_metadata = s->to->sharding->values && r.file,
                            .only = s->run,
                            .equal = s->equal };
    how.only_count = list_run(s, r.first, r.end);
    o.dry_run = !take;
    o.set = values;
    o.set_count = metadata_of(s, values, r.file, r.files);
    o.planned_bytes = &s->planned;
    return heft_convert_as(s->in, s->to, take, &o, &how, s->err);
}

/* Numbers take the same room in all files: those of the first two stand for all. */
static heft_status plan_run(void *ctx, uint32_t first, uint32_t end, uint64_t *bytes)
{
    splitting *s = ctx;
    const heft_convert_options *o = &s->convert;
    if (o->progress && !o->progress(o->progress_ctx, 0, s->total))
        return heft_error_plain(s->err, HEFT_E_CANCELLED, "stopped");
    heft_status st = convert_run(s, (run){ first, end, first ? 1 : 0, 2 }, NULL);
    *bytes = s->planned;
    return st;
}

/* Says which tensors are larger than a file should be. */
static heft_status say_oversized(const splitting *s)
{
    const uint64_t *sizes = s->cut.sizes.ptr;
    const uint32_t *ends = s->cut.ends.ptr;
    const heft_write_options *o = &s->given_write;
    uint32_t count = 0;
    for (uint32_t i = 0; s->opt.max_bytes && i < files(s); i++) {
        heft_error text;
        if (sizes[i] <= s->opt.max_bytes)
            continue;
        count++;
        heft_error_plain(&text, HEFT_OK, "its file has %U bytes, %U at most were asked for",
                         sizes[i], s->opt.max_bytes);
        heft_str name = heft_ix_name(&s->in->x, s->members[s->first_of[ends[i] - 1]]);
        if (o->on_loss)
            o->on_loss(o->loss_ctx, o->strict ? HEFT_FAULT : HEFT_WARNING, "heft/shard-size", name,
                       text.message);
    }
    return count && o->strict
               ? heft_error_rule(
                     s->err,
                     heft_error_plain(s->err, HEFT_E_LOSSY, "%U %s larger than a file may be",
                                      (uint64_t)count, count == 1 ? "tensor is" : "tensors are"),
                     "heft/shard-size")
               : HEFT_OK;
}

static heft_status cut(splitting *s)
{
    uint32_t count = s->opt.count;
    if (count > units(s) && count > 1)
        return heft_error_plain(s->err, HEFT_E_ARGUMENT,
                                "%U files are asked for, but there are %U tensors%s",
                                (uint64_t)count, (uint64_t)units(s),
                                units(s) < tensors(s) ? " with bytes of their own" : "");
    s->cut = (heft_cut){ .mem = &s->x.mem,
                         .payload = s->bytes.ptr,
                         .units = units(s),
                         .max_bytes = s->opt.max_bytes,
                         .plan = plan_run,
                         .ctx = s,
                         .err = s->err };
    if (s->planned > s->total && units(s))
        s->cut.header_bytes = heft_div(s->planned - s->total, units(s));
    heft_status st = heft_cut_model(&s->cut, count);
    return st ? st : say_oversized(s);
}

/* ---- files ---- */

static heft_status name_of(const splitting *s, uint32_t i, char out[MOST_NAME + 1])
{
    heft_out name = { .buf = (uint8_t *)out, .cap = MOST_NAME };
    s->to->sharding->name(&name, heft_lit(s->opt.stem), i, files(s));
    if (name.st)
        return heft_error_plain(s->err, HEFT_E_ARGUMENT, "the names would have more than %U bytes",
                                (uint64_t)MOST_NAME);
    out[name.len] = '\0';
    return HEFT_OK;
}

static heft_status open_file(const splitting *s, uint32_t i, heft_sink **out)
{
    char name[MOST_NAME + 1];
    *out = NULL;
    heft_status st = name_of(s, i, name);
    return st ? st : s->opt.open(out, s->opt.ctx, name, s->err);
}

static bool progress(void *ctx, uint64_t done, uint64_t total)
{
    const splitting *s = ctx;
    return s->given.progress(s->given.progress_ctx, s->done + done, s->total ? s->total : total);
}

static run run_of(const splitting *s, uint32_t file)
{
    const uint32_t *ends = s->cut.ends.ptr;
    return (run){ file ? ends[file - 1] : 0, ends[file], file, files(s) };
}

static heft_status write_file(splitting *s, uint32_t i)
{
    run r = run_of(s, i);
    heft_sink *sink;
    heft_status st = open_file(s, i, &sink);
    if (!st && s->linked)
        sink = heft_linked_sink(s->linked, sink);
    if (!st)
        st = convert_run(s, r, sink);
    if (!st && s->linked)
        st = heft_linked_add(s->linked, s->planned, s->err);
    for (uint32_t u = r.first; u < r.end; u++)
        s->done += s->cut.payload[u];
    return st;
}

/* ---- the index as a text ---- */

static bool name_below(const void *ctx, uint32_t a, uint32_t b)
{
    return heft_str_order(heft_ix_name(ctx, a), heft_ix_name(ctx, b)) < 0;
}

typedef struct flushing {
    heft_sink *sink;
    heft_error *err;
} flushing;

static heft_status flush(void *ctx, uint64_t at, const void *data, size_t len)
{
    const flushing *f = ctx;
    return heft_sink_put(f->sink, at, data, len, f->err);
}

static heft_status put_index(const splitting *s, const heft_set *set, heft_sink *sink)
{
    const heft_allocator *al = s->in->host->allocator;
    flushing f = { sink, s->err };
    uint8_t *buf = al->resize(al->ctx, NULL, 0, INDEX_BUFFER, 64);
    heft_out o = { .buf = buf, .cap = INDEX_BUFFER, .flush = flush, .ctx = &f };
    if (!buf)
        return no_memory(s->err);
    s->to->sharding->index(&o, set);
    heft_status st = heft_out_flush(&o);
    al->resize(al->ctx, buf, INDEX_BUFFER, 0, 64);
    return st;
}

static heft_status write_text(splitting *s)
{
    heft_set set = { heft_lit(s->opt.stem), files(s), &s->x, NULL, NULL, s->total };
    size_t n = tensors(s), bytes = (3 * n + units(s) + 1) * sizeof(uint32_t);
    uint32_t *ids = heft_mem_resize(&s->x.mem, NULL, 0, bytes);
    heft_sink *sink = NULL;
    if (!ids)
        return no_memory(s->err);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = i;
    heft_sort(ids, ids + n, (uint32_t)n, name_below, &s->x);
    for (uint32_t f = 0; f < files(s); f++) {
        run r = run_of(s, f);
        for (uint32_t u = r.first; u < r.end; u++)
            ids[3 * n + u] = f;
    }
    for (uint32_t t = 0; t < n; t++)
        ids[2 * n + t] = ids[3 * n + unit_of(s, t)];
    set.order = ids;
    set.file = ids + 2 * n;
    heft_status st = open_file(s, files(s), &sink);
    if (!st)
        st = put_index(s, &set, sink);
    heft_mem_resize(&s->x.mem, ids, bytes, 0);
    if (!st)
        return sink->ops->finish(sink, s->err);
    heft_sink_discard(sink);
    return st;
}

/* ---- the index as a file that refers to the others ---- */

static heft_status write_links(splitting *s)
{
    const heft_file *joined;
    heft_convert_options o = s->convert;
    heft_converting how = { .link_count = files(s) };
    heft_sink *sink;
    heft_status st = heft_linked_join(s->linked, &joined, &how.links, s->err);
    if (!st)
        st = open_file(s, files(s), &sink);
    if (!st)
        sink = heft_linked_sink(s->linked, sink);
    o.no_verify = true; /* this moment, it was written */
    o.progress = NULL;
    if (!st)
        st = heft_convert_as(joined, s->to, sink, &o, &how, s->err);
    return st ? st : heft_linked_finish(s->linked, s->err);
}

/* ---- all of it ---- */

static heft_status write_all(splitting *s)
{
    const heft_sharding *how = s->to->sharding;
    heft_status st = HEFT_OK;
    if (how->is_linked)
        st = heft_linked_begin(&s->linked, s->in->host, s->to, files(s) + 1, s->err);
    for (uint32_t i = 0; i < files(s) && !st; i++)
        st = write_file(s, i);
    if (!st && how->is_linked)
        st = write_links(s);
    heft_linked_free(s->linked);
    return st || !how->index ? st : write_text(s);
}

/* Checksums of more than a part would be computed anew for every file; so would those of the header, which are
 * left to the copying only where it checks digests of parts. */
static heft_status check_input(splitting *s)
{
    const heft_claim *claims = s->in->x.claims.ptr;
    bool over_all = false;
    for (uint32_t i = 0; i < s->in->x.claims.len; i++)
        over_all = over_all || !claims[i].at_open || !s->in->x.digests.len;
    if (!over_all || s->convert.no_verify || files(s) < 2)
        return HEFT_OK;
    s->convert.no_verify = true;
    return heft_check_all(s->in, s->err);
}

static heft_status read_options(splitting *s, const heft_split_options *opt)
{
    heft_status st = heft_sized_copy(&s->opt, sizeof s->opt, opt, s->err);
    if (!st)
        st = heft_sized_copy(&s->given, sizeof s->given, s->opt.convert, s->err);
    return st ? st
              : heft_sized_copy(&s->given_write, sizeof s->given_write, s->given.write, s->err);
}

static heft_status check_options(const splitting *s)
{
    heft_str stem = heft_lit(s->opt.stem ? s->opt.stem : "");
    bool is_name = stem.len;
    for (size_t i = 0; i < stem.len; i++)
        is_name = is_name && stem.ptr[i] != '/' && stem.ptr[i] != '\\';
    if (!heft_format_can_split(s->to))
        return heft_error_plain(s->err, HEFT_E_UNSUPPORTED,
                                "%s is not split: its models come in "
                                "one file",
                                s->to ? s->to->name : "this format");
    if (!is_name || stem.ptr[0] == '.' || heft_utf8_valid(stem.ptr, stem.len) != stem.len)
        return heft_error_plain(s->err, HEFT_E_ARGUMENT, "%q is no beginning of a file's name",
                                stem);
    if (!s->opt.max_bytes && !s->opt.count)
        return heft_error_plain(s->err, HEFT_E_ARGUMENT, "neither size nor count of files is said");
    if (!s->opt.open)
        return heft_error_plain(s->err, HEFT_E_ARGUMENT, "nothing says where the files go");
    return s->in->lacking.status ? heft_file_is_complete(s->in, s->err) : HEFT_OK;
}

static void prepare(splitting *s)
{
    const heft_convert_options *given = &s->given;
    s->write = s->given_write;
    s->write.on_loss = NULL; /* survey() has said it */
    s->convert.write = &s->write;
    s->convert.no_verify = given->no_verify;
    s->convert.vocab = given->vocab;
    s->convert.storage = given->storage;
    s->convert.ctx = given->ctx;
    if (s->to->sharding->version)
        s->write.version = s->to->sharding->version;
    if (given->progress) {
        s->convert.progress = progress;
        s->convert.progress_ctx = s;
    }
    heft_limits limits = { sizeof limits, 0, UINT64_MAX, UINT32_MAX - 1, 0 };
    heft_host_begin(s->in->host, &s->x, &limits);
}

heft_status heft_file_split(const heft_file *in, const heft_format *to,
                            const heft_split_options *opt, heft_error *err)
{
    heft_error own;
    splitting s = { .in = in,
                    .to = to,
                    .opt = HEFT_SPLIT_OPTIONS_INIT,
                    .given = HEFT_CONVERT_OPTIONS_INIT,
                    .given_write = HEFT_WRITE_OPTIONS_INIT,
                    .convert = HEFT_CONVERT_OPTIONS_INIT,
                    .err = heft_error_begin(err, &own) };
    heft_status st = read_options(&s, opt);
    if (!st)
        st = check_options(&s);
    if (st)
        return st;
    prepare(&s);
    st = survey(&s);
    if (!st)
        st = cut(&s);
    if (!st)
        st = check_input(&s);
    if (!st)
        st = write_all(&s);
    heft_cut_free(&s.cut);
    release(&s, s.first_of, units(&s));
    release(&s, s.members, tensors(&s));
    release(&s, s.run, 2 * (size_t)tensors(&s));
    release(&s, s.equal, in->x.parts.len);
    heft_vec_free(&s.x.mem, &s.source, sizeof(uint32_t));
    heft_vec_free(&s.x.mem, &s.unit, sizeof(uint32_t));
    heft_vec_free(&s.x.mem, &s.bytes, sizeof(uint64_t));
    heft_ix_free(&s.x);
    return heft_error_end(s.err, st);
}

bool heft_format_can_split(const heft_format *f)
{
    return f && f->sharding && f->plan;
}
