/* file_findings.c - prints findings at once as text, or collects them for the JSON document. */
#include "commands/file_findings.h"

#include <stdio.h>
#include <unistd.h>

#include "models/model.h"

void findings_open(file_findings *f, const session *s, bool as_json, bool is_list)
{
    *f = (file_findings){ .as_json = as_json, .strict = s->strict };
    out_open(&f->o, STDOUT_FILENO);
    f->all = (json){ &f->o, false };
    if (as_json && is_list)
        json_begin(&f->all, '[');
}

void findings_begin(file_findings *f, const char *path)
{
    f->path = path;
    f->faults = f->warnings = 0;
    f->bytes = 0;
    out_open(&f->collected, -1);
    f->list = (json){ &f->collected, false };
}

static void print_finding(file_findings *f, heft_severity severity, const char *rule,
                          const char *name, const char *text)
{
    bool is_fault = severity == HEFT_FAULT;
    outbuf *o = &f->o;
    out_message(o, name);
    out_text(o, ": ");
    term_paint(o, is_fault ? COLOUR_RED : COLOUR_YELLOW);
    out_text(o, is_fault ? "fault" : "warning");
    term_paint(o, COLOUR_NONE);
    out_format(o, ": %s: ", rule);
    out_message(o, text);
    out_char(o, '\n');
}

static void json_finding(file_findings *f, heft_severity severity, const char *rule,
                         const char *name, heft_range where, const char *text)
{
    json *j = &f->list;
    json_line(j);
    json_begin(j, '{');
    json_member_str(j, "severity", str_of(severity == HEFT_FAULT ? "fault" : "warning"));
    json_member_str(j, "rule", str_of(rule));
    json_member_length(j, "offset", where.offset);
    json_member_u64(j, "length", where.offset == HEFT_NOWHERE ? 0 : where.length);
    json_member_null(j, "tensor");
    json_member_str(j, "path", str_of(name));
    json_member_str(j, "text", str_of(text));
    json_end(j, '}');
}

void findings_add(file_findings *f, heft_severity severity, const char *rule, const char *name,
                  heft_range where, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    f->faults += severity == HEFT_FAULT;
    f->warnings += severity == HEFT_WARNING;
    if (f->as_json)
        json_finding(f, severity, rule, name, where, text);
    else
        print_finding(f, severity, rule, name, text);
}

static bool is_ok(const file_findings *f)
{
    return !f->faults && !(f->strict && f->warnings);
}

static void json_report(file_findings *f, const char *covers, const char *failure)
{
    json *j = &f->all;
    json_begin(j, '{');
    json_member_str(j, "file", str_of(f->path));
    json_member_null(j, "format");
    json_member_bool(j, "ok", !failure && is_ok(f));
    json_member_begin(j, "findings", '[');
    out_bytes(j->o, f->collected.buf, f->collected.used);
    if (f->collected.os)
        j->o->os = f->collected.os;
    json_end(j, ']');
    json_member_u64(j, "bytes_checked", f->bytes);
    json_member_text(j, "covers", str_of(failure || !is_ok(f) ? "" : covers));
    if (failure)
        json_member_str(j, "error", str_of(failure));
    json_end(j, '}');
}

static void print_verdict(file_findings *f, const char *covers)
{
    outbuf *o = &f->o;
    out_message(o, f->path);
    out_text(o, ": ");
    term_paint(o, is_ok(f) ? COLOUR_GREEN : COLOUR_RED);
    out_text(o, is_ok(f) ? "ok" : "failed");
    term_paint(o, COLOUR_NONE);
    if (is_ok(f))
        out_format(o, " (%llu bytes checked; %s)\n", (unsigned long long)f->bytes, covers);
    else
        out_format(o, " (faults: %u, warnings: %u)\n", f->faults, f->warnings);
}

int findings_end(file_findings *f, const char *covers, const char *failure)
{
    if (f->as_json)
        json_report(f, covers, failure);
    else if (!failure)
        print_verdict(f, covers);
    out_free(&f->collected);
    return is_ok(f) ? CODE_DONE : CODE_FOUND;
}

int findings_close(file_findings *f, bool is_list, int code)
{
    if (f->as_json && is_list)
        json_end(&f->all, ']');
    if (f->as_json)
        out_char(&f->o, '\n');
    return out_end(&f->o, code);
}
