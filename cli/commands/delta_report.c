/* delta_report.c - prints how many tensors changed in which way. */
#include "commands/delta_report.h"

#include <string.h>
#include <unistd.h>

#include "text/number_text.h"

void keep_loss_of_job(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                      const char *text)
{
    job *j = ctx;
    keep_loss(&j->losses, severity, rule, tensor, text);
}

static uint32_t all_tensors(const heft_delta_sums *s)
{
    uint32_t n = 0;
    for (int c = 0; c < HEFT_CHANGES; c++)
        n += s->tensors[c];
    return n;
}

/* "291 tensors: 289 sparse, 1 added, 1 unchanged; 12 MB of 1.2 GB change; 2 keys of metadata" */
static void put_text(outbuf *o, const heft_delta_sums *s)
{
    static const char *const words[HEFT_CHANGES] = {
        "unchanged", "changed in part", "changed in most elements", "replaced", "added", "removed"
    };
    const char *separator = ": ";
    uint32_t all = all_tensors(s);
    out_format(o, "%u tensor%s", all, all == 1 ? "" : "s");
    for (int c = HEFT_CHANGES; c--;)
        if (s->tensors[c]) {
            out_format(o, "%s%u %s", separator, s->tensors[c], words[c]);
            separator = ", ";
        }
    if (s->changed_bytes != HEFT_UNKNOWN_LENGTH)
        out_format(o, "; %llu bytes of values change", (unsigned long long)s->changed_bytes);
    if (s->metadata)
        out_format(o, "; %u key%s of metadata change", s->metadata, s->metadata == 1 ? "" : "s");
}

static void put_json(json *j, const delta_summary *s)
{
    json_begin(j, '{');
    if (s->path)
        json_member_str(j, "file", str_of(s->path));
    json_member_bool(j, "dry_run", s->verb != NULL);
    json_member_begin(j, "tensors", '{');
    for (int c = 0; c < HEFT_CHANGES; c++)
        json_member_u64(j, heft_change_name((heft_change)c), s->sums.tensors[c]);
    json_end(j, '}');
    json_member_u64(j, "metadata", s->sums.metadata);
    json_member_length(j, "changed_bytes", s->sums.changed_bytes);
    json_end(j, '}');
}

static int print(const delta_summary *s)
{
    outbuf o;
    out_open(&o, STDOUT_FILENO);
    if (s->as_json) {
        json j = { &o, false };
        put_json(&j, s);
    } else {
        put_text(&o, &s->sums);
    }
    out_char(&o, '\n');
    return out_end(&o, CODE_DONE);
}

int delta_report(const delta_summary *s)
{
    outbuf text;
    if (s->as_json || s->verb)
        return print(s);
    if (!s->session->verbose)
        return CODE_DONE;
    out_open(&text, -1);
    put_text(&text, &s->sums);
    say(MESSAGE_INFO, s->path, "%s", out_cstr(&text));
    out_free(&text);
    return CODE_DONE;
}
