#include "verify_share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "textfile.h"

/* ---- writing ---- */

/* Lines of a record: numbers, then rule and text, each with its length. */
static void put_finding(void *ctx, const heft_finding *x)
{
    size_t rule = strlen(x->rule), text = strlen(x->text);
    out_format(ctx, "finding %u %d %llu %llu %u %u %zu %zu\n", x->stage, (int)x->severity,
               (unsigned long long)x->where.offset, (unsigned long long)x->where.length, x->tensor,
               x->shard, rule, text);
    out_bytes(ctx, x->rule, rule);
    out_char(ctx, ' ');
    out_bytes(ctx, x->text, text);
    out_char(ctx, '\n');
}

int verify_share(result_share *r, heft_verify_result *result, heft_verify_options *options)
{
    outbuf text;
    heft_error err;
    result_share_begin(r, &text);
    options->share = (uint16_t)r->share.number;
    options->share_count = (uint16_t)r->share.count;
    options->on_finding = put_finding;
    options->ctx = &text;
    if (heft_file_verify(result, r->f, options, &err)) {
        out_free(&text);
        return say_error(r->path, &err);
    }
    out_format(&text, "checked %llu %llu %llu\n", (unsigned long long)result->bytes_checked,
               (unsigned long long)result->payload_bytes,
               (unsigned long long)result->payload_checked);
    return result_share_end(r, &text);
}

/* ---- joining ---- */

typedef struct found { /* rule and text are in `lines`, terminated */
    heft_finding finding;
    struct found *next;
} found;

enum { STAGES = 8 };

typedef struct joining {
    const result_share *r;
    char **lines; /* by record: a copy of the body */
    found *first[STAGES], *last[STAGES];
    heft_verify_result *result;
} joining;

/* Read n decimal numbers, each after a blank; return the end, or NULL. */
static char *read_numbers(char *p, uint64_t *to, size_t n)
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

static char *read_checked(joining *g, char *p)
{
    uint64_t v[3];
    p = read_numbers(p, v, 3);
    if (!p)
        return NULL;
    g->result->bytes_checked += v[0];
    g->result->payload_bytes = v[1];
    g->result->payload_checked = v[2];
    return p;
}

/* Return the line after the finding; NULL: damaged, or without memory. */
static char *read_finding(joining *g, char *p, const char *end)
{
    enum { STAGE, SEVERITY, OFFSET, LENGTH, TENSOR, SHARD, RULE, TEXT, NUMBERS };
    uint64_t v[NUMBERS];
    p = read_numbers(p, v, NUMBERS);
    size_t left = p ? (size_t)(end - p) : 0;
    if (!p || v[STAGE] >= STAGES || v[SEVERITY] > HEFT_FAULT ||
        (v[TENSOR] >= heft_tensor_count(g->r->f) && v[TENSOR] != HEFT_NONE) ||
        v[SHARD] > heft_shard_file_count(g->r->f) || v[RULE] >= left || v[TEXT] >= left - v[RULE] ||
        left - v[RULE] - v[TEXT] < 2)
        return NULL;
    found *x = calloc(1, sizeof *x);
    if (!x)
        return NULL;
    char *text = p + v[RULE] + 1, *next = text + v[TEXT] + 1;
    text[-1] = next[-1] = '\0';
    x->finding = (heft_finding){ .severity = (heft_severity)v[SEVERITY],
                                 .rule = p,
                                 .where = { v[OFFSET], v[LENGTH] },
                                 .tensor = (uint32_t)v[TENSOR],
                                 .text = text,
                                 .shard = (uint32_t)v[SHARD],
                                 .stage = (uint32_t)v[STAGE] };
    *(g->first[v[STAGE]] ? &g->last[v[STAGE]]->next : &g->first[v[STAGE]]) = x;
    g->last[v[STAGE]] = x;
    return next;
}

static bool read_lines(joining *g, char *p, const char *end)
{
    static const char finding[] = "finding", checked[] = "checked";
    enum { WORD = sizeof finding - 1 };
    while (p && p < end) {
        if (!strncmp(p, finding, WORD))
            p = read_finding(g, p + WORD, end);
        else
            p = strncmp(p, checked, WORD) ? NULL : read_checked(g, p + WORD);
    }
    return p;
}

static int read_all(joining *g)
{
    uint32_t count = 0;
    int code = CODE_DONE;
    for (uint32_t i = 1; !code && (i == 1 || i <= count); i++) {
        heft_str text, body;
        code = result_share_read(g->r, i, &count, &text, &body);
        if (!code && !g->lines)
            g->lines = calloc((size_t)count + 1, sizeof *g->lines);
        char *copy = code || !g->lines ? NULL : malloc(body.len + 1);
        if (!code && !copy)
            code = say_status(HEFT_E_NOMEM, g->r->path, "no memory for records");
        if (!code) {
            memcpy(copy, body.ptr, body.len);
            copy[body.len] = '\0';
            g->lines[i - 1] = copy;
            if (!read_lines(g, copy, copy + body.len))
                code = result_share_damaged(g->r, i);
        }
        text_free(text);
    }
    return code;
}

/* Report and free the findings of a stage. */
static void report_stage(joining *g, uint32_t stage, bool reports, heft_finding_fn fn, void *ctx)
{
    for (found *x = g->first[stage], *next; x; x = next) {
        heft_severity s = x->finding.severity;
        next = x->next;
        ++*(s == HEFT_FAULT     ? &g->result->faults
            : s == HEFT_WARNING ? &g->result->warnings
                                : &g->result->notes);
        if (reports)
            fn(ctx, &x->finding);
        free(x);
    }
}

int verify_join(result_share *r, heft_verify_result *result, heft_finding_fn fn, void *ctx)
{
    joining g = { .r = r, .result = result };
    *result = (heft_verify_result){ .notes = 0 };
    int code = read_all(&g);
    for (uint32_t stage = 0; stage < STAGES; stage++)
        report_stage(&g, stage, !code, fn, ctx);
    for (size_t i = 0; g.lines && g.lines[i]; i++)
        free(g.lines[i]);
    free(g.lines);
    return code;
}
