/* s3_upload.c - calls of a multipart upload of S3.
 *
 *     POST ?uploads=                  begins; the answer has the id of the upload
 *     PUT ?partNumber=N&uploadId=ID   stores a part; the header ETag of the answer is the digest
 *     POST ?uploadId=ID               lists all parts: the object appears
 *     DELETE ?uploadId=ID             removes all parts */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "port/remote/s3.h"
#include "port/remote/session.h"
#include "port/save/sink_file.h"

void heft_s3_set_digest(heft_exchange *x)
{
    uint8_t out[HEFT_HASH_BYTES];
    const heft_digest *d = heft_find_sha256();
    void *state = d ? malloc(d->state_bytes) : NULL;
    if (state && d->init(state)) {
        d->update(state, x->body, x->body_bytes);
        d->final(out, state);
        heft_hex_text(x->digest, out, d->bytes);
    }
    free(state);
}

/* Send a request and wait for the answer.  err->os is ENOENT if the object does not exist. */
static heft_status s3_ask(heft_session *s, const heft_address *target, heft_exchange *x,
                          heft_error *err)
{
    heft_request *r = calloc(1, sizeof *r);
    if (!r)
        return heft_error_no_memory(err, "for a request");
    if (x->body)
        heft_s3_set_digest(x);
    r->target = target;
    r->exchange = x;
    heft_session_lock(s);
    heft_status st = heft_session_send(s, r, true, err);
    while (!st && r->state != HEFT_REQUEST_DONE)
        heft_session_wait(s);
    heft_session_unlock(s);
    x->answer = r->answer;
    if (r->status) { /* a request that was not sent has none */
        st = heft_error_plain(err, r->status, "%s", r->error.message);
        heft_error_os(err, st, r->error.os);
    }
    free(r);
    return st;
}

bool heft_s3_find_element(char *out, size_t size, const char *xml, const char *name)
{
    char open[64];
    int n = snprintf(open, sizeof open, "<%s>", name);
    const char *from = strstr(xml, open), *to = from ? strchr(from + n, '<') : NULL;
    if (!to || to == from + n || (size_t)(to - from - n) >= size)
        return false;
    memcpy(out, from + n, (size_t)(to - from - n));
    out[to - from - n] = '\0';
    return true;
}

heft_status heft_s3_look(heft_answer *out, heft_session *s, const heft_address *target,
                         heft_error *err)
{
    heft_exchange x = { .method = "GET", .query = "", .header = "Range: bytes=0-0" };
    heft_status st = s3_ask(s, target, &x, err);
    *out = x.answer;
    if (!st || x.code == 416) /* 416: the object has no bytes */
        return HEFT_OK;
    if (err->os == ENOENT)
        return heft_error_plain(err, HEFT_E_NOTFOUND, "does not exist on the server");
    return st;
}

enum { DIGITS = 2 * HEFT_MD5_BYTES };

/* Read the digits of an ETag in quotation marks; false: the ETag is not an MD5. */
static bool read_md5(uint8_t out[HEFT_MD5_BYTES], const char *etag)
{
    if (strlen(etag) != DIGITS + 2 || etag[0] != '"' || etag[DIGITS + 1] != '"')
        return false;
    return heft_hex_read(out, HEFT_MD5_BYTES, (heft_str){ etag + 1, DIGITS });
}

bool heft_s3_etag(char out[HEFT_S3_ETAG], const char *etags, size_t step, uint64_t count)
{
    uint8_t *all = malloc((size_t)count * HEFT_MD5_BYTES + 1), digest[HEFT_MD5_BYTES];
    char text[DIGITS + 1] = "";
    bool known = all;
    for (uint64_t i = 0; i < count && known; i++)
        known = read_md5(all + i * HEFT_MD5_BYTES, etags + i * step);
    known = known && heft_md5(digest, all, (size_t)count * HEFT_MD5_BYTES);
    free(all);
    if (!known)
        return false;
    heft_hex_text(text, digest, sizeof digest);
    snprintf(out, HEFT_S3_ETAG, "\"%s-%u\"", text, (unsigned)count);
    return true;
}

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
    HEFT_TRY(s3_ask(u->session, &u->target, &x, err));
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
    return *u->id ? s3_ask(u->session, &u->target, &x, err) : HEFT_OK;
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
    heft_status st = s3_ask(u->session, &u->target, &x, err);
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
