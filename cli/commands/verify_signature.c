/* verify_signature.c - compares the files of a model with a signed list.
 *
 * A wrong signature ends the check: the list of files would prove nothing. */
#include "commands/verify_signature.h"

#include <heft/sign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/file_findings.h"
#include "models/model_files.h"
#include "process/textfile.h"

enum { ALGORITHM_MAX = 16 };

typedef struct file_check { /* one resource of a file that exists */
    const char *path;
    uint32_t resource;
    char algorithm[ALGORITHM_MAX];
} file_check;

typedef struct check {
    const signature_request *r;
    file_findings f;
    heft_signature *s;
    heft_signature_info info;
    model_files files;
    file_check *checks; /* one for each request */
    digest_request *requests;
    size_t count;
    bool *is_present;    /* one for each resource */
    const char *failure; /* text for --json */
} check;

static const heft_range nowhere = { HEFT_NOWHERE, 0 };

/* ---- the signature ---- */

static int read_signature(check *c)
{
    heft_error err;
    heft_str text;
    int code = text_read(&text, c->r->signature, TEXT_NAMED);
    if (code)
        return code;
    if (heft_signature_read(&c->s, text, NULL, &err))
        code = say_error(c->r->signature, &err);
    else
        heft_signature_get(&c->info, c->s);
    text_free(text);
    return code;
}

/* Check with --ca and --certificate, or with --key. *who names the file of an error. */
static heft_status check_signer(const check *c, heft_str first, heft_str second, const char **who,
                                heft_error *err)
{
    *who = c->r->key ? c->r->key : c->r->authorities;
    if (c->r->key)
        return heft_signature_check_key(c->s, first, err);
    heft_status st = heft_signature_check_chain(c->s, first, second, err);
    return st;
}

/* Return CODE_FOUND, after a finding, if somebody else signed. */
static int check_signature(check *c)
{
    heft_error err;
    heft_str first = { NULL, 0 }, second = { NULL, 0 };
    const char *who;
    int code = text_read(&first, c->r->key ? c->r->key : c->r->authorities, TEXT_NAMED);
    if (!code && c->r->certificate)
        code = text_read(&second, c->r->certificate, TEXT_NAMED);
    if (!code) {
        heft_status st = check_signer(c, first, second, &who, &err);
        if (st == HEFT_E_CHECKSUM) {
            findings_add(&c->f, HEFT_FAULT, err.rule, c->r->signature, nowhere, "%s", err.message);
            code = CODE_FOUND;
        } else if (st)
            code = say_error(who, &err);
    }
    text_free(first);
    text_free(second);
    return code;
}

/* ---- the files ---- */

static int list_files(check *c)
{
    size_t count = c->info.ignored + GIT_PATHS + 1, n = 0;
    heft_str *ignored = calloc(count, sizeof *ignored);
    if (!ignored)
        return say_status(HEFT_E_NOMEM, c->r->model, "no memory for the ignored paths");
    char *own = path_below(c->r->model, c->r->signature);
    for (uint32_t i = 0; i < c->info.ignored; i++)
        ignored[n++] = heft_signature_ignored_at(c->s, i);
    for (size_t i = 0; i < GIT_PATHS; i++)
        ignored[n++] = str_of(git_paths[i]);
    if (own)
        ignored[n++] = str_of(own);
    int code = model_files_list(&c->files, c->r->model, ignored, n);
    c->files.ignored_count -= own && c->files.ignored_count ? 1 : 0; /* the signature itself */
    free(own);
    free(ignored);
    if (!code && !c->files.is_folder && heft_resource_find(c->s, str_of(".")) == HEFT_NONE)
        code = say_status(HEFT_E_ARGUMENT, c->r->model,
                          "is a file, but the signature is of a folder: give the folder");
    return code;
}

/* The list names a single file "."; the name of the signed model is that of the file. */
static void compare_name(check *c)
{
    heft_str name = path_last_component(c->r->model), want = c->info.model;
    if (c->files.is_folder || stdin_is(c->r->model) || str_same(name, want))
        return;
    findings_add(&c->f, HEFT_FAULT, "signature/name", c->r->model, nowhere,
                 "the file was signed under the name '%.*s'", (int)want.len, want.ptr);
}

static void add_check(check *c, const char *path, uint32_t resource, const heft_resource *x)
{
    file_check *to = &c->checks[c->count];
    *to = (file_check){ .path = path, .resource = resource };
    snprintf(to->algorithm, sizeof to->algorithm, "%.*s", (int)x->algorithm.len, x->algorithm.ptr);
    c->requests[c->count++] =
        (digest_request){ .path = path, .algorithm = to->algorithm, .from = x->from, .to = x->to };
    c->is_present[resource] = true;
}

static bool is_next_of(const heft_resource *x, const heft_resource *before)
{
    return x->name.len == before->name.len && !memcmp(x->name.ptr, before->name.ptr, x->name.len);
}

/* Add the ranges of a file in ascending order. */
static void add_ranges(check *c, const char *path, uint32_t first)
{
    heft_resource x, before = { .from = 0 };
    uint64_t end = 0;
    for (uint32_t i = first, n = heft_resource_count(c->s); i < n; i++) {
        x = heft_resource_at(c->s, i);
        if (i > first && !is_next_of(&x, &before))
            break;
        if (x.from != end)
            findings_add(&c->f, HEFT_FAULT, "signature/range", path, (heft_range){ end, 0 },
                         "the signed ranges leave a gap or overlap at byte %llu",
                         (unsigned long long)end);
        end = x.to;
        before = x;
        add_check(c, path, i, &x);
    }
}

static void report_odd(check *c)
{
    for (size_t i = 0; i < c->files.odd_count; i++) {
        const odd_file *x = &c->files.odd[i];
        if (x->kind != ODD_LINK)
            findings_add(&c->f, HEFT_FAULT, "signature/unlisted", x->path, nowhere,
                         x->kind == ODD_SPECIAL ? "the file is not a regular file"
                                                : "the symbolic link leads to a missing file");
        else if (!c->info.allow_symlinks)
            findings_add(&c->f, HEFT_FAULT, "signature/link", x->path, nowhere,
                         "the signed model has no symbolic links");
    }
}

static bool is_empty(const char *path)
{
    struct stat info;
    return !stat(path, &info) && !info.st_size;
}

static bool has_ranges(const check *c)
{
    return heft_resource_count(c->s) && heft_resource_at(c->s, 0).to != HEFT_UNKNOWN_LENGTH;
}

/* Find the resources of every file. An empty file has no range. */
static void match_files(check *c)
{
    bool ranges = has_ranges(c);
    for (size_t i = 0; i < c->files.count; i++) {
        const char *path = c->files.path[i];
        uint32_t at = heft_resource_find(c->s, str_of(c->files.name[i]));
        if (at != HEFT_NONE)
            add_ranges(c, path, at);
        else if (!ranges || !is_empty(path))
            findings_add(&c->f, HEFT_FAULT, "signature/unlisted", path, nowhere,
                         "the file is not part of the signed model");
    }
}

static void report_missing(check *c)
{
    heft_resource x;
    for (uint32_t i = 0, n = heft_resource_count(c->s); i < n; i++) {
        x = heft_resource_at(c->s, i);
        char name[512];
        snprintf(name, sizeof name, "%.*s", (int)(x.name.len < 511 ? x.name.len : 511), x.name.ptr);
        if (!c->is_present[i])
            findings_add(&c->f, HEFT_FAULT, "signature/missing", name, nowhere,
                         "the file is part of the signed model, but is missing");
    }
}

/* Report bytes after the last signed range. The size is that of the file whose digest was computed,
 * so that bytes which were added meanwhile are seen. */
static void check_end(check *c, size_t i, uint64_t to)
{
    const digest_request *q = &c->requests[i];
    bool is_last = i + 1 == c->count || c->requests[i + 1].path != q->path;
    if (is_last && to < q->size)
        findings_add(&c->f, HEFT_FAULT, "signature/changed", q->path,
                     (heft_range){ to, q->size - to }, "the file has %llu bytes, %llu are signed",
                     (unsigned long long)q->size, (unsigned long long)to);
}

static void compare(check *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const digest_request *q = &c->requests[i];
        heft_resource x = heft_resource_at(c->s, c->checks[i].resource);
        uint64_t end = x.to < q->size ? x.to : q->size;
        uint64_t length = end > x.from ? end - x.from : 0;
        c->f.bytes += q->is_short ? 0 : length;
        if (q->is_short || x.digest.length != q->digest.length ||
            memcmp(x.digest.bytes, q->digest.bytes, x.digest.length) != 0)
            findings_add(&c->f, HEFT_FAULT, "signature/changed", q->path,
                         (heft_range){ x.from, length },
                         q->is_short ? "the file is shorter than the signed file"
                                     : "the content is not that of the signed file");
        check_end(c, i, x.to);
    }
}

static int check_files(check *c)
{
    int code = list_files(c);
    if (code)
        return code;
    c->checks = calloc((size_t)c->info.resources + 1, sizeof *c->checks);
    c->requests = calloc((size_t)c->info.resources + 1, sizeof *c->requests);
    c->is_present = calloc((size_t)c->info.resources + 1, sizeof *c->is_present);
    if (!c->checks || !c->requests || !c->is_present)
        return say_status(HEFT_E_NOMEM, c->r->model, "no memory for the list of files");
    compare_name(c);
    match_files(c);
    report_missing(c);
    report_odd(c);
    code = digest_files(c->r->session, c->requests, c->count, c->r->model);
    if (!code)
        compare(c);
    return code;
}

static void release(check *c)
{
    heft_signature_close(c->s);
    model_files_free(&c->files);
    free(c->checks);
    free(c->requests);
    free(c->is_present);
}

/* Write the meaning of a good result: ignored files are not signed. */
static void describe(char *to, size_t capacity, const check *c)
{
    const char *by = c->info.certificates && !c->r->key ? "by a trusted certificate"
                                                        : "with the key";
    int n = snprintf(to, capacity, "every byte of the files is signed %s", by);
    if (c->files.ignored_count)
        snprintf(to + n, capacity - (size_t)n, "; files in ignored paths are not: %zu",
                 c->files.ignored_count);
}

int verify_signature(const signature_request *r)
{
    char covers[128];
    check c = { .r = r };
    findings_open(&c.f, r->session, r->as_json, false);
    findings_begin(&c.f, r->model);
    int code = read_signature(&c);
    if (!code)
        code = check_signature(&c);
    if (!code)
        code = check_files(&c);
    describe(covers, sizeof covers, &c);
    int found = findings_end(&c.f, covers, code > CODE_FOUND ? "could not be checked" : NULL);
    release(&c);
    return findings_close(&c.f, false, code ? code : found);
}
