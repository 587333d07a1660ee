/* s3_share_record.c - how the output of a conversion in shares is cut into parts of an upload, and
 * the lines of a stored record about parts.  The object "KEY.shares/share-00002-of-8" has
 *
 *     heft share of an upload 1
 *     upload ID
 *     piece 12 HASH        the object "KEY.shares/piece-00012-of-share-00002" has this BLAKE3
 *     part 13 "ETAG"       the upload has a part with this ETag
 *
 * with a line for each part with bytes of the share, an empty line, and the record that
 * heft_share_write() makes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "port/remote/s3_shares.h"

static const char first_line[] = "heft share of an upload 1\nupload ";

/* ---- parts and pieces ---- */

heft_status heft_s3_shares_cut(heft_s3_shares *s, heft_error *err)
{
    uint64_t size = heft_share_size(s->base.plan);
    heft_status st = heft_s3_part_bytes(&s->part_bytes, size, err);
    if (st || s->etags)
        return st;
    s->part_count = (uint32_t)((size + s->part_bytes - 1) / s->part_bytes);
    s->etags = calloc(s->part_count + (size_t)1, sizeof *s->etags);
    s->hashes = calloc(s->part_count + (size_t)s->base.count, sizeof *s->hashes);
    return s->etags && s->hashes ? HEFT_OK
                                 : heft_error_no_memory(err, "for the parts of an upload");
}

heft_range heft_s3_part_range(const heft_s3_shares *s, uint32_t part)
{
    uint64_t from = (uint64_t)(part - 1) * s->part_bytes;
    uint64_t left = heft_share_size(s->base.plan) - from;
    return (heft_range){ from, left < s->part_bytes ? left : s->part_bytes };
}

heft_s3_cut heft_s3_share_cut(const heft_s3_shares *s, uint32_t share, uint32_t part)
{
    heft_range p = heft_s3_part_range(s, part), r = heft_share_range(s->base.plan, share);
    uint64_t from = p.offset > r.offset ? p.offset : r.offset;
    uint64_t p_end = p.offset + p.length, r_end = r.offset + r.length;
    uint64_t to = p_end < r_end ? p_end : r_end;
    uint64_t due = heft_share_bytes_in(s->base.plan, share, p);
    return (heft_s3_cut){ .due = (size_t)due,
                          .first = from < to ? (size_t)(from - p.offset) : 0,
                          .length = from < to ? (size_t)(to - from) : 0,
                          .is_object = due < p.length };
}

bool heft_s3_share_parts(const heft_s3_shares *s, uint32_t share, uint32_t *first, uint32_t *last)
{
    heft_range r = heft_share_range(s->base.plan, share);
    *first = (uint32_t)(r.offset / s->part_bytes) + 1;
    *last = r.length ? (uint32_t)((r.offset + r.length - 1) / s->part_bytes) + 1 : 0;
    return r.length;
}

/* From one piece to the next, neither part nor share falls, and at least either rises. */
uint8_t *heft_s3_piece(const heft_s3_shares *s, uint32_t share, uint32_t part)
{
    return s->hashes[part - 1 + share - 1];
}

heft_status heft_s3_shares_address(heft_address *out, const heft_s3_shares *s, const char *name,
                                   heft_error *err)
{
    *out = s->folder;
    return heft_url_append(out->url, sizeof out->url, heft_str_from(name), "")
               ? HEFT_OK
               : heft_error_plain(err, HEFT_E_LIMIT, "the address is too long");
}

heft_status heft_s3_shares_read(char **out, size_t *len, const heft_s3_shares *s, const char *name,
                                uint64_t most, heft_error *err)
{
    heft_address *target = malloc(sizeof *target);
    *out = NULL;
    heft_status st = target ? heft_s3_shares_address(target, s, name, err)
                            : heft_error_no_memory(err, "for an address");
    if (!st)
        st = heft_s3_read(out, len, s->upload.session, target, most, err);
    free(target);
    return st;
}

heft_status heft_s3_shares_put(const heft_s3_shares *s, const char *name, heft_str body,
                               const char *header, long *code, heft_error *err)
{
    heft_address *target = malloc(sizeof *target);
    *code = 0;
    heft_status st = target ? heft_s3_shares_address(target, s, name, err)
                            : heft_error_no_memory(err, "for an address");
    if (!st)
        st = heft_s3_put(s->upload.session, target, body, header, code, err);
    free(target);
    return st;
}

void heft_s3_piece_name(heft_s3_name name, uint32_t share, uint32_t part)
{
    snprintf(name, sizeof(heft_s3_name), "piece-%05u-of-share-%05u", (unsigned)part,
             (unsigned)share);
}

/* ---- records ---- */

char *heft_s3_share_record(size_t *len, const heft_s3_shares *s, uint32_t share, heft_str record)
{
    enum { ROW = HEFT_S3_ETAG_TEXT + 32 };
    uint32_t first, last, count = 0;
    if (heft_s3_share_parts(s, share, &first, &last))
        count = last - first + 1;
    size_t size = sizeof first_line + sizeof s->upload.id + (size_t)count * ROW + record.len + 2;
    char *text = malloc(size), hex[2 * HEFT_HASH_BYTES + 1] = "";
    if (!text)
        return NULL;
    size_t at = (size_t)snprintf(text, size, "%s%s\n", first_line, s->upload.id);
    for (uint32_t i = first; count && i <= last; i++) {
        heft_s3_cut cut = heft_s3_share_cut(s, share, i);
        heft_hex_text(hex, heft_s3_piece(s, share, i), HEFT_HASH_BYTES);
        if (cut.due)
            at += (size_t)snprintf(text + at, size - at, "%s %u %s\n",
                                   cut.is_object ? "piece" : "part", (unsigned)i,
                                   cut.is_object ? hex : s->etags[i - 1]);
    }
    text[at++] = '\n';
    memcpy(text + at, record.ptr, record.len);
    *len = at + record.len;
    return text;
}

/* Move *text behind the line, and terminate the line; NULL: there is no further line. */
static char *next_line(char **text)
{
    char *line = *text, *end = strchr(line, '\n');
    if (!end)
        return NULL;
    *end = '\0';
    *text = end + 1;
    return line;
}

/* Read the line about a part; false: the line says something else. */
static bool read_row(heft_s3_shares *s, uint32_t share, uint32_t part, const char *line)
{
    char start[32];
    bool is_piece = heft_s3_share_cut(s, share, part).is_object;
    int n = snprintf(start, sizeof start, "%s %u ", is_piece ? "piece" : "part", (unsigned)part);
    const char *value = line && !strncmp(line, start, (size_t)n) ? line + n : NULL;
    if (value && is_piece)
        return heft_hex_read(heft_s3_piece(s, share, part), HEFT_HASH_BYTES, heft_str_from(value));
    if (!value || !*value || strlen(value) >= sizeof *s->etags)
        return false;
    strcpy(s->etags[part - 1], value);
    return true;
}

heft_status heft_s3_share_record_read(heft_s3_shares *s, uint32_t share, char *text, size_t *len,
                                      heft_error *err)
{
    char *at = text;
    uint32_t first, last;
    bool is_valid = !strncmp(text, first_line, sizeof first_line - 1);
    at += is_valid ? sizeof first_line - 1 : 0;
    const char *id = is_valid ? next_line(&at) : NULL;
    if (id && strcmp(id, s->upload.id) != 0)
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "the record of share %U belongs to another upload; run the share "
                                "again",
                                (uint64_t)share);
    is_valid = id;
    bool has_parts = heft_s3_share_parts(s, share, &first, &last);
    for (uint32_t i = first; has_parts && is_valid && i <= last; i++)
        if (heft_s3_share_cut(s, share, i).due)
            is_valid = read_row(s, share, i, next_line(&at));
    const char *empty = is_valid ? next_line(&at) : NULL;
    if (!empty || *empty)
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "the record of share %U is damaged; run the share again",
                                (uint64_t)share);
    *len -= (size_t)(at - text);
    memmove(text, at, *len + 1);
    return HEFT_OK;
}
