/* resumed_source.c - a file on a server whose downloaded blocks are kept on the disk.
 *
 * The first thread that reads a block requests the whole block, and stores the block in the partial
 * file before any bytes are returned.  Blocks of an earlier process are compared with the digests
 * in the partial file before use; damaged blocks are requested again.  Missing blocks are requested
 * ahead. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/blake3.h"
#include "port/remote/partial_file.h"
#include "port/remote/source_url.h"

enum { BLOCK = HEFT_PARTIAL_BLOCK, AHEAD = 10 }; /* AHEAD: blocks to request ahead */
enum block_state { MISSING, KEPT, BUSY, READY }; /* KEPT: by an earlier process */

typedef struct resumed_source {
    heft_source base;
    heft_source *inner;
    heft_partial *partial;
    uint8_t *states; /* block_state, by block; changes under the lock */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const heft_url_options *options; /* borrowed from the session */
} resumed_source;

static void say(const resumed_source *s, const char *text)
{
    if (s->options->say)
        s->options->say(s->options->ctx, text);
}

/* ---- blocks ---- */

/* Request a block, and after it the missing ones of the AHEAD next blocks. */
static void request_blocks(resumed_source *s, uint64_t number)
{
    uint64_t found[AHEAD + 1] = { number }, blocks = heft_partial_blocks(s->partial);
    size_t count = 1;
    pthread_mutex_lock(&s->lock);
    for (uint64_t i = number + 1; i < blocks && i <= number + AHEAD; i++)
        if (s->states[i] == MISSING)
            found[count++] = i;
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < count; i++)
        s->inner->ops->will_need(s->inner, found[i] * BLOCK,
                                 heft_partial_length(s->partial, found[i]));
}

/* Read a block into the buffer, from the disk or the server; the block is BUSY. */
static heft_status bring(resumed_source *s, uint64_t number, bool is_kept, uint8_t *buf,
                         heft_error *err)
{
    if (is_kept && heft_partial_load(s->partial, number, buf))
        return HEFT_OK;
    if (is_kept)
        say(s, "a part of the kept download is damaged, and is requested again");
    request_blocks(s, number);
    HEFT_TRY(s->inner->ops->read(s->inner, number * BLOCK, buf,
                                 heft_partial_length(s->partial, number), err));
    return heft_partial_store(s->partial, number, buf, err);
}

/* Wait until no other thread brings the block.  Return true if this thread has to bring the block,
 * which is BUSY then; *is_kept: an earlier process has stored the block. */
static bool take_turn(resumed_source *s, uint64_t number, bool *is_kept)
{
    pthread_mutex_lock(&s->lock);
    while (s->states[number] == BUSY)
        pthread_cond_wait(&s->changed, &s->lock);
    bool is_ready = s->states[number] == READY;
    *is_kept = s->states[number] == KEPT;
    if (!is_ready)
        s->states[number] = BUSY;
    pthread_mutex_unlock(&s->lock);
    return !is_ready;
}

static void end_turn(resumed_source *s, uint64_t number, enum block_state state)
{
    pthread_mutex_lock(&s->lock);
    s->states[number] = (uint8_t)state;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* Make sure that the block is on the disk and intact. */
static heft_status ensure(resumed_source *s, uint64_t number, heft_error *err)
{
    bool is_kept;
    if (!take_turn(s, number, &is_kept))
        return HEFT_OK;
    uint8_t *buf = malloc(heft_partial_length(s->partial, number));
    heft_status st = buf ? bring(s, number, is_kept, buf, err)
                         : heft_error_no_memory(err, "for bytes from a server");
    free(buf);
    end_turn(s, number, st ? MISSING : READY);
    return st;
}

/* ---- the source ---- */

static heft_status read_resumed(heft_source *source, uint64_t offset, void *buf, size_t len,
                                heft_error *err)
{
    resumed_source *s = (resumed_source *)source;
    if (!len)
        return HEFT_OK;
    for (uint64_t i = offset / BLOCK; i <= (offset + len - 1) / BLOCK; i++)
        HEFT_TRY(ensure(s, i, err));
    return heft_partial_read(s->partial, offset, buf, len, err);
}

static heft_status check_digest(heft_source *source, bool *is_stated, heft_error *err)
{
    resumed_source *s = (resumed_source *)source;
    return heft_url_digest_of(source, s->inner, is_stated, err);
}

static void close_resumed(heft_source *source)
{
    resumed_source *s = (resumed_source *)source;
    heft_source_close(s->inner);
    heft_partial_close(s->partial);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s->states);
    free(s);
}

static const heft_source_ops ops = {
    .size = sizeof(heft_source_ops),
    .read = read_resumed,
    .close = close_resumed,
    .check_digest = check_digest,
};

/* ---- opening ---- */

/* Compute a digest of all that distinguishes the versions of a file.  The digest that the hub
 * states is safer than the ETag: the servers of the hub have different ETags for a file. */
static bool digest_version(uint8_t out[HEFT_VERSION_BYTES], const url_source *u)
{
    const heft_answer *a = &u->pinned;
    const char *texts[] = { u->target.url, *a->linked ? a->linked : a->etag,
                            *a->linked ? "" : a->modified };
    heft_blake3 h;
    heft_blake3_init(&h);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        heft_blake3_update(&h, texts[i], strlen(texts[i]) + 1);
    heft_blake3_final(&h, out);
    return *a->linked || *a->etag || *a->modified;
}

static heft_status open_partial(resumed_source *s, heft_error *err)
{
    const url_source *u = (const url_source *)s->inner;
    uint8_t version[HEFT_VERSION_BYTES];
    char address[HEFT_URL_MAX];
    bool was_other, has_version = digest_version(version, u);
    heft_url_redact(address, sizeof address, u->target.url);
    if (!has_version) /* nothing tells whether kept bytes belong to the file */
        heft_os_entropy(version, sizeof version);
    HEFT_TRY(heft_partial_open(&s->partial, s->options->resume, address, s->inner->size, version,
                               &was_other, err));
    if (was_other)
        say(s, has_version ? "the kept download is of another version of the file: the download "
                             "starts again"
                           : "the server does not state a version of the file: the download "
                             "starts again");
    return HEFT_OK;
}

static heft_status begin_states(resumed_source *s, heft_error *err)
{
    uint64_t blocks = heft_partial_blocks(s->partial);
    s->states = malloc(blocks + 1);
    if (!s->states)
        return heft_error_no_memory(err, "for the list of blocks");
    for (uint64_t i = 0; i < blocks; i++)
        s->states[i] = heft_partial_has(s->partial, i) ? KEPT : MISSING;
    return HEFT_OK;
}

heft_status heft_resumed_source(heft_source **source, const heft_url_options *opt, heft_error *err)
{
    url_source *u = (url_source *)*source;
    if (u->whole) /* an answer from the beginning would be needed again */
        heft_session_say(u->session, "nothing is kept of a file that the server sends as a whole");
    if (u->whole || u->base.size <= HEFT_URL_HEAD)
        return HEFT_OK;
    resumed_source *s = calloc(1, sizeof *s);
    if (!s)
        return heft_error_no_memory(err, "for a source");
    s->base = (heft_source){ &ops, u->base.size };
    s->inner = *source;
    s->options = opt;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    u->is_directed = true;
    *source = &s->base;
    HEFT_TRY(open_partial(s, err));
    return begin_states(s, err);
}
