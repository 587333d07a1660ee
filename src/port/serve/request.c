/* request.c - decides who may ask a server on the loopback interface.
 *
 * Every page that the user visits can send requests to 127.0.0.1, and a name of a stranger can be
 * made to lead there.  So the header Host must be the server's own, the header Origin must be
 * missing or the server's own, and everything except the first request needs a cookie, which
 * browsers send with requests of the server's own pages only.  Paths are compared with a list; none
 * of them is opened. */
#include "port/serve/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct asked { /* headers, and how many of them there are */
    const char *host, *origin;
    uint32_t hosts, origins;
} asked;

static enum MHD_Result note_header(void *ctx, enum MHD_ValueKind kind, const char *key,
                                   const char *value)
{
    asked *a = ctx;
    (void)kind;
    if (!strcasecmp(key, "Host")) {
        a->host = value;
        a->hosts++;
    } else if (!strcasecmp(key, "Origin")) {
        a->origin = value;
        a->origins++;
    }
    return MHD_YES;
}

static bool is_own_host(const heft_server *s, const asked *a)
{
    static const char *const names[] = { "127.0.0.1", "localhost" };
    char own[HOST_TEXT];
    for (size_t i = 0; a->hosts == 1 && a->host && i < sizeof names / sizeof *names; i++) {
        snprintf(own, sizeof own, "%s:%u", names[i], (unsigned)s->port);
        if (!strcmp(a->host, own))
            return true;
    }
    return false;
}

static bool is_own_origin(const asked *a)
{
    static const char scheme[] = "http://";
    return !a->origins ||
           (a->origins == 1 && a->origin && !strncmp(a->origin, scheme, sizeof scheme - 1) &&
            !strcmp(a->origin + sizeof scheme - 1, a->host));
}

/* The time does not tell where the texts differ. */
static bool is_secret(const char *text, const char *secret)
{
    unsigned difference = 0;
    if (!text || strlen(text) != SECRET_TEXT - 1)
        return false;
    for (size_t i = 0; i < SECRET_TEXT - 1; i++)
        difference |= (unsigned char)text[i] ^ (unsigned char)secret[i];
    return !difference;
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Return the next byte of a path in a URL, 0 at the end, or -1 if an escape is wrong or a zero
 * byte. */
static int next_byte(const char **url)
{
    const char *p = *url;
    *url += *p != '\0';
    if (*p != '%')
        return (unsigned char)*p;
    int high = digit_of(p[1]), low = high < 0 ? -1 : digit_of(p[2]);
    if (low < 0 || !(high << 4 | low))
        return -1;
    *url += 2;
    return high << 4 | low;
}

static bool is_path(const char *url, const char *path)
{
    for (;; path++) {
        int byte = next_byte(&url);
        if (byte != (unsigned char)*path)
            return false;
        if (!byte)
            return true;
    }
}

static enum MHD_Result answer_path(heft_server *s, struct MHD_Connection *c, const char *url)
{
    if (!strcmp(url, "/alive"))
        return heft_answer_alive(s, c);
    for (uint32_t i = 0; i < s->set->count; i++)
        if (is_path(url, s->set->files[i].path))
            return heft_answer_file(s, c, i);
    return heft_answer_text(s, c, MHD_HTTP_NOT_FOUND, "There is no such file.");
}

static enum MHD_Result answer_token(heft_server *s, struct MHD_Connection *c, const char *token)
{
    if (!is_secret(token, s->token))
        return heft_answer_text(s, c, MHD_HTTP_FORBIDDEN,
                                "The token in the address is not that of this command.");
    if (atomic_exchange(&s->token_is_used, true))
        return heft_answer_text(s, c, MHD_HTTP_FORBIDDEN,
                                "The token in the address was used already: go back to the page "
                                "that it has opened, or run heft view again.");
    return heft_answer_start(s, c);
}

enum MHD_Result heft_server_answer(void *server, struct MHD_Connection *c, const char *url,
                                   const char *method, const char *version, const char *data,
                                   size_t *data_bytes, void **state)
{
    heft_server *s = server;
    asked a = { .hosts = 0 };
    (void)version, (void)data;
    if (!*state) { /* the first call: an answer now would close the connection */
        *state = s;
        return MHD_YES;
    }
    *data_bytes = 0; /* content is not read */
    s->http->values(c, MHD_HEADER_KIND, note_header, &a);
    bool gets = !strcmp(method, "GET");
    if (!is_own_host(s, &a))
        return heft_answer_text(s, c, MHD_HTTP_FORBIDDEN,
                                "The header Host is not the address of this server.");
    if (!is_own_origin(&a))
        return heft_answer_text(s, c, MHD_HTTP_FORBIDDEN,
                                "Pages of other origins may not read from this server.");
    if (!gets && strcmp(method, "HEAD") != 0)
        return heft_answer_text(s, c, MHD_HTTP_METHOD_NOT_ALLOWED,
                                "This server answers GET and HEAD only.");
    const char *token = s->http->value(c, MHD_GET_ARGUMENT_KIND, "token");
    if (token && gets && !strcmp(url, "/"))
        return answer_token(s, c, token);
    if (!is_secret(s->http->value(c, MHD_COOKIE_KIND, s->cookie_name), s->cookie))
        return heft_answer_text(s, c, MHD_HTTP_FORBIDDEN,
                                "Open the address that heft view has printed.");
    return answer_path(s, c, url);
}
