/* cmd_edit.c - `heft edit`: change metadata, names and ids in the file itself. */
#include <stdlib.h>
#include <unistd.h>

#include "assign.h"
#include "interrupt.h"
#include "job.h"
#include "model.h"
#include "recover.h"

typedef struct request {
    job job;
    heft_str *keys;
    heft_rename *renames;
    heft_edit_options options;
} request;

static bool identify(void *ctx, const heft_tensor *t, heft_identity *id)
{
    request *r = ctx;
    rules *edits = &r->job.rules;
    heft_str name = t->name; /* the tensor's name after the edit */
    for (size_t i = 0; edits->gptrs.base_ids && i < r->options.rename_count; i++)
        if (str_same(r->renames[i].from, t->name)) {
            name = r->renames[i].to;
            break;
        }
    return identity_of(&edits->ids, &edits->gptrs, t, name, true, id);
}

static bool has_identities(const job *j)
{
    return identities_are_given(&j->rules.ids) || gptrs_are_given(&j->rules.gptrs);
}

static int prepare(request *r)
{
    job *j = &r->job;
    heft_edit_options *o = &r->options;
    *o = (heft_edit_options)HEFT_EDIT_OPTIONS_INIT;
    int code = job_prepare(j);
    r->keys = calloc(j->unset.count + 1, sizeof *r->keys);
    r->renames = calloc(j->renames.count + 1, sizeof *r->renames);
    if (!code && (!r->keys || !r->renames))
        code = say_status(HEFT_E_NOMEM, NULL, "no memory for the options");
    for (size_t i = 0; i < j->unset.count && !code; i++)
        r->keys[i] = str_of(j->unset.item[i]);
    for (size_t i = 0; i < j->renames.count && !code; i++)
        code = assign_rename(&r->renames[i], "edit", j->renames.item[i]);
    if (!code)
        code = job_read_texts(j, TEXT_NAMED);
    job_set_options(j, j->out);
    o->set = j->rules.values;
    o->set_count = j->rules.value_count;
    o->unset = r->keys;
    o->unset_count = j->unset.count;
    o->rename = r->renames;
    o->rename_count = j->renames.count;
    o->vocab = j->new_vocab;
    o->special = j->specials.id;
    o->special_count = j->specials.count;
    o->config = j->config_text;
    o->identify = has_identities(j) ? identify : NULL;
    o->identify_ctx = r;
    o->dry_run = j->dry_run;
    o->on_loss = say_loss;
    o->loss_ctx = &j->losses;
    o->progress = progress_step;
    o->progress_ctx = &j->bar;
    o->limits = &model_settings.limits;
    return code;
}

static void say_result(const job *j, const heft_edit_result *result)
{
    result_line line;
    if (!result_begin(&line, j->out))
        return;
    job_result_edited(&line.json, result, j->dry_run);
    result_end(&line);
}

static int say_done(const job *j, const heft_edit_result *result)
{
    unsigned long long size = result->size, copied = result->copied;
    if (j->dry_run) {
        outbuf o;
        out_open(&o, STDOUT_FILENO);
        out_message(&o, j->out);
        out_format(&o, ": %llu bytes, %s\n", size, result->in_place ? "in place" : "in a new file");
        return out_end(&o, CODE_DONE);
    }
    job_say_edited(j->out, result);
    if (!model_settings.verbose)
        return CODE_DONE;
    if (!result->changed)
        say(MESSAGE_INFO, j->out, "already up to date; file left unchanged");
    else if (result->in_place)
        say(MESSAGE_INFO, j->out, "edited in place");
    else
        say(MESSAGE_INFO, j->out, "replaced by a new file: %llu bytes, %llu of them copied", size,
            copied);
    return CODE_DONE;
}

/* Load the file's present ids, so that new ids differ from them. */
static int prepare_ids(job *j)
{
    heft_file *f;
    int code = model_load_whole(&f, j->out);
    if (code)
        return code;
    code = identities_prepare(&j->rules.ids, "edit", f, j->out, NULL, NULL);
    heft_file_close(f);
    return code;
}

static int edit(job *j, const heft_edit_options *o)
{
    heft_edit_result result;
    heft_error err;
    model_say_notices_at_path(j->out);
    int code = identities_are_given(&j->rules.ids) ? prepare_ids(j) : CODE_DONE;
    if (code)
        return code;
    interrupt_hold();
    progress_begin(&j->bar, j->out);
    heft_status st = heft_file_edit(&result, j->out, o, &err);
    progress_end(&j->bar);
    if (result.rolled_back)
        say(MESSAGE_NOTE, j->out, "rolled back an interrupted edit");
    if (st)
        return model_say_open_error(j->out, &err);
    if (j->rules.ids.ran_out)
        return say_status(
            HEFT_E_IO, j->out,
            "gained tensors during the edit, which have no new ids: run the command again");
    code = gptrs_check(&j->rules.gptrs, j->out);
    if (!code)
        code = say_done(j, &result);
    if (!code)
        say_result(j, &result);
    return code;
}

static int undo(const job *j, bool recovered)
{
    const char *path = j->out;
    bool undone;
    heft_error err;
    interrupt_hold();
    if (heft_edit_recover(&undone, path, &err))
        return say_error(path, &err);
    if (undone)
        say(MESSAGE_NOTE, path, "rolled back an interrupted edit");
    if (undone || recovered) {
        say_result(j, &(heft_edit_result){ .rolled_back = undone });
        return CODE_DONE;
    }
    return say_usage("edit", "nothing to change: use --set, --unset, --rename or another option");
}

int cmd_edit(int argc, char **argv)
{
    static const opt_usage usage = {
        "edit",
        "FILE",
        "Changes metadata, names and ids of tensors, vocabulary and configuration in FILE\n"
        "itself: in place if they fit, otherwise in a new file that replaces it. Format,\n"
        "version and data do not change. Edits are atomic. If one is interrupted, the next\n"
        "`heft edit FILE` rolls it back, even without options. An interrupted split in the\n"
        "folder FILE, or in the folder of FILE, is completed or rolled back.",
        "heft edit --set license=MIT --rename wte=tok_embed.weight model.safetensors",
        NULL,
        0,
        1,
        1,
    };
    request r = { .keys = NULL };
    job *j = &r.job;
    opt_args args;
    int code;
    if (!job_parse(j, &args, &code, &usage, argc, argv))
        return code;
    j->out = args.item[0];
    bool recovered = false, has_changes = j->rules.set.count || j->unset.count ||
                                          j->renames.count || j->vocab || j->special || j->config ||
                                          has_identities(j);
    code = prepare(&r);
    if (!code && !j->dry_run)
        code = recover_set(&recovered, j->out);
    if (!code)
        code = has_changes ? edit(j, &r.options) : undo(j, recovered);
    job_release(j);
    free(r.keys);
    free(r.renames);
    return code;
}
