/* job_move.c - `heft convert` with --external-data or --inline: moves the data of an ONNX model to
 * a file, and back, and leaves the graph as it is. */
#include <errno.h>
#include <heft/private.h>
#include <heft/split.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands/job.h"
#include "models/inputs.h"
#include "process/interrupt.h"
#include "process/textfile.h"

typedef struct moving {
    job *job;
    const heft_file *f;
    char *folder, *data_path; /* folder of OUT, path of the other file. NULL: --inline */
    const char *name;         /* OUT without its folder */
    heft_move_options options;
    heft_move_result result;
} moving;

/* ---- options ---- */

/* Options beside those that every command has. */
static const char *const taken[] = { "external-data", "inline",  "to",     "align",  "dry-run",
                                     "force",         "no-sync", "strict", "verbose" };

static bool is_taken(const opt *o)
{
    bool is = false;
    for (size_t i = 0; i < sizeof taken / sizeof *taken && !is; i++)
        is = !strcmp(o->name, taken[i]);
    return is;
}

static bool is_given(const session *s, const opt *o)
{
    const void *member = opt_target(s, o);
    switch (o->kind) {
    case OPT_FLAG:
        return *(const bool *)member;
    case OPT_LIST:
    case OPT_KEY_FILES:
    case OPT_MODELS:
    case OPT_TENSOR_FILES:
        return ((const opt_list *)member)->count;
    case OPT_CHOICE:
        return *(const unsigned *)member;
    case OPT_COUNT:
        return *(const uint32_t *)member;
    case OPT_NUMBER:
    case OPT_SIZE:
        return *(const uint64_t *)member;
    default:
        return *(const char *const *)member;
    }
}

/* Return the name of an option that would change tensors or metadata, or NULL. */
static const char *other_option(const session *s)
{
    const opt *o;
    for (size_t i = 0; (o = opt_at(s->command, i)) != NULL; i++)
        if (!o->is_setting && !is_taken(o) && is_given(s, o))
            return o->name;
    return s->map ? "map" : s->views.count ? "view" : NULL;
}

static int check_options(job *j)
{
    const char *file = j->external_data, *other = other_option(j->session);
    if (file && j->moves_inside)
        return say_usage("convert", "--external-data excludes --inline");
    if (other)
        return say_usage("convert",
                         "--external-data and --inline leave the graph as it is, and exclude --%s",
                         other);
    if (j->align > UINT32_C(1) << 31 || (j->align & (j->align - 1)))
        return say_usage("convert", "--align must be a power of two below 2^32");
    if (file && (!*file || strpbrk(file, "/\\") || !strcmp(file, ".") || !strcmp(file, "..")))
        return say_usage("convert", "--external-data needs the name of a file, which is written in "
                                    "the folder of OUT");
    j->to_stdout = !strcmp(j->out, "-");
    if (file && (j->to_stdout || heft_is_url(j->out)))
        return say_usage("convert", "--external-data writes two files: OUT must be a path");
    return CODE_DONE;
}

/* The target, if one is named, must be the format of the input. */
static int check_format(job *j, const heft_file *f)
{
    if (j->to_stdout && !j->to)
        return CODE_DONE;
    const heft_format *named = j->to ? heft_format_find(str_of(j->to))
                                     : heft_format_for_path(j->out);
    if (!named || named == heft_file_format(f))
        return CODE_DONE;
    return say_status(HEFT_E_UNSUPPORTED, j->out,
                      "--external-data and --inline write the format of IN, %s, not %s",
                      heft_format_name(heft_file_format(f)), heft_format_name(named));
}

/* Refuse an output that is an input, or exists. */
static int check_output(const moving *m, const char *path)
{
    const input in = { m->job->source, "the input itself", m->f };
    struct stat info;
    if (!path || stat(path, &info))
        return CODE_DONE;
    int code = inputs_check(path, &in, 1, &info);
    if (code || m->job->force || !S_ISREG(info.st_mode))
        return code ? code : S_ISDIR(info.st_mode) ? say_system(EISDIR, path) : CODE_DONE;
    return say_status(HEFT_E_ARGUMENT, path, "already exists: --force replaces it");
}

/* Split OUT into its folder and name. */
static int choose_paths(moving *m)
{
    const job *j = m->job;
    const char *slash = strrchr(j->out, '/');
    m->name = slash ? slash + 1 : j->out;
    if (!j->external_data)
        return CODE_DONE;
    if (!*m->name || !strcmp(m->name, j->external_data))
        return say_usage("convert", "OUT and the file of --external-data must be two files");
    m->folder = slash ? strndup(j->out, (size_t)(slash - j->out) + 1) : strdup(".");
    m->data_path = m->folder ? path_in(slash ? m->folder : ".", j->external_data) : NULL;
    return m->data_path ? CODE_DONE : say_status(HEFT_E_NOMEM, j->out, "no memory for a path");
}

/* ---- writing ---- */

static bool move_step(void *ctx, uint64_t done, uint64_t total)
{
    return progress_step(&((job *)ctx)->bar, done, total);
}

static heft_status open_in_set(heft_sink **out, heft_sink_dir *set, const char *name,
                               heft_error *err)
{
    heft_status st = heft_sink_dir_add(out, set, name, err);
    return st ? st : sink_watch(out, NULL, err);
}

/* Write both files as a set: they appear together. */
static heft_status write_set(moving *m, heft_error *err)
{
    const job *j = m->job;
    heft_sink_dir *set;
    heft_sink *data = NULL, *model = NULL;
    interrupt_hold();
    heft_status st = heft_sink_dir_open(&set, m->folder, sink_flags(j->force, j->no_sync), err);
    if (st)
        return st;
    st = open_in_set(&data, set, j->external_data, err);
    if (!st && (st = open_in_set(&model, set, m->name, err)))
        heft_sink_discard(data);
    if (!st)
        st = heft_file_move_data(&m->result, m->f, model, data, &m->options, err);
    if (!st && interrupt_is_pending())
        st = interrupt_error(err);
    if (!st)
        return heft_sink_dir_finish(set, err);
    heft_sink_dir_discard(set);
    return st;
}

static heft_status write_model(moving *m, heft_error *err)
{
    const job *j = m->job;
    heft_sink *sink;
    heft_status st;
    if (j->to_stdout) {
        interrupt_allow();
        st = heft_sink_open_fd(&sink, STDOUT_FILENO, err);
        st = st ? st : sink_watch(&sink, NULL, err);
    } else
        st = sink_open(&sink, j->out, j->force, j->no_sync, NULL, err);
    return st ? st : heft_file_move_data(&m->result, m->f, sink, NULL, &m->options, err);
}

static int say_written(const moving *m)
{
    job *j = m->job;
    outbuf o;
    j->bytes = m->result.bytes;
    j->target = heft_file_format(m->f);
    if (j->session->verbose)
        say(MESSAGE_INFO, j->out, "the data of %u tensors moved", m->result.tensors);
    if (!j->dry_run) {
        if (!j->to_stdout)
            job_say_result(j);
        return CODE_DONE;
    }
    out_open(&o, STDOUT_FILENO);
    out_message(&o, j->out);
    out_format(&o, ": %llu bytes\n", (unsigned long long)m->result.bytes);
    if (m->result.other_bytes) {
        out_message(&o, m->data_path);
        out_format(&o, ": %llu bytes\n", (unsigned long long)m->result.other_bytes);
    }
    return out_end(&o, CODE_DONE);
}

/* Plan first, to know whether there is anything for the second file. */
static int move_data(moving *m)
{
    heft_error err;
    job *j = m->job;
    heft_status st = heft_file_move_data(&m->result, m->f, NULL, NULL, &m->options, &err);
    if (st)
        return say_error(j->source, &err);
    if (j->external_data && !m->result.other_bytes)
        say(MESSAGE_NOTE, j->source, "no initializer has 1024 bytes or more: '%s' is not written",
            j->external_data);
    if (j->dry_run)
        return say_written(m);
    m->options.progress = move_step;
    m->options.ctx = j;
    progress_begin(&j->bar, j->out);
    st = m->result.other_bytes ? write_set(m, &err) : write_model(m, &err);
    progress_end(&j->bar);
    return st ? say_error(err.about == HEFT_ABOUT_TARGET ? j->out : j->source, &err)
              : say_written(m);
}

int job_move(job *j, const char *in)
{
    heft_error err;
    heft_file *f = NULL;
    moving m = { .job = j, .options = HEFT_MOVE_OPTIONS_INIT };
    bool recovered;
    int code = check_options(j);
    j->source = in;
    if (!code && model_try_open(j->session, &f, in, &err))
        code = model_say_open_error(j->session, in, &err);
    if (!code)
        model_say_notices(j->session, f, in);
    m.f = f;
    m.options.location = j->external_data;
    m.options.align = (uint32_t)j->align;
    if (!code)
        code = check_format(j, f);
    if (!code)
        code = choose_paths(&m);
    if (!code && m.folder && !j->dry_run)
        code = recover_set(&recovered, m.folder);
    if (!code && !j->to_stdout && !heft_is_url(j->out))
        code = check_output(&m, j->out);
    if (!code)
        code = check_output(&m, m.data_path);
    if (!code)
        code = move_data(&m);
    free(m.folder);
    free(m.data_path);
    heft_file_close(f);
    return code;
}
