/* no_share.c - options about shares in a build without the module 'share'. */
#include "commands/job.h"
#include "commands/verify_share.h"

/* Refuse the option if it is given; return an exit code. */
static int refuse(bool is_given, const char *option)
{
    return is_given ? command_say_left_out(option, "share") : CODE_DONE;
}

int job_prepare_share(job *j)
{
    int code = refuse(j->share_text, "--share");
    return code ? code : refuse(j->finish, "--finish");
}

int job_convert_share(job *j, const heft_file *f)
{
    (void)f;
    return refuse(true, j->finish ? "--finish" : "--share");
}

int job_give_up(const job *j)
{
    return refuse(j->abort, "--abort");
}

int verify_shares_prepare(verify_shares *s)
{
    int code = refuse(s->text, "--share");
    return code ? code : refuse(s->join || s->out, s->join ? "--join" : "--output");
}

int verify_share_write(const verify_shares *s, const heft_file *f, const char *path,
                       const heft_verify_options *options)
{
    (void)f, (void)path, (void)options;
    return refuse(s->text, "--share");
}

int verify_share_join(const verify_shares *s, heft_verify_result *result, const heft_file *f,
                      const char *path, heft_finding_fn fn, void *ctx)
{
    (void)result, (void)f, (void)path, (void)fn, (void)ctx;
    return refuse(s->join, "--join");
}
