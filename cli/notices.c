#include "notices.h"

#include "term.h"

void out_finding(outbuf *o, const heft_file *f, const heft_finding *x)
{
    bool has_offset = x->where.offset != HEFT_NOWHERE, tensor = x->tensor != HEFT_NONE;
    out_format(o, "%s: ", x->rule);
    out_message(o, x->text);
    if (tensor) {
        out_text(o, " (tensor \"");
        out_escaped(o, heft_tensor_at(f, x->tensor).name);
        out_char(o, '"');
    }
    if (has_offset)
        out_format(o, "%sat byte %llu", tensor ? ", " : " (", (unsigned long long)x->where.offset);
    if (has_offset && x->shard) {
        out_text(o, " of ");
        out_name(o, heft_shard_file_at(f, x->shard - 1).name);
    }
    out_text(o, tensor || has_offset ? ")" : "");
}

static void say_one(const heft_file *f, const char *path, const heft_finding *x)
{
    static const char *const severities[] = { "note", "warning", "fault" };
    outbuf line;
    out_open(&line, -1);
    out_finding(&line, f, x);
    const char *text = out_cstr(&line);
    say(path, "%s: %s", severities[x->severity], line.os ? x->rule : text);
    out_free(&line);
}

void notices_say(const heft_file *f, const char *path, bool notes)
{
    enum { MAX_SHOWN = 5 };
    size_t said = 0;
    heft_finding x;
    /* The faults of an incomplete model are already in the line about its completeness. */
    bool is_whole = !heft_file_is_complete(f, NULL);
    for (size_t i = 0; heft_notice_at(&x, f, i); i++) {
        bool is_shown = x.severity == HEFT_NOTE ? notes : x.severity == HEFT_WARNING || is_whole;
        if (is_shown && said++ < MAX_SHOWN)
            say_one(f, path, &x);
    }
    if (said > MAX_SHOWN)
        say(path, "warning: and %zu more (`heft verify` lists all)", said - MAX_SHOWN);
}
