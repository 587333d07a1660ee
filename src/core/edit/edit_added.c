/* edit_added.c - tensors behind those of a file.
 *
 * The new tensors are converted first, into a file of their own in the same format and generation; whatever can go
 * wrong in a conversion goes wrong here.  The edit planner then plans the file again with the tensors of both files:
 * payloads stay as they are stored, and header and index are written anew. */
#include "core/edit/edit.h"
#include "core/read/decode.h"
#include "core/shards/shard_join.h"
#include "core/write/convert.h"

/* ---- a file and what is added to it, as one ---- */

typedef struct lent { /* the bytes of an open file, once more */
    heft_source base;
    const heft_file *f;
    const heft_allocator *al;
} lent;

static heft_status read_lent(heft_source *s, uint64_t at, void *buf, size_t len, heft_error *err)
{
    return heft_file_read_stored(((const lent *)s)->f, at, buf, len, err);
}

static const void *lend_lent(heft_source *s, uint64_t at, uint64_t len)
{
    return heft_file_map(((const lent *)s)->f, at, len);
}

static heft_status lent_state(heft_source *s, heft_error *err)
{
    heft_source *own = ((const lent *)s)->f->source;
    return own && own->ops->state ? own->ops->state(own, err) : HEFT_OK;
}

static void enter_lent(heft_source *s)
{
    heft_file_enter(((const lent *)s)->f);
}

static void leave_lent(heft_source *s)
{
    heft_file_disarm(((const lent *)s)->f);
}

static void close_lent(heft_source *s)
{
    const heft_allocator *al = ((const lent *)s)->al;
    heft_free(al, s, sizeof(lent), 16);
}

static const heft_source_ops lent_ops = {
    .size = sizeof(heft_source_ops),
    .read = read_lent,
    .map = lend_lent,
    .state = lent_state,
    .enter = enter_lent,
    .leave = leave_lent,
    .close = close_lent,
};

/* Open f once more and join the tensors of x, which are in a file of so many bytes, to it; source: the bytes of that
 * file, or NULL. */
static heft_status extend(heft_file **out, const heft_file *f, const heft_index *x, uint64_t bytes,
                          heft_source *source, heft_error *err)
{
    const heft_allocator *al = f->host->allocator;
    heft_limits limits = f->x.limits;
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    lent *s = heft_alloc(al, sizeof *s, 16);
    *out = NULL;
    if (!s)
        return heft_error_no_memory(err, "to append tensors");
    *s = (lent){ { &lent_ops, heft_file_size(f) }, f, al };
    limits.memory = UINT64_MAX;
    o.format = f->format;
    o.host = f->host;
    o.limits = &limits;
    heft_status st = heft_file_open_source(out, &s->base, &o, err);
    if (!st)
        st = heft_join_added(*out, x, bytes, source, err);
    if (st) {
        heft_file_close(*out);
        *out = NULL;
    }
    return st;
}

/* ---- which tensors ---- */

typedef struct appending {
    const heft_file *f, *from;
    const heft_append_settings *opt;
    uint32_t *chosen, count; /* tensors of from, ascending */
    uint32_t carried;        /* so many of them: the rest is lost */
    uint64_t planned;        /* bytes of the file with them; 0: not known */
    heft_arena *arena;
    heft_error *err;
} appending;

static heft_status choose(appending *a)
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
        if (a->opt->append.duplicates == HEFT_DUPLICATES_REFUSE ||
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
                                    "there is a tensor %q already, and nothing is replaced",
                                    heft_ix_name(x, i));
    return HEFT_OK;
}

/* ---- what is left behind ---- */

static void note_metadata(const appending *a)
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
                     "only tensors are appended: %U metadata and %U parts of the "
                     "file they come from are not",
                     values, parts);
    w->on_loss(w->loss_ctx, HEFT_NOTE, "heft/append", (heft_str){ NULL, 0 }, text.message);
}

static void say_unless_note(void *ctx, heft_severity s, const char *rule, heft_str tensor,
                            const char *text)
{
    const heft_write_options *w = ctx;
    if (s != HEFT_NOTE && w->on_loss)
        w->on_loss(w->loss_ctx, s, rule, tensor, text);
}

/* What the conversion has noted is not noted again. */
static heft_editing editing_of(const heft_file *in, const heft_file *plain,
                               const heft_append_settings *o, heft_error *err)
{
    heft_editing g = {
        .in = in, .plain = plain, .opt = HEFT_EDIT_OPTIONS_INIT, .align = o->write.align, .err = err
    };
    g.opt.host = o->write.host;
    g.opt.on_loss = say_unless_note;
    g.opt.loss_ctx = (void *)(uintptr_t)&o->write;
    return g;
}

/* ---- the tensors in a file of their own ---- */

/* What would stand in the way of a file that has them as well, and how large it would be. */
static heft_status try_together(appending *a, const heft_planner *p)
{
    heft_file *in;
    heft_edit *e = NULL;
    uint64_t bytes =
        UINT64_C(1) << HEFT_GLOBAL_OFFSET_BITS; /* at most: none of them is looked at */
    heft_status st = extend(&in, a->f, &p->x, bytes, NULL, a->err);
    if (st)
        return st;
    uint64_t at = 0;
    /* compressed parts have no places yet: one after the other will do, as long as they would be raw */
    for (uint32_t i = a->f->x.parts.len; p->plan.appended && i < in->x.parts.len; i++) {
        heft_ix_part_row *part = heft_ix_part_row_at(&in->x, i);
        part->offset = heft_global_offset(1, at);
        at += part->stored;
    }
    heft_editing g = editing_of(in, a->f, a->opt, a->err);
    g.is_rough = true;
    st = heft_edit_make(&e, &g);
    if (!st)
        a->planned = p->plan.appended || p->digest_of ? 0 : heft_edit_size(e);
    heft_edit_close(e);
    heft_file_close(in);
    return st;
}

/* As the file keeps it, where it says so by its places alone. */
static uint32_t align_of(const heft_file *f, uint32_t asked)
{
    bool is_inherited = !asked && f->format->caps & HEFT_CAN_APPEND;
    return is_inherited ? (uint32_t)heft_file_alignment(f) : asked;
}

static heft_status check(const appending *a)
{
    if (a->opt->append.duplicates == HEFT_DUPLICATES_LAST)
        return heft_error_plain(a->err, HEFT_E_ARGUMENT,
                                "tensors that are there are not replaced when others are appended");
    heft_status st = heft_edit_check_file(a->f, a->err);
    const heft_format *format = a->f->format;
    if (!st && *format->versions && !heft_format_writes(format, a->f->x.version))
        return heft_error_plain(
            a->err, HEFT_E_UNSUPPORTED,
            "%s %q is read, but not written: nothing can be appended (convert it)", format->name,
            a->f->x.version);
    return st ? st : heft_check_lengths(a->from, a->err);
}

static heft_status convert(appending *a, heft_sink *take)
{
    heft_convert_options o = a->opt->convert;
    heft_write_options write = a->opt->write;
    heft_conversion_scope scope = { .only = a->chosen,
                                    .only_count = a->count,
                                    .metadata_from = a->f };
    /* too large for the stack, which also holds the edit of a trial */
    heft_conversion *c = heft_arena_alloc(a->arena, sizeof *c, 16);
    heft_status st = c ? heft_edit_version(&write.version, a->f, a->arena, a->err)
                       : heft_error_no_memory(a->err, "to append tensors");
    o.write = &write;
    o.set = NULL;
    o.set_count = 0;
    o.config = (heft_str){ NULL, 0 };
    o.vocab = NULL;
    o.planned_bytes = NULL;
    o.keep = NULL;
    if (st) {
        heft_sink_discard(take);
        return st;
    }
    st = heft_conversion_plan(c, a->from, a->f->format, &o, &scope, a->err);
    if (!st) {
        a->carried = heft_ix_tensors(&c->p.x);
        st = check_new(&c->p.x, a->f, a->err);
    }
    if (!st && o.dry_run)
        st = try_together(a, &c->p);
    if (!st)
        st = heft_conversion_write(c, take);
    return heft_conversion_end(c, take, st);
}

static heft_status run(appending *a, heft_sink *take)
{
    heft_status st = check(a);
    heft_file_enter(a->from);
    if (!st)
        st = choose(a);
    heft_status there = heft_file_leave(a->from, a->err);
    st = st ? st : there;
    if (st || !a->count) {
        heft_sink_discard(take);
        return st;
    }
    note_metadata(a);
    return convert(a, take);
}

heft_status heft_append_convert(uint32_t *tensors, const heft_file *f, const heft_file *from,
                                heft_sink *take, const heft_append_options *opt, heft_error *err)
{
    heft_error own;
    heft_append_settings o;
    heft_memory mem = { f->host->allocator, UINT64_MAX, 0 };
    heft_arena arena = { .mem = &mem };
    err = heft_error_begin(err, &own);
    appending a = { .f = f, .from = from, .opt = &o, .arena = &arena, .err = err };
    *tensors = 0;
    heft_status st = heft_append_read_options(&o, opt, err);
    if (st) {
        heft_sink_discard(take);
        return st;
    }
    o.write.align = align_of(f, o.write.align);
    st = run(&a, take);
    heft_arena_free(&arena);
    *tensors = st ? 0 : a.carried;
    if (o.convert.planned_bytes)
        *o.convert.planned_bytes = a.carried ? a.planned : heft_file_size(f);
    return heft_error_end(a.err, st);
}

/* ---- both together ---- */

heft_status heft_append_plan(heft_edit **out, const heft_file *f, const heft_file *added,
                             const heft_append_options *opt, heft_error *err)
{
    heft_error own;
    heft_file *in;
    heft_append_settings o;
    err = heft_error_begin(err, &own);
    *out = NULL;
    heft_status st = heft_append_read_options(&o, opt, err);
    if (st)
        return st;
    o.write.align = align_of(f, o.write.align);
    if (added->format != f->format || added->x.shards.len || !added->source)
        return heft_error_end(err, heft_error_plain(err, HEFT_E_ARGUMENT,
                                                    "what is added is no file of the same kind"));
    st = heft_edit_check_file(f, err);
    if (!st)
        st = check_new(&added->x, f, err);
    if (!st)
        st = extend(&in, f, &added->x, heft_file_size(added), added->source, err);
    if (st)
        return heft_error_end(err, st);
    heft_editing g = editing_of(in, f, &o, err);
    st = heft_edit_make(out, &g);
    heft_file_close(in);
    return heft_error_end(err, st);
}
