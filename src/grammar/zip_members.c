/* zip_members.c - collects members from all directories of an archive, and from the local headers
 * that no directory names.  PKWARE's APPNOTE.TXT 6.3.10 describes the records. */

#include "base/checked_math.h"
#include "base/sort.h"
#include "base/text.h"
#include "grammar/zip.h"

enum {
    LOCAL = 30, /* size of a local header without name and extra field */
    END = 22,
    LOCATOR = 20,
    END64 = 56,
    MAX_COMMENT = 0xFFFF,
    MOST_END_RECORDS = 8,
    ENCRYPTED = 1,    /* flag */
    SIZES_FOLLOW = 8, /* flag: the local header has no sizes */
    ZIP64_EXTRA = 1   /* id of an extra field */
};

typedef struct search {
    heft_memory *m;
    heft_vec *out;
    const uint8_t *bytes;
    uint64_t size;
    uint32_t directories; /* read so far */
    bool is_out_of_memory;
} search;

static uint32_t u32_at(const search *a, uint64_t at)
{
    return heft_le32(a->bytes + at);
}

static bool has(const search *a, uint64_t at, uint64_t len)
{
    return heft_range_in((heft_range){ at, len }, a->size);
}

static void add(search *a, const heft_zip_found *member)
{
    if (!heft_vec_add(a->m, a->out, member, sizeof *member))
        a->is_out_of_memory = true;
}

/* ---- local headers ---- */

/* Read a local header; `limit` ends the member if the header has no valid size.  Return false if
 * there is no header. */
static bool read_local(heft_zip_found *out, const search *a, uint64_t head, uint64_t limit,
                       bool *has_size)
{
    if (!has(a, head, LOCAL) || u32_at(a, head) != SIGN_MEMBER)
        return false;
    const uint8_t *p = a->bytes + head;
    uint16_t flags = heft_le16(p + 6), name = heft_le16(p + 26), extra = heft_le16(p + 28);
    uint64_t stored = heft_le32(p + 18), data = head + LOCAL + name + extra;
    if (!has(a, head + LOCAL, name))
        return false;
    data = data < limit ? data : limit;
    *has_size = !(flags & SIZES_FOLLOW) && stored && stored <= limit - data;
    *out = (heft_zip_found){ .name = { (const char *)p + LOCAL, name },
                             .head = head,
                             .data = data,
                             .stored = *has_size ? stored : limit - data,
                             .has_no_size = !*has_size,
                             .method = heft_le16(p + 8),
                             .claims_encrypted = flags & ENCRYPTED };
    return true;
}

/* Add the members of local headers between the offsets `from` and `to`. */
static void search_gap(search *a, uint64_t from, uint64_t to)
{
    static const uint8_t sign[] = { 'P', 'K', 3, 4 };
    const uint8_t *p = a->bytes + from, *end = a->bytes + to;
    while (!a->is_out_of_memory && p < end && (p = heft_str_seek(p, end, sign, sizeof sign))) {
        heft_zip_found member;
        bool has_size;
        if (read_local(&member, a, (uint64_t)(p - a->bytes), to, &has_size)) {
            add(a, &member);
            p = a->bytes + member.data + (has_size ? member.stored : 0);
        } else {
            p += sizeof sign;
        }
    }
}

/* ---- directories ---- */

typedef struct entry {
    heft_str name;
    uint64_t stored, head;
    uint16_t method, flags;
} entry;

/* Replace numbers that do not fit in 32 bits by those of the extra field. */
static void read_zip64(entry *e, const uint8_t *p, size_t len, bool has_content)
{
    while (len >= 4) {
        size_t bytes = heft_le16(p + 2), at = 4 + (has_content ? 8 : 0);
        if (bytes > len - 4)
            return;
        if (heft_le16(p) == ZIP64_EXTRA) {
            uint64_t *const numbers[] = { &e->stored, &e->head };
            for (size_t i = 0; i < 2; i++)
                if (*numbers[i] == UINT32_MAX && at + 8 <= bytes + 4) {
                    *numbers[i] = heft_le64(p + at);
                    at += 8;
                }
        }
        p += 4 + bytes;
        len -= 4 + bytes;
    }
}

/* Read a directory entry; return the number of bytes, or 0 if there is no entry. */
static uint64_t read_entry(entry *e, const search *a, uint64_t at)
{
    if (!has(a, at, ENTRY) || u32_at(a, at) != SIGN_ENTRY)
        return 0;
    const uint8_t *p = a->bytes + at;
    size_t name = heft_le16(p + 28), extra = heft_le16(p + 30), comment = heft_le16(p + 32);
    if (!has(a, at + ENTRY, name + extra))
        return 0;
    *e = (entry){ .name = { (const char *)p + ENTRY, name },
                  .stored = heft_le32(p + 20),
                  .head = heft_le32(p + 42),
                  .method = heft_le16(p + 10),
                  .flags = heft_le16(p + 8) };
    read_zip64(e, p + ENTRY + name, extra, heft_le32(p + 24) == UINT32_MAX);
    return ENTRY + name + extra + comment;
}

/* Add the member as the directory describes it and, if its local header differs, as the local
 * header does. */
static void add_entry(search *a, const entry *e, uint64_t shift)
{
    heft_zip_found local, m;
    bool has_size;
    uint64_t head = e->head + shift;
    if (head < e->head || !read_local(&local, a, head, a->size, &has_size))
        return;
    m = local;
    m.directory = a->directories;
    m.has_no_size = false;
    m.name = e->name;
    m.method = e->method;
    m.stored = e->stored < a->size - m.data ? e->stored : a->size - m.data;
    m.claims_encrypted |= e->flags & ENCRYPTED;
    add(a, &m);
    if (local.method != m.method || (has_size && local.stored != m.stored) ||
        !heft_str_eq(local.name, m.name)) {
        local.stored = has_size ? local.stored : m.stored;
        local.has_no_size = false;
        add(a, &local);
    }
}

/* Return the offset after the last entry. */
static uint64_t read_directory(search *a, uint64_t at, uint64_t shift)
{
    entry e;
    a->directories++;
    for (uint64_t n; !a->is_out_of_memory && (n = read_entry(&e, a, at)); at += n)
        add_entry(a, &e, shift);
    return at;
}

/* Read the directory at the stated offset and, if bytes precede the archive, the directory that
 * ends at the end records, whose offsets count from the archive's first byte.  Return true if the
 * latter fills the bytes before the end records. */
static bool follow(search *a, uint64_t ends_at, uint64_t offset, uint64_t bytes)
{
    uint64_t start = bytes <= ends_at ? ends_at - bytes : offset, end = 0;
    if (offset < a->size)
        end = read_directory(a, offset, 0);
    if (start > offset)
        end = read_directory(a, start, start - offset);
    return bytes && start >= offset && end == ends_at;
}

static bool follow_end64(search *a, uint64_t locator)
{
    uint64_t stated = heft_le64(a->bytes + locator + 8);
    uint64_t places[] = { stated, locator >= END64 ? locator - END64 : stated };
    bool is_exact = false;
    for (size_t i = 0; i < (places[0] == places[1] ? 1 : 2); i++)
        if (has(a, places[i], END64) && u32_at(a, places[i]) == SIGN_END64)
            is_exact |= follow(a, places[i], heft_le64(a->bytes + places[i] + 48),
                               heft_le64(a->bytes + places[i] + 40));
    return is_exact;
}

/* Return true if a directory lies just before the end records. */
static bool follow_end(search *a, uint64_t at)
{
    bool is_exact = follow(a, at, u32_at(a, at + 16), u32_at(a, at + 12));
    if (at >= LOCATOR && u32_at(a, at - LOCATOR) == SIGN_LOCATOR)
        is_exact |= follow_end64(a, at - LOCATOR);
    return is_exact;
}

/* Find the last end record before the offset *at; return false if there is none. */
static bool previous_end(const search *a, uint64_t *at)
{
    uint64_t lowest = a->size > END + MAX_COMMENT ? a->size - END - MAX_COMMENT : 0;
    while (*at > lowest)
        if (has(a, --*at, END) && u32_at(a, *at) == SIGN_END)
            return true;
    return false;
}

/* Archives may follow each other; other end records are followed up to a number, since they could
 * share a long directory. */
static void follow_ends(search *a, bool *has_more)
{
    uint64_t at = a->size;
    uint32_t followed = 0;
    while (!a->is_out_of_memory && previous_end(a, &at)) {
        *has_more = followed == MOST_END_RECORDS;
        if (*has_more)
            return;
        followed += !follow_end(a, at);
    }
}

/* ---- the members of all readers ---- */

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int order_of(const heft_zip_found *x, const heft_zip_found *y)
{
    int order = compare(x->data, y->data);
    if (!order)
        order = compare(x->stored, y->stored);
    return order ? order : compare(x->method, y->method);
}

static bool is_less(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_zip_found *members = ctx;
    return order_of(members + a, members + b) < 0;
}

static bool is_last_of(const heft_vec *sorted, const heft_zip_found *m)
{
    const heft_zip_found *last = sorted->len ? (const heft_zip_found *)sorted->ptr + sorted->len - 1
                                             : NULL;
    return last && !order_of(last, m) && heft_str_eq(last->name, m->name);
}

/* Replace the members by sorted ones, without members that differ only in their names. */
static bool sort_members(search *a)
{
    uint32_t n = a->out->len;
    size_t bytes = (size_t)n * 2 * sizeof(uint32_t);
    heft_vec sorted = { 0 };
    uint32_t *numbers = n ? heft_mem_alloc(a->m, bytes) : NULL;
    bool is_done = numbers && heft_vec_reserve(a->m, &sorted, n, sizeof(heft_zip_found));
    if (is_done)
        heft_sort_numbers(numbers, n, is_less, a->out->ptr);
    for (uint32_t i = 0; is_done && i < n; i++) {
        const heft_zip_found *m = (const heft_zip_found *)a->out->ptr + numbers[i];
        if (!is_last_of(&sorted, m))
            heft_vec_add(a->m, &sorted, m, sizeof *m);
    }
    heft_mem_free(a->m, numbers, bytes);
    if (is_done) {
        heft_vec_free(a->m, a->out, sizeof(heft_zip_found));
        *a->out = sorted;
    }
    return is_done || !n;
}

/* Search the bytes that belong to no member so far; members are sorted. */
static void search_gaps(search *a)
{
    uint64_t covered = 0;
    uint32_t known = a->out->len;
    for (uint32_t i = 0; i <= known && !a->is_out_of_memory; i++) {
        heft_zip_found m = { .head = a->size, .data = a->size };
        if (i < known)
            m = ((const heft_zip_found *)a->out->ptr)[i];
        if (m.head > covered)
            search_gap(a, covered, m.head);
        uint64_t end = m.data + m.stored;
        covered = end > covered ? end : covered;
    }
}

/* Return true if two of the sorted members of a directory share bytes. */
static bool find_overlaps(search *a, bool *found)
{
    size_t bytes = ((size_t)a->directories + 1) * sizeof(uint64_t);
    uint64_t *covered = heft_mem_alloc(a->m, bytes);
    *found = false;
    if (!covered)
        return false;
    memset(covered, 0, bytes);
    for (uint32_t i = 0; i < a->out->len; i++) {
        const heft_zip_found *m = (const heft_zip_found *)a->out->ptr + i;
        uint64_t *end = covered + m->directory;
        *found |= m->directory && m->stored && m->head < *end;
        *end = m->data + m->stored > *end ? m->data + m->stored : *end;
    }
    heft_mem_free(a->m, covered, bytes);
    return true;
}

bool heft_zip_begins(const uint8_t *bytes, uint64_t size)
{
    uint32_t sign = size < sizeof sign ? 0 : heft_le32(bytes);
    return sign == SIGN_MEMBER || sign == SIGN_END;
}

bool heft_zip_has_end(const uint8_t *bytes, uint64_t size)
{
    search a = { .bytes = bytes, .size = size };
    uint64_t at = size;
    return previous_end(&a, &at);
}

bool heft_zip_find_members(heft_zip_members *out, heft_memory *m, const uint8_t *bytes,
                           uint64_t size)
{
    *out = (heft_zip_members){ 0 };
    search a = { .m = m, .out = &out->members, .bytes = bytes, .size = size };
    follow_ends(&a, &out->has_more_end_records);
    if (!a.is_out_of_memory && sort_members(&a))
        search_gaps(&a);
    else
        a.is_out_of_memory = true;
    return !a.is_out_of_memory && sort_members(&a) && find_overlaps(&a, &out->has_overlaps);
}
