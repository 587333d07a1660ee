/* edit.c - plan an edit: apply the requested changes to the model of a file and plan the file
 * again in the same format. */
#include "core/edit/edit.h"

#include "core/read/decode.h"
#include "core/write/plan/plan.h"
#include "model/float.h"
#include "model/vocab.h"

/* ---- requested names and identities ---- */

static heft_status collect_names(heft_edit_job *g)
{
    heft_error *err = g->err;
    if (!g->opt.rename_count)
        return HEFT_OK;
    g->names = heft_plan_alloc(&g->p.plan, heft_ix_tensors(&g->in->x) * sizeof *g->names);
    if (!g->names)
        return HEFT_E_NOMEM;
    for (size_t i = 0; i < g->opt.rename_count; i++) {
        const heft_rename *r = &g->opt.rename[i];
        uint32_t t = heft_ix_find(&g->in->x, r->from);
        if (t == HEFT_NONE)
            return heft_error_rule(
                err, heft_error_plain(err, HEFT_E_NOTFOUND, "no tensor named %q", r->from),
                "heft/no-tensor");
        if (g->names[t].ptr)
            return heft_error_plain(err, HEFT_E_ARGUMENT, "tensor %q is renamed twice", r->from);
        if (heft_utf8_valid(r->to.ptr, r->to.len) < r->to.len)
            return heft_error_plain(err, HEFT_E_ARGUMENT, "tensor %q: its new name %q is not UTF-8",
                                    r->from, r->to);
        g->names[t] = r->to.ptr ? r->to : heft_lit("");
    }
    return HEFT_OK;
}

static heft_status collect_identities(heft_edit_job *g)
{
    uint32_t count = heft_ix_tensors(&g->in->x);
    if (!g->opt.identify)
        return HEFT_OK;
    g->identities = heft_plan_alloc(&g->p.plan, count * sizeof *g->identities);
    if (!g->identities)
        return HEFT_E_NOMEM;
    for (uint32_t t = 0; t < count; t++) {
        heft_tensor tensor = heft_tensor_at(g->in, t);
        heft_identity existing = heft_ix_identity(&g->in->x, t), id = existing;
        bool is_new = g->opt.identify(g->opt.ctx, &tensor, &id);
        if (is_new)
            HEFT_TRY(heft_identity_check(&id, tensor.name, g->err));
        /* Clear absent fields, so that identities can be compared bytewise. */
        id.requires_grad = id.has & HEFT_HAS_REQUIRES_GRAD && id.requires_grad;
        id.param_id = id.has & HEFT_HAS_PARAM_ID ? id.param_id : 0;
        g->identities[t] = is_new ? id : existing;
    }
    return HEFT_OK;
}

/* ---- tensors ---- */

static heft_status add_parts(heft_edit_job *g, uint32_t t)
{
    const heft_index *from = &g->in->x;
    const heft_ix_tensor_row *row = heft_ix_row(from, t);
    for (uint32_t i = row->first_part; i < row->first_part + row->part_count; i++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(from, i);
        if (g->p.x.parts.len != i)
            return heft_error_plain(g->err, HEFT_E_UNSUPPORTED,
                                    "tensor %q: its parts are out of order", heft_ix_name(from, t));
        HEFT_TRY(heft_ix_part(&g->p.x, t, heft_ix_role(from, part->role), part->dtype,
                              (heft_range){ part->offset, part->stored }, part->length,
                              (heft_encoding)part->encoding));
        heft_ix_part_row_at(&g->p.x, i)->flags = part->flags;
    }
    return HEFT_OK;
}

static heft_status add_tensor(heft_edit_job *g, uint32_t t)
{
    const heft_index *from = &g->in->x;
    const heft_ix_tensor_row *row = heft_ix_row(from, t);
    uint64_t *dims;
    uint32_t id;
    heft_status st = heft_ix_tensor(&g->p.x, heft_edit_name(g, t), row->dtype, row->rank, &dims,
                                    &id);
    if (!st && row->rank)
        memcpy(dims, heft_ix_dims(from, t), row->rank * sizeof *dims);
    if (!st)
        st = heft_ix_set_layout(&g->p.x, id, heft_ix_layout(from, t));
    if (!st)
        st = add_parts(g, t);
    return st ? st
              : heft_copy_attributes(&g->p, from, id, t, false,
                                     g->identities ? &g->identities[t] : NULL);
}

static heft_status add_tensors(heft_edit_job *g)
{
    heft_error duplicate;
    for (uint32_t t = 0; t < heft_ix_tensors(&g->in->x); t++)
        HEFT_TRY(add_tensor(g, t));
    g->p.x.err = &duplicate;
    heft_status st = heft_ix_build_name_table(&g->p.x);
    g->p.x.err = g->err;
    if (st)
        return heft_error_plain(g->err, st == HEFT_E_FORMAT ? HEFT_E_ARGUMENT : st,
                                "after renaming, %s", duplicate.message);
    return HEFT_OK;
}

/* ---- metadata ---- */

/* Convert a number given without a stored type to the kind and stored element type of the
 * existing number, if possible. */
static heft_value match_stored_kind(heft_value v, const heft_value *existing)
{
    const int64_t max_exact = INT64_C(1) << 53; /* f64 represents every integer up to 2^53 */
    uint64_t stored[2];
    if (v.stored)
        return v;
    if (existing->kind == HEFT_KIND_UINT && v.kind == HEFT_KIND_INT && v.as.i >= 0)
        v.as.u = (uint64_t)v.as.i;
    else if (existing->kind == HEFT_KIND_INT && v.kind == HEFT_KIND_UINT && v.as.u <= INT64_MAX)
        v.as.i = (int64_t)v.as.u;
    else if (existing->kind == HEFT_KIND_FLOAT && v.kind == HEFT_KIND_INT && v.as.i >= -max_exact &&
             v.as.i <= max_exact)
        v.as.f = (double)v.as.i;
    else if (existing->kind != v.kind)
        return v;
    v.kind = existing->kind;
    v.stored = existing->stored;
    uint8_t number[sizeof v.as.f];
    heft_put_le64(number, heft_f64_bits(v.as.f));
    bool is_rounded = v.kind == HEFT_KIND_FLOAT && v.stored &&
                      heft_dtype_can_cast(v.stored, HEFT_F64) &&
                      heft_dtype_cast(stored, v.stored, number, HEFT_F64, 1);
    if (is_rounded)
        heft_dtype_to_f64(&v.as.f, v.stored, stored, 0, 1);
    return v;
}

static bool is_number_unset(const heft_edit_job *g, heft_str name)
{
    heft_str key;
    bool is_unset = false;
    for (size_t i = 0; i < g->opt.unset_count && !is_unset; i++)
        is_unset = heft_is_in_number_map(g->in->format, g->opt.unset[i], &key) &&
                   heft_str_eq(key, name);
    return is_unset;
}

/* Copy the number map without removed numbers, and drop the map if none is left.  The planner
 * adds numbers that are set. */
static heft_status add_map(heft_edit_job *g, uint32_t map)
{
    const heft_index *from = &g->in->x;
    heft_status st = HEFT_OK;
    bool is_open = false;
    for (uint32_t i = map + 1; i < heft_ix_value_next(from, map) && !st;
         i = heft_ix_value_next(from, i)) {
        if (is_number_unset(g, heft_ix_value(from, i)->key))
            continue;
        if (!is_open)
            st = heft_ix_meta(&g->p.x, *heft_ix_value(from, map));
        is_open = true;
        if (!st)
            st = heft_ix_copy_value(&g->p.x, from, i, HEFT_NONE);
    }
    if (is_open && !st)
        heft_ix_meta_end(&g->p.x);
    return st;
}

static heft_status add_existing_value(heft_edit_job *g, uint32_t i)
{
    const heft_value *v = heft_ix_value(&g->in->x, i);
    bool is_set = false;
    heft_status st = HEFT_OK;
    for (size_t k = 0; k < g->opt.set_count && !st; k = heft_set_next(g->opt.set, k))
        if (heft_str_eq(g->opt.set[k].key, v->key)) {
            st = heft_set_add(&g->p.x, g->opt.set, k, match_stored_kind(g->opt.set[k], v));
            is_set = true;
        }
    if (is_set || heft_edit_unsets(g, v->key))
        return st;
    if (v->kind == HEFT_KIND_MAP && heft_edit_changes_map(g, v->key))
        return add_map(g, i);
    return heft_ix_copy_value(&g->p.x, &g->in->x, i, HEFT_NONE);
}

/* Add the metadata in the order of the file; a replaced value keeps the position. */
static heft_status add_metadata(heft_edit_job *g)
{
    const heft_index *from = &g->in->x;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < from->values.len && !st; i = heft_ix_value_next(from, i))
        st = add_existing_value(g, i);
    for (size_t i = 0; i < g->opt.set_count && !st; i = heft_set_next(g->opt.set, i)) {
        const heft_value *v = &g->opt.set[i];
        const heft_value *existing = heft_edit_find(from, g->in->format, v->key);
        /* heft_edit_find() finds a number of the map as MAP.NAME, under the key NAME. */
        if (!existing || !heft_str_eq(existing->key, v->key))
            st = heft_set_add(&g->p.x, g->opt.set, i,
                              existing ? match_stored_kind(*v, existing) : *v);
    }
    return st;
}

/* ---- model-level parts ---- */

/* Plan the vocabulary of the file, or the requested vocabulary. */
static heft_status add_vocab(heft_edit_job *g)
{
    heft_status st = HEFT_OK;
    if (g->opt.vocab)
        st = heft_vocab_copy(&g->vocab, g->opt.vocab, g->e->host->allocator, g->err);
    else if (g->in->x.tokens.length_bytes)
        st = heft_vocab_open(&g->vocab, g->in, g->err);
    else if (g->opt.special_count)
        st = heft_error_rule(g->err,
                             heft_error_plain(g->err, HEFT_E_NOTFOUND,
                                              "no vocabulary: special tokens cannot be set"),
                             "heft/no-vocabulary");
    for (size_t i = 0; i < g->opt.special_count && !st; i++) {
        heft_special_id s = g->opt.special[i];
        if (s.id != HEFT_NONE && s.id >= heft_vocab_count(g->vocab))
            return heft_error_plain(
                g->err, HEFT_E_ARGUMENT,
                "special token %s: %U is not an id of the vocabulary of %U tokens",
                heft_vocab_special_name(s.special), (uint64_t)s.id,
                (uint64_t)heft_vocab_count(g->vocab));
        heft_vocab_set_special(g->vocab, s.special, s.id);
    }
    g->p.plan.vocab = g->vocab;
    g->p.plan.is_new_vocab = heft_edit_has_new_vocab(g);
    return st;
}

static heft_status add_model_parts(heft_edit_job *g)
{
    uint32_t first, count = heft_file_parts(g->in, &first);
    heft_status st = add_vocab(g);
    for (uint32_t i = first; i < first + count && !st; i++) {
        heft_str role = heft_ix_role(&g->in->x, heft_ix_part_row_at(&g->in->x, i)->role);
        if (!heft_edit_replaces_part(g, role))
            st = heft_planner_model_part_from(&g->p, g->in, i, g->err);
    }
    if (st || !g->opt.config.ptr)
        return st;
    g->p.plan.is_new_config = true;
    return heft_planner_model_part(&g->p, heft_lit("config"), g->opt.config, g->err);
}

/* ---- the plan ---- */

heft_status heft_edit_version(const char **out, const heft_file *f, heft_arena *a, heft_error *err)
{
    heft_str has = f->x.version;
    *out = NULL;
    if (!heft_format_writes(f->format, has))
        return HEFT_OK;
    /* copy the text with a terminating NUL */
    *out = heft_arena_join(a, has, (heft_str){ "", 1 }, (heft_str){ NULL, 0 }).ptr;
    return *out ? HEFT_OK : heft_error_no_memory(err, "to plan the edit");
}

static heft_status shard_error(const char *why, heft_error *err)
{
    return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                            "%s: shards cannot be edited one by one ('heft merge' them, edit the "
                            "result, 'heft split' it again)",
                            why);
}

heft_status heft_edit_check_file(const heft_file *f, heft_error *err)
{
    if (!(f->format->caps & HEFT_CAN_WRITE))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "%s files are not edited: change the model in the program that "
                                "made it, or convert it to another format and edit that",
                                f->format->title);
    if (!heft_registry_writer(f->format))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, "this build cannot write %s",
                                f->format->name);
    if (!(f->format->caps & HEFT_CAN_EDIT))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "%s files are not edited: use 'heft convert' to write a new one",
                                f->format->title);
    const heft_archive_member *member = heft_archive_of(f);
    if (member)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "the weights %q are in an archive, which an edit would destroy: "
                                "unpack it first",
                                member->name);
    if (f->x.assembled.len)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "a tensor is stored in pieces, which an edit does not join: use "
                                "heft convert to write a new file");
    if (f->x.shards.len)
        return shard_error("the tensors are in other files", err);
    if (f->x.shard_info.count > 1)
        return shard_error("the file is one of several", err);
    for (uint32_t i = 0; i < f->x.parts.len; i++)
        if (heft_ix_part_row_at(&f->x, i)->flags & HEFT_P_BIG_ENDIAN)
            return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                    "big-endian data cannot be written, so that the file cannot be "
                                    "edited (convert it)");
    if (f->x.has_omissions)
        return heft_error_plain(
            err, HEFT_E_UNSUPPORTED,
            "the file has contents unknown to this version, which an edit would lose");
    return heft_check_lengths(f, err);
}

static heft_status plan_model(heft_edit_job *g)
{
    heft_write_options o = HEFT_WRITE_OPTIONS_INIT;
    o.host = g->e->host;
    o.strict = true;
    o.on_loss = g->opt.on_loss;
    o.ctx = g->opt.ctx;
    o.align = g->align;
    HEFT_TRY(heft_edit_version(&o.version, g->in, &g->e->arena, g->err));
    HEFT_TRY(heft_planner_init(&g->p, g->in->format, &o, g->err));
    g->p.x.err = g->p.plan.err = g->err;
    g->p.x.generator = g->in->x.generator;
    g->p.warnings_are_errors = g->opt.strict;
    g->p.plan.existing = &g->in->x;
    g->p.plan.has_added_parts = g->adds;
    g->p.plan.places_each_part = g->places_each;
    HEFT_TRY(collect_names(g));
    HEFT_TRY(collect_identities(g));
    HEFT_TRY(add_tensors(g));
    if (g->names)
        HEFT_TRY(heft_warn_torn(&g->p, g->in, NULL, NULL));
    HEFT_TRY(add_metadata(g));
    HEFT_TRY(add_model_parts(g));
    return heft_planner_run(&g->p, g->err);
}

static heft_status plan_edit(heft_edit_job *g)
{
    HEFT_TRY(heft_edit_check_file(g->original, g->err));
    HEFT_TRY(heft_edit_check_request(g));
    if (!g->size_only)
        HEFT_TRY(heft_edit_check_checksums(&g->ledger, g->in, g->err));
    HEFT_TRY(plan_model(g));
    if (g->size_only) {
        g->e->size = g->p.plan.file_bytes;
        g->e->in_place = g->in->format->caps & HEFT_CAN_APPEND;
        return HEFT_OK;
    }
    HEFT_TRY(heft_edit_lay_out(g));
    HEFT_TRY(heft_edit_check_replaced(g));
    return heft_edit_check(g);
}

heft_status heft_edit_plan_job(heft_edit **out, heft_edit_job *g)
{
    const heft_host *host;
    *out = NULL;
    g->checking = HEFT_NONE;
    HEFT_TRY(heft_host_resolve(&host, g->opt.host ? g->opt.host : g->in->host, g->err));
    g->e = heft_alloc(host->allocator, sizeof *g->e, 16);
    if (!g->e)
        return heft_error_no_memory(g->err, "to plan the edit");
    *g->e = (heft_edit){ .host = host, .mem = { host->allocator, UINT64_MAX, 0 } };
    g->e->arena.mem = &g->e->mem;
    heft_file_enter(g->in); /* the file lends names and metadata */
    heft_status st = plan_edit(g);
    heft_ledger_free(&g->ledger);
    if (g->p.host)
        heft_planner_free(&g->p);
    heft_vocab_close(g->vocab);
    heft_status left = heft_file_leave(g->in, g->err);
    st = left ? left : st;
    heft_edit_extent *p = g->e->extents.ptr;
    for (uint32_t i = 0; i < g->e->extents.len; i++)
        if (!p[i].data) { /* the caller gets the shard number and the offset in the shard */
            p[i].file = heft_global_offset_file(&g->in->x, p[i].from);
            p[i].from = heft_global_offset_local(&g->in->x, p[i].from);
        }
    if (st)
        heft_edit_close(g->e);
    else
        *out = g->e;
    return st;
}

heft_status heft_edit_plan(heft_edit **out, const heft_file *f, const heft_edit_options *opt,
                           heft_error *err)
{
    heft_error own;
    heft_edit_job g = {
        .in = f, .original = f, .opt = HEFT_EDIT_OPTIONS_INIT, .err = heft_error_begin(err, &own)
    };
    heft_status st = heft_sized_copy(&g.opt, sizeof g.opt, opt, g.err);
    *out = NULL;
    return heft_error_end(g.err, st ? st : heft_edit_plan_job(out, &g));
}

void heft_edit_close(heft_edit *e)
{
    if (!e)
        return;
    const heft_allocator *al = e->host->allocator;
    heft_arena_free(&e->arena);
    heft_vec_free(&e->mem, &e->extents, sizeof(heft_edit_extent));
    heft_free(al, e, sizeof *e, 16);
}

size_t heft_edit_extents(const heft_edit *e, const heft_edit_extent **out)
{
    *out = e->extents.ptr;
    return e->extents.len;
}

uint64_t heft_edit_size(const heft_edit *e)
{
    return e->size;
}

bool heft_edit_is_in_place(const heft_edit *e)
{
    return e->in_place;
}
