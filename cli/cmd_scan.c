/* cmd_scan.c - `heft scan`: what the pickles in files would import if something loaded them. */
#include <unistd.h>

#include "folder_files.h"
#include "jsonout.h"
#include "opt.h"
#include "stdin_file.h"
#include "textfile.h"

typedef struct scan {
    outbuf *o;
    const char *path;
    bool as_json;
    outbuf findings; /* JSON of the findings, collected until the file is done */
    json j;          /* writes into findings */
    heft_scan_result result;
} scan;

static const char *const severities[] = { "note", "warning", "fault" };

/* ---- findings ---- */

static void print_finding(scan *s, const heft_scan_finding *x)
{
    outbuf *o = s->o;
    out_message(o, stdin_label(s->path));
    out_text(o, ": ");
    term_paint(o, x->severity == HEFT_FAULT ? COLOUR_RED : COLOUR_YELLOW);
    out_text(o, severities[x->severity]);
    term_paint(o, COLOUR_NONE);
    out_format(o, ": %s: ", x->rule);
    if (x->member.len) {
        out_escaped(o, x->member);
        out_text(o, ": ");
    }
    out_message(o, x->text);
    out_format(o, " (at byte %llu%s)\n", (unsigned long long)x->offset,
               x->is_decoded ? " of the unpacked content" : "");
}

static void json_finding(scan *s, const heft_scan_finding *x)
{
    json *j = &s->j;
    json_line(j);
    json_begin(j, '{');
    json_member_str(j, "severity", str_of(severities[x->severity]));
    json_member_str(j, "rule", str_of(x->rule));
    json_member_text(j, "member", x->member);
    json_member_u64(j, "offset", x->offset);
    json_member_bool(j, "unpacked", x->is_decoded);
    json_member_text(j, "module", x->module);
    json_member_text(j, "name", x->name);
    json_member_str(j, "text", str_of(x->text));
    json_end(j, '}');
}

static void on_finding(void *ctx, const heft_scan_finding *finding)
{
    scan *s = ctx;
    if (s->as_json)
        json_finding(s, finding);
    else
        print_finding(s, finding);
}

/* ---- one file ---- */

static void out_number(outbuf *o, uint64_t n, const char *noun)
{
    out_format(o, "%llu %s%s", (unsigned long long)n, noun, n == 1 ? "" : "s");
}

static void out_sum(outbuf *o, const heft_scan_result *r)
{
    if (r->findings) {
        out_number(o, r->findings, "finding");
        out_text(o, " in ");
    }
    out_number(o, r->pickles, "pickle");
}

static void print_verdict(const scan *s)
{
    outbuf *o = s->o;
    bool ok = !s->result.findings;
    out_message(o, stdin_label(s->path));
    out_text(o, ": ");
    term_paint(o, ok ? COLOUR_GREEN : COLOUR_RED);
    out_text(o, ok ? "ok" : "failed");
    term_paint(o, COLOUR_NONE);
    out_text(o, " (");
    out_sum(o, &s->result);
    out_text(o, ")\n");
}

static void json_report(scan *s, json *all, const char *failure)
{
    json_begin(all, '{');
    json_member_str(all, "file", str_of(stdin_name(s->path)));
    json_member_bool(all, "ok", !failure && !s->result.findings);
    json_member_u64(all, "pickles", s->result.pickles);
    json_member_begin(all, "findings", '[');
    out_bytes(all->o, s->findings.buf, s->findings.used);
    if (s->findings.os)
        all->o->os = s->findings.os;
    json_end(all, ']');
    if (failure)
        json_member_str(all, "error", str_of(failure));
    json_end(all, '}');
}

/* Scan a file; return the exit code. */
static int scan_file(scan *s, json *all)
{
    heft_error err = { .status = HEFT_OK };
    heft_source *source = NULL;
    heft_scan_options o = HEFT_SCAN_OPTIONS_INIT;
    o.on_finding = on_finding;
    o.ctx = s;
    o.name = s->path;
    out_open(&s->findings, -1);
    s->j = (json){ &s->findings, false };
    heft_status st = heft_source_open_file(&source, s->path, HEFT_ACCESS_AUTO, &err);
    if (!st)
        st = heft_source_scan(&s->result, source, &o, &err);
    heft_source_close(source);
    int code = st ? say_error(s->path, &err) : s->result.findings ? CODE_FOUND : CODE_DONE;
    if (s->as_json)
        json_report(s, all, st ? err.message : NULL);
    else if (!st)
        print_verdict(s);
    out_free(&s->findings);
    return code;
}

/* ---- all files ---- */

static void print_total(outbuf *o, size_t files, const heft_scan_result *r)
{
    out_number(o, files, "file");
    out_text(o, ": ");
    out_sum(o, r);
    out_char(o, '\n');
}

/* Scan every file; return the highest exit code. */
static int scan_all(outbuf *o, const path_list *files, bool as_json, bool is_list)
{
    json all = { o, false };
    heft_scan_result total = { 0 };
    int worst = CODE_DONE;
    if (as_json && is_list)
        json_begin(&all, '[');
    for (size_t i = 0; i < files->count; i++) {
        scan s = { .o = o, .path = files->paths[i], .as_json = as_json };
        int code = scan_file(&s, &all);
        worst = code > worst ? code : worst;
        total.pickles += s.result.pickles;
        total.findings += s.result.findings;
    }
    if (as_json && is_list)
        json_end(&all, ']');
    if (as_json)
        out_char(o, '\n');
    else if (is_list)
        print_total(o, files->count, &total);
    return worst;
}

static int scan_arguments(const opt_args *args, bool as_json)
{
    outbuf o;
    path_list files = { 0 };
    bool is_list = args->count > 1, is_folder;
    int worst = CODE_DONE;
    for (int i = 0; i < args->count; i++) {
        int code = path_find_folder(&is_folder, args->item[i]);
        is_list = is_list || is_folder;
        if (!code)
            code = path_list_add(&files, args->item[i]);
        worst = code > worst ? code : worst;
    }
    out_open(&o, STDOUT_FILENO);
    int code = scan_all(&o, &files, as_json, is_list);
    path_list_free(&files);
    return out_end(&o, code > worst ? code : worst);
}

int cmd_scan(int argc, char **argv)
{
    bool as_json = false;
    const opt options[] = {
        { "json", 0, OPT_FLAG, &as_json, NULL,
          "print one JSON document; a list for several files" },
    };
    const opt_usage usage = {
        "scan",
        "FILE...",
        "Reports what pickles would import if a program loaded them, without loading them.\n"
        "The exit status is 1 if anything but the functions that rebuild tensors would be\n"
        "imported. Looks into PyTorch files, npy and npz files, and zip and tar archives; of\n"
        "a folder every file is scanned.",
        "heft scan model.pt downloads/",
        options,
        sizeof options / sizeof *options,
        1,
        -1,
    };
    opt_args args;
    int code;
    if (!opt_parse(&args, &code, &usage, argc, argv))
        return code;
    return scan_arguments(&args, as_json);
}
