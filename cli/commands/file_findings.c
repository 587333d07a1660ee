#include "commands/file_findings.h"
#include "models/model.h"

#include <stdio.h>
#include <unistd.h>

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
    finding_list_begin(&f->list, &f->o, f->as_json);
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
    finding_list_add(&f->list, &(finding){ .file = name,
                                           .severity = severity,
                                           .rule = rule,
                                           .text = text,
                                           .where = where,
                                           .path = name });
}

static bool is_ok(const file_findings *f)
{
    return !f->faults && !(f->strict && f->warnings);
}

static void json_report(file_findings *f, const char *covers, const char *failure)
{
    json *j = &f->all;
    finding_report_begin(j, f->path);
    json_member_null(j, "format");
    json_member_bool(j, "ok", !failure && is_ok(f));
    finding_list_json(j, &f->list);
    json_member_u64(j, "bytes_checked", f->bytes);
    json_member_text(j, "covers", str_of(failure || !is_ok(f) ? "" : covers));
    finding_report_end(j, failure);
}

static void print_verdict(file_findings *f, const char *covers)
{
    outbuf *o = &f->o;
    verdict_print(o, f->path, is_ok(f), verdict_word(is_ok(f)));
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
    finding_list_end(&f->list);
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
