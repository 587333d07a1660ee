/* cmd_doctor.c - `heft doctor`: name the damage of a file, and salvage the intact tensors. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <heft/doctor.h>

#include "commands/job.h"
#include "models/inputs.h"
#include "models/model.h"
#include "options/command.h"
#include "process/finding.h"
#include "process/textfile.h"
#include "text/jsonout.h"

typedef struct examination {
    const char *path;
    heft_doctor *d;
    heft_doctor_summary summary;
    bool as_json, is_salvaged;
    job *job;
    outbuf *o;
} examination;

/* Return the number of tensors; content that is left out counts as one tensor if the file is
 * damaged, or is salvaged. */
static uint32_t all_of(const examination *e)
{
    const heft_doctor_summary *s = &e->summary;
    return s->tensors + (s->faults || e->is_salvaged ? s->left_out : 0);
}

static uint32_t intact(const examination *e)
{
    return e->summary.tensors - e->summary.lost;
}

/* Return the number of bytes of the tensor after the end of the file. */
static uint64_t missing_bytes(const examination *e, uint32_t tensor)
{
    const heft_file *f = heft_doctor_file(e->d);
    heft_tensor t = heft_tensor_at(f, tensor);
    uint64_t missing = 0, size = e->summary.file_bytes;
    for (uint32_t i = 0; i < t.part_count; i++) {
        heft_part p = heft_part_at(f, t.first_part + i);
        uint64_t end = p.offset + p.stored;
        missing += end <= size ? 0 : p.offset > size ? p.stored : end - size;
    }
    return missing;
}

/* ---- text ---- */

static finding finding_in(const examination *e, const heft_diagnosis *x)
{
    finding y = finding_of(heft_doctor_file(e->d), &(heft_finding){ .severity = x->severity,
                                                                    .rule = x->kind,
                                                                    .text = x->text,
                                                                    .where = x->where,
                                                                    .tensor = x->tensor });
    y.file = stdin_label(e->path);
    y.diagnosis = x;
    return y;
}

/* Print the advice after the last of the diagnoses that it follows from. */
static void print_advice(const examination *e, const heft_diagnosis *x, uint32_t i)
{
    const char *next = heft_diagnosis_at(e->d, i + 1).advice;
    if (x->advice && (!next || strcmp(next, x->advice) != 0))
        out_format(e->o, "  advice: %s\n", x->advice);
}

static void print_lost(const examination *e)
{
    enum { SHOWN = 20 };
    uint32_t shown = 0;
    for (uint32_t t = 0; t < e->summary.tensors && shown < SHOWN; t++) {
        if (!heft_doctor_is_lost(e->d, t))
            continue;
        uint64_t missing = missing_bytes(e, t);
        shown++;
        out_text(e->o, "  lost: ");
        out_name(e->o, heft_tensor_at(heft_doctor_file(e->d), t).name);
        if (missing)
            out_format(e->o, " (%llu bytes are missing)\n", (unsigned long long)missing);
        else
            out_text(e->o, " (damaged)\n");
    }
    if (e->summary.lost > shown)
        out_format(e->o, "  lost: %u more tensors; --json lists all\n", e->summary.lost - shown);
}

static void print_verdict(const examination *e)
{
    const heft_doctor_summary *s = &e->summary;
    outbuf *o = e->o;
    bool is_whole = s->tensors && s->can_salvage && intact(e) == all_of(e);
    verdict_print(o, stdin_label(e->path), !s->faults,
                  !s->faults ? "healthy"
                  : is_whole ? "faulty, but whole"
                             : "damaged");
    if (!s->faults && s->warnings)
        out_format(o, ", %u %s", s->warnings, s->warnings == 1 ? "warning" : "warnings");
    if (s->format && heft_doctor_file(e->d))
        out_format(o, " (%s, %u of %u tensors intact)", heft_format_name(s->format), intact(e),
                   all_of(e));
    out_char(o, '\n');
    if (!e->is_salvaged)
        return;
    out_message(o, e->job->out);
    out_format(o, ": %u tensors salvaged, %u lost\n", intact(e), all_of(e) - intact(e));
}

static void print_text(const examination *e)
{
    heft_diagnosis x;
    for (uint32_t i = 0, n = heft_diagnosis_count(e->d); i < n; i++) {
        x = heft_diagnosis_at(e->d, i);
        finding y = finding_in(e, &x);
        finding_print(e->o, &y);
        print_advice(e, &x, i);
    }
    print_lost(e);
    print_verdict(e);
}

/* ---- JSON ---- */

static void json_lost(json *j, const examination *e)
{
    json_member_begin(j, "lost", '[');
    for (uint32_t t = 0; t < e->summary.tensors; t++) {
        if (!heft_doctor_is_lost(e->d, t))
            continue;
        json_line(j);
        json_begin(j, '{');
        json_member_str(j, "name", heft_tensor_at(heft_doctor_file(e->d), t).name);
        json_member_u64(j, "missing_bytes", missing_bytes(e, t));
        json_end(j, '}');
    }
    json_end(j, ']');
}

static void print_json(const examination *e)
{
    const heft_doctor_summary *s = &e->summary;
    heft_diagnosis x;
    json j = json_open(e->o);
    json_member_str(&j, "file", str_of(stdin_name(e->path)));
    json_member_text(&j, "format", str_of(s->format ? heft_format_name(s->format) : ""));
    json_member_bool(&j, "ok", !s->faults);
    json_member_u64(&j, "size", s->file_bytes);
    json_member_length(&j, "expected_size",
                       s->expected_bytes ? s->expected_bytes : HEFT_UNKNOWN_LENGTH);
    json_member_begin(&j, "findings", '[');
    for (uint32_t i = 0, n = heft_diagnosis_count(e->d); i < n; i++) {
        x = heft_diagnosis_at(e->d, i);
        finding y = finding_in(e, &x);
        finding_json(&j, &y);
    }
    json_end(&j, ']');
    json_member_u64(&j, "tensors", s->tensors);
    json_member_u64(&j, "intact", intact(e));
    json_member_u64(&j, "left_out", s->left_out);
    json_lost(&j, e);
    json_member_text(&j, "salvaged", str_of(e->is_salvaged ? e->job->out : ""));
    json_close(&j);
}

/* ---- the command ---- */

static int check_output(const examination *e)
{
    const input in = { e->path, "the input itself", NULL };
    struct stat out;
    if (!e->job->out)
        return CODE_DONE;
    int code = job_choose_target(e->job);
    if (code || stat(e->job->out, &out))
        return code;
    code = inputs_check(e->job->out, &in, 1, &out);
    return code ? code : job_check_output(e->job, &out);
}

static int examine(examination *e)
{
    heft_error err;
    heft_source *source;
    progress bar;
    heft_doctor_options o = HEFT_DOCTOR_OPTIONS_INIT;
    o.path = e->path;
    o.host = &e->job->session->host;
    o.progress = progress_step;
    o.ctx = &bar;
    heft_status st = heft_source_open_file(&source, e->path, HEFT_ACCESS_READ, &err);
    if (st && err.os == EISDIR)
        return say_status(st, e->path, "is a folder: 'heft doctor' examines one file of it");
    if (st)
        return say_error(e->path, &err);
    progress_begin(&bar, e->path);
    st = heft_doctor_open(&e->d, source, &o, &err);
    progress_end(&bar);
    if (st)
        return say_error(e->path, &err);
    heft_doctor_summarize(&e->summary, e->d);
    return CODE_DONE;
}

static int salvage(examination *e)
{
    job *j = e->job;
    heft_error err;
    heft_sink *sink;
    if (!e->summary.can_salvage) {
        say(MESSAGE_WARNING, e->path, "no tensor can be salvaged; %s is not written", j->out);
        return CODE_DONE;
    }
    job_set_options(j, e->path);
    if (sink_open(&sink, j->out, j->force, j->no_sync, &j->events, &err))
        return say_error(j->out, &err);
    progress_begin(&j->bar, j->out);
    heft_status st = heft_doctor_salvage(e->d, j->target, sink, &j->write, job_step, j, &err);
    progress_end(&j->bar);
    losses_print(&j->losses);
    job_say_sums(j, st);
    e->is_salvaged = !st;
    return st ? say_error(job_explain(j, &err), &err) : CODE_DONE;
}

static int examine_and_salvage(examination *e)
{
    int code = check_output(e);
    if (!code)
        code = examine(e);
    if (!code && e->job->out)
        code = salvage(e);
    if (!e->d)
        return code;
    if (e->as_json)
        print_json(e);
    else
        print_text(e);
    return code ? code : e->summary.faults ? CODE_FOUND : CODE_DONE;
}

typedef struct request {
    job job;
    examination e;
} request;

static const opt options[] = {
    { "output", 'o', OPT_OUTPUT, AT(request, job.out), "OUT",
      "write the intact tensors to a new file" },
    { "to", 't', OPT_TEXT, AT_NAME(request, job.to, NAMES_FORMAT), "FORMAT",
      "format of OUT (default: by the suffix of OUT)" },
    { "allow-loss", 0, OPT_FLAG, AT(request, job.allow_loss), NULL,
      "leave out or alter what the format of OUT cannot represent" },
    { "force", 'f', OPT_FLAG, AT(request, job.force), NULL, "replace OUT" },
    { "no-sync", 0, OPT_FLAG, AT(request, job.no_sync), NULL,
      "do not wait for the disk (scratch files)" },
    { "json", 0, OPT_FLAG, AT(request, e.as_json), NULL, "print one JSON document" },
    { .name = NULL },
};

static int run(const session *s, void *ctx)
{
    request *r = ctx;
    outbuf o;
    r->e.job = &r->job;
    r->e.o = &o;
    r->e.path = s->args.item[0];
    out_open(&o, STDOUT_FILENO);
    int code = examine_and_salvage(&r->e);
    heft_doctor_close(r->e.d);
    return out_end(&o, code);
}

const command command_doctor = {
    .name = "doctor",
    .args = "FILE",
    .summary = "say what is wrong with a file, and salvage intact tensors",
    .description =
        "Names the damage of a file and says what to do: a truncated or unfinished download, a\n"
        "transfer as text, the message of a server, an archive, a file of another program. The\n"
        "exit status is 1 if the file is damaged. With -o the intact tensors are written to a\n"
        "new file; tensors with missing bytes or wrong checksums are listed as lost.",
    .example = "heft doctor cut.safetensors -o rest.safetensors",
    .group = GROUP_CHECK,
    .traits = COMMAND_WRITES,
    .without = NOT_OF_RAW_FILES,
    .options = options,
    .request_bytes = sizeof(request),
    .begin = job_begin,
    .run = run,
};
