/* whole_file.c - a file on a server that is read by a single answer.
 *
 * The ranges of a file belong together only if the server states a version that every change of the
 * file changes.  Otherwise, and where a server sends no ranges, one answer has the whole file.
 * A temporary file receives the answer; readers wait for the bytes that they need, so that an index
 * at the beginning is read without the rest.  If the connection is lost, another answer must begin
 * with the bytes that have been received: both are then one version. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port/remote/source_url.h"

/* The time of change is believed for files larger than this only: archives and images with fixed
 * times have versions that differ in their content alone, and a small file costs little. */
enum { SMALL_FILE = 64 << 20 };

bool heft_url_is_one_version(const url_source *u, const heft_request *first)
{
    const heft_answer *a = &first->answer;
    bool has_digest = u->target.is_hub_file && *a->linked;
    return heft_answer_has_strong_etag(a) || has_digest ||
           (a->is_dated && first->size > SMALL_FILE);
}

void heft_url_whole_say(const url_source *u)
{
    if (u->whole && u->base.size > HEFT_URL_HEAD && !u->target.is_repository)
        heft_session_say(u->session,
                         u->whole->asks_whole
                             ? "the server states no version of the file that is safe to rely on "
                               "(docs/remote.md): it is read from its beginning, by one answer"
                             : "the server sends no ranges: the whole file is downloaded into a "
                               "temporary file");
}

static heft_status fail(const heft_request *r, heft_error *err)
{
    heft_error_set(err, r->status, HEFT_NOWHERE, "%s", r->error.message);
    return heft_error_os(err, r->status, r->error.os);
}

heft_status heft_url_whole_begin(url_source *u, heft_request *take, heft_error *err)
{
    heft_request *r = u->whole = take ? take : calloc(1, sizeof *r);
    heft_status st = r ? HEFT_OK : heft_error_no_memory(err, "for a request");
    if (r && !take) {
        *r = (heft_request){ .target = &u->target,
                             .wanted = SIZE_MAX,
                             .size = HEFT_UNKNOWN_LENGTH,
                             .length = HEFT_URL_HEAD,
                             .asks_whole = true };
        st = heft_session_send(u->session, r, false, err);
    }
    if (st) {
        free(r);
        u->whole = NULL;
        return st;
    }

    heft_session_wait_for(u->session, r, 1);
    while (r->state != HEFT_REQUEST_DONE && r->size == HEFT_UNKNOWN_LENGTH)
        heft_session_wait(u->session);
    if ((r->status && !r->have) || r->size == HEFT_UNKNOWN_LENGTH)
        return fail(r, err);
    u->base.size = r->size;
    return HEFT_OK;
}

heft_status heft_url_whole_read(url_source *u, uint64_t offset, void *buf, size_t len,
                                heft_error *err)
{
    heft_request *r = u->whole;
    uint64_t limit = heft_session_options(u->session)->spool_bytes, end = offset + len;
    if (end > limit)
        return heft_error_plain(err, HEFT_E_LIMIT,
                                "the server states no version of the file, so that it has to be "
                                "read from its beginning, and at most %U bytes are kept: download "
                                "the file first",
                                limit);
    heft_session_wait_for(u->session, r, (size_t)end);
    if (r->have < end)
        return r->status ? fail(r, err)
                         : heft_error_plain(err, HEFT_E_IO, "the server's answer is truncated");
    heft_session_unlock(u->session);
    heft_status st = len ? heft_scratch_read(r->spool, offset, buf, len, err) : HEFT_OK;
    heft_session_lock(u->session);
    return st;
}

void heft_url_whole_end(url_source *u)
{
    heft_request *r = u->whole;
    if (!r)
        return;
    if (r->state != HEFT_REQUEST_DONE)
        heft_session_cancel(u->session, r);
    while (r->state != HEFT_REQUEST_DONE)
        heft_session_wait(u->session);
    if (r->spool)
        r->spool->ops->close(r->spool);
    if (r->buf)
        heft_large_unmap(r->buf, r->length);
    free(r); /* perhaps the block that begins with the request */
    u->whole = NULL;
}
