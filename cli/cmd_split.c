/* cmd_split.c - one model as several files in a folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <heft/heft_ext.h>

#include "inputs.h"
#include "interrupt.h"
#include "losses.h"
#include "model.h"
#include "opt.h"
#include "picks.h"
#include "progress.h"
#include "recover.h"
#include "sinkwatch.h"
#include "textfile.h"

typedef struct request {
    const char *in, *dir, *to, *stem;
    uint64_t max_size, count, threads;
    bool strict, allow_loss, force, no_sync;
    const heft_file *f;
    const heft_format *target;
    heft_sink_set *set;
    bool about_target; /* the error is about the folder */
    sink_failure failure;
    heft_executor executor;
    heft_host host;
    losses losses;
    storing storage;
    heft_split_options options;
    heft_convert_options convert;
    heft_write_options write;
} request;

/* ---- the target ---- */

static int choose_target(request *r)
{
    r->target = r->to ? heft_format_find(r->to) : heft_file_format(r->f);
    if (!r->target)
        return say_usage("split", "no format is called '%s': heft formats lists them", r->to);
    if (heft_format_can_split(r->target))
        return CODE_DONE;
    say(r->in, "models in %s come in one file: choose another format with --to",
        heft_format_name(r->target));
    return CODE_CANNOT;
}

/* safetensors are looked for under this name; others keep that of the file they come from. */
static char *choose_stem(const request *r)
{
    heft_str name = heft_file_name(r->f);
    size_t len = name.len;
    if (r->stem)
        return strdup(r->stem);
    while (len && name.ptr[len - 1] != '.')
        len--;
    bool is_plain = len > 1 && strcmp(heft_format_name(r->target), "safetensors") != 0;
    return is_plain ? strndup(name.ptr, len - 1) : strdup("model");
}

/* ---- files ---- */

/* Many files are open at once: as many as the system lets us have. */
static void allow_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit))
        return; /* then there are fewer */
}

static heft_status refuse(heft_error *err, heft_status st, const char *name, const char *why)
{
    *err = (heft_error){ .status = st, .offset = HEFT_NOWHERE };
    snprintf(err->message, sizeof err->message, "%s: %s", name, why);
    return st;
}

static heft_status open_path(heft_sink **out, request *r, const char *path, const char *name,
                             heft_error *err)
{
    const input in = { r->in, "the input itself", r->f };
    struct stat about;
    char why[128];
    int code;
    if (!stat(path, &about)) {
        if (inputs_have(why, &code, &in, 1, &about))
            return refuse(err, code == CODE_USAGE ? HEFT_E_ARGUMENT : HEFT_E_NOMEM, name, why);
        if (S_ISREG(about.st_mode) && !r->force)
            return refuse(err, HEFT_E_ARGUMENT, name, "exists already: --force replaces it");
    }
    heft_status st = heft_sink_set_add(out, r->set, name, err);
    return st ? st : sink_watch(out, path, &r->failure, err);
}

static heft_status open_file(heft_sink **out, void *ctx, const char *name, heft_error *err)
{
    request *r = ctx;
    char *path = path_in(r->dir, name);
    *out = NULL;
    heft_status st = path ? open_path(out, r, path, name, err)
                          : refuse(err, HEFT_E_NOMEM, name, "no memory for its path");
    free(path);
    r->about_target = st;
    return st;
}

/* ---- the command ---- */

static void set_options(request *r, progress *p)
{
    heft_convert_options *c = &r->convert;
    heft_write_options *w = &r->write;
    r->executor = heft_executor_threads((uint32_t)r->threads);
    heft_host_copy(&r->host, NULL, sizeof r->host);
    r->host.executor = &r->executor;
    r->losses = (losses){ r->in, model_opening.verbose };
    w->host = &r->host;
    w->strict = r->strict;
    w->allow_loss = r->allow_loss;
    w->on_loss = say_loss;
    w->loss_ctx = &r->losses;
    c->no_verify = model_opening.no_verify;
    c->storage = storing_is_given(&r->storage) ? storing_choose : NULL;
    c->ctx = &r->storage;
    c->progress = progress_step;
    c->progress_ctx = p;
    r->options.max_bytes = r->max_size;
    r->options.count = (uint32_t)r->count;
    r->options.open = open_file;
    r->options.ctx = r;
}

static int split(request *r)
{
    heft_error err;
    progress p;
    bool did;
    int code = path_is_folder(r->dir) ? recover_set(&did, r->dir) : CODE_DONE;
    char *stem = code ? NULL : choose_stem(r);
    if (code)
        return code;
    if (!stem) {
        say(r->in, "no memory for a name");
        return CODE_SYSTEM;
    }
    interrupt_hold();
    heft_status st = heft_sink_set_open(&r->set, r->dir, sink_flags(r->force, r->no_sync), &err);
    r->about_target = st;
    r->options.stem = stem;
    set_options(r, &p);
    allow_files();
    progress_begin(&p, r->dir);
    if (!st)
        st = heft_file_split(r->f, r->target, &r->options, &err);
    progress_end(&p);
    if (!st && interrupt_is_pending())
        st = interrupt_error(&err);
    if (st)
        heft_sink_set_discard(r->set);
    else if ((st = heft_sink_set_finish(r->set, &err)))
        r->about_target = true;
    free(stem);
    if (st && r->storage.no_memory)
        return storing_say_no_memory(r->in);
    return st ? sink_say_error(&r->failure, r->about_target ? r->dir : r->in, &err) : CODE_DONE;
}

static int check(const request *r)
{
    enum { MOST_THREADS = 1024, MOST_FILES = 4096 };
    if (!r->max_size && !r->count)
        return say_usage("split", "--max-size or --count expected");
    if (r->count > MOST_FILES)
        return say_usage("split", "--count is at most %d", MOST_FILES);
    if (r->threads > MOST_THREADS)
        return say_usage("split", "--threads is at most %d", MOST_THREADS);
    return CODE_DONE;
}

int cmd_split(int argc, char **argv)
{
    request r = { .in = NULL };
    const opt options[] = {
        { "max-size", 's', OPT_SIZE, &r.max_size, "N",
          "bytes of a file at most, header included: 500MB" },
        { "count", 'n', OPT_NUMBER, &r.count, "N", "files at least" },
        { "to", 't', OPT_TEXT, &r.to, "FORMAT", "target format; else that of IN" },
        { "name", 0, OPT_TEXT, &r.stem, "STEM", "what the files' names begin with" },
        { "compress", 0, OPT_LIST, &r.storage.compress.given, "[GLOB=]zstd[:N]",
          "encoding of parts; none: raw; first match counts" },
        { "digest", 0, OPT_LIST, &r.storage.digest.given, "[GLOB=]NAME",
          "crc32c, sha256, xxh3 or none, of each part" },
        { "strict", 0, OPT_FLAG, &r.strict, NULL, "warnings are errors" },
        { "allow-loss", 0, OPT_FLAG, &r.allow_loss, NULL, "leave out what cannot be carried" },
        { "force", 'f', OPT_FLAG, &r.force, NULL, "replace files of the same names" },
        { "no-sync", 0, OPT_FLAG, &r.no_sync, NULL, "do not wait for the disk (scratch files)" },
        { "threads", 'j', OPT_NUMBER, &r.threads, "N", "how many; 0: one per processor" },
        { "verbose", 'v', OPT_FLAG, &model_opening.verbose, NULL, "notes on stderr" },
    };
    const opt_usage usage = {
        "split",
        "IN OUTDIR",
        "Writes a model as several files: safetensors with an index, GGUF or zTensor 2.\n"
        "Each file has as many tensors as fit into --max-size.  No tensor is cut: one that is\n"
        "larger has a file of its own, and a warning says so.  With --count, the files are as\n"
        "equal as the order of the tensors lets them be.  All files appear together, when they\n"
        "are complete, or none of them; what a killed split leaves half done is completed by\n"
        "the next one, or by heft edit OUTDIR.",
        "heft split --max-size 5GB model.safetensors shards/",
        options,
        sizeof options / sizeof *options,
        2,
        2,
    };
    opt_args args;
    heft_file *f = NULL;
    int code;
    if (!opt_parse(&args, &code, &usage, argc, argv))
        return code;
    r.in = args.item[0];
    r.dir = args.item[1];
    r.options = (heft_split_options)HEFT_SPLIT_OPTIONS_INIT;
    r.convert = (heft_convert_options)HEFT_CONVERT_OPTIONS_INIT;
    r.write = (heft_write_options)HEFT_WRITE_OPTIONS_INIT;
    r.options.convert = &r.convert;
    r.convert.write = &r.write;
    code = check(&r);
    if (!code)
        code = storing_prepare(&r.storage, "split", &r.write);
    if (!code)
        code = model_open_whole(&f, r.in);
    r.f = f;
    if (!code) {
        storing_check(&r.storage, f, r.in);
        code = choose_target(&r);
    }
    if (!code)
        code = split(&r);
    heft_file_close(f);
    storing_release(&r.storage);
    opt_release(&usage);
    return code;
}
