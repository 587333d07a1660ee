/* s3_parts.c - the parts of a multipart upload that are being filled.
 *
 * The bytes of a part are collected in memory and sent when the part is full.  Parts are sent in
 * any order, several at the same time. */
#include "port/remote/s3.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY = 32 << 20 };

typedef struct heft_s3_part {
    struct heft_s3_part *next; /* parts whose bytes are in memory */
    uint32_t number;           /* the first part has 1 */
    size_t filled;
    bool is_sent;
    uint8_t *bytes;
    char query[HEFT_S3_ID + 64];
    heft_exchange exchange;
    heft_request request;
} s3_part;

void heft_s3_parts_init(heft_s3_parts *s, heft_s3_upload *upload)
{
    *s = (heft_s3_parts){ .upload = upload, .part_bytes = HEFT_S3_PART };
}

/* ---- parts; the lock of the session is held ---- */

static void free_part(heft_s3_parts *s, s3_part *p)
{
    s3_part **at = &s->parts;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    s->memory -= s->part_bytes;
    heft_large_unmap(p->bytes, s->part_bytes);
    free(p);
}

static void record(heft_s3_parts *s, heft_status st, const heft_error *why)
{
    if (s->status)
        return;
    s->status = st;
    s->error = *why;
}

/* Take the answers of requests for parts. */
static void collect(heft_s3_parts *s)
{
    heft_error why;
    s3_part *next;
    for (s3_part *p = s->parts; p; p = next) {
        next = p->next;
        if (!p->is_sent || p->request.state != HEFT_REQUEST_DONE)
            continue;
        if (p->request.status)
            record(s, p->request.status, &p->request.error);
        else if (!*p->request.answer.etag)
            record(s, heft_error_plain(&why, HEFT_E_IO, "the server sent no ETag of a part"), &why);
        else
            strcpy(s->etags[p->number - 1], p->request.answer.etag);
        free_part(s, p);
    }
}

static bool is_sending(const heft_s3_parts *s)
{
    for (const s3_part *p = s->parts; p; p = p->next)
        if (p->is_sent)
            return true;
    return false;
}

/* Wait until a further part may be kept in memory. */
static void wait_for_memory(heft_s3_parts *s)
{
    collect(s);
    while (!s->status && s->memory + s->part_bytes > MEMORY && is_sending(s)) {
        heft_session_wait(s->upload->session);
        collect(s);
    }
}

static bool reserve_etags(heft_s3_parts *s, uint32_t count)
{
    uint32_t capacity = s->etag_count ? s->etag_count : 64;
    while (capacity < count)
        capacity *= 2;
    if (capacity == s->etag_count)
        return true;
    void *larger = realloc(s->etags, capacity * sizeof *s->etags);
    if (!larger)
        return false;
    s->etags = larger;
    memset(s->etags + s->etag_count, 0, (capacity - s->etag_count) * sizeof *s->etags);
    s->etag_count = capacity;
    return true;
}

static s3_part *find_part(const heft_s3_parts *s, uint32_t number)
{
    for (s3_part *p = s->parts; p; p = p->next)
        if (p->number == number)
            return p;
    return NULL;
}

static heft_status part_of(s3_part **out, heft_s3_parts *s, uint64_t offset, heft_error *err)
{
    uint64_t number = offset / s->part_bytes + 1;
    *out = NULL;
    if (number > HEFT_S3_MAX_PARTS)
        return heft_error_plain(err, HEFT_E_LIMIT,
                                "the file has more bytes than %U parts of %U bytes, the limit of a "
                                "file whose size is not known before it is written",
                                (uint64_t)HEFT_S3_MAX_PARTS, (uint64_t)s->part_bytes);
    if (!find_part(s, (uint32_t)number))
        wait_for_memory(s);
    *out = find_part(s, (uint32_t)number); /* a thread may have made the part meanwhile */
    if (*out || s->status)
        return HEFT_OK;
    s3_part *p = calloc(1, sizeof *p);
    uint8_t *bytes = p ? heft_large_map(NULL, 0, s->part_bytes) : NULL;
    if (!bytes || !reserve_etags(s, (uint32_t)number)) {
        if (bytes)
            heft_large_unmap(bytes, s->part_bytes);
        free(p);
        return heft_error_no_memory(err, "for a part of an upload");
    }
    p->number = (uint32_t)number;
    p->bytes = bytes;
    p->next = s->parts;
    s->parts = p;
    s->memory += s->part_bytes;
    *out = p;
    return HEFT_OK;
}

/* Send a full part; the lock is released while the digest is computed. */
static heft_status send_part(heft_s3_parts *s, s3_part *p, heft_error *err)
{
    heft_session *session = s->upload->session;
    snprintf(p->query, sizeof p->query, "?partNumber=%u&uploadId=%s", (unsigned)p->number,
             s->upload->id);
    p->exchange = (heft_exchange){
        .method = "PUT", .query = p->query, .body = p->bytes, .body_bytes = p->filled
    };
    p->request = (heft_request){ .target = &s->upload->target, .exchange = &p->exchange };
    heft_session_unlock(session);
    heft_s3_set_digest(&p->exchange);
    heft_session_lock(session);
    heft_status st = heft_session_send(session, &p->request, false, err);
    p->is_sent = !st;
    return st;
}

/* ---- all parts ---- */

static heft_status report(const heft_s3_parts *s, heft_error *err)
{
    heft_error_plain(err, s->status, "%s", s->error.message);
    return heft_error_os(err, s->status, s->error.os);
}

heft_status heft_s3_parts_write(heft_s3_parts *s, uint64_t offset, const void *data, size_t len,
                                heft_error *err)
{
    heft_session *session = s->upload->session;
    const uint8_t *from = data;
    heft_status st = HEFT_OK;
    heft_session_lock(session);
    while (len && !st && !s->status) {
        s3_part *p;
        size_t at = (size_t)(offset % s->part_bytes), n = s->part_bytes - at;
        n = n < len ? n : len;
        st = part_of(&p, s, offset, err);
        if (st || !p)
            break;
        heft_session_unlock(session);
        memcpy(p->bytes + at, from, n);
        heft_session_lock(session);
        p->filled += n;
        if (p->filled == s->part_bytes)
            st = send_part(s, p, err);
        offset += n;
        from += n;
        len -= n;
        s->end = offset > s->end ? offset : s->end;
    }
    if (st)
        record(s, st, err);
    if (s->status)
        st = report(s, err);
    heft_session_unlock(session);
    return st;
}

static void wait_for_all(heft_s3_parts *s, bool cancels)
{
    heft_session_lock(s->upload->session);
    for (s3_part *p = s->parts; p && cancels; p = p->next)
        if (p->is_sent)
            heft_session_cancel(s->upload->session, &p->request);
    collect(s);
    while (is_sending(s)) {
        heft_session_wait(s->upload->session);
        collect(s);
    }
    while (s->parts)
        free_part(s, s->parts);
    heft_session_unlock(s->upload->session);
}

/* Send the last part, a small part if the size was not known before. */
static heft_status send_last(heft_s3_parts *s, heft_error *err)
{
    s3_part *p = NULL;
    heft_status st = s->status ? report(s, err) : HEFT_OK;
    heft_session_lock(s->upload->session);
    if (!st && !s->end)
        st = part_of(&p, s, 0, err);
    for (p = s->parts; p && !st; p = p->next) {
        bool is_last = p->number == s->end / s->part_bytes + 1 &&
                       p->filled == s->end % s->part_bytes;
        if (p->is_sent)
            continue;
        st = is_last ? send_part(s, p, err)
                     : heft_error_plain(err, HEFT_E_IO, "bytes of the file were not written");
    }
    heft_session_unlock(s->upload->session);
    return st;
}

heft_status heft_s3_parts_end(heft_s3_parts *s, heft_error *err)
{
    heft_status st = send_last(s, err);
    wait_for_all(s, st);
    return !st && s->status ? report(s, err) : st;
}

void heft_s3_parts_free(heft_s3_parts *s)
{
    if (s->upload)
        wait_for_all(s, true);
    free(s->etags);
    s->etags = NULL;
}
