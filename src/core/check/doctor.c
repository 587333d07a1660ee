/* doctor.c - examines a file: the kind of damage by the bytes, and the tensors that are intact. */
#include "core/check/diagnosis.h"

#include "base/error.h"
#include "core/check/verification.h"
#include "core/read/input_window.h"
#include "core/shards/shard_join.h"

/* ---- the expected size ---- */

/* An index has at least this many bytes per tensor, all present. */
enum { RECORD_BYTES = 8, EXTRA_INDEX = 1 << 20 };

static heft_status open_at(heft_doctor *d, uint64_t size, heft_error *err)
{
    heft_limits limits = HEFT_LIMITS_INIT;
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    uint64_t tensors = d->source->size / RECORD_BYTES;
    limits.index_bytes = d->source->size + EXTRA_INDEX;
    limits.tensors = tensors < UINT32_MAX / 512 ? (uint32_t)tensors + 1 : 0;
    o.host = d->host;
    o.limits = &limits;
    o.no_verify = true;
    return heft_doctor_open_at(d, size, &o, err);
}

/* Try sizes until the index is readable.  A parser names the first tensor past the end, so the size
 * doubles when the same happens again; formats without trailing bytes name the exact size then. */
static heft_status find_size(heft_doctor *d, uint64_t expected, heft_error *err)
{
    enum { TRIES = 64 };
    static const uint64_t most = UINT64_C(1) << 47;
    heft_status st = HEFT_E_FORMAT;
    uint64_t size = d->source->size, step = 0;
    for (int i = 0; i < TRIES && st == HEFT_E_FORMAT; i++) {
        if (expected <= d->source->size || expected > most || expected == size)
            return HEFT_OK;
        bool is_larger = expected > size;
        size = is_larger && step ? expected + step : expected;
        step = is_larger ? 2 * step + (expected - d->source->size) : 0;
        st = open_at(d, size, err);
        expected = st ? err->expected_bytes : size;
    }
    return st == HEFT_E_NOMEM || st == HEFT_E_IO ? st : HEFT_OK;
}

/* ---- missing bytes ---- */

static bool is_present(const heft_doctor *d, const heft_ix_part_row *p)
{
    return heft_range_in((heft_range){ p->offset, p->stored }, d->source->size);
}

/* The index precedes the data: if no byte of data is present, the index may be zeros, too. */
static bool has_data(const heft_doctor *d)
{
    const heft_index *x = &d->file->x;
    for (uint32_t i = 0; i < x->parts.len; i++) {
        const heft_ix_part_row *p = heft_ix_part_row_at(x, i);
        if (p->stored && p->offset < d->source->size)
            return true;
    }
    return false;
}

/* Return true if bytes of the part are missing, and note the size that the file should have. */
static bool is_missing(heft_doctor *d, const heft_ix_part_row *p, uint64_t at)
{
    (void)at;
    uint64_t end = p->offset + p->stored;
    d->expected_bytes = end > d->expected_bytes ? end : d->expected_bytes;
    return !is_present(d, p);
}

/* ---- checksums over bytes that are present ---- */

static heft_status lose_mismatches(heft_doctor *d, const heft_ledger *l, heft_error *err)
{
    for (uint32_t i = 0, k; heft_ledger_next(l, &i, &k);) {
        heft_stored_checksum c = heft_ix_checksum_at(&d->file->x, k);
        if (c.advisory || l->states[k] != HEFT_CHECKSUM_MISMATCH)
            continue;
        heft_doctor_row row = { HEFT_FAULT, c.tensor, c.rule, NULL, NULL, c.range[0] };
        heft_doctor_add(d, row, "the checksum does not match the bytes it covers");
        if (c.tensor != HEFT_NONE)
            HEFT_TRY(heft_doctor_lose(d, c.tensor, err));
        else if (!heft_vec_add(&d->mem, &d->lost_ranges, &c.range[0], sizeof c.range[0]))
            return heft_error_no_memory(err, "for a diagnosis");
    }
    return HEFT_OK;
}

static heft_status check_present(heft_doctor *d, heft_progress *progress, heft_error *err)
{
    heft_ledger l;
    heft_status st = heft_ledger_open(&l, d->file, false, err);
    for (uint32_t i = 0; i < l.checksums && !st; i++) {
        heft_stored_checksum c = heft_ix_checksum_at(&d->file->x, i);
        if (heft_range_in(c.range[0], d->source->size) &&
            heft_range_in(c.range[1], d->source->size))
            l.ways[i] = HEFT_LEDGER_SWEEP;
    }
    if (!st)
        st = heft_checksum_sweep(&l, progress, err);
    if (!st)
        st = lose_mismatches(d, &l, err);
    heft_ledger_free(&l);
    return st;
}

/* Open a truncated file at the size that the index asks for, and mark the tensors with missing
 * bytes.  `why` is the error of opening.  d->file stays NULL if the index cannot be read. */
static heft_status doctor_open_truncated(heft_doctor *d, const heft_error *why,
                                         heft_progress *progress, heft_error *err)
{
    d->expected_bytes = why->expected_bytes;
    heft_status st = find_size(d, why->expected_bytes, err);
    if (st || !d->file)
        return st;
    if (!has_data(d)) {
        heft_file_close(d->file);
        d->file = NULL;
        return HEFT_OK;
    }
    st = heft_doctor_lose_if(d, is_missing, 0, err);
    return st ? st : check_present(d, progress, err);
}

enum { HEAD = 512, TAIL = 64 };

static const heft_range nowhere = { HEFT_NOWHERE, 0 };
static const char download[] = "download the file again, as binary",
                  salvage[] = "download or copy the file again, or salvage the intact tensors";

/* ---- files that do not open ---- */

typedef struct ends { /* the first and last bytes */
    uint8_t head[HEAD], tail[TAIL];
    size_t head_len, tail_len;
} ends;

static heft_status read_ends(ends *e, heft_source *s, heft_error *err)
{
    e->head_len = s->size < HEAD ? (size_t)s->size : HEAD;
    e->tail_len = s->size < TAIL ? (size_t)s->size : TAIL;
    if (e->head_len)
        HEFT_TRY(s->ops->read(s, 0, e->head, e->head_len, err));
    if (e->tail_len)
        HEFT_TRY(s->ops->read(s, s->size - e->tail_len, e->tail, e->tail_len, err));
    return HEFT_OK;
}

/* Return the format with a magic number that the file begins with, last byte first. */
static const heft_format *find_byte_swapped(const ends *e)
{
    enum { MIN = 4 };
    for (size_t i = 0; i < heft_registry_count(); i++) {
        const heft_format *f = heft_registry_at(i);
        heft_str magics = heft_lit(f->magics ? f->magics : "");
        heft_str magic = heft_str_next_word(&magics);
        size_t n = magic.len, same = 0;
        while (same < n && n <= e->head_len && (char)e->head[same] == magic.ptr[n - 1 - same])
            same++;
        if (n >= MIN && same == n)
            return f;
    }
    return NULL;
}

static bool is_all_zero(const uint8_t *p, size_t len)
{
    size_t i = 0;
    while (i < len && !p[i])
        i++;
    return i == len;
}

/* Diagnose damage that is visible in all bytes.  *found: there is damage. */
static heft_status check_bytes(bool *found, heft_doctor *d, heft_progress *progress,
                               heft_error *err)
{
    heft_byte_survey b;
    heft_status st = heft_byte_survey_run(&b, d->source, d->host->allocator, progress, err);
    heft_doctor_row row = { HEFT_FAULT, HEFT_NONE, NULL, NULL, download, { 0, 0 } };
    *found = !st && (heft_byte_survey_has_replacements(&b) || heft_byte_survey_has_crlf(&b));
    if (st || !*found)
        return st;
    if (heft_byte_survey_has_replacements(&b)) {
        row.kind = "replaced-bytes";
        row.where = (heft_range){ b.first_replacement, 3 };
        heft_doctor_add(d, row,
                        "corrupted by a text conversion: U+FFFD (EF BF BD) stands in place of "
                        "binary data, %U times",
                        b.replacements);
    } else {
        row.kind = "crlf";
        row.where = (heft_range){ b.first_crlf, 2 };
        heft_doctor_add(d, row,
                        "corrupted by a transfer as text: all %U line feeds follow a carriage "
                        "return (0D 0A)",
                        b.crlf);
    }
    return HEFT_OK;
}

/* Diagnose a file that no format recognises. */
static heft_status check_foreign(heft_doctor *d, heft_progress *progress, const heft_error *why,
                                 heft_error *err)
{
    ends e;
    bool found = false;
    HEFT_TRY(read_ends(&e, d->source, err));
    const heft_foreign_kind *kind = heft_foreign_find(e.head, e.head_len, e.tail, e.tail_len);
    const heft_format *swapped = find_byte_swapped(&e);
    heft_doctor_row row = { HEFT_FAULT, HEFT_NONE, NULL, NULL, download, nowhere };
    heft_status st = HEFT_OK;
    if (!d->source->size) {
        row.kind = "empty";
        heft_doctor_add(d, row, "the file is empty");
    } else if (kind) {
        row.kind = kind->kind;
        row.advice = kind->advice;
        heft_doctor_add(d, row, "the file is %s", kind->description);
    } else if (swapped) {
        row.kind = "byte-swapped";
        row.advice = "copy the file again without swapping bytes";
        heft_doctor_add(d, row, "the magic number of %s is byte-swapped", swapped->title);
    } else if (is_all_zero(e.head, e.head_len)) {
        row.kind = "unfinished-download";
        heft_doctor_add(d, row, "the file begins with zeros, like an unfinished download");
    } else {
        st = check_bytes(&found, d, progress, err);
        row.kind = "unknown-format";
        row.advice = "check where the file comes from";
        if (!st && !found)
            heft_doctor_add(d, row, "%s", why->message);
    }
    return st;
}

/* Diagnose a file that cannot be read to the end, and has not been cut off visibly. */
static heft_status check_structure(heft_doctor *d, const heft_error *why, heft_error *err)
{
    /* Programs fill a tar archive with zeros up to a multiple of 10240 bytes. */
    enum { HOLE = 512, TAR_END = 10240 + 4 * 512 };
    ends e;
    uint64_t from, size = d->source->size;
    HEFT_TRY(read_ends(&e, d->source, err));
    heft_status st = heft_find_zero_tail(&from, d->source, d->host->allocator, err);
    heft_doctor_row row = {
        HEFT_FAULT, HEFT_NONE, "structure", NULL, download, { why->offset, 0 }
    };
    uint64_t least = heft_archive_is_tar(e.head, e.head_len) ? TAR_END : HOLE;
    heft_doctor_add(d, row, "%s", why->message);
    row = (heft_doctor_row){ HEFT_FAULT,
                             HEFT_NONE,
                             "unfinished-download",
                             NULL,
                             "resume the download, or download the file again",
                             { from, size - from } };
    if (!st && size - from >= least)
        heft_doctor_add(d, row, "the last %U bytes are zeros, like those of an unfinished download",
                        size - from);
    return st;
}

static void add_truncation(heft_doctor *d)
{
    uint64_t size = d->source->size, tensors = d->file ? heft_ix_tensors(&d->file->x) : 0;
    uint64_t whole = tensors - d->lost_count;
    heft_doctor_row row = { HEFT_FAULT,
                            HEFT_NONE,
                            "truncated",
                            NULL,
                            whole ? salvage : download,
                            { size, d->expected_bytes - size } };
    if (d->file)
        heft_doctor_add(d, row,
                        "the file is truncated: it has %U bytes, at least %U are needed; %U of %U "
                        "tensors are whole",
                        size, d->expected_bytes, whole, tensors);
    else
        heft_doctor_add(d, row,
                        "the file is truncated: it has %U bytes, at least %U are needed; no tensor "
                        "can be salvaged",
                        size, d->expected_bytes);
}

static heft_status check_unreadable(heft_doctor *d, heft_error *why, heft_progress *progress,
                                    heft_error *err)
{
    bool found = false;
    uint64_t size = d->source->size;
    if (why->rule && heft_str_is(heft_lit(why->rule), "heft/unknown-format"))
        return check_foreign(d, progress, why, err);
    heft_status st = check_bytes(&found, d, progress, err);
    if (st || found)
        return st;
    st = heft_doctor_open_forgiving(d, why, err);
    if (st)
        return st;
    if (d->file)
        return heft_doctor_check_file(d, progress, err);
    if (why->expected_bytes > size)
        st = doctor_open_truncated(d, why, progress, err);
    if (st)
        return st;
    if (d->expected_bytes > size)
        add_truncation(d);
    else
        st = check_structure(d, why, err);
    if (d->file)
        heft_doctor_add_forgiven(d);
    return st;
}

/* ---- all files ---- */

/* Compare the suffix of the path with the content. */
static void check_suffix(heft_doctor *d)
{
    const heft_format *by_suffix = d->path ? heft_format_for_path(d->path) : NULL;
    heft_doctor_row row = { HEFT_FAULT,
                            HEFT_NONE,
                            "wrong-suffix",
                            NULL,
                            "rename the file, or convert it to the format of the suffix",
                            nowhere };
    if (by_suffix && d->format && by_suffix != d->format)
        heft_doctor_add(d, row, "the suffix is that of a %s file, but the content is %s",
                        by_suffix->title, d->format->title);
}

static bool has_size_warning(const heft_doctor *d)
{
    const heft_doctor_row *rows = d->rows.ptr;
    bool has = false;
    for (uint32_t i = 0; i < d->rows.len; i++)
        has = has || rows[i].severity != HEFT_NOTE;
    return has;
}

/* Open the file and diagnose the content, or the error of opening. */
static heft_status examine(heft_doctor *d, heft_progress *progress, heft_error *err)
{
    heft_error why;
    bool is_mangled = false;
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    o.host = d->host;
    heft_status st = heft_doctor_open_at(d, d->source->size, &o, &why);
    if (st && st != HEFT_E_FORMAT && st != HEFT_E_CHECKSUM) {
        *err = why;
        return st;
    }
    if (st)
        st = check_unreadable(d, &why, progress, err);
    else
        st = heft_doctor_check_file(d, progress, err);
    if (!st && d->file && has_size_warning(d))
        st = check_bytes(&is_mangled, d, progress, err);
    for (uint32_t t = 0; is_mangled && !st && t < heft_ix_tensors(&d->file->x); t++)
        st = heft_doctor_lose(d, t, err);
    if (!st && d->file)
        st = heft_doctor_lose_ranges(d, err);
    if (!st && d->file && !heft_shard_file_count(d->file))
        st = heft_doctor_check_values(d, progress, err);
    if (!st && d->file)
        d->format = d->file->format;
    if (!st)
        check_suffix(d);
    return !st && d->is_out_of_memory ? heft_error_no_memory(err, "for a diagnosis") : st;
}

heft_status heft_doctor_open(heft_doctor **out, heft_source *take, const heft_doctor_options *opt,
                             heft_error *err)
{
    heft_error own;
    const heft_host *host = NULL;
    heft_doctor_options o = HEFT_DOCTOR_OPTIONS_INIT;
    err = heft_error_begin(err, &own);
    *out = NULL;
    heft_status st = heft_source_check(take, err);
    if (!st)
        st = heft_sized_copy(&o, sizeof o, opt, err);
    if (!st)
        st = heft_refuse_piece(o.path, err);
    if (!st)
        st = heft_host_resolve(&host, o.host, err);
    heft_doctor *d = st ? NULL : heft_alloc(host->allocator, sizeof *d, 16);
    if (!d) {
        heft_source_close(take);
        return heft_error_end(err, st ? st : heft_error_no_memory(err, "to examine the file"));
    }
    *d = (heft_doctor){
        .host = host, .mem = { host->allocator, UINT64_MAX, 0 }, .source = take, .path = o.path
    };
    d->arena.mem = &d->mem;
    heft_progress progress = { .fn = o.progress, .ctx = o.ctx, .total = take->size };
    st = examine(d, &progress, err);
    if (!st && HEFT_HAS(take->ops, check_unchanged))
        st = take->ops->check_unchanged(take, err);
    if (st)
        heft_doctor_close(d);
    else
        *out = d;
    return heft_error_end(err, st);
}

void heft_doctor_close(heft_doctor *d)
{
    if (!d)
        return;
    if (d->lost)
        heft_mem_free(&d->mem, d->lost, heft_ix_tensors(&d->file->x));
    heft_file_close(d->file);
    heft_source_close(d->source);
    heft_vec_free(&d->mem, &d->rows, sizeof(heft_doctor_row));
    heft_vec_free(&d->mem, &d->lost_ranges, sizeof(heft_range));
    heft_arena_free(&d->arena);
    heft_free(d->host->allocator, d, sizeof *d, 16);
}

uint32_t heft_diagnosis_count(const heft_doctor *d)
{
    return d->rows.len;
}

heft_diagnosis heft_diagnosis_at(const heft_doctor *d, uint32_t i)
{
    if (i >= d->rows.len)
        return (heft_diagnosis){ .kind = NULL };
    const heft_doctor_row *row = (const heft_doctor_row *)d->rows.ptr + i;
    return (heft_diagnosis){ .severity = row->severity,
                             .kind = row->kind,
                             .where = row->where,
                             .tensor = row->tensor,
                             .text = row->text,
                             .advice = row->advice };
}

void heft_doctor_summarize(heft_doctor_summary *out, const heft_doctor *d)
{
    uint32_t tensors = d->file ? heft_ix_tensors(&d->file->x) : 0;
    *out = (heft_doctor_summary){ .format = d->format,
                                  .file_bytes = d->source->size,
                                  .expected_bytes = d->expected_bytes,
                                  .tensors = tensors,
                                  .lost = d->lost_count,
                                  .left_out = d->file ? d->file->x.left_out : 0,
                                  .faults = d->faults,
                                  .warnings = d->warnings,
                                  .can_salvage = tensors > d->lost_count };
}

const heft_file *heft_doctor_file(const heft_doctor *d)
{
    return d->file;
}
