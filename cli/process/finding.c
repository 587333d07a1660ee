#include "process/finding.h"

#include "process/message.h"

const char *severity_name(heft_severity s)
{
    static const char *const names[] = { "note", "warning", "fault" };
    return names[s];
}

finding finding_of(const heft_file *f, const heft_finding *x)
{
    finding y = { .severity = x->severity, .rule = x->rule, .text = x->text, .where = x->where };
    if (x->tensor != HEFT_NONE)
        y.tensor = heft_tensor_at(f, x->tensor).name;
    if (x->tensor != HEFT_NONE && !y.tensor.len)
        y.tensor = str_of("");
    if (x->shard)
        y.shard = heft_shard_file_at(f, x->shard - 1).name;
    return y;
}

/* ---- text ---- */

static void print_place(outbuf *o, const finding *x)
{
    unsigned long long at = x->where.offset;
    if (x->in_pickles) {
        out_format(o, " (at byte %llu%s)", at,
                   x->in_pickles->is_decoded ? " of the unpacked content" : "");
    } else if (x->diagnosis) {
        if (x->tensor.ptr) {
            out_text(o, " (tensor ");
            out_name(o, x->tensor);
            out_char(o, ')');
        }
        if (x->where.offset != HEFT_NOWHERE)
            out_format(o, " (at byte %llu)", at);
    } else if (!x->path) {
        out_place(o, x->tensor, x->where.offset, x->shard);
    }
}

void finding_print(outbuf *o, const finding *x)
{
    static const term_colour colours[] = { COLOUR_NONE, COLOUR_YELLOW, COLOUR_RED };
    out_message(o, x->file);
    out_text(o, ": ");
    term_paint(o, colours[x->severity]);
    out_text(o, severity_name(x->severity));
    term_paint(o, COLOUR_NONE);
    out_format(o, ": %s: ", x->rule);
    if (x->in_pickles && x->in_pickles->member.len) {
        out_escaped(o, x->in_pickles->member);
        out_text(o, ": ");
    }
    out_message(o, x->text);
    print_place(o, x);
    out_char(o, '\n');
}

const char *verdict_word(bool ok)
{
    return ok ? "ok" : "failed";
}

void verdict_print(outbuf *o, const char *file, bool ok, const char *word)
{
    if (file) {
        out_message(o, file);
        out_text(o, ": ");
    }
    term_paint(o, ok ? COLOUR_GREEN : COLOUR_RED);
    out_text(o, word);
    term_paint(o, COLOUR_NONE);
}

/* ---- JSON ---- */

static void json_bytes(json *j, const finding *x)
{
    bool is_somewhere = x->where.offset != HEFT_NOWHERE;
    json_member_u64(j, "length", is_somewhere ? x->where.length : 0);
    if (x->tensor.ptr)
        json_member_str(j, "tensor", x->tensor);
    else
        json_member_null(j, "tensor");
}

static void json_import(json *j, const heft_scan_finding *x)
{
    json_member_bool(j, "unpacked", x->is_decoded);
    json_member_text(j, "module", x->module);
    json_member_text(j, "name", x->name);
}

void finding_json(json *j, const finding *x)
{
    json_line(j);
    json_begin(j, '{');
    json_member_str(j, "severity", str_of(severity_name(x->severity)));
    json_member_str(j, x->diagnosis ? "kind" : "rule", str_of(x->rule));
    if (x->in_pickles)
        json_member_text(j, "member", x->in_pickles->member);
    json_member_length(j, "offset", x->where.offset);
    if (x->in_pickles)
        json_import(j, x->in_pickles);
    else
        json_bytes(j, x);
    if (x->shard.ptr)
        json_member_str(j, "shard", x->shard);
    if (x->path)
        json_member_str(j, "path", str_of(x->path));
    json_member_str(j, "text", str_of(x->text));
    if (x->diagnosis)
        json_member_text(j, "advice", str_of(x->diagnosis->advice ? x->diagnosis->advice : ""));
    json_end(j, '}');
}

/* ---- the findings about a file ---- */

void finding_list_begin(finding_list *l, outbuf *o, bool as_json)
{
    l->o = o;
    l->as_json = as_json;
    out_open(&l->collected, -1);
    l->j = (json){ &l->collected, false };
}

void finding_list_add(finding_list *l, const finding *x)
{
    if (l->as_json)
        finding_json(&l->j, x);
    else
        finding_print(l->o, x);
}

void finding_list_json(json *j, const finding_list *l)
{
    json_member_begin(j, "findings", '[');
    out_bytes(j->o, l->collected.buf, l->collected.used);
    if (l->collected.os)
        j->o->os = l->collected.os;
    json_end(j, ']');
}

void finding_list_end(finding_list *l)
{
    out_free(&l->collected);
}

void finding_report_begin(json *j, const char *file)
{
    json_begin(j, '{');
    json_member_str(j, "file", str_of(file));
}

void finding_report_end(json *j, const char *failure)
{
    if (failure)
        json_member_str(j, "error", str_of(failure));
    json_end(j, '}');
}
