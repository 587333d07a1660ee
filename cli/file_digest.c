/* file_digest.c - digests of files, a file on each processor. */
#include "file_digest.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 20 };

typedef struct work {
    file_digest *files;
    pthread_mutex_t lock; /* protects the members below */
    heft_progress_fn progress;
    void *ctx;
    uint64_t done, total;
    bool is_cancelled;
} work;

static const heft_digest *digest_named(const char *name)
{
    const heft_digest *const *d = heft_host_default()->digests;
    while (d && *d && strcmp((*d)->name, name) != 0)
        d++;
    return d ? *d : NULL;
}

static heft_status fail(file_digest *f, heft_status status, const char *text)
{
    f->err = (heft_error){ .status = status, .offset = HEFT_NOWHERE };
    snprintf(f->err.message, sizeof f->err.message, text, f->algorithm);
    return status;
}

/* Count bytes; return false if the work was stopped. */
static bool count(work *w, uint64_t bytes)
{
    pthread_mutex_lock(&w->lock);
    w->done += bytes;
    if (w->progress && !w->is_cancelled)
        w->is_cancelled = !w->progress(w->ctx, w->done, w->total);
    bool goes_on = !w->is_cancelled;
    pthread_mutex_unlock(&w->lock);
    return goes_on;
}

/* Git digests a blob after a header with the size. */
static void begin_blob(const file_digest *f, const heft_digest *d, void *state)
{
    char head[32];
    int n = snprintf(head, sizeof head, "blob %llu", (unsigned long long)f->bytes);
    if (!strcmp(f->algorithm, "sha1"))
        d->update(state, head, (size_t)n + 1);
}

static heft_status digest_source(file_digest *f, work *w, const heft_digest *d, void *state,
                                 heft_source *s, uint8_t *chunk)
{
    heft_status st = HEFT_OK;
    begin_blob(f, d, state);
    for (uint64_t at = 0, n; at < s->size && !st; at += n) {
        n = s->size - at < CHUNK ? s->size - at : CHUNK;
        st = s->ops->read(s, at, chunk, (size_t)n, &f->err);
        if (!st)
            d->update(state, chunk, (size_t)n);
        if (!st && !count(w, n))
            st = fail(f, HEFT_E_CANCELLED, "stopped");
    }
    return !st && s->ops->check_unchanged ? s->ops->check_unchanged(s, &f->err) : st;
}

static void write_hex(char *out, const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static heft_status digest_with(file_digest *f, work *w, const heft_digest *d, heft_source *s)
{
    uint8_t result[HEFT_HASH_BYTES];
    void *state = malloc(d->state_bytes);
    uint8_t *chunk = malloc(CHUNK);
    bool is_begun = state && chunk && d->init(state);
    heft_status st = is_begun ? digest_source(f, w, d, state, s, chunk)
                              : fail(f, HEFT_E_NOMEM, "no memory for a digest");
    if (is_begun)
        d->final(st ? NULL : result, state);
    if (!st)
        write_hex(f->hex, result, d->bytes);
    free(chunk);
    free(state);
    return st;
}

static void digest_file(void *arg, size_t i)
{
    work *w = arg;
    file_digest *f = &w->files[i];
    heft_source *s;
    const heft_digest *d = digest_named(f->algorithm);
    if (!d) {
        f->status = fail(f, HEFT_E_UNSUPPORTED,
                         "this build cannot compute %s: it was built without libcrypto");
        return;
    }
    f->status = heft_source_open_file(&s, f->path, HEFT_ACCESS_READ, &f->err);
    if (f->status)
        return;
    f->bytes = s->size;
    pthread_mutex_lock(&w->lock);
    w->total += s->size;
    pthread_mutex_unlock(&w->lock);
    f->status = digest_with(f, w, d, s);
    heft_source_close(s);
}

void file_digests_compute(file_digest *files, size_t n, heft_progress_fn progress, void *ctx)
{
    work w = { .files = files, .progress = progress, .ctx = ctx };
    const heft_executor *threads = heft_host_default()->executor;
    pthread_mutex_init(&w.lock, NULL);
    if (threads && n > 1)
        threads->run(threads->ctx, n, digest_file, &w);
    else
        for (size_t i = 0; i < n; i++)
            digest_file(&w, i);
    pthread_mutex_destroy(&w.lock);
}
