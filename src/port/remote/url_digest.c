/* url_digest.c - compare a file that is read as a whole with the SHA-256 that the hub states.
 *
 * Reads arrive in any order, and SHA-256 needs the bytes in order.  The thread that has read a
 * block adds the next bytes of the file that are in memory; blocks that the digest needs are freed
 * last.  heft_url_digest_end() requests the bytes that are left, in order: nothing if the tensors
 * were read in the order of the file, and otherwise bytes that have been freed meanwhile. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "port/remote/source_url.h"

enum { DIGITS = 64, STEP = 256 << 10 };

const heft_digest *heft_find_sha256(void)
{
    for (const heft_digest *const *at = heft_host_default()->digests; *at; at++)
        if (!strcmp((*at)->name, "sha256"))
            return *at;
    return NULL;
}

/* The header has the digits in quotation marks. */
static bool read_stated(uint8_t out[HEFT_HASH_BYTES], const char *header)
{
    header += *header == '"';
    size_t len = strlen(header);
    bool is_long_enough = len == DIGITS || (len == DIGITS + 1 && header[DIGITS] == '"');
    return is_long_enough && heft_hex_read(out, HEFT_HASH_BYTES, (heft_str){ header, DIGITS });
}

static void begin(url_digest *d, const url_source *u)
{
    const heft_digest *method = heft_find_sha256();
    *d = (url_digest){ .done = 0 };
    if (!method || !u->target.is_hub_file || !read_stated(d->stated, u->pinned.linked))
        return;
    d->state = malloc(method->state_bytes);
    d->method = d->state && method->init(d->state) ? method : NULL;
}

void heft_url_digest_begin(url_source *u)
{
    if (!u->digest.method)
        begin(&u->digest, u);
}

bool heft_url_digest_is_moving(const url_source *u)
{
    const url_digest *d = &u->digest;
    const block *b = d->method ? heft_url_find_block(u, d->done) : NULL;
    return d->is_busy || (b && (b->request.state != HEFT_REQUEST_DONE ||
                                b->request.offset + b->request.have > d->done));
}

/* Add bytes to the digest; the lock is released meanwhile. */
static void add(url_source *u, const uint8_t *bytes, size_t len)
{
    url_digest *d = &u->digest;
    d->is_busy = true;
    heft_session_unlock(u->session);
    d->method->update(d->state, bytes, len);
    heft_session_lock(u->session);
    d->is_busy = false;
    d->done += len;
    heft_session_signal(u->session);
}

bool heft_url_digest_step(url_source *u)
{
    url_digest *d = &u->digest;
    block *b = d->method && !d->is_busy ? heft_url_find_block(u, d->done) : NULL;
    size_t at = b ? (size_t)(d->done - b->request.offset) : 0;
    if (!b || b->request.have <= at)
        return false;
    b->readers++;
    add(u, b->request.buf + at, b->request.have - at);
    b->readers--;
    b->read = d->is_ending ? d->done - b->request.offset : b->read;
    return true;
}

/* Add the next bytes of a file that is read by one answer. */
static heft_status add_of_whole(url_source *u, heft_error *err)
{
    uint64_t left = u->base.size - u->digest.done;
    size_t n = left < STEP ? (size_t)left : STEP;
    uint8_t *buf = malloc(n);
    heft_status st = buf ? heft_url_whole_read(u, u->digest.done, buf, n, err)
                         : heft_error_no_memory(err, "to compute a digest");
    if (!st)
        add(u, buf, n);
    free(buf);
    return st;
}

static heft_status add_missing(url_source *u, heft_error *err)
{
    url_digest *d = &u->digest;
    while (d->done < u->base.size) {
        url_bytes bytes;
        if (d->is_busy)
            heft_session_wait(u->session);
        else if (u->whole)
            HEFT_TRY(add_of_whole(u, err));
        else if (!heft_url_digest_step(u)) {
            heft_url_lead(u, d->done, heft_session_options(u->session)->cache_bytes / 2);
            HEFT_TRY(heft_url_hold(&bytes, u, d->done, STEP, err));
            heft_url_let_go(u, &bytes);
        }
    }
    return HEFT_OK;
}

static heft_status compare(const url_digest *d, const uint8_t found[HEFT_HASH_BYTES],
                           heft_error *err)
{
    char stated[DIGITS + 1] = "", computed[DIGITS + 1] = "";
    if (!memcmp(d->stated, found, HEFT_HASH_BYTES))
        return HEFT_OK;
    heft_hex_text(stated, d->stated, HEFT_HASH_BYTES);
    heft_hex_text(computed, found, HEFT_HASH_BYTES);
    heft_status st = heft_error_plain(err, HEFT_E_CHECKSUM,
                                      "the hub states the SHA-256 %s, the content has %s: "
                                      "download it again",
                                      stated, computed);
    return heft_error_rule(err, st, "hub/sha256");
}

static void finish(url_digest *d, uint8_t found[HEFT_HASH_BYTES])
{
    d->method->final(found, d->state);
    free(d->state);
    d->state = NULL;
    d->method = NULL;
}

heft_status heft_url_digest_end(url_source *u, bool *is_stated, heft_error *err)
{
    url_digest *d = &u->digest;
    uint8_t found[HEFT_HASH_BYTES];
    *is_stated = d->method;
    if (!d->method)
        return HEFT_OK;
    d->is_ending = true;
    HEFT_TRY(add_missing(u, err));
    finish(d, found);
    return compare(d, found, err);
}

heft_status heft_url_digest_of(heft_source *bytes, heft_source *stated, bool *is_stated,
                               heft_error *err)
{
    url_digest own, *d = &own;
    uint8_t found[HEFT_HASH_BYTES];
    begin(d, (const url_source *)stated);
    *is_stated = d->method;
    uint8_t *buf = d->method ? malloc(STEP) : NULL;
    heft_status st = d->method && !buf ? heft_error_no_memory(err, "to compute a digest") : HEFT_OK;
    for (uint64_t at = 0; buf && at < bytes->size && !st; at += STEP) {
        size_t n = bytes->size - at < STEP ? (size_t)(bytes->size - at) : STEP;
        st = bytes->ops->read(bytes, at, buf, n, err);
        if (!st)
            d->method->update(d->state, buf, n);
    }
    free(buf);
    if (!d->method)
        return HEFT_OK;
    finish(d, found);
    return st ? st : compare(d, found, err);
}
