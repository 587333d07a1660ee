/* plan.c - layout before bytes: what formats call while planning, and what runs them. */
#include "core/write/plan.h"

#include "core/read/stream.h"
#include "core/write/transfer.h"
#include "model/names.h"

/* ---- what formats call ---- */

heft_status heft_plan_loss(heft_plan *p, heft_severity s, const char *rule, uint32_t tensor,
                           const char *text)
{
    return p->loss(p, s, rule, tensor, text);
}

static heft_status loss(heft_plan *plan, heft_severity s, const char *rule, uint32_t tensor,
                        const char *text)
{
    heft_planner *p = (heft_planner *)plan;
    heft_str name = { NULL, 0 };
    bool stops = (s == HEFT_FAULT && !p->opt.allow_loss) || (s == HEFT_WARNING && p->opt.strict);
    if (tensor == HEFT_NONE && p->grows_into && heft_ix_tensors(&p->x))
        tensor = 0; /* there is only one */
    if (tensor != HEFT_NONE)
        name = heft_ix_name(&p->x, tensor);
    if (stops)
        s = HEFT_FAULT;
    else if (s == HEFT_FAULT)
        s = HEFT_WARNING; /* settled */
    p->losses += stops;
    bool is_new;
    heft_status st = heft_planner_tell_once(p, rule, name, text, &is_new);
    if (!st && is_new && p->opt.on_loss)
        p->opt.on_loss(p->opt.loss_ctx, s, rule, name, text);
    return st;
}

heft_status heft_plan_warn(heft_plan *plan, const char *rule, const char *text)
{
    heft_planner *p = (heft_planner *)plan;
    bool is_strict = p->opt.strict;
    p->opt.strict = is_strict && !plan->kept; /* edits are strict about losses */
    heft_status st = heft_plan_loss(plan, HEFT_WARNING, rule, HEFT_NONE, text);
    p->opt.strict = is_strict;
    return st;
}

void heft_plan_drop(heft_plan *p, uint32_t tensor)
{
    heft_ix_row(p->x, tensor)->flags |= HEFT_T_DROPPED;
}

void heft_plan_compact(heft_plan *p)
{
    heft_ix_compact(p->x);
}

heft_status heft_plan_reshape(heft_plan *p, uint32_t tensor, const uint64_t *dims, uint32_t rank)
{
    return heft_ix_reshape(p->x, tensor, dims, rank);
}

/* Unless the format has an order of its own: that of the tensors. */
static heft_status settle_order(heft_plan *p)
{
    uint32_t count = 0;
    if (p->order)
        return HEFT_OK;
    p->order = heft_plan_alloc(p, p->x->parts.len * sizeof *p->order);
    if (!p->order)
        return HEFT_E_NOMEM;
    for (uint32_t t = 0; t < heft_ix_tensors(p->x); t++)
        for (uint32_t k = 0; k < heft_ix_row(p->x, t)->part_count; k++) {
            uint32_t part = heft_ix_row(p->x, t)->first_part + k;
            if (!p->same || p->same[part] == part)
                p->order[count++] = part;
        }
    p->order_count = count;
    return HEFT_OK;
}

heft_status heft_plan_append(heft_plan *p, uint64_t start)
{
    p->appended = true;
    p->front_bytes = p->data_end = start;
    p->file_bytes = 0;
    return settle_order(p);
}

static heft_status find_ties(heft_plan *p, bool contents)
{
    uint32_t count = p->x->parts.len;
    p->same = heft_plan_alloc(p, count * sizeof *p->same);
    if (!p->same)
        return HEFT_E_NOMEM;
    for (uint32_t i = 0; i < count; i++)
        p->same[i] = i;
    return p->ties ? p->ties(p, p->same, contents) : HEFT_OK;
}

heft_status heft_plan_ties(heft_plan *p)
{
    return find_ties(p, true);
}

heft_status heft_plan_share(heft_plan *p)
{
    return find_ties(p, false);
}

/* Bytes that stand in front of a part, padding aside. */
static heft_status head_bytes(const heft_plan *plan, uint32_t part, uint64_t *out)
{
    const heft_format *f = ((const heft_planner *)plan)->format;
    heft_out count = heft_out_counting();
    heft_status st = f->between ? f->between(plan, part, &count) : HEFT_OK;
    *out = count.total;
    return st;
}

heft_status heft_planner_moves_whole(const heft_planner *p, bool *moves)
{
    const heft_plan *plan = &p->plan;
    heft_range data;
    uint64_t head = 0;
    heft_status st = HEFT_OK;
    *moves = plan->kept && !plan->moves_each && heft_planner_kept(p, &data);
    for (uint32_t i = 0; *moves && !st && p->format->between && i < plan->order_count; i++) {
        st = head_bytes(plan, plan->order[i], &head);
        *moves = !head;
    }
    return st;
}

static heft_status too_long(heft_plan *p)
{
    return heft_error_plain(p->err, HEFT_E_LOSSY, "the file would pass 2^64 bytes");
}

/* One after the other. */
static heft_status place_each(heft_plan *p, uint64_t start, uint64_t tail_align)
{
    uint64_t at = start, head;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < p->order_count && !st; i++) {
        heft_ix_part_row *part = heft_ix_part_row_at(p->x, p->order[i]);
        st = head_bytes(p, p->order[i], &head);
        part->stored = p->kept ? heft_ix_part_row_at(p->kept, p->order[i])->stored : part->length;
        if (!heft_add(&at, at, head) || !heft_align_up(&at, at, p->align) ||
            !heft_add(&at, at, part->stored))
            return too_long(p);
        part->offset = at - part->stored;
    }
    return !st && !heft_align_up(&p->data_end, at, tail_align) ? too_long(p) : st;
}

/* Parts that are another's lie where that lies. */
static void place_same(heft_plan *p)
{
    for (uint32_t i = 0; p->same && i < p->x->parts.len; i++) {
        heft_ix_part_row *part = heft_ix_part_row_at(p->x, i);
        const heft_ix_part_row *first = heft_ix_part_row_at(p->x, p->same[i]);
        part->offset = first->offset;
        part->stored = first->stored;
    }
}

heft_status heft_plan_place(heft_plan *p, uint64_t start, uint64_t tail_align)
{
    bool moves = false;
    heft_status st = settle_order(p);
    if (!st)
        st = heft_planner_moves_whole((heft_planner *)p, &moves);
    if (!st && !moves)
        st = place_each(p, start, tail_align);
    else if (!st && !heft_planner_move((heft_planner *)p, start, tail_align))
        st = too_long(p);
    if (!st)
        place_same(p);
    return st;
}

void *heft_plan_alloc(heft_plan *p, size_t size)
{
    void *mem = heft_arena_alloc(p->arena, size ? size : 1, 16);
    if (mem)
        memset(mem, 0, size);
    else
        heft_error_plain(p->err, HEFT_E_NOMEM, "no memory to plan the file");
    return mem;
}

/* Most parts are of no use to another format, and any may be as large as a file. */
static heft_status read_part(heft_plan *plan, heft_model_bytes *m)
{
    uint64_t length = heft_ix_part_row_at(&m->from->x, m->part)->length;
    char *to = length < SIZE_MAX ? heft_arena_alloc(plan->arena, (size_t)length + 1, 1) : NULL;
    if (!to)
        return heft_error_plain(plan->err, HEFT_E_NOMEM, "no memory for part %q", m->role);
    m->bytes = (heft_str){ to, (size_t)length };
    return heft_read(to, m->from, m->part, 0, (size_t)length, plan->err);
}

heft_status heft_plan_model_part(heft_plan *plan, const char *role, heft_str *out)
{
    const heft_planner *p = (const heft_planner *)plan;
    heft_model_bytes *m = p->model_bytes.ptr;
    heft_status st = HEFT_OK;
    uint32_t i = 0;
    while (i < p->model_bytes.len && !heft_str_is(m[i].role, role))
        i++;
    *out = (heft_str){ NULL, 0 };
    if (i == p->model_bytes.len)
        return HEFT_OK;
    if (!m[i].bytes.ptr && m[i].from)
        st = read_part(plan, &m[i]);
    *out = m[i].bytes;
    return st;
}

/* ---- what runs them ---- */

static heft_status check_options(heft_planner *p, heft_error *err)
{
    const heft_write_options *o = &p->opt;
    const heft_format *f = p->format;
    if (!f || !f->plan)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, "%s cannot be written by this build",
                                f ? f->name : "this format");
    if (o->version && !*f->versions)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "there is no %s version %s: it has only one",
                                f->name, o->version);
    if (o->align & (o->align - 1))
        return heft_error_plain(err, HEFT_E_ARGUMENT, "an alignment of %U is no power of two",
                                (uint64_t)o->align);
    heft_storage how = { o->encoding, o->encoding_level, o->digest };
    return heft_planner_check_storage(p, &how, err);
}

heft_status heft_planner_init(heft_planner *p, const heft_format *fmt,
                              const heft_write_options *opt, heft_error *err)
{
    heft_write_options o = HEFT_WRITE_OPTIONS_INIT;
    if (opt)
        memcpy(&o, opt, opt->size < sizeof o ? opt->size : sizeof o);
    *p = (heft_planner){ .format = fmt, .opt = o };
    heft_status st = heft_host_resolve(&p->host, o.host, err);
    if (st)
        return st;
    heft_limits limits = { 0, UINT64_MAX, UINT32_MAX - 1, 0 };
    heft_host_begin(p->host, &p->x, &limits);
    p->arena.mem = &p->x.mem;
    heft_segments_init(&p->written, p->host);
    p->plan = (heft_plan){
        .x = &p->x,
        .version = o.version,
        .align = o.align ? o.align
                 : fmt   ? fmt->align
                         : 1,
        .asked_align = o.align,
        .arena = &p->arena,
        .loss = loss,
        .allow_loss = o.allow_loss,
    };
    return check_options(p, err);
}

void heft_planner_free(heft_planner *p)
{
    heft_arena_free(&p->arena);
    heft_segments_free(&p->written);
    heft_text_set_free(&p->told, &p->x.mem);
    heft_planner_digests_free(p);
    heft_vec_free(&p->x.mem, &p->stored, sizeof(heft_stored));
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

heft_status heft_planner_part_of(heft_planner *p, const heft_file *from, uint32_t part,
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

/* Once the format has said whether it names one. */
static heft_status check_generator(heft_planner *p)
{
    if (!p->asks_generator || p->plan.names_generator)
        return HEFT_OK;
    return heft_plan_loss(&p->plan, HEFT_WARNING, "heft/generator", HEFT_NONE,
                          "the generator is left out: the format names none");
}

bool heft_value_is_text(const heft_value *v)
{
    bool key = heft_str_is_utf8(v->key);
    return key && (v->kind != HEFT_KIND_STR || heft_str_is_utf8(v->as.s));
}

/* Names and keys that occur twice are the caller's fault: some formats would write them and none
 * would read them. */
static heft_status check_names(heft_planner *p, heft_error *err)
{
    heft_error why;
    p->x.err = &why;
    heft_status st = p->x.sealed ? HEFT_OK : heft_ix_seal(&p->x);
    if (!st)
        st = heft_meta_unique(&p->x, "the metadata");
    p->x.err = err;
    if (st)
        return heft_error_plain(err, st == HEFT_E_FORMAT ? HEFT_E_ARGUMENT : st, "%s", why.message);
    return HEFT_OK;
}

heft_status heft_planner_run(heft_planner *p, heft_error *err)
{
    p->plan.err = p->x.err = err;
    heft_status st = check_names(p, err);
    if (!st)
        st = heft_planner_nest(p);
    if (!st)
        st = heft_planner_storage(p);
    if (!st)
        st = p->format->plan(&p->plan);
    if (!st)
        st = check_generator(p);
    if (!st && !p->losses)
        st = heft_planner_part_digests(p, err);
    if (p->losses && (!st || st == HEFT_E_LOSSY))
        return heft_error_plain(err, HEFT_E_LOSSY, "%s cannot carry this model as it is: %U %s",
                                p->format->name, (uint64_t)p->losses,
                                p->losses == 1 ? "obstacle" : "obstacles");
    return st;
}
