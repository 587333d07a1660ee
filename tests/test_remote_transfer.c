/* test_remote_transfer.c - requests and accepted answers.  Functions of the test take the place of
 * libcurl and of the session; meson.build replaces the session through --wrap. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "port/remote/session.h"
#include "test_memory.h"

/* ---- a session without threads ---- */

static heft_url_options options;
static int locks;

const heft_url_options *__wrap_heft_session_options(const heft_session *s);
const heft_url_options *__wrap_heft_session_options(const heft_session *s)
{
    (void)s;
    return &options;
}

void __wrap_heft_session_lock(heft_session *s);
void __wrap_heft_session_lock(heft_session *s)
{
    (void)s;
    locks++;
}

void __wrap_heft_session_unlock(heft_session *s);
void __wrap_heft_session_unlock(heft_session *s)
{
    (void)s;
    locks--;
}

void __wrap_heft_session_received(heft_session *s, heft_request *r, size_t bytes);
void __wrap_heft_session_received(heft_session *s, heft_request *r, size_t bytes)
{
    (void)s;
    assert_int_equal(locks, 0);
    r->have += bytes;
}

static bool has_scratch = true;

heft_status __real_heft_scratch_temporary(heft_scratch **out, uint64_t size, heft_error *err);
heft_status __wrap_heft_scratch_temporary(heft_scratch **out, uint64_t size, heft_error *err);
heft_status __wrap_heft_scratch_temporary(heft_scratch **out, uint64_t size, heft_error *err)
{
    return has_scratch ? __real_heft_scratch_temporary(out, size, err)
                       : heft_error_plain(err, HEFT_E_IO, "no temporary file");
}

/* ---- a libcurl that records ---- */

typedef size_t receive(char *data, size_t unit, size_t count, void *ctx);

enum { OPTIONS = 40, MAX_TRIES = 5 };

static struct {
    struct {
        CURLoption option;
        long number;
        char text[512];
    } set[OPTIONS];
    size_t count;
    receive *on_header, *on_body;
    char headers[1024];
} sent;

static struct {
    long code;
    curl_off_t length, retry_after, connected, received;
} server;

static int handles; /* handles that are open */
static bool has_handles = true, has_headers = true;

static CURL *easy_init(void)
{
    static int handle;
    handles += has_handles;
    return has_handles ? &handle : NULL;
}

static void easy_cleanup(CURL *e)
{
    assert_non_null(e);
    handles--;
}

static CURLcode easy_setopt(CURL *e, CURLoption option, ...)
{
    va_list args;
    (void)e;
    va_start(args, option);
    if (option == CURLOPT_WRITEFUNCTION)
        sent.on_body = va_arg(args, receive *);
    else if (option == CURLOPT_HEADERFUNCTION)
        sent.on_header = va_arg(args, receive *);
    else {
        assert_true(sent.count < OPTIONS);
        sent.set[sent.count].option = option;
        if (option < CURLOPTTYPE_OBJECTPOINT)
            sent.set[sent.count].number = va_arg(args, long);
        else if (option >= CURLOPTTYPE_OFF_T)
            sent.set[sent.count].number = (long)va_arg(args, curl_off_t);
        else if (option != CURLOPT_HEADERDATA && option != CURLOPT_WRITEDATA &&
                 option != CURLOPT_PRIVATE && option != CURLOPT_HTTPHEADER)
            snprintf(sent.set[sent.count].text, sizeof sent.set->text, "%s",
                     va_arg(args, const char *));
        sent.count++;
    }
    va_end(args);
    return CURLE_OK;
}

static CURLcode easy_getinfo(CURL *e, CURLINFO info, ...)
{
    va_list args;
    (void)e;
    va_start(args, info);
    if (info == CURLINFO_RESPONSE_CODE)
        *va_arg(args, long *) = server.code;
    else if (info == CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)
        *va_arg(args, curl_off_t *) = server.length;
    else if (info == CURLINFO_RETRY_AFTER)
        *va_arg(args, curl_off_t *) = server.retry_after;
    else if (info == CURLINFO_PRETRANSFER_TIME_T)
        *va_arg(args, curl_off_t *) = server.connected;
    else if (info == CURLINFO_SIZE_DOWNLOAD_T)
        *va_arg(args, curl_off_t *) = server.received;
    va_end(args);
    return CURLE_OK;
}

static const char *easy_strerror(CURLcode code)
{
    return code ? "reason" : "";
}

static struct curl_slist *slist_append(struct curl_slist *list, const char *text)
{
    static struct curl_slist head;
    (void)list;
    if (!has_headers)
        return NULL;
    snprintf(sent.headers + strlen(sent.headers), sizeof sent.headers - strlen(sent.headers),
             "%s\n", text);
    return &head;
}

static void slist_free_all(struct curl_slist *list)
{
    (void)list;
}

/* "1" is the second 1. */
static time_t read_date(const char *text, const time_t *unused)
{
    (void)unused;
    return text[0] >= '0' && text[0] <= '9' ? (time_t)strtol(text, NULL, 10) : -1;
}

static const heft_curl curl = {
    .getdate = read_date,
    .easy_init = easy_init,
    .easy_cleanup = easy_cleanup,
    .easy_setopt = easy_setopt,
    .easy_getinfo = easy_getinfo,
    .easy_strerror = easy_strerror,
    .slist_append = slist_append,
    .slist_free_all = slist_free_all,
};

/* Return the text of the last setting of an option; NULL: not set. */
static const char *text_of(CURLoption option)
{
    const char *text = NULL;
    for (size_t i = 0; i < sent.count; i++)
        text = sent.set[i].option == option ? sent.set[i].text : text;
    return text;
}

static long number_of(CURLoption option)
{
    long number = -1;
    for (size_t i = 0; i < sent.count; i++)
        number = sent.set[i].option == option ? sent.set[i].number : number;
    return number;
}

static bool begin(heft_request *r)
{
    memset(&sent, 0, sizeof sent);
    r->curl = &curl;
    return heft_transfer_begin(r);
}

/* Receive an answer: lines of the header, separated by '\n', and zeros as the body.  Return whether
 * the body was taken. */
static bool receive_answer(heft_request *r, long code, const char *lines, size_t body)
{
    static char zeros[64];
    char text[512];
    server.code = code;
    snprintf(text, sizeof text, "%s", lines);
    for (char *line = text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        end += *end == '\n';
        assert_int_equal(sent.on_header(line, 1, (size_t)(end - line), r), end - line);
    }
    assert_true(body <= sizeof zeros);
    size_t taken = body ? sent.on_body(zeros, 1, body, r) : 0;
    assert_true(taken == body || !taken);
    assert_int_equal(locks, 0);
    return taken == body;
}

static void end(heft_request *r)
{
    heft_transfer_end(r);
    heft_transfer_end(r);
    assert_int_equal(handles, 0);
    if (r->spool)
        r->spool->ops->close(r->spool);
}

/* ---- ranges ---- */

static heft_address plain = { .url = "http://host/file" };
static const heft_answer first = { .etag = "a", .modified = "m", .linked = "l" };

enum { SIZE = 20 }; /* bytes of the file, where the request knows the size */

static void answers_are_compared_with_the_request(void **state)
{
    static const char same[] = "etag: a\nlast-modified: m\nx-linked-etag: l\n";
    static const struct {
        bool is_first; /* no version is known */
        uint64_t offset, length;
        long code;
        const char *version, *range;
        size_t body;
        const char *message; /* part of the message; NULL: accepted */
        uint64_t size;       /* the file's size after the answer */
    } cases[] = {
        { true, 0, 10, 206, "", "bytes 0-9/20", 10, NULL, 20 },
        { true, 0, 10, 206, "", "bytes 0-9/10", 10, NULL, 10 },
        { true, 0, 10, 206, "", "bytes 0-4/5", 5, NULL, 5 },
        { true, 0, 10, 206, "", "", 10, "without saying which", 0 },
        { true, 0, 10, 206, "", "bytes 0-9/*", 10, "does not say how large", 0 },
        { true, 0, 10, 206, "", "bytes 1-9/20", 9, "another range", 0 },
        { true, 0, 10, 206, "", "bytes 0-8/20", 9, "another range", 0 },
        { true, 0, 10, 206, "", "bytes 0-10/20", 10, "another range", 0 },
        { true, 0, 10, 206, "", "bytes 0-9/20", 11, "more bytes than requested", 0 },
        { true, 0, 10, 206, "content-encoding: gzip\n", "bytes 0-9/20", 10, "compressed", 0 },
        { true, 0, 10, 416, "", "bytes */0", 3, NULL, 0 },
        { true, 0, 10, 404, "", "bytes */0", 3, "does not exist", 0 },
        { true, 0, 10, 416, "", "bytes */1", 3, "HTTP status 416", 0 },
        { true, 0, 10, 416, "", "", 3, "HTTP status 416", 0 },
        { false, 5, 10, 206, same, "bytes 5-14/20", 10, NULL, SIZE },
        { false, 5, 10, 206, same, "bytes 5-14/*", 10, NULL, SIZE },
        { false, 10, 10, 206, same, "bytes 10-19/20", 10, NULL, SIZE },
        { false, 11, 10, 206, same, "bytes 11-19/20", 9, NULL, SIZE },
        { false, 15, 10, 206, same, "bytes 15-19/20", 5, NULL, SIZE },
        { false, 5, 10, 206, same, "bytes 5-14/20", 9, "truncated", 0 },
        { false, 15, 10, 206, same, "bytes 15-19/20", 6, "truncated", 0 }, /* past the end */
        { false, 5, 10, 206, same, "bytes 5-14/21", 10, "changed", 0 },
        { false, 5, 10, 206, same, "bytes 5-14/19", 10, "changed", 0 },
        { false, 5, 10, 206, "etag: b\nlast-modified: m\nx-linked-etag: l\n", "bytes 5-14/20", 10,
          "changed", 0 },
        { false, 5, 10, 206, "etag: a\nlast-modified: n\nx-linked-etag: l\n", "bytes 5-14/20", 10,
          "changed", 0 },
        { false, 5, 10, 206, "etag: a\nlast-modified: m\nx-linked-etag: k\n", "bytes 5-14/20", 10,
          "changed", 0 },
        { false, 5, 10, 206, "etag: a\nlast-modified: m\n", "bytes 5-14/20", 10, "changed", 0 },
        { false, 5, 10, 206, same, "bytes 5-13/20", 9, "another range", 0 },
        { false, 5, 10, 206, same, "bytes 4-14/20", 10, "another range", 0 },
        { false, 20, 10, 206, same, "bytes 20-20/20", 0, "truncated", 0 },
        { false, 5, 10, 416, same, "bytes */0", 3, "HTTP status 416", 0 },
        { false, 5, 10, 200, same, "", 3, "changed", 0 },
        { false, 5, 10, 200, same, "", 0, "changed", 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char buf[16], lines[256];
        heft_request r = { .target = &plain,
                           .pinned = cases[i].is_first ? NULL : &first,
                           .offset = cases[i].offset,
                           .size = cases[i].is_first ? HEFT_UNKNOWN_LENGTH : SIZE,
                           .buf = (uint8_t *)buf,
                           .length = cases[i].length,
                           .tries = MAX_TRIES - 1 };
        assert_true(begin(&r));
        snprintf(lines, sizeof lines, "HTTP/1.1 206 x\n%s%s%s", cases[i].version,
                 *cases[i].range ? "content-range: " : "", cases[i].range);
        bool is_taken = receive_answer(&r, cases[i].code, lines, cases[i].body);
        assert_int_equal(is_taken, !r.status);
        assert_int_equal(r.have, is_taken && cases[i].code == 206 ? cases[i].body : 0);
        assert_false(heft_transfer_judge(&r, CURLE_OK));
        if (cases[i].message) {
            if (!r.status || !strstr(r.error.message, cases[i].message))
                fail_msg("case %zu: '%s', not '%s'", i, r.error.message, cases[i].message);
        } else if (r.status || r.size != cases[i].size ||
                   r.have != (cases[i].code == 206 ? cases[i].body : 0))
            fail_msg("case %zu: status %d, '%s', size %llu, %zu bytes", i, r.status,
                     r.error.message, (unsigned long long)r.size, r.have);
        end(&r);
    }
}

/* A time of change is a version only if it is in the past. */
static void times_before_the_date_are_noted(void **state)
{
    static const struct {
        const char *lines;
        bool is_dated;
    } cases[] = {
        { "", false },
        { "Last-Modified: 9\n", false },
        { "Date: 9\n", false },
        { "Last-Modified: 9\nDate: 9\n", false },
        { "Last-Modified: 9\nDate: 8\n", false },
        { "Last-Modified: 9\nDate: 10\n", true },
        { "Last-Modified: x\nDate: 10\n", false },
        { "Last-Modified: 9\nDate: x\n", false },
        { "Last-Modified: 0\nDate: 10\n", false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t buf[4];
        char lines[128];
        heft_request r = { .target = &plain, .buf = buf, .length = 4 };
        assert_true(begin(&r));
        snprintf(lines, sizeof lines, "%scontent-range: bytes 0-3/20\n", cases[i].lines);
        assert_true(receive_answer(&r, 206, lines, 4));
        assert_false(heft_transfer_judge(&r, CURLE_OK));
        assert_int_equal(r.answer.is_dated, cases[i].is_dated);
        end(&r);
    }
}

/* A transfer that failed is no answer, even if the answer seems to be whole. */
static void failed_transfers_are_not_answers(void **state)
{
    static const struct {
        bool is_first;
        long code;
        const char *lines;
        size_t body;
    } cases[] = {
        { true, 206, "content-range: bytes 0-9/20\n", 10 },
        { true, 200, "", 0 },
        { true, 416, "content-range: bytes */0\n", 0 },
        { false, 206, "etag: a\nlast-modified: m\nx-linked-etag: l\ncontent-range: bytes 0-9/20\n",
          10 },
        { false, 200, "", 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t buf[10];
        heft_request r = { .target = &plain,
                           .pinned = cases[i].is_first ? NULL : &first,
                           .size = cases[i].is_first ? HEFT_UNKNOWN_LENGTH : SIZE,
                           .buf = buf,
                           .length = 10 };
        assert_true(begin(&r));
        receive_answer(&r, cases[i].code, cases[i].lines, cases[i].body);
        assert_int_equal(r.status, HEFT_OK);
        assert_true(heft_transfer_judge(&r, CURLE_RECV_ERROR));
        assert_true(!r.is_whole && r.size != 0);
        assert_false(heft_transfer_judge(&r, CURLE_SSL_CONNECT_ERROR));
        assert_non_null(strstr(r.error.message, "cannot be read from the server"));
        end(&r);
    }
}

static void a_repeated_request_asks_for_the_missing_bytes(void **state)
{
    uint8_t buf[10];
    heft_request r = {
        .target = &plain, .pinned = &first, .offset = 5, .size = SIZE, .buf = buf, .length = 10
    };
    static const char version[] = "etag: a\nlast-modified: m\nx-linked-etag: l\n";
    char lines[256];
    (void)state;
    assert_true(begin(&r));
    assert_string_equal(text_of(CURLOPT_RANGE), "5-14");
    snprintf(lines, sizeof lines, "%scontent-range: bytes 5-14/20\n", version);
    receive_answer(&r, 206, lines, 4);
    assert_true(heft_transfer_judge(&r, CURLE_OK)); /* truncated: once more */
    end(&r);
    assert_true(begin(&r));
    assert_string_equal(text_of(CURLOPT_RANGE), "9-14");
    snprintf(lines, sizeof lines, "%scontent-range: bytes 9-14/20\n", version);
    assert_true(receive_answer(&r, 206, lines, 2) && receive_answer(&r, 206, "", 4));
    assert_false(heft_transfer_judge(&r, CURLE_OK));
    assert_int_equal(r.status, HEFT_OK);
    end(&r);

    /* Without a version the first bytes are requested again. */
    r = (heft_request){ .target = &plain, .size = HEFT_UNKNOWN_LENGTH, .buf = buf, .length = 10 };
    assert_true(begin(&r));
    receive_answer(&r, 206, "content-range: bytes 0-9/20\n", 4);
    assert_true(heft_transfer_judge(&r, CURLE_PARTIAL_FILE));
    end(&r);
    assert_true(begin(&r));
    assert_string_equal(text_of(CURLOPT_RANGE), "0-9");
    assert_true(!r.have && r.size == HEFT_UNKNOWN_LENGTH);
    end(&r);
}

/* ---- whole files ---- */

static void whole_files_fit_the_limit(void **state)
{
    static const struct {
        curl_off_t length; /* Content-Length, or -1 */
        size_t body, more;
        bool fits;
    } cases[] = {
        { 10, 10, 0, true },  { 11, 1, 0, false }, { -1, 10, 0, true }, { -1, 11, 0, false },
        { -1, 10, 1, false }, { -1, 4, 6, true },  { 0, 10, 0, true },  { 10, 0, 0, true },
    };
    (void)state;
    options.spool_bytes = 10;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t buf[4];
        heft_request r = { .target = &plain, .size = HEFT_UNKNOWN_LENGTH, .buf = buf, .length = 4 };
        server.length = cases[i].length;
        assert_true(begin(&r));
        bool is_taken = receive_answer(&r, 200, "etag: a\n", cases[i].body);
        const heft_scratch *spool = r.spool;
        if (!r.status)
            is_taken = receive_answer(&r, 200, "", cases[i].more);
        assert_int_equal(is_taken, cases[i].fits);
        assert_true(!cases[i].body || r.spool == spool);
        assert_false(heft_transfer_judge(&r, CURLE_OK));
        assert_int_equal(r.status, cases[i].fits ? HEFT_OK : HEFT_E_LIMIT);
        assert_true(!cases[i].fits || (r.is_whole && r.spooled == cases[i].body + cases[i].more));
        end(&r);
    }
}

static void a_whole_file_needs_a_temporary_file(void **state)
{
    uint8_t buf[4];
    heft_request r = { .target = &plain, .size = HEFT_UNKNOWN_LENGTH, .buf = buf, .length = 4 };
    (void)state;
    server.length = -1;
    has_scratch = false;
    assert_true(begin(&r));
    assert_false(receive_answer(&r, 200, "", 4));
    assert_int_equal(r.status, HEFT_E_IO);
    assert_string_equal(r.error.message, "no temporary file");
    end(&r);
    has_scratch = true;
}

/* ---- repeated requests, and messages ---- */

static void temporary_failures_are_repeated(void **state)
{
    static const struct {
        CURLcode result;
        long code;
        bool is_temporary;
        int os;
        const char *message;
    } cases[] = {
        { CURLE_OK, 408, true, EIO, "408" },
        { CURLE_OK, 429, true, EIO, "too many requests" },
        { CURLE_OK, 500, true, EIO, "500" },
        { CURLE_OK, 502, true, EIO, "502" },
        { CURLE_OK, 503, true, EIO, "503" },
        { CURLE_OK, 504, true, EIO, "504" },
        { CURLE_OK, 400, false, EIO, "HTTP status 400" },
        { CURLE_OK, 401, false, EACCES, "credentials" },
        { CURLE_OK, 403, false, EACCES, "credentials" },
        { CURLE_OK, 404, false, ENOENT, "does not exist" },
        { CURLE_OK, 410, false, ENOENT, "does not exist" },
        { CURLE_OK, 407, false, EIO, "HTTP status 407" },
        { CURLE_OK, 501, false, EIO, "HTTP status 501" },
        { CURLE_OK, 505, false, EIO, "HTTP status 505" },
        { CURLE_OK, 302, false, EIO, "HTTP status 302" },
        { CURLE_OK, 206, true, EIO, "truncated" },
        { CURLE_COULDNT_CONNECT, 0, true, EIO, "cannot be read from the server: reason" },
        { CURLE_OPERATION_TIMEDOUT, 206, true, EIO, "reason" },
        { CURLE_PARTIAL_FILE, 206, true, EIO, "reason" },
        { CURLE_GOT_NOTHING, 0, true, EIO, "reason" },
        { CURLE_SEND_ERROR, 0, true, EIO, "reason" },
        { CURLE_RECV_ERROR, 0, true, EIO, "reason" },
        { CURLE_HTTP2, 0, true, EIO, "reason" },
        { CURLE_HTTP2_STREAM, 0, true, EIO, "reason" },
        { CURLE_HTTP3, 0, true, EIO, "reason" },
        { CURLE_QUIC_CONNECT_ERROR, 0, true, EIO, "reason" },
        { CURLE_SSL_CONNECT_ERROR, 0, false, EIO, "reason" },
        { CURLE_TOO_MANY_REDIRECTS, 302, false, EIO, "reason" },
        { CURLE_URL_MALFORMAT, 503, false, EIO, "reason" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (unsigned tries = 0; tries <= MAX_TRIES; tries++) {
            uint8_t buf[4];
            heft_request r = { .target = &plain,
                               .pinned = &first,
                               .size = SIZE,
                               .buf = buf,
                               .length = 4,
                               .tries = tries };
            assert_true(begin(&r));
            assert_int_equal(r.tries, tries + 1);
            server.code = cases[i].code;
            bool is_repeated = heft_transfer_judge(&r, cases[i].result);
            if (is_repeated != (cases[i].is_temporary && tries + 1 < MAX_TRIES))
                fail_msg("case %zu, after %u tries: %d", i, tries + 1, is_repeated);
            assert_int_equal(r.status, is_repeated ? HEFT_OK : HEFT_E_IO);
            if (!is_repeated) {
                assert_int_equal(r.error.os, cases[i].os);
                assert_non_null(strstr(r.error.message, cases[i].message));
            }
            end(&r);
        }
}

static void a_server_may_delay_requests_by_five_minutes(void **state)
{
    static const struct {
        curl_off_t seconds;
        const char *lines;
        unsigned expected;
        bool is_too_long;
    } cases[] = {
        { -1, "", 0, false },
        { 0, "", 0, false },
        { 1, "", 1, false },
        { 299, "", 299, false },
        { 300, "", 300, false },
        { 301, "", 0, true },
        { 1 << 30, "", 0, true },
        { 0, "RateLimit: \"resolvers\";r=0;t=8\n", 8, false },
        { 5, "RateLimit: \"resolvers\";r=0;t=8\n", 5, false },
        { 0, "ratelimit: \"a\";r=1;t=9, \"b\";r=0;t=3, \"c\";r=0;t=4\n", 4, false },
        { 0, "RateLimit: \"a\";t=7;r=0\n", 7, false },
        { 0, "RateLimit: \"a\";r=1;t=7\n", 0, false },
        { 0, "RateLimit: limit=100, remaining=0, reset=50\n", 50, false },
        { 0, "RateLimit: r=0;t=\n", 0, false },
        { 0, "RateLimit: \"t=9\n", 0, false },
        { 0, "RateLimit: ;;;t=99999999999999999999\n", 0, false },
        { 0, "RateLimit-Reset: 11\n", 11, false },
        { 0, "X-RateLimit-Reset: 12\n", 12, false },
        { 0, "X-RateLimit-Reset: 1000000000\n", 0, false }, /* a time that has passed */
        { 0, "X-RateLimit-Reset: 99999999999\n", 0, true },
        { 0, "RateLimit: \"a\";r=0;t=301\n", 0, true },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t buf[4];
        heft_request r = { .target = &plain, .buf = buf, .length = 4 };
        assert_true(begin(&r));
        server.retry_after = cases[i].seconds;
        receive_answer(&r, 429, cases[i].lines, 0);
        bool is_repeated = heft_transfer_judge(&r, CURLE_OK);
        if (is_repeated == cases[i].is_too_long || r.retry_after != cases[i].expected)
            fail_msg("case %zu: %d, %u seconds", i, is_repeated, r.retry_after);
        assert_true(is_repeated || strstr(r.error.message, "allows no requests for"));
        end(&r);
    }
    server.retry_after = 0;
}

/* The reasons of the hub and of S3 are shown, with advice. */
static void failures_are_explained(void **state)
{
    static const struct {
        long code;
        const char *lines, *body, *message;
        int os;
    } cases[] = {
        { 401, "X-Error-Code: RepoNotFound\nX-Error-Message: Repository not found\n", "{}",
          "the repository was not found: check its name; for a private one set HF_TOKEN (HTTP "
          "status 401, RepoNotFound: Repository not found)",
          ENOENT },
        { 403, "X-Error-Code: GatedRepo\nX-Error-Message: Visit \x1b[31m\xe2\x80\xae\n", "",
          "the repository is gated: ask for access on its page, and set HF_TOKEN (HTTP status 403, "
          "GatedRepo: Visit ?[31m?",
          EACCES },
        { 404, "X-Error-Code: EntryNotFound\n", "", "the file does not exist in the repository",
          ENOENT },
        { 404, "X-Error-Code: RevisionNotFound\n", "", "the revision was not found", ENOENT },
        { 404, "X-Error-Code: Unknown\n", "", "does not exist on the server (HTTP status 404, Un",
          ENOENT },
        { 401, "X-Error-Message: Invalid credentials\n", "",
          "access is not allowed; check the credentials (docs/remote.md) (HTTP status 401: Inva",
          EACCES },
        { 301, "x-amz-bucket-region: eu-west-1\n",
          "<?xml?><Error><Code>PermanentRedirect</Code><Message>use it</Message></Error>",
          "the bucket is in the region eu-west-1: set AWS_REGION=eu-west-1 (HTTP status 301, "
          "PermanentRedirect: use it)",
          EIO },
        { 400, "", "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-2</Region></Error>",
          "the bucket is in the region eu-2: set AWS_REGION=eu-2", EIO },
        { 403, "x-amz-bucket-region: eu-1\n", "<Error><Code>AccessDenied</Code></Error>",
          "access is not allowed; check the credentials (docs/remote.md) (HTTP status 403, Access",
          EACCES },
        { 404, "", "<Error><Code>NoSuchBucket</Code></Error>", "the bucket was not found", ENOENT },
        { 403, "", "<Error><Code>SignatureDoesNotMatch</Code></Error>", "check the credentials",
          EACCES },
        { 400, "", "<Error><Code>ExpiredToken</Code></Error>", "the credentials have expired",
          EACCES },
        { 400, "", "<html><Code>NoSuchKey</Code>",
          "the server refused the request (HTTP status 400)", EIO },
        { 400, "", "<Error><Code>NoSuchKey", "the object does not exist", ENOENT },
    };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        uint8_t buf[4];
        char body[128];
        heft_exchange x = { .method = "PUT", .query = "" };
        heft_request r = { .target = &plain,
                           .exchange = i % 2 ? &x : NULL,
                           .buf = buf,
                           .length = 4,
                           .tries = MAX_TRIES };
        assert_true(begin(&r));
        receive_answer(&r, cases[i / 2].code, cases[i / 2].lines, 0);
        size_t len = strlen(cases[i / 2].body);
        memcpy(body, cases[i / 2].body, len);
        assert_int_equal(sent.on_body(body, 1, len / 2, &r), len / 2);
        assert_int_equal(sent.on_body(body + len / 2, 1, len - len / 2, &r), len - len / 2);
        assert_false(heft_transfer_judge(&r, CURLE_OK));
        if (!strstr(r.error.message, cases[i / 2].message) || r.error.os != cases[i / 2].os)
            fail_msg("case %zu: '%s', %d", i / 2, r.error.message, r.error.os);
        end(&r);
    }
}

static void long_bodies_of_failures_are_cut(void **state)
{
    uint8_t buf[4];
    char body[700];
    heft_request r = { .target = &plain, .buf = buf, .length = 4 };
    (void)state;
    memset(body, 'x', sizeof body);
    assert_true(begin(&r));
    server.code = 404;
    for (int i = 0; i < 3; i++)
        assert_int_equal(sent.on_body(body, 1, sizeof body, &r), sizeof body);
    assert_int_equal(strlen(r.failure), sizeof r.failure - 1);
    end(&r);
}

/* Five tries are counted from the last progress. */
static void progress_gives_further_tries(void **state)
{
    enum { STEP = 64 << 10 };
    heft_request r = { .target = &plain, .pinned = &first, .size = SIZE, .length = 4 };
    (void)state;
    for (unsigned step = STEP - 1; step <= STEP; step++) {
        r.tries = r.slow_tries = 0;
        r.have = 0;
        for (unsigned i = 1; i <= 3 * MAX_TRIES; i++) {
            assert_true(begin(&r));
            r.have += step;
            server.code = 206;
            bool is_repeated = heft_transfer_judge(&r, CURLE_RECV_ERROR);
            assert_int_equal(is_repeated, step == STEP || i < MAX_TRIES);
            end(&r);
            if (!is_repeated)
                break;
        }
        r.status = HEFT_OK;
    }
}

static void transfers_that_are_slow_are_ended(void **state)
{
    static const struct {
        curl_off_t moved; /* by steps of a second */
        bool is_completion;
        int ends; /* after so many seconds; 0: never */
    } cases[] = { { 0, false, 11 }, { 99, false, 11 }, { 100, false, 0 },
                  { 0, true, 41 },  { 1, true, 0 },    { 1 << 20, false, 0 } };
    (void)state;
    options.timeout = 10;
    options.slowest = 100;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t buf[4];
        heft_exchange x = { .method = "POST", .query = "", .ends_upload = true };
        heft_request r = { .target = &plain,
                           .exchange = cases[i].is_completion ? &x : NULL,
                           .buf = buf,
                           .length = 4 };
        int ended = 0;
        assert_true(begin(&r));
        server.connected = 0;
        server.received = 0;
        assert_false(heft_transfer_is_slow(&r, 1));
        assert_false(heft_transfer_is_slow(&r, 1000000));
        server.connected = 1;
        for (int second = 1; second < 100 && !ended; second++) {
            if (heft_transfer_is_slow(&r, 2000000 + second * 1000))
                ended = second;
            server.received += cases[i].moved;
        }
        if (ended != cases[i].ends)
            fail_msg("case %zu: %d", i, ended);
        if (ended) {
            r.tries = MAX_TRIES;
            server.code = 0;
            assert_false(heft_transfer_judge(&r, CURLE_OPERATION_TIMEDOUT));
            assert_non_null(strstr(r.error.message, "less than 100 bytes per second for 10"));
        }
        end(&r);
    }
}

/* A stalled server costs `timeout` seconds each time. */
static void slow_transfers_are_repeated_once(void **state)
{
    uint8_t buf[4];
    heft_request r = { .target = &plain, .buf = buf, .length = 4 };
    (void)state;
    server.code = 0;
    for (int i = 0; i < 2; i++) {
        assert_true(begin(&r));
        assert_int_equal(heft_transfer_judge(&r, CURLE_OPERATION_TIMEDOUT), !i);
        end(&r);
    }
}

static void cancelled_and_failed_requests_are_not_repeated(void **state)
{
    uint8_t buf[4];
    heft_request r = { .target = &plain, .buf = buf, .length = 4, .is_cancelled = true };
    (void)state;
    assert_true(begin(&r));
    server.code = 503;
    assert_false(heft_transfer_judge(&r, CURLE_OK));
    assert_int_equal(r.status, HEFT_OK);
    r.is_cancelled = false;
    r.status = HEFT_E_NOMEM;
    assert_false(heft_transfer_judge(&r, CURLE_OK));
    assert_int_equal(r.status, HEFT_E_NOMEM);
    end(&r);
}

/* ---- calls of S3 ---- */

static void calls_are_done_with_any_status_of_success(void **state)
{
    static const struct {
        CURLcode result;
        long code;
        bool is_done;
    } cases[] = { { CURLE_OK, 199, false },        { CURLE_OK, 200, true },
                  { CURLE_OK, 204, true },         { CURLE_OK, 299, true },
                  { CURLE_OK, 300, false },        { CURLE_OK, 403, false },
                  { CURLE_READ_ERROR, 200, false } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        heft_exchange x = { .method = "PUT", .query = "" };
        heft_request r = { .target = &plain, .exchange = &x };
        assert_true(begin(&r));
        server.code = cases[i].code;
        assert_false(heft_transfer_judge(&r, cases[i].result));
        assert_int_equal(x.code, cases[i].code);
        assert_int_equal(r.status, cases[i].is_done ? HEFT_OK : HEFT_E_IO);
        if (cases[i].result)
            assert_non_null(strstr(r.error.message, "cannot be written to the server"));
        end(&r);
    }
}

static void the_text_of_an_answer_is_cut(void **state)
{
    static const struct {
        size_t size, first, second, len;
    } cases[] = { { 8, 7, 0, 7 }, { 8, 8, 0, 7 }, { 8, 3, 4, 7 },
                  { 8, 3, 5, 7 }, { 1, 3, 0, 0 }, { 0, 3, 0, 0 } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[16], body[] = "0123456789";
        memset(text, '#', sizeof text);
        *text = '\0';
        heft_exchange x = {
            .method = "GET", .query = "", .text = text, .text_size = cases[i].size
        };
        heft_request r = { .target = &plain, .exchange = &x };
        assert_true(begin(&r));
        assert_int_equal(sent.on_body(body, 1, cases[i].first, &r), cases[i].first);
        assert_int_equal(sent.on_body(body, 1, cases[i].second, &r), cases[i].second);
        assert_int_equal(strlen(text), cases[i].len);
        assert_int_equal(text[cases[i].size ? cases[i].size : 1], '#');
        end(&r);
    }
}

static void bodies_and_digests_are_sent(void **state)
{
    static const char nothing[] =
        "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n";
    static const char type[] = "Content-Type: application/octet-stream\n";
    static const struct {
        const char *method, *body, *digest, *header, *first_line, *further;
        bool has_body;
    } cases[] = {
        { "GET", NULL, "", NULL, nothing, "", false },
        { "DELETE", NULL, "", NULL, nothing, "", false },
        { "POST", NULL, "", "If-None-Match: *", nothing, "If-None-Match: *\n", true },
        { "PUT", "abc", "12", NULL, "x-amz-content-sha256: 12\n", type, true },
        { "PUT", "abc", "", NULL, "x-amz-content-sha256: UNSIGNED-PAYLOAD\n", type, true },
        { "PUT", "", "12", NULL, nothing, type, true },
    };
    heft_address signed_target = {
        .url = "https://host/key", .user = "k:s", .signature = "aws:s", .session = "token"
    };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        char expected[512];
        size_t k = i / 2;
        bool is_signed = i % 2;
        heft_exchange x = { .method = cases[k].method,
                            .query = "?uploads=",
                            .body = cases[k].body,
                            .header = cases[k].header };
        x.body_bytes = x.body ? strlen(cases[k].body) : 0;
        snprintf(x.digest, sizeof x.digest, "%s", cases[k].digest);
        heft_request r = { .target = is_signed ? &signed_target : &plain, .exchange = &x };
        assert_true(begin(&r));
        snprintf(expected, sizeof expected, "%s%s%s", is_signed ? cases[k].first_line : "",
                 is_signed ? "x-amz-security-token: token\n" : "", cases[k].further);
        assert_string_equal(sent.headers, expected);
        assert_string_equal(text_of(CURLOPT_CUSTOMREQUEST), cases[k].method);
        assert_non_null(strstr(text_of(CURLOPT_URL), "?uploads="));
        assert_int_equal(text_of(CURLOPT_POSTFIELDS) != NULL, cases[k].has_body);
        assert_int_equal(r.headers != NULL, *expected != '\0');
        if (cases[k].has_body)
            assert_string_equal(text_of(CURLOPT_POSTFIELDS), x.body ? cases[k].body : "");
        assert_int_equal(number_of(CURLOPT_POSTFIELDSIZE_LARGE),
                         cases[k].has_body ? (long)x.body_bytes : -1);
        end(&r);
    }
}

/* Bytes of the first answer may have been read: the next answer must begin with the same. */
static void a_repeated_whole_file_begins_alike(void **state)
{
    static const struct {
        curl_off_t length;
        char byte; /* a byte of the second answer */
        long code;
        const char *message; /* NULL: accepted */
    } cases[] = {
        { 10, 0, 200, NULL },      { 10, 1, 200, "changed" },       { 11, 0, 200, "changed" },
        { -1, 0, 200, "changed" }, { 10, 0, 206, "another range" },
    };
    (void)state;
    options.spool_bytes = 10;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t buf[4];
        char body[10] = { 0, 0, 0, 0, 0, cases[i].byte };
        heft_request r = { .target = &plain, .size = HEFT_UNKNOWN_LENGTH, .buf = buf, .length = 4 };
        server.length = 10;
        assert_true(begin(&r));
        assert_true(receive_answer(&r, 200, "", 6));
        assert_true(heft_transfer_judge(&r, CURLE_RECV_ERROR));
        heft_transfer_end(&r);

        assert_true(begin(&r));
        assert_null(text_of(CURLOPT_RANGE));
        assert_int_equal(r.have, 6);
        server.length = cases[i].length;
        server.code = cases[i].code;
        size_t taken = sent.on_body(body, 1, 3, &r) + sent.on_body(body + 3, 1, 7, &r);
        assert_int_equal(taken == 10, !cases[i].message);
        assert_false(heft_transfer_judge(&r, CURLE_OK));
        if (cases[i].message)
            assert_non_null(strstr(r.error.message, cases[i].message));
        else
            assert_true(r.have == 10 && r.spooled == 10 && r.size == 10 && !r.status);
        end(&r);
    }
}

static void memory_is_released_before_the_next_transfer(void **state)
{
    uint8_t buf[4];
    heft_request r = { .target = &plain, .buf = buf, .length = 4 };
    struct curl_slist kept;
    (void)state;
    has_handles = false;
    assert_false(begin(&r));
    has_handles = true;
    assert_true(begin(&r));
    end(&r);
    heft_address target = { .url = "https://host/key", .session = "token" };
    r = (heft_request){ .target = &target, .buf = buf, .length = 4, .headers = &kept };
    has_headers = false;
    assert_true(begin(&r));
    has_headers = true;
    assert_ptr_equal(r.headers, &kept);
    end(&r);
}

/* ---- trust ---- */

static void credentials_are_sent_to_the_first_host_only(void **state)
{
    heft_address targets[] = {
        { .url = "http://host/f" },
        { .url = "https://host/f" },
        { .url = "https://host/f", .bearer = "secret" },
        { .url = "https://host/f", .signature = "aws", .user = "k:s" },
        { .url = "httpsx://host/f" },
    };
    (void)state;
    unsetenv("CURL_CA_BUNDLE");
    unsetenv("SSL_CERT_FILE");
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        uint8_t buf[4];
        heft_request r = { .target = &targets[i], .buf = buf, .length = 4 };
        bool is_tls = !strncmp(targets[i].url, "https:", 6);
        assert_true(begin(&r));
        assert_string_equal(text_of(CURLOPT_PROTOCOLS_STR), is_tls ? "https" : "http,https");
        assert_string_equal(text_of(CURLOPT_REDIR_PROTOCOLS_STR), is_tls ? "https" : "http,https");
        assert_int_equal(number_of(CURLOPT_PIPEWAIT), is_tls);
        assert_int_equal(number_of(CURLOPT_FOLLOWLOCATION), !*targets[i].signature);
        assert_int_equal(text_of(CURLOPT_XOAUTH2_BEARER) != NULL, *targets[i].bearer != '\0');
        assert_int_equal(text_of(CURLOPT_AWS_SIGV4) != NULL, *targets[i].signature != '\0');
        assert_int_equal(text_of(CURLOPT_USERPWD) != NULL, *targets[i].signature != '\0');
        assert_int_equal(strstr(sent.headers, "sha256") != NULL, *targets[i].signature != '\0');
        assert_null(text_of(CURLOPT_CAINFO));
        end(&r);
    }
}

static void authorities_are_those_of_the_environment(void **state)
{
    static const struct {
        const char *bundle, *file, *expected;
    } cases[] = { { "", "", NULL }, { "b", "", "b" }, { "", "f", "f" }, { "b", "f", "b" } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t buf[4];
        heft_request r = { .target = &plain, .buf = buf, .length = 4 };
        setenv("CURL_CA_BUNDLE", cases[i].bundle, 1);
        setenv("SSL_CERT_FILE", cases[i].file, 1);
        assert_true(begin(&r));
        assert_int_equal(text_of(CURLOPT_CAINFO) != NULL, cases[i].expected != NULL);
        if (cases[i].expected)
            assert_string_equal(text_of(CURLOPT_CAINFO), cases[i].expected);
        end(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_compared_with_the_request),
        cmocka_unit_test(times_before_the_date_are_noted),
        cmocka_unit_test(failed_transfers_are_not_answers),
        cmocka_unit_test(a_repeated_request_asks_for_the_missing_bytes),
        cmocka_unit_test(whole_files_fit_the_limit),
        cmocka_unit_test(a_whole_file_needs_a_temporary_file),
        cmocka_unit_test(temporary_failures_are_repeated),
        cmocka_unit_test(a_server_may_delay_requests_by_five_minutes),
        cmocka_unit_test(failures_are_explained),
        cmocka_unit_test(long_bodies_of_failures_are_cut),
        cmocka_unit_test(progress_gives_further_tries),
        cmocka_unit_test(transfers_that_are_slow_are_ended),
        cmocka_unit_test(slow_transfers_are_repeated_once),
        cmocka_unit_test(cancelled_and_failed_requests_are_not_repeated),
        cmocka_unit_test(calls_are_done_with_any_status_of_success),
        cmocka_unit_test(the_text_of_an_answer_is_cut),
        cmocka_unit_test(bodies_and_digests_are_sent),
        cmocka_unit_test(a_repeated_whole_file_begins_alike),
        cmocka_unit_test(memory_is_released_before_the_next_transfer),
        cmocka_unit_test(credentials_are_sent_to_the_first_host_only),
        cmocka_unit_test(authorities_are_those_of_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
