/* s3_share_data.c - the data of a conversion in shares: parts of one upload, and pieces of parts.
 *
 * A share sends the parts that lie wholly in the range of the share, and stores pieces of the
 * remaining parts as separate objects.  The process that completes the output puts the remaining
 * parts together from pieces and the bytes around the payload, compares the server's list of parts
 * with the records, and completes the upload. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/blake3.h"
#include "port/remote/s3_shares.h"

const char heft_s3_done[] = "done";

heft_status heft_s3_gone(heft_status st, heft_error *err)
{
    if (st != HEFT_E_IO || err->os != ENOENT)
        return st;
    return heft_error_plain(err, HEFT_E_NOTFOUND,
                            "its multipart upload does not exist any more: the shares were given "
                            "up, or a rule of the bucket removed the upload; give up these shares "
                            "with --abort (heft_share_abort()), and write all shares again");
}

/* ---- a share ---- */

typedef struct share_sink {
    heft_sink base;
    heft_s3_shares *s;
    uint32_t number;
    heft_s3_parts parts;
} share_sink;

static heft_s3_cut cut_share(void *ctx, uint32_t part)
{
    const share_sink *k = ctx;
    return heft_s3_share_cut(k->s, k->number, part);
}

/* Called by several threads, for different parts. */
static heft_status name_piece(heft_address *out, void *ctx, uint32_t part, heft_str bytes,
                              heft_error *err)
{
    const share_sink *k = ctx;
    heft_s3_name name;
    heft_blake3 h;
    heft_blake3_init(&h);
    heft_blake3_update(&h, bytes.ptr, bytes.len);
    heft_blake3_final(&h, heft_s3_piece(k->s, k->number, part));
    heft_s3_piece_name(name, k->number, part);
    return heft_s3_shares_address(out, k->s, name, err);
}

static heft_status write_share(heft_sink *sink, uint64_t offset, const void *data, size_t len,
                               heft_error *err)
{
    share_sink *k = (share_sink *)sink;
    return heft_s3_gone(heft_s3_parts_write(&k->parts, offset, data, len, err), err);
}

static void discard_share(heft_sink *sink)
{
    share_sink *k = (share_sink *)sink;
    heft_s3_parts_free(&k->parts);
    free(k);
}

static heft_status finish_share(heft_sink *sink, heft_error *err)
{
    share_sink *k = (share_sink *)sink;
    heft_s3_shares *s = k->s;
    uint32_t first, last;
    heft_status st = heft_s3_gone(heft_s3_parts_end(&k->parts, err), err);
    bool has_parts = !st && heft_s3_share_parts(s, k->number, &first, &last);
    for (uint32_t i = has_parts ? first : 1; has_parts && i <= last; i++)
        if (i <= k->parts.etag_count && !cut_share(k, i).is_object)
            memcpy(s->etags[i - 1], k->parts.etags[i - 1], sizeof *s->etags);
    discard_share(sink);
    return st;
}

static const heft_sink_ops share_ops = {
    .size = sizeof(heft_sink_ops),
    .write_at = write_share,
    .finish = finish_share,
    .discard = discard_share,
};

/* ---- the bytes around the payload ---- */

typedef struct extent { /* bytes of the output that are no payload */
    uint64_t offset;
    size_t length, at; /* at: offset in `bytes` */
} extent;

typedef struct last_sink {
    heft_sink base;
    heft_s3_shares *s;
    heft_memory mem;
    heft_vec extents, bytes;
    heft_s3_parts parts;
} last_sink;

static heft_status write_last(heft_sink *sink, uint64_t offset, const void *data, size_t len,
                              heft_error *err)
{
    last_sink *k = (last_sink *)sink;
    const extent e = { offset, len, k->bytes.len };
    if (!heft_vec_reserve(&k->mem, &k->bytes, len, 1) ||
        !heft_vec_add(&k->mem, &k->extents, &e, sizeof e))
        return heft_error_no_memory(err, "for the header of an upload");
    memcpy((uint8_t *)k->bytes.ptr + k->bytes.len, data, len);
    k->bytes.len += (uint32_t)len;
    return HEFT_OK;
}

static int by_offset(const void *a, const void *b)
{
    uint64_t x = ((const extent *)a)->offset, y = ((const extent *)b)->offset;
    return (x > y) - (x < y);
}

/* ---- completing ---- */

static heft_status run_again(heft_status st, const heft_s3_shares *s, const char *what,
                             uint32_t part, uint32_t share, heft_error *err)
{
    return heft_error_plain(
        err, st,
        "%s %U of the upload is missing or was changed on the server; run share "
        "%U of %U again",
        what, (uint64_t)part, (uint64_t)share, (uint64_t)s->base.count);
}

/* Read a piece and compare the hash with the record of the share. */
static heft_status read_piece(char **out, const heft_s3_shares *s, uint32_t share, uint32_t part,
                              heft_error *err)
{
    static const char what[] = "a piece of part";
    heft_s3_cut cut = heft_s3_share_cut(s, share, part);
    heft_s3_name name;
    uint8_t hash[HEFT_HASH_BYTES];
    heft_blake3 h;
    size_t len = 0;
    heft_s3_piece_name(name, share, part);
    heft_status st = heft_s3_shares_read(out, &len, s, name, cut.length, err);
    if (st == HEFT_E_NOTFOUND || st == HEFT_E_LIMIT)
        return run_again(st == HEFT_E_LIMIT ? HEFT_E_ARGUMENT : st, s, what, part, share, err);
    if (st)
        return st;
    heft_blake3_init(&h);
    heft_blake3_update(&h, *out, len);
    heft_blake3_final(&h, hash);
    if (len == cut.length && !memcmp(hash, heft_s3_piece(s, share, part), sizeof hash))
        return HEFT_OK;
    free(*out);
    *out = NULL;
    return run_again(HEFT_E_ARGUMENT, s, what, part, share, err);
}

/* Return true if the share that has the first byte of the part has stored the whole part.  *share:
 * a share that ends at or before the part, or that share. */
static bool is_whole(const heft_s3_shares *s, uint32_t *share, uint32_t part)
{
    heft_range p = heft_s3_part_range(s, part);
    while (*share < s->base.count) {
        heft_range r = heft_share_range(s->base.plan, *share);
        if (r.offset + r.length > p.offset)
            break;
        ++*share;
    }
    return !heft_s3_share_cut(s, *share, part).is_object;
}

static uint64_t copy_extents(uint8_t *to, const last_sink *k, size_t *first, heft_range p)
{
    uint64_t copied = 0, end = p.offset + p.length;
    const extent *all = k->extents.ptr;
    while (*first < k->extents.len && all[*first].offset + all[*first].length <= p.offset)
        ++*first;
    for (size_t i = *first; i < k->extents.len && all[i].offset < end; i++) {
        const extent *e = &all[i];
        uint64_t from = e->offset > p.offset ? e->offset : p.offset;
        uint64_t until = e->offset + e->length < end ? e->offset + e->length : end;
        memcpy(to + (from - p.offset), (const uint8_t *)k->bytes.ptr + e->at + (from - e->offset),
               until - from);
        copied += until - from;
    }
    return copied;
}

/* Put a part together from pieces, of `share` and later shares, and the bytes around the payload,
 * from the extent *first on, and send the part. */
static heft_status assemble(last_sink *k, uint8_t *buf, uint32_t part, uint32_t share,
                            size_t *first, heft_error *err)
{
    const heft_s3_shares *s = k->s;
    heft_range p = heft_s3_part_range(s, part);
    uint64_t filled = 0;
    for (; share <= s->base.count; share++) {
        char *piece;
        heft_range r = heft_share_range(s->base.plan, share);
        if (r.offset >= p.offset + p.length && r.length)
            break;
        heft_s3_cut cut = heft_s3_share_cut(s, share, part);
        if (!cut.due)
            continue;
        heft_status st = read_piece(&piece, s, share, part, err);
        if (st)
            return st;
        memcpy(buf + cut.first, piece, cut.length);
        free(piece);
        filled += cut.due;
    }
    filled += copy_extents(buf, k, first, p); /* after the pieces: pieces have zeros there */
    if (filled != p.length)
        return heft_error_plain(err, HEFT_E_IO, "bytes of part %U were not written",
                                (uint64_t)part);
    return heft_s3_gone(heft_s3_parts_write(&k->parts, p.offset, buf, (size_t)p.length, err), err);
}

static heft_s3_cut cut_last(void *ctx, uint32_t part)
{
    const last_sink *k = ctx;
    size_t length = (size_t)heft_s3_part_range(k->s, part).length;
    return (heft_s3_cut){ length, 0, length, false };
}

/* Send the parts that no share has sent. */
static heft_status send_rest(last_sink *k, heft_error *err)
{
    heft_s3_shares *s = k->s;
    uint8_t *buf = heft_large_map(NULL, 0, s->part_bytes);
    heft_status st = buf ? HEFT_OK : heft_error_no_memory(err, "for a part of an upload");
    uint32_t share = 1;
    size_t first = 0;
    heft_s3_parts_init(&k->parts, &s->upload);
    k->parts.part_bytes = s->part_bytes;
    k->parts.cut = cut_last;
    k->parts.ctx = k;
    if (k->extents.len)
        qsort(k->extents.ptr, k->extents.len, sizeof(extent), by_offset);
    for (uint32_t i = 1; i <= s->part_count && !st; i++)
        if (!is_whole(s, &share, i))
            st = assemble(k, buf, i, share, &first, err);
    if (!st)
        st = heft_s3_gone(heft_s3_parts_end(&k->parts, err), err);
    if (buf)
        heft_large_unmap(buf, s->part_bytes);
    return st;
}

/* Compare without quotation marks: some servers leave the marks out. */
static bool same_etag(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    bool a_quoted = n > 1 && a[0] == '"', b_quoted = m > 1 && b[0] == '"';
    a += a_quoted;
    b += b_quoted;
    n -= a_quoted ? 2 : 0;
    m -= b_quoted ? 2 : 0;
    return n == m && !memcmp(a, b, n);
}

/* Compare the list of the server with a part of a share. */
static heft_status check_part(const heft_s3_shares *s, const heft_s3_stored_part *found,
                              uint32_t share, uint32_t part, heft_error *err)
{
    if (found->bytes == heft_s3_part_range(s, part).length &&
        same_etag(found->etag, s->etags[part - 1]))
        return HEFT_OK;
    return run_again(HEFT_E_ARGUMENT, s, "part", part, share, err);
}

static heft_status list_parts(heft_s3_stored_part **out, heft_s3_shares *s, heft_error *err)
{
    *out = malloc((s->part_count + (size_t)1) * sizeof **out);
    if (!*out)
        return heft_error_no_memory(err, "for a list of parts");
    return heft_s3_gone(heft_s3_upload_list(*out, s->part_count, &s->upload, err), err);
}

/* Compare the server's list of parts with the records, and take the ETags of all parts from the
 * list: a process that completes the output at the same time may have sent a part again. */
static heft_status check_parts(heft_s3_shares *s, heft_error *err)
{
    heft_s3_stored_part *found;
    uint32_t share = 1;
    heft_status st = list_parts(&found, s, err);
    for (uint32_t i = 1; i <= s->part_count && !st; i++) {
        if (is_whole(s, &share, i))
            st = check_part(s, &found[i - 1], share, i, err);
        else if (found[i - 1].bytes != heft_s3_part_range(s, i).length)
            st = heft_error_plain(err, HEFT_E_IO,
                                  "part %U is missing in the server's list of parts", (uint64_t)i);
        if (!st)
            memcpy(s->etags[i - 1], found[i - 1].etag, sizeof *s->etags);
    }
    free(found);
    return st;
}

/* Announce size and ETag of the output, so that a later process can tell a completed output from a
 * lost upload. */
static heft_status announce(const heft_s3_shares *s, heft_error *err)
{
    char text[HEFT_S3_ETAG + 32], etag[HEFT_S3_ETAG];
    long code;
    bool is_known = heft_s3_etag(etag, *s->etags, sizeof *s->etags, s->part_count);
    int n = snprintf(text, sizeof text, "%" PRIu64 " %s\n", heft_share_size(s->base.plan),
                     is_known ? etag : "");
    return heft_s3_shares_put(s, heft_s3_done, (heft_str){ text, (size_t)n }, NULL, &code, err);
}

static void discard_last(heft_sink *sink)
{
    last_sink *k = (last_sink *)sink;
    heft_s3_parts_free(&k->parts);
    heft_vec_free(&k->mem, &k->extents, sizeof(extent));
    heft_vec_free(&k->mem, &k->bytes, 1);
    free(k);
}

static heft_status finish_last(heft_sink *sink, heft_error *err)
{
    last_sink *k = (last_sink *)sink;
    heft_s3_shares *s = k->s;
    heft_status st = send_rest(k, err);
    if (!st)
        st = check_parts(s, err);
    if (!st)
        st = announce(s, err);
    if (!st)
        st = heft_s3_gone(heft_s3_upload_complete(&s->upload, s->etags, s->part_count,
                                                  heft_share_size(s->base.plan),
                                                  s->base.flags & HEFT_SINK_REPLACE, err),
                          err);
    discard_last(sink);
    return st;
}

static const heft_sink_ops last_ops = {
    .size = sizeof(heft_sink_ops),
    .write_at = write_last,
    .finish = finish_last,
    .discard = discard_last,
};

/* ---- functions of the store ---- */

heft_status heft_s3_share_data_open(heft_sink **out, heft_share_store *store, uint32_t number,
                                    heft_error *err)
{
    heft_s3_shares *s = (heft_s3_shares *)store;
    share_sink *k = number ? calloc(1, sizeof *k) : NULL;
    last_sink *last = number ? NULL : calloc(1, sizeof *last);
    *out = number ? (k ? &k->base : NULL) : (last ? &last->base : NULL);
    if (!*out)
        return heft_error_no_memory(err, "for a sink");
    if (last) {
        last->base.ops = &last_ops;
        last->s = s;
        last->mem = (heft_memory){ &heft_libc_allocator, UINT64_MAX, 0 };
        return HEFT_OK;
    }
    k->base.ops = &share_ops;
    k->s = s;
    k->number = number;
    heft_s3_parts_init(&k->parts, &s->upload);
    k->parts.part_bytes = s->part_bytes;
    k->parts.cut = cut_share;
    k->parts.name_object = name_piece;
    k->parts.ctx = k;
    return HEFT_OK;
}

heft_status heft_s3_share_data_check(heft_s3_shares *s, uint32_t share, heft_error *err)
{
    heft_s3_stored_part *found;
    uint32_t first, last;
    bool has_parts = heft_s3_share_parts(s, share, &first, &last);
    heft_status st = list_parts(&found, s, err);
    for (uint32_t i = first; has_parts && i <= last && !st; i++) {
        char *piece = NULL;
        heft_s3_cut cut = heft_s3_share_cut(s, share, i);
        if (cut.due)
            st = cut.is_object ? read_piece(&piece, s, share, i, err)
                               : check_part(s, &found[i - 1], share, i, err);
        free(piece);
    }
    free(found);
    return st;
}
