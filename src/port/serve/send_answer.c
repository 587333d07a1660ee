/* send_answer.c - sends a sentence, a file or a range of it, or nothing for as long as a page is
 * open. */
#include "port/serve/server.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The policy of the page, see docs/web.md; workers take it from the answer. */
#define POLICY                                                                     \
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; " \
    "img-src 'self'; manifest-src 'self'; worker-src 'self'; "                     \
    "connect-src 'self' https: http://localhost:* http://127.0.0.1:*; "            \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static void add_common(const heft_http *h, struct MHD_Response *r, const char *type)
{
    const char *const headers[][2] = {
        { "Content-Type", type },
        { "Content-Security-Policy", POLICY },
        { "Cross-Origin-Resource-Policy", "same-origin" },
        { "Cross-Origin-Opener-Policy", "same-origin" },
        { "Referrer-Policy", "no-referrer" },
        { "X-Content-Type-Options", "nosniff" },
        { "Cache-Control", "no-store" }, /* another server may have the port tomorrow */
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        h->add_header(r, headers[i][0], headers[i][1]);
}

/* Send the answer, which is released; NULL: no memory, the connection is closed. */
static enum MHD_Result send_answer(const heft_http *h, struct MHD_Connection *c, unsigned status,
                                   struct MHD_Response *r, const char *type)
{
    if (!r)
        return MHD_NO;
    add_common(h, r, type);
    enum MHD_Result sent = h->queue(c, status, r);
    h->destroy(r);
    return sent;
}

static struct MHD_Response *of_text(const heft_http *h, const char *text)
{
    return h->of_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
}

enum MHD_Result heft_answer_text(heft_server *s, struct MHD_Connection *c, unsigned status,
                                 const char *text)
{
    char line[256];
    snprintf(line, sizeof line, "%s\n", text);
    struct MHD_Response *r = of_text(s->http, line);
    if (r && status == MHD_HTTP_METHOD_NOT_ALLOWED)
        s->http->add_header(r, "Allow", "GET, HEAD");
    return send_answer(s->http, c, status, r, "text/plain; charset=utf-8");
}

/* After a link on another page browsers keep the cookie back, from redirections, too; a page of our
 * own gets it. */
static bool is_link_of_others(heft_server *s, struct MHD_Connection *c)
{
    const char *from = s->http->value(c, MHD_HEADER_KIND, "Sec-Fetch-Site");
    return from && (!strcmp(from, "cross-site") || !strcmp(from, "same-site"));
}

/* The start is percent-encoded, except for '&' before the second model. */
static struct MHD_Response *make_step(const heft_http *h, const char *start)
{
    static const char head[] = "<!DOCTYPE html><title>Heft</title><meta http-equiv=\"refresh\" "
                               "content=\"0; url=";
    size_t size = sizeof head + strlen(start) + sizeof "\">";
    char *text = malloc(size);
    if (!text)
        return NULL;
    snprintf(text, size, "%s%s\">", head, start);
    struct MHD_Response *r = of_text(h, text);
    free(text);
    return r;
}

enum MHD_Result heft_answer_start(heft_server *s, struct MHD_Connection *c)
{
    char cookie[sizeof s->cookie_name + SECRET_TEXT + 64];
    bool steps = is_link_of_others(s, c);
    struct MHD_Response *r = steps ? make_step(s->http, s->set->start) : of_text(s->http, "");
    snprintf(cookie, sizeof cookie, "%s=%s; Path=/; HttpOnly; SameSite=Strict", s->cookie_name,
             s->cookie);
    if (r)
        s->http->add_header(r, "Set-Cookie", cookie);
    if (r && !steps)
        s->http->add_header(r, "Location", s->set->start);
    return send_answer(s->http, c, steps ? MHD_HTTP_OK : MHD_HTTP_SEE_OTHER, r,
                       "text/html; charset=utf-8");
}

/* ---- files ---- */

typedef struct content {
    int fd;        /* a local file, or -1 */
    far_file *far; /* a file on another server, or NULL */
    uint64_t size;
    char etag[80]; /* empty: none */
} content;

void heft_server_say(heft_server *s, uint32_t file, const heft_error *err)
{
    if (!s->set->failed)
        return;
    pthread_mutex_lock(&s->lock);
    s->set->failed(s->set->ctx, &s->set->files[file], err);
    pthread_mutex_unlock(&s->lock);
}

static void close_content(content *o)
{
    if (o->fd >= 0)
        close(o->fd);
    if (o->far)
        heft_far_let_go(o->far);
    o->fd = -1;
    o->far = NULL;
}

static heft_status open_local(content *out, const char *path, heft_error *err)
{
    struct stat info;
    out->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (out->fd < 0 || fstat(out->fd, &info))
        return heft_os_error(err, errno, "cannot be opened");
    if (!S_ISREG(info.st_mode))
        return heft_error_plain(err, HEFT_E_IO, "is not a regular file");
    out->size = (uint64_t)info.st_size;
    snprintf(out->etag, sizeof out->etag, "\"%" PRIx64 "-%" PRIx64 "-%" PRIx64 ".%lx\"", out->size,
             (uint64_t)info.st_ino, (uint64_t)info.st_mtim.tv_sec,
             (unsigned long)info.st_mtim.tv_nsec);
    return HEFT_OK;
}

static heft_status open_address(content *out, heft_server *s, uint32_t file, heft_error *err)
{
    HEFT_TRY(heft_far_use(&out->far, s, file, err));
    out->size = out->far->source->size;
    snprintf(out->etag, sizeof out->etag, "\"%" PRIx64 "-%" PRIx32 "\"", out->size,
             out->far->version);
    return HEFT_OK;
}

static heft_status open_content(content *out, heft_server *s, uint32_t file, heft_error *err)
{
    const heft_served_file *f = &s->set->files[file];
    *out = (content){ .fd = -1, .size = f->data.len };
    if (!f->location)
        return HEFT_OK;
    return heft_is_url(f->location) ? open_address(out, s, file, err)
                                    : open_local(out, f->location, err);
}

/* Make the answer with the bytes, which keeps what it reads from open. */
static heft_status make_answer(struct MHD_Response **out, heft_server *s, content *o, uint32_t file,
                               uint64_t from, uint64_t length, heft_error *err)
{
    const heft_http *h = s->http;
    if (o->far) {
        far_file *far = o->far;
        o->far = NULL;
        return heft_far_answer(out, far, from, length, err);
    }
    if (o->fd < 0) {
        *out = h->of_buffer((size_t)length, (char *)(uintptr_t)s->set->files[file].data.ptr + from,
                            MHD_RESPMEM_PERSISTENT);
        return HEFT_OK;
    }
    *out = h->of_file(length, o->fd, from);
    o->fd = *out ? -1 : o->fd;
    return HEFT_OK;
}

static void add_place(const heft_http *h, struct MHD_Response *r, const content *o, uint64_t from,
                      uint64_t length)
{
    char text[80];
    snprintf(text, sizeof text, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, from, from + length - 1,
             o->size);
    h->add_header(r, "Content-Range", text);
}

static enum MHD_Result refuse_range(heft_server *s, struct MHD_Connection *c, const content *o)
{
    char text[48];
    struct MHD_Response *r = of_text(s->http, "");
    snprintf(text, sizeof text, "bytes */%" PRIu64, o->size);
    if (r)
        s->http->add_header(r, "Content-Range", text);
    return send_answer(s->http, c, MHD_HTTP_RANGE_NOT_SATISFIABLE, r, "text/plain; charset=utf-8");
}

/* A range of another version of the file is not sent: the whole is. */
static byte_range_kind range_of(heft_server *s, struct MHD_Connection *c, const content *o,
                                uint64_t *from, uint64_t *length)
{
    const char *range = s->http->value(c, MHD_HEADER_KIND, "Range");
    const char *version = s->http->value(c, MHD_HEADER_KIND, "If-Range");
    bool is_other = version && strcmp(version, o->etag) != 0;
    return heft_byte_range_read(from, length, is_other ? NULL : range, o->size);
}

/* The page shows the reason. */
static enum MHD_Result refuse_file(heft_server *s, struct MHD_Connection *c, const heft_error *err)
{
    char reason[256];
    size_t len = 0;
    for (const char *p = err->message; *p && len + 1 < sizeof reason; p++)
        reason[len++] = *p >= ' ' && *p <= '~' ? *p : '?';
    reason[len] = '\0';
    struct MHD_Response *r = of_text(s->http, reason);
    if (r)
        s->http->add_header(r, "X-Error-Message", reason);
    return send_answer(s->http, c, err->os == ENOENT ? MHD_HTTP_NOT_FOUND : MHD_HTTP_BAD_GATEWAY, r,
                       "text/plain; charset=utf-8");
}

static enum MHD_Result send_content(heft_server *s, struct MHD_Connection *c, content *o,
                                    uint32_t file)
{
    heft_error err;
    uint64_t from, length;
    struct MHD_Response *r;
    byte_range_kind kind = range_of(s, c, o, &from, &length);
    if (kind == RANGE_OUTSIDE)
        return refuse_range(s, c, o);
    if (make_answer(&r, s, o, file, from, length, &err))
        return refuse_file(s, c, &err);
    if (r && kind == RANGE_ONE)
        add_place(s->http, r, o, from, length);
    if (r && *o->etag)
        s->http->add_header(r, "ETag", o->etag);
    if (r)
        s->http->add_header(r, "Accept-Ranges", "bytes");
    return send_answer(s->http, c, kind == RANGE_ONE ? MHD_HTTP_PARTIAL_CONTENT : MHD_HTTP_OK, r,
                       s->set->files[file].type);
}

enum MHD_Result heft_answer_file(heft_server *s, struct MHD_Connection *c, uint32_t file)
{
    content o;
    heft_error err;
    enum MHD_Result sent;
    if (open_content(&o, s, file, &err)) {
        heft_server_say(s, file, &err);
        sent = refuse_file(s, c, &err);
    } else {
        sent = send_content(s, c, &o, file);
    }
    close_content(&o);
    return sent;
}

/* ---- the request that a page holds open ---- */

static void hold(heft_server *s, bool begins)
{
    pthread_mutex_lock(&s->lock);
    s->holders += begins ? 1 : UINT32_MAX; /* the latter is -1 */
    s->was_held = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* A byte that cannot be sent tells that the page was closed. */
static ssize_t beat(void *ctx, uint64_t at, char *buf, size_t max)
{
    const struct timespec pause = { 0, 500000000 };
    (void)ctx, (void)max;
    if (at)
        nanosleep(&pause, NULL);
    *buf = '\n';
    return 1;
}

static void end_hold(void *server)
{
    hold(server, false);
}

enum MHD_Result heft_answer_alive(heft_server *s, struct MHD_Connection *c)
{
    enum { BLOCK = 16 };
    struct MHD_Response *r = s->http->of_callback(MHD_SIZE_UNKNOWN, BLOCK, beat, s, end_hold);
    if (r)
        hold(s, true);
    return send_answer(s->http, c, MHD_HTTP_OK, r, "text/plain; charset=utf-8");
}
