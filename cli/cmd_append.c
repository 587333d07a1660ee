/* cmd_append.c - further tensors into a file that is there. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <heft/heft_ext.h>

#include "inputs.h"
#include "interrupt.h"
#include "losses.h"
#include "model.h"
#include "opt.h"
#include "progress.h"
#include "rules.h"

typedef struct request {
    const char *path, *duplicates;
    char **from;
    uint32_t count;
    uint64_t align, threads;
    bool strict, allow_loss, dry_run, no_sync, no_memory;
    rules rules;
    heft_file **files;
    const heft_file **kept; /* but those that another one has anyway */
    uint32_t kept_count;
    heft_file *joined;
    heft_executor executor;
    heft_host host;
    losses losses;
    heft_append_options options;
    heft_convert_options convert;
    heft_write_options write;
} request;

static void close_all(request *r)
{
    heft_file_close(r->joined);
    for (uint32_t i = 0; r->files && i < r->count; i++)
        heft_file_close(r->files[i]);
    free(r->files);
    free(r->kept);
    rules_release(&r->rules);
}

/* What an error line names that is about the tensors to be appended. */
static const char *source(const request *r)
{
    return r->count == 1 ? r->from[0] : r->path;
}

/* ---- the inputs ---- */

static int open_inputs(request *r)
{
    int code = CODE_DONE;
    r->files = calloc(r->count, sizeof *r->files);
    r->kept = calloc(r->count, sizeof *r->kept);
    if (!r->files || !r->kept) {
        say(NULL, "no memory for a list of files");
        return CODE_SYSTEM;
    }
    for (uint32_t i = 0; i < r->count && !code; i++)
        code = model_load_whole(&r->files[i], r->from[i]);
    for (uint32_t i = 0; i < r->count && !code; i++)
        if (!inputs_is_part(&r->no_memory, r->from, r->files, r->count, i)) {
            r->kept[r->kept_count++] = r->files[i];
            model_say_notices(r->files[i], r->from[i]);
        }
    if (r->no_memory)
        say(NULL, "no memory for a list of files");
    return r->no_memory ? CODE_SYSTEM : code;
}

static heft_duplicates duplicates(const request *r)
{
    if (!r->duplicates)
        return HEFT_DUPLICATES_REFUSE;
    return *r->duplicates == 'f' ? HEFT_DUPLICATES_FIRST : HEFT_DUPLICATES_LAST;
}

/* Metadata are not appended: that they differ is nothing to speak of. */
static int join(request *r)
{
    heft_error err;
    heft_join_options o = HEFT_JOIN_OPTIONS_INIT;
    o.duplicates = duplicates(r);
    if (r->kept_count < 2 || !heft_file_join(&r->joined, r->kept, r->kept_count, &o, &err))
        return CODE_DONE;
    int code = model_say_not_open(source(r), &err);
    return err.status == HEFT_E_ARGUMENT ? CODE_CANNOT : code;
}

static const heft_file *model(const request *r)
{
    return r->joined ? r->joined : r->kept[0];
}

/* ---- options ---- */

static int check_options(const request *r)
{
    enum { MOST_THREADS = 1024 };
    const char *rule = r->duplicates;
    if (rule && strcmp(rule, "first") != 0 && strcmp(rule, "last") != 0)
        return say_usage("append", "--duplicates is first or last, not '%s'", rule);
    if (r->align > UINT32_MAX || (r->align & (r->align - 1)))
        return say_usage("append", "--align is a power of two below 2^32");
    if (r->threads > MOST_THREADS)
        return say_usage("append", "--threads is at most %d", MOST_THREADS);
    return CODE_DONE;
}

static void set_options(request *r)
{
    heft_convert_options *o = &r->convert;
    heft_write_options *w = &r->write;
    r->executor = heft_executor_threads((uint32_t)r->threads);
    heft_host_copy(&r->host, NULL, sizeof r->host);
    r->host.executor = &r->executor;
    r->losses = (losses){ source(r), model_opening.verbose };
    w->host = &r->host;
    w->align = (uint32_t)r->align;
    w->strict = r->strict;
    w->allow_loss = r->allow_loss;
    w->on_loss = say_loss;
    w->loss_ctx = &r->losses;
    o->keep = r->rules.keep.count || r->rules.drop.count ? rules_keep : NULL;
    o->rename = rules_are_given(&r->rules) ? rules_rename : NULL;
    o->cast = r->rules.cast.given.count ? rules_cast : NULL;
    o->storage = storing_is_given(&r->rules.storage) ? rules_storage : NULL;
    o->ctx = &r->rules;
    o->no_verify = model_opening.no_verify;
    o->dry_run = r->dry_run;
    /* of those that are appended, the last may count: joining has seen to it */
    r->options.duplicates = r->duplicates && *r->duplicates == 'f' ? HEFT_DUPLICATES_FIRST
                                                                   : HEFT_DUPLICATES_REFUSE;
    r->options.no_sync = r->no_sync;
}

static int prepare(request *r)
{
    r->options = (heft_append_options)HEFT_APPEND_OPTIONS_INIT;
    r->convert = (heft_convert_options)HEFT_CONVERT_OPTIONS_INIT;
    r->write = (heft_write_options)HEFT_WRITE_OPTIONS_INIT;
    r->options.convert = &r->convert;
    r->convert.write = &r->write;
    int code = check_options(r);
    if (!code)
        code = rules_prepare(&r->rules, "append", &r->write);
    if (!code)
        code = open_inputs(r);
    if (!code)
        code = join(r);
    if (!code)
        code = rules_check(&r->rules, model(r), source(r));
    if (!code)
        set_options(r);
    return code;
}

/* ---- appending ---- */

static int say_plan(const request *r, const heft_append_result *result)
{
    outbuf o;
    out_open(&o, STDOUT_FILENO);
    out_message(&o, r->path);
    out_format(&o, ": %u %s more, ", result->tensors, result->tensors == 1 ? "tensor" : "tensors");
    if (result->edit.size)
        out_format(&o, "%llu bytes, ", (unsigned long long)result->edit.size);
    out_text(&o, result->edit.in_place ? "in place\n" : "in a new file\n");
    return out_end(&o, CODE_DONE);
}

static void say_links(const request *r, const heft_edit_result *edit)
{
    unsigned n = edit->other_names;
    if (!n || !edit->changed)
        return;
    const char *verb = n == 1 ? "name of it shows" : "names of it show";
    if (edit->in_place)
        say(r->path, "note: %u other %s the change as well", n, verb);
    else
        say(r->path, "warning: %u other %s what was there still", n, verb);
}

static int say_done(const request *r, const heft_append_result *result)
{
    const heft_edit_result *edit = &result->edit;
    if (r->dry_run)
        return say_plan(r, result);
    say_links(r, edit);
    if (model_opening.verbose)
        say(r->path, "%u %s appended%s, %llu bytes", result->tensors,
            result->tensors == 1 ? "tensor" : "tensors",
            !edit->changed   ? ""
            : edit->in_place ? " in place"
                             : " in a new file",
            (unsigned long long)edit->size);
    return CODE_DONE;
}

static int append(request *r)
{
    heft_append_result result;
    heft_error err;
    progress bar;
    model_say_notices_of(r->path);
    interrupt_hold();
    progress_begin(&bar, r->path);
    r->convert.progress = progress_step;
    r->convert.progress_ctx = &bar;
    heft_limits limits = model_limits();
    r->options.limits = &limits;
    heft_status st = heft_file_append(&result, r->path, model(r), &r->options, &err);
    progress_end(&bar);
    if (result.edit.undone)
        say(r->path, "note: an edit that was interrupted has been undone");
    if (st && r->rules.no_memory)
        return rules_say_no_memory(source(r));
    if (!st)
        return say_done(r, &result);
    int code = model_say_not_open(result.about_from ? source(r) : r->path, &err);
    return st == HEFT_E_ARGUMENT ? CODE_CANNOT : code;
}

int cmd_append(int argc, char **argv)
{
    request r = { .path = NULL };
    const opt options[] = {
        { "keep", 0, OPT_LIST, &r.rules.keep, "GLOB", "only tensors that match" },
        { "drop", 0, OPT_LIST, &r.rules.drop, "GLOB", "no tensors that match" },
        { "rename", 0, OPT_LIST, &r.rules.rename, "s/RE/TEXT/", "as sed -E; g for every match" },
        { "cast", 0, OPT_LIST, &r.rules.cast.given, "[GLOB=]DTYPE",
          "element type; first match counts" },
        { "duplicates", 0, OPT_TEXT, &r.duplicates, "first|last",
          "which tensor of a name counts; else it is an error" },
        { "compress", 0, OPT_LIST, &r.rules.storage.compress.given, "[GLOB=]zstd[:N]",
          "encoding of parts; none: raw; first match counts" },
        { "digest", 0, OPT_LIST, &r.rules.storage.digest.given, "[GLOB=]NAME",
          "crc32c, sha256, xxh3 or none, of each part" },
        { "align", 0, OPT_NUMBER, &r.align, "N", "payloads at multiples of N bytes" },
        { "strict", 0, OPT_FLAG, &r.strict, NULL, "warnings are errors" },
        { "allow-loss", 0, OPT_FLAG, &r.allow_loss, NULL, "leave out what cannot be carried" },
        { "dry-run", 'n', OPT_FLAG, &r.dry_run, NULL, "say what would be done; change nothing" },
        { "no-sync", 0, OPT_FLAG, &r.no_sync, NULL, "do not wait for the disk (scratch files)" },
        { "threads", 'j', OPT_NUMBER, &r.threads, "N", "how many; 0: one per processor" },
        { "verbose", 'v', OPT_FLAG, &model_opening.verbose, NULL, "notes and a summary on stderr" },
    };
    const opt_usage usage = {
        "append",
        "FILE FROM...",
        "Adds the tensors of the other files, of any format, to FILE: all of them, or none.  What\n"
        "FILE holds and says stays as it is; of the others only tensors are taken, no metadata.\n"
        "A name that FILE has is an error; with --duplicates first, its tensor stays and the\n"
        "other is left out.  zTensor grows in place; FILE of another format is replaced by a new\n"
        "file.  A killed append has not happened: when it leaves a journal beside FILE, the next\n"
        "append or edit undoes it first.",
        "heft append --rename 's/^/ema./' model.zt ema.safetensors",
        options,
        sizeof options / sizeof *options,
        2,
        -1,
    };
    opt_args args;
    int code;
    if (!opt_parse(&args, &code, &usage, argc, argv))
        return code;
    r.path = args.item[0];
    r.from = args.item + 1;
    r.count = (uint32_t)args.count - 1;
    code = prepare(&r);
    if (!code)
        code = append(&r);
    close_all(&r);
    opt_release(&usage);
    return code;
}
