/* s3_upload.c - calls of a multipart upload of S3.
 *
 *     POST ?uploads=                  begins; the answer has the id of the upload
 *     PUT ?partNumber=N&uploadId=ID   stores a part; the header ETag of the answer is the digest
 *     POST ?uploadId=ID               lists all parts: the object appears
 *     DELETE ?uploadId=ID             removes all parts */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "port/remote/s3.h"
#include "port/save/sink_file.h"

heft_status heft_s3_part_bytes(size_t *out, uint64_t size, heft_error *err)
{
    uint64_t part = HEFT_S3_PART, most = UINT64_C(5) << 40;
    if (size > most)
        return heft_error_plain(err, HEFT_E_LIMIT, "objects of S3 have at most %U bytes", most);
    while (size > part * HEFT_S3_MAX_PARTS)
        part *= 2;
    *out = (size_t)part;
    return HEFT_OK;
}

heft_status heft_s3_upload_begin(heft_s3_upload *u, heft_error *err)
{
    char text[4096] = "", id[HEFT_S3_ID / 3];
    heft_exchange x = {
        .method = "POST", .query = "?uploads=", .text = text, .text_size = sizeof text
    };
    HEFT_TRY(heft_s3_ask(u->session, &u->target, &x, err));
    if (!heft_s3_find_element(id, sizeof id, text, "UploadId"))
        return heft_error_plain(err, HEFT_E_IO, "the server has begun no multipart upload");
    if (!heft_url_append(u->id, sizeof u->id, heft_str_from(id), ""))
        return heft_error_plain(err, HEFT_E_LIMIT, "the server's id of the upload is too long");
    return HEFT_OK;
}

heft_status heft_s3_upload_abort(heft_s3_upload *u, heft_error *err)
{
    char query[sizeof u->id + 16];
    heft_exchange x = { .method = "DELETE", .query = query, .ends_upload = true };
    snprintf(query, sizeof query, "?uploadId=%s", u->id);
    return *u->id ? heft_s3_ask(u->session, &u->target, &x, err) : HEFT_OK;
}

/* ---- completing ---- */

/* Return true if the object is complete in spite of an error: the answer to the first completion
 * was lost, and the server no longer knows the upload when the request is repeated. */
static bool was_completed(heft_s3_upload *u, heft_s3_etag_text *etags, uint32_t count,
                          uint64_t size)
{
    heft_error ignored;
    heft_answer found;
    char etag[HEFT_S3_ETAG];
    return heft_s3_etag(etag, *etags, sizeof *etags, count) &&
           !heft_s3_look(&found, u->session, &u->target, &ignored) && found.has_total &&
           found.total == size && !strcmp(found.etag, etag);
}

/* Return the body of the completion, to be freed; NULL without memory. */
static char *list_of(size_t *len, heft_s3_etag_text *etags, uint32_t count)
{
    enum { ROW = HEFT_S3_ETAG_TEXT + 96 };
    size_t size = (size_t)count * ROW + 128, at = 0;
    char *list = malloc(size);
    if (!list)
        return NULL;
    at += (size_t)snprintf(list, size, "<CompleteMultipartUpload>");
    for (uint32_t i = 0; i < count; i++)
        at += (size_t)snprintf(list + at, size - at,
                               "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>",
                               (unsigned)i + 1, etags[i]);
    at += (size_t)snprintf(list + at, size - at, "</CompleteMultipartUpload>");
    *len = at;
    return list;
}

heft_status heft_s3_upload_complete(heft_s3_upload *u, heft_s3_etag_text *etags, uint32_t count,
                                    uint64_t size, bool may_replace, heft_error *err)
{
    char text[4096] = "", query[sizeof u->id + 16];
    heft_exchange x = { .method = "POST",
                        .query = query,
                        .header = may_replace ? NULL : "If-None-Match: *",
                        .text = text,
                        .text_size = sizeof text,
                        .ends_upload = true };
    char *list = list_of(&x.body_bytes, etags, count);
    if (!list)
        return heft_error_no_memory(err, "for the list of parts");
    x.body = list;
    snprintf(query, sizeof query, "?uploadId=%s", u->id);
    heft_status st = heft_s3_ask(u->session, &u->target, &x, err);
    free(list);
    if (st && (x.code == 404 || x.code == 412) && was_completed(u, etags, count, size))
        return HEFT_OK;
    if (st && x.code == 412)
        return heft_error_exists(err, HEFT_E_ARGUMENT);
    /* A server may fail after status 200 has been sent. */
    if (!st && !strstr(text, "<CompleteMultipartUploadResult"))
        st = heft_error_plain(err, HEFT_E_IO, "the server did not complete the upload");
    return st;
}
