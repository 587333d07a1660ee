/* checksums.c - records stored checksums, notes of the parser, and content that the index omits. */
#include "base/bisect.h"
#include "base/checked_math.h"
#include "base/error.h"
#include "base/sort.h"
#include "base/text.h"
#include "model/index.h"

enum {
    MAX_NOTES = 10000, /* limit for hostile files */
    DECODED = 0x80     /* bit of heft_digest_row.algorithm: digest of the decoded bytes */
};

typedef struct algorithm {
    const char *name;
    uint8_t bytes;
    bool is_number; /* most significant digit first; leading zeros are optional */
} algorithm;

static const algorithm algorithms[] = {
    { "crc32", 4, true },
    { "crc32c", 4, true },
    { "xxh3", 8, true },
    { "sha256", 32, false },
};

static size_t find_algorithm(const char *name)
{
    size_t i = 0;
    while (i < sizeof algorithms / sizeof *algorithms &&
           !heft_str_is(heft_lit(name), algorithms[i].name))
        i++;
    return i;
}

heft_status heft_ix_checksum(heft_index *x, heft_stored_checksum c)
{
    heft_stored_checksum *to = heft_vec_push(&x->mem, &x->checksums, sizeof *to);
    if (!to)
        return heft_error_no_memory(x->err, "for a checksum");
    c.part = HEFT_NONE;
    *to = c;
    x->has_alternatives = x->has_alternatives || c.is_alternative;
    return HEFT_OK;
}

/* Append a note, or record that the note was lost: the caller then reports missing memory. */
static void add_note(heft_index *x, heft_note note)
{
    if (x->notes.len >= MAX_NOTES) {
        x->notes_cut = true;
        return;
    }
    heft_note *to = heft_vec_push(&x->mem, &x->notes, sizeof *to);
    if (to)
        *to = note;
    else
        x->lost_notes = true;
}

void heft_ix_note_range(heft_index *x, heft_severity s, const char *rule, heft_range where,
                        uint32_t tensor, const char *text)
{
    add_note(x, (heft_note){ s, rule, text, where, tensor, false, HEFT_LEFT_OUT_NOT });
}

void heft_ix_note(heft_index *x, heft_severity s, const char *rule, uint64_t at, uint32_t tensor,
                  const char *text)
{
    heft_ix_note_range(x, s, rule, (heft_range){ at, 0 }, tensor, text);
}

void heft_ix_note_early(heft_index *x, heft_severity s, const char *rule, uint64_t at,
                        uint32_t tensor, const char *text)
{
    add_note(x, (heft_note){ s, rule, text, { at, 0 }, tensor, true, HEFT_LEFT_OUT_NOT });
}

void heft_ix_note_copy(heft_index *x, const heft_note *note)
{
    add_note(x, *note);
}

/* Append a note with a formatted text; a note that is discarded needs no text. */
static void add_formatted(heft_index *x, heft_note note, const char *fmt, va_list *ap)
{
    heft_error text;
    heft_str copy = { "", 0 };
    if (x->notes.len < MAX_NOTES) {
        heft_error_set_list(&text, HEFT_OK, HEFT_NOWHERE, fmt, ap);
        copy = heft_arena_copy(&x->arena,
                               (heft_str){ text.message, heft_lit(text.message).len + 1 });
    }
    x->lost_notes = x->lost_notes || !copy.ptr;
    note.text = copy.ptr;
    if (copy.ptr)
        add_note(x, note);
}

void heft_ix_note_format(heft_index *x, heft_severity s, const char *rule, heft_range where,
                         uint32_t tensor, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add_formatted(x, (heft_note){ s, rule, "", where, tensor, false, HEFT_LEFT_OUT_NOT }, fmt, &ap);
    va_end(ap);
}

void heft_ix_left_out(heft_index *x, heft_left_out how, const char *rule, heft_range where,
                      const char *fmt, ...)
{
    va_list ap;
    x->left_out++;
    x->left_out_unread += how == HEFT_LEFT_OUT;
    va_start(ap, fmt);
    add_formatted(x, (heft_note){ HEFT_WARNING, rule, "", where, HEFT_NONE, false, (uint8_t)how },
                  fmt, &ap);
    va_end(ap);
}

void heft_ix_left_out_is_fault(heft_index *x)
{
    heft_note *notes = x->notes.ptr;
    if (x->notes.len && !x->notes_cut)
        notes[x->notes.len - 1].severity = HEFT_FAULT;
}

void heft_ix_part_is_left_out(heft_index *x)
{
    heft_ix_part_row_at(x, heft_ix_all_parts(x) - 1)->flags |= HEFT_P_LEFT_OUT;
    x->left_out_unread--;
}

heft_status heft_ix_forgive_error(heft_index *x, heft_status st, const char *kind)
{
    const heft_str end = { "", 1 }, nothing = { "", 0 }; /* a NUL ends the copy */
    /* A worker has no error object.  Errors that could not be listed are not forgiven. */
    if (st != HEFT_E_FORMAT || !x->err || x->notes.len >= MAX_NOTES)
        return st;
    const char *text = heft_arena_join(&x->arena, heft_lit(x->err->message), end, nothing).ptr;
    if (!text)
        return heft_error_no_memory(x->err, "for a note about the file");
    heft_ix_note_early(x, HEFT_FAULT, kind, x->err->offset, HEFT_NONE, text);
    *x->err = (heft_error){ .status = HEFT_OK, .offset = HEFT_NOWHERE };
    return HEFT_OK;
}

void heft_ix_note_offsets(heft_index *x, uint32_t align, const char *rule, const char *text)
{
    for (uint32_t t = 0; x->offset_bits & (align - 1) && t < heft_ix_tensors(x); t++) {
        const heft_ix_tensor_row *row = heft_ix_row(x, t);
        for (uint32_t i = row->first_part; i < row->first_part + row->part_count; i++) {
            const heft_ix_part_row *part = heft_ix_part_row_at(x, i);
            if (part->offset & (align - 1))
                heft_ix_note_range(x, HEFT_WARNING, rule,
                                   (heft_range){ part->offset, part->stored }, t, text);
        }
    }
}

/* ---- omitted content ---- */

/* Return the row for the same rule, key and text; the last row once the list is full; else NULL. */
static heft_ix_omission *omission_of(const heft_index *x, const char *rule, heft_str name,
                                     const char *text)
{
    enum { MAX_OMISSIONS = 32 };
    heft_ix_omission *all = x->omitted.ptr;
    for (uint32_t i = 0; i < x->omitted.len; i++)
        if (heft_str_is(heft_lit(all[i].rule), rule) && heft_str_eq(all[i].name, name) &&
            heft_str_is(heft_lit(all[i].text), text))
            return &all[i];
    return x->omitted.len < MAX_OMISSIONS ? NULL : &all[MAX_OMISSIONS - 1];
}

void heft_ix_omit(heft_index *x, heft_severity s, const char *rule, heft_str name, const char *text)
{
    heft_ix_omission *to = omission_of(x, rule, name, text);
    x->has_omissions = true;
    if (to) {
        to->count++;
        return;
    }
    to = heft_vec_push(&x->mem, &x->omitted, sizeof *to);
    if (!to) {
        x->lost_omissions = true;
        return;
    }
    *to = (heft_ix_omission){ s, rule, text, { NULL, 0 }, 1 };
    if (!name.ptr)
        return;
    /* Without memory the row stays without a name; filling the index does not fail for a name. */
    to->name = heft_arena_copy(&x->arena, name);
    x->lost_omissions = x->lost_omissions || !to->name.ptr;
}

/* ---- digests of parts ---- */

/* Parse hexadecimal digits; numbers become little-endian bytes, as from heft_digest.final. */
static bool parse_digits(uint8_t out[HEFT_CHECKSUM_BYTES], const algorithm *a, const char *hex,
                         size_t len)
{
    memset(out, 0, HEFT_CHECKSUM_BYTES);
    if (!len || len > 2u * a->bytes || (!a->is_number && len != 2u * a->bytes))
        return false;
    for (size_t i = 0; i < len; i++) {
        uint32_t d = heft_hex_digit(hex[i]);
        size_t nibble = a->is_number ? len - 1 - i : i ^ 1; /* from the lowest */
        if (d > 15)
            return false;
        out[nibble / 2] |= (uint8_t)(d << 4 * (nibble & 1));
    }
    return true;
}

bool heft_ix_digits(uint8_t out[HEFT_CHECKSUM_BYTES], const char *name, heft_str hex)
{
    return parse_digits(out, &algorithms[find_algorithm(name)], hex.ptr, hex.len);
}

heft_status heft_ix_digest(heft_index *x, uint32_t part, const char *rule, const char *name,
                           heft_str spelled, size_t hex_at, bool decoded)
{
    uint8_t bytes[HEFT_CHECKSUM_BYTES];
    size_t a = find_algorithm(name);
    if (hex_at > UINT8_MAX || hex_at > spelled.len ||
        !parse_digits(bytes, &algorithms[a], spelled.ptr + hex_at, spelled.len - hex_at))
        return heft_error_plain(x->err, HEFT_E_FORMAT, "%q is not a %s digest", spelled, name);
    heft_digest_row *to = heft_vec_push(&x->mem, &x->digests, sizeof *to);
    if (!to)
        return heft_error_no_memory(x->err, "for a digest");
    *to = (heft_digest_row){ spelled.ptr,
                             rule,
                             part,
                             (uint16_t)spelled.len,
                             (uint8_t)hex_at,
                             (uint8_t)(a | (decoded ? DECODED : 0)) };
    return HEFT_OK;
}

heft_status heft_ix_digest_crc32(heft_index *x, uint32_t part, const char *rule, uint32_t crc)
{
    char text[] = "crc32:0x00000000";
    enum { HEX_AT = 8, LENGTH = sizeof text - 1 };
    uint8_t bytes[4] = { (uint8_t)(crc >> 24), (uint8_t)(crc >> 16), (uint8_t)(crc >> 8),
                         (uint8_t)crc };
    heft_hex_text(text + HEX_AT, bytes, sizeof bytes);
    heft_str spelled = heft_ix_copy(x, (heft_str){ text, LENGTH });
    return spelled.ptr ? heft_ix_digest(x, part, rule, "crc32", spelled, HEX_AT, true)
                       : HEFT_E_NOMEM;
}

uint32_t heft_ix_checksums(const heft_index *x)
{
    return x->checksums.len + x->digests.len;
}

heft_stored_checksum heft_ix_checksum_at(const heft_index *x, uint32_t i)
{
    if (i < x->checksums.len)
        return ((const heft_stored_checksum *)x->checksums.ptr)[i];
    const heft_digest_row *row = (const heft_digest_row *)x->digests.ptr + (i - x->checksums.len);
    const algorithm *a = &algorithms[row->algorithm & ~DECODED];
    const heft_ix_part_row *part = heft_ix_part_row_at(x, row->part);
    heft_stored_checksum c = { .rule = row->rule, .algorithm = a->name, .part = row->part };
    c.range[0] = (heft_range){ part->offset, part->stored };
    c.decoded = row->algorithm & DECODED && part->encoding != HEFT_RAW;
    c.tensor = heft_ix_owner(x, row->part);
    parse_digits(c.expect, a, row->text + row->hex_at, (size_t)row->len - row->hex_at);
    return c;
}

uint32_t heft_ix_checksum_part(const heft_index *x, uint32_t i)
{
    if (i < x->checksums.len)
        return ((const heft_stored_checksum *)x->checksums.ptr)[i].part;
    return ((const heft_digest_row *)x->digests.ptr)[i - x->checksums.len].part;
}

const char *heft_ix_checksum_algorithm(const heft_index *x, uint32_t i)
{
    if (i < x->checksums.len)
        return ((const heft_stored_checksum *)x->checksums.ptr)[i].algorithm;
    const heft_digest_row *row = (const heft_digest_row *)x->digests.ptr + (i - x->checksums.len);
    return algorithms[row->algorithm & ~DECODED].name;
}

bool heft_ix_checksum_is_alternative(const heft_index *x, uint32_t i)
{
    return i < x->checksums.len &&
           ((const heft_stored_checksum *)x->checksums.ptr)[i].is_alternative;
}

uint32_t heft_ix_digest_find(const heft_index *x, uint32_t part)
{
    const heft_digest_row *rows = x->digests.ptr;
    heft_bisect b = { .end = x->digests.len };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, rows[b.mid].part < part);
    return b.first < x->digests.len && rows[b.first].part == part ? b.first : HEFT_NONE;
}

/* ---- checksums over the bytes of one tensor ---- */

static uint64_t start_of(const heft_index *x, uint32_t checksum)
{
    return ((const heft_stored_checksum *)x->checksums.ptr)[checksum].range[0].offset;
}

static bool starts_before(const void *ctx, uint32_t a, uint32_t b)
{
    return start_of(ctx, a) < start_of(ctx, b);
}

/* Sort x->tensor_checksums by offset, unless already sorted. */
static bool sort_tensor_checksums(heft_index *x)
{
    uint32_t n = x->tensor_checksums.len, sorted = 1;
    uint32_t *ids = x->tensor_checksums.ptr;
    while (sorted < n && !starts_before(x, ids[sorted], ids[sorted - 1]))
        sorted++;
    if (sorted >= n)
        return true;
    uint32_t *scratch = heft_mem_alloc(&x->mem, n * sizeof *scratch);
    if (!scratch)
        return false;
    heft_sort(ids, scratch, n, starts_before, x);
    heft_mem_free(&x->mem, scratch, n * sizeof *scratch);
    return true;
}

bool heft_ix_list_tensor_checksums(heft_index *x)
{
    const heft_stored_checksum *checksums = x->checksums.ptr;
    x->tensor_checksums.len = 0;
    for (uint32_t i = 0; i < x->checksums.len; i++) {
        /* An example is the checksum of an archive member that holds one tensor. */
        const heft_stored_checksum *c = &checksums[i];
        bool covers_tensor = c->tensor != HEFT_NONE && !c->covers_metadata_only && !c->advisory &&
                             !c->is_alternative && c->range[0].length && !c->range[1].length;
        if (!covers_tensor || (i && c[-1].is_alternative))
            continue;
        uint32_t *to = heft_vec_push(&x->mem, &x->tensor_checksums, sizeof *to);
        if (!to)
            return false;
        *to = i;
    }
    return sort_tensor_checksums(x);
}

uint32_t heft_ix_checksum_of_range(const heft_index *x, heft_range of)
{
    const uint32_t *ids = x->tensor_checksums.ptr;
    heft_bisect b = { .end = x->tensor_checksums.len };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, start_of(x, ids[b.mid]) <= of.offset);
    if (!b.first || !of.length)
        return HEFT_NONE;
    heft_range r = ((const heft_stored_checksum *)x->checksums.ptr)[ids[b.first - 1]].range[0];
    bool is_covered = heft_range_in((heft_range){ of.offset - r.offset, of.length }, r.length);
    return is_covered ? ids[b.first - 1] : HEFT_NONE;
}

uint32_t heft_ix_checksum_covering(const heft_index *x, uint32_t part)
{
    const heft_ix_part_row *p = heft_ix_part_row_at(x, part);
    return heft_ix_checksum_of_range(x, (heft_range){ p->offset, p->stored });
}

heft_str heft_ix_digest_of(const heft_index *x, uint32_t part)
{
    uint32_t i = heft_ix_digest_find(x, part);
    if (i == HEFT_NONE)
        return (heft_str){ "", 0 };
    const heft_digest_row *row = (const heft_digest_row *)x->digests.ptr + i;
    return (heft_str){ row->text, row->len };
}

uint32_t heft_ix_owner(const heft_index *x, uint32_t part)
{
    heft_bisect b = { .first = 1, .end = x->tensors.len };
    if (part >= x->parts.len)
        return HEFT_NONE;
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, heft_ix_row(x, b.mid)->first_part <= part);
    return b.first - 1;
}
