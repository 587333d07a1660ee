/* session.c - requests of one model, sent by a thread through libcurl.
 *
 * All sources of a model share the thread, the connections and the limit on requests at the same
 * time.  After a temporary failure a request is repeated, from the first missing byte. */
#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "port/remote/session.h"

enum { MAX_TRIES = 5, FIRST_DELAY = 100, MAX_DELAY = 60000, MAX_REDIRECTS = 5, IDLE = 1000 };

struct heft_session {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    CURLM *multi;
    heft_request *queue, *running;
    heft_url_options options;
    unsigned users, running_count;
    bool has_thread, is_ending;
};

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- answers ---- */

static size_t on_header(char *data, size_t unit, size_t count, void *ctx)
{
    heft_request *r = ctx;
    heft_answer_line(&r->answer, (heft_str){ data, unit * count });
    return unit * count;
}

static heft_status reject(heft_request *r, heft_status st, const char *text)
{
    r->status = heft_error_plain(&r->error, st, "%s", text);
    r->error.os = EIO;
    return r->status;
}

static heft_status changed(heft_request *r)
{
    return reject(r, HEFT_E_IO, "the file changed on the server while it was being read");
}

/* Compare the version of the file with the version of the first answer. */
static heft_status check_version(heft_request *r)
{
    const heft_answer *a = &r->answer, *pinned = r->pinned;
    if (!pinned)
        return HEFT_OK;
    bool is_same = !strcmp(a->etag, pinned->etag) && !strcmp(a->modified, pinned->modified);
    return is_same && (!a->has_total || a->total == r->size) ? HEFT_OK : changed(r);
}

/* The range of an answer must begin at the first missing byte. */
static heft_status check_range(heft_request *r)
{
    const heft_answer *a = &r->answer;
    uint64_t first = r->offset + r->have, last = r->offset + r->length - 1;
    if (!a->has_range)
        return reject(r, HEFT_E_IO, "the server sent a range without saying which");
    if (check_version(r))
        return r->status;
    if (!r->pinned && !a->has_total)
        return reject(r, HEFT_E_IO, "the server does not say how large the file is");
    if (!r->pinned && !r->have)
        r->size = a->total;
    if (a->has_total && a->total != r->size)
        return changed(r);
    if (last >= r->size)
        last = r->size - 1;
    if (a->first != first || a->last != last)
        return reject(r, HEFT_E_IO, "the server sent another range than the one requested");
    return HEFT_OK;
}

static long status_of(const heft_request *r)
{
    long code = 0;
    curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &code);
    return code;
}

static bool begin_spool(heft_request *r)
{
    curl_off_t length = -1;
    curl_easy_getinfo(r->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    uint64_t limit = r->session->options.spool_bytes;
    heft_error why;
    if (length > 0 && (uint64_t)length > limit)
        r->status = heft_error_plain(&r->error, HEFT_E_LIMIT,
                                     "the server sends no ranges, and the file has %U bytes, more "
                                     "than the limit of %U for a whole download",
                                     (uint64_t)length, limit);
    else if (heft_scratch_temporary(&r->spool, length > 0 ? (uint64_t)length : 0, &why))
        reject(r, HEFT_E_IO, why.message);
    r->is_whole = true;
    return !r->status;
}

static bool store_whole(heft_request *r, const void *data, size_t len)
{
    if (!r->spool && !begin_spool(r))
        return false;
    if (len > r->session->options.spool_bytes - r->spooled) {
        r->status = heft_error_plain(&r->error, HEFT_E_LIMIT,
                                     "the server sends no ranges, and the file has more bytes than "
                                     "the limit of %U for a whole download",
                                     r->session->options.spool_bytes);
        return false;
    }
    r->spooled += len;
    r->status = r->spool->ops->write(r->spool, data, len, &r->error);
    return !r->status;
}

static bool store_range(heft_request *r, const char *data, size_t len)
{
    heft_session *s = r->session;
    if (!r->answer.is_checked && check_range(r))
        return false;
    r->answer.is_checked = true;
    if (len > r->length - r->have) {
        reject(r, HEFT_E_IO, "the server sent more bytes than requested");
        return false;
    }
    memcpy(r->buf + r->have, data, len);
    pthread_mutex_lock(&s->lock);
    r->have += len;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return true;
}

/* Bodies of other statuses are read and dropped, so that the connection stays usable. */
static size_t on_body(char *data, size_t unit, size_t count, void *ctx)
{
    heft_request *r = ctx;
    size_t len = unit * count;
    long code = status_of(r);
    if (code != 200 && code != 206)
        return len;
    if (r->answer.is_encoded) {
        reject(r, HEFT_E_IO,
               "the server sends the file in a compressed form that was not "
               "requested");
        return 0;
    }
    if (code == 200 && r->pinned) {
        changed(r);
        return 0;
    }
    return (code == 200 ? store_whole(r, data, len) : store_range(r, data, len)) ? len : 0;
}

/* Retry-After as a number of seconds; libcurl reads both forms of the header. */
static unsigned retry_after(const heft_request *r)
{
    curl_off_t seconds = 0;
    curl_easy_getinfo(r->easy, CURLINFO_RETRY_AFTER, &seconds);
    return seconds <= 0 ? 0 : seconds > MAX_DELAY / 1000 ? MAX_DELAY / 1000 : (unsigned)seconds;
}

static bool is_temporary_status(long code)
{
    return code == 408 || code == 429 || code == 500 || code == 502 || code == 503 || code == 504;
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

static void fail_status(heft_request *r, long code)
{
    const char *advice = code == 401 || code == 403
                             ? ": access is not allowed; check the credentials (docs/remote.md)"
                         : code == 429 ? ": too many requests"
                                       : "";
    bool is_missing = code == 404 || code == 410;
    r->status = heft_error_plain(&r->error, HEFT_E_IO,
                                 is_missing ? "does not exist on the server (HTTP status %U)%s"
                                            : "the server answered with HTTP status %U%s",
                                 (uint64_t)code, advice);
    r->error.os = is_missing ? ENOENT : code == 401 || code == 403 ? EACCES : EIO;
}

/* Judge a finished transfer; return true if the request should be repeated. */
static bool judge(heft_request *r, CURLcode result)
{
    char text[320];
    long code = status_of(r);
    if (r->status || r->is_cancelled)
        return false;
    bool is_range = code == 206, is_answer = result == CURLE_OK && (is_range || code == 200);
    uint64_t end = r->size == HEFT_UNKNOWN_LENGTH || r->size - r->offset > r->length
                       ? r->length
                       : r->size - r->offset;
    if (result == CURLE_OK && code == 416 && !r->pinned && r->answer.has_total &&
        !r->answer.total) {
        r->size = 0;
        return false;
    }
    if (is_answer && code == 200 && r->pinned) {
        changed(r);
        return false;
    }
    if (is_answer && code == 200) { /* also for a body without a byte */
        r->is_whole = true;
        return false;
    }
    if (is_answer && r->have == end && end && r->size != HEFT_UNKNOWN_LENGTH)
        return false;
    bool is_temporary = result == CURLE_OK ? is_answer || is_temporary_status(code)
                                           : is_temporary_failure(result);
    if (is_temporary && r->tries < MAX_TRIES) {
        r->retry_after = retry_after(r);
        return true;
    }
    if (result != CURLE_OK) {
        snprintf(text, sizeof text, "cannot be read from the server: %s",
                 curl_easy_strerror(result));
        reject(r, HEFT_E_IO, text);
    } else if (is_answer)
        reject(r, HEFT_E_IO, "the server's answer is truncated");
    else
        fail_status(r, code);
    return false;
}

/* ---- sending ---- */

/* A connection with TLS is redirected to TLS only.  libcurl sends credentials to the first host
 * only.  The header with the token of a session would be sent to every host, so that signed
 * requests follow no redirect. */
static void set_trust(CURL *e, const heft_address *t)
{
    bool is_tls = !strncmp(t->url, "https://", 8);
    const char *protocols = is_tls ? "https" : "http,https";
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, protocols);
    curl_easy_setopt(e, CURLOPT_REDIR_PROTOCOLS_STR, protocols);
    curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, *t->signature ? 0L : 1L);
    curl_easy_setopt(e, CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS);
    curl_easy_setopt(e, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    const char *authorities = secure_getenv("CURL_CA_BUNDLE");
    authorities = authorities && *authorities ? authorities : secure_getenv("SSL_CERT_FILE");
    if (authorities && *authorities)
        curl_easy_setopt(e, CURLOPT_CAINFO, authorities);
    if (*t->bearer) {
        curl_easy_setopt(e, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        curl_easy_setopt(e, CURLOPT_XOAUTH2_BEARER, t->bearer);
    }
    if (*t->signature) {
        curl_easy_setopt(e, CURLOPT_AWS_SIGV4, t->signature);
        curl_easy_setopt(e, CURLOPT_USERPWD, t->user);
    }
}

static void set_headers(heft_request *r)
{
    char line[sizeof r->target->session + 32];
    if (!*r->target->session)
        return;
    snprintf(line, sizeof line, "x-amz-security-token: %s", r->target->session);
    r->headers = curl_slist_append(NULL, line);
    curl_easy_setopt(r->easy, CURLOPT_HTTPHEADER, r->headers);
}

static bool begin(heft_session *s, heft_request *r)
{
    char range[64];
    CURL *e = r->easy = curl_easy_init();
    if (!e)
        return false;
    if (!r->pinned) { /* the first bytes may be of another version of the file */
        r->have = 0;
        r->size = HEFT_UNKNOWN_LENGTH;
    }
    uint64_t first = r->offset + r->have, last = r->offset + r->length - 1;
    snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, first, last);
    curl_easy_setopt(e, CURLOPT_URL, r->target->url);
    curl_easy_setopt(e, CURLOPT_RANGE, range);
    curl_easy_setopt(e, CURLOPT_USERAGENT, "heft");
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_PIPEWAIT, 1L);
    curl_easy_setopt(e, CURLOPT_BUFFERSIZE, 512L << 10);
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT, (long)s->options.timeout);
    curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, (long)s->options.timeout);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, r);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, r);
    curl_easy_setopt(e, CURLOPT_PRIVATE, r);
    set_trust(e, r->target);
    set_headers(r);
    if (r->spool)
        r->spool->ops->close(r->spool);
    r->spool = NULL;
    r->spooled = 0;
    r->tries++;
    return !curl_multi_add_handle(s->multi, e);
}

static void end_transfer(heft_session *s, heft_request *r)
{
    if (r->easy) {
        curl_multi_remove_handle(s->multi, r->easy);
        curl_easy_cleanup(r->easy);
    }
    curl_slist_free_all(r->headers);
    r->easy = r->headers = NULL;
}

static void unlink_from(heft_request **list, const heft_request *r)
{
    while (*list && *list != r)
        list = &(*list)->next;
    if (*list)
        *list = r->next;
}

static void finish(heft_session *s, heft_request *r)
{
    unlink_from(&s->queue, r);
    r->state = HEFT_REQUEST_DONE;
    pthread_cond_broadcast(&s->changed);
}

/* Begin the requests that are due; return the milliseconds until the next due request. */
static int begin_due(heft_session *s)
{
    int64_t at = now(), wait = IDLE;
    heft_request *next;
    for (heft_request *r = s->queue; r; r = next) {
        next = r->next;
        if (r->is_cancelled) {
            finish(s, r);
        } else if (r->due > at) {
            wait = r->due - at < wait ? r->due - at : wait;
        } else if (s->running_count < s->options.connections) {
            unlink_from(&s->queue, r);
            r->state = HEFT_REQUEST_RUNNING;
            if (begin(s, r)) {
                r->next = s->running;
                s->running = r;
                s->running_count++;
            } else {
                end_transfer(s, r);
                r->status = heft_error_no_memory(&r->error, "for a request");
                finish(s, r);
            }
        }
    }
    return (int)wait;
}

static void stop_running(heft_session *s, heft_request *r)
{
    end_transfer(s, r);
    unlink_from(&s->running, r);
    s->running_count--;
}

static void end_cancelled(heft_session *s)
{
    heft_request *next;
    for (heft_request *r = s->running; r; r = next) {
        next = r->next;
        if (!r->is_cancelled)
            continue;
        stop_running(s, r);
        finish(s, r);
    }
}

/* Delays double, with a random part so that many clients do not return at the same moment. */
static int64_t delay_of(const heft_request *r)
{
    uint8_t random;
    int64_t delay = FIRST_DELAY << (r->tries - 1);
    heft_os_entropy(&random, sizeof random);
    delay += delay * random / 512;
    return r->retry_after ? (int64_t)r->retry_after * 1000 : delay;
}

static void end_finished(heft_session *s)
{
    CURLMsg *m;
    int left;
    while ((m = curl_multi_info_read(s->multi, &left)) != NULL) {
        heft_request *r;
        CURLcode result = m->data.result;
        if (m->msg != CURLMSG_DONE || curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &r))
            continue;
        bool repeats = judge(r, result);
        pthread_mutex_lock(&s->lock);
        stop_running(s, r);
        if (repeats) {
            r->due = now() + delay_of(r);
            r->state = HEFT_REQUEST_QUEUED;
            r->next = s->queue;
            s->queue = r;
        } else
            finish(s, r);
        pthread_mutex_unlock(&s->lock);
    }
}

static void *run(void *ctx)
{
    heft_session *s = ctx;
    for (;;) {
        int active;
        pthread_mutex_lock(&s->lock);
        end_cancelled(s);
        int wait = begin_due(s);
        bool is_ending = s->is_ending;
        pthread_mutex_unlock(&s->lock);
        if (is_ending)
            return NULL;
        curl_multi_perform(s->multi, &active);
        end_finished(s);
        pthread_mutex_lock(&s->lock);
        bool has_work = s->queue && s->running_count < s->options.connections && wait == IDLE;
        pthread_mutex_unlock(&s->lock);
        curl_multi_poll(s->multi, NULL, 0, has_work ? 0 : wait, NULL);
    }
}

/* Signals are delivered to the threads of the program. */
static bool begin_thread(heft_session *s)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    s->has_thread = s->has_thread || !pthread_create(&s->thread, NULL, run, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return s->has_thread;
}

heft_status heft_session_send(heft_session *s, heft_request *r, bool is_urgent, heft_error *err)
{
    heft_request **at = &s->queue;
    while (*at && !is_urgent)
        at = &(*at)->next;
    if (!begin_thread(s))
        return heft_error_plain(err, HEFT_E_IO, "no thread for requests could be started");
    r->session = s;
    r->state = HEFT_REQUEST_QUEUED;
    r->next = *at;
    *at = r;
    curl_multi_wakeup(s->multi);
    return HEFT_OK;
}

void heft_session_cancel(heft_session *s, heft_request *r)
{
    r->is_cancelled = true;
    curl_multi_wakeup(s->multi);
}

/* ---- the session ---- */

static void global_init(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

heft_status heft_session_new(heft_session **out, const heft_url_options *opt, heft_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, global_init);
    heft_session *s = *out = calloc(1, sizeof *s);
    if (!s || !(s->multi = curl_multi_init())) {
        free(s);
        *out = NULL;
        return heft_error_no_memory(err, "for requests");
    }
    s->users = 1;
    s->options = *opt;
    heft_url_options *o = &s->options;
    o->spool_bytes = o->spool_bytes ? o->spool_bytes : UINT64_C(1) << 30;
    o->cache_bytes = o->cache_bytes ? o->cache_bytes : 64 << 20;
    o->connections = o->connections ? o->connections : 8;
    o->timeout = o->timeout ? o->timeout : 30;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    curl_multi_setopt(s->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)o->connections);
    curl_multi_setopt(s->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    return HEFT_OK;
}

heft_session *heft_session_share(heft_session *s)
{
    pthread_mutex_lock(&s->lock);
    s->users++;
    pthread_mutex_unlock(&s->lock);
    return s;
}

void heft_session_release(heft_session *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    bool is_last = !--s->users;
    s->is_ending = is_last;
    pthread_mutex_unlock(&s->lock);
    if (!is_last)
        return;
    if (s->has_thread) {
        curl_multi_wakeup(s->multi);
        pthread_join(s->thread, NULL);
    }
    curl_multi_cleanup(s->multi);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

const heft_url_options *heft_session_options(const heft_session *s)
{
    return &s->options;
}

void heft_session_lock(heft_session *s)
{
    pthread_mutex_lock(&s->lock);
}

void heft_session_unlock(heft_session *s)
{
    pthread_mutex_unlock(&s->lock);
}

void heft_session_wait(heft_session *s)
{
    pthread_cond_wait(&s->changed, &s->lock);
}
