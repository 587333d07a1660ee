/* convert.c - convert the model of a file, changed by the options, to a format. */
#include "core/write/convert/convert.h"

#include <heft/scheme.h>

#include "core/check/verification.h"
#include "core/read/decode.h"
#include "core/read/input_window.h"
#include "core/read/stream.h"
#include "core/write/convert/copy.h"
#include "core/write/plan/plan.h"
#include "model/quality.h"
#include "scheme/refuse.h"

static void *progress_ctx(const heft_conversion *c)
{
    return c->scope.progress_ctx ? c->scope.progress_ctx : c->opt.ctx;
}

/* Set *at to the offset in the decoded bytes where a part of the input breaks the rule, or to
 * HEFT_NOWHERE. */
static heft_status check_part(uint64_t *at, const heft_file *f, uint32_t part, heft_value_rule rule,
                              heft_error *err)
{
    heft_stream s;
    heft_chunks c;
    *at = HEFT_NOWHERE;
    HEFT_TRY(heft_stream_start(&s, f, part, err));
    heft_status st = heft_chunks_open(&c, f->host->allocator, NULL, s.row.length, err);
    while (!st && *at == HEFT_NOWHERE && heft_chunks_next(&c)) {
        st = heft_stream_read(c.buf, &s, c.len, err);
        size_t i = st ? c.len : heft_value_rule_broken_at(rule, c.data, c.len, !c.left);
        *at = i < c.len ? c.at + i : HEFT_NOWHERE;
    }
    heft_chunks_close(&c);
    heft_stream_stop(&s);
    return st;
}

/* Values that break a rule of the input's own format are damage. */
static heft_status damaged(const heft_conversion *c, uint32_t part, uint64_t at,
                           heft_value_rule rule)
{
    const heft_index *x = &c->in->x;
    const heft_ix_part_row *p = heft_ix_part_row_at(x, part);
    uint64_t offset = p->offset + (p->encoding == HEFT_RAW ? at : 0);
    heft_error_plain(c->err, HEFT_E_FORMAT, "%s", heft_value_rule_text(rule));
    heft_error_rule(c->err, HEFT_E_FORMAT, heft_value_rule_name(rule));
    return heft_file_error_at(c->in, offset, HEFT_E_FORMAT, c->err);
}

/* Implement heft_plan_source.check_values; ctx is a heft_conversion. */
static heft_status conversion_check_values(void *ctx, uint32_t tensor, heft_value_rule *broken)
{
    heft_conversion *c = ctx;
    const heft_ix_tensor_row *row = heft_ix_row(&c->p.x, tensor);
    const heft_origin *origins = c->origins.ptr;
    heft_status st = HEFT_OK;
    *broken = HEFT_ANY_VALUE;
    for (uint32_t i = row->first_part; i < row->first_part + row->part_count && !st; i++) {
        heft_value_rule rule = heft_value_rule_of(&c->p.x, i);
        uint64_t at;
        /* A cast produces valid values. */
        if (!rule || origins[i].dtype != heft_ix_part_row_at(&c->p.x, i)->dtype)
            continue;
        st = check_part(&at, c->in, origins[i].part, rule, c->err);
        if (st || at == HEFT_NOWHERE)
            continue;
        if (c->in->x.strict && !c->opt.no_verify)
            return damaged(c, origins[i].part, at, rule);
        *broken = rule;
    }
    return st;
}

/* ---- the plan ---- */

static heft_status find_duplicates(void *ctx, uint32_t *duplicate_of, bool contents)
{
    heft_conversion *c = ctx;
    heft_dedup dedup = { .contents = contents,
                         .equal_id = c->scope.equal_id,
                         .progress = c->opt.progress,
                         .ctx = progress_ctx(c) };
    return heft_dedup_parts(duplicate_of, &c->p, c->in, c->origins.ptr, &dedup, c->err);
}

/* Return the tensor of the input that a tensor comes from, or HEFT_NONE if the tensor has no
 * parts. */
static uint32_t source_of(const heft_conversion *c, uint32_t tensor)
{
    const heft_ix_tensor_row *row = heft_ix_row(&c->p.x, tensor);
    const heft_origin *o = c->origins.ptr;
    return row->part_count ? heft_ix_owner(&c->in->x, o[row->first_part].part) : HEFT_NONE;
}

static heft_str source_name(const void *ctx, uint32_t tensor)
{
    const heft_conversion *c = ctx;
    uint32_t source = source_of(c, tensor);
    return source == HEFT_NONE ? heft_ix_name(&c->p.x, tensor) : heft_ix_name(&c->in->x, source);
}

static const uint8_t *source_base_id(const void *ctx, uint32_t tensor)
{
    const heft_conversion *c = ctx;
    uint32_t source = source_of(c, tensor);
    return source == HEFT_NONE ? NULL : heft_ix_base_id_at(&c->in->x, source);
}

static heft_status check_quantised(void *ctx, uint32_t tensor, bool *is_part)
{
    heft_conversion *c = ctx;
    const heft_schemes *s = c->opt.schemes;
    uint32_t source = source_of(c, tensor);
    *is_part = false;
    if (c->opt.raw_tensors)
        return HEFT_OK;
    heft_status st = s ? HEFT_OK : heft_schemes_of_file(&s, c->in, c->err);
    *is_part = !st && source != HEFT_NONE && heft_schemes_find(s, source) != HEFT_NONE;
    return st;
}

/* Check the order of a sparse tensor that is copied unchanged; converted tensors are always in
 * order. */
static heft_status check_order(void *ctx, uint32_t tensor, bool *strictly)
{
    heft_conversion *c = ctx;
    const heft_ix_tensor_row *row = heft_ix_row(&c->p.x, tensor);
    const heft_origin *o = (const heft_origin *)c->origins.ptr + row->first_part;
    heft_sparse_order order;
    *strictly = true;
    if (o->layout_target)
        return HEFT_OK;
    heft_status st = heft_sparse_check(c->in, heft_ix_owner(&c->in->x, o->part), false, &order,
                                       c->err);
    *strictly = !st && order.is_ascending && !order.has_duplicates;
    return st == HEFT_E_FORMAT ? HEFT_OK : st;
}

/* Report how many bytes the file grows because the target cannot share bytes between tensors. */
static heft_status note_shared_bytes(heft_conversion *c)
{
    heft_error text;
    uint32_t all = c->p.x.parts.len;
    uint64_t count = 0, bytes = 0;
    heft_dedup dedup = { .contents = false };
    uint32_t *duplicate_of = heft_plan_alloc(&c->p.plan, all * sizeof *duplicate_of);
    if (!duplicate_of)
        return HEFT_E_NOMEM;
    for (uint32_t i = 0; i < all; i++)
        duplicate_of[i] = i;
    heft_status st = heft_dedup_parts(duplicate_of, &c->p, c->in, c->origins.ptr, &dedup, c->err);
    for (uint32_t i = 0; i < all; i++) {
        count += duplicate_of[i] != i;
        bytes += duplicate_of[i] != i ? heft_ix_part_row_at(&c->p.x, i)->length : 0;
    }
    if (st || !count)
        return st;
    heft_error_plain(&text, HEFT_OK,
                     "%U %s bytes with others, which %s cannot store: the file grows by %U bytes",
                     count, count == 1 ? "tensor shares its" : "tensors share their",
                     c->p.format->name, bytes);
    return heft_plan_loss(&c->p.plan, HEFT_NOTE, "heft/tied", HEFT_NONE, text.message);
}

static heft_status use_existing_parts(heft_conversion *c)
{
    const heft_origin *o = c->origins.ptr;
    heft_str *digest_texts = heft_plan_alloc(&c->p.plan, c->p.x.parts.len * sizeof *digest_texts);
    if (!digest_texts)
        return HEFT_E_NOMEM;
    for (uint32_t i = 0; i < c->p.x.parts.len; i++)
        digest_texts[i] = heft_ix_digest_of(&c->in->x, o[i].part);
    c->p.plan.digest_texts = digest_texts;
    c->p.plan.shards = c->scope.shards;
    c->p.plan.shard_count = c->scope.shard_count;
    return HEFT_OK;
}

/* Nobody would notice that tensors of a missing shard are absent.  If the caller chooses tensors,
 * only the shards with their bytes are needed, and opened when the bytes are read. */
static heft_status require_shards(heft_conversion *c)
{
    if (!c->opt.keep)
        return heft_file_is_complete(c->in, c->err);
    if (c->in->missing)
        *c->err = *c->in->missing;
    return c->in->missing ? c->in->missing->status : HEFT_OK;
}

/* A file without tensors is not the model of an input whose tensors are all left out. */
static heft_status require_tensors(heft_conversion *c)
{
    const heft_index *in = &c->in->x;
    bool loses_all = (!heft_ix_tensors(in) && in->left_out) || (c->p.dropped && !c->scope.only);
    if (heft_ix_tensors(&c->p.x) || !loses_all)
        return HEFT_OK;
    return heft_error_rule(c->err,
                           heft_error_plain(c->err, HEFT_E_UNSUPPORTED,
                                            "no tensor would be written: everything is left out%s",
                                            c->p.listed),
                           "heft/all-left-out");
}

static heft_status plan_conversion(heft_conversion *c)
{
    c->p.x.err = c->p.plan.err = c->err;
    HEFT_TRY(require_shards(c));
    if (c->p.format == c->in->format)
        c->p.x.generator = c->in->x.generator;
    heft_status st = HEFT_OK;
    if (c->opt.generator.ptr)
        st = heft_planner_generator(&c->p, c->opt.generator, c->err);
    if (!st)
        st = heft_same_format_version(&c->p, c->in, c->err);
    if (!st)
        st = heft_left_out_losses(&c->p, c->in);
    if (!st)
        st = heft_conversion_add_tensors(c);
    if (!st)
        st = heft_same_format_losses(&c->p, c->in);
    if (!st)
        st = heft_conversion_add_metadata(c);
    if (!st)
        st = heft_conversion_add_model_parts(c);
    if (!st && c->scope.shards)
        st = use_existing_parts(c);
    c->p.plan.fills_metadata = !c->opt.exact_metadata && !c->scope.metadata_from;
    c->p.plan.source = (heft_plan_source){
        .ctx = c,
        .name = source_name,
        .base_id = source_base_id,
        .find_duplicates = find_duplicates,
        .is_sorted = check_order,
        .check_values = conversion_check_values,
        .check_quantised = check_quantised,
    };
    if (!st)
        st = heft_conversion_add_vocab(c);
    if (!st)
        st = heft_planner_run(&c->p, c->err);
    if (!st)
        st = require_tensors(c);
    if (!st && !c->p.plan.duplicate_of)
        st = note_shared_bytes(c);
    if (!st && c->opt.planned_bytes)
        *c->opt.planned_bytes = heft_planner_max_bytes(&c->p);
    return st;
}

static uint64_t payload_bytes(const heft_conversion *c)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->p.plan.order_count; i++)
        sum += heft_ix_part_row_at(&c->p.x, c->p.plan.order[i])->length;
    return sum;
}

/* Count lost values in advance, since a stream cannot be taken back and a dry run writes
 * nothing. */
static heft_status count_cast_losses(heft_conversion *c)
{
    heft_ledger off;
    heft_progress progress = { .fn = c->opt.progress,
                               .ctx = progress_ctx(c),
                               .total = payload_bytes(c) };
    heft_copy_context copying = { &c->p, c->in, c->origins.ptr,   NULL, &off, &progress,
                                  NULL,  NULL,  c->opt.allow_nan, NULL };
    heft_status st = heft_source_verifier_begin(&off, c->in, true, NULL, NULL, c->err);
    if (!st)
        st = heft_cast_losses_begin(&copying, c->err);
    if (!st)
        st = heft_cast_losses_count(&copying, c->err);
    if (!st)
        st = heft_cast_losses_report(&copying, c->err);
    heft_ledger_free(&off);
    return st;
}

static bool counts_losses_first(const heft_conversion *c, const heft_sink *sink)
{
    return c->p.opt.strict && !sink->ops->write_at;
}

/* ---- the input's checksums ---- */

heft_part_use heft_conversion_part_use(void *ctx, uint32_t part)
{
    const heft_conversion *c = ctx;
    return (heft_part_use)c->part_use[part];
}

heft_status heft_conversion_mark_part_use(heft_conversion *c)
{
    const heft_origin *origins = c->origins.ptr;
    const uint32_t *duplicate_of = c->p.plan.duplicate_of;
    c->part_use = heft_plan_alloc(&c->p.plan, c->in->x.parts.len);
    if (!c->part_use)
        return HEFT_E_NOMEM;
    for (uint32_t i = 0; duplicate_of && i < c->p.x.parts.len; i++) {
        if (duplicate_of[i] == i)
            continue;
        heft_str own = heft_ix_digest_of(&c->in->x, origins[i].part);
        /* an equal digest is checked with the first duplicate */
        if (own.len &&
            !heft_str_eq(own, heft_ix_digest_of(&c->in->x, origins[duplicate_of[i]].part)))
            c->part_use[origins[i].part] = HEFT_PART_CHECKED_BEFORE;
    }
    for (uint32_t i = 0; i < c->p.plan.order_count; i++) {
        const heft_origin *o = &origins[c->p.plan.order[i]];
        if (!o->layout_target) {
            c->part_use[o->part] = HEFT_PART_COPIED;
            continue;
        }
        /* A layout conversion reads parts in pieces, or more than once. */
        const heft_ix_tensor_row *row = heft_ix_row(&c->in->x, o->tensor);
        for (uint32_t k = row->first_part; k < row->first_part + row->part_count; k++)
            c->part_use[k] = HEFT_PART_CHECKED_BEFORE;
    }
    return HEFT_OK;
}

/* Return true if a part has to be decoded before the copy. */
bool heft_conversion_decodes_first(void *ctx, uint32_t part)
{
    const heft_conversion *c = ctx;
    /* Content that is left out is a loss only if it is not damaged. */
    if (part >= c->in->x.parts.len)
        return !c->opt.keep && !c->scope.only &&
               heft_ix_part_row_at(&c->in->x, part)->flags & HEFT_P_LEFT_OUT;
    if (c->part_use[part] == HEFT_PART_UNUSED)
        return false;
    /* The copy decodes no part that decodes to nothing. */
    return c->checks_all_first || c->part_use[part] == HEFT_PART_CHECKED_BEFORE ||
           !heft_ix_part_row_at(&c->in->x, part)->length ||
           heft_decoded_check_has_rule(c->in, part);
}

/* Check the input before the first byte goes to a stream, since a stream cannot be taken back. */
static heft_status check_input(heft_conversion *c, const heft_sink *sink)
{
    heft_status st = heft_conversion_mark_part_use(c);
    c->checks_all_first = !sink->ops->write_at;
    if (!st && c->checks_all_first && !c->opt.no_verify)
        st = heft_check_used(c->in, heft_conversion_part_use, c, c->err);
    if (!st && !c->opt.no_verify)
        st = heft_decoded_check_require(c->in, heft_conversion_decodes_first, c, c->err);
    return st || !counts_losses_first(c, sink) ? st : count_cast_losses(c);
}

/* ---- the digests of the input's origin ---- */

/* Return true if the whole input is read: a choice of tensors costs no further download. */
static bool checks_origin(const heft_conversion *c)
{
    return !c->opt.no_verify && !c->opt.dry_run && !c->opt.keep && !c->scope.only;
}

static heft_status check_origin(heft_conversion *c)
{
    bool is_stated;
    for (uint32_t i = 0; i <= c->in->opened_shard_count && checks_origin(c); i++)
        HEFT_TRY(heft_file_error_in(
            c->in, i, heft_file_check_origin_digest(c->in, i, &is_stated, c->err), c->err));
    return HEFT_OK;
}

/* ---- the steps ---- */

heft_status heft_conversion_plan(heft_conversion *c, const heft_file *in, const heft_format *to,
                                 const heft_convert_options *opt,
                                 const heft_conversion_scope *scope, heft_error *err)
{
    *c = (heft_conversion){ .in = in, .opt = HEFT_CONVERT_OPTIONS_INIT };
    c->err = heft_error_begin(err, &c->own_err);
    heft_status st = heft_sized_copy(&c->opt, sizeof c->opt, opt, c->err);
    if (scope)
        c->scope = *scope;
    if (!st)
        st = heft_planner_init(&c->p, to, c->opt.write, c->err);
    if (!st && !c->scope.is_shard)
        st = heft_planner_check_single(&c->p, c->err);
    heft_file_enter(in);       /* the input lends names and metadata, too */
    if (!st && !c->scope.only) /* a caller that chose tensors has checked all lengths */
        st = heft_check_lengths(in, c->err);
    return st ? st : plan_conversion(c);
}

/* Add the tensors whose rows are encoded to those that are measured. */
static heft_status begin_quality(const heft_conversion *c)
{
    heft_quality *q = HEFT_IS_LEAN ? NULL : c->opt.quality;
    heft_origin *o = c->origins.ptr;
    for (uint32_t i = 0; q && i < c->p.plan.order_count; i++) {
        uint32_t part = c->p.plan.order[i];
        const heft_ix_part_row *row = heft_ix_part_row_at(&c->p.x, part);
        if (o[part].row)
            HEFT_TRY(heft_quality_add(&o[part].quality, q,
                                      heft_ix_name(&c->p.x, heft_ix_owner(&c->p.x, part)),
                                      o[part].dtype, heft_dtype_get(row->dtype)->name, c->err));
    }
    return HEFT_OK;
}

/* Write the payload.  Earlier reads, as of equal tensors, are not measured. */
static heft_status copy_payload(heft_conversion *c, const heft_copy_context *copying)
{
    heft_quality *q = HEFT_IS_LEAN ? NULL : c->opt.quality;
    HEFT_TRY(begin_quality(c));
    if (q)
        q->is_writing = true;
    heft_status st = c->p.plan.appended ? heft_copy_encoded(copying, c->err)
                                        : heft_copy(copying, c->err);
    if (q)
        q->is_writing = false;
    return st;
}

heft_status heft_conversion_write(heft_conversion *c, heft_sink *target)
{
    const heft_plan *plan = &c->p.plan;
    heft_inserting_sink inserting;
    heft_sink *sink = target;
    heft_ledger ledger;
    heft_progress progress = { .fn = c->opt.progress, .ctx = progress_ctx(c) };
    heft_copy_context copying = { &c->p, c->in, c->origins.ptr,   sink,          &ledger, &progress,
                                  NULL,  NULL,  c->opt.allow_nan, c->opt.quality };
    if (c->opt.dry_run)
        return count_cast_losses(c);
    if (!sink)
        return heft_error_plain(c->err, HEFT_E_ARGUMENT, "no sink is given");
    heft_status st = heft_sink_check(sink, c->err);
    if (!st)
        copying.sink = sink = heft_sink_inserting(&inserting, target, plan);
    if (checks_origin(c))
        heft_file_begin_origin_digests(c->in);
    if (!st)
        st = check_input(c, sink);
    if (st)
        return st;
    progress.total = plan->appended ? payload_bytes(c) : plan->data_end - plan->header_bytes;
    bool is_off = !sink->ops->write_at || c->opt.no_verify;
    st = heft_source_verifier_begin(&ledger, c->in, is_off, heft_conversion_part_use, c, c->err);
    if (!st && !counts_losses_first(c, sink))
        st = heft_cast_losses_begin(&copying, c->err);
    if (!st && !plan->appended)
        heft_copy_announce(&copying);
    if (!st && plan->file_bytes)
        st = heft_sink_reserve(sink, plan->file_bytes, c->err);
    if (!st)
        st = heft_planner_emit(&c->p, HEFT_HEADER, sink, c->err);
    if (!st)
        st = copy_payload(c, &copying);
    if (!st)
        st = heft_source_verifier_end(&ledger, c->err);
    if (!st)
        st = heft_cast_losses_report(&copying, c->err);
    if (!st)
        st = heft_planner_close_file(&c->p, sink, c->err);
    if (!st)
        st = check_origin(c);
    heft_ledger_free(&ledger);
    return st;
}

void heft_conversion_release(heft_conversion *c)
{
    heft_vec_free(&c->p.x.mem, &c->origins, sizeof(heft_origin));
    heft_planner_free(&c->p);
    heft_vocab_close(c->vocab);
}

heft_status heft_conversion_end(heft_conversion *c, heft_sink *take, heft_status st)
{
    st = heft_file_end_reading(c->in, st, c->err);
    bool is_written = !st && !c->opt.dry_run;
    if (is_written && c->opt.planned_bytes) /* the size of compressed parts is known now */
        *c->opt.planned_bytes = heft_plan_size(&c->p.plan);
    heft_conversion_release(c);
    if (is_written)
        st = heft_sink_finish(take, c->err);
    else
        heft_sink_discard(take);
    return heft_error_end(c->err, st);
}

heft_status heft_convert_as(const heft_file *in, const heft_format *to, heft_sink *take,
                            const heft_convert_options *opt, const heft_conversion_scope *scope,
                            heft_error *err)
{
    heft_conversion c;
    heft_status st = heft_conversion_plan(&c, in, to, opt, scope, err);
    if (!st)
        st = heft_conversion_write(&c, take);
    return heft_conversion_end(&c, take, st);
}

/* What the output shall be can be wrong or unsupported; errors of the input have a rule or an
 * offset.  Sinks have been blamed already. */
heft_status heft_conversion_blame(heft_error *err, heft_status st)
{
    bool is_input = err->rule || err->offset != HEFT_NOWHERE;
    if (st == HEFT_E_NOMEM || st == HEFT_E_CANCELLED)
        return st;
    bool is_request = st == HEFT_E_ARGUMENT || (st == HEFT_E_UNSUPPORTED && !is_input);
    return heft_error_about(err, st, is_request ? HEFT_ABOUT_TARGET : HEFT_ABOUT_SOURCE);
}

heft_status heft_file_convert(const heft_file *in, const heft_format *to, heft_sink *take,
                              const heft_convert_options *opt, heft_error *err)
{
    heft_error own = { .status = HEFT_OK };
    err = err ? err : &own;
    return heft_conversion_blame(err, heft_convert_as(in, to, take, opt, NULL, err));
}
