/* test_remote_s3.c - calls of S3 with answers of a hostile server.  A script of the test takes the
 * place of the session; meson.build replaces the functions through --wrap. */
#include "models.h"

#include <errno.h>
#include <stdio.h>

#include "base/text.h"
#include "port/remote/s3_shares.h"

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

void __wrap_heft_session_release(heft_session *s);
void __wrap_heft_session_release(heft_session *s)
{
    (void)s;
}

heft_status __wrap_heft_session_new(heft_session **out, const heft_url_options *opt,
                                    heft_error *err);
heft_status __wrap_heft_session_new(heft_session **out, const heft_url_options *opt,
                                    heft_error *err)
{
    (void)opt;
    (void)err;
    *out = NULL;
    return HEFT_OK;
}

/* No object can be read. */
heft_status __wrap_heft_url_read_whole(char **out, size_t *length, heft_session *s,
                                       const heft_address *target, uint64_t most, heft_error *err);
heft_status __wrap_heft_url_read_whole(char **out, size_t *length, heft_session *s,
                                       const heft_address *target, uint64_t most, heft_error *err)
{
    (void)length;
    (void)s;
    (void)target;
    (void)most;
    *out = NULL;
    return heft_error_os(err, heft_error_plain(err, HEFT_E_IO, "none"), ENOENT);
}

#define REFUSED                                         \
    {                                                   \
        HEFT_E_IO, EACCES, "refused", NULL, NULL, false \
    }
#define ABSENT                                         \
    {                                                  \
        HEFT_E_IO, ENOENT, "absent", NULL, NULL, false \
    }
#define STORED                                 \
    {                                          \
        HEFT_OK, 0, NULL, NULL, "\"e\"", false \
    }

/* Set a text of `len` letters. */
static char *letters(char *out, size_t len)
{
    memset(out, 'k', len);
    out[len] = '\0';
    return out;
}

/* ---- lists and removal -------------------------------------------------------------------- */

static void count_name(void *ctx, const char *name)
{
    size_t *count = ctx;
    (void)name;
    ++*count;
}

static const char endless[] = "<ListBucketResult><IsTruncated>true</IsTruncated>"
                              "<NextContinuationToken>t</NextContinuationToken>"
                              "<Key>a/b</Key></ListBucketResult>";

static void lists_of_objects_have_an_end(void **state)
{
    enum { PAGES = 1000 };
    const answer page = { .text = endless };
    static const answer refused = REFUSED;
    heft_address bucket = { .url = "http://h/b" };
    size_t names = 0;
    char prefix[5000];
    heft_error err;
    (void)state;
    serve(&page, 1);
    heft_assert_fails(heft_s3_list(NULL, &bucket, "p", count_name, &names, &err), HEFT_E_LIMIT,
                      &err, "the list of objects is too long");
    assert_true(server.sent == PAGES && names == PAGES);
    serve(&page, 1);
    heft_assert_fails(
        heft_s3_list(NULL, &bucket, letters(prefix, sizeof prefix - 1), count_name, &names, &err),
        HEFT_E_LIMIT, &err, "the list of objects is too long");
    assert_int_equal(server.sent, 0);
    serve(&refused, 1);
    heft_assert_fails(heft_s3_list(NULL, &bucket, "p", count_name, &names, &err), HEFT_E_IO, &err,
                      "refused");
}

static void the_first_refused_removal_is_reported(void **state)
{
    static const answer other = { HEFT_E_IO, EIO, "other", NULL, NULL, false };
    const struct {
        answer answers[3];
        const char *message; /* NULL: success */
    } cases[] = {
        { { STORED, STORED, STORED }, NULL },       { { ABSENT, STORED, ABSENT }, NULL },
        { { STORED, REFUSED, STORED }, "refused" }, { { REFUSED, other, STORED }, "refused" },
        { { ABSENT, other, REFUSED }, "other" },
    };
    const heft_address folder = { .url = "http://h/b/k.shares/" };
    heft_s3_name names[3] = { "a", "b", "c" };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(cases); i++) {
        heft_error err;
        serve(cases[i].answers, 3);
        heft_status st = heft_s3_remove(NULL, &folder, names, 3, &err);
        assert_int_equal(server.sent, 3);
        if (cases[i].message)
            heft_assert_fails(st, HEFT_E_IO, &err, cases[i].message);
        else
            heft_assert_ok(st, &err);
    }
}

static void names_that_do_not_fit_an_address_are_not_removed(void **state)
{
    static const answer stored = STORED;
    heft_address folder;
    heft_s3_name names[2] = { "a", "share-00001-of-00002" };
    heft_error err;
    (void)state;
    letters(folder.url, sizeof folder.url - 10);
    serve(&stored, 1);
    heft_assert_fails(heft_s3_remove(NULL, &folder, names, 2, &err), HEFT_E_LIMIT, &err,
                      "the address is too long");
    assert_int_equal(server.sent, 1);
    heft_assert_ok(heft_s3_remove(NULL, &folder, names, 1, &err), &err);
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

static void numbers_of_parts_are_limited(void **state)
{
    (void)state;
    for (unsigned number = HEFT_S3_MAX_PARTS; number <= HEFT_S3_MAX_PARTS + 1; number++) {
        char xml[256];
        heft_s3_stored_part part = { .bytes = 0 };
        uint32_t marker = 0;
        heft_error err;
        snprintf(xml, sizeof xml,
                 "<ListPartsResult><IsTruncated>true</IsTruncated><Part><PartNumber>%u"
                 "</PartNumber><ETag>e</ETag><Size>1</Size></Part></ListPartsResult>",
                 number);
        heft_status st = heft_s3_read_parts(&part, 1, xml, &marker, &err);
        if (number > HEFT_S3_MAX_PARTS)
            heft_assert_fails(st, HEFT_E_IO, &err, "list of the parts of the upload is damaged");
        else
            heft_assert_ok(st, &err);
        assert_int_equal(marker, st ? 0 : number);
    }
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

/* ---- shares --------------------------------------------------------------------------------- */

static heft_s3_shares *shares_of(const char *url, heft_error *err)
{
    static const answer absent = ABSENT;
    heft_share_store *store;
    serve(&absent, 1);
    heft_assert_ok(heft_s3_shares_new(&store, url, 0, NULL, err), err);
    return (heft_s3_shares *)store;
}

static void an_output_that_cannot_be_looked_for_is_an_error(void **state)
{
    static const answer refused = REFUSED;
    heft_share_store *store;
    heft_error err;
    (void)state;
    serve(&refused, 1);
    heft_assert_fails(heft_s3_shares_new(&store, "s3://b/k", 0, NULL, &err), HEFT_E_IO, &err,
                      "refused");
    assert_null(store);
}

static void the_text_of_the_plan_is_limited(void **state)
{
    enum { MOST = HEFT_S3_ID + 256, ELSE = sizeof "upload i\n" };
    static const answer answers[] = { { .text = "<UploadId>i</UploadId>" }, REFUSED };
    char text[MOST];
    (void)state;
    for (size_t len = MOST - ELSE; len <= MOST - ELSE + 1; len++) {
        heft_error err;
        heft_s3_shares *s = shares_of("s3://b/k", &err);
        serve(answers, 2);
        heft_status st = s->base.ops->publish_plan(&s->base, letters(text, len), len, &err);
        if (len + ELSE > MOST)
            heft_assert_fails(st, HEFT_E_LIMIT, &err, "the text of the plan is too long");
        else
            heft_assert_fails(st, HEFT_E_IO, &err, "refused");
        s->base.ops->close(&s->base);
    }
}

/* An output without payload has a header only, which no share writes. */
static void bytes_that_nobody_wrote_are_missing(void **state)
{
    static const test_tensor empty = { "e", HEFT_F32, 1, { 0 } };
    heft_bytes bytes = heft_test_model("safetensors", &empty, 1);
    heft_file *in = heft_test_opened(bytes, NULL, false);
    heft_sink *sink;
    heft_error err;
    (void)state;
    heft_s3_shares *s = shares_of("s3://b/k", &err);
    s->base.count = 1;
    heft_assert_ok(
        heft_share_open(&s->base.plan, in, heft_format_find(HEFT_STR("ztensor")), 1, NULL, &err),
        &err);
    heft_assert_ok(heft_s3_shares_cut(s, &err), &err);
    heft_assert_ok(heft_s3_share_data_open(&sink, &s->base, 0, &err), &err);
    heft_assert_fails(sink->ops->finish(sink, &err), HEFT_E_IO, &err,
                      "bytes of part 1 were not written");
    heft_share_close(s->base.plan);
    s->base.ops->close(&s->base);
    heft_file_close(in);
    heft_test_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_objects_have_an_end),
        cmocka_unit_test(the_first_refused_removal_is_reported),
        cmocka_unit_test(names_that_do_not_fit_an_address_are_not_removed),
        cmocka_unit_test(sizes_of_objects_are_limited),
        cmocka_unit_test(an_upload_needs_an_id),
        cmocka_unit_test(numbers_of_parts_are_limited),
        cmocka_unit_test(a_file_has_at_most_10000_parts),
        cmocka_unit_test(a_refused_part_is_reported_by_the_next_write),
        cmocka_unit_test(missing_bytes_are_reported_before_cancelled_requests),
        cmocka_unit_test(an_output_that_cannot_be_looked_for_is_an_error),
        cmocka_unit_test(the_text_of_the_plan_is_limited),
        cmocka_unit_test(bytes_that_nobody_wrote_are_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
