/* edit_added.c - append tensors to a file.
 *
 * The new tensors are first converted to a separate file of the same format and version, so that
 * all errors of a conversion appear there.  The edit planner then plans the file again with the
 * tensors of both files: payloads stay as stored, header and index are written anew. */
#include "base/sized.h"
#include "core/edit/edit.h"
#include "core/read/decode.h"
#include "core/shards/shard_join.h"
#include "core/write/convert/convert.h"

/* ---- the file joined with the added tensors ---- */

typedef struct file_view { /* a second view of the bytes of an open file */
    heft_source base;
    const heft_file *f;
    const heft_allocator *al;
} file_view;

static heft_status read_view(heft_source *s, uint64_t at, void *buf, size_t len, heft_error *err)
{
    return heft_file_read_stored(((const file_view *)s)->f, at, buf, len, err);
}

static const void *map_view(heft_source *s, uint64_t at, uint64_t len)
{
    return heft_file_map(((const file_view *)s)->f, at, len);
}

static heft_status view_state(heft_source *s, heft_error *err)
{
    heft_source *inner = ((const file_view *)s)->f->source;
    return inner && inner->ops->check ? inner->ops->check(inner, err) : HEFT_OK;
}

static void enter_view(heft_source *s)
{
    heft_file_enter(((const file_view *)s)->f);
}

static void leave_view(heft_source *s)
{
    heft_file_disarm(((const file_view *)s)->f);
}

static void close_view(heft_source *s)
{
    const heft_allocator *al = ((const file_view *)s)->al;
    heft_free(al, s, sizeof(file_view), 16);
}

static const heft_source_ops view_ops = {
    .size = sizeof(heft_source_ops),
    .read = read_view,
    .map = map_view,
    .check = view_state,
    .begin_access = enter_view,
    .end_access = leave_view,
    .close = close_view,
};

/* Open f a second time. */
static heft_status open_view(heft_file **out, const heft_file *f, heft_error *err)
{
    const heft_allocator *al = f->host->allocator;
    heft_limits limits = f->x.limits;
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    file_view *s = heft_alloc(al, sizeof *s, 16);
    *out = NULL;
    if (!s)
        return heft_error_no_memory(err, "to append tensors");
    *s = (file_view){ { &view_ops, heft_file_size(f) }, f, al };
    limits.memory = UINT64_MAX;
    o.format = f->format;
    o.host = f->host;
    o.limits = &limits;
    return heft_file_open_source(out, &s->base, &o, err);
}

/* Open f a second time and join the tensors of x, which lie in a file of `bytes` bytes; source:
 * that file, or NULL. */
static heft_status extend(heft_file **out, const heft_file *f, const heft_index *x, uint64_t bytes,
                          heft_source *source, heft_error *err)
{
    HEFT_TRY(open_view(out, f, err));
    heft_status st = heft_join_added(*out, x, bytes, source, err);
    if (st) {
        heft_file_close(*out);
        *out = NULL;
    }
    return st;
}

/* ---- selection of tensors ---- */

typedef struct append_job {
    const heft_file *f, *from;
    const heft_append_settings *opt;
    uint32_t *chosen, count; /* tensors of `from` to append, ascending */
    uint32_t appended;       /* number of tensors that the conversion keeps */
    uint64_t planned;        /* size of the extended file; 0: not known */
    heft_arena *arena;
    heft_error *err;
} append_job;

static heft_status choose_tensors(append_job *a)
{
    const heft_convert_options *o = &a->opt->convert;
    uint32_t all = heft_tensor_count(a->from);
    a->chosen = heft_arena_alloc(a->arena, ((size_t)all + 1) * sizeof *a->chosen, 16);
    if (!a->chosen)
        return heft_error_no_memory(a->err, "to append tensors");
    for (uint32_t i = 0; i < all; i++) {
        heft_tensor t = heft_tensor_at(a->from, i);
        if (o->keep && !o->keep(o->ctx, &t))
            continue;
        heft_str name = o->rename ? o->rename(o->ctx, &t) : t.name;
        if (a->opt->append.replaces || a->opt->append.duplicates == HEFT_DUPLICATES_REFUSE ||
            heft_ix_find(&a->f->x, name) == HEFT_NONE)
            a->chosen[a->count++] = i;
    }
    return HEFT_OK;
}

static heft_status check_new(const heft_index *x, const heft_file *f, heft_error *err)
{
    for (uint32_t i = 0; i < heft_ix_tensors(x); i++)
        if (heft_ix_find(&f->x, heft_ix_name(x, i)) != HEFT_NONE)
            return heft_error_plain(err, HEFT_E_ARGUMENT,
                                    "tensor %q already exists, and appending replaces nothing",
                                    heft_ix_name(x, i));
    return HEFT_OK;
}

/* The size of the edited file is known if no tensor changes its size. */
static heft_status check_replaced(append_job *a, const heft_index *x)
{
    bool bytes_differ;
    HEFT_TRY(heft_edit_check_tensors(&bytes_differ, a->f, x, a->opt->append.may_differ, a->err));
    a->planned = bytes_differ ? 0 : heft_file_size(a->f);
    return HEFT_OK;
}

/* ---- contents that are not appended ---- */

static void report_left_metadata(const append_job *a)
{
    const heft_write_options *w = &a->opt->write;
    const heft_index *x = &a->from->x;
    heft_error text;
    uint64_t values = 0, parts = x->model_parts.len;
    for (uint32_t i = 0; i < x->values.len; i = heft_ix_value_next(x, i))
        values += !heft_ix_is_shard_key(x, heft_ix_value(x, i)->key);
    if (!w->on_loss || !(values + parts))
        return;
    heft_error_plain(&text, HEFT_OK,
                     "only tensors are %s: %U metadata and %U model-level parts of their file are "
                     "left out",
                     a->opt->append.replaces ? "replaced" : "appended", values, parts);
    w->on_loss(w->ctx, HEFT_NOTE, "heft/append", (heft_str){ NULL, 0 }, text.message);
}

static void report_unless_note(void *ctx, heft_severity s, const char *rule, heft_str tensor,
                               const char *text)
{
    const heft_write_options *w = ctx;
    if (s != HEFT_NOTE && w->on_loss)
        w->on_loss(w->ctx, s, rule, tensor, text);
}

/* Suppress notes; the conversion has already reported them. */
static heft_edit_job init_job(const heft_file *in, const heft_file *original,
                              const heft_append_settings *o, heft_error *err)
{
    heft_edit_job g = { .in = in,
                        .original = original,
                        .opt = HEFT_EDIT_OPTIONS_INIT,
                        .align = o->write.align,
                        .err = err };
    g.opt.host = o->write.host;
    g.opt.on_loss = report_unless_note;
    g.opt.ctx = (void *)(uintptr_t)&o->write;
    return g;
}

/* ---- conversion to a separate file ---- */

/* Plan the extended file, to report obstacles and compute the size. */
static heft_status plan_extended(append_job *a, const heft_planner *p)
{
    heft_file *in;
    heft_edit *e = NULL;
    /* upper bound: no data of the file is read */
    uint64_t bytes = UINT64_C(1) << HEFT_GLOBAL_OFFSET_BITS;
    HEFT_TRY(extend(&in, a->f, &p->x, bytes, NULL, a->err));
    uint64_t at = 0;
    /* Compressed parts have no offsets yet; consecutive offsets with the sizes of raw parts
     * suffice here. */
    for (uint32_t i = a->f->x.parts.len; p->plan.appended && i < in->x.parts.len; i++) {
        heft_ix_part_row *part = heft_ix_part_row_at(&in->x, i);
        part->offset = heft_global_offset(1, at);
        at += part->stored;
    }
    heft_edit_job g = init_job(in, a->f, a->opt, a->err);
    g.adds = true;
    g.size_only = true;
    heft_status st = heft_edit_plan_job(&e, &g);
    if (!st)
        a->planned = p->plan.appended || p->digest_of ? 0 : heft_edit_size(e);
    heft_edit_close(e);
    heft_file_close(in);
    return st;
}

/* Return the alignment of the file, if the format records the alignment only through the offsets
 * of parts. */
static uint32_t choose_alignment(const heft_file *f, uint32_t requested)
{
    bool is_inherited = !requested && f->format->caps & HEFT_CAN_APPEND;
    return is_inherited ? (uint32_t)heft_file_alignment(f) : requested;
}

static heft_status check(const append_job *a)
{
    if (a->opt->append.duplicates == HEFT_DUPLICATES_LAST && !a->opt->append.replaces)
        return heft_error_plain(a->err, HEFT_E_ARGUMENT,
                                "appending does not replace existing tensors");
    HEFT_TRY(heft_edit_check_file(a->f, a->err));
    const heft_format *format = a->f->format;
    if (*format->versions && !heft_format_writes(format, a->f->x.version))
        return heft_error_plain(
            a->err, HEFT_E_UNSUPPORTED,
            "%s %q can be read, but not written: nothing can be appended (convert it)",
            format->name, a->f->x.version);
    return heft_check_lengths(a->from, a->err);
}

static heft_status convert_tensors(append_job *a, heft_sink *take)
{
    heft_convert_options o = a->opt->convert;
    heft_write_options write = a->opt->write;
    heft_conversion_scope scope = { .only = a->chosen,
                                    .only_count = a->count,
                                    .metadata_from = a->f };
    /* too large for the stack, which also holds the trial edit */
    heft_conversion *c = heft_arena_alloc(a->arena, sizeof *c, 16);
    heft_status st = c ? heft_edit_version(&write.version, a->f, a->arena, a->err)
                       : heft_error_no_memory(a->err, "to append tensors");
    o.write = &write;
    o.set = NULL;
    o.set_count = 0;
    o.config = (heft_str){ NULL, 0 };
    o.vocab = NULL;
    o.planned_bytes = NULL;
    if (st) {
        heft_sink_discard(take);
        return st;
    }
    st = heft_conversion_plan(c, a->from, a->f->format, &o, &scope, a->err);
    if (!st) {
        a->appended = heft_ix_tensors(&c->p.x);
        st = a->opt->append.replaces ? check_replaced(a, &c->p.x)
                                     : check_new(&c->p.x, a->f, a->err);
    }
    if (!st && o.dry_run && !a->opt->append.replaces)
        st = plan_extended(a, &c->p);
    if (!st)
        st = heft_conversion_write(c, take);
    return heft_conversion_end(c, take, st);
}

static heft_status run(append_job *a, heft_sink *take)
{
    heft_status st = check(a);
    heft_file_enter(a->from);
    if (!st)
        st = choose_tensors(a);
    heft_status left = heft_file_leave(a->from, a->err);
    st = st ? st : left;
    if (st || !a->count) {
        heft_sink_discard(take);
        return st;
    }
    report_left_metadata(a);
    return convert_tensors(a, take);
}

heft_status heft_append_convert(uint32_t *tensors, const heft_file *f, const heft_file *from,
                                heft_sink *take, const heft_append_options *opt, heft_error *err)
{
    heft_error inner;
    heft_append_settings o;
    heft_memory mem = { f->host->allocator, UINT64_MAX, 0 };
    heft_arena arena = { .mem = &mem };
    err = heft_error_begin(err, &inner);
    append_job a = { .f = f, .from = from, .opt = &o, .arena = &arena, .err = err };
    *tensors = 0;
    heft_status st = heft_append_read_options(&o, opt, err);
    if (st) {
        heft_sink_discard(take);
        return st;
    }
    o.write.align = choose_alignment(f, o.write.align);
    st = run(&a, take);
    heft_arena_free(&arena);
    *tensors = st ? 0 : a.appended;
    if (o.convert.planned_bytes)
        *o.convert.planned_bytes = a.appended ? a.planned : heft_file_size(f);
    heft_conversion_blame(err, heft_error_end(err, st));
    return heft_error_about(err, st, HEFT_ABOUT_SOURCE);
}

/* ---- the extended file ---- */

static heft_status plan_extension(heft_edit **out, const heft_file *f, const heft_file *added,
                                  const heft_append_settings *o, heft_error *err)
{
    heft_file *in;
    HEFT_TRY(check_new(&added->x, f, err));
    HEFT_TRY(extend(&in, f, &added->x, heft_file_size(added), added->source, err));
    heft_edit_job g = init_job(in, f, o, err);
    g.adds = true;
    heft_status st = heft_edit_plan_job(out, &g);
    heft_file_close(in);
    return st;
}

static heft_status plan_replacing(heft_edit **out, const heft_file *f, const heft_file *added,
                                  const heft_append_settings *o, heft_error *err)
{
    heft_memory mem = { f->host->allocator, UINT64_MAX, 0 };
    heft_edit_tensors e = { .f = f, .added = added, .mem = &mem, .err = err };
    heft_file *in;
    bool bytes_differ;
    HEFT_TRY(heft_edit_check_tensors(&bytes_differ, f, &added->x, o->append.may_differ, err));
    HEFT_TRY(open_view(&in, f, err));
    heft_status st = heft_edit_put_tensors(&e, in);
    heft_edit_job g = init_job(in, f, o, err);
    g.swaps = e.swaps;
    g.swap_count = e.swap_count;
    g.places_each = e.places_each;
    if (!st)
        st = heft_edit_plan_job(out, &g);
    heft_edit_tensors_free(&e);
    heft_file_close(in);
    return st;
}

heft_status heft_append_plan(heft_edit **out, const heft_file *f, const heft_file *added,
                             const heft_append_options *opt, heft_error *err)
{
    heft_error inner;
    heft_append_settings o;
    err = heft_error_begin(err, &inner);
    *out = NULL;
    HEFT_TRY(heft_append_read_options(&o, opt, err));
    o.write.align = choose_alignment(f, o.write.align);
    if (added->format != f->format || added->x.shards.len || !added->source)
        return heft_error_end(
            err, heft_error_plain(err, HEFT_E_ARGUMENT,
                                  "the added tensors are not in a file of the same format"));
    heft_status st = heft_edit_check_file(f, err);
    if (!st)
        st = o.append.replaces ? plan_replacing(out, f, added, &o, err)
                               : plan_extension(out, f, added, &o, err);
    return heft_error_end(err, st);
}
