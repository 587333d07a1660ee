/* cmd_report.c - `heft report`: write one HTML page about a file. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands/report.h"
#include "models/inputs.h"
#include "models/model.h"
#include "options/command.h"
#include "process/interrupt.h"
#include "process/sinkwatch.h"
#include "values/summary.h"

typedef struct request {
    const session *session;
    const char *in, *other, *out; /* other: the file to compare with, or NULL */
    bool force, no_sync, quick;
} request;

static bool is_stdout(const request *r)
{
    return !strcmp(r->out, "-");
}

/* Refuse an output that is an input, a folder, or an existing file without --force. f and other are
 * the open models, or NULL before opening. */
static int check_output(const request *r, const heft_file *f, const heft_file *other)
{
    const input all[] = { { r->in, "the input itself", f },
                          { r->other, "the file to compare with", other } };
    struct stat out;
    if (is_stdout(r) || stat(r->out, &out))
        return CODE_DONE;
    int code = inputs_check(r->out, all, 2, &out);
    if (!code && S_ISDIR(out.st_mode))
        code = say_status(HEFT_E_ARGUMENT, r->out, "is a directory");
    if (!code && S_ISREG(out.st_mode) && !r->force)
        code = say_status(HEFT_E_ARGUMENT, r->out, "already exists: --force replaces it");
    return code;
}

/* ---- the figures ---- */

typedef struct verification {
    report *figures;
    progress bar;
} verification;

static void add_finding(void *ctx, const heft_finding *x)
{
    verification *v = ctx;
    report_add_finding(v->figures, x);
}

static bool verify_step(void *ctx, uint64_t done, uint64_t total)
{
    verification *v = ctx;
    return progress_step(&v->bar, done, total);
}

static int verify(report *figures, const request *r)
{
    heft_error err;
    verification v = { .figures = figures };
    heft_verify_options options = HEFT_VERIFY_OPTIONS_INIT;
    options.on_finding = add_finding;
    options.progress = verify_step;
    options.ctx = &v;
    options.quick = r->quick;
    figures->findings = (outbuf){ .fd = -1 };
    figures->findings_json = (json){ &figures->findings, false };
    progress_begin(&v.bar, r->in);
    heft_status st = heft_file_verify(&figures->checked, figures->f, &options, &err);
    progress_end(&v.bar);
    if (st)
        return say_error(r->in, &err);
    if (figures->findings.os)
        return say_status(HEFT_E_NOMEM, r->in, "no memory for the findings");
    return CODE_DONE;
}

/* Wrong digests are findings of the page, not errors. */
static int compute(report *figures, const request *r)
{
    selection every = { NULL, heft_tensor_count(figures->v->f) };
    const statistics_options none = { .verifies = false };
    int code = verify(figures, r);
    if (!code && !r->quick)
        code = statistics_compute(r->session, &figures->sums, figures->v, r->in, &every, &none);
    return code;
}

/* ---- the page ---- */

static heft_status open_sink(heft_sink **out, request *r, heft_error *err)
{
    if (!is_stdout(r))
        return sink_open(out, r->out, r->force, r->no_sync, NULL, err);
    interrupt_allow();
    heft_status st = heft_sink_open_fd(out, STDOUT_FILENO, err);
    return st ? st : sink_watch(out, NULL, err);
}

static int write_page(request *r, const report *figures)
{
    const char *target = is_stdout(r) ? "standard output" : r->out;
    heft_error err;
    heft_sink *sink;
    heft_status st = open_sink(&sink, r, &err);
    if (st)
        return say_error(target, &err);
    st = report_write(sink, figures, &err);
    if (!st && interrupt_is_pending())
        st = interrupt_error(&err);
    int code = st ? CODE_DONE : model_check_unchanged(figures->f, r->in);
    if (!st && !code && figures->other)
        code = model_check_unchanged(figures->other->c->view_b->stored, r->other);
    if (st || code)
        heft_sink_discard(sink);
    else
        st = sink->ops->finish(sink, &err);
    return st ? say_error(target, &err) : code;
}

static int open_inputs(heft_file **f, heft_file **other, const request *r)
{
    heft_error err;
    int code = check_output(r, NULL, NULL);
    if (!code && model_open_to_verify(r->session, f, r->in, &err))
        code = model_say_open_error(r->session, r->in, &err);
    if (!code && r->other)
        code = model_open_key_optional(r->session, other, r->other);
    if (!code)
        code = array_types_check(r->session, r->other ? *other : *f, r->other ? r->other : r->in);
    return code ? code : check_output(r, *f, *other);
}

static int make_report(request *r)
{
    report figures = { .path = r->in };
    /* The page lists wrong checksums: they are no errors. */
    session forgiving = *r->session;
    forgiving.no_verify = true;
    model_view a = { .f = NULL }, b = { .f = NULL };
    comparison c = {
        .session = &forgiving, .path_a = r->in, .path_b = r->other, .view_a = &a, .view_b = &b
    };
    compared x = { .c = NULL };
    heft_file *f = NULL, *other = NULL;
    int code = open_inputs(&f, &other, r);
    figures.f = f;
    figures.v = &a;
    if (!code)
        code = model_view_open(&a, &forgiving, f, r->in, VIEW_TO_LIST);
    if (!code && r->other)
        code = model_view_open(&b, &forgiving, other, r->other, VIEW_TO_LIST);
    if (!code)
        code = compute(&figures, r);
    if (!code && r->other)
        code = comparison_run(&c);
    if (!code && r->other)
        code = compared_begin(&x, &c, r->quick);
    figures.other = r->other ? &x : NULL;
    if (!code)
        code = write_page(r, &figures);
    free(figures.sums);
    out_free(&figures.findings);
    compared_release(&x);
    comparison_release(&c);
    model_view_close(&a);
    model_view_close(&b);
    heft_file_close(other);
    heft_file_close(f);
    return code;
}

static const opt options[] = {
    { "output", 'o', OPT_OUTPUT, AT(request, out), "OUT",
      "write the page here (report.html); - is stdout" },
    { "raw-tensors", 0, OPT_FLAG, SETTING(raw_tensors), NULL, RAW_TENSORS_HELP },
    { "quick", 0, OPT_FLAG, AT(request, quick), NULL,
      "leave out statistics, pictures of B and checksums of the data" },
    { "force", 'f', OPT_FLAG, AT(request, force), NULL, "replace OUT" },
    { "no-sync", 0, OPT_FLAG, AT(request, no_sync), NULL, "do not wait for the disk" },
    { .name = NULL },
};

static void begin(const session *s, void *ctx)
{
    (void)s;
    request *r = ctx;
    r->out = "report.html";
}

static int run(const session *s, void *ctx)
{
    request *r = ctx;
    r->session = s;
    r->in = s->args.item[0];
    r->other = s->args.count > 1 ? s->args.item[1] : NULL;
    return make_report(r);
}

const command command_report = {
    .name = "report",
    .args = "FILE [B]",
    .summary = "write an HTML page about a file, with pictures",
    .description =
        "Writes one HTML page about a file: element types, bytes by module, the distribution\n"
        "of every tensor, metadata, and the findings of verify; with B also what differs in B.\n"
        "The page loads nothing from elsewhere.",
    .example = "heft report model.safetensors -o model.html",
    .group = GROUP_LOOK,
    .traits = COMMAND_WRITES,
    .operands = { 0, -1, 0, NO_OUTPUT },
    .options = options,
    .request_bytes = sizeof(request),
    .begin = begin,
    .run = run,
};
