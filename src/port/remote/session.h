/* session.h - declarations shared by the files of src/port/remote. */
#ifndef HEFT_PORT_REMOTE_SESSION_H
#define HEFT_PORT_REMOTE_SESSION_H
#include <heft/remote.h>

#include <curl/curl.h>
#include <stdatomic.h>

#include "folder/folder_choice.h"
#include "port/port.h"

/* ---- addresses, target.c ---- */

enum { HEFT_URL_MAX = HEFT_URL_BYTES };

/* The URL and the credentials of requests.  Secrets are empty if there are none. */
typedef struct heft_address {
    char url[HEFT_URL_MAX];
    char bearer[1024];   /* token of the Hugging Face hub */
    char user[1024];     /* "KEY:SECRET" of S3 */
    char signature[128]; /* text for CURLOPT_AWS_SIGV4; empty: not signed */
    char session[4096];  /* value of the header x-amz-security-token */
    bool is_repository;  /* the URL of a list of files; not of a file */
    bool is_hub_file;    /* the hub may state the SHA-256 of the file */
} heft_address;
heft_status heft_address_of(heft_address *out, const char *url, heft_error *err);
/* Find the credentials, region and endpoint of S3. */
heft_status heft_s3_target(heft_address *t, const char *bucket_and_key, heft_error *err);

/* ---- repositories of the hub, hub_list.c ---- */

/* List the files of a folder of a repository, "" or "unet/", from the hub's answer.  *out is
 * initialised. */
void heft_hub_list_folder(heft_folder_listing *out, const heft_settings *s, const char *folder);
/* Write hf://OWNER/NAME@COMMIT/FOLDER/FILE for a file of the repository `url` to out, which has
 * HEFT_URL_MAX bytes. */
heft_status heft_hub_address(char *out, const char *url, const heft_settings *s, const char *folder,
                             const char *file, heft_error *err);

/* ---- answers, answer.c ---- */

/* The headers of an answer that Heft reads; texts are empty if the header is missing. */
typedef struct heft_answer {
    char etag[256], modified[64], date[64];
    char linked[72]; /* X-Linked-Etag, also of a redirect: the SHA-256 that the hub states */
    bool has_range, has_total, is_encoded;
    bool is_dated;               /* Last-Modified was long before Date: it is a strong validator */
    bool is_checked;             /* the range has been compared with the request */
    uint64_t first, last, total; /* Content-Range */
    /* A failure has the name and the text of the hub or of S3, cut and in printable ASCII. */
    char code[40], text[192], region[32];
    uint64_t reset; /* seconds, or the time since 1970, until requests are allowed; 0: not stated */
} heft_answer;
/* Return true if the ETag changes with every byte (RFC 9110 8.8.1): it does not begin with "W/". */
bool heft_answer_has_strong_etag(const heft_answer *a);
/* Take the code, the text and the region from a body in XML, where a header has not stated them. */
void heft_answer_body(heft_answer *a, const char *body);
/* Read a line of a header; a status line clears the answer.  Other lines are ignored. */
void heft_answer_line(heft_answer *a, heft_str line);

/* ---- requests, session.c ---- */

typedef struct heft_session heft_session;
enum heft_request_state { HEFT_REQUEST_QUEUED, HEFT_REQUEST_RUNNING, HEFT_REQUEST_DONE };

/* A call of S3 other than a request for a range. */
typedef struct heft_exchange {
    const char *method; /* "PUT" */
    const char *query;  /* appended to the URL: "?uploads=" */
    const char *header; /* a further header; NULL: none */
    const void *body;
    size_t body_bytes;
    char digest[65]; /* SHA-256 of the body as hexadecimal digits; empty: not known */
    char *text; /* receives the body of the answer, cut to text_size - 1 bytes and terminated */
    size_t text_size;
    bool ends_upload; /* is sent also after an interruption */
    long code;        /* HTTP status of the answer */
    heft_answer answer;
} heft_exchange;

/* The target of a redirect: the next requests for the file are sent to that address, until the
 * server refuses a request, as when a signed address has expired.  For the thread of the session
 * only. */
typedef struct heft_route {
    char url[HEFT_URL_MAX]; /* empty: not known */
} heft_route;

/* A request for a range; `state` and `status` change under the lock of the session. */
typedef struct heft_request {
    struct heft_request *next; /* in the queue, or in the list of running requests */
    const heft_address *target;
    heft_route *route;         /* the route of the file; NULL: none */
    bool is_routed;            /* this try is sent to the route */
    const heft_answer *pinned; /* first answer, with the version of the file; NULL: first request */
    uint64_t offset, size;     /* size: of the file; of the first request HEFT_UNKNOWN_LENGTH */
    uint8_t *buf;
    size_t length;
    _Atomic size_t have;   /* bytes received */
    _Atomic size_t wanted; /* a thread waits for so many bytes; SIZE_MAX: none waits */
    heft_scratch *spool;   /* receives a whole file; NULL: not begun */
    uint64_t spooled;      /* bytes in the spool; `have` counts them, too */
    uint64_t position;     /* bytes of the present answer; those before `spooled` are compared */
    bool is_whole;         /* the answer is the whole file */
    bool asks_whole;       /* ask for the whole file, of which bytes beyond a limit are dropped */
    bool is_cancelled;
    int state;
    heft_status status;
    heft_error error;
    heft_answer answer;
    unsigned tries, slow_tries;
    unsigned retry_after;  /* seconds that the server demands; 0: none */
    size_t begun_with;     /* bytes that earlier tries have received */
    int64_t window_begin;  /* time since which `window_bytes` is counted; 0: not connected */
    uint64_t window_bytes; /* bytes that had been sent and received at that time */
    bool is_slow;          /* the transfer was ended because it was too slow */
    char failure[1024];    /* beginning of the body of a failure, terminated */
    int64_t due;           /* do not send before this time, in milliseconds */
    void *easy, *headers;
    heft_session *session;
    const struct heft_curl *curl;
    heft_exchange *exchange; /* a call of S3; NULL: request a range */
} heft_request;

heft_status heft_session_new(heft_session **out, const heft_url_options *opt, heft_error *err);
heft_session *heft_session_share(heft_session *s);
void heft_session_release(heft_session *s); /* NULL is ignored */
const heft_url_options *heft_session_options(const heft_session *s);
/* Tell the user something, once; the lock is not held.  text: a literal. */
void heft_session_say(heft_session *s, const char *text);
void heft_session_lock(heft_session *s);
void heft_session_unlock(heft_session *s);
void heft_session_signal(heft_session *s); /* tell waiting threads that a request has changed */
void heft_session_wait(heft_session *s);   /* wait for a change of any request; the lock is held */
/* Wait until a request is done or has received `bytes` bytes; the lock is held. */
void heft_session_wait_for(heft_session *s, heft_request *r, size_t bytes);
/* Count received bytes, and tell the thread that waits for them. */
void heft_session_received(heft_session *s, heft_request *r, size_t bytes);
/* Send a request soon, before all others if is_urgent.  The lock is held.  The request stays the
 * caller's, who frees the request only when the state is HEFT_REQUEST_DONE. */
heft_status heft_session_send(heft_session *s, heft_request *r, bool is_urgent, heft_error *err);
void heft_session_cancel(heft_session *s, heft_request *r); /* the lock is held */
/* Return the number of requests that are not done; the lock is held. */
uint32_t heft_session_pending(const heft_session *s);

/* ---- writing, sink_s3.c ---- */

/* flags: see heft_sink_open_file().  HEFT_SINK_SYNC is ignored. */
heft_status heft_s3_sink_open(heft_sink **out, const char *url, uint32_t flags,
                              const heft_url_options *opt, heft_error *err);
/* Return true while this process writes an object: parts and downloaded blocks share memory. */
bool heft_s3_is_writing(void);

enum { HEFT_S3_ETAG = 64 };
/* Compute the ETag of an object from the ETags of its parts, `step` bytes apart; false: the server
 * has other ETags, or this build has no MD5. */
bool heft_s3_etag(char out[HEFT_S3_ETAG], const char *etags, size_t step, uint64_t count);

/* Return SHA-256, url_digest.c; NULL: this build has none. */
const heft_digest *heft_find_sha256(void);

/* ---- sources, source_url.c ---- */

/* Begin to open a source, without waiting for the server. */
heft_status heft_url_source_begin(heft_source **out, heft_session *s, const heft_address *target,
                                  heft_error *err);
/* Wait for the first answer, and set the size of the source. */
heft_status heft_url_source_finish(heft_source *source, heft_error *err);
/* Replace an open source by a source that keeps the blocks on the disk, resumed_source.c.  opt is
 * borrowed from the session.  After an error the caller closes the source, too. */
heft_status heft_resumed_source(heft_source **source, const heft_url_options *opt, heft_error *err);
/* Read a file of at most `most` bytes as a whole; *out has room for a byte more. */
heft_status heft_url_read_whole(char **out, size_t *length, heft_session *s,
                                const heft_address *target, uint64_t most, heft_error *err);

/* ---- one transfer of a request through libcurl ---- */

/* Members are named like the functions, without "curl_". */
typedef struct heft_curl {
    CURLcode (*global_init)(long flags);
    curl_version_info_data *(*version_info)(CURLversion age);
    time_t (*getdate)(const char *text, const time_t *unused);
    CURL *(*easy_init)(void);
    void (*easy_cleanup)(CURL *e);
    CURLcode (*easy_setopt)(CURL *e, CURLoption option, ...);
    CURLcode (*easy_getinfo)(CURL *e, CURLINFO info, ...);
    const char *(*easy_strerror)(CURLcode code);
    CURLM *(*multi_init)(void);
    CURLMcode (*multi_cleanup)(CURLM *m);
    CURLMcode (*multi_setopt)(CURLM *m, CURLMoption option, ...);
    CURLMcode (*multi_add_handle)(CURLM *m, CURL *e);
    CURLMcode (*multi_remove_handle)(CURLM *m, CURL *e);
    CURLMcode (*multi_perform)(CURLM *m, int *running);
    CURLMcode (*multi_poll)(CURLM *m, struct curl_waitfd *more, unsigned count, int timeout,
                            int *ready);
    CURLMcode (*multi_wakeup)(CURLM *m);
    CURLMsg *(*multi_info_read)(CURLM *m, int *left);
    struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
    void (*slist_free_all)(struct curl_slist *list);
} heft_curl;

/* Prepare r->easy for the next transfer of the request; false: out of memory. */
bool heft_transfer_begin(heft_request *r);
/* Judge a finished transfer; return true if the request should be repeated. */
bool heft_transfer_judge(heft_request *r, CURLcode result);
/* Return true if a running transfer must be ended, because too few bytes were moved for some time.
 * now: the time in milliseconds. */
bool heft_transfer_is_slow(heft_request *r, int64_t now);
/* Free r->easy after the session has released the handle. */
void heft_transfer_end(heft_request *r);

/* ---- failures, failure.c ---- */

/* Return the HTTP status of the answer, or 0. */
long heft_request_code(const heft_request *r);
/* Let the request fail with this message. */
heft_status heft_request_reject(heft_request *r, heft_status st, const char *text);
/* Judge a transfer that failed, or whose status says so; return true if the request should be
 * repeated, after r->retry_after seconds if that is not 0.  is_answer: a truncated answer. */
bool heft_failure_judge(heft_request *r, CURLcode result, bool is_answer);

#endif
