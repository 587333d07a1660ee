/* zt2_seekable.c - checks parts compressed with zt.zstd-seekable/1: independent zstd frames, then a
 * seek table in a frame that decoders skip. */
#include "format/ztensor/zt2.h"

enum {
    SKIP_HEAD = HEFT_ZT2_SEEK_HEAD,
    ENTRY = HEFT_ZT2_SEEK_ENTRY,
    TAIL = HEFT_ZT2_SEEK_TAIL,
    FRAME_HEAD = 18,
    MAX_CONTENT = 16 << 20
};
static const uint32_t frame_magic = 0xFD2FB528;

typedef struct table {
    uint64_t first, frames_end; /* offsets of the first entry and of the end of the frames */
    uint32_t count, entry_size; /* number of entries, and bytes per entry */
} table;

static const char rule[] = "ztensor/seek-table";

static heft_status fault(heft_check *c, uint32_t part, heft_range where, const char *text)
{
    c->report(c, HEFT_FAULT, rule, where, heft_ix_owner(c->x, part), text);
    return HEFT_OK;
}

/* Locate the seek table. On a fault, report it and leave t->first 0. */
static heft_status find_table(heft_check *c, uint32_t part, table *t)
{
    const heft_ix_part_row *p = heft_ix_part_row_at(c->x, part);
    uint8_t tail[TAIL], head[SKIP_HEAD];
    heft_range range = { p->offset, p->stored };
    uint64_t end = p->offset + p->stored;
    if (p->stored < SKIP_HEAD + TAIL)
        return fault(c, part, range, "part is too short for a seek table");
    HEFT_TRY(c->read(c, end - TAIL, tail, TAIL));
    if (heft_le32(tail + 5) != heft_zt2_seekable || tail[4] & 0x7C)
        return fault(c, part, range, "part does not end with a seek table");
    t->entry_size = tail[4] & 0x80 ? ENTRY + 4 : ENTRY;
    uint64_t bytes = (uint64_t)heft_le32(tail) * t->entry_size + TAIL;
    if (bytes + SKIP_HEAD > p->stored)
        return fault(c, part, range, "seek table does not fit into the part");
    HEFT_TRY(c->read(c, end - bytes - SKIP_HEAD, head, SKIP_HEAD));
    if (heft_le32(head) != HEFT_ZT2_SKIPPABLE || heft_le32(head + 4) != bytes)
        return fault(c, part, range, "seek table length differs from the length of its frame");
    t->frames_end = end - bytes - SKIP_HEAD;
    t->first = end - bytes;
    t->count = heft_le32(tail);
    return HEFT_OK;
}

/* Check the frame of a seek table entry; set *reason if the frame is wrong. */
static heft_status check_frame(heft_check *c, uint64_t at, uint32_t stored, uint32_t content,
                               const char **reason)
{
    uint8_t head[FRAME_HEAD] = { 0 };
    size_t n = stored < sizeof head ? stored : sizeof head;
    HEFT_TRY(c->read(c, at, head, n));
    /* RFC 8878 §3.1.1.1: descriptor, optional window, dictionary id, then content size. */
    uint8_t descriptor = head[4];
    static const uint8_t dictionary[] = { 0, 1, 2, 4 }, sizes[] = { 0, 2, 4, 8 };
    bool single = descriptor & 0x20;
    size_t size_at = (single ? 5u : 6u) + dictionary[descriptor & 3];
    size_t size = single && descriptor < 0x40 ? 1 : sizes[descriptor >> 6];
    uint64_t stated = content;
    if (size == 1)
        stated = head[size_at];
    else if (size == 2)
        stated = heft_le16(head + size_at) + 256u;
    else if (size)
        stated = size == 4 ? heft_le32(head + size_at) : heft_le64(head + size_at);
    if (n < 5 || heft_le32(head) != frame_magic)
        *reason = "seek table refers to bytes that are not a zstd frame";
    else if (!(descriptor & 4))
        *reason = "zstd frame has no content checksum";
    else if (n >= size_at + size && stated != content)
        *reason = "seek table and zstd frame state different content sizes";
    return HEFT_OK;
}

static heft_status check_entries(heft_check *c, uint32_t part, const table *t)
{
    const heft_ix_part_row *p = heft_ix_part_row_at(c->x, part);
    uint64_t at = p->offset, decoded = 0;
    uint32_t frame_content = 0;
    const char *reason = NULL;
    heft_range range = { p->offset, p->stored };
    for (uint32_t i = 0; i < t->count && !reason; i++) {
        uint8_t entry[ENTRY];
        heft_status st = c->read(c, t->first + (uint64_t)i * t->entry_size, entry, sizeof entry);
        uint32_t stored = heft_le32(entry), content = heft_le32(entry + 4);
        if (st)
            return st;
        frame_content = i ? frame_content : content;
        if (stored > t->frames_end - at)
            reason = "seek table has frames past the end of the frame data";
        else if (content > MAX_CONTENT)
            reason = "zstd frame holds more than 16 MiB";
        else if (i + 1 < t->count ? content != frame_content : content > frame_content)
            reason = "zstd frames before the last differ in size";
        else
            st = check_frame(c, at, stored, content, &reason);
        if (st)
            return st;
        at += stored;
        decoded += content;
    }
    if (!reason && at != t->frames_end)
        reason = "seek table does not cover all frames";
    if (!reason && decoded != p->length)
        reason = "frames of the seek table do not add up to the length of the part";
    return reason ? fault(c, part, range, reason) : HEFT_OK;
}

heft_status heft_zt2_check_frames(heft_check *c, uint32_t part)
{
    table t = { .count = 0, .frames_end = 0 };
    if (!c->can_read(c, heft_ix_part_row_at(c->x, part)->offset))
        return HEFT_OK;
    HEFT_TRY(find_table(c, part, &t));
    return t.first ? check_entries(c, part, &t) : HEFT_OK;
}
