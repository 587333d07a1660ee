/* cmd_edit.c - `heft edit`: change metadata, names and ids in the file itself. */
#include <stdlib.h>
#include <unistd.h>

#include "commands/job.h"
#include "commands/replace_tensors.h"
#include "models/model.h"
#include "options/command.h"
#include "process/interrupt.h"

typedef struct request {
    job job;
    heft_str *keys;
    heft_file *before;    /* the file before the edit, or NULL */
    heft_rename *renames; /* sorted by the old names, which `before` owns */
    heft_edit_options options;
} request;

static int by_old_name(const void *a, const void *b)
{
    return str_order(((const heft_rename *)a)->from, ((const heft_rename *)b)->from);
}

static bool identify(void *ctx, const heft_tensor *t, heft_identity *id)
{
    request *r = ctx;
    rules *edits = &r->job.rules;
    const heft_edit_options *o = &r->options;
    heft_rename own = { .from = t->name }, *known = NULL;
    if (edits->gptrs.base_ids && o->rename_count)
        known = bsearch(&own, r->renames, o->rename_count, sizeof own, by_old_name);
    /* The id may derive from the name of the tensor after the edit. */
    heft_str name = known ? known->to : t->name;
    return identity_of(&edits->ids, &edits->gptrs, t, name, true, id);
}

static bool has_identities(const job *j)
{
    return identities_are_given(&j->rules.ids) || gptrs_are_given(&j->rules.gptrs);
}

static void edit_loss(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                      const char *text)
{
    request *r = ctx;
    keep_loss(&r->job.losses, severity, rule, tensor, text);
}

static bool edit_step(void *ctx, uint64_t done, uint64_t total)
{
    request *r = ctx;
    return job_step(&r->job, done, total);
}

static int prepare(request *r)
{
    job *j = &r->job;
    heft_edit_options *o = &r->options;
    *o = (heft_edit_options)HEFT_EDIT_OPTIONS_INIT;
    int code = job_prepare(j);
    r->keys = calloc(j->unset.count + 1, sizeof *r->keys);
    if (!code && !r->keys)
        code = say_status(HEFT_E_NOMEM, NULL, "no memory for the options");
    for (size_t i = 0; i < j->unset.count && !code; i++)
        r->keys[i] = str_of(j->unset.item[i]);
    if (!code)
        code = job_read_texts(j, TEXT_NAMED);
    job_set_options(j, j->out);
    o->unset = r->keys;
    o->unset_count = j->unset.count;
    o->vocab = j->new_vocab;
    o->special = j->specials.id;
    o->special_count = j->specials.count;
    o->config = j->config_text;
    o->identify = has_identities(j) ? identify : NULL;
    o->dry_run = j->dry_run;
    o->on_loss = edit_loss;
    o->strict = j->session->strict;
    o->progress = edit_step;
    o->ctx = r;
    o->limits = &j->session->limits;
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
    if (!j->session->verbose)
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

/* List the tensors whose names change. Without expressions the library sees the pairs as given, and
 * refuses those of no tensor. */
static size_t list_renames(request *r, const heft_file *f, const heft_str *names)
{
    const renames *given = &r->job.rules.rename;
    bool as_given = !renames_have_expressions(given);
    size_t n = 0, count = as_given ? given->args.count : heft_tensor_count(f);
    for (size_t i = 0; i < count; i++) {
        heft_rename pair = as_given
                               ? renames_pair(given, i)
                               : (heft_rename){ heft_tensor_at(f, (uint32_t)i).name, names[i] };
        if (as_given || !str_same(pair.from, pair.to))
            r->renames[n++] = pair;
    }
    return n;
}

/* The names stay valid until the file is closed. */
static int prepare_renames(request *r, const heft_file *f)
{
    job *j = &r->job;
    renames *given = &j->rules.rename;
    size_t most = given->args.count + heft_tensor_count(f);
    heft_str *names = renames_apply_to_file(given, f);
    r->renames = calloc(most + 1, sizeof *r->renames);
    int code = names && r->renames ? model_check_unchanged(f, j->out)
                                   : say_no_memory_to_match(j->out);
    if (!code && renames_have_expressions(given)) {
        code = renames_refuse_unknown(given, j->out);
        unmatched u = { .f = f, .path = j->out, .strict = j->session->strict };
        if (!code)
            renames_check(&u, given);
        code = code ? code : u.code;
    }
    if (!code)
        code = renames_refuse_collisions(f, j->out, names, NULL, NULL);
    if (!code) {
        r->options.rename = r->renames;
        r->options.rename_count = list_renames(r, f, names);
        qsort(r->renames, r->options.rename_count, sizeof *r->renames, by_old_name);
    }
    free(names);
    return code;
}

/* Roll back an interrupted edit, and open the file for its names and ids. */
static int prepare_from_file(request *r)
{
    job *j = &r->job;
    heft_error err;
    bool undone = false;
    if (!j->dry_run && heft_edit_recover(&undone, j->out, &err))
        return say_error(j->out, &err);
    if (undone)
        say(MESSAGE_NOTE, j->out, "rolled back an interrupted edit");
    int code = model_load_whole(j->session, &r->before, j->out);
    if (!code)
        model_say_notices(j->session, r->before, j->out);
    if (!code && identities_are_given(&j->rules.ids)) /* new ids differ from those of the file */
        code = identities_prepare(&j->rules.ids, "edit", r->before, j->out, NULL, NULL);
    unmatched u = { .f = r->before, .path = j->out, .strict = j->session->strict };
    if (!code)
        glob_rules_check(&u, &j->rules.gptrs.grads, GLOB_GRAD);
    code = code ? code : u.no_memory ? say_no_memory_to_match(j->out) : u.code;
    bool can_list = r->before && heft_format_caps(heft_file_format(r->before)) & HEFT_CAN_LISTS;
    if (!code)
        code = set_options_resolve(&j->rules.set, r->before, can_list, j->out);
    r->options.set = j->rules.set.values;
    r->options.set_count = j->rules.set.value_count;
    if (!code && j->rules.rename.args.count)
        code = prepare_renames(r, r->before);
    return code;
}

static int edit(request *r)
{
    job *j = &r->job;
    const heft_edit_options *o = &r->options;
    heft_edit_result result;
    heft_error err;
    bool needs_file = identities_are_given(&j->rules.ids) || j->rules.rename.args.count ||
                      j->rules.gptrs.grads.args.count || j->rules.set.count;
    if (!needs_file)
        model_say_notices_at_path(j->session, j->out);
    interrupt_hold();
    int code = needs_file ? prepare_from_file(r) : CODE_DONE;
    if (code)
        return code;
    progress_begin(&j->bar, j->out);
    heft_status st = heft_file_edit(&result, j->out, o, &err);
    progress_end(&j->bar);
    losses_print(&j->losses);
    if (result.rolled_back)
        say(MESSAGE_NOTE, j->out, "rolled back an interrupted edit");
    if (st && j->rules.gptrs.no_memory)
        return say_no_memory_to_match(j->out);
    if (st && j->rules.ids.ran_out)
        return say_status(
            HEFT_E_IO, j->out,
            "gained tensors during the edit, which have no new ids: run the command again");
    if (st)
        return model_say_open_error(j->session, j->out, &err);
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

static int run(const session *s, void *ctx)
{
    request *r = ctx;
    job *j = &r->job;
    j->out = s->args.item[0];
    bool recovered = false, has_changes = j->rules.set.args.count || j->rules.set.files.count ||
                                          j->unset.count || j->rules.rename.args.count ||
                                          j->vocab || j->special || j->config || has_identities(j);
    if (j->tensors.count && has_changes)
        return say_usage("edit", "--tensor replaces data, and is given without other changes");
    if (!j->tensors.count && (j->rounds || j->allow_change))
        return say_usage("edit", "--round and --allow-change need --tensor");
    int code = prepare(r);
    if (!code && !j->dry_run)
        code = recover_set(&recovered, j->out);
    if (!code && j->tensors.count)
        code = replace_tensors(j);
    else if (!code)
        code = has_changes ? edit(r) : undo(j, recovered);
    heft_file_close(r->before);
    job_release(j);
    free(r->keys);
    free(r->renames);
    return code;
}

const command command_edit = {
    .name = "edit",
    .args = "FILE",
    .summary = "change metadata, names, ids and tensors in the file itself",
    .description =
        "Changes metadata, names and ids of tensors, vocabulary and configuration in FILE\n"
        "itself: in place if they fit, otherwise in a new file that replaces it. Format and\n"
        "version do not change, and data only by --tensor. Edits are atomic. If one is\n"
        "interrupted, the next `heft edit FILE` rolls it back, even without options. An\n"
        "interrupted split in the folder FILE, or in the folder of FILE, is completed or\n"
        "rolled back.",
    .example = "heft edit --set license=MIT --rename wte=tok_embed.weight model.safetensors",
    .group = GROUP_CHANGE,
    .traits = COMMAND_WRITES,
    .without = WITHOUT(VIEW) | WITHOUT(NO_VERIFY),
    .operands = { 0, 0, 0, FILE_OUTPUT },
    .shared = job_options,
    .sharer = JOB_EDIT,
    .request_bytes = sizeof(request),
    .begin = job_begin,
    .run = run,
};
