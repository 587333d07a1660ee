/* file_verify.c - verifies a file: shards, checksums, structure, decoded values and sparse
 * tensors. */
#include "core/check/verification.h"

#include "core/read/sparse_read.h"

typedef struct verify {
    heft_check check; /* first member: formats report through this pointer */
    const heft_file *f;
    heft_verify_result *result;
    heft_finding_fn fn;
    void *ctx;
    heft_progress *progress;
    /* True for padding that is not to be read; or NULL. */
    bool (*skips_padding)(void *ctx, heft_range where);
    heft_memory mem; /* allocates order */
    uint32_t *order, order_count;
    uint32_t stage;              /* of the findings reported now */
    uint32_t share, share_count; /* 0: the whole file */
    uint8_t *own_parts;          /* by part, if there are shares */
} verify;

/* The stages of reporting findings. */
enum { STAGE_OPENING, STAGE_CHECKSUMS, STAGE_FORMAT, STAGE_DECODED, STAGE_SPARSE, STAGE_ORIGIN };

/* A cut of bytes into the runs of shares. */
typedef struct share_cut {
    const verify *v;
    uint64_t at, each; /* bytes so far; bytes of each share */
} share_cut;

static uint32_t share_count(const verify *v)
{
    return HEFT_IS_LEAN ? 0 : v->share_count;
}

static share_cut cut(const verify *v, uint64_t total)
{
    return (share_cut){ v, 0, share_count(v) ? heft_div(total, share_count(v)) + 1 : 1 };
}

/* Return true if the next `bytes` begin in the run of this share. */
static bool cut_next(share_cut *c, uint64_t bytes)
{
    bool is_own = !share_count(c->v) || heft_div(c->at, c->each) + 1 == c->v->share;
    c->at += bytes;
    return is_own;
}

/* Return true for the share that makes the checks that are not divided. */
static bool is_first_share(const verify *v)
{
    return HEFT_IS_LEAN || v->share <= 1;
}

static void report_finding(verify *v, const heft_finding *finding)
{
    heft_severity s = finding->severity;
    uint32_t *count = s == HEFT_FAULT     ? &v->result->faults
                      : s == HEFT_WARNING ? &v->result->warnings
                                          : &v->result->notes;
    ++*count;
    heft_finding staged = *finding;
    staged.stage = v->stage;
    if (v->fn)
        v->fn(v->ctx, &staged);
}

static void report(heft_check *c, heft_severity s, const char *rule, heft_range where,
                   uint32_t tensor, const char *text)
{
    verify *v = (verify *)c;
    heft_note note = { s, rule, text, where, tensor, false, HEFT_LEFT_OUT_NOT };
    heft_finding finding = heft_file_finding(v->f, &note);
    report_finding(v, &finding);
}

static heft_status read_bytes(heft_check *c, uint64_t offset, void *buf, size_t len)
{
    const heft_file *f = ((verify *)c)->f;
    HEFT_TRY(heft_file_count_read(f, HEFT_NONE, len, c->err));
    return heft_file_read_stored(f, offset, buf, len, c->err);
}

static bool has_bytes(heft_check *c, uint64_t offset)
{
    return heft_file_has_bytes(((verify *)c)->f, offset);
}

/* ---- shards ---- */

/* Report missing shards as faults.  If the system failed to open a shard or to list the folder,
 * return that error. */
static heft_status report_shards(verify *v)
{
    heft_range nowhere = { HEFT_NOWHERE, 0 };
    for (uint32_t i = 1; i <= v->f->x.shards.len; i++) {
        const heft_shard *shard = &v->f->opened_shards[i - 1];
        heft_error why;
        heft_status st = heft_shard_status(v->f, i, &why);
        const char *missing = st == HEFT_E_IO ? "heft/file-missing" : "heft/file-size";
        if (st && shard->is_unreadable) {
            *v->check.err = why;
            return st;
        }
        if (st)
            report(&v->check, HEFT_FAULT, shard->rule ? shard->rule : missing, nowhere, HEFT_NONE,
                   why.message);
    }
    if (v->f->list_error)
        *v->check.err = *v->f->list_error;
    return v->f->list_error ? v->f->list_error->status : HEFT_OK;
}

/* ---- padding ---- */

static heft_status padding(heft_check *c, const char *rule, heft_severity s, heft_range where,
                           uint8_t byte)
{
    verify *v = (verify *)c;
    uint8_t buf[512];
    if (c->is_quick || (v->skips_padding && v->skips_padding(v->ctx, where)))
        return HEFT_OK;
    for (uint64_t done = 0; done < where.length; done += sizeof buf) {
        size_t n = where.length - done < sizeof buf ? (size_t)(where.length - done) : sizeof buf;
        HEFT_TRY(read_bytes(c, where.offset + done, buf, n));
        size_t at = 0;
        while (at < n && buf[at] == byte)
            at++;
        if (at < n) {
            heft_range r = { where.offset + done + at, where.length - done - at };
            c->report(c, s, rule, r, HEFT_NONE, "the padding contains unexpected bytes");
            return HEFT_OK;
        }
    }
    return HEFT_OK;
}

/* ---- order ---- */

static uint64_t part_offset(const heft_index *x, uint32_t part)
{
    return heft_ix_part_row_at(x, part)->offset;
}

static heft_status part_order(heft_check *c, const uint32_t **out, uint32_t *count)
{
    verify *v = (verify *)c;
    if (!v->order)
        v->order = heft_ix_order_in(&v->mem, c->x, &v->order_count);
    if (!v->order)
        return heft_error_no_memory(c->err, "to check the layout of the data");
    *out = v->order;
    *count = v->order_count;
    while (*count && heft_global_offset_file(c->x, part_offset(c->x, v->order[*count - 1])))
        --*count; /* global offsets ascend with the number of the file */
    return HEFT_OK;
}

/* ---- checksums ---- */

static void report_checksum(verify *v, const heft_stored_checksum *c, heft_checksum_state state)
{
    heft_range where = c->range[0];
    bool is_noticed = c->advisory && c->at_open; /* reported as a notice */
    if (state == HEFT_CHECKSUM_MISMATCH && !is_noticed)
        report(&v->check, c->advisory ? HEFT_WARNING : HEFT_FAULT, c->rule, where, c->tensor,
               "the checksum does not match the bytes it covers");
    else if (state == HEFT_CHECKSUM_UNCHECKED)
        report(&v->check, HEFT_WARNING, "heft/unchecked", where, c->tensor,
               "a checksum was not checked: this build lacks its algorithm");
    else if (state == HEFT_CHECKSUM_MATCHES && c->note)
        report(&v->check, HEFT_NOTE, c->rule, where, c->tensor, c->note);
    if (state != HEFT_CHECKSUM_UNCHECKED)
        v->result->bytes_checked += c->range[0].length + c->range[1].length;
}

static heft_status check_checksums(verify *v)
{
    heft_ledger l;
    share_cut part_of = cut(v, heft_checksum_sweep_bytes(v->f));
    bool is_own = true;
    heft_status st = heft_ledger_open(&l, v->f, false, v->check.err);
    for (uint32_t i = 0; i < l.checksums && !st; i++) {
        heft_stored_checksum c = heft_ix_checksum_at(&v->f->x, i);
        if (!i || !heft_ix_checksum_is_alternative(&v->f->x, i - 1)) /* alternatives together */
            is_own = cut_next(&part_of, c.range[0].length + c.range[1].length);
        /* Skip checksums of shards that are not open, already reported as missing. */
        if (heft_file_has_bytes(v->f, c.range[0].offset) && (!v->check.is_quick || c.at_open) &&
            is_own)
            l.ways[i] = HEFT_LEDGER_SWEEP;
    }
    if (!st)
        st = heft_checksum_sweep(&l, v->progress, v->check.err);
    for (uint32_t i = 0, representative; !st && heft_ledger_next(&l, &i, &representative);) {
        heft_stored_checksum c = heft_ix_checksum_at(&v->f->x, representative);
        if (!c.decoded && l.ways[representative])
            report_checksum(v, &c, l.states[representative]);
    }
    heft_ledger_free(&l);
    return st;
}

/* ---- the format's own check ---- */

typedef struct shard_check { /* check of a joined file */
    verify check;            /* first member: the format sees only this file */
    verify *model;
    uint32_t first_shard;
    const heft_joined_file *component; /* NULL: the model is not a pipeline */
} shard_check;

/* Return the tensor of the whole model that the joined file calls `name`. */
static uint32_t find_in_model(const shard_check *m, heft_str name)
{
    const heft_joined_file *c = m->component;
    if (!c)
        return heft_ix_find(m->model->check.x, name);
    uint32_t id = heft_ix_find(&c->file->x, name);
    return id == HEFT_NONE ? id : c->first_tensor + id;
}

/* Translate offsets and tensor numbers of the joined file to the whole model. */
static void report_in_shard(heft_check *c, heft_severity s, const char *rule, heft_range where,
                            uint32_t tensor, const char *text)
{
    const shard_check *m = (const shard_check *)c;
    const heft_index *x = m->check.check.x;
    uint32_t number = m->first_shard + heft_global_offset_file(x, where.offset);
    if (where.offset != HEFT_NOWHERE)
        where.offset = heft_global_offset(number, heft_global_offset_local(x, where.offset));
    if (tensor != HEFT_NONE)
        tensor = find_in_model(m, heft_ix_name(x, tensor));
    report(&m->model->check, s, rule, where, tensor, text);
}

static heft_status check_joined_file(verify *v, const heft_joined_file *from,
                                     const heft_joined_file *component)
{
    uint32_t before = component && component != from ? component->first_shard : 0;
    shard_check m = {
        .check = *v, .model = v, .first_shard = before + from->first_shard, .component = component
    };
    if (!from->file->format->check)
        return HEFT_OK;
    m.check.f = from->file;
    m.check.check.x = &from->file->x;
    m.check.check.size = heft_file_size(from->file);
    m.check.check.report = report_in_shard;
    m.check.order = NULL;
    heft_status st = from->file->format->check(&m.check.check);
    heft_ix_order_free_in(&m.check.mem, m.check.check.x, m.check.order);
    return st;
}

/* A component is a file, perhaps with shards. */
static heft_status check_component(verify *v, const heft_joined_file *component)
{
    HEFT_TRY(check_joined_file(v, component, component));
    for (uint32_t i = 0; i < component->file->joined_count; i++)
        HEFT_TRY(check_joined_file(v, &component->file->joined_files[i], component));
    return HEFT_OK;
}

static heft_status check_format(verify *v)
{
    const heft_file *f = v->f;
    if (!f->is_pipeline && f->format->check)
        HEFT_TRY(f->format->check(&v->check));
    for (uint32_t i = 0; i < f->joined_count; i++)
        HEFT_TRY(f->is_pipeline ? check_component(v, &f->joined_files[i])
                                : check_joined_file(v, &f->joined_files[i], NULL));
    return HEFT_OK;
}

/* ---- decoded content ---- */

static void report_decoded_fault(void *ctx, const heft_decoded_fault *fault)
{
    verify *v = ctx;
    report(&v->check, fault->severity, fault->rule, fault->where, fault->tensor, fault->text);
}

/* Return the part's bytes; the parts of a file add up without overflow if the file is intact. */
static uint64_t weight(const heft_index *x, uint32_t part)
{
    uint64_t stored = heft_ix_part_row_at(x, part)->stored;
    return stored < x->file_bytes ? stored : x->file_bytes;
}

static uint64_t weight_of_all(const heft_index *x)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < x->parts.len; i++)
        sum += weight(x, i);
    return sum;
}

static bool is_own_part(void *ctx, uint32_t part)
{
    const verify *v = ctx;
    return !share_count(v) || v->own_parts[part];
}

/* Mark the parts of this share. */
static heft_status mark_own_parts(verify *v)
{
    const heft_index *x = &v->f->x;
    share_cut c = cut(v, weight_of_all(x));
    if (!share_count(v) || v->own_parts)
        return HEFT_OK;
    v->own_parts = heft_mem_alloc(&v->mem, x->parts.len + (size_t)1);
    if (!v->own_parts)
        return heft_error_no_memory(v->check.err, "to check a share");
    for (uint32_t i = 0; i < x->parts.len; i++)
        v->own_parts[i] = cut_next(&c, weight(x, i));
    return HEFT_OK;
}

static heft_status check_decoded(verify *v)
{
    heft_status st = mark_own_parts(v);
    return st ? st
              : heft_decoded_check(v->f, v->progress, is_own_part, report_decoded_fault, v,
                                   &v->result->bytes_checked, v->check.err);
}

/* ---- sparse tensors ---- */

static heft_status check_sparse(verify *v, uint32_t t)
{
    heft_error why;
    heft_sparse_order order;
    heft_status st = heft_sparse_check(v->f, t, true, &order, &why);
    if (st == HEFT_E_FORMAT)
        report(&v->check, HEFT_FAULT, "heft/sparse", order.where, t, why.message);
    if (!st && order.has_duplicates)
        report(&v->check, v->f->x.strict ? HEFT_FAULT : HEFT_WARNING, "heft/sparse-twice",
               order.where, t, "two entries have the same indices");
    if (!st && !order.is_ascending && !order.has_duplicates && v->f->x.strict)
        report(&v->check, HEFT_FAULT, "heft/sparse-order", order.where, t,
               "the columns of a row do not ascend");
    if (st != HEFT_E_NOMEM && st != HEFT_E_IO)
        return HEFT_OK;
    *v->check.err = why;
    return st;
}

static heft_status check_all_sparse(verify *v)
{
    for (uint32_t t = 0; t < heft_ix_tensors(&v->f->x); t++) {
        const heft_ix_tensor_row *row = heft_ix_row(&v->f->x, t);
        bool checks = row->layout == HEFT_SPARSE_CSR || row->layout == HEFT_SPARSE_COO;
        for (uint32_t k = 0; checks && k < row->part_count; k++)
            checks = heft_part_has_bytes(v->f, row->first_part + k);
        if (checks && is_own_part(v, row->first_part))
            HEFT_TRY(check_sparse(v, t));
    }
    return HEFT_OK;
}

/* Report with a single note everything that a quick check has skipped. */
static void report_quick(verify *v)
{
    const heft_index *x = &v->f->x;
    uint32_t checksums = 0;
    for (uint32_t i = 0; i < heft_ix_checksums(x); i++)
        checksums += !heft_ix_checksum_at(x, i).at_open && !heft_ix_checksum_is_alternative(x, i);
    if (checksums || x->parts.len)
        report(&v->check, HEFT_NOTE, "heft/quick", (heft_range){ HEFT_NOWHERE, 0 }, HEFT_NONE,
               checksums ? "the checksums of data were not checked, and their values were not read"
                         : "values and padding were not read");
}

/* ---- all checks ---- */

/* Report the findings of opening. */
static heft_status report_opening(verify *v)
{
    const heft_file *f = v->f;
    const heft_note *notes = f->x.notes.ptr;
    heft_finding notice;
    for (uint32_t i = 0, n = heft_notice_count(f); i < n; i++) {
        notice = heft_notice_at(f, i);
        if (i >= f->x.notes.len || !notes[i].is_early)
            report_finding(v, &notice);
    }
    if (!heft_ix_tensors(&f->x) && f->x.left_out)
        report_finding(v, &(heft_finding){ .severity = HEFT_FAULT,
                                           .rule = "heft/all-left-out",
                                           .where = { HEFT_NOWHERE, 0 },
                                           .tensor = HEFT_NONE,
                                           .text = "the file has no tensor that can be read",
                                           .left_out = true });
    return report_shards(v);
}

/* Compare each file with the digest that its origin states.  A share does not read whole files. */
static heft_status check_origin(verify *v)
{
    heft_error why;
    bool is_stated;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i <= v->f->opened_shard_count && !st && !share_count(v); i++) {
        st = heft_file_check_origin_digest(v->f, i, &is_stated, &why);
        uint64_t size = is_stated ? heft_file_source(v->f, i)->size : 0;
        v->result->origin_digests += is_stated;
        v->result->bytes_checked += size;
        if (st == HEFT_E_CHECKSUM)
            report(&v->check, HEFT_FAULT, "hub/sha256",
                   (heft_range){ heft_global_offset(i, 0), size }, HEFT_NONE, why.message);
        else if (st)
            *v->check.err = why;
        st = st == HEFT_E_CHECKSUM ? HEFT_OK : st;
    }
    return st;
}

static heft_status check_all(verify *v)
{
    heft_status st = is_first_share(v) ? report_opening(v) : HEFT_OK;
    v->stage = STAGE_CHECKSUMS;
    if (!st)
        st = check_checksums(v);
    v->stage = STAGE_FORMAT;
    if (!st && is_first_share(v))
        st = check_format(v);
    if (v->check.is_quick) {
        if (is_first_share(v))
            report_quick(v);
        return st;
    }
    if (!HEFT_IS_LEAN && !st && is_first_share(v))
        st = heft_check_boxes(&v->check, v->f, v->progress, v->result);
    v->stage = STAGE_DECODED;
    if (!st)
        st = check_decoded(v);
    v->stage = STAGE_SPARSE;
    if (!st)
        st = check_all_sparse(v);
    v->stage = STAGE_ORIGIN;
    return st ? st : check_origin(v);
}

static verify begin(const heft_file *f, heft_finding_fn fn, void *ctx, heft_error *err)
{
    return (verify){
        .check = { .x = &f->x,
                   .size = heft_file_size(f),
                   .report = report,
                   .padding = padding,
                   .read = read_bytes,
                   .can_read = has_bytes,
                   .order = part_order,
                   .err = err },
        .f = f,
        .fn = fn,
        .ctx = ctx,
        .mem = { f->host->allocator, UINT64_MAX, 0 },
    };
}

heft_status heft_file_verify(heft_verify_result *out, const heft_file *f,
                             const heft_verify_options *opt, heft_error *err)
{
    heft_verify_result own_result;
    heft_error own_error;
    heft_verify_options o = HEFT_VERIFY_OPTIONS_INIT;
    err = heft_error_begin(err, &own_error);
    HEFT_TRY(heft_sized_copy(&o, sizeof o, opt, err));
    if (o.share > (HEFT_IS_LEAN ? 0 : o.share_count) || (o.share_count && !o.share))
        return heft_error_plain(err, HEFT_E_ARGUMENT, "there is no share %U of %U",
                                (uint64_t)o.share, (uint64_t)o.share_count);
    heft_progress progress = { .fn = o.progress, .ctx = o.ctx };
    verify v = begin(f, o.on_finding, o.ctx, err);
    v.result = out ? out : &own_result;
    v.progress = &progress;
    v.check.is_quick = o.quick;
    v.share = o.share;
    v.share_count = o.share_count;
    *v.result = (heft_verify_result){ .notes = 0 };
    heft_file_enter(f); /* names and digests are mapped, too */
    if (!o.quick && !share_count(&v))
        heft_file_begin_origin_digests(f);
    if (!o.quick)
        progress.total = heft_checksum_sweep_bytes(f) + heft_decoded_check_bytes(f) +
                         (HEFT_IS_LEAN ? 0 : heft_check_boxes_bytes(f));
    heft_status st = check_all(&v);
    if (!st)
        st = heft_file_coverage(v.result, f, o.quick, err);
    st = heft_file_end_reading(f, st, err);
    heft_mem_free(&v.mem, v.own_parts, f->x.parts.len + (size_t)1);
    heft_ix_order_free_in(&v.mem, &f->x, v.order);
    return heft_error_end(err, st);
}

heft_status heft_verify_layout(const heft_file *f,
                               bool (*skips_padding)(void *ctx, heft_range where),
                               heft_finding_fn fn, void *ctx, heft_error *err)
{
    heft_verify_result result = { .notes = 0 };
    verify v = begin(f, fn, ctx, err);
    v.result = &result;
    v.skips_padding = skips_padding;
    heft_status st = check_format(&v);
    heft_ix_order_free_in(&v.mem, &f->x, v.order);
    return st;
}
