/* source_url.c - a file on a server as a source.
 *
 * Bytes are kept in blocks, each filled by one request.  A reader copies bytes as they arrive and
 * waits for missing ones.  While reads are sequential, the next blocks are requested ahead, so that
 * several requests are on the way; a thread that reads elsewhere cancels the requests ahead of its
 * last read (read_rows.c).  The first request asks for the first HEAD bytes: the index of most
 * files, and the size. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port/remote/source_url.h"

enum { HEAD = HEFT_URL_HEAD, BLOCK = HEFT_URL_BLOCK };
enum { LEAST = 16 << 10, SMALL = 64 << 10, INDEX = 16 << 20, WAIT = 256 << 10 };

/* ---- blocks; the lock of the session is held ---- */

/* Return the memory for blocks: half of the memory belongs to parts while an object is written. */
static uint64_t cache_limit(const url_source *u)
{
    return heft_session_options(u->session)->cache_bytes / (heft_s3_is_writing() ? 2 : 1);
}

/* Return how many bytes of blocks may be requested ahead of all reads. */
static uint64_t most_ahead(const url_source *u)
{
    return cache_limit(u) / 4 * 3;
}

/* Return a buffer, if possible the buffer of a freed block, whose pages are in memory.  malloc()
 * would keep all freed buffers. */
static uint8_t *new_buffer(url_source *u, size_t length)
{
    if (length != BLOCK || !u->spare_count)
        return heft_large_map(NULL, 0, length);
    return u->spare[--u->spare_count];
}

static void free_buffer(url_source *u, uint8_t *buf, size_t length)
{
    if (length == BLOCK && u->spare_count < SPARE_BUFFERS)
        u->spare[u->spare_count++] = buf;
    else
        heft_large_unmap(buf, length);
}

static block *new_block(url_source *u, uint64_t offset, size_t length)
{
    block *b = calloc(1, sizeof *b);
    uint8_t *buf = b ? new_buffer(u, length) : NULL;
    if (!buf) {
        free(b);
        return NULL;
    }
    b->request = (heft_request){ .target = &u->target,
                                 .route = &u->route,
                                 .offset = offset,
                                 .buf = buf,
                                 .length = length,
                                 .wanted = SIZE_MAX,
                                 .size = u->base.size,
                                 .pinned = &u->pinned };
    b->capacity = length;
    b->used = ++u->clock;
    b->next = u->blocks;
    u->blocks = b;
    u->cached += length;
    return b;
}

static void free_block(url_source *u, block *b)
{
    block **at = &u->blocks;
    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    u->cached -= b->request.length;
    free_buffer(u, b->request.buf, b->capacity);
    free(b);
}

block *heft_url_find_block(const url_source *u, uint64_t offset)
{
    for (block *b = u->blocks; b; b = b->next)
        if (!b->request.is_cancelled && offset >= b->request.offset &&
            offset - b->request.offset < b->request.length)
            return b;
    return NULL;
}

/* Return the offset of the first block after the offset, or the size of the file. */
static uint64_t next_block_at(const url_source *u, uint64_t offset)
{
    uint64_t end = u->base.size;
    for (const block *b = u->blocks; b; b = b->next)
        if (!b->request.is_cancelled && b->request.offset > offset && b->request.offset < end)
            end = b->request.offset;
    return end;
}

/* Return where a request for the offset begins: near the end of the file SMALL bytes before the
 * end, because trailers are read backwards; in an index after the bytes of the first request; never
 * within another block. */
static uint64_t begin_of_request(const url_source *u, uint64_t offset, bool is_long)
{
    uint64_t begin = offset;
    if (is_long && offset > HEAD && offset - HEAD < SMALL)
        begin = HEAD;
    if (u->base.size > SMALL && offset > u->base.size - SMALL)
        begin = u->base.size - SMALL;
    for (const block *b = u->blocks; b; b = b->next) {
        uint64_t end = b->request.offset + b->request.length;
        if (!b->request.is_cancelled && end <= offset && end > begin)
            begin = end;
    }
    return begin;
}

/* How much a block is needed; blocks with the lowest value are freed first. */
typedef enum block_need {
    READ,       /* all bytes have been read */
    READ_EARLY, /* the same, but the digest has not taken all bytes */
    UNREAD,
    AHEAD /* requested ahead of the reads */
} block_need;

static block_need need_of(const url_source *u, const block *b)
{
    uint64_t length = b->request.length, end = b->request.offset + length;
    uint64_t unread = b->read < length ? length - b->read : 0;
    bool is_read = unread <= SMALL && unread <= length / 64; /* nobody reads padding */
    if (is_read)
        return u->digest.method && end > u->digest.done ? READ_EARLY : READ;
    return u->is_directed || heft_url_is_in_rows(u, &b->request) ? AHEAD : UNREAD;
}

/* Return true if a is freed rather than b, which is needed alike: the block that will be read last,
 * or else has not been used for the longest time. */
static bool is_rather_freed(const block *a, const block *b, block_need need)
{
    return need == AHEAD ? a->request.offset > b->request.offset : a->used < b->used;
}

static block *find_oldest(const url_source *u, bool is_urgent)
{
    block *oldest = NULL;
    block_need least = AHEAD;
    for (block *b = u->blocks; b; b = b->next) {
        block_need need = need_of(u, b);
        if (b->request.state != HEFT_REQUEST_DONE || b->readers || need > least ||
            (oldest && need == least && !is_rather_freed(b, oldest, need)))
            continue;
        oldest = b;
        least = need;
    }
    bool is_kept = least == READ_EARLY ? heft_url_digest_is_moving(u)
                                       : least == AHEAD && !is_urgent;
    return is_kept ? NULL : oldest;
}

/* Free finished blocks until `length` more bytes are allowed; return false if the other blocks are
 * needed. */
static bool make_space(url_source *u, uint64_t length, bool is_urgent)
{
    uint64_t limit = cache_limit(u);
    while (u->cached && u->cached + length > limit) {
        block *oldest = find_oldest(u, is_urgent);
        if (!oldest)
            return false;
        free_block(u, oldest);
    }
    return true;
}

static heft_status request_block(block **out, url_source *u, uint64_t offset, uint64_t length,
                                 bool is_urgent, heft_error *err)
{
    uint64_t end = next_block_at(u, offset);
    bool is_known = u->is_directed || heft_url_is_in_long_row(u, offset);
    if (offset == HEAD && length >= SMALL && !is_known)
        length = INDEX; /* perhaps an index of unknown length, to be read with a single request */
    length = length < end - offset ? length : end - offset;
    *out = NULL;
    if (!make_space(u, length, is_urgent) && !is_urgent)
        return HEFT_OK;
    *out = new_block(u, offset, (size_t)length);
    if (!*out)
        return heft_error_no_memory(err, "for bytes from a server");
    heft_status st = heft_session_send(u->session, &(*out)->request, is_urgent, err);
    if (st)
        free_block(u, *out);
    return st;
}

/* Return the length of a request that ends where another row of reads begins. */
static uint64_t clip(const url_source *u, uint64_t offset, uint64_t length)
{
    uint64_t row = heft_url_next_row(u, offset + 1);
    return length < row - offset ? length : row - offset;
}

/* Request the blocks of a range that are missing.  The last one may exceed the range, unless
 * is_exact. */
static void request_range(url_source *u, uint64_t offset, uint64_t end, bool is_exact)
{
    heft_error ignored;
    end = end < u->base.size ? end : u->base.size;
    while (offset < end) {
        block *b = heft_url_find_block(u, offset);
        uint64_t most = heft_url_next_length(u, offset);
        most = is_exact && end - offset < most ? end - offset : most;
        if (!b && (request_block(&b, u, offset, clip(u, offset, most), false, &ignored) || !b))
            return;
        offset = b->request.offset + b->request.length;
    }
}

/* Request the rest of this read and, if this is the foremost read of the row, the bytes after the
 * row.  The bytes between another read and the end of its row have been requested before, except
 * for announced ones for which no memory was left. */
static void request_ahead(url_source *u, const url_row *row, uint64_t offset, uint64_t len)
{
    request_range(u, offset, offset + len, u->is_directed);
    if (!row || (!row->until && offset + len < row->expected))
        return;
    uint64_t from = offset > row->expected ? offset : row->expected, end = heft_url_row_end(u, row);
    request_range(u, from, end, u->is_directed || end == row->until);
}

/* ---- reading ---- */

static heft_status fail(url_source *u, const heft_request *r, heft_error *err)
{
    if (r->status != HEFT_E_CANCELLED) {
        u->status = r->status;
        u->error = r->error;
    }
    heft_error_set(err, r->status, HEFT_NOWHERE, "%s", r->error.message);
    return heft_error_os(err, r->status, r->error.os);
}

void heft_url_let_go(url_source *u, const url_bytes *bytes)
{
    block *b = bytes->block;
    b->readers--;
    if (!bytes->count && !b->readers && b->request.state == HEFT_REQUEST_DONE)
        free_block(u, b); /* cancelled, or failed: the next read sends a new request */
}

/* Wait for bytes at the offset in a block: `len`, but not more than WAIT or than the block has. */
static heft_status wait_for_bytes(url_bytes *out, url_source *u, block *b, uint64_t offset,
                                  uint64_t len, heft_error *err)
{
    heft_request *r = &b->request;
    size_t at = (size_t)(offset - r->offset), left = r->length - at;
    size_t need = len < WAIT ? (size_t)len : WAIT;
    b->readers++;
    b->used = ++u->clock;
    heft_session_wait_for(u->session, r, at + (need < left ? need : left));
    *out = (url_bytes){ b, r->buf + at, r->have > at ? r->have - at : 0 };
    if (out->count)
        return HEFT_OK;
    heft_status st = r->status ? fail(u, r, err) : HEFT_OK;
    heft_url_let_go(u, out);
    return st;
}

/* Return true if no block can be freed but those that the digest will take soon: the reader then
 * waits for the digest. */
static bool must_wait(url_source *u, uint64_t length)
{
    return !make_space(u, length, true) && heft_url_digest_is_moving(u);
}

/* Request bytes that no read asked for, such as padding between tensors, for the digest. */
static void fill_hole(url_source *u)
{
    heft_error ignored;
    block *b;
    uint64_t at = u->digest.done;
    if (u->digest.method && !u->digest.is_busy && at < heft_url_rows_end(u) &&
        !heft_url_find_block(u, at) && next_block_at(u, at) - at <= INDEX)
        (void)(request_block(&b, u, at, BLOCK, true, &ignored) == HEFT_OK);
}

heft_status heft_url_hold(url_bytes *out, url_source *u, uint64_t offset, uint64_t len,
                          heft_error *err)
{
    *out = (url_bytes){ .count = 0 };
    while (!out->count) {
        fill_hole(u);
        block *b = heft_url_find_block(u, offset);
        const url_row *row = heft_url_row_near(u, offset);
        bool is_long = len > BLOCK || (row && row->ahead);
        uint64_t want = is_long ? BLOCK : len > LEAST ? len : LEAST;
        if (!b && must_wait(u, want)) {
            if (!heft_url_digest_step(u))
                heft_session_wait(u->session);
            continue;
        }
        uint64_t begin = begin_of_request(u, offset, is_long);
        if (!b)
            HEFT_TRY(
                request_block(&b, u, begin, offset - begin + clip(u, offset, want), true, err));
        bool is_far = b && b->request.offset + b->request.length - offset > BLOCK;
        if (!is_far && is_long) {
            b->readers++; /* blocks without a reader may be freed for other blocks */
            request_ahead(u, row, offset, len);
            b->readers--;
        }
        HEFT_TRY(wait_for_bytes(out, u, b, offset, len, err));
    }
    return HEFT_OK;
}

static heft_status read_blocks(url_source *u, uint64_t offset, uint8_t *to, size_t len,
                               heft_error *err)
{
    heft_status st = HEFT_OK;
    while (len && !st) {
        url_bytes bytes;
        st = heft_url_hold(&bytes, u, offset, len, err);
        if (st)
            break;
        size_t n = bytes.count < len ? bytes.count : len;
        heft_session_unlock(u->session); /* a block with a reader is not freed */
        memcpy(to, bytes.at, n);
        heft_session_lock(u->session);
        bytes.block->read += n;
        heft_url_let_go(u, &bytes);
        heft_url_digest_step(u);
        offset += n;
        to += n;
        len -= n;
    }
    return st;
}

static heft_status read_url(heft_source *s, uint64_t offset, void *buf, size_t len, heft_error *err)
{
    url_source *u = (url_source *)s;
    heft_session_lock(u->session);
    heft_status st = u->status;
    if (u->whole)
        st = heft_url_whole_read(u, offset, buf, len, err);
    else if (st) {
        heft_error_set(err, st, HEFT_NOWHERE, "%s", u->error.message);
        heft_error_os(err, st, u->error.os);
    } else {
        if (!u->is_directed)
            heft_url_follow(u, offset, len, most_ahead(u));
        st = read_blocks(u, offset, buf, len, err);
    }
    heft_session_unlock(u->session);
    return st;
}

/* Request the range and no more: around a header in an archive are data that nobody may need. */
static void will_need(heft_source *s, uint64_t offset, uint64_t len)
{
    url_source *u = (url_source *)s;
    if (u->whole)
        return;
    heft_session_lock(u->session);
    uint64_t most = most_ahead(u), end = offset + (len < most ? len : most);
    if (!u->is_directed && len > SMALL)
        end = heft_url_row_end(u, heft_url_announce(u, offset, offset + len, most));
    request_range(u, offset, end, true);
    heft_session_unlock(u->session);
}

static void begin_digest(heft_source *s)
{
    url_source *u = (url_source *)s;
    heft_session_lock(u->session);
    heft_url_digest_begin(u);
    heft_session_unlock(u->session);
}

static heft_status check_digest(heft_source *s, bool *is_stated, heft_error *err)
{
    url_source *u = (url_source *)s;
    heft_session_lock(u->session);
    heft_status st = heft_url_digest_end(u, is_stated, err);
    heft_session_unlock(u->session);
    return st;
}

static void close_url(heft_source *s)
{
    url_source *u = (url_source *)s;
    heft_session_lock(u->session);
    for (block *b = u->blocks; b; b = b->next)
        if (b->request.state != HEFT_REQUEST_DONE)
            heft_session_cancel(u->session, &b->request);
    while (u->blocks) {
        while (u->blocks->request.state != HEFT_REQUEST_DONE)
            heft_session_wait(u->session);
        free_block(u, u->blocks);
    }
    heft_url_whole_end(u);
    heft_session_unlock(u->session);
    while (u->spare_count)
        heft_large_unmap(u->spare[--u->spare_count], BLOCK);
    heft_session_release(u->session);
    free(u->digest.state);
    free(u);
}

static const heft_source_ops ops = {
    .size = sizeof(heft_source_ops),
    .read = read_url,
    .will_need = will_need,
    .close = close_url,
    .begin_digest = begin_digest,
    .check_digest = check_digest,
};

/* ---- opening ---- */

heft_status heft_url_source_begin(heft_source **out, heft_session *s, const heft_address *target,
                                  heft_error *err)
{
    url_source *u = calloc(1, sizeof *u);
    *out = NULL;
    if (!u)
        return heft_error_no_memory(err, "for a source");
    u->base = (heft_source){ &ops, HEFT_UNKNOWN_LENGTH };
    u->session = heft_session_share(s);
    u->target = *target;
    heft_session_lock(s);
    block *first = new_block(u, 0, HEAD);
    heft_status st = first ? HEFT_OK : heft_error_no_memory(err, "for a source");
    if (first) {
        first->request.pinned = NULL;
        st = heft_session_send(s, &first->request, false, err);
        if (st)
            free_block(u, first);
    }
    heft_session_unlock(s);
    if (st)
        close_url(&u->base);
    else
        *out = &u->base;
    return st;
}

/* Use the answer to the first request, of a range. */
static heft_status use_range(url_source *u, heft_request *r, heft_error *err)
{
    heft_status st = r->status ? fail(u, r, err) : HEFT_OK;
    bool is_rest_safe = st || r->size <= r->have || heft_url_is_one_version(u, r);
    u->base.size = r->size;
    r->length = r->have;
    u->cached = r->length;
    heft_url_begin_row(u, 0);
    r->pinned = &u->pinned;
    if (st || !r->length || !is_rest_safe)
        free_block(u, u->blocks);
    return is_rest_safe ? st : heft_url_whole_begin(u, NULL, err);
}

heft_status heft_url_source_finish(heft_source *source, heft_error *err)
{
    heft_status st;
    url_source *u = (url_source *)source;
    heft_request *r = &u->blocks->request;
    heft_session_lock(u->session);
    heft_session_wait_for(u->session, r, 1);
    while (!r->is_whole && r->state != HEFT_REQUEST_DONE)
        heft_session_wait(u->session);
    u->pinned = r->answer;
    if (r->is_whole) { /* readers wait for its bytes */
        u->blocks = NULL;
        u->cached = 0;
        st = heft_url_whole_begin(u, r, err);
    } else
        st = use_range(u, r, err);
    heft_session_unlock(u->session);
    if (!st)
        heft_url_whole_say(u);
    return st;
}

heft_status heft_url_read_whole(char **out, size_t *length, heft_session *s,
                                const heft_address *target, uint64_t most, heft_error *err)
{
    heft_source *source;
    *out = NULL;
    *length = 0;
    HEFT_TRY(heft_url_source_begin(&source, s, target, err));
    heft_status st = heft_url_source_finish(source, err);
    if (!st && source->size > most)
        st = heft_error_plain(err, HEFT_E_LIMIT, "has more than %U bytes", most);
    *length = st ? 0 : (size_t)source->size;
    *out = st ? NULL : malloc(*length + 1);
    if (!st && !*out)
        st = heft_error_no_memory(err, "for a file");
    if (!st && *length)
        st = source->ops->read(source, 0, *out, *length, err);
    source->ops->close(source);
    return st;
}
