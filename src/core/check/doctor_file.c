/* doctor_file.c - diagnoses a file with a readable index: findings of heft_file_verify(), zeros
 * of an unfinished download, and tensors under checksums that do not match. */
#include "base/error.h"
#include "base/sort.h"
#include "core/check/diagnosis.h"
#include "core/read/decode.h"
#include "core/shards/shard_join.h"

static const char again[] = "download or copy the file again, or salvage the intact tensors";

/* ---- findings ---- */

typedef struct collector {
    heft_doctor *d;
    uint32_t known; /* rows before verification: errors that were passed over */
    const heft_progress *progress;
    heft_error *err;
    heft_status st;
} collector;

static bool is_size_note(const heft_finding *x)
{
    heft_str rule = heft_lit(x->rule);
    return heft_str_is(rule, "gguf/trailing") || heft_str_is(rule, "gguf/cut-padding") ||
           heft_str_is(rule, "zip/trailing-bytes");
}

static bool is_known(const collector *c, const heft_finding *x)
{
    const heft_doctor_row *rows = c->d->rows.ptr;
    bool is = false;
    for (uint32_t i = 0; i < c->known && !is; i++)
        is = rows[i].where.offset == x->where.offset &&
             heft_str_is(heft_lit(rows[i].kind), x->rule) &&
             heft_str_is(heft_lit(rows[i].text), x->text);
    return is;
}

static void add_finding(void *ctx, const heft_finding *x)
{
    collector *c = ctx;
    bool is_fault = x->severity == HEFT_FAULT, has_range = x->where.offset != HEFT_NOWHERE;
    if ((x->severity == HEFT_NOTE && !is_size_note(x)) || is_known(c, x) || c->st)
        return;
    const char *rule = heft_doctor_copy(c->d, x->rule);
    heft_severity severity = is_fault ? HEFT_FAULT : HEFT_WARNING;
    bool is_damage = is_fault && !heft_str_is(heft_lit(x->rule), "heft/all-left-out");
    heft_doctor_row row = { severity, x->tensor, rule, NULL, is_damage ? again : NULL, x->where };
    heft_doctor_add(c->d, row, "%s", x->text);
    if (is_fault && x->tensor != HEFT_NONE)
        c->st = heft_doctor_lose(c->d, x->tensor, c->err);
    else if (is_fault && has_range &&
             !heft_vec_add(&c->d->mem, &c->d->lost_ranges, &x->where, sizeof x->where))
        c->st = heft_error_no_memory(c->err, "for a diagnosis");
}

static bool report_progress(void *ctx, uint64_t done, uint64_t total)
{
    const collector *c = ctx;
    return c->progress->fn(c->progress->ctx, done, total);
}

static heft_status verify(heft_doctor *d, heft_progress *progress, heft_error *err)
{
    collector c = { .d = d, .known = d->rows.len, .progress = progress, .err = err };
    heft_verify_options o = HEFT_VERIFY_OPTIONS_INIT;
    o.on_finding = add_finding;
    o.ctx = &c;
    o.progress = progress->fn ? report_progress : NULL;
    HEFT_TRY(heft_file_verify(NULL, d->file, &o, err));
    return c.st;
}

/* ---- zeros at the end ---- */

/* Return the part that contains the byte as neither the first byte nor the end, or HEFT_NONE. */
static uint32_t part_around(const heft_index *x, uint64_t at)
{
    for (uint32_t i = 0; i < x->parts.len; i++) {
        const heft_ix_part_row *p = heft_ix_part_row_at(x, i);
        if (p->offset < at && at - p->offset < p->stored)
            return i;
    }
    return HEFT_NONE;
}

static bool reaches(heft_doctor *d, const heft_ix_part_row *p, uint64_t at)
{
    (void)d;
    return p->stored && p->offset + p->stored > at;
}

/* A downloader that reserves the size first, and was stopped, leaves zeros from a multiple of its
 * block size on.  Zeros that belong to a tensor begin anywhere: only zeros from a multiple inside
 * a tensor count. */
static heft_status check_zero_tail(heft_doctor *d, heft_error *err)
{
    enum { BLOCK = 4096, SLACK = 16 };
    const heft_archive_member *m = heft_archive_of(d->file);
    uint64_t from, block, size = d->source->size, begin = m ? m->where.offset : 0;
    heft_status st = heft_find_zero_tail(&from, d->source, d->host->allocator, err);
    if (st || from == size || !heft_align_up(&block, from, BLOCK))
        return st;
    if (block - from >= SLACK || block > size || size - block < BLOCK || block < begin ||
        part_around(&d->file->x, block - begin) == HEFT_NONE)
        return HEFT_OK;
    heft_doctor_row row = { HEFT_FAULT,
                            HEFT_NONE,
                            "unfinished-download",
                            NULL,
                            "resume the download, or download the file again",
                            { block, size - block } };
    heft_doctor_add(d, row,
                    "an unfinished download: the last %U bytes are zeros, which begin inside a "
                    "tensor at a multiple of 4096",
                    size - block);
    return heft_doctor_lose_if(d, reaches, block - begin, err);
}

/* Return true if the index names bytes of other files, as that of a zTensor 2 set does. */
static bool has_bytes_elsewhere(const heft_index *x)
{
    uint32_t parts = heft_ix_all_parts(x), checksums = heft_ix_checksums(x);
    bool has = false;
    for (uint32_t i = 0; i < parts && !has; i++)
        has = heft_global_offset_file(x, heft_ix_part_row_at(x, i)->offset) != 0;
    for (uint32_t i = 0; i < checksums && !has; i++)
        has = heft_global_offset_file(x, heft_ix_checksum_at(x, i).range[0].offset) != 0;
    return has;
}

heft_status heft_doctor_check_file(heft_doctor *d, heft_progress *progress, heft_error *err)
{
    uint32_t shards = heft_shard_file_count(d->file);
    heft_doctor_row row = { HEFT_NOTE,
                            HEFT_NONE,
                            "shard-index",
                            NULL,
                            "examine the shards one by one, or the model with 'heft verify'",
                            { HEFT_NOWHERE, 0 } };
    if (shards) {
        heft_doctor_add(d, row, "the file belongs to a model with %U other files",
                        (uint64_t)shards);
        if (!heft_ix_tensors(&d->file->x) || has_bytes_elsewhere(&d->file->x))
            return HEFT_OK;
        heft_file_drop_shards(d->file);
    }
    HEFT_TRY(verify(d, progress, err));
    return check_zero_tail(d, err);
}
