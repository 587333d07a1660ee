/* transfer.c - one transfer of a request through libcurl: requests and accepted answers.
 *
 * All functions run on the thread of the session. */
#include "port/remote/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_REDIRECTS = 5, LAST_SECONDS = 2 };
enum { BUFFER = 100 << 10 }; /* bytes that libcurl receives at once */

/* ---- answers ---- */

static size_t on_header(char *data, size_t unit, size_t count, void *ctx)
{
    heft_request *r = ctx;
    heft_answer_line(&r->answer, (heft_str){ data, unit * count });
    return unit * count;
}

static heft_status changed(heft_request *r)
{
    return heft_request_reject(r, HEFT_E_IO,
                               "the file changed on the server while it was being read");
}

/* Compare the version of the file with the version of the first answer. */
static heft_status check_version(heft_request *r)
{
    const heft_answer *a = &r->answer, *pinned = r->pinned;
    if (!pinned)
        return HEFT_OK;
    bool is_same = !strcmp(a->etag, pinned->etag) && !strcmp(a->modified, pinned->modified) &&
                   (r->is_routed || !strcmp(a->linked, pinned->linked));
    return is_same ? HEFT_OK : changed(r);
}

/* The range of an answer must begin at the first missing byte. */
static heft_status check_range(heft_request *r)
{
    const heft_answer *a = &r->answer;
    uint64_t first = r->offset + r->have, last = r->offset + r->length - 1;
    if (!a->has_range)
        return heft_request_reject(r, HEFT_E_IO, "the server sent a range without saying which");
    if (check_version(r))
        return r->status;
    if (!r->pinned && !a->has_total)
        return heft_request_reject(r, HEFT_E_IO, "the server does not say how large the file is");
    if (!r->pinned)
        r->size = a->total;
    if (a->has_total && a->total != r->size)
        return changed(r);
    if (last >= r->size)
        last = r->size - 1;
    if (a->first != first || a->last != last)
        return heft_request_reject(r, HEFT_E_IO,
                                   "the server sent another range than the one requested");
    return HEFT_OK;
}

/* ---- whole files ---- */

static heft_status fail_limit(heft_request *r, uint64_t size)
{
    uint64_t limit = heft_session_options(r->session)->spool_bytes;
    if (size == HEFT_UNKNOWN_LENGTH)
        return r->status = heft_error_plain(&r->error, HEFT_E_LIMIT,
                                            "the server sends no ranges, and the file has more "
                                            "bytes than the limit of %U for a whole download",
                                            limit);
    return r->status = heft_error_plain(&r->error, HEFT_E_LIMIT,
                                        "the server sends no ranges, and the file has %U bytes, "
                                        "more than the limit of %U for a whole download",
                                        size, limit);
}

/* Begin the storage with the first answer; a repeated answer must have the same size. */
static bool begin_answer(heft_request *r)
{
    curl_off_t length = -1;
    r->curl->easy_getinfo(r->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    uint64_t size = length > 0 ? (uint64_t)length : HEFT_UNKNOWN_LENGTH,
             limit = heft_session_options(r->session)->spool_bytes;
    heft_error why;
    if (r->spool && size != r->size)
        changed(r);
    else if (!r->spool && !r->asks_whole && length > 0 && size > limit)
        fail_limit(r, size);
    else if (!r->spool && heft_scratch_temporary(&r->spool, 0, &why))
        heft_request_reject(r, HEFT_E_IO, why.message);
    r->size = size;
    r->is_whole = true;
    return !r->status;
}

/* Compare bytes with those of an earlier answer, which may have been read.  Return their number. */
static size_t compare_earlier(heft_request *r, const char *data, size_t len)
{
    char earlier[4096];
    size_t done = 0;
    while (done < len && r->position < r->spooled && !r->status) {
        uint64_t left = r->spooled - r->position;
        size_t n = len - done < sizeof earlier ? len - done : sizeof earlier;
        n = n < left ? n : (size_t)left;
        r->status = heft_scratch_read(r->spool, r->position, earlier, n, &r->error);
        if (!r->status && memcmp(earlier, data + done, n) != 0)
            changed(r);
        r->position += n;
        done += n;
    }
    return done;
}

static bool store_whole(heft_request *r, const char *data, size_t len)
{
    uint64_t limit = heft_session_options(r->session)->spool_bytes;
    if (!r->position && !begin_answer(r))
        return false;
    size_t n = compare_earlier(r, data, len);
    if (r->status)
        return false;
    if (len - n > limit - r->spooled)
        return !fail_limit(r, r->size);
    r->status = n < len ? r->spool->ops->write(r->spool, data + n, len - n, &r->error) : HEFT_OK;
    if (r->status || n == len)
        return !r->status;
    r->spooled += len - n;
    r->position += len - n;
    heft_session_received(r->session, r, len - n);
    return true;
}

static bool store_range(heft_request *r, const char *data, size_t len)
{
    if (!r->answer.is_checked && check_range(r))
        return false;
    r->answer.is_checked = true;
    if (len > r->length - r->have) {
        heft_request_reject(r, HEFT_E_IO, "the server sent more bytes than requested");
        return false;
    }
    memcpy(r->buf + r->have, data, len);
    heft_session_received(r->session, r, len);
    return true;
}

/* Keep the beginning of the body of a failure; the rest is read and dropped, so that the connection
 * stays usable. */
static size_t keep_failure(heft_request *r, const char *data, size_t len)
{
    size_t have = strlen(r->failure), space = sizeof r->failure - 1 - have;
    memcpy(r->failure + have, data, len < space ? len : space);
    r->failure[have + (len < space ? len : space)] = '\0';
    return len;
}

static size_t on_body(char *data, size_t unit, size_t count, void *ctx)
{
    heft_request *r = ctx;
    size_t len = unit * count;
    long code = heft_request_code(r);
    if (code != 200 && code != 206)
        return keep_failure(r, data, len);
    if (r->answer.is_encoded) {
        heft_request_reject(r, HEFT_E_IO,
                            "the server sends the file in a compressed form that was not "
                            "requested");
        return 0;
    }
    if (code == 200 && r->pinned) {
        changed(r);
        return 0;
    }
    if (code == 206 && r->is_whole) {
        heft_request_reject(r, HEFT_E_IO, "the server sent another range than the one requested");
        return 0;
    }
    return (code == 200 ? store_whole(r, data, len) : store_range(r, data, len)) ? len : 0;
}

static size_t on_exchange_body(char *data, size_t unit, size_t count, void *ctx)
{
    heft_request *r = ctx;
    heft_exchange *x = r->exchange;
    if (heft_request_code(r) >= 300)
        keep_failure(r, data, unit * count);
    size_t have = r->have, space = x->text_size ? x->text_size - 1 - have : 0;
    size_t n = unit * count < space ? unit * count : space;
    if (n) {
        memcpy(x->text + have, data, n);
        x->text[have + n] = '\0';
        r->have = have + n;
    }
    return unit * count;
}

/* ---- the addresses of redirects ---- */

/* Return the length of "https://HOST:PORT". */
static size_t origin_length(const char *url)
{
    const char *host = strstr(url, "://");
    return host ? (size_t)(host - url) + 3 + strcspn(host + 3, "/?#") : 0;
}

static bool is_same_origin(const char *a, const char *b)
{
    size_t n = origin_length(a);
    return n && n == origin_length(b) && !memcmp(a, b, n);
}

/* Remember where redirects led, if that server states a version of the file: the first server could
 * no longer notice a change.  An address with a password is not taken along. */
static void keep_route(heft_request *r)
{
    const char *url = NULL, *target = r->target->url;
    r->curl->easy_getinfo(r->easy, CURLINFO_EFFECTIVE_URL, &url);
    bool is_redirect = url && r->route && !r->is_routed && strcmp(url, target) != 0;
    bool has_password = memchr(target, '@', origin_length(target)) != NULL;
    if (is_redirect && !has_password && heft_answer_has_strong_etag(&r->answer) &&
        strlen(url) < sizeof r->route->url)
        strcpy(r->route->url, url);
}

/* After a failure of the address that a redirect led to, ask the first server again; false: the
 * failure is another, or the address has failed too often. */
static bool leave_route(heft_request *r, CURLcode result)
{
    enum { MAX_FAILURES = 3 };
    bool is_lost = result != CURLE_OK || heft_request_code(r) >= 300;
    if (!r->is_routed || !is_lost || r->have > r->begun_with || r->tries > MAX_FAILURES)
        return false;
    *r->route->url = '\0';
    r->retry_after = 0;
    return true;
}

/* RFC 9110 §8.8.2.2: a time of change is a strong validator if the answer was made a second later
 * or more, because the file could change again within the second. */
static void note_date(heft_request *r)
{
    heft_answer *a = &r->answer;
    time_t changed_at = *a->modified ? r->curl->getdate(a->modified, NULL) : -1,
           sent_at = *a->date ? r->curl->getdate(a->date, NULL) : -1;
    a->is_dated = changed_at > 0 && sent_at > changed_at;
}

static bool judge_exchange(heft_request *r, CURLcode result)
{
    long code = r->exchange->code = heft_request_code(r);
    bool is_done = result == CURLE_OK && code >= 200 && code < 300;
    return !is_done && heft_failure_judge(r, result, false);
}

bool heft_transfer_judge(heft_request *r, CURLcode result)
{
    long code = heft_request_code(r);
    if (r->status || r->is_cancelled)
        return false;
    if (r->exchange)
        return judge_exchange(r, result);
    bool is_range = code == 206, is_answer = result == CURLE_OK && (is_range || code == 200);
    uint64_t left = r->size - r->offset, end = left < r->length ? left : r->length;
    if (result == CURLE_OK && code == 416 && !r->pinned && r->answer.has_total &&
        !r->answer.total) {
        r->size = 0;
        return false;
    }
    if (is_answer && code == 200 && r->pinned) {
        changed(r);
        return false;
    }
    if (is_answer) {
        note_date(r);
        keep_route(r);
    }
    if (is_answer && code == 200) { /* also for a body without a byte */
        r->is_whole = true;
        r->size = r->spooled;
        return false;
    }
    if (is_answer && r->have == end && end)
        return false;
    if (leave_route(r, result))
        return true;
    return heft_failure_judge(r, result, is_answer);
}

/* ---- sending ---- */

/* A connection with TLS is redirected to TLS only.  libcurl sends credentials to the first host
 * only.  The header with the token of a session would be sent to every host, so that signed
 * requests follow no redirect. */
static void set_trust(const heft_request *r, CURL *e)
{
    const heft_curl *curl = r->curl;
    const heft_address *t = r->target;
    bool is_tls = !strncmp(t->url, "https://", 8);
    bool is_first = !r->is_routed || is_same_origin(r->route->url, t->url);
    const char *protocols = is_tls ? "https" : "http,https";
    curl->easy_setopt(e, CURLOPT_PROTOCOLS_STR, protocols);
    curl->easy_setopt(e, CURLOPT_REDIR_PROTOCOLS_STR, protocols);
    curl->easy_setopt(e, CURLOPT_FOLLOWLOCATION, *t->signature ? 0L : 1L);
    curl->easy_setopt(e, CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS);
    curl->easy_setopt(e, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    const char *authorities = secure_getenv("CURL_CA_BUNDLE");
    authorities = authorities && *authorities ? authorities : secure_getenv("SSL_CERT_FILE");
    if (authorities && *authorities)
        curl->easy_setopt(e, CURLOPT_CAINFO, authorities);
    if (*t->bearer && is_first) {
        curl->easy_setopt(e, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        curl->easy_setopt(e, CURLOPT_XOAUTH2_BEARER, t->bearer);
    }
    if (*t->signature) {
        curl->easy_setopt(e, CURLOPT_AWS_SIGV4, t->signature);
        curl->easy_setopt(e, CURLOPT_USERPWD, t->user);
    }
}

static void add_header(heft_request *r, const char *line)
{
    struct curl_slist *longer = r->curl->slist_append(r->headers, line);
    r->headers = longer ? longer : r->headers;
}

/* Add the digest of the body: S3 requires the header, and libcurl signs the header. */
static void add_digest(heft_request *r)
{
    static const char of_nothing[] = "e3b0c44298fc1c149afbf4c8996fb924"
                                     "27ae41e4649b934ca495991b7852b855";
    char line[128];
    const heft_exchange *x = r->exchange;
    bool has_body = x && x->body_bytes;
    snprintf(line, sizeof line, "x-amz-content-sha256: %s",
             !has_body    ? of_nothing
             : *x->digest ? x->digest
                          : "UNSIGNED-PAYLOAD");
    add_header(r, line);
}

static void set_headers(heft_request *r)
{
    char line[sizeof r->target->session + 32];
    if (*r->target->signature)
        add_digest(r);
    if (*r->target->session) {
        snprintf(line, sizeof line, "x-amz-security-token: %s", r->target->session);
        add_header(r, line);
    }
    if (r->exchange && r->exchange->header)
        add_header(r, r->exchange->header);
    if (r->exchange && r->exchange->body) /* do not call the body a form */
        add_header(r, "Content-Type: application/octet-stream");
    r->curl->easy_setopt(r->easy, CURLOPT_HTTPHEADER, r->headers);
}

static void set_range(heft_request *r)
{
    char range[64];
    bool is_whole = r->is_whole || r->asks_whole;
    if (!r->pinned && !r->is_whole) { /* the first bytes may be of another version of the file */
        r->have = 0;
        r->size = HEFT_UNKNOWN_LENGTH;
    }
    r->is_routed = r->pinned && r->route && *r->route->url;
    uint64_t first = r->offset + r->have, last = r->offset + r->length - 1;
    snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, first, last);
    r->curl->easy_setopt(r->easy, CURLOPT_URL, r->is_routed ? r->route->url : r->target->url);
    if (!is_whole)
        r->curl->easy_setopt(r->easy, CURLOPT_RANGE, range);
    r->curl->easy_setopt(r->easy, CURLOPT_WRITEFUNCTION, on_body);
}

static void set_exchange(heft_request *r)
{
    enum { LONGEST_QUERY = 4096 };
    char url[HEFT_URL_MAX + LONGEST_QUERY];
    const heft_exchange *x = r->exchange;
    snprintf(url, sizeof url, "%s%s", r->target->url, x->query);
    r->have = 0;
    r->curl->easy_setopt(r->easy, CURLOPT_URL, url);
    r->curl->easy_setopt(r->easy, CURLOPT_CUSTOMREQUEST, x->method);
    if (strcmp(x->method, "GET") != 0 && strcmp(x->method, "DELETE") != 0) {
        r->curl->easy_setopt(r->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)x->body_bytes);
        r->curl->easy_setopt(r->easy, CURLOPT_POSTFIELDS, x->body ? x->body : "");
    }
    r->curl->easy_setopt(r->easy, CURLOPT_WRITEFUNCTION, on_exchange_body);
}

bool heft_transfer_begin(heft_request *r)
{
    const heft_curl *curl = r->curl;
    CURL *e = r->easy = curl->easy_init();
    if (!e)
        return false;
    if (r->exchange)
        set_exchange(r);
    else
        set_range(r);
    curl->easy_setopt(e, CURLOPT_USERAGENT, "heft");
    curl->easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(e, CURLOPT_PATH_AS_IS, 1L); /* "a/../b" is the name of an object of S3 */
    /* Without TLS there is no HTTP/2, and requests would wait for the first answer in vain. */
    curl->easy_setopt(e, CURLOPT_PIPEWAIT, strncmp(r->target->url, "https:", 6) ? 0L : 1L);
    /* A larger one would leave the processor's cache, and malloc() would map each one anew. */
    curl->easy_setopt(e, CURLOPT_BUFFERSIZE, (long)BUFFER);
    curl->easy_setopt(e, CURLOPT_CONNECTTIMEOUT, (long)heft_session_options(r->session)->timeout);
    if (heft_url_is_interrupted()) /* the end of an upload */
        curl->easy_setopt(e, CURLOPT_TIMEOUT, (long)LAST_SECONDS);
    curl->easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    curl->easy_setopt(e, CURLOPT_HEADERDATA, r);
    curl->easy_setopt(e, CURLOPT_WRITEDATA, r);
    curl->easy_setopt(e, CURLOPT_PRIVATE, r);
    set_trust(r, e);
    set_headers(r);
    r->position = 0;
    r->answer = (heft_answer){ .has_range = false };
    *r->failure = '\0';
    r->begun_with = r->have;
    r->window_begin = 0;
    r->is_slow = false;
    r->tries++;
    return true;
}

/* Return the bytes that were sent and received. */
static uint64_t moved_bytes(const heft_request *r)
{
    curl_off_t sent = 0, received = 0;
    long headers = 0;
    r->curl->easy_getinfo(r->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    r->curl->easy_getinfo(r->easy, CURLINFO_SIZE_DOWNLOAD_T, &received);
    r->curl->easy_getinfo(r->easy, CURLINFO_HEADER_SIZE, &headers);
    return (uint64_t)sent + (uint64_t)received + (uint64_t)headers;
}

/* S3 completes an upload in minutes, and sends a space from time to time meanwhile. */
bool heft_transfer_is_slow(heft_request *r, int64_t now)
{
    enum { PATIENCE = 4 };
    const heft_url_options *o = heft_session_options(r->session);
    bool is_completion = r->exchange && r->exchange->ends_upload;
    int64_t window = (int64_t)o->timeout * 1000 * (is_completion ? PATIENCE : 1);
    uint64_t least = is_completion ? 1 : (uint64_t)o->slowest * o->timeout, moved;
    curl_off_t connected = 0;
    r->curl->easy_getinfo(r->easy, CURLINFO_PRETRANSFER_TIME_T, &connected);
    if (!connected) /* CURLOPT_CONNECTTIMEOUT holds */
        return false;

    if (r->window_begin && now - r->window_begin < window)
        return false;
    moved = moved_bytes(r);
    r->is_slow = r->window_begin && moved - r->window_bytes < least;
    r->window_begin = now;
    r->window_bytes = moved;
    return r->is_slow;
}

void heft_transfer_end(heft_request *r)
{
    if (r->easy)
        r->curl->easy_cleanup(r->easy);
    r->curl->slist_free_all(r->headers);
    r->easy = r->headers = NULL;
}
