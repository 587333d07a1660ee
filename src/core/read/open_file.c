/* open_file.c - opens one file: provides the bytes that the parser requests until the index is
 * complete.  core/shards opens the shards. */
#include "core/read/file.h"

#include "base/checked_math.h"
#include "base/error.h"
#include "base/path_risk.h"
#include "core/read/decode.h"
#include "core/read/opened_container.h"
#include "core/read/stored_checksum.h"

/* ---- collects notices while a file is opened ---- */

enum { MAX_RANK = 64 };

static const char *const path_texts[] = {
    [HEFT_PATH_ABSOLUTE] = "its name looks like a path: it begins with '/'",
    [HEFT_PATH_PARENT] = "its name looks like a path that leaves its folder: it has a '..'",
    [HEFT_PATH_DRIVE] = "its name looks like a path: it begins with the letter of a drive",
    [HEFT_PATH_BACKSLASH] = "its name looks like a path: it has a backslash",
};

/* After a parse: add notes about odd tensor names and ranks, and the format's own. */
__attribute__((noinline)) static heft_status file_add_notes(heft_file *f)
{
    heft_index *x = &f->x;
    const heft_name_rules *rules = f->format->name_rules;
    bool is_odd = rules && (x->odd_names || x->max_rank > MAX_RANK);
    for (uint32_t t = 0; is_odd && t < heft_ix_tensors(x); t++) {
        heft_path_risk risk = heft_str_path_risk(heft_ix_name(x, t));
        if (risk == HEFT_PATH_NUL)
            heft_ix_note(x, HEFT_WARNING, rules->nul_rule ? rules->nul_rule : rules->path_rule,
                         HEFT_NOWHERE, t,
                         rules->nul_text ? rules->nul_text : "there is a NUL in its name");
        else if (risk != HEFT_PATH_PLAIN)
            heft_ix_note(x, HEFT_WARNING, rules->path_rule, HEFT_NOWHERE, t, path_texts[risk]);
        if (rules->rank_rule && heft_ix_row(x, t)->rank > MAX_RANK)
            heft_ix_note(x, HEFT_WARNING, rules->rank_rule, HEFT_NOWHERE, t,
                         "it exceeds the limit of 64 dimensions of NumPy and PyTorch");
    }
    heft_status st = f->format->notice ? f->format->notice(x) : HEFT_OK;
    return !st && x->lost_notes ? heft_error_no_memory(x->err, "for the notes about the file") : st;
}

heft_finding heft_file_finding(const heft_file *f, const heft_note *note)
{
    heft_range where = note->where;
    uint32_t file = heft_global_offset_file(&f->x, where.offset);
    if (file)
        where.offset = heft_global_offset_local(&f->x, where.offset);
    return (heft_finding){ .severity = note->severity,
                           .rule = note->rule,
                           .where = where,
                           .tensor = note->tensor,
                           .text = note->text,
                           .shard = file,
                           .left_out = note->left_out != HEFT_LEFT_OUT_NOT };
}

uint32_t heft_notice_count(const heft_file *f)
{
    return f->x.notes.len + f->x.notes_cut;
}

heft_finding heft_notice_at(const heft_file *f, uint32_t i)
{
    static const heft_note truncated = {
        HEFT_WARNING,        "heft/notices", "there are more findings; only the first are listed",
        { HEFT_NOWHERE, 0 }, HEFT_NONE,      false,
        HEFT_LEFT_OUT_NOT
    };
    const heft_note *notes = f->x.notes.ptr;
    if (i >= heft_notice_count(f))
        return (heft_finding){ .rule = NULL };
    return heft_file_finding(f, i < f->x.notes.len ? &notes[i] : &truncated);
}

enum { STEP = 4 << 20, MAX_CHUNKS = HEFT_IS_SMALL ? 1 : 16 };

/* ---- a range ---- */

/* Extend the state of a digest; return false if some bytes are not present. */
static bool feed(heft_file *f, const heft_digest *d, void *state, heft_range r)
{
    heft_window *in = &f->input.in;
    const heft_source *source = f->input.whole_file ? f->source : NULL;
    for (uint64_t done = 0, have; done < r.length; done += have) {
        uint64_t at = r.offset + done, left = r.length - done;
        const uint8_t *p = in->window(in, at, left < STEP ? left : STEP, &have);
        if (!have)
            return false;
        have = have < left ? have : left;
        have = have < STEP ? have : STEP;
        d->update(state, p, (size_t)have);
        if (have == STEP && source && HEFT_HAS(source->ops, dont_need))
            source->ops->dont_need(f->source, at, have);
    }
    return true;
}

typedef struct chunk_job {
    heft_file *f;
    heft_running_digest digests[MAX_CHUNKS];
    heft_range range;
    uint64_t chunk_bytes;
    bool is_incomplete[MAX_CHUNKS];
} chunk_job;

static heft_range chunk_range(const chunk_job *s, uint32_t i)
{
    uint64_t from = s->chunk_bytes * i, left = s->range.length - from;
    return (heft_range){ s->range.offset + from, left < s->chunk_bytes ? left : s->chunk_bytes };
}

static void feed_chunk(void *arg, size_t i)
{
    chunk_job *s = arg;
    s->is_incomplete[i] = !feed(s->f, s->digests[i].digest,
                                heft_running_digest_state(&s->digests[i]),
                                chunk_range(s, (uint32_t)i));
}

/* Split a range into chunks on all threads, and join their states. */
static heft_status feed_chunks(heft_file *f, const heft_digest *d, heft_range r, uint32_t chunks,
                               void *state, heft_error *err)
{
    chunk_job s = { .f = f, .range = r, .chunk_bytes = heft_div_up(r.length, chunks) };
    heft_status st = HEFT_OK;
    bool is_incomplete = false;
    for (uint32_t i = 0; i < chunks && !st; i++)
        st = heft_running_digest_begin(&s.digests[i], d, f->host->allocator, "to check a checksum",
                                       err);
    if (!st)
        heft_host_run(f->host, chunks, feed_chunk, &s);
    for (uint32_t i = 0; i < chunks; i++) {
        if (!st)
            d->combine(state, heft_running_digest_state(&s.digests[i]), chunk_range(&s, i).length);
        is_incomplete = is_incomplete || s.is_incomplete[i];
        heft_running_digest_close(&s.digests[i]);
    }
    return !st && is_incomplete ? HEFT_AGAIN : st;
}

static heft_status add_range(void *ctx, const heft_digest *d, heft_range r, void *state,
                             heft_error *err)
{
    heft_file *f = ctx;
    uint32_t chunks = r.length / STEP < MAX_CHUNKS ? (uint32_t)(r.length / STEP) : MAX_CHUNKS;
    if (!HEFT_IS_SMALL && chunks > 1 && heft_digest_joins(d) && f->input.whole_file)
        return feed_chunks(f, d, r, chunks, state, err);
    return feed(f, d, state, r) ? HEFT_OK : HEFT_AGAIN;
}

/* ---- a checksum ---- */

/* Request the covered bytes that are not present; return HEFT_AGAIN. */
static heft_status request_missing(heft_file *f, const heft_stored_checksum *c)
{
    heft_window *in = &f->input.in;
    uint64_t have;
    for (int r = 0; r < HEFT_CHECKSUM_RANGES; r++)
        for (uint64_t done = 0; done < c->range[r].length; done += have) {
            in->window(in, c->range[r].offset + done, c->range[r].length - done, &have);
            if (!have) {
                in->need(in, c->range[r].offset + done, c->range[r].length - done);
                break;
            }
        }
    return HEFT_AGAIN;
}

/* ---- all checksums ---- */

/* Check a group of adjacent alternative checksums, from `first` on.  At least one must match,
 * unless this build lacks an algorithm: heft_file_verify() reports that.  A mismatch of an advisory
 * checksum becomes a warning. */
static heft_status check_alternatives(heft_file *f, const heft_stored_checksum *first,
                                      heft_error *err)
{
    for (const heft_stored_checksum *c = first;; c++) {
        const heft_digest *d = heft_host_digest(f->host, c->algorithm);
        bool holds = true;
        heft_status st = d ? heft_stored_checksum_compute(&holds, c, d, f->host->allocator,
                                                          add_range, f, err)
                           : HEFT_OK;
        if (st == HEFT_AGAIN)
            return request_missing(f, c);
        if (st || holds)
            return st;
        if (c->is_alternative)
            continue;
        if (!first->advisory)
            return heft_stored_checksum_mismatch(f, first, err);
        heft_ix_note_range(&f->x, HEFT_WARNING, first->rule, first->range[0], first->tensor,
                           "the checksum does not match the bytes it covers");
        return HEFT_OK;
    }
}

/* Compare the checksums of the bytes that the parser has read.  HEFT_E_CHECKSUM on a mismatch;
 * HEFT_AGAIN if bytes must be provided again. */
__attribute__((noinline)) static heft_status check_open_checksums(heft_file *f, heft_error *err)
{
    const heft_stored_checksum *checksums = f->x.checksums.ptr;
    for (uint32_t i = 0; i < f->x.checksums.len; i++) {
        bool is_first = !i || !checksums[i - 1].is_alternative;
        if (is_first && checksums[i].at_open && (checksums[i].advisory || !f->no_verify))
            HEFT_TRY(check_alternatives(f, &checksums[i], err));
    }
    return HEFT_OK;
}

enum {
    END_BYTES = 64 << 10, /* bytes fetched from both ends before the format is known */
    PROBE_BYTES = 64,     /* minimum that a probe receives, see format.h */
    DROP_BYTES = 4 << 20  /* granularity of releasing parsed pages */
};

/* Request the first and last bytes, or the whole of a small file.  From a source the last bytes are
 * read only if the format depends on them: each range may be a request to a server. */
static bool request_ends(heft_file *f)
{
    uint64_t size = f->input.in.size;
    if (f->requested_ends || f->input.whole_file)
        return false;
    f->requested_ends = true;
    if (size)
        f->input.in.need(&f->input.in, 0, size < 2 * END_BYTES ? size : END_BYTES);
    if (size >= 2 * END_BYTES && !f->source)
        f->input.in.need(&f->input.in, size - END_BYTES, END_BYTES);
    return size;
}

/* Return the format if the first bytes decide: archives and compressed files are told apart by
 * their last bytes, too. */
static const heft_format *detect_by_head(const uint8_t *head, size_t len, uint64_t size)
{
    bool is_undecided = len < 2 || (head[0] == 'P' && head[1] == 'K') ||
                        (head[0] == 0x1F && head[1] == 0x8B);
    return is_undecided ? NULL : heft_detect(head, len, head, 0, size);
}

/* Apart from detect(), which is inlined where parsing begins: boards have little stack. */
__attribute__((noinline)) static heft_status detect_archive(heft_file *f, const uint8_t *head,
                                                            size_t head_len, const uint8_t *tail,
                                                            size_t tail_len, heft_error *err)
{
    bool is_entered = false;
    heft_status st = f->opening->archive_enter(f, head, head_len, &is_entered, err);
    if (st || is_entered)
        return st;
    return f->opening->detect_foreign(head, head_len, tail, tail_len, f->input.in.size, err);
}

static heft_status detect(heft_file *f, heft_error *err)
{
    uint64_t size = f->input.in.size, min_len = size < PROBE_BYTES ? size : PROBE_BYTES, head_len,
             tail_len;
    heft_window *in = &f->input.in;
    const uint8_t *head = in->window(in, 0, END_BYTES, &head_len);
    if (!f->format && f->source && head_len >= min_len)
        f->format = detect_by_head(head, (size_t)head_len, size);
    if (f->format && !f->format->may_be_gzipped)
        return HEFT_OK;
    uint64_t from = size < END_BYTES ? 0 : size - END_BYTES;
    const uint8_t *tail = in->window(in, from, END_BYTES, &tail_len);
    if (head_len < min_len)
        in->need(in, 0, min_len);
    if (tail_len < size - from)
        in->need(in, from, size - from);
    if (f->input.needs.len)
        return HEFT_AGAIN;
    if (!f->format)
        f->format = heft_detect(head, (size_t)head_len, tail, (size_t)tail_len, size);
    bool may_be_gzipped = !f->format || f->format->may_be_gzipped;
    heft_status st = may_be_gzipped ? f->opening->gunzip_detect(f, err) : HEFT_OK;
    if (st || f->format || f->gzip.is_compressed)
        return st;
    return detect_archive(f, head, (size_t)head_len, tail, (size_t)tail_len, err);
}

static heft_status limit_error(const heft_file *f, heft_error *err)
{
    heft_error_plain(err, HEFT_E_LIMIT, "the index exceeds the limit of %U bytes", f->input.limit);
    return heft_error_rule(err, HEFT_E_LIMIT, "heft/limit-index");
}

/* Return HEFT_AGAIN, or the reason why the parser's requests cannot be met. */
static heft_status again_or_error(const heft_file *f, heft_error *err)
{
    if (f->input.over_limit)
        return limit_error(f, err);
    if (f->input.no_memory)
        return heft_error_no_memory(err, "to note what is wanted");
    return HEFT_AGAIN;
}

/* Drop mapped index pages already parsed, to halve peak memory: the index in memory can be as large
 * as the index in the file. */
static void drop_parsed_pages(void *ctx, const char **from, const char *name)
{
    const heft_file *f = ctx;
    uintptr_t base = (uintptr_t)f->input.whole_file, at = (uintptr_t)name - base;
    uintptr_t dropped = *from ? (uintptr_t)*from - base : 0;
    if (at >= f->input.in.size || at < dropped ||
        at - dropped < DROP_BYTES) /* a name copied to the arena is out of range */
        return;
    f->source->ops->dont_need(f->source, dropped, at - dropped);
    *from = name;
}

static uint64_t offset_of(const void *ctx, const char *text)
{
    return heft_input_offset_of(&((const heft_file *)ctx)->input, text);
}

static heft_status parse(heft_file *f, heft_error *err)
{
    if (f->x.pick.len && !(f->format->caps & HEFT_CAN_OPEN_KEY))
        return heft_error_plain(
            err, HEFT_E_UNSUPPORTED,
            "key %q: --key applies only to nested PyTorch checkpoints, and this is a %s file",
            f->x.pick, f->format->title);
    f->x.err = f->input.in.err = err;
    heft_ix_reset(&f->x);
    f->x.on_parsed_upto = f->input.whole_file && f->source && HEFT_HAS(f->source->ops, dont_need)
                              ? drop_parsed_pages
                              : NULL;
    f->x.on_parsed_ctx = f;
    f->x.offset_of = offset_of;
    heft_file_enter(f);
    heft_status st = f->format->parse(&f->input.in, &f->x);
    if (st == HEFT_E_FORMAT && err && !err->rule)
        heft_error_rule(err, st, f->format->structure_rule);
    if (!st && !f->x.has_name_table) /* a format may have built it to look up names */
        st = heft_ix_build_name_table(&f->x);
    if (!st)
        st = file_add_notes(f);
    if (!st)
        st = check_open_checksums(f, err);
    st = heft_file_leave_after(f, st, err);
    f->x.err = f->input.in.err = NULL;
    f->x.offset_of = NULL;
    return st == HEFT_AGAIN ? again_or_error(f, err) : st;
}

/* ---- steps of opening ---- */

static heft_status find_format(heft_file *f, heft_error *err)
{
    heft_file_enter(f);
    heft_status st = heft_file_leave_after(f, detect(f, err), err);
    return st == HEFT_AGAIN ? again_or_error(f, err) : st;
}

heft_status heft_file_parse(heft_file *f, heft_error *err)
{
    heft_status st = HEFT_OK;
    heft_input_clear(&f->input);
    if (request_ends(f))
        return again_or_error(f, err);
    if (!f->format || (f->format->may_be_gzipped && !f->gzip.was_decompressed))
        st = find_format(f, err);
    if (!st && f->gzip.is_compressed)
        st = f->opening->gunzip(f, err);
    if (!st && !f->format && f->gzip.was_decompressed) /* a tar archive */
        st = find_format(f, err);
    if (!st && !f->format) /* begin again with a member of an archive */
        return HEFT_AGAIN;
    return st ? st : parse(f, err);
}

heft_status heft_file_finish(heft_file *f, heft_error *err)
{
    heft_status st = f->opening->archive_note(f);
    if (st)
        return heft_error_no_memory(err, "for the notes about an archive");
    st = f->opening->resolve_lengths(f, err);
    if (!st && !heft_ix_list_tensor_checksums(&f->x))
        st = heft_error_no_memory(err, "for a list of checksums");
    if (!st && f->shards) {
        f->name = heft_arena_copy(&f->x.arena, heft_lit(f->shards->name));
        st = f->name.ptr ? HEFT_OK : heft_error_no_memory(err, "for the name of the file");
    }
    if (!st && f->gzip.was_decompressed)
        heft_ix_note(
            &f->x, HEFT_NOTE, "heft/gzip", HEFT_NOWHERE, HEFT_NONE,
            "the file is compressed with gzip: offsets and sizes refer to the unpacked content");
    if (!st && f->x.lost_notes)
        st = heft_error_no_memory(err, "for the notes about the file");
    f->ready = !st;
    return st;
}

/* ---- files fed by the caller ---- */

#define COMPLETE                                                                         \
    .decode = heft_input_decode, .container = HEFT_IS_LEAN ? NULL : heft_file_container, \
    .gunzip_detect = heft_gunzip_detect, .gunzip = heft_gunzip,                          \
    .resolve_lengths = heft_resolve_lengths, .archive_note = heft_archive_note,          \
    .detect_foreign = heft_detect_foreign
static const heft_opening fed = { COMPLETE, .archive_enter = heft_no_archive };
static const heft_opening fetched = { COMPLETE, .archive_enter = heft_archive_enter };

heft_status heft_file_begin(heft_file **out, uint64_t file_size, const heft_open_options *opt,
                            heft_error *err)
{
    return heft_file_create(out, file_size, &fed, opt, err);
}

size_t heft_file_needs(const heft_file *f, const heft_range **out)
{
    *out = f->input.needs.ptr;
    return f->input.needs.len;
}

heft_status heft_file_feed(heft_file *f, uint64_t offset, const void *data, size_t len,
                           heft_error *err)
{
    heft_range r = { offset, len };
    if (f->ready || f->gzip.was_decompressed)
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "the file is complete: it takes no more bytes");
    if (!heft_range_in(r, f->input.in.size))
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "%U bytes at offset %U exceed the file, which has %U bytes",
                                (uint64_t)len, offset, f->input.in.size);
    if (!offset && len == f->input.in.size) {
        f->input.whole_file = data;
        return HEFT_OK;
    }
    if (f->input.whole_file)
        return HEFT_OK;
    if (len > f->input.limit - f->input.held)
        return limit_error(f, err);
    return heft_input_feed(&f->input, offset, data, len, err);
}

heft_status heft_file_set_source(heft_file *f, heft_source *take, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    heft_status st = heft_source_check(take, err);
    if (st) /* a table without its size has no close() to call */
        return heft_error_end(err, st);
    if (f->source || take->size != f->input.in.size) {
        st = heft_error_plain(err, HEFT_E_ARGUMENT,
                              "the file has a source already, or the source has %U bytes and the "
                              "file %U",
                              take->size, f->input.in.size);
        heft_source_close(take);
        return heft_error_end(err, st);
    }
    f->source = take;
    return HEFT_OK;
}

/* ---- files with a source ---- */

/* Announce the range needs[at] to the source, with the following ranges that are near: requests of
 * their own would take longer than the bytes between them.  Return the number of the next range. */
static size_t announce(const heft_file *f, const heft_range *needs, size_t at, size_t n)
{
    enum { NEAR = 64 << 10 };
    uint64_t begin = needs[at].offset, end = begin + needs[at].length;
    for (at++; at < n && needs[at].offset >= end && needs[at].offset - end <= NEAR; at++)
        end = needs[at].offset + needs[at].length;
    f->source->ops->will_need(f->source, begin, end - begin);
    return at;
}

static heft_status fetch(heft_file *f, heft_error *err)
{
    enum { AHEAD = 64 }; /* ranges that a source may request at the same time */
    const heft_range *needs;
    size_t n = heft_file_needs(f, &needs), announced = f->source->ops->will_need && n > 1 ? 0 : n;
    for (size_t i = 0; i < n; i++) {
        uint8_t *to;
        heft_range r = needs[i];
        while (announced < n && announced < i + AHEAD)
            announced = announce(f, needs, announced, n);
        if (r.length > SIZE_MAX)
            return heft_error_plain(err, HEFT_E_LIMIT,
                                    "cannot read %U bytes at once on this system", r.length);
        for (heft_range m; heft_input_missing(&f->input, &r, &m);) {
            HEFT_TRY(heft_input_reserve(&f->input, m.offset, (size_t)m.length, &to, err));
            HEFT_TRY(f->source->ops->read(f->source, m.offset, to, (size_t)m.length, err));
            HEFT_TRY(heft_input_join(&f->input, m.offset, err));
        }
    }
    return HEFT_OK;
}

heft_status heft_file_open_one(heft_file **out, heft_source *take, const heft_open_options *opt,
                               heft_file_step_one step, heft_error *err)
{
    heft_error own; /* used by parsers and sources if err is NULL */
    err = heft_error_begin(err, &own);
    *out = NULL;
    heft_status st = heft_source_check(take, err);
    if (!st)
        st = heft_file_create(out, take->size, &fetched, opt, err);
    if (st) {
        heft_source_close(take);
        return st;
    }
    (*out)->source = take;
    heft_file_use_source(*out);
    bool is_open = false;
    while (!st && !is_open) {
        st = step(*out, err);
        is_open = st == HEFT_OK;
        if (st == HEFT_AGAIN)
            st = fetch(*out, err);
    }
    if (st) {
        heft_file_close(*out);
        *out = NULL;
    }
    return heft_error_end(err, st);
}
