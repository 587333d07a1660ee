/* fuzz_repair.c - repairs the checksums of a mutated model of any format. */
#include "fuzz_repair.h"

#include <stdlib.h>
#include <string.h>

#include "core/read/stored_checksum.h"

enum {
    MAX_PASSES = 4,     /* a checksum may cover other checksums */
    MAX_CHECKSUMS = 64, /* most checksums of a file that are repaired */
    MAX_COPIES = 3      /* places that store a value: a zip archive has two */
};

/* ---- checksums outside of the index --------------------------------------------------------- */

/* The sum of the bytes of a tar header, in octal at offset 148, with spaces in its place. */
static bool repair_tar(uint8_t *data, size_t size)
{
    enum { BLOCK = 512, SUM = 148, SUM_BYTES = 8, MAGIC = 257 };
    bool changed = false;
    for (size_t at = 0; at + BLOCK <= size; at += BLOCK) {
        uint8_t *head = data + at;
        unsigned sum = ' ' * SUM_BYTES;
        char text[SUM_BYTES + 1] = "000000";
        if (memcmp(head + MAGIC, "ustar", 5) != 0)
            continue;
        for (int i = 0; i < BLOCK; i++)
            sum += i < SUM || i >= SUM + SUM_BYTES ? head[i] : 0u;
        for (int i = 5; i >= 0; i--, sum /= 8)
            text[i] = (char)('0' + sum % 8);
        changed = changed || memcmp(head + SUM, text, 6) != 0;
        memcpy(head + SUM, text, 7);
    }
    return changed;
}

/* ---- checksums of the index ----------------------------------------------------------------- */

typedef struct repair {
    uint8_t *data;
    size_t size;
    const heft_file *f;
} repair;

static bool compute(uint8_t out[HEFT_HASH_BYTES], const repair *r, const heft_stored_checksum *c,
                    const heft_digest *d)
{
    heft_running_digest run = { .digest = NULL };
    if (heft_running_digest_begin(&run, d, r->f->host->allocator, "to repair", NULL))
        return false;
    for (int i = 0; i < HEFT_CHECKSUM_RANGES; i++) {
        heft_range range = c->range[i];
        if (range.offset <= r->size && range.length <= r->size - range.offset)
            heft_running_digest_update(&run, r->data + range.offset, (size_t)range.length);
        if (!i)
            heft_stored_checksum_add_zeros(c, d, heft_running_digest_state(&run));
    }
    heft_running_digest_end(&run, out);
    heft_running_digest_close(&run);
    return true;
}

/* Compute the digest of the decoded bytes of a part. */
static bool compute_decoded(uint8_t out[HEFT_HASH_BYTES], const repair *r,
                            const heft_stored_checksum *c, const heft_digest *d)
{
    heft_running_digest run = { .digest = NULL };
    heft_part p = heft_part_at(r->f, c->part);
    uint8_t *bytes = p.length <= FUZZ_MAX_PAYLOAD ? malloc((size_t)p.length + 1) : NULL;
    bool is_read = bytes && !heft_part_read(bytes, r->f, c->part, 0, (size_t)p.length, NULL) &&
                   !heft_running_digest_begin(&run, d, r->f->host->allocator, "to repair", NULL);
    if (is_read) {
        heft_running_digest_update(&run, bytes, (size_t)p.length);
        heft_running_digest_end(&run, out);
    }
    heft_running_digest_close(&run);
    free(bytes);
    return is_read;
}

/* Replace a few occurrences of the old value; many occurrences are not checksums. */
static bool replace(const repair *r, const void *old, const void *value, size_t len)
{
    size_t found[MAX_COPIES], count = 0;
    for (size_t at = 0; at + len <= r->size; at++)
        if (!memcmp(r->data + at, old, len)) {
            if (count == MAX_COPIES)
                return false;
            found[count++] = at;
        }
    for (size_t i = 0; i < count; i++)
        memcpy(r->data + found[i], value, len);
    return count;
}

/* Write the bytes in hexadecimal, in reverse if the value is a number. */
static size_t spell(char *out, const uint8_t *value, uint32_t len, bool is_reversed)
{
    static const char digits[] = "0123456789abcdef";
    for (uint32_t i = 0; i < len; i++) {
        uint8_t byte = value[is_reversed ? len - 1 - i : i];
        out[2 * (size_t)i] = digits[byte >> 4];
        out[2 * (size_t)i + 1] = digits[byte & 15];
    }
    return 2 * (size_t)len;
}

/* Store a value as bytes in either order, or as text. */
static bool store(const repair *r, const heft_stored_checksum *c, const uint8_t *value,
                  uint32_t len)
{
    uint8_t old[HEFT_HASH_BYTES], new[HEFT_HASH_BYTES];
    char old_text[2 * HEFT_HASH_BYTES], text[2 * HEFT_HASH_BYTES];
    bool is_stored = replace(r, c->expect, value, len);
    for (uint32_t i = 0; i < len; i++) {
        old[i] = c->expect[len - 1 - i];
        new[i] = value[len - 1 - i];
    }
    is_stored = is_stored || replace(r, old, new, len);
    for (int i = 0; i < 4 && !is_stored; i++) {
        size_t n = spell(old_text, c->expect, len, i & 1);
        spell(text, value, len, i & 1);
        for (size_t k = 0; k < n && i & 2; k++)
            old_text[k] = old_text[k] >= 'a' ? (char)(old_text[k] - 'a' + 'A') : old_text[k];
        is_stored = replace(r, old_text, text, n);
    }
    return is_stored;
}

static uint32_t repair_all(const repair *r)
{
    uint8_t value[HEFT_HASH_BYTES];
    uint32_t changed = 0, count = heft_ix_checksums(&r->f->x);
    for (uint32_t i = 0; i < count && i < MAX_CHECKSUMS; i++) {
        heft_stored_checksum c = heft_ix_checksum_at(&r->f->x, i);
        const heft_digest *d = heft_host_digest(r->f->host, c.algorithm);
        if (!d || d->bytes > HEFT_CHECKSUM_BYTES)
            continue;
        bool is_known = c.decoded ? c.part != HEFT_NONE && compute_decoded(value, r, &c, d)
                                  : compute(value, r, &c, d);
        if (is_known && memcmp(value, c.expect, d->bytes) != 0)
            changed += store(r, &c, value, d->bytes);
    }
    return changed;
}

uint32_t fuzz_repair(uint8_t *data, size_t size)
{
    fuzz_memory m;
    uint32_t changed = repair_tar(data, size), total = changed;
    fuzz_memory_init(&m, UINT32_MAX);
    for (int pass = 0; pass < MAX_PASSES && (!pass || changed); pass++) {
        repair r = { data, size, fuzz_open_model(&m.host, data, size) };
        changed = r.f && !r.f->gzip.was_decompressed ? repair_all(&r) : 0;
        heft_file_close((heft_file *)(uintptr_t)r.f);
        total += changed;
    }
    return total;
}
