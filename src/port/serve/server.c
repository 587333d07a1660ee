/* server.c - a server on the loopback interface: its socket, its secrets, and when it ends. */
#include "port/serve/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Seconds without a page until the server ends; a page that is loaded again needs less. */
enum { LONELY = 5, CONNECTIONS = 256, WAITING = 64, IDLE = 300 };

static heft_status make_secret(char out[SECRET_TEXT], heft_error *err)
{
    for (size_t i = 0; i + 1 < SECRET_TEXT; i += 16) {
        uint64_t random;
        HEFT_TRY(heft_random_u64(&random, err));
        snprintf(out + i, SECRET_TEXT - i, "%016" PRIx64, random);
    }
    return HEFT_OK;
}

/* The port of an earlier server is free at once, though its connections still end. */
static heft_status listen_at(heft_server *s, uint16_t port, heft_error *err)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
    socklen_t len = sizeof at;
    int yes = 1;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is = s->listener >= 0 &&
              !setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) &&
              !bind(s->listener, (const struct sockaddr *)&at, sizeof at) &&
              !listen(s->listener, WAITING) &&
              !getsockname(s->listener, (struct sockaddr *)&at, &len);
    s->port = ntohs(at.sin_port);
    if (is)
        return HEFT_OK;
    char what[64];
    int os = errno;
    snprintf(what, sizeof what, "port %u of 127.0.0.1 cannot be used", (unsigned)port);
    return heft_os_error(err, os, port ? what : "127.0.0.1 has no port to listen at");
}

static heft_status name_server(heft_server *s, heft_error *err)
{
    HEFT_TRY(make_secret(s->token, err));
    HEFT_TRY(make_secret(s->cookie, err));
    snprintf(s->cookie_name, sizeof s->cookie_name, "heft-%u", (unsigned)s->port);
    snprintf(s->address, sizeof s->address, "http://127.0.0.1:%u/?token=%s", (unsigned)s->port,
             s->token);
    return HEFT_OK;
}

heft_status heft_server_open(heft_server **out, uint16_t port, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    *out = NULL;
    heft_server *s = calloc(1, sizeof *s);
    if (!s)
        return heft_error_end(err, heft_error_no_memory(err, "for a server"));
    s->listener = -1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->opening, NULL);
    pthread_cond_init(&s->changed, NULL);
    heft_status st = heft_http_load(&s->http, err);
    if (!st)
        st = listen_at(s, port, err);
    if (!st)
        st = name_server(s, err);
    if (st) {
        heft_server_close(s);
        return heft_error_end(err, st);
    }
    *out = s;
    return HEFT_OK;
}

const char *heft_server_address(const heft_server *s)
{
    return s->address;
}

/* URLs are compared as they are sent; request.c has the only decoder. */
static size_t keep_escapes(void *ctx, struct MHD_Connection *c, char *text)
{
    (void)ctx, (void)c;
    return strlen(text);
}

static heft_status start(heft_server *s, heft_error *err)
{
    sigset_t pipe, before;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE); /* the threads of the server inherit this */
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    s->daemon = s->http->start(MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_THREAD_PER_CONNECTION, 0,
                               NULL, NULL, heft_server_answer, s, MHD_OPTION_LISTEN_SOCKET,
                               s->listener, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
                               MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE,
                               MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL, MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!s->daemon)
        return heft_error_plain(err, HEFT_E_IO, "libmicrohttpd cannot serve at port %u",
                                (unsigned)s->port);
    s->listener = -1; /* closed with the daemon */
    return HEFT_OK;
}

/* Wait until nobody has listened for some seconds. */
static void wait_for_end(heft_server *s)
{
    pthread_mutex_lock(&s->lock);
    for (;;) {
        struct timespec until;
        while (!s->was_held || s->holders)
            pthread_cond_wait(&s->changed, &s->lock);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += LONELY;
        while (!s->holders && pthread_cond_timedwait(&s->changed, &s->lock, &until) != ETIMEDOUT)
            continue;
        if (!s->holders)
            break;
    }
    pthread_mutex_unlock(&s->lock);
}

heft_status heft_server_run(heft_server *s, const heft_served_set *set, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    s->set = set;
    s->far = calloc((size_t)set->count + 1, sizeof(far_file *));
    heft_status st = s->far ? start(s, err) : heft_error_no_memory(err, "for a server");
    if (!st)
        wait_for_end(s);
    if (s->daemon)
        s->http->stop(s->daemon);
    s->daemon = NULL;
    heft_far_close_all(s);
    return heft_error_end(err, st);
}

void heft_server_close(heft_server *s)
{
    if (!s)
        return;
    if (s->listener >= 0)
        close(s->listener);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->opening);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
