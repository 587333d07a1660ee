/* verify_hub.c - `heft verify --hub`: compare files with the digests of a Hugging Face cache. */
#include "verify_hub.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_digest.h"
#include "folder_files.h"
#include "hub_names.h"
#include "jsonout.h"
#include "progress_line.h"
#include "textfile.h"

enum { NO_DIGEST = -1 };

typedef struct entry { /* a file to check */
    const char *path;
    hub_name name;    /* algorithm NULL: the cache states no digest */
    int os;           /* errno of stat(), or 0 */
    bool is_missing;  /* a link that leads to no file */
    dev_t device;     /* Links of several revisions lead to the same blob: */
    ino_t inode;      /* each inode is read once. */
    ptrdiff_t digest; /* index into digests, or NO_DIGEST */
} entry;

typedef struct check {
    outbuf *o;
    bool as_json, strict, is_list; /* is_list: several files, or a folder */
    entry *entries;
    size_t count;
    file_digest *digests;
    size_t digest_count;
} check;

typedef struct verdict { /* result for a file; rule NULL: nothing is wrong */
    const char *rule, *severity;
    char text[320];
} verdict;

/* ---- files ---- */

static void identify(entry *e)
{
    struct stat info, link;
    e->digest = NO_DIGEST;
    e->os = stat(e->path, &info) ? errno : 0;
    e->is_missing = e->os == ENOENT && !lstat(e->path, &link) && S_ISLNK(link.st_mode);
    if (e->os || !hub_name_find(&e->name, e->path))
        return;
    e->device = info.st_dev;
    e->inode = info.st_ino;
}

static int compare_inodes(const void *left, const void *right)
{
    const entry *a = *(entry *const *)left, *b = *(entry *const *)right;
    int order = strcmp(a->name.hex, b->name.hex);
    if (!order)
        order = a->device < b->device ? -1 : a->device > b->device;
    return order ? order : a->inode < b->inode ? -1 : a->inode > b->inode;
}

/* Plan a digest for each file that the cache names; links to the same file share the digest. */
static bool plan_digests(check *c)
{
    entry **sorted = calloc(c->count + 1, sizeof *sorted);
    c->digests = calloc(c->count + 1, sizeof *c->digests);
    bool has_memory = sorted && c->digests;
    for (size_t i = 0; has_memory && i < c->count; i++)
        sorted[i] = &c->entries[i];
    if (has_memory)
        qsort(sorted, c->count, sizeof *sorted, compare_inodes);
    for (size_t i = 0; has_memory && i < c->count; i++) {
        entry *e = sorted[i];
        if (!e->name.algorithm)
            continue;
        if (!i || compare_inodes(&sorted[i - 1], &sorted[i]) != 0)
            c->digests[c->digest_count++] = (file_digest){ .path = e->path,
                                                           .algorithm = e->name.algorithm };
        e->digest = (ptrdiff_t)c->digest_count - 1;
    }
    free(sorted);
    return has_memory;
}

static bool find_entries(check *c, const path_list *files)
{
    c->entries = calloc(files->count + 1, sizeof *c->entries);
    for (size_t i = 0; c->entries && i < files->count; i++) {
        if (c->is_list && hub_is_own_file(files->paths[i]))
            continue;
        entry *e = &c->entries[c->count++];
        e->path = files->paths[i];
        identify(e);
    }
    return c->entries && plan_digests(c);
}

/* ---- results ---- */

static verdict judge(const check *c, const entry *e)
{
    verdict v = { .severity = "fault" };
    const file_digest *d = e->digest == NO_DIGEST ? NULL : &c->digests[e->digest];
    if (e->is_missing) {
        v.rule = "hub/missing";
        snprintf(v.text, sizeof v.text, "the link leads to no file: download the file again");
    } else if (!d) {
        v.rule = "hub/no-digest";
        v.severity = "warning";
        snprintf(v.text, sizeof v.text, "the cache states no digest of this file");
    } else if (!d->status && strcmp(d->hex, e->name.hex) != 0) {
        v.rule = "hub/digest";
        snprintf(v.text, sizeof v.text,
                 "the %s of the content is %s, but the cache states %s: download the file again",
                 d->algorithm, d->hex, e->name.hex);
    }
    return v;
}

static void print_entry(const check *c, const entry *e, const verdict *v, bool ok)
{
    outbuf *o = c->o;
    const file_digest *d = e->digest == NO_DIGEST ? NULL : &c->digests[e->digest];
    if (v->rule) {
        out_message(o, e->path);
        out_text(o, ": ");
        term_paint(o, *v->severity == 'f' ? COLOUR_RED : COLOUR_YELLOW);
        out_text(o, v->severity);
        term_paint(o, COLOUR_NONE);
        out_format(o, ": %s: %s\n", v->rule, v->text);
    }
    out_message(o, e->path);
    out_text(o, ": ");
    term_paint(o, ok ? COLOUR_GREEN : COLOUR_RED);
    out_text(o, ok ? "ok" : "failed");
    term_paint(o, COLOUR_NONE);
    if (ok && !d)
        out_text(o, " (not checked)");
    else if (ok)
        out_format(o, " (%llu bytes, %s as the cache states)", (unsigned long long)d->bytes,
                   d->algorithm);
    out_char(o, '\n');
}

static void json_entry(const check *c, json *all, const entry *e, const verdict *v, bool ok)
{
    const file_digest *d = e->digest == NO_DIGEST ? NULL : &c->digests[e->digest];
    json_line(all);
    json_begin(all, '{');
    json_member_str(all, "file", str_of(e->path));
    json_member_null(all, "format");
    json_member_bool(all, "ok", ok);
    json_member_begin(all, "findings", '[');
    if (v->rule) {
        json_begin(all, '{');
        json_member_str(all, "severity", str_of(v->severity));
        json_member_str(all, "rule", str_of(v->rule));
        json_member_null(all, "offset");
        json_member_u64(all, "length", 0);
        json_member_null(all, "tensor");
        json_member_str(all, "text", str_of(v->text));
        json_end(all, '}');
    }
    json_end(all, ']');
    json_member_u64(all, "bytes_checked", d && !d->status ? d->bytes : 0);
    json_member_text(all, "algorithm", str_of(d ? d->algorithm : ""));
    json_member_text(all, "digest", str_of(d ? e->name.hex : ""));
    if (d && d->status)
        json_member_str(all, "error", str_of(d->err.message));
    json_end(all, '}');
}

static int report_entry(const check *c, json *all, const entry *e)
{
    const file_digest *d = e->digest == NO_DIGEST ? NULL : &c->digests[e->digest];
    verdict v = judge(c, e);
    bool is_wrong = v.rule && (c->strict || *v.severity == 'f');
    int code = is_wrong ? CODE_FOUND : CODE_DONE;
    if (e->os && !e->is_missing)
        code = say_system(e->os, e->path);
    else if (d && d->status)
        code = say_error(e->path, &d->err);
    if (c->as_json)
        json_entry(c, all, e, &v, code == CODE_DONE);
    else if (code <= CODE_FOUND)
        print_entry(c, e, &v, code == CODE_DONE);
    return code;
}

static int report_all(const check *c)
{
    json all = { c->o, false };
    int worst = CODE_DONE;
    if (c->as_json && c->is_list)
        json_begin(&all, '[');
    for (size_t i = 0; i < c->count; i++) {
        int code = report_entry(c, &all, &c->entries[i]);
        worst = code > worst ? code : worst;
    }
    if (c->as_json && c->is_list)
        json_end(&all, ']');
    if (c->as_json)
        out_char(c->o, '\n');
    return worst;
}

/* ---- the command ---- */

static bool has_names(const check *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->entries[i].name.algorithm || c->entries[i].os)
            return true;
    return false;
}

static int check_files(check *c, const path_list *files, const char *label)
{
    progress p;
    if (!find_entries(c, files))
        return say_status(HEFT_E_NOMEM, label, "no memory for a list of files");
    if (!has_names(c))
        return say_status(HEFT_E_ARGUMENT, label,
                          "no digest is stated for it: --hub checks files in a cache of "
                          "huggingface_hub, or in a folder that `hf download --local-dir` filled");
    progress_begin(&p, label);
    file_digests_compute(c->digests, c->digest_count, progress_step, &p);
    progress_end(&p);
    return report_all(c);
}

int verify_hub(const opt_args *args, bool as_json, bool strict)
{
    outbuf o;
    path_list files = { .keeps_broken_links = true };
    check c = { .o = &o, .as_json = as_json, .strict = strict };
    int worst = CODE_DONE;
    c.is_list = args->count > 1 || path_is_folder(args->item[0]);
    for (int i = 0; i < args->count; i++) {
        int code = path_list_add(&files, args->item[i]);
        worst = code > worst ? code : worst;
    }
    out_open(&o, STDOUT_FILENO);
    int code = worst > CODE_FOUND ? worst : check_files(&c, &files, args->item[0]);
    free(c.entries);
    free(c.digests);
    path_list_free(&files);
    return out_end(&o, code > worst ? code : worst);
}
