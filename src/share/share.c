/* share.c - write a range of a planned conversion, and join the records of all ranges. */
#include "share/share_plan.h"

#include "base/bisect.h"
#include "base/blake3.h"
#include "core/check/verification.h"
#include "core/write/convert/copy.h"
#include "core/write/plan/plan.h"

enum {
    STEP = 4 << 20, /* large shares begin at multiples, since file systems lock and store stripes */
    MIN_STEPS = 64
};

/* ---- the plan ---- */

static heft_copy_context context(heft_share_plan *p, heft_ledger *v)
{
    return (heft_copy_context){ .p = &p->c.p,
                                .in = p->c.in,
                                .origins = p->c.origins.ptr,
                                .ledger = v,
                                .allow_nan = p->c.opt.allow_nan };
}

static heft_status refuse_unplannable(heft_share_plan *p, uint32_t count)
{
    if (!count || count > HEFT_SHARE_MAX_COUNT)
        return heft_error_plain(&p->err, HEFT_E_ARGUMENT, "the number of shares must be 1 to %U",
                                (uint64_t)HEFT_SHARE_MAX_COUNT);
    if (p->c.p.plan.insertion_count)
        return heft_error_plain(&p->err, HEFT_E_UNSUPPORTED,
                                "a file with arrays in pieces is not written in shares");
    if (p->c.opt.dry_run)
        return heft_error_plain(&p->err, HEFT_E_ARGUMENT, "a dry run has no shares");
    if (p->c.p.plan.appended)
        return heft_error_plain(&p->err, HEFT_E_UNSUPPORTED,
                                "compressed parts cannot be written in shares, because their sizes "
                                "are not known in advance; store them raw, or convert without "
                                "shares");
    return HEFT_OK;
}

/* Set *at to the offset where share `number` + 1 begins. */
static heft_status find_border(heft_share_plan *p, uint32_t number, uint64_t *at)
{
    const heft_plan *plan = &p->c.p.plan;
    uint64_t all = plan->data_end - plan->header_bytes, each = heft_div(all, p->count);
    uint64_t rest = all - each * p->count;
    *at = plan->header_bytes + each * number + heft_div(rest * number, p->count);
    if (!number || number == p->count)
        return HEFT_OK;
    heft_copy_context copying = context(p, &p->uses);
    if (each / MIN_STEPS >= STEP)
        *at -= *at % STEP;
    heft_status st = heft_copy_border(&copying, at, &p->err);
    *at = *at > plan->header_bytes ? *at : plan->header_bytes;
    return st;
}

static heft_status find_borders(heft_share_plan *p)
{
    p->borders = heft_plan_alloc(&p->c.p.plan, (p->count + (size_t)1) * sizeof *p->borders);
    if (!p->borders)
        return HEFT_E_NOMEM;
    for (uint32_t i = 0; i <= p->count; i++)
        HEFT_TRY(find_border(p, i, &p->borders[i]));
    return HEFT_OK;
}

static heft_status plan(heft_share_plan *p, const heft_file *in, const heft_format *to,
                        uint32_t count, const heft_convert_options *opt)
{
    heft_status st = heft_conversion_plan(&p->c, in, to, opt, NULL, &p->err);
    if (!st)
        st = refuse_unplannable(p, count);
    if (!st)
        st = heft_conversion_mark_part_use(&p->c);
    if (!st)
        st = heft_source_verifier_choose(&p->uses, in, p->c.opt.no_verify, heft_conversion_part_use,
                                         &p->c, &p->err);
    if (!st)
        st = find_borders(p);
    if (!st)
        st = heft_planner_parts_in_order(&p->c.p, &p->file_order, &p->part_count, &p->err);
    p->is_own = st ? NULL : heft_plan_alloc(&p->c.p.plan, in->x.parts.len + (size_t)1);
    if (!st && !p->is_own)
        st = HEFT_E_NOMEM;
    if (!st) {
        heft_copy_context copying = context(p, &p->uses);
        st = heft_share_compute_id(p, &copying);
    }
    if (!st && p->c.opt.planned_bytes)
        *p->c.opt.planned_bytes = p->c.p.plan.file_bytes;
    return heft_file_leave_after(in, st, &p->err);
}

/* Return the status, with the error for the caller. */
static heft_status end(const heft_share_plan *p, heft_status st, heft_error *err)
{
    if (err)
        *err = p->err;
    return heft_error_end(err, st);
}

heft_status heft_share_open(heft_share_plan **out, const heft_file *in, const heft_format *to,
                            uint32_t count, const heft_convert_options *opt, heft_error *err)
{
    const heft_allocator *al = in->host->allocator;
    heft_share_plan *p = heft_alloc(al, sizeof *p, 64);
    *out = NULL;
    if (!p)
        return heft_error_no_memory(err, "to plan shares");
    memset(p, 0, sizeof *p);
    p->host = in->host;
    p->count = count;
    heft_status st = end(p, plan(p, in, to, count, opt), err);
    if (st)
        heft_share_close(p);
    else
        *out = p;
    return st;
}

void heft_share_close(heft_share_plan *p)
{
    if (!p)
        return;
    if (p->uses.f)
        heft_ledger_free(&p->uses);
    heft_conversion_release(&p->c);
    heft_free(p->host->allocator, p, sizeof *p, 64);
}

heft_hash heft_share_id(const heft_share_plan *p)
{
    return p->id;
}

uint64_t heft_share_size(const heft_share_plan *p)
{
    return p->c.p.plan.file_bytes;
}

heft_range heft_share_range(const heft_share_plan *p, uint32_t number)
{
    if (number - 1 >= p->count)
        return (heft_range){ 0, 0 };
    uint64_t from = p->borders[number - 1];
    return (heft_range){ from, p->borders[number] - from };
}

static heft_range overlap(heft_range a, heft_range b)
{
    uint64_t from = a.offset > b.offset ? a.offset : b.offset;
    uint64_t to = a.offset + a.length < b.offset + b.length ? a.offset + a.length
                                                            : b.offset + b.length;
    return (heft_range){ from, from < to ? to - from : 0 };
}

static heft_range part_range(const heft_share_plan *p, uint32_t i)
{
    const heft_ix_part_row *row = heft_ix_part_row_at(&p->c.p.x, p->file_order[i]);
    return (heft_range){ row->offset, row->stored };
}

/* Return the number of bytes of parts in a range, without the record headers between them. */
static uint64_t payload_in(const heft_share_plan *p, heft_range r)
{
    uint64_t sum = 0;
    heft_bisect b = { .end = p->part_count };
    while (heft_bisect_next(&b)) {
        heft_range part = part_range(p, b.mid);
        heft_bisect_narrow(&b, part.offset + part.length <= r.offset);
    }
    for (uint32_t i = b.first; i < p->part_count; i++) {
        heft_range part = part_range(p, i);
        if (part.offset >= r.offset + r.length)
            break;
        sum += overlap(part, r).length;
    }
    return sum;
}

uint64_t heft_share_bytes_in(const heft_share_plan *p, uint32_t number, heft_range r)
{
    uint64_t most = r.offset < heft_share_size(p) ? heft_share_size(p) - r.offset : 0;
    r.length = r.length < most ? r.length : most;
    r = overlap(r, heft_share_range(p, number));
    return p->c.p.plan.needs_preceding_digests ? payload_in(p, r) : r.length;
}

/* ---- parts of a share ---- */

static void mark(heft_share_plan *p, const heft_origin *o, uint8_t value)
{
    const heft_ix_tensor_row *row = o->layout_target ? heft_ix_row(&p->c.in->x, o->tensor) : NULL;
    for (uint32_t k = 0; row && k < row->part_count; k++)
        p->is_own[row->first_part + k] = value;
    if (!row)
        p->is_own[o->part] = value;
}

/* A part of the input belongs to the share that writes the first byte made from the part; unused
 * parts belong to the first share. */
static void mark_own(heft_share_plan *p, uint32_t number, heft_range r)
{
    const heft_plan *plan = &p->c.p.plan;
    const heft_origin *origins = p->c.origins.ptr;
    bool is_last = number == p->count;
    p->is_first = number == 1;
    memset(p->is_own, p->is_first, p->c.in->x.parts.len);
    for (uint32_t i = 0; i < plan->order_count; i++)
        mark(p, &origins[plan->order[i]], 0);
    for (uint32_t i = 0; i < plan->order_count; i++) {
        uint64_t at = heft_ix_part_row_at(&p->c.p.x, plan->order[i])->offset;
        if (at >= r.offset && (at - r.offset < r.length || is_last))
            mark(p, &origins[plan->order[i]], 1);
    }
}

static heft_part_use part_use(void *ctx, uint32_t part)
{
    heft_share_plan *p = ctx;
    return heft_conversion_part_use(&p->c, part);
}

static bool is_own(void *ctx, uint32_t part)
{
    const heft_share_plan *p = ctx;
    return part == HEFT_NONE ? p->is_first : p->is_own[part];
}

static bool is_nobodys(void *ctx, uint32_t part)
{
    (void)ctx;
    (void)part;
    return false;
}

static bool decodes_first(void *ctx, uint32_t part)
{
    heft_share_plan *p = ctx;
    return part < p->c.in->x.parts.len && p->is_own[part] &&
           heft_conversion_decodes_first(&p->c, part);
}

/* ---- writing a share ---- */

typedef struct record_writer {
    heft_sink *sink;
    heft_blake3 hash;
} record_writer;

static heft_status flush_record(void *ctx, uint64_t at, const void *data, size_t len)
{
    record_writer *w = ctx;
    heft_blake3_update(&w->hash, data, len);
    return w->sink->ops->write_at(w->sink, at, data, len, NULL);
}

static heft_status make_record(heft_blob *record, const heft_share_content *content,
                               uint32_t number, heft_error *err)
{
    uint8_t buf[4096];
    record_writer w;
    heft_hash hash;
    HEFT_TRY(heft_sink_open_memory(&w.sink, record, content->p->host, err));
    heft_blake3_init(&w.hash);
    heft_out o = { .buf = buf, .cap = sizeof buf, .flush = flush_record, .ctx = &w };
    heft_share_record_put(&o, content, number);
    heft_status st = heft_out_flush(&o);
    heft_blake3_final(&w.hash, hash.bytes);
    heft_share_record_end(&o, &hash);
    if (!st)
        st = heft_out_flush(&o);
    if (!st)
        return w.sink->ops->finish(w.sink, err);
    w.sink->ops->discard(w.sink);
    return heft_error_no_memory(err, "for the record of a share");
}

static heft_status write_range(heft_share_plan *p, uint32_t number, heft_range r, heft_sink *sink,
                               heft_blob *record)
{
    heft_conversion *c = &p->c;
    heft_error *err = &p->err;
    heft_ledger v;
    heft_progress progress = { .fn = c->opt.progress, .ctx = c->opt.ctx, .total = r.length };
    heft_copy_context copying = context(p, &v);
    copying.sink = sink;
    copying.progress = &progress;
    copying.only = &r;
    mark_own(p, number, r);
    heft_partial_crcs_clear(&c->p.written);
    heft_status st = heft_source_verifier_begin_share(&v, c->in, c->opt.no_verify, part_use, is_own,
                                                      p, err);
    if (!st && !c->opt.no_verify)
        st = heft_decoded_check_require(c->in, decodes_first, p, err);
    if (!st)
        st = heft_cast_losses_begin(&copying, err);
    if (!st)
        st = heft_sink_reserve(sink, c->p.plan.file_bytes, err);
    if (!st)
        st = heft_copy(&copying, err);
    if (!st)
        st = heft_ledger_compact(&v, err);
    if (!st)
        st = heft_planner_compact_crcs(&c->p, err);
    heft_share_content content = {
        .p = p, .target = &c->p.written, .source = &v, .lost = copying.lost, .only = &r
    };
    if (!st)
        st = make_record(record, &content, number, err);
    heft_ledger_free(&v);
    return st;
}

static heft_status check_sink(const heft_sink *sink, heft_error *err)
{
    if (!sink)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "no sink is given");
    HEFT_TRY(heft_sink_check(sink, err));
    if (!sink->ops->write_at)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "shares cannot be written to a stream");
    return HEFT_OK;
}

/* Leave the input and end the sink. */
static heft_status end_sink(heft_share_plan *p, heft_sink *take, heft_status st)
{
    return heft_sink_end(take, heft_file_end_reading(p->c.in, st, &p->err), &p->err);
}

heft_status heft_share_write(heft_blob *record, heft_share_plan *p, uint32_t number,
                             heft_sink *take, heft_error *err)
{
    *record = (heft_blob){ NULL, 0, NULL };
    heft_error_begin(&p->err, &p->err);
    p->c.p.plan.err = p->c.p.x.err = &p->err;
    heft_file_enter(p->c.in);
    heft_status st = check_sink(take, &p->err);
    if (!st && number - 1 >= p->count)
        st = heft_error_plain(&p->err, HEFT_E_ARGUMENT, "there is no share %U of %U",
                              (uint64_t)number, (uint64_t)p->count);
    if (!st)
        st = write_range(p, number, heft_share_range(p, number), take, record);
    st = end_sink(p, take, st);
    if (st)
        heft_blob_free(record);
    return end(p, st, err);
}

/* ---- joining ---- */

heft_status heft_share_check(const heft_share_plan *p, heft_str record, uint32_t number,
                             heft_error *err)
{
    heft_error own;
    uint32_t found;
    heft_share_content content = { .p = p };
    err = heft_error_begin(err, &own);
    HEFT_TRY(heft_share_record_read(&content, record, &found, err));
    if (found != number)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "this is the record of share %U, not %U",
                                (uint64_t)found, (uint64_t)number);
    return HEFT_OK;
}

/* Read all records; each share has to be there once. */
static heft_status read_records(const heft_share_content *content, const heft_str *records,
                                uint32_t count, heft_error *err)
{
    const heft_share_plan *p = content->p;
    uint8_t *seen = heft_plan_alloc((heft_plan *)&content->p->c.p.plan, p->count);
    if (!seen)
        return heft_error_no_memory(err, "for records of shares");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = 0;
        HEFT_TRY(heft_share_record_read(content, records[i], &number, err));
        if (seen[number - 1])
            return heft_error_plain(err, HEFT_E_ARGUMENT, "the record of share %U is there twice",
                                    (uint64_t)number);
        seen[number - 1] = 1;
    }
    for (uint32_t i = 0; i < p->count; i++)
        if (!seen[i])
            return heft_error_plain(err, HEFT_E_ARGUMENT, "the record of share %U of %U is missing",
                                    (uint64_t)i + 1, (uint64_t)p->count);
    return HEFT_OK;
}

/* Every digest that a single share had to compute must be in a record. */
static heft_status require_content(const heft_share_content *content, heft_error *err)
{
    const heft_planner *planner = &content->p->c.p;
    const heft_ledger *v = content->source;
    bool is_complete = true;
    for (uint32_t i = 0; i < planner->plan.order_count && is_complete; i++) {
        uint32_t part = planner->plan.order[i];
        const heft_digest *d = heft_planner_digest_of(planner, part);
        is_complete = !d || heft_digest_joins(d) ||
                      !heft_ix_part_row_at(&planner->x, part)->stored || content->has_digest[part];
    }
    for (uint32_t i = 0; i < planner->plan.order_count && is_complete; i++) {
        const heft_origin *o = (const heft_origin *)content->p->c.origins.ptr +
                               planner->plan.order[i];
        uint32_t checksum = heft_ledger_in_order(v, o->part);
        is_complete = checksum == HEFT_NONE || content->has_state[checksum];
    }
    return is_complete ? HEFT_OK
                       : heft_error_plain(err, HEFT_E_ARGUMENT,
                                          "the records of the shares lack a digest of a tensor");
}

/* Read the records and verify the checksums of the input. */
static heft_status join(heft_share_plan *p, const heft_str *records, uint32_t count, heft_ledger *v)
{
    heft_conversion *c = &p->c;
    heft_error *err = &p->err;
    heft_copy_context copying = context(p, v);
    heft_status st = heft_cast_losses_begin(&copying, err);
    heft_share_content content = {
        .p = p, .target = &c->p.written, .source = v, .lost = copying.lost
    };
    content.has_digest = heft_plan_alloc(&c->p.plan, c->p.x.parts.len + (size_t)1);
    content.has_state = heft_plan_alloc(&c->p.plan, v->checksums + (size_t)1);
    if (!content.has_digest || !content.has_state)
        return heft_error_no_memory(err, "for records of shares");
    heft_partial_crcs_clear(&c->p.written);
    if (!st)
        st = read_records(&content, records, count, err);
    if (!st)
        st = require_content(&content, err);
    if (!st)
        st = heft_source_verifier_end(v, err);
    return st ? st : heft_cast_losses_report(&copying, err);
}

/* Write everything but the payload. */
static heft_status write_frame(heft_share_plan *p, heft_sink *sink)
{
    heft_planner *planner = &p->c.p;
    HEFT_TRY(heft_sink_reserve(sink, planner->plan.file_bytes, &p->err));
    HEFT_TRY(heft_planner_emit(planner, HEFT_HEADER, sink, &p->err));
    return heft_planner_close_file(planner, sink, &p->err);
}

heft_status heft_share_join(heft_share_plan *p, const heft_str *records, uint32_t count,
                            heft_sink *take, heft_error *err)
{
    heft_ledger v;
    heft_error_begin(&p->err, &p->err);
    p->c.p.plan.err = p->c.p.x.err = &p->err;
    heft_file_enter(p->c.in);
    heft_status st = check_sink(take, &p->err);
    if (!st) {
        st = heft_source_verifier_begin_share(&v, p->c.in, p->c.opt.no_verify, part_use, is_nobodys,
                                              p, &p->err);
        if (!st)
            st = join(p, records, count, &v);
        heft_ledger_free(&v);
    }
    if (!st)
        st = write_frame(p, take);
    return end(p, end_sink(p, take, st), err);
}
