/* s3_upload.c - calls of a multipart upload of S3.
 *
 *     POST ?uploads=                  begins; the answer has the id of the upload
 *     PUT ?partNumber=N&uploadId=ID   stores a part; the header ETag of the answer is the digest
 *     GET ?uploadId=ID                lists the parts, at most 1000 in an answer
 *     POST ?uploadId=ID               lists all parts: the object appears
 *     DELETE ?uploadId=ID             removes all parts */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "port/remote/s3.h"
#include "port/sink_file.h"

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
    heft_status st = heft_s3_ask(u->session, &u->target, &x, err);
    if (st)
        return st;
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

/* ---- listing ---- */

/* Replace the quotation marks that some servers write as entities. */
static void unescape(char *text)
{
    static const char *const marks[] = { "&quot;", "&#34;" };
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        for (char *at; (at = strstr(text, marks[i])) != NULL;) {
            size_t n = strlen(marks[i]);
            *at = '"';
            memmove(at + 1, at + n, strlen(at + n) + 1);
        }
}

heft_status heft_s3_read_parts(heft_s3_stored_part *parts, uint32_t count, char *xml,
                               uint32_t *marker, heft_error *err)
{
    char number[24], bytes[24], truncated[8] = "";
    uint64_t n, size, last = 0;
    bool is_whole = strstr(xml, "</ListPartsResult>");
    heft_s3_find_element(truncated, sizeof truncated, xml, "IsTruncated");
    for (char *row; is_whole && (row = heft_s3_next_element(&xml, "Part")) != NULL;) {
        heft_s3_etag_text etag;
        is_whole = heft_s3_find_element(number, sizeof number, row, "PartNumber") &&
                   heft_s3_find_element(bytes, sizeof bytes, row, "Size") &&
                   heft_s3_find_element(etag, sizeof etag, row, "ETag") &&
                   sscanf(number, "%" SCNu64, &n) == 1 && sscanf(bytes, "%" SCNu64, &size) == 1;
        if (!is_whole)
            break;
        unescape(etag);
        last = n > last ? n : last;
        if (n - 1 >= count)
            continue;
        parts[n - 1].bytes = size;
        strcpy(parts[n - 1].etag, etag);
    }
    bool has_more = !strcmp(truncated, "true");
    if (!is_whole || last > HEFT_S3_MAX_PARTS || (has_more && last <= *marker))
        return heft_error_plain(err, HEFT_E_IO,
                                "the server's list of the parts of the upload is damaged");
    *marker = has_more ? (uint32_t)last : 0;
    return HEFT_OK;
}

heft_status heft_s3_upload_list(heft_s3_stored_part *parts, uint32_t count, heft_s3_upload *u,
                                heft_error *err)
{
    enum { PAGE = 1 << 20 };
    uint32_t marker = 0;
    char query[sizeof u->id + 64], *text = malloc(PAGE);
    heft_status st = text ? HEFT_OK : heft_error_no_memory(err, "for a list of parts");
    for (uint32_t i = 0; i < count; i++)
        parts[i] = (heft_s3_stored_part){ .bytes = HEFT_UNKNOWN_LENGTH };
    for (bool is_first = true; !st && (is_first || marker); is_first = false) {
        heft_exchange x = { .method = "GET", .query = query, .text = text, .text_size = PAGE };
        *text = '\0';
        if (is_first)
            snprintf(query, sizeof query, "?uploadId=%s", u->id);
        else
            snprintf(query, sizeof query, "?part-number-marker=%u&uploadId=%s", (unsigned)marker,
                     u->id);
        st = heft_s3_ask(u->session, &u->target, &x, err);
        if (!st)
            st = heft_s3_read_parts(parts, count, text, &marker, err);
    }
    free(text);
    return st;
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
