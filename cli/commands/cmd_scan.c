/* cmd_scan.c - `heft scan`: what the pickles in files would import if something loaded them. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <heft/check.h>

#include "options/command.h"
#include "process/finding.h"
#include "process/textfile.h"
#include "text/jsonout.h"

typedef struct scan {
    outbuf *o;
    const char *path, *name; /* name: of the content, or NULL */
    bool as_json, is_quiet;  /* is_quiet: print no verdict about a file without findings */
    bool is_below;           /* the file lies in a folder that was named */
    finding_list findings;
    heft_scan_result result;
} scan;

typedef struct scan_options {
    const char *name; /* the name of standard input */
    bool as_json, lists_all;
} scan_options;

/* ---- findings ---- */

static void on_finding(void *ctx, const heft_scan_finding *x)
{
    scan *s = ctx;
    finding_list_add(&s->findings, &(finding){ .file = stdin_label(s->path),
                                               .severity = x->severity,
                                               .rule = x->rule,
                                               .text = x->text,
                                               .where = { x->offset, 0 },
                                               .in_pickles = x });
}

/* ---- one file ---- */

static void out_number(outbuf *o, uint64_t n, const char *noun)
{
    out_format(o, "%llu %s%s", (unsigned long long)n, noun, n == 1 ? "" : "s");
}

static void print_verdict(const scan *s)
{
    const heft_scan_result *r = &s->result;
    outbuf *o = s->o;
    if (s->is_quiet && !r->findings)
        return;
    verdict_print(o, stdin_label(s->path), !r->findings, verdict_word(!r->findings));
    out_text(o, " (");
    if (r->findings) {
        out_number(o, r->findings, "finding");
        out_text(o, " in ");
    }
    out_number(o, r->pickles, "pickle");
    out_text(o, ")\n");
}

static void json_report(scan *s, json *all, const char *failure)
{
    finding_report_begin(all, stdin_name(s->path));
    json_member_bool(all, "ok", !failure && !s->result.findings);
    json_member_u64(all, "pickles", s->result.pickles);
    finding_list_json(all, &s->findings);
    finding_report_end(all, failure);
}

/* Return why a path in a folder is not a file to open, or NULL. Opening a pipe would wait. */
static const char *odd_kind(const char *path)
{
    struct stat info;
    if (stat(path, &info))
        return errno == ENOENT ? "leads to no file" : strerror(errno);
    return S_ISREG(info.st_mode)    ? NULL
           : S_ISFIFO(info.st_mode) ? "a pipe"
           : S_ISSOCK(info.st_mode) ? "a socket"
           : S_ISDIR(info.st_mode)  ? "a folder without permission to read it"
                                    : "a device";
}

/* Report a path in a folder that cannot be read: what it holds is not known. */
static void report_unreadable(scan *s, const char *why)
{
    outbuf text;
    out_open(&text, -1);
    out_format(&text, "cannot be read: %s", why);
    heft_scan_finding f = { .severity = HEFT_WARNING,
                            .rule = "pickle/unreadable",
                            .text = out_cstr(&text) };
    s->result.findings++;
    on_finding(s, &f);
    out_free(&text);
}

static heft_status scan_source(scan *s, heft_error *err)
{
    heft_source *source = NULL;
    heft_scan_options o = HEFT_SCAN_OPTIONS_INIT;
    o.on_finding = on_finding;
    o.ctx = s;
    o.name = s->name ? s->name : s->path;
    heft_status st = heft_source_open_file(&source, s->path, HEFT_ACCESS_AUTO, err);
    if (!st)
        st = heft_source_scan(&s->result, source, &o, err);
    heft_source_close(source);
    return st;
}

/* Scan a file; return the exit code. */
static int scan_file(scan *s, json *all)
{
    heft_error err = { .status = HEFT_OK };
    const char *odd = s->is_below ? odd_kind(s->path) : NULL;
    finding_list_begin(&s->findings, s->o, s->as_json);
    heft_status st = odd ? HEFT_OK : scan_source(s, &err);
    bool is_unreadable = odd || (s->is_below && st == HEFT_E_IO);
    if (is_unreadable) {
        report_unreadable(s, odd ? odd : err.message);
        st = HEFT_OK;
    }
    int code = st ? say_error(s->path, &err) : s->result.findings ? CODE_FOUND : CODE_DONE;
    if (s->as_json)
        json_report(s, all, st ? err.message : NULL);
    else if (!st)
        print_verdict(s);
    finding_list_end(&s->findings);
    return code;
}

/* ---- all files ---- */

typedef struct scan_list {
    path_list named, below; /* files that were named, and those that lie in folders */
    bool is_list;
    int worst; /* highest exit code */
    heft_scan_result total;
} scan_list;

static void print_total(outbuf *o, size_t files, const heft_scan_result *r, bool ok)
{
    out_number(o, files, "file");
    out_text(o, ", ");
    out_number(o, r->pickles, "pickle");
    out_text(o, ": ");
    verdict_print(o, NULL, ok, verdict_word(ok));
    if (r->findings) {
        out_text(o, " (");
        out_number(o, r->findings, "finding");
        out_char(o, ')');
    }
    out_char(o, '\n');
}

static void scan_paths(scan_list *l, const path_list *files, const scan_options *how, json *all)
{
    for (size_t i = 0; i < files->count; i++) {
        const char *path = files->paths[i];
        scan s = { .o = all->o,
                   .path = path,
                   .name = stdin_is(path) ? how->name : NULL,
                   .as_json = how->as_json,
                   .is_quiet = l->is_list && !how->lists_all,
                   .is_below = files == &l->below };
        int code = scan_file(&s, all);
        l->worst = code > l->worst ? code : l->worst;
        l->total.pickles += s.result.pickles;
        l->total.findings += s.result.findings;
    }
}

static void scan_all(outbuf *o, scan_list *l, const scan_options *how)
{
    json all = { o, false };
    if (how->as_json && l->is_list)
        json_begin(&all, '[');
    scan_paths(l, &l->named, how, &all);
    scan_paths(l, &l->below, how, &all);
    if (how->as_json && l->is_list)
        json_end(&all, ']');
    if (how->as_json)
        out_char(o, '\n');
    else if (l->is_list)
        print_total(o, l->named.count + l->below.count, &l->total, l->worst == CODE_DONE);
}

/* Append the files among the arguments, and those in the folders. */
static void add_arguments(scan_list *l, const opt_args *args)
{
    for (int i = 0; i < args->count; i++) {
        bool is_folder;
        int code = path_find_folder(&is_folder, args->item[i]);
        l->is_list = l->is_list || is_folder;
        if (!code)
            code = path_list_add(is_folder ? &l->below : &l->named, args->item[i]);
        l->worst = code > l->worst ? code : l->worst;
    }
}

static int scan_arguments(const opt_args *args, const scan_options *how)
{
    outbuf o;
    scan_list l = { .named = { .keeps_unreadable = true },
                    .below = { .keeps_unreadable = true },
                    .is_list = args->count > 1 };
    add_arguments(&l, args);
    out_open(&o, STDOUT_FILENO);
    scan_all(&o, &l, how);
    path_list_free(&l.named);
    path_list_free(&l.below);
    return out_end(&o, l.worst);
}

static bool has_stdin(const opt_args *args)
{
    for (int i = 0; i < args->count; i++)
        if (stdin_is(args->item[i]))
            return true;
    return false;
}

static const opt options[] = {
    { "json", 0, OPT_FLAG, AT(scan_options, as_json), NULL,
      "print one JSON document; a list for several files" },
    { "name", 0, OPT_TEXT, AT(scan_options, name), "NAME",
      "name of the file that is read from standard input" },
    { "verbose", 'v', OPT_FLAG, SETTING(verbose), NULL, "list the files without a finding, too" },
    { .name = NULL },
};

static int run(const session *s, void *ctx)
{
    scan_options *how = ctx;
    how->lists_all = s->verbose;
    if (how->name && !has_stdin(&s->args))
        return say_usage("scan", "--name is for standard input: name the input '-'");
    return scan_arguments(&s->args, how);
}

const command command_scan = {
    .name = "scan",
    .args = "FILE...",
    .summary = "report what pickles would import, without loading them",
    .description =
        "Reports what pickles would import if a program loaded them, without loading them.\n"
        "The exit status is 1 if anything but the functions that rebuild tensors would be\n"
        "imported, or if a part cannot be searched. Looks into every file by its content:\n"
        "PyTorch, npy and npz files, models of Keras and ONNX, zip and tar archives, and\n"
        "compressed files; of a folder everything is scanned.",
    .example = "heft scan model.pt downloads/",
    .group = GROUP_CHECK,
    .traits = COMMAND_PAGED | COMMAND_FOLLOWS_LINKS,
    .without = NOT_OF_RAW_FILES,
    .operands = { 0, -1, 0, NO_OUTPUT },
    .options = options,
    .request_bytes = sizeof(scan_options),
    .run = run,
};
