/* job_share.c - --share, --finish and --abort of convert and merge: a conversion in shares. */
#include <heft/share.h>

#include "commands/job.h"
#include "process/interrupt.h"

int job_prepare_share(job *j)
{
    const char *cmd = j->command;
    heft_error err;
    if (j->share_text && heft_share_find(&j->share, j->share_text, &err))
        return say_usage(cmd, "--share: %s", err.message);
    if (j->share_text && j->finish)
        return say_usage(cmd, "--share and --finish exclude each other: the last share finishes");
    const identities *ids = &j->rules.ids;
    if ((j->share_text || j->finish) && (ids->all_new || ids->fill) && !ids->seed)
        return say_usage(cmd, "with shares --new-ids and --fill-ids need --id-seed, so that all "
                              "shares have the same ids");
    if (j->dry_run && (j->share_text || j->finish))
        return say_usage(cmd, "--dry-run has no shares");
    return CODE_DONE;
}

static void say_share(const job *j, const heft_share_result *r)
{
    if (!j->session->verbose || !r->missing)
        return;
    say(MESSAGE_INFO, j->out, "share %u of %u %s; %u missing", (unsigned)j->share.number,
        (unsigned)j->share.count, r->was_written ? "was there" : "is written",
        (unsigned)r->missing);
}

int job_convert_share(job *j, const heft_file *f)
{
    heft_error err;
    uint32_t flags = sink_flags(j->force, j->no_sync);
    int code = job_check_rules(j, f);
    if (code)
        return code;
    interrupt_hold();
    progress_begin(&j->bar, j->out);
    heft_status st = j->finish ? heft_share_finish(&j->written, f, j->target, j->out, flags,
                                                   &j->convert, &err)
                               : heft_share_convert(&j->written, f, j->target, j->out, j->share,
                                                    flags, &j->convert, &err);
    progress_end(&j->bar);
    losses_print(&j->losses);
    if (st && j->rules.no_memory)
        return say_no_memory_to_match(j->source);
    if (st || !j->written.missing)
        job_say_sums(j, st);
    if (st)
        return say_error(job_explain(j, &err), &err);
    j->bytes = j->written.bytes;
    say_share(j, &j->written);
    return CODE_DONE;
}

int job_give_up(const job *j)
{
    heft_error err;
    if (j->share_text || j->finish || j->dry_run || j->resume)
        return say_usage(j->command, "--abort excludes --share, --finish, --dry-run and --resume");
    return heft_share_abort(j->out, &err) ? say_error(j->out, &err) : CODE_DONE;
}
