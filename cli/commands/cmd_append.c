/* cmd_append.c - `heft append`: add tensors from other files to an existing file. */
#include <unistd.h>

#include <heft/heft_ext.h>

#include "commands/job.h"
#include "models/inputs.h"
#include "options/command.h"
#include "process/interrupt.h"

/* A FILE that does not open is reported by what appends to it. */
static int check_target(const job *j, const inputs *from)
{
    heft_file *f;
    if (j->rules.raw_tensors || model_try_open(j->session, &f, j->out, NULL))
        return CODE_DONE;
    int code = inputs_check_target(from, heft_file_format(f));
    heft_file_close(f);
    return code;
}

static int prepare(job *j, inputs *from, const char *source)
{
    /* on_conflict stays unset: append copies no metadata */
    heft_join_options o = HEFT_JOIN_OPTIONS_INIT;
    int code = job_prepare(j);
    o.duplicates = job_duplicates(j);
    if (!code)
        code = inputs_open(from);
    if (!code)
        code = inputs_join(from, &o, source);
    if (!code && j->dequantize)
        code = inputs_dequantise(from, j->dequantize);
    j->rules.is_decoded = from->decoded.model != NULL;
    if (!code)
        code = check_target(j, from);
    if (!code)
        code = rules_check(&j->rules, j->session, inputs_model(from), source);
    if (!code)
        job_set_options(j, source);
    j->inputs = from->distinct_paths;
    j->input_count = from->joined ? from->distinct_count : 0;
    return code;
}

static int say_done(const job *j, const heft_append_result *result)
{
    const heft_edit_result *edit = &result->edit;
    const char *tensors = result->tensors == 1 ? "tensor" : "tensors";
    unsigned long long bytes = edit->size;
    if (!j->dry_run) {
        job_say_edited(j->out, edit);
        const char *how = !edit->changed ? "" : edit->in_place ? " in place" : " in a new file";
        if (j->session->verbose)
            say(MESSAGE_INFO, j->out, "%u %s appended%s, %llu bytes", result->tensors, tensors, how,
                bytes);
        return CODE_DONE;
    }
    outbuf o;
    out_open(&o, STDOUT_FILENO);
    out_message(&o, j->out);
    out_format(&o, ": %u %s more, ", result->tensors, tensors);
    if (bytes)
        out_format(&o, "%llu bytes, ", bytes);
    out_text(&o, edit->in_place ? "in place\n" : "in a new file\n");
    return out_end(&o, CODE_DONE);
}

static int append(job *j, const heft_file *from)
{
    heft_append_result result;
    heft_error err;
    heft_append_options o = HEFT_APPEND_OPTIONS_INIT;
    o.convert = &j->convert;
    /* inputs_join() applied `last` among the new files; a name that FILE has is refused. */
    o.duplicates = j->duplicates && *j->duplicates == 'f' ? HEFT_DUPLICATES_FIRST
                                                          : HEFT_DUPLICATES_REFUSE;
    o.no_sync = j->no_sync;
    o.limits = &j->session->limits;
    model_say_notices_at_path(j->session, j->out);
    interrupt_hold();
    progress_begin(&j->bar, j->out);
    heft_status st = heft_file_append(&result, j->out, from, &o, &err);
    progress_end(&j->bar);
    losses_print(&j->losses);
    if (result.edit.rolled_back)
        say(MESSAGE_NOTE, j->out, "rolled back an interrupted edit");
    if (st && j->rules.no_memory)
        return say_no_memory_to_match(j->source);
    if (!st) {
        int code = say_done(j, &result);
        if (!code)
            job_say_appended(j, &result);
        return code;
    }
    int code = model_say_open_error(j->session, job_explain(j, &err), &err);
    return st == HEFT_E_ARGUMENT ? CODE_CANNOT : code;
}

static int run(const session *s, void *ctx)
{
    job *j = ctx;
    inputs from = { .session = s, .paths = s->args.item + 1, .count = (uint32_t)s->args.count - 1 };
    j->out = s->args.item[0];
    int code = prepare(j, &from, from.count == 1 ? from.paths[0] : j->out);
    if (!code)
        code = append(j, inputs_model(&from));
    inputs_close(&from);
    job_release(j);
    return code;
}

const command command_append = {
    .name = "append",
    .args = "FILE FROM...",
    .summary = "add tensors from other files to a file",
    .description =
        "Adds the tensors of other files, of any format, to FILE: all of them, or none.\n"
        "FILE's own tensors and metadata do not change; metadata of the other files is not\n"
        "copied. A name that FILE already has is an error; with --duplicates first, FILE's\n"
        "tensor stays and the other one is left out. zTensor grows in place; a FILE of\n"
        "another format is replaced by a new file. Appending is atomic: if it is\n"
        "interrupted, the next `heft append FILE` or `heft edit FILE` rolls it back.",
    .example = "heft append --rename 's/^/ema./' model.zt ema.safetensors",
    .group = GROUP_CHANGE,
    .traits = COMMAND_WRITES | COMMAND_REPORTS_LOSSES,
    .without = WITHOUT(VIEW),
    .operands = { 0, -1, 0, FILE_OUTPUT },
    .shared = job_options,
    .sharer = JOB_APPEND,
    .request_bytes = sizeof(job),
    .begin = job_begin,
    .run = run,
};
