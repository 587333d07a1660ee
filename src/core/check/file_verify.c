/* file_verify.c - what a file asserts about itself, and what its format demands. */
#include "core/check/file_verify.h"

#include "core/check/checksum_sweep.h"
#include "core/check/decoded_check.h"
#include "core/read/sparse_read.h"

typedef struct verify {
    heft_check check; /* first: formats report through it */
    const heft_file *f;
    heft_verify_result *result;
    heft_finding_fn fn;
    void *ctx;
    heft_progress *meter;
    bool (*passes)(void *ctx, heft_range where); /* of padding that is not looked at; or NULL */
    heft_memory mem;                             /* of the order */
    uint32_t *order, order_count;
} verify;

static void report_finding(verify *v, const heft_finding *finding)
{
    heft_severity s = finding->severity;
    uint32_t *count = s == HEFT_FAULT     ? &v->result->faults
                      : s == HEFT_WARNING ? &v->result->warnings
                                          : &v->result->notes;
    ++*count;
    if (v->fn)
        v->fn(v->ctx, finding);
}

static void report(heft_check *c, heft_severity s, const char *rule, heft_range where,
                   uint32_t tensor, const char *text)
{
    verify *v = (verify *)c;
    heft_note note = { s, rule, text, where, tensor, false };
    heft_finding finding = heft_file_finding(v->f, &note);
    report_finding(v, &finding);
}

static heft_status bytes(heft_check *c, uint64_t place, void *buf, size_t len)
{
    return heft_file_bytes(((verify *)c)->f, place, buf, len, c->err);
}

static bool has(heft_check *c, uint64_t place)
{
    return heft_file_has(((verify *)c)->f, place);
}

/* ---- files beside the file ---- */

/* A file that is not there is a fault; one of which the system does not say anything ends the check. */
static heft_status report_siblings(verify *v)
{
    heft_range nowhere = { HEFT_NOWHERE, 0 };
    for (uint32_t i = 1; i <= v->f->x.shards.len; i++) {
        const heft_shard *b = &v->f->opened_shards[i - 1];
        heft_error why;
        heft_status st = heft_shard_status(v->f, i, &why);
        const char *missing = st == HEFT_E_IO ? "heft/file-missing" : "heft/file-size";
        if (st && b->is_unknown) {
            *v->check.err = why;
            return st;
        }
        if (st)
            report(&v->check, HEFT_FAULT, b->rule ? b->rule : missing, nowhere, HEFT_NONE,
                   why.message);
    }
    if (v->f->listing.status)
        *v->check.err = v->f->listing;
    return v->f->listing.status;
}

/* ---- padding ---- */

static heft_status padding(heft_check *c, const char *rule, heft_severity s, heft_range where,
                           uint8_t byte)
{
    verify *v = (verify *)c;
    uint8_t buf[512];
    if (c->is_quick || (v->passes && v->passes(v->ctx, where)))
        return HEFT_OK;
    for (uint64_t done = 0; done < where.length; done += sizeof buf) {
        size_t n = where.length - done < sizeof buf ? (size_t)(where.length - done) : sizeof buf;
        heft_status st = heft_file_bytes(v->f, where.offset + done, buf, n, c->err);
        if (st)
            return st;
        size_t at = 0;
        while (at < n && buf[at] == byte)
            at++;
        if (at < n) {
            heft_range r = { where.offset + done + at, where.length - done - at };
            c->report(c, s, rule, r, HEFT_NONE, "the padding is not made of the byte it should be");
            return HEFT_OK;
        }
    }
    return HEFT_OK;
}

/* ---- order ---- */

static heft_status order(heft_check *c, const uint32_t **out, uint32_t *count)
{
    verify *v = (verify *)c;
    if (!v->order)
        v->order = heft_ix_order_in(&v->mem, c->x, &v->order_count);
    if (!v->order)
        return heft_error_no_memory(c->err, "to check where the data lie");
    *out = v->order;
    *count = v->order_count;
    return HEFT_OK;
}

/* ---- checksums ---- */

static void report_claim(verify *v, const heft_stored_checksum *c, heft_checksum_state state)
{
    heft_range where = c->range[0];
    bool is_told = c->advisory && c->at_open; /* as a notice */
    if (state == HEFT_CHECKSUM_MISMATCH && !is_told)
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

static heft_status check_claims(verify *v)
{
    heft_memory mem = { v->f->host->allocator, UINT64_MAX, 0 };
    uint32_t claims = heft_ix_checksums(&v->f->x);
    size_t room = claims * (sizeof(heft_checksum_state) + 1);
    if (!claims)
        return HEFT_OK;
    heft_checksum_state *states = heft_mem_alloc(&mem, room);
    if (!states)
        return heft_error_no_memory(v->check.err, "to check checksums");
    uint8_t *skip = (uint8_t *)(states + claims);
    for (uint32_t i = 0; i < claims; i++) {
        heft_stored_checksum c = heft_ix_checksum_at(&v->f->x, i);
        /* Of files that are not at hand, which has been reported, nothing can be said. */
        skip[i] = !heft_file_has(v->f, c.range[0].offset) || (v->check.is_quick && !c.at_open);
    }
    heft_status st = heft_checksum_sweep(states, v->f, skip, v->meter, v->check.err);
    for (uint32_t i = 0, pick; !st && heft_checksums_next(v->f, states, &i, &pick);) {
        heft_stored_checksum c = heft_ix_checksum_at(&v->f->x, pick);
        if (!c.decoded && !skip[pick])
            report_claim(v, &c, states[pick]);
    }
    heft_mem_free(&mem, states, room);
    return st;
}

/* ---- the format's own check ---- */

typedef struct member { /* a file of several */
    verify own;         /* first: the format sees only that file */
    verify *all;
    uint32_t base;
} member;

/* Places and tensors have other numbers in the model as a whole. */
static void report_member(heft_check *c, heft_severity s, const char *rule, heft_range where,
                          uint32_t tensor, const char *text)
{
    const member *m = (const member *)c;
    const heft_index *x = m->own.check.x;
    uint32_t number = m->base + heft_global_offset_file(x, where.offset);
    if (where.offset != HEFT_NOWHERE)
        where.offset = heft_global_offset(number, heft_global_offset_local(x, where.offset));
    if (tensor != HEFT_NONE)
        tensor = heft_ix_find(m->all->check.x, heft_ix_name(x, tensor));
    report(&m->all->check, s, rule, where, tensor, text);
}

static heft_status check_member(verify *v, const heft_joined_file *from)
{
    member m = { .own = *v, .all = v, .base = from->base };
    m.own.f = from->file;
    m.own.check.x = &from->file->x;
    m.own.check.size = heft_file_size(from->file);
    m.own.check.report = report_member;
    m.own.order = NULL;
    heft_status st = from->file->format->check(&m.own.check);
    heft_ix_order_free_in(&m.own.mem, m.own.check.x, m.own.order);
    return st;
}

static heft_status check_format(verify *v)
{
    heft_status st = v->f->format->check ? v->f->format->check(&v->check) : HEFT_OK;
    for (uint32_t i = 0; i < v->f->joined_count && !st; i++)
        if (v->f->joined_files[i].file->format->check)
            st = check_member(v, &v->f->joined_files[i]);
    return st;
}

/* ---- contents ---- */

static void report_content(void *ctx, const heft_decoded_fault *found)
{
    verify *v = ctx;
    report(&v->check, found->severity, found->rule, found->where, found->tensor, found->text);
}

/* ---- sparse tensors ---- */

static heft_status check_sparse(verify *v, uint32_t t)
{
    heft_error why;
    heft_sparse_order order;
    heft_range nowhere = { HEFT_NOWHERE, 0 };
    heft_status st = heft_sparse_check(v->f, t, &order, &why);
    if (st == HEFT_E_FORMAT)
        report(&v->check, HEFT_FAULT, "heft/sparse", nowhere, t, why.message);
    if (!st && order.twice)
        report(&v->check, v->f->x.strict ? HEFT_FAULT : HEFT_WARNING, "heft/sparse-twice", nowhere,
               t, "two entries are in the same place");
    if (!st && !order.ascends && !order.twice && v->f->x.strict)
        report(&v->check, HEFT_FAULT, "heft/sparse-order", nowhere, t,
               "the columns of a row do not ascend");
    if (st != HEFT_E_NOMEM && st != HEFT_E_IO)
        return HEFT_OK;
    *v->check.err = why;
    return st;
}

static heft_status check_all_sparse(verify *v)
{
    heft_status st = HEFT_OK;
    for (uint32_t t = 0; t < heft_ix_tensors(&v->f->x) && !st; t++) {
        const heft_ix_tensor_row *row = heft_ix_row(&v->f->x, t);
        bool checks = row->layout == HEFT_SPARSE_CSR || row->layout == HEFT_SPARSE_COO;
        for (uint32_t k = 0; checks && k < row->part_count; k++)
            checks = heft_file_has(v->f,
                                   heft_ix_part_row_at(&v->f->x, row->first_part + k)->offset);
        if (checks)
            st = check_sparse(v, t);
    }
    return st;
}

/* What a quick check has left out, in one note. */
static void report_left_out(verify *v)
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

static heft_status check_all(verify *v)
{
    const heft_file *f = v->f;
    const heft_note *notes = f->x.notes.ptr;
    heft_finding notice;
    for (size_t i = 0; heft_notice_at(&notice, f, i); i++)
        if (i >= f->x.notes.len || !notes[i].is_early)
            report_finding(v, &notice);
    heft_status st = report_siblings(v);
    if (st)
        return st;
    if (f->x.shard_info.number)
        report(&v->check, HEFT_NOTE, "heft/shard-alone", (heft_range){ HEFT_NOWHERE, 0 }, HEFT_NONE,
               "one of several files of a model: the first of them stands for all");
    st = check_claims(v);
    if (!st)
        st = check_format(v);
    if (v->check.is_quick) {
        report_left_out(v);
        return st;
    }
    if (!st)
        st = heft_decoded_check(f, v->meter, report_content, v, &v->result->bytes_checked,
                                v->check.err);
    if (!st)
        st = check_all_sparse(v);
    return st;
}

static verify begin(const heft_file *f, heft_finding_fn fn, void *ctx, heft_error *err)
{
    return (verify){
        .check = { .x = &f->x,
                   .size = heft_file_size(f),
                   .report = report,
                   .padding = padding,
                   .bytes = bytes,
                   .has = has,
                   .order = order,
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
    heft_verify_result own;
    heft_error own_error;
    heft_verify_options o = HEFT_VERIFY_OPTIONS_INIT;
    err = heft_error_begin(err, &own_error);
    heft_status st = heft_sized_copy(&o, offsetof(heft_verify_options, reserved), opt, err);
    if (st)
        return st;
    heft_progress meter = { .fn = o.progress, .ctx = o.progress_ctx };
    verify v = begin(f, o.on_finding, o.ctx, err);
    v.result = out ? out : &own;
    v.meter = &meter;
    v.check.is_quick = o.quick;
    *v.result = (heft_verify_result){ .notes = 0 };
    heft_file_enter(f); /* names and digests are lent by the file as well */
    if (!o.quick)
        meter.total = heft_checksum_sweep_bytes(f) + heft_decoded_check_bytes(f);
    st = heft_file_leave_after(f, check_all(&v), err);
    heft_ix_order_free_in(&v.mem, &f->x, v.order);
    return heft_error_end(err, st);
}

heft_status heft_verify_layout(const heft_file *f, bool (*passes)(void *ctx, heft_range where),
                               heft_finding_fn fn, void *ctx, heft_error *err)
{
    heft_verify_result result = { .notes = 0 };
    verify v = begin(f, fn, ctx, err);
    v.result = &result;
    v.passes = passes;
    heft_status st = check_format(&v);
    heft_ix_order_free_in(&v.mem, &f->x, v.order);
    return st;
}
