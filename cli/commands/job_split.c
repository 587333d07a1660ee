/* job_split.c - writes a model as several files in a folder, for split and convert. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <heft/heft_ext.h>
#include <heft/split.h>

#include "commands/job.h"
#include "models/inputs.h"
#include "process/interrupt.h"
#include "process/textfile.h"

typedef struct set {
    job *job;             /* job->out is the folder */
    const heft_file *f;   /* the input */
    heft_sink_dir *sinks; /* NULL: a dry run */
    outbuf files;         /* names of the files, each with a zero byte */
    char *shard;          /* path of the file that is being written, or NULL */
} set;

/* Names that programs expect of the shards of a format; other formats keep the input's stem. */
static const struct {
    const char *format, *stem;
} expected_stems[] = { { "safetensors", "model" },
                       { "torch", "pytorch_model" },
                       { "flax", "flax_model" } };

/* Return the length without the number of a shard at the end: "-00001-of-00002". */
static size_t without_number(const char *name, size_t len)
{
    static const char pattern[] = "-00000-of-00000";
    enum { LENGTH = sizeof pattern - 1 };
    bool is_numbered = len > LENGTH;
    for (size_t i = 0; i < LENGTH && is_numbered; i++) {
        char c = name[len - LENGTH + i];
        is_numbered = pattern[i] == '0' ? c >= '0' && c <= '9' : c == pattern[i];
    }
    return is_numbered ? len - LENGTH : len;
}

static char *choose_stem(const set *s)
{
    heft_str name = heft_file_name(s->f);
    size_t len = name.len;
    if (s->job->stem)
        return strdup(s->job->stem);
    for (size_t i = 0; i < sizeof expected_stems / sizeof *expected_stems; i++)
        if (!strcmp(heft_format_name(s->job->target), expected_stems[i].format))
            return strdup(expected_stems[i].stem);
    while (len && name.ptr[len - 1] != '.')
        len--;
    len = len ? without_number(name.ptr, len - 1) : 0;
    return len ? strndup(name.ptr, len) : strdup("model");
}

/* ---- files ---- */

/* Raise the limit on open files to the maximum: all shards are open at once. */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit))
        return; /* keep the present limit */
}

static heft_status set_error(heft_error *err, heft_status st, const char *name, const char *reason)
{
    *err = (heft_error){ .status = st, .offset = HEFT_UNKNOWN_LENGTH };
    snprintf(err->message, sizeof err->message, "%s: %s", name, reason);
    return st;
}

static heft_status open_path(heft_sink **out, set *s, const char *path, const char *name,
                             heft_error *err)
{
    const input in = { s->job->source, "the input itself", s->f };
    struct stat info;
    char reason[128];
    heft_status st;
    if (!stat(path, &info)) {
        if (inputs_contain(reason, &st, &in, 1, &info))
            return set_error(err, st, name, reason);
        if (S_ISREG(info.st_mode) && !s->job->force)
            return set_error(err, HEFT_E_ARGUMENT, name, "already exists: --force replaces it");
    }
    st = heft_sink_dir_add(out, s->sinks, name, err);
    return st ? st : sink_watch(out, &s->job->events, err);
}

static heft_status open_file(heft_sink **out, void *ctx, const char *name, heft_error *err)
{
    set *s = ctx;
    char *path = path_in(s->job->out, name);
    *out = NULL;
    out_bytes(&s->files, name, strlen(name) + 1);
    heft_status st = path && !s->files.os
                         ? open_path(out, s, path, name, err)
                         : set_error(err, HEFT_E_NOMEM, name, "no memory for its path");
    free(s->shard);
    s->shard = st ? NULL : path;
    if (st)
        free(path);
    return st;
}

/* ---- the set ---- */

static void say_result(const set *s)
{
    result_line line;
    if (!result_begin(&line, s->job->out))
        return;
    json_member_str(&line.json, "format", str_of(heft_format_name(s->job->target)));
    json_member_begin(&line.json, "files", '[');
    for (size_t at = 0; at < s->files.used; at += strlen(s->files.buf + at) + 1)
        json_str(&line.json, str_of(s->files.buf + at));
    json_end(&line.json, ']');
    result_end(&line);
}

static heft_status write_files(set *s, const heft_file *model, const char *stem, heft_error *err)
{
    job *j = s->job;
    heft_split_options o = HEFT_SPLIT_OPTIONS_INIT;
    o.convert = &j->convert;
    o.max_bytes = j->max_bytes;
    o.count = (uint32_t)j->count;
    o.stem = stem;
    o.open = open_file;
    o.ctx = s;
    heft_status st = HEFT_OK;
    if (!j->dry_run)
        st = heft_sink_dir_open(&s->sinks, j->out, sink_flags(j->force, j->no_sync), err);
    progress_begin(&j->bar, j->out);
    if (!st)
        st = heft_file_split(model, j->target, &o, err);
    progress_end(&j->bar);
    losses_print(&j->losses);
    return st;
}

static int split(set *s, const heft_file *model)
{
    heft_error err;
    job *j = s->job;
    bool recovered;
    int code = path_is_folder(j->out) && !j->dry_run ? recover_set(&recovered, j->out) : CODE_DONE;
    if (code)
        return code;
    char *stem = choose_stem(s);
    if (!stem)
        return say_status(HEFT_E_NOMEM, j->source, "no memory for a name");
    raise_file_limit();
    interrupt_hold();
    heft_status st = write_files(s, model, stem, &err);
    free(stem);
    const char *file = st && s->shard && err.about == HEFT_ABOUT_TARGET ? s->shard : j->out;
    if (!st && interrupt_is_pending())
        st = interrupt_error(&err);
    if (st)
        heft_sink_dir_discard(s->sinks);
    else if (s->sinks)
        st = heft_sink_dir_finish(s->sinks, &err);
    if (st && j->rules.no_memory)
        return say_no_memory_to_match(j->source);
    job_say_sums(j, st);
    const char *about = st ? job_explain(j, &err) : NULL;
    return st ? say_error(err.about == HEFT_ABOUT_TARGET ? file : about, &err) : CODE_DONE;
}

int job_split(job *j, const heft_file *f, const heft_file *model)
{
    set s = { .job = j, .f = f };
    int code = job_check_rules(j, model);
    out_open(&s.files, -1);
    if (!code)
        code = split(&s, model);
    if (!code && !j->dry_run)
        say_result(&s);
    out_free(&s.files);
    free(s.shard);
    return code;
}
