/* plan.c - set up a planner, and run the plan: checks, storage, the format's layout. */
#include "core/write/plan/plan.h"

#include "model/values.h"

static heft_status check_options(heft_planner *p, heft_error *err)
{
    const heft_write_options *o = &p->opt;
    const heft_format *f = p->format;
    if (!p->writer)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, "this build cannot write %s",
                                f ? f->name : "this format");
    if (o->version && !*f->versions)
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "there is no %s version %s: the format has only one", f->name,
                                o->version);
    if (o->align & (o->align - 1))
        return heft_error_plain(err, HEFT_E_ARGUMENT, "an alignment of %U is not a power of two",
                                (uint64_t)o->align);
    return heft_planner_check_storage(p, &o->storage, err);
}

heft_status heft_planner_init(heft_planner *p, const heft_format *fmt,
                              const heft_write_options *opt, heft_error *err)
{
    heft_write_options o = HEFT_WRITE_OPTIONS_INIT;
    heft_status st = heft_sized_copy(&o, sizeof o, opt, err);
    *p = (heft_planner){ .format = fmt, .opt = o, .listed = o.on_loss ? " (listed above)" : "" };
    p->writer = fmt ? heft_registry_writer(fmt) : NULL;
    if (!st)
        st = heft_host_resolve(&p->host, o.host, err);
    if (st)
        return st;
    heft_limits limits = HEFT_LIMITS_INIT;
    limits.memory = UINT64_MAX;
    limits.tensors = UINT32_MAX - 1;
    heft_host_init_index(p->host, &p->x, &limits);
    p->arena.mem = &p->x.mem;
    heft_partial_crcs_init(&p->written, p->host);
    p->plan = (heft_plan){
        .planner = p,
        .x = &p->x,
        .version = o.version,
        .align = o.align ? o.align
                 : fmt   ? fmt->align
                         : 1,
        .requested_align = o.align,
        .arena = &p->arena,
        .allow_loss = o.allow_loss,
    };
    return check_options(p, err);
}

heft_status heft_planner_check_single(const heft_planner *p, heft_error *err)
{
    return p->format->caps & HEFT_CAN_WRITE
               ? HEFT_OK
               : heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                  "a model in %s is a folder of files, which heft_file_split() "
                                  "writes",
                                  p->format->name);
}

void heft_planner_free(heft_planner *p)
{
    heft_arena_free(&p->arena);
    heft_partial_crcs_free(&p->written);
    heft_text_set_free(&p->reported, &p->x.mem);
    heft_planner_digests_free(p);
    heft_vec_free(&p->x.mem, &p->part_storage, sizeof(heft_part_storage));
    heft_vec_free(&p->x.mem, &p->model_bytes, sizeof(heft_model_bytes));
    heft_ix_free(&p->x);
}

static heft_status add_model_part(heft_planner *p, heft_model_bytes part, uint64_t length,
                                  heft_error *err)
{
    heft_model_bytes *m = heft_vec_push(&p->x.mem, &p->model_bytes, sizeof *m);
    if (!m)
        return heft_error_plain(err, HEFT_E_NOMEM, "no memory for part %q", part.role);
    *m = part;
    p->x.err = err;
    return heft_ix_part(&p->x, HEFT_NONE, part.role, HEFT_UNTYPED, (heft_range){ 0, length },
                        length, HEFT_RAW);
}

heft_status heft_planner_model_part(heft_planner *p, heft_str role, heft_str bytes, heft_error *err)
{
    return add_model_part(p, (heft_model_bytes){ .role = role, .bytes = bytes }, bytes.len, err);
}

heft_status heft_planner_model_part_from(heft_planner *p, const heft_file *from, uint32_t part,
                                         heft_error *err)
{
    const heft_ix_part_row *row = heft_ix_part_row_at(&from->x, part);
    heft_model_bytes m = { .role = heft_ix_role(&from->x, row->role), .from = from, .part = part };
    return add_model_part(p, m, row->length, err);
}

heft_status heft_planner_generator(heft_planner *p, heft_str name, heft_error *err)
{
    if (!heft_str_is_utf8(name))
        return heft_error_plain(err, HEFT_E_ARGUMENT, "the generator's name is not UTF-8");
    p->x.err = err;
    name = heft_ix_copy(&p->x, name);
    if (!name.ptr)
        return HEFT_E_NOMEM;
    p->x.generator = name;
    p->asks_generator = true;
    return HEFT_OK;
}

bool heft_value_is_text(const heft_value *v)
{
    bool key = heft_str_is_utf8(v->key);
    return key && (v->kind != HEFT_KIND_STR || heft_str_is_utf8(v->as.s));
}

/* Refuse names and keys that occur twice: some formats would write the file, and no reader would
 * accept duplicates. */
static heft_status check_names(heft_planner *p, heft_error *err)
{
    heft_error why;
    p->x.err = &why;
    heft_status st = p->x.has_name_table ? HEFT_OK : heft_ix_build_name_table(&p->x);
    if (!st)
        st = heft_meta_unique(&p->x, "the metadata");
    p->x.err = err;
    if (st)
        return heft_error_plain(err, st == HEFT_E_FORMAT ? HEFT_E_ARGUMENT : st, "%s", why.message);
    return HEFT_OK;
}

static void add_sums(const heft_planner *p, uint32_t tensors)
{
    heft_write_sums *sums = p->opt.sums;
    if (!sums)
        return;
    sums->tensors += tensors;
    sums->reshaped += p->reshaped;
    sums->left_out += p->dropped;
}

heft_status heft_planner_run(heft_planner *p, heft_error *err)
{
    uint32_t tensors = heft_ix_tensors(&p->x);
    p->plan.err = p->x.err = err;
    heft_status st = check_names(p, err);
    if (!st)
        st = heft_planner_nest_numbers(p);
    if (!st)
        st = heft_planner_fill_storage(p);
    if (!st)
        st = p->writer->plan(&p->plan);
    add_sums(p, tensors);
    bool has_generator = p->asks_generator || (p->x.generator.len && !p->plan.existing);
    if (!st && has_generator && !p->plan.writes_generator)
        st = heft_plan_loss(&p->plan, p->asks_generator ? HEFT_WARNING : HEFT_NOTE,
                            "heft/generator", HEFT_NONE,
                            "the generator is left out: the format does not store one");
    if (!st && !p->losses)
        st = heft_planner_part_digests(p, err);
    if (!st && !p->losses)
        st = heft_planner_check_codecs(p, err);
    if (p->losses && (!st || st == HEFT_E_LOSSY))
        return heft_error_rule(err,
                               heft_error_plain(err, HEFT_E_LOSSY,
                                                "cannot write this model as %s: %U %s%s",
                                                p->format->name, (uint64_t)p->losses,
                                                p->losses == 1 ? "problem" : "problems", p->listed),
                               p->first_loss);
    return st;
}
