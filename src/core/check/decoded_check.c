/* decoded_check.c - checks the decoded bytes of parts, each part in a job. */
#include "core/check/verification.h"

#include "core/read/input_window.h"
#include "core/read/stored_checksum.h"
#include "core/read/stream.h"
#include "model/dtype.h"

typedef struct job {
    uint32_t part, checksum;   /* checksum: over decoded bytes, or HEFT_NONE */
    heft_checksum_state state; /* HEFT_CHECKSUM_MATCHES without a checksum */
    bool is_undecodable;
    uint64_t bad_value; /* offset of the first invalid value, or HEFT_NOWHERE */
    heft_error *error;  /* set if is_undecodable; NULL without memory */
} job;

typedef struct decoded_checker {
    const heft_file *f;
    heft_memory mem; /* for the caller's thread only */
    heft_progress *progress;
    bool (*selects)(void *ctx, uint32_t part); /* NULL: every part */
    void *selects_ctx;
    heft_vec jobs;
} decoded_checker;

static const char purpose[] = "to check decoded parts";

/* ---- selecting parts ---- */

/* Half-byte elements have a rule in strict formats only. */
static heft_value_rule rule_of(const heft_file *f, uint32_t part)
{
    heft_value_rule rule = heft_ix_part_row_at(&f->x, part)->stored
                               ? heft_value_rule_of(&f->x, part)
                               : HEFT_ANY_VALUE;
    return rule == HEFT_HALF_BYTE && !f->x.strict ? HEFT_ANY_VALUE : rule;
}

static bool needs_check(const heft_file *f, uint32_t part)
{
    const heft_ix_part_row *p = heft_ix_part_row_at(&f->x, part);
    return (p->encoding != HEFT_RAW || rule_of(f, part)) && heft_part_has_bytes(f, part);
}

bool heft_decoded_check_has_rule(const heft_file *f, uint32_t part)
{
    return f->x.strict && rule_of(f, part);
}

uint64_t heft_decoded_check_bytes(const heft_file *f)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < heft_ix_all_parts(&f->x); i++) {
        const heft_ix_part_row *p = heft_ix_part_row_at(&f->x, i);
        sum += needs_check(f, i) && p->length != HEFT_UNKNOWN_LENGTH ? p->length : 0;
    }
    return sum;
}

static heft_status list_jobs(decoded_checker *c, heft_error *err)
{
    const heft_index *x = &c->f->x;
    const heft_digest_row *digests = x->digests.ptr;
    uint32_t d = 0;
    for (uint32_t i = 0; i < heft_ix_all_parts(x); i++) {
        while (d < x->digests.len && digests[d].part < i)
            d++;
        if (!needs_check(c->f, i) || (c->selects && !c->selects(c->selects_ctx, i)))
            continue;
        job j = { i, HEFT_NONE, HEFT_CHECKSUM_MATCHES, false, HEFT_NOWHERE, NULL };
        uint32_t checksum = x->checksums.len + d;
        if (d < x->digests.len && digests[d].part == i &&
            heft_ix_checksum_at(x, checksum).decoded) {
            j.checksum = checksum;
            j.state = HEFT_CHECKSUM_UNCHECKED;
        }
        if (!heft_vec_add(&c->mem, &c->jobs, &j, sizeof j))
            return heft_error_no_memory(err, purpose);
    }
    return HEFT_OK;
}

/* ---- decoding ---- */

typedef struct part_reader {
    decoded_checker *c;
    job *j;
    heft_stream s;
} part_reader;

static heft_status read_part(part_reader *r, heft_error *err)
{
    const heft_ix_part_row *p = &r->s.row;
    heft_value_rule rule = rule_of(r->c->f, r->j->part);
    heft_chunks c;
    heft_status st = heft_chunks_open(&c, r->c->f->host->allocator, NULL, p->length, err);
    if (!st && !p->length)
        st = heft_stream_read(c.buf, &r->s, 0, err);
    while (!st && !heft_progress_halted(r->c->progress) && heft_chunks_next(&c)) {
        size_t n = c.len;
        st = heft_stream_read(c.buf, &r->s, n, err);
        if (st)
            break;
        size_t bad_value = r->j->bad_value == HEFT_NOWHERE
                               ? heft_value_rule_broken_at(rule, c.data, n, !c.left)
                               : n;
        if (bad_value < n)
            r->j->bad_value = c.at + bad_value;
        heft_progress_add(r->c->progress, n);
    }
    heft_chunks_close(&c);
    return st;
}

/* Record a malformed part as a finding; a system error ends the whole check. */
static void record_failure(part_reader *r, heft_status st, const heft_error *err)
{
    const heft_allocator *al = r->c->f->host->allocator;
    if (st != HEFT_E_FORMAT && st != HEFT_E_UNSUPPORTED) {
        heft_progress_fail(r->c->progress, st, err);
        return;
    }
    r->j->is_undecodable = true;
    r->j->error = heft_alloc(al, sizeof *err, 16);
    if (r->j->error)
        *r->j->error = *err;
}

static void run_job(void *arg, size_t i)
{
    decoded_checker *c = arg;
    part_reader r = { .c = c, .j = (job *)c->jobs.ptr + i };
    heft_error err = { .status = HEFT_OK };
    if (heft_progress_halted(c->progress))
        return;
    heft_status st = heft_stream_start_for(&r.s, c->f, r.j->part, true, &err);
    bool is_open = !st;
    if (!st)
        st = heft_stream_check(&r.s, r.j->checksum, &err);
    r.s.check.outcome = &r.j->state;
    if (!st)
        st = read_part(&r, &err);
    if (is_open)
        heft_stream_stop(&r.s);
    if (st)
        record_failure(&r, st, &err);
}

/* ---- reporting ---- */

static void report_job(const decoded_checker *c, const job *j,
                       void (*report)(void *ctx, const heft_decoded_fault *fault), void *ctx)
{
    const heft_ix_part_row *p = heft_ix_part_row_at(&c->f->x, j->part);
    heft_decoded_fault f = { .where = { p->offset, p->stored },
                             .tensor = heft_ix_owner(&c->f->x, j->part) };
    if (j->is_undecodable) {
        bool is_unsupported = j->error && j->error->status == HEFT_E_UNSUPPORTED;
        f.severity = is_unsupported ? HEFT_WARNING : HEFT_FAULT;
        f.status = is_unsupported ? HEFT_E_UNSUPPORTED : HEFT_E_FORMAT;
        f.rule = is_unsupported ? "heft/unchecked" : "heft/decode";
        f.text = j->error ? j->error->message : "the part cannot be decoded";
    } else if (j->state == HEFT_CHECKSUM_MISMATCH) {
        f.severity = HEFT_FAULT;
        f.status = HEFT_E_CHECKSUM;
        f.rule = heft_ix_checksum_at(&c->f->x, j->checksum).rule;
        f.text = "the digest does not match the decoded bytes";
    } else if (j->state == HEFT_CHECKSUM_UNCHECKED) {
        f.severity = HEFT_WARNING;
        f.rule = "heft/unchecked";
        f.text = "a digest was not checked: this build lacks its algorithm";
    }
    if (f.rule)
        report(ctx, &f);
    if (j->bad_value != HEFT_NOWHERE) {
        heft_value_rule rule = rule_of(c->f, j->part);
        f = (heft_decoded_fault){ c->f->x.strict ? HEFT_FAULT : HEFT_WARNING,
                                  heft_value_rule_name(rule),
                                  heft_value_rule_text(rule),
                                  { p->offset, p->stored },
                                  f.tensor,
                                  c->f->x.strict ? HEFT_E_FORMAT : HEFT_OK };
        if (p->encoding == HEFT_RAW)
            f.where = (heft_range){ p->offset + j->bad_value, 1 };
        report(ctx, &f);
    }
}

static void report_all(decoded_checker *c,
                       void (*report)(void *ctx, const heft_decoded_fault *fault), void *ctx,
                       uint64_t *bytes, bool complete)
{
    const heft_allocator *al = c->f->host->allocator;
    job *jobs = c->jobs.ptr;
    for (uint32_t i = 0; i < c->jobs.len; i++) {
        if (complete)
            report_job(c, &jobs[i], report, ctx);
        uint64_t length = heft_ix_part_row_at(&c->f->x, jobs[i].part)->length;
        *bytes += !jobs[i].is_undecodable && jobs[i].state == HEFT_CHECKSUM_MATCHES &&
                          length != HEFT_UNKNOWN_LENGTH
                      ? length
                      : 0;
        heft_free(al, jobs[i].error, sizeof(heft_error), 16);
    }
}

static heft_status run(decoded_checker *c, void (*report)(void *ctx, const heft_decoded_fault *c),
                       void *ctx, uint64_t *bytes, heft_error *err)
{
    c->mem = (heft_memory){ c->f->host->allocator, UINT64_MAX, 0 };
    heft_status st = list_jobs(c, err);
    if (!st) {
        heft_file_enter(c->f);
        heft_host_run(c->f->host, c->jobs.len, run_job, c);
        st = heft_file_leave(c->f, err);
    }
    if (!st)
        st = heft_progress_end(c->progress, err);
    report_all(c, report, ctx, bytes, !st);
    heft_vec_free(&c->mem, &c->jobs, sizeof(job));
    return st;
}

heft_status heft_decoded_check(const heft_file *f, heft_progress *progress,
                               bool (*selects)(void *ctx, uint32_t part),
                               void (*report)(void *ctx, const heft_decoded_fault *c), void *ctx,
                               uint64_t *bytes, heft_error *err)
{
    decoded_checker c = { .f = f, .progress = progress, .selects = selects, .selects_ctx = ctx };
    return run(&c, report, ctx, bytes, err);
}

typedef struct first_violation {
    const heft_file *f;
    heft_status st;
    heft_error *err;
} first_violation;

static void keep_first_fault(void *ctx, const heft_decoded_fault *c)
{
    first_violation *d = ctx;
    /* What cannot be decoded cannot be copied, although verify() only warns of that. */
    if (d->st || (c->severity != HEFT_FAULT && c->status != HEFT_E_UNSUPPORTED))
        return;
    d->st = c->status;
    heft_error_plain(d->err, d->st, "%s", c->text);
    heft_error_rule(d->err, d->st, c->rule);
    heft_file_error_at(d->f, c->where.offset, d->st, d->err);
}

heft_status heft_decoded_check_require(const heft_file *f,
                                       bool (*selects)(void *ctx, uint32_t part), void *ctx,
                                       heft_error *err)
{
    heft_progress progress = { .fn = NULL };
    decoded_checker c = { .f = f, .progress = &progress, .selects = selects, .selects_ctx = ctx };
    first_violation d = { f, HEFT_OK, err };
    uint64_t bytes = 0;
    HEFT_TRY(run(&c, keep_first_fault, &d, &bytes, err));
    return d.st;
}
