/* digest_files.c - one request is the work of one thread: a digest cannot be divided. */
#include "models/model_files.h"

#include <sys/stat.h>

#include "process/cmd.h"
#include "process/work.h"

typedef struct file_progress { /* of one request, for the common progress bar */
    work *w;
    uint64_t done;
} file_progress;

static bool step(void *ctx, uint64_t done, uint64_t total)
{
    file_progress *p = ctx;
    (void)total;
    uint64_t more = done - p->done;
    p->done = done;
    return work_step(p->w, more);
}

static heft_status digest_source(digest_request *r, work *w, heft_source *s, heft_error *err)
{
    file_progress p = { w, 0 };
    uint64_t to = r->to == HEFT_UNKNOWN_LENGTH ? s->size : r->to;
    r->size = s->size;
    r->is_short = to > s->size || r->from > to;
    return r->is_short ? HEFT_OK
                       : heft_source_digest(&r->digest, s, r->algorithm, r->from, to - r->from,
                                            step, &p, err);
}

static void digest_one(void *ctx, size_t i)
{
    work *w = ctx;
    digest_request *r = (digest_request *)w->ctx + i;
    heft_error err;
    heft_source *s;
    if (!work_step(w, 0)) /* another thread failed */
        return;
    heft_status st = heft_source_open_file(&s, r->path, HEFT_ACCESS_READ, &err);
    if (!st) {
        st = digest_source(r, w, s, &err);
        heft_source_close(s);
    }
    if (st)
        work_fail(w, r->path, &err);
}

static uint64_t bytes_of(const digest_request *r)
{
    struct stat info;
    if (r->to != HEFT_UNKNOWN_LENGTH)
        return r->to - r->from;
    return stat(r->path, &info) ? 0 : (uint64_t)info.st_size;
}

int digest_files(const session *s, digest_request *requests, size_t count, const char *label)
{
    work w = { .session = s, .ctx = requests, .path = label };
    for (size_t i = 0; i < count; i++)
        w.total += bytes_of(&requests[i]);
    return work_run(&w, count, digest_one) ? say_error(w.path, &w.err) : CODE_DONE;
}
