/* cmd_merge.c - several files as one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heft/heft_ext.h>

#include "gptrs_options.h"
#include "identity.h"
#include "inputs.h"
#include "losses.h"
#include "model.h"
#include "opt.h"
#include "picks.h"
#include "progress.h"
#include "sinkwatch.h"
#include "textfile.h"

typedef struct request {
    char **in;
    uint32_t count;
    const char *out, *to, *version, *duplicates;
    uint64_t align, threads;
    bool strict, allow_loss, force, no_sync, no_memory;
    heft_file **files; /* NULL: a file that another one has anyway */
    const heft_file **kept;
    uint32_t *numbers; /* of the kept ones among the inputs */
    uint32_t kept_count, conflicts;
    heft_file *joined;
    storing storage;
    heft_write_options write;
    const heft_format *target;
    gptrs_rules gptrs;
    heft_executor executor;
    heft_host host;
    losses losses;
    identities ids;
} request;

static void close_all(request *r)
{
    heft_file_close(r->joined);
    for (uint32_t i = 0; r->files && i < r->count; i++)
        heft_file_close(r->files[i]);
    free(r->files);
    free(r->kept);
    free(r->numbers);
}

/* ---- the inputs ---- */

static int open_all(request *r)
{
    int code = CODE_DONE;
    r->files = calloc(r->count, sizeof *r->files);
    r->kept = calloc(r->count, sizeof *r->kept);
    r->numbers = calloc(r->count, sizeof *r->numbers);
    if (!r->files || !r->kept || !r->numbers) {
        say(NULL, "no memory for a list of files");
        return CODE_SYSTEM;
    }
    for (uint32_t i = 0; i < r->count && !code; i++)
        code = model_load_whole(&r->files[i], r->in[i]);
    return code;
}

/* Not CODE_DONE: no memory, which was said. */
static int choose_inputs(request *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        if (inputs_is_part(&r->no_memory, r->in, r->files, r->count, i))
            continue;
        r->numbers[r->kept_count] = i;
        r->kept[r->kept_count++] = r->files[i];
    }
    if (!r->kept_count)
        r->kept[r->kept_count++] = r->files[0];
    if (r->no_memory)
        say(NULL, "no memory for a list of files");
    for (uint32_t i = 0; i < r->kept_count && !r->no_memory; i++)
        model_say_notices(r->kept[i], r->in[r->numbers[i]]);
    return r->no_memory ? CODE_SYSTEM : CODE_DONE;
}

static void on_conflict(void *ctx, heft_str key, uint32_t file)
{
    request *r = ctx;
    outbuf name;
    out_open(&name, -1);
    out_escaped(&name, key);
    const char *text = out_cstr(&name);
    r->no_memory = r->no_memory || name.os;
    say(r->in[r->numbers[file]],
        "%s: metadata \"%s\" differ from those of an earlier file, which are kept",
        r->strict ? "error" : "warning", text);
    out_free(&name);
    r->conflicts++;
}

static int join(request *r)
{
    heft_error err;
    heft_join_options o = HEFT_JOIN_OPTIONS_INIT;
    const char *rule = r->duplicates;
    o.on_conflict = on_conflict;
    o.ctx = r;
    if (rule && strcmp(rule, "first") != 0 && strcmp(rule, "last") != 0)
        return say_usage("merge", "--duplicates is first or last, not '%s'", rule);
    if (rule)
        o.duplicates = *rule == 'f' ? HEFT_DUPLICATES_FIRST : HEFT_DUPLICATES_LAST;
    if (heft_file_join(&r->joined, r->kept, r->kept_count, &o, &err)) {
        int code = model_say_not_open(r->out, &err);
        return err.status == HEFT_E_ARGUMENT ? CODE_CANNOT : code;
    }
    if (r->no_memory)
        return CODE_SYSTEM; /* a warning lacks the name that it is about */
    return r->strict && r->conflicts ? CODE_CANNOT : CODE_DONE;
}

/* ---- the target ---- */

static int choose_target(request *r)
{
    const heft_format *of_input = heft_file_format(r->kept[0]);
    r->target = r->to ? heft_format_find(r->to) : heft_format_for_path(r->out);
    if (!r->target && r->to)
        return say_usage("merge", "no format is called '%s': heft formats lists them", r->to);
    if (!r->target)
        return say_usage("merge", "the suffix of '%s' tells no format: use --to", r->out);
    if (!(heft_format_caps(r->target) & HEFT_CAN_WRITE)) {
        say(r->out, "%s cannot be written by this build", heft_format_name(r->target));
        return CODE_CANNOT;
    }
    return of_input ? CODE_DONE : CODE_CANNOT;
}

static int check_output(const request *r)
{
    struct stat out;
    if (stat(r->out, &out))
        return CODE_DONE;
    for (uint32_t i = 0; i < r->count; i++) {
        const input one = { r->in[i], "one of the inputs", r->files[i] };
        int code = inputs_check(r->out, &one, 1, &out);
        if (code)
            return code;
    }
    if (S_ISDIR(out.st_mode)) {
        say(r->out, "is a directory");
        return CODE_USAGE;
    }
    if (!S_ISREG(out.st_mode) || r->force)
        return CODE_DONE;
    say(r->out, "exists already: --force replaces it");
    return CODE_USAGE;
}

/* ---- the command ---- */

static bool identify(void *ctx, const heft_tensor *t, heft_identity *id)
{
    request *r = ctx;
    return identity_of(&r->ids, &r->gptrs, t, t->name, false, id);
}

static bool store(void *ctx, const heft_tensor *t, heft_str role, heft_storage *how)
{
    return storing_choose(&((request *)ctx)->storage, t, role, how);
}

static void set_options(request *r, heft_convert_options *o, progress *p)
{
    r->executor = heft_executor_threads((uint32_t)r->threads);
    heft_host_copy(&r->host, NULL, sizeof r->host);
    r->host.executor = &r->executor;
    r->losses = (losses){ r->kept_count == 1 ? r->in[r->numbers[0]] : r->out,
                          model_opening.verbose };
    heft_write_options *w = &r->write;
    w->host = &r->host;
    w->version = r->version;
    w->align = (uint32_t)r->align;
    w->strict = r->strict;
    w->allow_loss = r->allow_loss;
    w->on_loss = say_loss;
    w->loss_ctx = &r->losses;
    o->write = w;
    o->identify = identities_are_given(&r->ids) || gptrs_are_given(&r->gptrs) ? identify : NULL;
    o->ctx = r;
    o->no_verify = model_opening.no_verify;
    o->storage = storing_is_given(&r->storage) ? store : NULL;
    o->progress = progress_step;
    o->progress_ctx = p;
}

static int merge(request *r)
{
    heft_error err;
    heft_sink *sink;
    sink_failure failure = { NULL };
    progress p;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    const heft_file *in = r->joined ? r->joined : r->kept[0];
    const char *path = r->kept_count == 1 ? r->in[r->numbers[0]] : r->out;
    int code = identities_are_given(&r->ids)
                   ? identities_prepare(&r->ids, "merge", in, path, NULL, NULL)
                   : CODE_DONE;
    if (code)
        return code;
    heft_status st = sink_open(&sink, r->out, r->force, r->no_sync, &failure, &err);
    if (st)
        return say_error(r->out, &err);
    set_options(r, &o, &p);
    storing_check(&r->storage, in, r->losses.path);
    progress_begin(&p, r->out);
    st = heft_file_convert(in, r->target, sink, &o, &err);
    progress_end(&p);
    if (st && r->storage.no_memory)
        return storing_say_no_memory(r->out);
    bool about_target = st == HEFT_E_ARGUMENT || st == HEFT_E_UNSUPPORTED;
    if (st)
        return sink_say_error(&failure, about_target ? r->out : r->losses.path, &err);
    return gptrs_check(&r->gptrs, r->losses.path);
}

static int prepare(request *r)
{
    enum { MOST_THREADS = 1024 };
    if (r->threads > MOST_THREADS)
        return say_usage("merge", "--threads is at most %d", MOST_THREADS);
    if (r->align > UINT32_MAX || (r->align & (r->align - 1)))
        return say_usage("merge", "--align is a power of two below 2^32");
    r->write = (heft_write_options)HEFT_WRITE_OPTIONS_INIT;
    int code = gptrs_prepare(&r->gptrs, "merge");
    if (!code)
        code = storing_prepare(&r->storage, "merge", &r->write);
    if (!code)
        code = open_all(r);
    if (code)
        return code;
    code = choose_inputs(r);
    if (!code)
        code = choose_target(r);
    if (!code)
        code = gptrs_check_target(&r->gptrs, r->target, r->out);
    if (!code)
        code = check_output(r);
    return code || r->kept_count == 1 ? code : join(r);
}

int cmd_merge(int argc, char **argv)
{
    request r = { .in = NULL };
    const opt options[] = {
        { "to", 't', OPT_TEXT, &r.to, "FORMAT", "target format; else the suffix of OUT tells" },
        { "format-version", 0, OPT_TEXT, &r.version, "V", "generation of the target format" },
        { "duplicates", 0, OPT_TEXT, &r.duplicates, "first|last",
          "which tensor of a name counts; else it is an error" },
        { "set-id", 0, OPT_LIST, &r.ids.set, "NAME=ID",
          "Burn's id of a tensor: a number, its text, none" },
        { "new-ids", 0, OPT_FLAG, &r.ids.all_new, NULL,
          "a new random id of Burn's for every tensor" },
        { "fill-ids", 0, OPT_FLAG, &r.ids.fill, NULL, "the same for tensors without one" },
        { "id-seed", 0, OPT_TEXT, &r.ids.seed, "N", "new ids that follow from a number" },
        { "requires-grad", 0, OPT_LIST, &r.gptrs.grads, "[GLOB=]BOOL",
          "true, false or unset (gpt-rs); first match counts" },
        { "base-ids", 0, OPT_TEXT, &r.gptrs.base_ids, "name|none",
          "ids made from names, or none (gpt-rs)" },
        { "compress", 0, OPT_LIST, &r.storage.compress.given, "[GLOB=]zstd[:N]",
          "encoding of parts; none: raw; first match counts" },
        { "digest", 0, OPT_LIST, &r.storage.digest.given, "[GLOB=]NAME",
          "crc32c, sha256, xxh3 or none, of each part" },
        { "align", 0, OPT_NUMBER, &r.align, "N", "payloads at multiples of N bytes" },
        { "strict", 0, OPT_FLAG, &r.strict, NULL, "metadata that is lost is an error" },
        { "allow-loss", 0, OPT_FLAG, &r.allow_loss, NULL, "leave out what cannot be carried" },
        { "force", 'f', OPT_FLAG, &r.force, NULL, "replace OUT" },
        { "no-sync", 0, OPT_FLAG, &r.no_sync, NULL, "do not wait for the disk (scratch files)" },
        { "threads", 'j', OPT_NUMBER, &r.threads, "N", "how many; 0: one per processor" },
        { "verbose", 'v', OPT_FLAG, &model_opening.verbose, NULL, "notes on stderr" },
    };
    const opt_usage usage = {
        "merge",
        "IN... OUT",
        "Writes one file with all tensors of the inputs: the files of a model in several\n"
        "files, by its folder or its index, or files that have nothing to do with each other.\n"
        "Two tensors of the same name are an error, unless --duplicates says which counts; of\n"
        "metadata under the same key the first counts, and a difference is a warning.",
        "heft merge shards/ model.safetensors",
        options,
        sizeof options / sizeof *options,
        2,
        -1,
    };
    opt_args args;
    int code;
    if (!opt_parse(&args, &code, &usage, argc, argv))
        return code;
    r.in = args.item;
    r.count = (uint32_t)args.count - 1;
    r.out = args.item[r.count];
    code = prepare(&r);
    if (!code)
        code = merge(&r);
    identities_release(&r.ids);
    close_all(&r);
    gptrs_release(&r.gptrs);
    storing_release(&r.storage);
    opt_release(&usage);
    return code;
}
