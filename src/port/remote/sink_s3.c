/* sink_s3.c - a sink that writes an object of S3 by a multipart upload.
 *
 *     POST ?uploads=                  begins; the answer has the id of the upload
 *     PUT ?partNumber=N&uploadId=ID   stores a part; the header ETag of the answer is its digest
 *     POST ?uploadId=ID               lists the parts: the object appears with these bytes
 *     DELETE ?uploadId=ID             removes all parts
 *
 * The bytes of a part are collected in memory and sent when the part is full.  Parts are sent in
 * any order, several at the same time. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "port/remote/session.h"
#include "port/sink_file.h"

enum { PART = 8 << 20, MAX_PARTS = 10000, MEMORY = 32 << 20, ID_BYTES = 1024, ETAG_BYTES = 256 };

typedef struct s3_part {
    struct s3_part *next; /* parts whose bytes are in memory */
    uint32_t number;      /* the first part has 1 */
    size_t filled;
    bool is_sent;
    uint8_t *bytes;
    char query[3 * ID_BYTES + 64];
    heft_exchange exchange;
    heft_request request;
} s3_part;

typedef struct s3_sink {
    heft_sink base;
    heft_session *session;
    heft_address target;
    bool may_replace;
    char id[3 * ID_BYTES]; /* id of the upload, percent-encoded; empty: no upload */
    size_t part_bytes;
    uint64_t end;    /* offset after the last byte written */
    uint64_t memory; /* bytes of all parts in memory */
    s3_part *parts;
    char (*etags)[ETAG_BYTES]; /* ETags by part; empty: the part is not stored yet */
    uint32_t etag_count;
    heft_status status; /* the first failure */
    heft_error error;
} s3_sink;

/* Compute the digest of the body.  Without SHA-256 in this build the body is not signed. */
static void set_digest(heft_exchange *x)
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

/* ---- single requests ---- */

/* Send a request and wait for the answer. */
static heft_status ask(s3_sink *s, heft_exchange *x, heft_error *err)
{
    heft_request *r = calloc(1, sizeof *r);
    if (!r)
        return heft_error_no_memory(err, "for a request");
    if (x->body)
        set_digest(x);
    r->target = &s->target;
    r->exchange = x;
    heft_session_lock(s->session);
    heft_status st = heft_session_send(s->session, r, true, err);
    while (!st && r->state != HEFT_REQUEST_DONE)
        heft_session_wait(s->session);
    heft_session_unlock(s->session);
    x->answer = r->answer;
    if (!st && r->status) {
        st = heft_error_plain(err, r->status, "%s", r->error.message);
        heft_error_os(err, st, r->error.os);
    }
    free(r);
    return st;
}

/* Copy the text of the first element `name` of an answer; false: there is none. */
static bool find_element(char *out, size_t size, const char *xml, const char *name)
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

/* Refuse an object that exists.  Not every server obeys If-None-Match of the completion. */
static heft_status check_absent(s3_sink *s, heft_error *err)
{
    heft_error why;
    heft_exchange x = { .method = "GET", .query = "", .header = "Range: bytes=0-0" };
    heft_status st = ask(s, &x, &why);
    if (st && why.os == ENOENT)
        return HEFT_OK;
    if (st && x.code != 416) {
        heft_error_plain(err, st, "%s", why.message);
        return heft_error_os(err, st, why.os);
    }
    return heft_error_exists(err, HEFT_E_ARGUMENT);
}

static heft_status begin_upload(s3_sink *s, heft_error *err)
{
    char text[4096] = "", id[ID_BYTES];
    heft_exchange x = {
        .method = "POST", .query = "?uploads=", .text = text, .text_size = sizeof text
    };
    heft_status st = ask(s, &x, err);
    if (!st && !find_element(id, sizeof id, text, "UploadId"))
        st = heft_error_plain(err, HEFT_E_IO, "the server has begun no multipart upload");
    if (!st && !heft_url_append(s->id, sizeof s->id, heft_str_from(id), ""))
        st = heft_error_plain(err, HEFT_E_LIMIT, "the server's id of the upload is too long");
    return st;
}

static heft_status abort_upload(s3_sink *s, heft_error *err)
{
    char query[sizeof s->id + 16];
    heft_exchange x = { .method = "DELETE", .query = query, .ends_upload = true };
    snprintf(query, sizeof query, "?uploadId=%s", s->id);
    return *s->id ? ask(s, &x, err) : HEFT_OK;
}

/* ---- parts; the lock of the session is held ---- */

static void free_part(s3_sink *s, s3_part *p)
{
    s3_part **at = &s->parts;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    s->memory -= s->part_bytes;
    heft_large_unmap(p->bytes, s->part_bytes);
    free(p);
}

static void record(s3_sink *s, heft_status st, const heft_error *why)
{
    if (s->status)
        return;
    s->status = st;
    s->error = *why;
}

/* Take the answers of requests for parts. */
static void collect(s3_sink *s)
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

static bool is_sending(const s3_sink *s)
{
    for (const s3_part *p = s->parts; p; p = p->next)
        if (p->is_sent)
            return true;
    return false;
}

/* Wait until a further part may be kept in memory. */
static void wait_for_memory(s3_sink *s)
{
    collect(s);
    while (!s->status && s->memory + s->part_bytes > MEMORY && is_sending(s)) {
        heft_session_wait(s->session);
        collect(s);
    }
}

static bool reserve_etags(s3_sink *s, uint32_t count)
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

static s3_part *find_part(const s3_sink *s, uint32_t number)
{
    for (s3_part *p = s->parts; p; p = p->next)
        if (p->number == number)
            return p;
    return NULL;
}

static heft_status part_of(s3_part **out, s3_sink *s, uint64_t offset, heft_error *err)
{
    uint64_t number = offset / s->part_bytes + 1;
    *out = NULL;
    if (number > MAX_PARTS)
        return heft_error_plain(err, HEFT_E_LIMIT,
                                "the file has more bytes than %U parts of %U bytes, the limit of a "
                                "file whose size is not known before it is written",
                                (uint64_t)MAX_PARTS, (uint64_t)s->part_bytes);
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
static heft_status send_part(s3_sink *s, s3_part *p, heft_error *err)
{
    snprintf(p->query, sizeof p->query, "?partNumber=%u&uploadId=%s", (unsigned)p->number, s->id);
    p->exchange = (heft_exchange){
        .method = "PUT", .query = p->query, .body = p->bytes, .body_bytes = p->filled
    };
    p->request = (heft_request){ .target = &s->target, .exchange = &p->exchange };
    heft_session_unlock(s->session);
    set_digest(&p->exchange);
    heft_session_lock(s->session);
    heft_status st = heft_session_send(s->session, &p->request, false, err);
    p->is_sent = !st;
    return st;
}

/* ---- the sink ---- */

static heft_status report(const s3_sink *s, heft_error *err)
{
    heft_error_plain(err, s->status, "%s", s->error.message);
    return heft_error_os(err, s->status, s->error.os);
}

static heft_status write_s3(heft_sink *sink, uint64_t offset, const void *data, size_t len,
                            heft_error *err)
{
    s3_sink *s = (s3_sink *)sink;
    const uint8_t *from = data;
    heft_status st = HEFT_OK;
    heft_session_lock(s->session);
    while (len && !st && !s->status) {
        s3_part *p;
        size_t at = (size_t)(offset % s->part_bytes), n = s->part_bytes - at;
        n = n < len ? n : len;
        st = part_of(&p, s, offset, err);
        if (st || !p)
            break;
        heft_session_unlock(s->session);
        memcpy(p->bytes + at, from, n);
        heft_session_lock(s->session);
        p->filled += n;
        if (p->filled == s->part_bytes)
            st = send_part(s, p, err);
        offset += n;
        from += n;
        len -= n;
        s->end = offset > s->end ? offset : s->end;
    }
    if (!st && s->status)
        st = report(s, err);
    else if (st)
        record(s, st, err);
    heft_session_unlock(s->session);
    return st;
}

/* Choose the size of parts: S3 allows MAX_PARTS parts. */
static heft_status reserve(heft_sink *sink, uint64_t size, heft_error *err)
{
    s3_sink *s = (s3_sink *)sink;
    uint64_t part = PART, most = UINT64_C(5) << 40;
    if (size > most)
        return heft_error_plain(err, HEFT_E_LIMIT, "objects of S3 have at most %U bytes", most);
    while (size > part * MAX_PARTS)
        part *= 2;
    s->part_bytes = (size_t)part;
    return HEFT_OK;
}

static void wait_for_all(s3_sink *s, bool cancels)
{
    heft_session_lock(s->session);
    for (s3_part *p = s->parts; p && cancels; p = p->next)
        if (p->is_sent)
            heft_session_cancel(s->session, &p->request);
    collect(s);
    while (is_sending(s)) {
        heft_session_wait(s->session);
        collect(s);
    }
    while (s->parts)
        free_part(s, s->parts);
    heft_session_unlock(s->session);
}

static atomic_uint writers; /* open sinks of this process */

bool heft_s3_is_writing(void)
{
    return atomic_load(&writers);
}

static void free_sink(s3_sink *s)
{
    atomic_fetch_sub(&writers, 1);
    heft_session_release(s->session);
    free(s->etags);
    free(s);
}

static void discard(heft_sink *sink)
{
    s3_sink *s = (s3_sink *)sink;
    heft_error ignored;
    wait_for_all(s, true);
    (void)(abort_upload(s, &ignored) == HEFT_OK);
    free_sink(s);
}

/* Send the last part: only the last part may be small. */
static heft_status send_last(s3_sink *s, heft_error *err)
{
    s3_part *p = NULL;
    heft_status st = s->status;
    heft_session_lock(s->session);
    if (!st && !s->end)
        st = part_of(&p, s, 0, err);
    for (p = s->parts; p && !st; p = p->next)
        if (!p->is_sent)
            st = p->number == s->end / s->part_bytes + 1 && p->filled == s->end % s->part_bytes
                     ? send_part(s, p, err)
                     : heft_error_plain(err, HEFT_E_IO, "bytes of the file were not written");
    heft_session_unlock(s->session);
    return st;
}

/* Return true if the object is complete in spite of an error: the answer to the first completion
 * was lost, and the server no longer knows the upload when the request is repeated. */
static bool was_completed(s3_sink *s, uint64_t parts)
{
    heft_error ignored;
    char etag[HEFT_S3_ETAG];
    heft_exchange x = { .method = "GET", .query = "", .header = "Range: bytes=0-0" };
    return heft_s3_etag(etag, *s->etags, sizeof *s->etags, parts) && !ask(s, &x, &ignored) &&
           x.answer.has_total && x.answer.total == s->end && !strcmp(x.answer.etag, etag);
}

static heft_status complete(s3_sink *s, heft_error *err)
{
    enum { ROW = ETAG_BYTES + 96 };
    uint64_t count = s->end ? (s->end + s->part_bytes - 1) / s->part_bytes : 1;
    char text[4096] = "", query[sizeof s->id + 16];
    size_t size = (size_t)count * ROW + 128, at = 0;
    char *list = malloc(size);
    if (!list)
        return heft_error_no_memory(err, "for the list of parts");
    at += (size_t)snprintf(list, size, "<CompleteMultipartUpload>");
    for (uint64_t i = 0; i < count; i++)
        at += (size_t)snprintf(list + at, size - at,
                               "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>",
                               (unsigned)i + 1, s->etags[i]);
    at += (size_t)snprintf(list + at, size - at, "</CompleteMultipartUpload>");
    snprintf(query, sizeof query, "?uploadId=%s", s->id);
    heft_exchange x = { .method = "POST",
                        .query = query,
                        .ends_upload = true,
                        .body = list,
                        .body_bytes = at,
                        .header = s->may_replace ? NULL : "If-None-Match: *",
                        .text = text,
                        .text_size = sizeof text };
    heft_status st = ask(s, &x, err);
    if (st && (x.code == 404 || x.code == 412) && was_completed(s, count)) {
        free(list);
        return HEFT_OK;
    }
    if (st && x.code == 412)
        st = heft_error_exists(err, HEFT_E_ARGUMENT);
    /* A server may fail after status 200 has been sent. */
    if (!st && !strstr(text, "<CompleteMultipartUploadResult"))
        st = heft_error_plain(err, HEFT_E_IO, "the server did not complete the upload");
    free(list);
    return st;
}

static heft_status finish(heft_sink *sink, heft_error *err)
{
    s3_sink *s = (s3_sink *)sink;
    heft_status st = s->status ? report(s, err) : send_last(s, err);
    wait_for_all(s, st);
    if (!st && s->status)
        st = report(s, err);
    if (!st)
        st = complete(s, err);
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

heft_status heft_s3_sink_open(heft_sink **out, const char *url, uint32_t flags,
                              const heft_url_options *opt, heft_error *err)
{
    heft_error own;
    err = err ? err : &own;
    *out = NULL;
    if (strncmp(url, "s3://", 5) != 0)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "only addresses of the form s3://BUCKET/KEY can be written");
    s3_sink *s = calloc(1, sizeof *s);
    if (!s)
        return heft_error_no_memory(err, "for a sink");
    atomic_fetch_add(&writers, 1);
    s->base.ops = &ops;
    s->part_bytes = PART;
    s->may_replace = flags & HEFT_SINK_REPLACE;
    heft_status st = heft_address_of(&s->target, url, err);
    if (!st)
        st = heft_session_new(&s->session, opt, err);
    if (!st && !s->may_replace)
        st = check_absent(s, err);
    if (!st)
        st = begin_upload(s, err);
    if (st)
        free_sink(s);
    else
        *out = &s->base;
    return st;
}
