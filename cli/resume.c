#include "resume.h"

#include <heft/remote.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "stdin_file.h"

int resume_check(const job *j, const char *in)
{
    if (!j->resume)
        return CODE_DONE;
    if (!heft_is_url(in))
        return say_usage("convert", "--resume needs the address of a file on a server as IN");
    if (j->to_stdout || heft_is_url(j->out))
        return say_usage("convert", "--resume needs a file as OUT: the download is kept beside it");
    if (j->share.number || j->finish || j->dry_run)
        return say_usage("convert", "--resume excludes --share, --finish and --dry-run");
    return CODE_DONE;
}

static void say_text(void *ctx, const char *text)
{
    say(MESSAGE_INFO, ctx, "%s", text);
}

/* Return the path that names the kept files: an output that is a link stays a link. */
static const char *stem_of(char real[PATH_MAX], const char *out)
{
    return realpath(out, real) ? real : out;
}

heft_status resume_open(heft_file **out, const job *j, const char *in, heft_error *err)
{
    char real[PATH_MAX];
    heft_url_options o = HEFT_URL_OPTIONS_INIT;
    o.say = say_text;
    o.ctx = (void *)(uintptr_t)in;
    o.resume = stem_of(real, j->out);
    return model_try_open_url(out, in, &o, err);
}

int resume_end(const job *j, const char *in, int code)
{
    char real[PATH_MAX];
    heft_error err;
    if (!j->resume)
        return code;
    if (code && code != CODE_INVALID) { /* bytes with a wrong checksum are not kept */
        say(MESSAGE_INFO, in,
            "what was downloaded is kept beside the output: "
            "the same command continues the download");
        return code;
    }
    int removed = heft_url_remove_kept(stem_of(real, j->out), &err) ? say_error(j->out, &err)
                                                                    : CODE_DONE;
    return code ? code : removed;
}
