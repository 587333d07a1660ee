/* split.c - one model into several files: the tensors in their order are cut into runs, each run is a
 * conversion of its own, and an index says what is where.  Tensors that come from the same bytes and that the
 * target can keep in one place are one unit, which is where the first of them is, and is not cut.
 *
 * Nothing is known of a file's size until it is planned, so a run is planned, and made shorter until it fits. */
#include "core/check/watch.h"
#include "core/read/join.h"
#include "core/write/convert.h"
#include "core/write/linked.h"

#include "base/sort.h"

enum { MOST_FILES = 4096, MOST_NAME = 255, INDEX_BUFFER = 64 << 10 };

typedef struct splitting {
    const heft_file *in;
    const heft_format *to;
    heft_split_options opt;
    heft_convert_options convert; /* of every file */
    heft_index x;                 /* the tensors that will be written, by name */
    heft_vec unit;                /* uint32_t, by tensor */
    heft_vec bytes;               /* uint64_t, by unit */
    heft_vec ends;                /* uint32_t, by file: behind its last unit */
    uint64_t total;
    uint32_t first, end; /* units of the run that is being converted */
    uint32_t at;         /* the tensor where that has come */
    uint64_t done;       /* bytes of the files before */
    uint64_t planned;
    heft_linked *linked; /* the files so far, when the index refers to them */
    heft_error *err;
} splitting;

static heft_status no_memory(heft_error *err)
{
    return heft_error_plain(err, HEFT_E_NOMEM, "no memory to split a model");
}

static uint64_t bytes_of(const splitting *s, uint32_t unit)
{
    return ((const uint64_t *)s->bytes.ptr)[unit];
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

/* ---- what is there to split ---- */

/* The tensor whose bytes are those of this one, every part; perhaps this one. */
static uint32_t tied_to(const heft_planner *p, uint32_t tensor)
{
    const heft_ix_tensor_row *row = heft_ix_row(&p->x, tensor);
    uint32_t other = tensor;
    for (uint32_t k = 0; p->plan.same && k < row->part_count; k++) {
        uint32_t owner = heft_ix_owner(&p->x, p->plan.same[row->first_part + k]);
        if (k && owner != other)
            return tensor;
        other = owner;
    }
    return other;
}

/* units[t], once it is known, is one more than the number. */
static heft_status add_unit(splitting *s, const heft_planner *p, uint32_t tensor, uint32_t *units)
{
    const heft_ix_tensor_row *row = heft_ix_row(&p->x, tensor);
    uint32_t *unit = &units[tied_to(p, tensor)];
    uint32_t *to = heft_vec_push(&s->x.mem, &s->unit, sizeof *to);
    if (!to)
        return no_memory(s->err);
    if (!*unit) {
        uint64_t *bytes = heft_vec_push(&s->x.mem, &s->bytes, sizeof *bytes);
        if (!bytes)
            return no_memory(s->err);
        *bytes = 0;
        for (uint32_t k = 0; k < row->part_count; k++)
            *bytes += heft_ix_part_row_at(&p->x, row->first_part + k)->length;
        s->total += *bytes;
        *unit = s->bytes.len;
    }
    *to = *unit - 1;
    return HEFT_OK;
}

static heft_status collect(void *ctx, const heft_planner *p, heft_error *err)
{
    splitting *s = ctx;
    size_t room = ((size_t)heft_ix_tensors(&p->x) + 1) * sizeof(uint32_t);
    uint32_t id, *of = heft_mem_resize(&s->x.mem, NULL, 0, room);
    heft_status st = of ? HEFT_OK : no_memory(err);
    uint64_t *dims;
    if (of)
        memset(of, 0, room);
    s->x.err = err;
    for (uint32_t i = 0; i < heft_ix_tensors(&p->x) && !st; i++) {
        heft_str name = heft_ix_copy(&s->x, heft_ix_name(&p->x, i));
        if (!name.ptr || heft_ix_tensor(&s->x, name, heft_ix_row(&p->x, i)->dtype, 0, &dims, &id))
            st = no_memory(err);
        else
            st = add_unit(s, p, i, of);
    }
    if (of)
        heft_mem_resize(&s->x.mem, of, room, 0);
    return st;
}

/* Losses are said here, once for all files. */
static heft_status survey(splitting *s)
{
    heft_convert_options o = s->convert;
    heft_converting how = { .ctx = s, .planned = collect, .no_contents = true };
    o.dry_run = true;
    o.write.on_loss = s->opt.convert.write.on_loss;
    o.write.loss_ctx = s->opt.convert.write.loss_ctx;
    heft_status st = heft_convert_as(s->in, s->to, NULL, &o, &how, s->err);
    if (!st)
        st = heft_ix_seal(&s->x);
    return st;
}

/* ---- runs ---- */

/* Asked about every tensor in turn, those that are left out among them. */
static bool is_in_run(void *ctx, const heft_tensor *t)
{
    splitting *s = ctx;
    if (s->at == tensors(s) || !heft_str_eq(heft_ix_name(&s->x, s->at), t->name))
        return false;
    uint32_t unit = unit_of(s, s->at++);
    return unit >= s->first && unit < s->end;
}

static uint32_t metadata_of(const splitting *s, heft_value out[HEFT_SET_VALUES], uint32_t file,
                            uint32_t files)
{
    const heft_sharding *how = s->to->sharding;
    return how->values ? how->values(out, file, files, tensors(s)) : 0;
}

/* The run as file number `file` of so many. */
static heft_status convert_run(splitting *s, uint32_t file, uint32_t files, heft_sink *take,
                               bool is_trial)
{
    heft_value values[HEFT_SET_VALUES];
    heft_convert_options o = s->convert;
    heft_converting how = { .own_metadata = s->to->sharding->values && file,
                            .no_contents = is_trial };
    s->at = 0;
    o.keep = is_in_run;
    o.ctx = s;
    o.dry_run = is_trial;
    o.set = values;
    o.set_count = metadata_of(s, values, file, files);
    o.planned_bytes = &s->planned;
    return heft_convert_as(s->in, s->to, take, &o, &how, s->err);
}

static heft_status add_end(splitting *s, uint32_t end)
{
    uint32_t *to = heft_vec_push(&s->x.mem, &s->ends, sizeof *to);
    if (!to)
        return no_memory(s->err);
    if (s->ends.len > MOST_FILES)
        return heft_error_plain(s->err, HEFT_E_LIMIT, "the model would be in more than %U files",
                                (uint64_t)MOST_FILES);
    *to = end;
    return HEFT_OK;
}

/* As many units from `first` on as have at most so many bytes, one at least. */
static uint32_t take_bytes(const splitting *s, uint32_t first, uint64_t most)
{
    uint32_t end = first;
    uint64_t sum = 0;
    while (end < units(s) && (end == first || bytes_of(s, end) <= most - sum)) {
        sum += bytes_of(s, end);
        end++;
        if (sum > most)
            break;
    }
    return end;
}

/* Takes units away whose bytes are `over` together, but for the first. */
static void shorten(splitting *s, uint64_t over)
{
    uint64_t gone = 0;
    while (s->end > s->first + 1 && gone < over)
        gone += bytes_of(s, --s->end);
}

static heft_status cut_by_size(splitting *s)
{
    heft_status st = HEFT_OK;
    for (s->first = 0; !st && s->first < units(s); s->first = s->end) {
        s->end = take_bytes(s, s->first, s->opt.max_bytes);
        bool fits = false;
        while (!st && !fits) {
            /* numbers take the same room in all files: those of the first two stand for all */
            st = convert_run(s, s->first ? 1 : 0, 2, NULL, true);
            fits = s->planned <= s->opt.max_bytes || s->end == s->first + 1;
            if (!st && !fits)
                shorten(s, s->planned - s->opt.max_bytes);
        }
        if (!st)
            st = add_end(s, s->end);
    }
    return st;
}

/* Files that runs of at most so many bytes make. */
static uint32_t files_of(const splitting *s, uint64_t most)
{
    uint32_t files = 0;
    for (uint32_t at = 0; at < units(s); files++)
        at = take_bytes(s, at, most);
    return files;
}

/* The least size of which so many files are enough; then each file has a unit at least. */
static heft_status cut_by_count(splitting *s, uint32_t count)
{
    uint64_t low = 0, high = s->total;
    while (low < high) {
        uint64_t mid = low + (high - low) / 2;
        if (files_of(s, mid) <= count)
            high = mid;
        else
            low = mid + 1;
    }
    heft_status st = HEFT_OK;
    s->ends.len = 0;
    for (uint32_t at = 0; at < units(s) && !st; count--) {
        uint32_t end = take_bytes(s, at, low), left = units(s) - (count - 1);
        at = end < left ? end : left;
        st = add_end(s, at);
    }
    return st;
}

static heft_status cut(splitting *s)
{
    uint32_t count = s->opt.count;
    heft_status st = HEFT_OK;
    if (count > units(s) && count > 1)
        return heft_error_plain(s->err, HEFT_E_ARGUMENT,
                                "%U files are asked for, but there are %U tensors%s",
                                (uint64_t)count, (uint64_t)units(s),
                                units(s) < tensors(s) ? " with bytes of their own" : "");
    if (s->opt.max_bytes)
        st = cut_by_size(s);
    if (!st && s->ends.len < count)
        st = cut_by_count(s, count);
    if (!st && !s->ends.len) /* a model without tensors is a file, too */
        st = add_end(s, units(s));
    return st;
}

/* ---- files ---- */

static heft_status name_of(const splitting *s, uint32_t i, char out[MOST_NAME + 1])
{
    heft_out name = { .buf = (uint8_t *)out, .cap = MOST_NAME };
    s->to->sharding->name(&name, heft_lit(s->opt.stem), i, s->ends.len);
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
    (void)total;
    return s->opt.convert.progress(s->opt.convert.progress_ctx, s->done + done, s->total);
}

static void select_run(splitting *s, uint32_t file)
{
    const uint32_t *ends = s->ends.ptr;
    s->first = file ? ends[file - 1] : 0;
    s->end = ends[file];
}

static heft_status write_file(splitting *s, uint32_t i)
{
    heft_sink *sink;
    heft_status st = open_file(s, i, &sink);
    select_run(s, i);
    if (!st && s->linked)
        sink = heft_linked_sink(s->linked, sink);
    if (!st)
        st = convert_run(s, i, s->ends.len, sink, false);
    if (!st && s->linked)
        st = heft_linked_add(s->linked, s->planned, s->err);
    for (uint32_t u = s->first; u < s->end; u++)
        s->done += bytes_of(s, u);
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
    heft_set set = { heft_lit(s->opt.stem), s->ends.len, &s->x, NULL, NULL, s->total };
    size_t n = tensors(s), bytes = (3 * n + units(s) + 1) * sizeof(uint32_t);
    uint32_t *ids = heft_mem_resize(&s->x.mem, NULL, 0, bytes);
    heft_sink *sink = NULL;
    if (!ids)
        return no_memory(s->err);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = i;
    heft_sort(ids, ids + n, (uint32_t)n, name_below, &s->x);
    for (uint32_t f = 0; f < s->ends.len; f++) {
        select_run(s, f);
        for (uint32_t u = s->first; u < s->end; u++)
            ids[3 * n + u] = f;
    }
    for (uint32_t t = 0; t < n; t++)
        ids[2 * n + t] = ids[3 * n + unit_of(s, t)];
    set.order = ids;
    set.file = ids + 2 * n;
    heft_status st = open_file(s, s->ends.len, &sink);
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
    heft_converting how = { .link_count = s->ends.len };
    heft_sink *sink;
    heft_status st = heft_linked_join(s->linked, &joined, &how.links, s->err);
    if (!st)
        st = open_file(s, s->ends.len, &sink);
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
        st = heft_linked_begin(&s->linked, s->in->host, s->to, s->ends.len + 1, s->err);
    for (uint32_t i = 0; i < s->ends.len && !st; i++)
        st = write_file(s, i);
    if (!st && how->is_linked)
        st = write_links(s);
    heft_linked_free(s->linked);
    return st || !how->index ? st : write_text(s);
}

/* Checksums of more than a part would be computed anew for every file. */
static heft_status check_input(splitting *s)
{
    const heft_claim *claims = s->in->x.claims.ptr;
    bool over_all = false;
    for (uint32_t i = 0; i < s->in->x.claims.len; i++)
        over_all = over_all || !claims[i].at_open;
    if (!over_all || s->convert.no_verify || s->ends.len < 2)
        return HEFT_OK;
    s->convert.no_verify = true;
    return heft_check_all(s->in, s->err);
}

static heft_status check_options(const splitting *s)
{
    heft_str stem = heft_lit(s->opt.stem ? s->opt.stem : "");
    bool is_name = stem.len;
    for (size_t i = 0; i < stem.len; i++)
        is_name = is_name && stem.ptr[i] != '/' && stem.ptr[i] != '\\';
    if (!heft_can_split(s->to))
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
    return s->in->lacking.status ? heft_is_whole(s->in, s->err) : HEFT_OK;
}

static void prepare(splitting *s)
{
    const heft_convert_options *given = &s->opt.convert;
    s->convert = (heft_convert_options)HEFT_CONVERT_OPTIONS_INIT;
    s->convert.write = given->write;
    s->convert.write.on_loss = NULL; /* survey() has said it */
    s->convert.no_verify = given->no_verify;
    s->convert.vocab = given->vocab;
    if (s->to->sharding->version)
        s->convert.write.version = s->to->sharding->version;
    if (given->progress) {
        s->convert.progress = progress;
        s->convert.progress_ctx = s;
    }
    heft_limits limits = { 0, UINT64_MAX, UINT32_MAX - 1, 0 };
    heft_host_begin(s->in->host, &s->x, &limits);
}

heft_status heft_split(const heft_file *in, const heft_format *to, const heft_split_options *opt,
                       heft_error *err)
{
    heft_error own;
    splitting s = {
        .in = in, .to = to, .opt = HEFT_SPLIT_OPTIONS_INIT, .err = heft_error_begin(err, &own)
    };
    if (opt)
        memcpy(&s.opt, opt, opt->size < sizeof s.opt ? opt->size : sizeof s.opt);
    heft_status st = check_options(&s);
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
    heft_vec_free(&s.x.mem, &s.unit, sizeof(uint32_t));
    heft_vec_free(&s.x.mem, &s.bytes, sizeof(uint64_t));
    heft_vec_free(&s.x.mem, &s.ends, sizeof(uint32_t));
    heft_ix_free(&s.x);
    return heft_error_end(s.err, st);
}

bool heft_can_split(const heft_format *f)
{
    return f && f->sharding && f->plan;
}
