#include "commands/verify_share.h"

#include <heft/heft_ext.h>
#include <heft/private.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process/sinkwatch.h"
#include "process/textfile.h"

enum { PATH_BYTES = 4096, SUM_BYTES = sizeof "sum 0123456789abcdef\n" - 1 };

static const char magic[] = "heft results 3 verify\n";
enum { MAGIC_BYTES = sizeof magic - 1 };

int verify_shares_prepare(verify_shares *s)
{
    heft_error err;
    if (s->text && s->join)
        return say_usage("verify", "--share and --join exclude each other");
    if (s->out && !s->text)
        return say_usage("verify", "--output needs --share");
    if (s->text && heft_share_find(&s->own, s->text, &err))
        return say_usage("verify", "--share: %s", err.message);
    return CODE_DONE;
}

static int name_record(char path[PATH_BYTES], const char *stem, uint32_t which)
{
    bool fits = snprintf(path, PATH_BYTES, "%s.%u", stem, which) < PATH_BYTES;
    return fits ? CODE_DONE : say_usage("verify", "the name of the record is too long");
}

/* Write the lines that all records of a file begin with, up to the numbers of the share. */
static heft_status put_head(outbuf *o, const heft_file *f, heft_error *err)
{
    heft_hash id;
    heft_status st = heft_share_file_id(&id, f, err);
    out_format(o, "%sfile ", magic);
    if (!st)
        out_hex(o, id.bytes, sizeof id.bytes);
    out_text(o, "\nshare");
    return st;
}

/* Compute the last line. FNV-1a, 64 bits, notices accidents. */
static void sum_lines(char out[SUM_BYTES + 1], const char *p, size_t len)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < len; i++)
        sum = (sum ^ (uint8_t)p[i]) * UINT64_C(0x100000001b3);
    snprintf(out, SUM_BYTES + 1, "sum %016llx\n", (unsigned long long)sum);
}

/* ---- writing ---- */

typedef struct writing {
    outbuf *text; /* the record */
    const heft_verify_options *caller;
} writing;

/* Lines of a record: numbers, then rule and text, each with its length. */
static void put_finding(void *ctx, const heft_finding *x)
{
    const writing *w = ctx;
    size_t rule = strlen(x->rule), text = strlen(x->text);
    out_format(w->text, "finding %u %d %llu %llu %u %u %zu %zu\n", x->stage, (int)x->severity,
               (unsigned long long)x->where.offset, (unsigned long long)x->where.length, x->tensor,
               x->shard, rule, text);
    out_format(w->text, "%s %s\n", x->rule, x->text);
}

static bool report_progress(void *ctx, uint64_t done, uint64_t total)
{
    const heft_verify_options *caller = ((const writing *)ctx)->caller;
    return caller->progress(caller->ctx, done, total);
}

static int write_file(const char *path, const outbuf *text)
{
    heft_error err;
    heft_sink *sink;
    heft_status st = heft_sink_open_file(&sink, path, HEFT_SINK_REPLACE | HEFT_SINK_SYNC, &err);
    if (!st)
        st = sink_write_whole(sink, text->buf, text->used, &err);
    return st ? say_error(path, &err) : CODE_DONE;
}

static int write_record(const verify_shares *s, const outbuf *text)
{
    char path[PATH_BYTES];
    outbuf o;
    if (s->out) {
        int code = name_record(path, s->out, s->own.number);
        return code ? code : write_file(path, text);
    }
    out_open(&o, STDOUT_FILENO);
    out_bytes(&o, text->buf, text->used);
    return out_end(&o, CODE_DONE);
}

int verify_share_write(const verify_shares *s, const heft_file *f, const char *path,
                       const heft_verify_options *options)
{
    char sum[SUM_BYTES + 1];
    outbuf text;
    heft_error err;
    heft_verify_result r = { .notes = 0 };
    heft_verify_options o = *options;
    writing w = { &text, options };
    out_open(&text, -1);
    o.share = (uint16_t)s->own.number;
    o.share_count = (uint16_t)s->own.count;
    o.on_finding = put_finding;
    o.progress = options->progress ? report_progress : NULL;
    o.ctx = &w;
    heft_status st = put_head(&text, f, &err);
    out_format(&text, " %u %u\n", s->own.number, s->own.count);
    if (!st)
        st = heft_file_verify(&r, f, &o, &err);
    out_format(&text, "checked %llu %llu %llu\n", (unsigned long long)r.bytes_checked,
               (unsigned long long)r.payload_bytes, (unsigned long long)r.payload_checked);
    sum_lines(sum, text.buf, text.used);
    out_text(&text, sum);
    int code = st        ? say_error(path, &err)
               : text.os ? say_status(HEFT_E_NOMEM, path, "no memory for a record")
                         : write_record(s, &text);
    out_free(&text);
    return code;
}

/* ---- joining ---- */

typedef struct found {
    heft_finding finding;
    struct found *next;
    char text[]; /* rule and text, terminated */
} found;

typedef struct joining {
    const heft_file *f;
    const char *path;
    outbuf head;
    uint32_t count;       /* number of shares, 0 before the first record */
    found *first, **last; /* by record; *last is the end of the list */
    heft_verify_result *result;
    bool no_memory;
} joining;

enum { STAGES = 8 };

/* Read n decimal numbers, each after a blank, and the end of the line; NULL: damaged. The last line
 * of the record ends every number. */
static const char *read_numbers(const char *p, uint64_t *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char *end;
        if (*p != ' ' || p[1] < '0' || p[1] > '9')
            return NULL;
        to[i] = strtoull(p + 1, &end, 10);
        p = end;
    }
    return *p == '\n' ? p + 1 : NULL;
}

static const char *read_checked(joining *g, const char *p)
{
    uint64_t v[3];
    p = read_numbers(p, v, 3);
    if (!p)
        return NULL;
    g->result->bytes_checked += v[0];
    /* All shares count the same bytes; the first counts those of files inside of others, too. */
    if (v[1] > g->result->payload_bytes)
        g->result->payload_bytes = v[1];
    if (v[2] > g->result->payload_checked)
        g->result->payload_checked = v[2];
    return p;
}

/* Return the line after the finding; NULL: damaged, or without memory. */
static const char *read_finding(joining *g, const char *p, const char *end)
{
    enum { STAGE, SEVERITY, OFFSET, LENGTH, TENSOR, SHARD, RULE, TEXT, NUMBERS };
    uint64_t v[NUMBERS];
    p = read_numbers(p, v, NUMBERS);
    size_t left = p ? (size_t)(end - p) : 0;
    if (!p || v[STAGE] >= STAGES || v[SEVERITY] > HEFT_FAULT ||
        (v[TENSOR] >= heft_tensor_count(g->f) && v[TENSOR] != HEFT_NONE) ||
        v[SHARD] > heft_shard_file_count(g->f) || v[RULE] >= left || v[TEXT] >= left - v[RULE] ||
        left - v[RULE] - v[TEXT] < 2)
        return NULL;
    size_t bytes = (size_t)(v[RULE] + v[TEXT]) + 2;
    found *x = malloc(sizeof *x + bytes);
    g->no_memory = !x;
    if (!x)
        return NULL;
    memcpy(x->text, p, bytes);
    x->text[v[RULE]] = x->text[bytes - 1] = '\0';
    x->finding = (heft_finding){ .severity = (heft_severity)v[SEVERITY],
                                 .rule = x->text,
                                 .where = { v[OFFSET], v[LENGTH] },
                                 .tensor = (uint32_t)v[TENSOR],
                                 .text = x->text + v[RULE] + 1,
                                 .shard = (uint32_t)v[SHARD],
                                 .stage = (uint32_t)v[STAGE] };
    x->next = NULL;
    *g->last = x;
    g->last = &x->next;
    return p + bytes;
}

static const char *read_line(joining *g, const char *p, const char *end)
{
    static const char finding[] = "finding", checked[] = "checked";
    enum { WORD = sizeof finding - 1 };
    if (!strncmp(p, finding, WORD))
        return read_finding(g, p + WORD, end);
    return strncmp(p, checked, WORD) ? NULL : read_checked(g, p + WORD);
}

static int say_wrong(const char *path, const char *why)
{
    return say_status(HEFT_E_ARGUMENT, path, "%s", why);
}

/* Read a record that begins with the magic text, which is longer than the last line. */
static int read_lines(joining *g, uint32_t which, const char *path, heft_str text)
{
    char sum[SUM_BYTES + 1];
    uint64_t v[2];
    size_t len = text.len - SUM_BYTES, head = g->head.used;
    const char *end = text.ptr + len;
    sum_lines(sum, text.ptr, len);
    if (memcmp(end, sum, SUM_BYTES) != 0)
        return say_wrong(path, "the record is damaged");
    if (len < head || memcmp(text.ptr, g->head.buf, head) != 0)
        return say_status(HEFT_E_ARGUMENT, path,
                          "is a record of another file than %s, or of another version of it; "
                          "compute the shares again",
                          stdin_label(g->path));
    const char *p = read_numbers(text.ptr + head, v, 2);
    if (!p || v[0] != which || v[1] < which || v[1] > HEFT_SHARE_MAX_COUNT ||
        (g->count && v[1] != g->count))
        return say_wrong(path, "is not a record of `heft verify` for this share");
    g->count = (uint32_t)v[1];
    while (p && p < end)
        p = read_line(g, p, end);
    if (g->no_memory)
        return say_status(HEFT_E_NOMEM, path, "no memory for a record");
    return p ? CODE_DONE : say_wrong(path, "the record is damaged");
}

static int read_record(joining *g, const char *stem, uint32_t which)
{
    char path[PATH_BYTES];
    heft_str text = { NULL, 0 };
    int code = name_record(path, stem, which);
    if (!code)
        code = text_read(&text, path, TEXT_NAMED);
    if (!code && (text.len < MAGIC_BYTES || memcmp(text.ptr, magic, MAGIC_BYTES) != 0))
        code = say_wrong(path, "is not a record of `heft verify`");
    if (!code)
        code = read_lines(g, which, path, text);
    text_free(text);
    return code;
}

static void report_stage(const joining *g, uint32_t stage, heft_finding_fn fn, void *ctx)
{
    for (const found *x = g->first; x; x = x->next) {
        heft_severity s = x->finding.severity;
        if (x->finding.stage != stage)
            continue;
        ++*(s == HEFT_FAULT     ? &g->result->faults
            : s == HEFT_WARNING ? &g->result->warnings
                                : &g->result->notes);
        fn(ctx, &x->finding);
    }
}

int verify_share_join(const verify_shares *s, heft_verify_result *result, const heft_file *f,
                      const char *path, heft_finding_fn fn, void *ctx)
{
    heft_error err;
    joining g = { .f = f, .path = path, .result = result };
    g.last = &g.first;
    out_open(&g.head, -1);
    int code = put_head(&g.head, f, &err) ? say_error(path, &err) : CODE_DONE;
    if (!code && g.head.os)
        code = say_status(HEFT_E_NOMEM, path, "no memory for records");
    for (uint32_t i = 1; !code && (i == 1 || i <= g.count); i++)
        code = read_record(&g, s->join, i);
    for (uint32_t stage = 0; !code && stage < STAGES; stage++)
        report_stage(&g, stage, fn, ctx);
    for (found *x = g.first, *next; x; x = next) {
        next = x->next;
        free(x);
    }
    out_free(&g.head);
    return code;
}
