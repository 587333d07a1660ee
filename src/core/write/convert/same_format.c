/* same_format.c - preserve the version, encodings and digests of a file that is converted to the
 * same format, and report contents that the parser skipped. */
#include "core/write/convert/convert.h"

bool heft_is_same_format(const heft_planner *p, const heft_file *in)
{
    return p->format == in->format;
}

/* ---- the version ---- */

static heft_status report_version(heft_planner *p, heft_str has)
{
    heft_error text;
    heft_str versions = heft_lit(p->format->versions);
    heft_error_plain(&text, HEFT_OK,
                     "version %q can be read, but not written: the output has version %q", has,
                     heft_str_next_word(&versions));
    return heft_plan_loss(&p->plan, HEFT_NOTE, "heft/version", HEFT_NONE, text.message);
}

heft_status heft_same_format_version(heft_planner *p, const heft_file *in, heft_error *err)
{
    heft_str has = in->x.version;
    if (!heft_is_same_format(p, in) || p->plan.version || !*p->format->versions || !has.len)
        return HEFT_OK;
    if (!heft_format_writes(p->format, has))
        return report_version(p, has);
    /* copy the text with a terminating NUL */
    has = heft_arena_join(&p->arena, has, (heft_str){ "", 1 }, (heft_str){ NULL, 0 });
    p->plan.version = has.ptr;
    return has.ptr ? HEFT_OK : heft_error_no_memory(err, "to plan the file");
}

/* ---- parts ---- */

/* Return this build's name for the algorithm of a digest "NAME:VALUE", or NULL. */
static const char *algorithm_of(const heft_planner *p, heft_str digest)
{
    char name[16];
    size_t len = 0;
    while (len < digest.len && len + 1 < sizeof name && digest.ptr[len] != ':') {
        name[len] = digest.ptr[len];
        len++;
    }
    name[len] = '\0';
    const heft_digest *d = len ? heft_host_digest(p->host, name) : NULL;
    return d ? d->name : NULL;
}

heft_storage heft_same_format_storage(heft_planner *p, const heft_file *in, uint32_t part)
{
    heft_storage storage = heft_planner_default_storage(p), existing = storage;
    if (!heft_is_same_format(p, in) || !p->writer->storage)
        return storage;
    const char *algorithm = algorithm_of(p, heft_ix_digest_of(&in->x, part));
    if (p->opt.storage.encoding == HEFT_RAW)
        existing.encoding = heft_ix_part_row_at(&in->x, part)->encoding;
    bool is_same_version = p->plan.version && heft_str_is(in->x.version, p->plan.version);
    /* In a file of the same version, a part without a digest was meant to have none. */
    if (!p->opt.storage.digest && (algorithm || is_same_version))
        existing.digest = algorithm;
    p->writer->storage(&p->plan, &existing, true);
    return existing;
}

void heft_same_format_note(heft_planner *p, const heft_file *in, uint32_t part,
                           const heft_storage *storage)
{
    heft_encoding encoding = heft_ix_part_row_at(&in->x, part)->encoding;
    heft_str digest = heft_ix_digest_of(&in->x, part);
    const char *algorithm = algorithm_of(p, digest);
    if (!heft_is_same_format(p, in))
        return;
    p->decoded += encoding != HEFT_RAW && storage->encoding == HEFT_RAW;
    p->digests_lost += digest.len && !algorithm && !storage->digest && !p->opt.storage.digest;
    p->digests_changed += algorithm && storage->digest && !p->opt.storage.digest &&
                          !heft_str_is(heft_lit(algorithm), storage->digest);
}

/* ---- contents that the parser skipped ---- */

static heft_status report_omission(heft_planner *p, const heft_ix_omission *o)
{
    heft_error text;
    if (o->name.ptr)
        heft_error_plain(&text, HEFT_OK, "%q %s", o->name, o->text);
    else
        heft_error_plain(&text, HEFT_OK, "%s", o->text);
    return heft_plan_loss(&p->plan, o->severity, o->rule, HEFT_NONE, text.message);
}

/* Report what happens to some parts, unless there are none. */
static heft_status report_parts(heft_planner *p, heft_severity severity, const char *rule,
                                const char *what, uint32_t parts)
{
    heft_error text;
    if (!parts)
        return HEFT_OK;
    heft_error_plain(&text, HEFT_OK, "%s: %U", what, (uint64_t)parts);
    return heft_plan_loss(&p->plan, severity, rule, HEFT_NONE, text.message);
}

static heft_status report_storage_changes(heft_planner *p)
{
    HEFT_TRY(report_parts(p, HEFT_WARNING, "heft/encoding",
                          "compressed parts of the input are stored uncompressed", p->decoded));
    HEFT_TRY(report_parts(p, HEFT_WARNING, "heft/digest-lost",
                          "digests that this build cannot compute are left out", p->digests_lost));
    return report_parts(p, HEFT_NOTE, "heft/digest-kind",
                        "digests that this version does not have are replaced by its own",
                        p->digests_changed);
}

heft_status heft_left_out_losses(heft_planner *p, const heft_file *in)
{
    const heft_note *notes = in->x.notes.ptr;
    heft_status st = HEFT_OK;
    uint32_t told = 0;
    for (uint32_t i = 0; i < in->x.notes.len && !st; i++) {
        if (notes[i].left_out == HEFT_LEFT_OUT_NOT)
            continue;
        st = heft_plan_loss(&p->plan, HEFT_WARNING, notes[i].rule, HEFT_NONE, notes[i].text);
        told++;
    }
    return st ? st
              : report_parts(p, HEFT_WARNING, "heft/left-out",
                             "further contents of the input that are left out",
                             in->x.left_out - told);
}

heft_status heft_same_format_losses(heft_planner *p, const heft_file *in)
{
    const heft_ix_omission *all = in->x.omitted.ptr;
    if (in->x.lost_omissions)
        return heft_error_plain(
            p->plan.err, HEFT_E_NOMEM,
            "no memory to list the contents that a copy leaves out: open the input again");
    for (uint32_t i = 0; i < in->x.omitted.len; i++)
        if (heft_is_same_format(p, in) || all[i].name.ptr)
            HEFT_TRY(report_omission(p, &all[i]));
    return report_storage_changes(p);
}
