/* failure.c - transfers that failed: which requests are repeated, and what the user is told.
 *
 * A request is tried at most MAX_TRIES times in a row without progress.  The hub states a reason in
 * the headers X-Error-Code and X-Error-Message, S3 in a body of XML. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "port/remote/session.h"

enum {
    MAX_TRIES = 5,
    MAX_SLOW = 2,
    MAX_WAIT = 300 /* seconds: the hub counts requests over five minutes */
};
enum { PROGRESS = 64 << 10 }; /* received bytes after which tries are counted anew */

long heft_request_code(const heft_request *r)
{
    long code = 0;
    r->curl->easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &code);
    return code;
}

heft_status heft_request_reject(heft_request *r, heft_status st, const char *text)
{
    r->status = heft_error_plain(&r->error, st, "%s", text);
    r->error.os = EIO;
    return r->status;
}

/* ---- statuses ---- */

/* Advice for the codes of the hub and of S3. */
static const struct {
    const char *code, *says;
    int os;
} reasons[] = {
    { "RepoNotFound",
      "the repository was not found: check its name; for a private one set HF_TOKEN", ENOENT },
    { "RevisionNotFound", "the revision was not found in the repository: check the name after '@'",
      ENOENT },
    { "EntryNotFound", "the file does not exist in the repository", ENOENT },
    { "GatedRepo", "the repository is gated: ask for access on its page, and set HF_TOKEN",
      EACCES },
    { "NoSuchBucket", "the bucket was not found: check its name and AWS_ENDPOINT_URL", ENOENT },
    { "NoSuchKey", "the object does not exist in the bucket", ENOENT },
    { "InvalidAccessKeyId", "the server does not know AWS_ACCESS_KEY_ID; check the credentials",
      EACCES },
    { "SignatureDoesNotMatch", "the signature is wrong; check the credentials", EACCES },
    { "ExpiredToken", "the credentials have expired: get new ones", EACCES },
    { "InvalidToken", "AWS_SESSION_TOKEN is not valid; check the credentials", EACCES },
    { "RequestTimeTooSkewed", "the clock of this machine differs from that of the server", EACCES },
    { "InvalidObjectState", "the object is in an archive: restore it first", EACCES },
};

/* Say what a status means, and what to do. */
static const char *advice_of(long code, const heft_answer *a, int *os)
{
    bool is_missing = code == 404 || code == 410, is_refused = code == 401 || code == 403;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (!strcmp(a->code, reasons[i].code)) {
            *os = reasons[i].os;
            return reasons[i].says;
        }
    *os = is_missing ? ENOENT : is_refused ? EACCES : EIO;
    return is_missing    ? "does not exist on the server"
           : is_refused  ? "access is not allowed; check the credentials (docs/remote.md)"
           : code == 429 ? "too many requests: try again later"
                         : "the server refused the request";
}

/* Fail with the advice, the status, and what the server says. */
static void fail_status(heft_request *r, long code)
{
    int os;
    char region[128] = "";
    const heft_answer *a = &r->answer;
    const char *advice = advice_of(code, a, &os);
    if (*a->region && (code == 301 || code == 307 || code == 400)) {
        snprintf(region, sizeof region, "the bucket is in the region %s: set AWS_REGION=%s",
                 a->region, a->region);
        advice = region;
    }
    r->status = heft_error_plain(&r->error, HEFT_E_IO, "%s (HTTP status %U%s%s%s%s)", advice,
                                 (uint64_t)code, *a->code ? ", " : "", a->code,
                                 *a->text ? ": " : "", a->text);
    r->error.os = os;
}

/* ---- repetitions ---- */

/* Return the seconds after which the server allows requests; 0: not stated.  libcurl reads both
 * forms of Retry-After, which has precedence (draft-ietf-httpapi-ratelimit-headers). */
static uint64_t stated_wait(const heft_request *r)
{
    enum { TIMES = 1000000000 }; /* larger numbers are times, not delays */
    curl_off_t seconds = 0;
    uint64_t reset = r->answer.reset, now = (uint64_t)time(NULL);
    r->curl->easy_getinfo(r->easy, CURLINFO_RETRY_AFTER, &seconds);
    if (seconds > 0)
        return (uint64_t)seconds;
    return reset < TIMES ? reset : reset > now ? reset - now : 0;
}

/* S3 gives status 400 to an upload that was interrupted. */
static bool is_temporary_status(long code, const heft_answer *a)
{
    return code == 408 || code == 429 || code == 500 || code == 502 || code == 503 || code == 504 ||
           (code == 400 && !strcmp(a->code, "RequestTimeout"));
}

static bool is_temporary_failure(CURLcode code)
{
    static const CURLcode codes[] = {
        CURLE_COULDNT_CONNECT, CURLE_OPERATION_TIMEDOUT, CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING,
        CURLE_SEND_ERROR,      CURLE_RECV_ERROR,         CURLE_HTTP2,        CURLE_HTTP2_STREAM,
        CURLE_HTTP3,           CURLE_QUIC_CONNECT_ERROR,
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i] == code)
            return true;
    return false;
}

/* Return true if the request may be tried again.  A request that continues after the received
 * bytes is not given up while bytes arrive. */
static bool has_tries(heft_request *r, CURLcode result)
{
    bool is_last = r->exchange && r->exchange->ends_upload && heft_url_is_interrupted();
    bool has_progress = r->pinned && r->have >= r->begun_with + PROGRESS;
    if (has_progress) {
        r->tries = 1;
        r->slow_tries = 0;
    }
    r->slow_tries += result == CURLE_OPERATION_TIMEDOUT;
    return r->tries < MAX_TRIES && r->slow_tries < MAX_SLOW && !is_last;
}

/* ---- messages ---- */

/* Say which redirect libcurl refused; false: the failure is another. */
static bool refuse_redirect(heft_request *r, CURLcode result)
{
    char address[160];
    const char *refused = NULL;
    bool is_tls = !strncmp(r->target->url, "https:", 6);
    r->curl->easy_getinfo(r->easy, CURLINFO_EFFECTIVE_URL, &refused);
    if (result != CURLE_UNSUPPORTED_PROTOCOL || !refused || r->exchange ||
        !strncmp(refused, "https:", 6) || (!is_tls && !strncmp(refused, "http:", 5)))
        return false;
    heft_url_redact(address, sizeof address, refused);
    r->status = heft_error_plain(&r->error, HEFT_E_IO,
                                 "the server redirects from %s to %s, which is refused: if you "
                                 "trust that address, open that address instead",
                                 is_tls ? "https" : "http", address);
    r->error.os = EIO;
    return true;
}

static void fail_slow(heft_request *r)
{
    const heft_url_options *o = heft_session_options(r->session);
    r->status = heft_error_plain(&r->error, HEFT_E_IO,
                                 "the server is too slow: less than %U bytes per second for %U "
                                 "seconds. Try again, or set HEFT_TIMEOUT (seconds) or "
                                 "HEFT_SLOWEST (bytes per second)",
                                 (uint64_t)o->slowest, (uint64_t)o->timeout);
    r->error.os = EIO;
}

static void fail(heft_request *r, CURLcode result, bool is_answer)
{
    char text[320];
    if (refuse_redirect(r, result))
        return;
    if (r->is_slow)
        fail_slow(r);
    else if (result != CURLE_OK) {
        snprintf(text, sizeof text, "%s the server: %s",
                 r->exchange ? "cannot be written to" : "cannot be read from",
                 r->curl->easy_strerror(result));
        heft_request_reject(r, HEFT_E_IO, text);
    } else if (is_answer)
        heft_request_reject(r, HEFT_E_IO, "the server's answer is truncated");
    else
        fail_status(r, heft_request_code(r));
}

bool heft_failure_judge(heft_request *r, CURLcode result, bool is_answer)
{
    heft_answer_body(&r->answer, r->failure);
    bool is_status = result == CURLE_OK && !is_answer;
    uint64_t wait = is_status ? stated_wait(r) : 0;
    bool is_temporary = is_status ? is_temporary_status(heft_request_code(r), &r->answer)
                                  : is_answer || is_temporary_failure(result);
    if (is_temporary && wait > MAX_WAIT) {
        r->status = heft_error_plain(&r->error, HEFT_E_IO,
                                     "the server allows no requests for %U seconds (HTTP status "
                                     "%U): try again then",
                                     wait, (uint64_t)heft_request_code(r));
        r->error.os = EIO;
        return false;
    }
    if (is_temporary && has_tries(r, result)) {
        r->retry_after = (unsigned)wait;
        return true;
    }
    fail(r, result, is_answer);
    return false;
}
