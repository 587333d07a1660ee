/* test_remote_s3.c - calls of S3 with answers of a hostile server.  A script of the test takes the
 * place of the session; meson.build replaces the functions through --wrap. */
#include "models.h"

#include <errno.h>
#include <stdio.h>

#include "base/text.h"
#include "port/remote/s3.h"

/* ---- a session that answers from a script ------------------------------------------------- */

typedef struct answer {
    heft_status status;
    int os;
    const char *message; /* of an error */
    const char *text;    /* body of the answer */
    const char *etag;
    bool is_slow; /* the answer arrives while the sender waits */
} answer;

enum { SLOW_MAX = 8 };

static struct {
    const answer *answers; /* the last one is repeated */
    size_t count, sent;
    heft_request *slow[SLOW_MAX];
    size_t slow_count;
    char url[HEFT_URL_MAX]; /* of the last request */
    bool lacks_threads;
} server;

static void serve(const answer *answers, size_t count)
{
    memset(&server, 0, sizeof server);
    server.answers = answers;
    server.count = count;
}

heft_status __wrap_heft_session_send(heft_session *s, heft_request *r, bool is_urgent,
                                     heft_error *err);
heft_status __wrap_heft_session_send(heft_session *s, heft_request *r, bool is_urgent,
                                     heft_error *err)
{
    (void)s;
    (void)is_urgent;
    if (server.lacks_threads)
        return heft_error_plain(err, HEFT_E_IO, "no thread");
    assert_true(server.count > 0);
    size_t i = server.sent < server.count ? server.sent : server.count - 1;
    const answer *a = &server.answers[i];
    server.sent++;
    snprintf(server.url, sizeof server.url, "%s", r->target->url);
    r->status = a->status;
    if (a->status) {
        heft_error_plain(&r->error, a->status, "%s", a->message);
        r->error.os = a->os;
    }
    if (a->text && r->exchange->text)
        snprintf(r->exchange->text, r->exchange->text_size, "%s", a->text);
    if (a->etag)
        strcpy(r->answer.etag, a->etag);
    r->state = a->is_slow ? HEFT_REQUEST_RUNNING : HEFT_REQUEST_DONE;
    assert_true(server.slow_count < SLOW_MAX);
    if (a->is_slow)
        server.slow[server.slow_count++] = r;
    return HEFT_OK;
}

void __wrap_heft_session_wait(heft_session *s);
void __wrap_heft_session_wait(heft_session *s)
{
    (void)s;
    assert_true(server.slow_count > 0);
    server.slow[--server.slow_count]->state = HEFT_REQUEST_DONE;
}

void __wrap_heft_session_cancel(heft_session *s, heft_request *r);
void __wrap_heft_session_cancel(heft_session *s, heft_request *r)
{
    (void)s;
    if (r->state == HEFT_REQUEST_DONE)
        return;
    r->status = heft_error_plain(&r->error, HEFT_E_CANCELLED, "cancelled");
}

void __wrap_heft_session_lock(heft_session *s);
void __wrap_heft_session_lock(heft_session *s)
{
    (void)s;
}

void __wrap_heft_session_unlock(heft_session *s);
void __wrap_heft_session_unlock(heft_session *s)
{
    (void)s;
}

#define REFUSED                                         \
    {                                                   \
        HEFT_E_IO, EACCES, "refused", NULL, NULL, false \
    }
#define STORED                                 \
    {                                          \
        HEFT_OK, 0, NULL, NULL, "\"e\"", false \
    }

/* ---- the begin of an upload ----------------------------------------------------------------- */

static void sizes_of_objects_are_limited(void **state)
{
    const uint64_t most = UINT64_C(5) << 40, part = HEFT_S3_PART;
    const struct {
        uint64_t size, bytes; /* bytes: of a part; 0: refused */
    } cases[] = {
        { 0, part },
        { part * HEFT_S3_MAX_PARTS, part },
        { part * HEFT_S3_MAX_PARTS + 1, 2 * part },
        { most, 128 * part },
        { most + 1, 0 },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(cases); i++) {
        heft_error err;
        size_t bytes = 0;
        heft_status st = heft_s3_part_bytes(&bytes, cases[i].size, &err);
        assert_int_equal(st, cases[i].bytes ? HEFT_OK : HEFT_E_LIMIT);
        assert_int_equal(bytes, cases[i].bytes);
    }
}

static void an_upload_needs_an_id(void **state)
{
    enum { LONGEST = HEFT_S3_ID / 3 - 1 };
    static char longest[LONGEST + 64], too_long[LONGEST + 64];
    const struct {
        answer answer;
        const char *message; /* NULL: success */
        size_t encoded;      /* bytes of the id in URLs */
    } cases[] = {
        { { .text = "<UploadId>a/b</UploadId>" }, NULL, 5 },
        { { .text = longest }, NULL, 3 * LONGEST },
        { { .text = too_long }, "has begun no multipart upload", 0 },
        { { .text = "<Error/>" }, "has begun no multipart upload", 0 },
        { { .text = "" }, "has begun no multipart upload", 0 },
        { { .text = "<UploadId></UploadId>" }, "has begun no multipart upload", 0 },
        { { .text = "<UploadId>a" }, "has begun no multipart upload", 0 },
        { REFUSED, "refused", 0 },
    };
    (void)state;
    snprintf(longest, sizeof longest, "<UploadId>%0*d</UploadId>", LONGEST, 0);
    snprintf(too_long, sizeof too_long, "<UploadId>%0*d</UploadId>", LONGEST + 1, 0);
    for (char *p = longest + 10; *p == '0'; p++)
        *p = '+';
    for (size_t i = 0; i < HEFT_COUNT(cases); i++) {
        heft_s3_upload u = { .target.url = "http://h/b/k" };
        heft_error err;
        serve(&cases[i].answer, 1);
        heft_status st = heft_s3_upload_begin(&u, &err);
        if (cases[i].message)
            heft_assert_fails(st, HEFT_E_IO, &err, cases[i].message);
        else
            heft_assert_ok(st, &err);
        assert_int_equal(strlen(u.id), cases[i].encoded);
    }
    heft_s3_upload u = { .target.url = "http://h/b/k" };
    heft_error err;
    server.lacks_threads = true;
    heft_assert_fails(heft_s3_upload_begin(&u, &err), HEFT_E_IO, &err, "no thread");
}

/* ---- parts ---------------------------------------------------------------------------------- */

enum { PART = 4096 };

static heft_s3_upload upload = { .target.url = "http://h/b/k", .id = "i" };
static const uint8_t data[3 * PART];

static heft_s3_parts parts_of(const answer *answers, size_t count)
{
    heft_s3_parts s;
    serve(answers, count);
    heft_s3_parts_init(&s, &upload);
    s.part_bytes = PART;
    return s;
}

static void a_file_has_at_most_10000_parts(void **state)
{
    static const answer stored = STORED;
    const uint64_t most = (uint64_t)PART * HEFT_S3_MAX_PARTS;
    heft_error err;
    (void)state;
    heft_s3_parts s = parts_of(&stored, 1);
    heft_assert_ok(heft_s3_parts_write(&s, most - PART, data, PART, &err), &err);
    assert_int_equal(server.sent, 1);
    heft_assert_fails(heft_s3_parts_write(&s, most, data, 1, &err), HEFT_E_LIMIT, &err,
                      "more bytes than 10000 parts of 4096 bytes");
    heft_assert_fails(heft_s3_parts_write(&s, 0, data, 1, &err), HEFT_E_LIMIT, &err,
                      "more bytes than 10000 parts of 4096 bytes");
    heft_assert_fails(heft_s3_parts_end(&s, &err), HEFT_E_LIMIT, &err, "10000 parts");
    assert_int_equal(server.sent, 1);
    heft_s3_parts_free(&s);
}

static void a_refused_part_is_reported_by_the_next_write(void **state)
{
    static const answer answers[] = { REFUSED, STORED };
    heft_error err;
    (void)state;
    heft_s3_parts s = parts_of(answers, 2);
    heft_assert_ok(heft_s3_parts_write(&s, 0, data, PART, &err), &err);
    heft_assert_fails(heft_s3_parts_write(&s, PART, data, PART, &err), HEFT_E_IO, &err, "refused");
    assert_int_equal(err.os, EACCES);
    heft_assert_fails(heft_s3_parts_end(&s, &err), HEFT_E_IO, &err, "refused");
    assert_int_equal(server.sent, 1);
    heft_s3_parts_free(&s);
}

/* Cancelled requests fail, too, but the missing bytes are the reason. */
static void missing_bytes_are_reported_before_cancelled_requests(void **state)
{
    static const answer slow = { HEFT_OK, 0, NULL, NULL, "\"e\"", true };
    heft_error err;
    (void)state;
    heft_s3_parts s = parts_of(&slow, 1);
    heft_assert_ok(heft_s3_parts_write(&s, 0, data, 10, &err), &err);
    heft_assert_ok(heft_s3_parts_write(&s, PART, data, PART, &err), &err);
    heft_assert_fails(heft_s3_parts_end(&s, &err), HEFT_E_IO, &err,
                      "bytes of the file were not written");
    assert_int_equal(server.slow_count, 0);
    heft_s3_parts_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_of_objects_are_limited),
        cmocka_unit_test(an_upload_needs_an_id),
        cmocka_unit_test(a_file_has_at_most_10000_parts),
        cmocka_unit_test(a_refused_part_is_reported_by_the_next_write),
        cmocka_unit_test(missing_bytes_are_reported_before_cancelled_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
