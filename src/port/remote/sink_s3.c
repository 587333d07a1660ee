/* sink_s3.c - a sink that writes an object of S3 by a separate multipart upload. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "port/remote/s3.h"
#include "port/save/sink_file.h"

typedef struct s3_sink {
    heft_sink base;
    heft_s3_upload upload;
    heft_s3_parts parts;
    bool may_replace;
} s3_sink;

static atomic_uint writers; /* open sinks of this process */

bool heft_s3_is_writing(void)
{
    return atomic_load(&writers);
}

static heft_status write_s3(heft_sink *sink, uint64_t offset, const void *data, size_t len,
                            heft_error *err)
{
    return heft_s3_parts_write(&((s3_sink *)sink)->parts, offset, data, len, err);
}

static heft_status reserve(heft_sink *sink, uint64_t size, heft_error *err)
{
    return heft_s3_part_bytes(&((s3_sink *)sink)->parts.part_bytes, size, err);
}

static void free_sink(s3_sink *s)
{
    atomic_fetch_sub(&writers, 1);
    heft_s3_parts_free(&s->parts);
    heft_session_release(s->upload.session);
    free(s);
}

static void discard(heft_sink *sink)
{
    s3_sink *s = (s3_sink *)sink;
    heft_error ignored;
    heft_s3_parts_free(&s->parts); /* no request for a part is left */
    (void)(heft_s3_upload_abort(&s->upload, &ignored) == HEFT_OK);
    free_sink(s);
}

static heft_status finish(heft_sink *sink, heft_error *err)
{
    s3_sink *s = (s3_sink *)sink;
    heft_status st = heft_s3_parts_end(&s->parts, err);
    uint64_t end = s->parts.end, step = s->parts.part_bytes;
    if (!st)
        st = heft_s3_upload_complete(&s->upload, s->parts.etags,
                                     end ? (uint32_t)((end + step - 1) / step) : 1, end,
                                     s->may_replace, err);
    if (st)
        discard(sink);
    else
        free_sink(s);
    return st;
}

static const heft_sink_ops ops = {
    .size = sizeof(heft_sink_ops),
    .write_at = write_s3,
    .reserve = reserve,
    .finish = finish,
    .discard = discard,
};

/* Refuse an object that exists.  Not every server obeys If-None-Match of the completion. */
static heft_status check_absent(heft_s3_upload *u, heft_error *err)
{
    heft_answer found;
    heft_status st = heft_s3_look(&found, u->session, &u->target, err);
    if (st == HEFT_E_NOTFOUND)
        return HEFT_OK;
    return st ? st : heft_error_exists(err, HEFT_E_ARGUMENT);
}

static heft_status check_address(const char *url, heft_error *err)
{
    if (!strncmp(url, "s3://", 5))
        return HEFT_OK;
    return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                            "only addresses of the form s3://BUCKET/KEY can be written");
}

heft_status heft_s3_sink_open(heft_sink **out, const char *url, uint32_t flags,
                              const heft_url_options *opt, heft_error *err)
{
    heft_error own;
    err = err ? err : &own;
    *out = NULL;
    heft_status st = check_address(url, err);
    s3_sink *s = st ? NULL : calloc(1, sizeof *s);
    if (!s)
        return st ? st : heft_error_no_memory(err, "for a sink");
    atomic_fetch_add(&writers, 1);
    s->base.ops = &ops;
    s->may_replace = flags & HEFT_SINK_REPLACE;
    st = heft_address_of(&s->upload.target, url, err);
    if (!st)
        st = heft_session_new(&s->upload.session, opt, err);
    if (!st && !s->may_replace)
        st = check_absent(&s->upload, err);
    if (!st)
        st = heft_s3_upload_begin(&s->upload, err);
    if (!st)
        heft_s3_parts_init(&s->parts, &s->upload);
    if (st)
        free_sink(s);
    else
        *out = &s->base;
    return st;
}
