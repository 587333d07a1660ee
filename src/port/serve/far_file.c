/* far_file.c - a file on another server, opened once for many requests.
 *
 * A source that has failed fails for ever, because the file may be another one by now.  The next
 * request therefore opens the file again, under another ETag: the page never joins bytes of two
 * versions.  The first bytes of an answer are read before its status is sent, so that the page
 * gets the reason of a failure and not half an answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port/serve/server.h"

enum { BLOCK = 256 << 10 };

typedef struct far_answer {
    heft_server *server;
    far_file *file;
    uint64_t from, length;
    uint8_t *first; /* the first `ready` bytes of the answer */
    size_t ready;
} far_answer;

/* The source says that it waits, or that the server sends no ranges. */
static void say_wait(void *ctx, const char *text)
{
    const far_file *f = ctx;
    heft_error err;
    heft_error_plain(&err, HEFT_E_IO, "%s", text);
    heft_server_say(f->server, f->number, &err);
}

static heft_status open_file(far_file **out, heft_server *s, uint32_t number, heft_error *err)
{
    far_file *f = calloc(1, sizeof *f);
    if (!f)
        return heft_error_no_memory(err, "for a file on a server");
    *f = (far_file){ .server = s, .number = number, .users = 1, .version = ++s->versions };
    heft_url_options opt = HEFT_URL_OPTIONS_INIT;
    opt.say = say_wait;
    opt.ctx = f;
    heft_status st = heft_source_url(&f->source, s->set->files[number].location, &opt, err);
    if (st)
        free(f);
    else
        *out = f;
    return st;
}

/* One request opens the file, and the others wait; `far` has a user of its own. */
heft_status heft_far_use(far_file **out, heft_server *s, uint32_t number, heft_error *err)
{
    pthread_mutex_lock(&s->opening);
    heft_status st = s->far[number] ? HEFT_OK : open_file(&s->far[number], s, number, err);
    *out = st ? NULL : s->far[number];
    if (*out)
        (*out)->users++;
    pthread_mutex_unlock(&s->opening);
    return st;
}

static void let_go(far_file *f)
{
    if (--f->users)
        return;
    heft_source_close(f->source);
    free(f);
}

void heft_far_let_go(far_file *f)
{
    heft_server *s = f->server;
    pthread_mutex_lock(&s->opening);
    let_go(f);
    pthread_mutex_unlock(&s->opening);
}

void heft_far_close_all(heft_server *s)
{
    for (uint32_t i = 0; s->far && i < s->set->count; i++)
        if (s->far[i])
            let_go(s->far[i]);
    free(s->far);
    s->far = NULL;
}

static heft_status read_bytes(far_file *f, uint64_t from, void *buf, size_t len, heft_error *err)
{
    heft_server *s = f->server;
    heft_status st = f->source->ops->read(f->source, from, buf, len, err);
    if (!st)
        return st;
    pthread_mutex_lock(&s->opening);
    bool is_first = s->far[f->number] == f;
    if (is_first) {
        s->far[f->number] = NULL;
        let_go(f); /* this request is another user */
    }
    pthread_mutex_unlock(&s->opening);
    if (is_first)
        heft_server_say(s, f->number, err);
    return st;
}

static ssize_t read_answer(void *ctx, uint64_t at, char *buf, size_t max)
{
    const far_answer *a = ctx;
    heft_error err;
    bool is_ready = at < a->ready;
    uint64_t left = (is_ready ? a->ready : a->length) - at;
    size_t len = left < max ? (size_t)left : max;
    if (is_ready)
        memcpy(buf, a->first + at, len);
    else if (read_bytes(a->file, a->from + at, buf, len, &err))
        return MHD_CONTENT_READER_END_WITH_ERROR;
    return (ssize_t)len;
}

static void free_answer(void *ctx)
{
    far_answer *a = ctx;
    heft_far_let_go(a->file);
    free(a->first);
    free(a);
}

heft_status heft_far_answer(struct MHD_Response **out, far_file *take, uint64_t from,
                            uint64_t length, heft_error *err)
{
    far_answer *a = malloc(sizeof *a);
    uint8_t *first = malloc(length < BLOCK ? (size_t)length + 1 : BLOCK);
    if (!a || !first) {
        heft_far_let_go(take);
        free(first);
        free(a);
        return heft_error_no_memory(err, "for an answer");
    }
    *a = (far_answer){ take->server, take,  from,
                       length,       first, length < BLOCK ? (size_t)length : BLOCK };
    heft_status st = read_bytes(take, from, first, a->ready, err);
    *out = st ? NULL : take->server->http->of_callback(length, BLOCK, read_answer, a, free_answer);
    if (!st && !*out)
        st = heft_error_no_memory(err, "for an answer");
    if (st)
        free_answer(a);
    return st;
}
