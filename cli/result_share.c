#include "result_share.h"

#include <heft/heft_ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stdin_file.h"
#include "textfile.h"

enum { HEAD_BYTES = 640, PATH_BYTES = 4096, WORD_DIGITS = 16 };

opt result_share_option(result_share *r, size_t i)
{
    const opt all[RESULT_SHARE_OPTIONS] = {
        { "share", 0, OPT_TEXT, &r->share_text, "I/N",
          "compute share I of N; auto: as Open MPI, MPICH or Slurm says" },
        { "output", 'o', OPT_OUTPUT, &r->out, "STEM",
          "with --share, write the record to STEM.I (default: stdout)" },
        { "join", 0, OPT_RECORDS, &r->join, "STEM",
          "print the result of all shares, from STEM.1, STEM.2, ..." },
    };
    return all[i];
}

int result_share_prepare(result_share *r)
{
    heft_error err;
    if (r->share_text && r->join)
        return say_usage(r->command, "--share and --join exclude each other");
    if (r->out && !r->share_text)
        return say_usage(r->command, "--output needs --share");
    if (r->share_text && heft_share_find(&r->share, r->share_text, &err))
        return say_usage(r->command, "--share: %s", err.message);
    return CODE_DONE;
}

/* ---- rows ---- */

/* FNV-1a, 64 bits: notices accidents. */
static uint64_t fnv(uint64_t h, const void *p, size_t len)
{
    const uint8_t *bytes = p;
    for (size_t i = 0; i < len; i++)
        h = (h ^ bytes[i]) * UINT64_C(0x100000001b3);
    return h;
}

static const uint64_t fnv_begin = UINT64_C(0xcbf29ce484222325);

static result_row selected_row(const void *ctx, uint32_t i)
{
    const result_share *r = ctx;
    uint32_t id = selected(r->chosen, i);
    return (result_row){ id, HEFT_NONE, heft_tensor_bytes(r->f, id) };
}

void result_share_set_tensors(result_share *r, const heft_file *f, const char *path,
                              const selection *chosen)
{
    r->f = f;
    r->path = path;
    r->chosen = chosen;
    r->rows = chosen->count;
    r->row = selected_row;
    r->ctx = r;
}

/* Sum the bytes of the rows up to each row, and hash the rows. */
static bool measure_rows(result_share *r)
{
    r->before = malloc(((size_t)r->rows + 1) * sizeof *r->before);
    r->tensors = fnv_begin;
    for (uint32_t i = 0; r->before && i <= r->rows; i++) {
        result_row last = i ? r->row(r->ctx, i - 1) : (result_row){ 0, 0, 0 };
        uint64_t sum = i ? r->before[i - 1] + last.bytes : 0;
        bool has_overflow = i && sum < r->before[i - 1];
        r->before[i] = has_overflow ? UINT64_MAX : sum;
        r->tensors = fnv(fnv(r->tensors, &last.a, sizeof last.a), &last.b, sizeof last.b);
        r->tensors = fnv(r->tensors, &last.bytes, sizeof last.bytes);
    }
    return r->before;
}

int result_share_open(result_share *r)
{
    heft_error err;
    size_t used = strlen(r->options);
    if (model_settings.no_verify)
        snprintf(r->options + used, sizeof r->options - used, "%s--no-verify", used ? " " : "");
    if (!measure_rows(r))
        return say_status(HEFT_E_NOMEM, r->path, "no memory for a list of tensors");
    if (heft_share_file_id(&r->ids[0], r->f, &err))
        return say_error(r->path, &err);
    if (r->other && heft_share_file_id(&r->ids[1], r->other, &err))
        return say_error(r->other_path, &err);
    return CODE_DONE;
}

void result_share_close(result_share *r)
{
    free(r->before);
    r->before = NULL;
}

/* Return the first row that begins at `bytes` or later. */
static uint32_t first_row_at(const result_share *r, uint64_t bytes)
{
    uint32_t first = 0, end = r->rows;
    while (first < end) {
        uint32_t middle = first + (end - first) / 2;
        if (r->before[middle] < bytes)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

void result_share_rows(const result_share *r, uint32_t which, uint32_t count, uint32_t *first,
                       uint32_t *end)
{
    uint64_t each = r->before[r->rows] / count + 1;
    *first = which == 1 ? 0 : first_row_at(r, each * (which - 1));
    *end = which == count ? r->rows : first_row_at(r, each * which);
}

/* Write the first lines of a record. */
static void put_head(outbuf *o, const result_share *r, heft_share s)
{
    uint32_t first, end;
    result_share_rows(r, s.number, s.count, &first, &end);
    out_format(o, "heft results 2 %s\nfile ", r->command);
    out_hex(o, r->ids[0].bytes, HEFT_HASH_BYTES);
    if (r->other) {
        out_text(o, "\nwith ");
        out_hex(o, r->ids[1].bytes, HEFT_HASH_BYTES);
    }
    out_format(o, "\noptions %s\ntensors %016llx\nshare %u of %u\nrows %u to %u of %u, %u words\n",
               *r->options ? r->options : "none", (unsigned long long)r->tensors, s.number, s.count,
               first, end, r->rows, r->words);
}

/* ---- writing ---- */

static int write_file(const result_share *r, const char *text, size_t len)
{
    char path[PATH_BYTES];
    heft_error err;
    heft_sink *sink;
    int n = snprintf(path, sizeof path, "%s.%u", r->out, r->share.number);
    if ((size_t)n >= sizeof path)
        return say_usage(r->command, "the name of the record is too long");
    heft_status st = heft_sink_open_file(&sink, path, HEFT_SINK_REPLACE | HEFT_SINK_SYNC, &err);
    if (st)
        return say_error(path, &err);
    st = sink->ops->write_at ? sink->ops->write_at(sink, 0, text, len, &err)
                             : sink->ops->write(sink, text, len, &err);
    if (!st)
        st = sink->ops->finish(sink, &err);
    else
        heft_sink_discard(sink);
    return st ? say_error(path, &err) : CODE_DONE;
}

void result_share_begin(const result_share *r, outbuf *text)
{
    out_open(text, -1);
    put_head(text, r, r->share);
}

int result_share_end(const result_share *r, outbuf *text)
{
    outbuf o;
    uint64_t sum = fnv(fnv_begin, text->buf, text->used);
    out_format(text, "sum %016llx\n", (unsigned long long)sum);
    int code = text->os ? say_status(HEFT_E_NOMEM, r->path, "no memory for a record") : CODE_DONE;
    if (!code && r->out) {
        code = write_file(r, text->buf, text->used);
    } else if (!code) {
        out_open(&o, STDOUT_FILENO);
        out_bytes(&o, text->buf, text->used);
        code = out_end(&o, code);
    }
    out_free(text);
    return code;
}

int result_share_write(const result_share *r, const uint64_t *words, const outbuf *crcs)
{
    uint32_t first, end;
    outbuf text;
    result_share_rows(r, r->share.number, r->share.count, &first, &end);
    result_share_begin(r, &text);
    for (uint32_t row = first; row < end; row++)
        for (uint32_t k = 0; k < r->words; k++)
            out_format(&text, "%016llx%c", (unsigned long long)*words++,
                       k + 1 < r->words ? ' ' : '\n');
    out_bytes(&text, crcs->buf, crcs->used);
    text.os = text.os ? text.os : crcs->os;
    return result_share_end(r, &text);
}

/* ---- joining ---- */

static bool read_word(uint64_t *out, const char *p)
{
    *out = 0;
    for (int i = 0; i < WORD_DIGITS; i++) {
        const char *digits = "0123456789abcdef", *at = p[i] ? strchr(digits, p[i]) : NULL;
        if (!at)
            return false;
        *out = *out << 4 | (uint64_t)(at - digits);
    }
    return true;
}

/* Read the rows of a record, and set the lines after the rows; false: damaged. */
static bool read_rows(const result_share *r, heft_str body, uint64_t *to, uint64_t count,
                      heft_str *rest)
{
    enum { CELL = WORD_DIGITS + 1 };
    if (body.len / CELL < count)
        return false;
    *rest = (heft_str){ body.ptr + count * CELL, body.len - (size_t)count * CELL };
    for (uint64_t i = 0; i < count; i++) {
        const char *cell = body.ptr + i * CELL;
        if (!read_word(&to[i], cell) || cell[WORD_DIGITS] != ((i + 1) % r->words ? ' ' : '\n'))
            return false;
    }
    return true;
}

/* Check the last line; set the text between the first lines and the last line. */
static bool find_body(heft_str *body, heft_str text, size_t head)
{
    enum { SUM_BYTES = 4 + WORD_DIGITS + 1 };
    uint64_t sum;
    if (text.len < head + SUM_BYTES)
        return false;
    const char *end = text.ptr + text.len - SUM_BYTES;
    *body = (heft_str){ text.ptr + head, text.len - head - SUM_BYTES };
    return !memcmp(end, "sum ", 4) && read_word(&sum, end + 4) && end[SUM_BYTES - 1] == '\n' &&
           sum == fnv(fnv_begin, text.ptr, text.len - SUM_BYTES);
}

int result_share_damaged(const result_share *r, uint32_t which)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s.%u", r->join, which);
    return say_status(HEFT_E_ARGUMENT, path, "the record is damaged");
}

/* Read the number of shares from the first lines of a record; 0: there is none. */
static uint32_t count_in(heft_str text)
{
    char found[HEAD_BYTES] = "";
    unsigned own, all;
    memcpy(found, text.ptr, text.len < HEAD_BYTES - 1 ? text.len : HEAD_BYTES - 1);
    const char *line = strstr(found, "\nshare ");
    bool is_found = line && sscanf(line, "\nshare %9u of %9u", &own, &all) == 2;
    return is_found && all <= HEFT_SHARE_MAX_COUNT ? all : 0;
}

/* Say in which line of the first lines a record differs. */
static int say_other_record(const result_share *r, const char *path, const char *head,
                            heft_str text)
{
    size_t at = 0, line = 0;
    for (; at < text.len && head[at] && head[at] == text.ptr[at]; at++)
        line = head[at] == '\n' ? at + 1 : line;
    static const char again[] = "or of another version of it; compute the shares again";
    if (!strncmp(head + line, "file ", 5))
        return say_status(HEFT_E_ARGUMENT, path, "is a record of another file than %s, %s",
                          stdin_label(r->path), again);
    if (!strncmp(head + line, "with ", 5))
        return say_status(HEFT_E_ARGUMENT, path, "is a record of another file than %s, %s",
                          stdin_label(r->other_path), again);
    if (!strncmp(head + line, "options ", 8))
        return say_status(HEFT_E_ARGUMENT, path,
                          "was computed with other options than these: %s; compute the shares "
                          "again, or give --join their options",
                          *r->options ? r->options : "none");
    if (!strncmp(head + line, "tensors ", 8))
        return say_status(HEFT_E_ARGUMENT, path,
                          "was computed for other tensors; give --join the same patterns");
    return say_status(HEFT_E_ARGUMENT, path, "is not a record of `heft %s` for this share",
                      r->command);
}

int result_share_read(const result_share *r, uint32_t which, uint32_t *count, heft_str *text,
                      heft_str *body)
{
    char path[PATH_BYTES];
    outbuf head;
    *text = (heft_str){ NULL, 0 };
    int n = snprintf(path, sizeof path, "%s.%u", r->join, which);
    if ((size_t)n >= sizeof path)
        return say_usage(r->command, "the name of a record is too long");
    int code = text_read(text, path, TEXT_NAMED);
    if (code)
        return code;
    *count = *count ? *count : count_in(*text);
    out_open(&head, -1);
    put_head(&head, r, (heft_share){ which, *count ? *count : 1 });
    const char *lines = out_cstr(&head);
    if (head.os)
        code = say_status(HEFT_E_NOMEM, path, "no memory for a record");
    else if (!*count || text->len < head.used || memcmp(text->ptr, lines, head.used) != 0)
        code = say_other_record(r, path, lines, *text);
    else if (!find_body(body, *text, head.used))
        code = result_share_damaged(r, which);
    out_free(&head);
    return code;
}

/* Give each of the checks a line with CRCs; false: damaged. */
static bool join_crcs(checks *const *joined, size_t count, heft_str rest)
{
    bool ok = true;
    for (size_t i = 0; i < count && ok; i++) {
        const char *end = rest.len ? memchr(rest.ptr, '\n', rest.len) : NULL;
        size_t len = end ? (size_t)(end - rest.ptr) : 0;
        ok = end && checks_join_crcs(joined[i], (heft_str){ rest.ptr, len });
        rest = ok ? (heft_str){ end + 1, rest.len - len - 1 } : rest;
    }
    return ok && !rest.len;
}

int result_share_join(const result_share *r, uint64_t **words, checks *const *joined,
                      const char *const *paths, size_t joined_count)
{
    uint32_t count = 0, first, end;
    int code = CODE_DONE;
    *words = calloc((size_t)r->rows + 1, r->words * sizeof **words);
    if (!*words)
        return say_status(HEFT_E_NOMEM, r->path, "no memory for records");
    for (uint32_t i = 1; !code && (i == 1 || i <= count); i++) {
        heft_str text, body, rest;
        code = result_share_read(r, i, &count, &text, &body);
        if (!code) {
            result_share_rows(r, i, count, &first, &end);
            if (!read_rows(r, body, *words + (size_t)first * r->words,
                           (uint64_t)(end - first) * r->words, &rest) ||
                !join_crcs(joined, joined_count, rest))
                code = result_share_damaged(r, i);
        }
        text_free(text);
    }
    for (size_t i = 0; i < joined_count && !code; i++)
        code = checks_end(joined[i], paths[i]);
    if (code) {
        free(*words);
        *words = NULL;
    }
    return code;
}
