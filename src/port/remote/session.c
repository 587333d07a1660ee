/* session.c - requests of one model, sent by a thread through libcurl.
 *
 * All sources of a model share the thread, the connections and the limit on requests at the same
 * time.  After a temporary failure a request is repeated, from the first missing byte. */
#include "port/remote/session.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "port/port.h"
#include "port/system/loaded_library.h"

/* ---- loads libcurl when the first URL is opened ---- */

enum { OLDEST = 0x075500 }; /* 7.85: CURLOPT_REDIR_PROTOCOLS_STR */

static heft_curl functions;
static const char *missing; /* the reason against the use of libcurl, or NULL */

static const heft_library_function names[] = {
    { "curl_global_init", offsetof(heft_curl, global_init) },
    { "curl_version_info", offsetof(heft_curl, version_info) },
    { "curl_getdate", offsetof(heft_curl, getdate) },
    { "curl_easy_init", offsetof(heft_curl, easy_init) },
    { "curl_easy_cleanup", offsetof(heft_curl, easy_cleanup) },
    { "curl_easy_setopt", offsetof(heft_curl, easy_setopt) },
    { "curl_easy_getinfo", offsetof(heft_curl, easy_getinfo) },
    { "curl_easy_strerror", offsetof(heft_curl, easy_strerror) },
    { "curl_multi_init", offsetof(heft_curl, multi_init) },
    { "curl_multi_cleanup", offsetof(heft_curl, multi_cleanup) },
    { "curl_multi_setopt", offsetof(heft_curl, multi_setopt) },
    { "curl_multi_add_handle", offsetof(heft_curl, multi_add_handle) },
    { "curl_multi_remove_handle", offsetof(heft_curl, multi_remove_handle) },
    { "curl_multi_perform", offsetof(heft_curl, multi_perform) },
    { "curl_multi_poll", offsetof(heft_curl, multi_poll) },
    { "curl_multi_wakeup", offsetof(heft_curl, multi_wakeup) },
    { "curl_multi_info_read", offsetof(heft_curl, multi_info_read) },
    { "curl_slist_append", offsetof(heft_curl, slist_append) },
    { "curl_slist_free_all", offsetof(heft_curl, slist_free_all) },
};
static heft_loaded_library library = HEFT_LOADED_LIBRARY("libcurl.so.4", functions, names);

static void load(void)
{
    heft_library_state state = heft_library_load(&library);
    missing = state == HEFT_LIBRARY_OTHER
                  ? "URLs need libcurl 7.85 or later, and an older one is installed"
                  : "URLs need libcurl, which is not installed: install the package libcurl4";
    if (state != HEFT_LIBRARY_LOADED)
        return;
    missing = "URLs need libcurl 7.85 or later, and an older one is installed";
    if (functions.version_info(CURLVERSION_FIRST)->version_num < OLDEST)
        return;
    missing = functions.global_init(CURL_GLOBAL_DEFAULT) ? "libcurl cannot be initialised" : NULL;
}

/* Load libcurl once per process and return its functions.  Threads may call this at the same time.
 * The library stays loaded, because libraries that libcurl uses cannot be unloaded safely.
 *   HEFT_E_UNSUPPORTED  libcurl is not installed, or is older than 7.85 */
static heft_status curl_load(const heft_curl **out, heft_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    *out = missing ? NULL : &functions;
    return missing ? heft_error_plain(err, HEFT_E_UNSUPPORTED, "%s", missing) : HEFT_OK;
}

enum { FIRST_DELAY = 100, BUSY = 200, IDLE = 1000 }; /* milliseconds */

/* CURLOPT_QUICK_EXIT of libcurl 7.87; earlier versions ignore the number. */
static const CURLoption without_resolver = (CURLoption)(CURLOPTTYPE_LONG + 322);

struct heft_session {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    const heft_curl *curl;
    CURLM *multi;
    heft_request *queue, *running;
    heft_url_options options;
    unsigned users, running_count;
    uint32_t pending; /* requests that are queued or running */
    bool has_thread, is_ending;
    const char *said;   /* the last text of heft_session_say() */
    int64_t said_until; /* the user knows that requests wait until this time */
};

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- sending ---- */

static void end_transfer(heft_session *s, heft_request *r)
{
    if (r->easy && heft_url_is_interrupted()) /* do not wait for the name of the server */
        s->curl->easy_setopt(r->easy, without_resolver, 1L);
    if (r->easy)
        s->curl->multi_remove_handle(s->multi, r->easy);
    heft_transfer_end(r);
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
    s->pending--;
    pthread_cond_broadcast(&s->changed);
}

/* Return true if the request is cancelled, or ends by an interruption. */
static bool must_end(heft_request *r)
{
    bool ends_upload = r->exchange && r->exchange->ends_upload;
    if (heft_url_is_interrupted() && !ends_upload) {
        r->status = heft_error_plain(&r->error, HEFT_E_CANCELLED, "interrupted");
        r->is_cancelled = true;
    }
    return r->is_cancelled;
}

/* Begin the requests that are due; return the milliseconds until the next due request. */
static int begin_due(heft_session *s)
{
    int64_t at = now(), wait = IDLE;
    heft_request *next;
    for (heft_request *r = s->queue; r; r = next) {
        next = r->next;
        if (must_end(r)) {
            finish(s, r);
        } else if (r->due > at) {
            wait = r->due - at < wait ? r->due - at : wait;
        } else if (s->running_count < s->options.connections) {
            unlink_from(&s->queue, r);
            r->state = HEFT_REQUEST_RUNNING;
            if (heft_transfer_begin(r) && !s->curl->multi_add_handle(s->multi, r->easy)) {
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
        if (!must_end(r))
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

/* Tell the user why nothing happens; many requests wait for the same time. */
static void say_wait(heft_session *s, const heft_request *r)
{
    enum { NOTED = 2, SAME = 1000 };
    char host[128], text[256];
    if (r->retry_after < NOTED || r->due <= s->said_until + SAME || !s->options.say)
        return;
    s->said_until = r->due;
    heft_url_redact(host, sizeof host, r->target->url);
    const char *name = strstr(host, "://");
    name = name ? name + 3 : host;
    snprintf(text, sizeof text, "%.*s limits requests: waiting for %u seconds",
             (int)strcspn(name, "/?#"), name, r->retry_after);
    s->options.say(s->options.ctx, text);
}

static void end_one(heft_session *s, heft_request *r, CURLcode result)
{
    bool repeats = heft_transfer_judge(r, result);
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
    if (repeats) /* no other thread ends the request */
        say_wait(s, r);
}

/* End the transfers that are too slow: libcurl would wait for a server that sends a byte a second.
 * Only the thread of the session changes the list of running requests. */
static void end_slow(heft_session *s)
{
    int64_t at = now();
    heft_request *next;
    for (heft_request *r = s->running; r; r = next) {
        next = r->next;
        if (heft_transfer_is_slow(r, at))
            end_one(s, r, CURLE_OPERATION_TIMEDOUT);
    }
}

static void end_finished(heft_session *s)
{
    CURLMsg *m;
    int left;
    while ((m = s->curl->multi_info_read(s->multi, &left)) != NULL) {
        heft_request *r;
        CURLcode result = m->data.result;
        if (m->msg != CURLMSG_DONE || s->curl->easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &r))
            continue;
        end_one(s, r, result);
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
        int most = s->queue || s->running ? BUSY : IDLE; /* look for an interruption meanwhile */
        pthread_mutex_unlock(&s->lock);
        if (is_ending)
            return NULL;
        s->curl->multi_perform(s->multi, &active);
        end_finished(s);
        end_slow(s);
        pthread_mutex_lock(&s->lock);
        bool has_work = s->queue && s->running_count < s->options.connections && wait == IDLE;
        pthread_mutex_unlock(&s->lock);
        wait = wait < most ? wait : most;
        s->curl->multi_poll(s->multi, NULL, 0, has_work ? 0 : wait, NULL);
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
    r->curl = s->curl;
    r->state = HEFT_REQUEST_QUEUED;
    r->next = *at;
    *at = r;
    s->pending++;
    s->curl->multi_wakeup(s->multi);
    return HEFT_OK;
}

uint32_t heft_session_pending(const heft_session *s)
{
    return s->pending;
}

void heft_session_cancel(heft_session *s, heft_request *r)
{
    r->is_cancelled = true;
    s->curl->multi_wakeup(s->multi);
}

/* ---- the session ---- */

heft_status heft_session_new(heft_session **out, const heft_url_options *opt, heft_error *err)
{
    const heft_curl *curl;
    const heft_digest *sha256 = heft_find_sha256();
    *out = NULL;
    HEFT_TRY(curl_load(&curl, err));
    if (sha256)
        HEFT_TRY(heft_digest_load(sha256, err));
    heft_session *s = *out = calloc(1, sizeof *s);
    if (!s || !(s->multi = curl->multi_init())) {
        free(s);
        *out = NULL;
        return heft_error_no_memory(err, "for requests");
    }
    s->curl = curl;
    s->users = 1;
    s->options = *opt;
    heft_url_options *o = &s->options;
    o->spool_bytes = o->spool_bytes ? o->spool_bytes : UINT64_C(1) << 30;
    o->cache_bytes = o->cache_bytes ? o->cache_bytes : 64 << 20;
    o->connections = o->connections ? o->connections : 8;
    o->timeout = o->timeout ? o->timeout : 20;
    o->slowest = o->slowest ? o->slowest : 1024;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->curl->multi_setopt(s->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)o->connections);
    s->curl->multi_setopt(s->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
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
        s->curl->multi_wakeup(s->multi);
        pthread_join(s->thread, NULL);
    }
    s->curl->multi_cleanup(s->multi);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

const heft_url_options *heft_session_options(const heft_session *s)
{
    return &s->options;
}

void heft_session_say(heft_session *s, const char *text)
{
    pthread_mutex_lock(&s->lock);
    bool is_new = s->said != text;
    s->said = text;
    pthread_mutex_unlock(&s->lock);
    if (is_new && s->options.say)
        s->options.say(s->options.ctx, text);
}

void heft_session_lock(heft_session *s)
{
    pthread_mutex_lock(&s->lock);
}

void heft_session_unlock(heft_session *s)
{
    pthread_mutex_unlock(&s->lock);
}

void heft_session_signal(heft_session *s)
{
    pthread_cond_broadcast(&s->changed);
}

void heft_session_wait(heft_session *s)
{
    pthread_cond_wait(&s->changed, &s->lock);
}

void heft_session_wait_for(heft_session *s, heft_request *r, size_t bytes)
{
    while (r->state != HEFT_REQUEST_DONE && r->have < bytes) {
        r->wanted = r->wanted < bytes ? r->wanted : bytes;
        if (r->have < bytes) /* otherwise they arrived before `wanted` was set */
            heft_session_wait(s);
    }
}

/* libcurl passes 16 KiB at a time.  To lock the session and to wake a thread for each of them would
 * take longer than the transfer. */
void heft_session_received(heft_session *s, heft_request *r, size_t bytes)
{
    size_t have = atomic_fetch_add(&r->have, bytes) + bytes;
    if (have < r->wanted)
        return;
    pthread_mutex_lock(&s->lock);
    r->wanted = SIZE_MAX;
    heft_session_signal(s);
    pthread_mutex_unlock(&s->lock);
}
