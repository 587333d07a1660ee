/* test_zip.c - reading ZIP archives, intact and damaged, and writing archives beyond 4 GiB. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/text.h"
#include "grammar/zip.h"

enum { MAX_BYTES = 1 << 20 };

typedef struct archive { /* an archive; available[] tells the readable bytes */
    heft_window in;
    heft_error err;
    uint8_t bytes[MAX_BYTES];
    bool available[MAX_BYTES];
    bool is_whole;
    uint32_t rounds;
    heft_arena arena;
    heft_memory mem;
    size_t head[2], data[2], descriptor[2], entry[2], end64, locator, end;
    heft_out o;
} archive;

static const uint8_t *window(heft_window *in, uint64_t off, uint64_t want, uint64_t *have)
{
    archive *a = (archive *)(void *)in;
    uint64_t n = 0;
    while (n < want && off + n < in->size && (a->is_whole || a->available[off + n]))
        n++;
    *have = n;
    return a->bytes + off;
}

/* Provide the range and a few bytes more, as other sources do. */
static void need(heft_window *in, uint64_t off, uint64_t len)
{
    archive *a = (archive *)(void *)in;
    for (uint64_t i = off; i < off + len + 7 && i < in->size; i++)
        a->available[i] = true;
}

static void *resize(void *ctx, void *p, size_t old_size, size_t new_size, size_t align)
{
    (void)ctx;
    (void)old_size;
    (void)align;
    if (new_size)
        return realloc(p, new_size);
    free(p);
    return NULL;
}

typedef struct options {
    bool descriptor, wide_descriptor, no_signature, zip64, wide_members;
    uint16_t method;
    const char *comment;
    size_t gap; /* bytes before each member */
} options;

static const char *const names[2] = { "first.npy", "second" };
static const uint32_t sizes[2] = { 100, 33 };

static void put_common(archive *a, const options *m, int i, bool local)
{
    heft_out *o = &a->o;
    uint32_t flags = 0x800 | (m->descriptor ? 8 : 0);
    bool blank = local && m->descriptor;
    uint32_t stored = m->method ? sizes[i] / 2 : sizes[i];
    heft_out_u16(o, 20);
    heft_out_u16(o, (uint16_t)flags);
    heft_out_u16(o, m->method);
    heft_out_u32(o, 0x210000);
    heft_out_u32(o, blank ? 0 : 0xC0FFEE00u + (uint32_t)i);
    heft_out_u32(o, m->wide_members ? UINT32_MAX : blank ? 0 : stored);
    heft_out_u32(o, m->wide_members ? UINT32_MAX : blank ? 0 : sizes[i]);
    heft_out_u16(o, (uint16_t)strlen(names[i]));
    heft_out_u16(o, m->wide_members ? 20 + 6 : 0);
}

static void put_name_and_extra(archive *a, const options *m, int i)
{
    heft_out_str(&a->o, heft_lit(names[i]));
    if (!m->wide_members)
        return;
    heft_out_u16(&a->o, 0x4246); /* an unknown extra field */
    heft_out_u16(&a->o, 2);
    heft_out_u16(&a->o, 0x5A5A);
    heft_out_u16(&a->o, 1);
    heft_out_u16(&a->o, 16);
    heft_out_u64(&a->o, sizes[i]);
    heft_out_u64(&a->o, m->method ? sizes[i] / 2 : sizes[i]);
}

static void put_member(archive *a, const options *m, int i)
{
    heft_out *o = &a->o;
    uint32_t stored = m->method ? sizes[i] / 2 : sizes[i];
    heft_out_fill(o, 'g', m->gap);
    a->head[i] = o->len;
    heft_out_u32(o, 0x04034B50);
    put_common(a, m, i, true);
    put_name_and_extra(a, m, i);
    a->data[i] = o->len;
    heft_out_fill(o, 'd', stored);
    a->descriptor[i] = o->len;
    if (!m->descriptor)
        return;
    if (!m->no_signature)
        heft_out_u32(o, 0x08074B50);
    heft_out_u32(o, 0xC0FFEE00u + (uint32_t)i);
    heft_out_u32(o, stored);
    if (m->wide_descriptor)
        heft_out_u32(o, 0);
    heft_out_u32(o, sizes[i]);
    if (m->wide_descriptor)
        heft_out_u32(o, 0);
}

static void put_end(archive *a, const options *m, size_t directory)
{
    heft_out *o = &a->o;
    size_t bytes = o->len - directory;
    a->end64 = o->len;
    if (m->zip64) {
        heft_out_u32(o, 0x06064B50);
        heft_out_u64(o, 44);
        heft_out_u32(o, 0);
        heft_out_u64(o, 0);
        heft_out_u64(o, 2);
        heft_out_u64(o, 2);
        heft_out_u64(o, bytes);
        heft_out_u64(o, directory);
        a->locator = o->len;
        heft_out_u32(o, 0x07064B50);
        heft_out_u32(o, 0);
        heft_out_u64(o, a->end64);
        heft_out_u32(o, 1);
    }
    a->end = o->len;
    heft_out_u32(o, 0x06054B50);
    heft_out_u32(o, 0);
    heft_out_u16(o, m->zip64 ? UINT16_MAX : 2);
    heft_out_u16(o, m->zip64 ? UINT16_MAX : 2);
    heft_out_u32(o, m->zip64 ? UINT32_MAX : (uint32_t)bytes);
    heft_out_u32(o, m->zip64 ? UINT32_MAX : (uint32_t)directory);
    heft_str comment = heft_lit(m->comment ? m->comment : "");
    heft_out_u16(o, (uint16_t)comment.len);
    heft_out_str(o, comment);
}

static void build(archive *a, const options *m)
{
    static const heft_allocator al = { .size = sizeof al, .resize = resize };
    a->o = (heft_out){ .buf = a->bytes, .cap = MAX_BYTES };
    a->mem = (heft_memory){ .al = &al, .limit = 1 << 24 };
    a->arena = (heft_arena){ .mem = &a->mem };
    put_member(a, m, 0);
    put_member(a, m, 1);
    size_t directory = a->o.len;
    for (int i = 0; i < 2; i++) {
        a->entry[i] = a->o.len;
        heft_out_u32(&a->o, 0x02014B50);
        heft_out_u16(&a->o, 20);
        put_common(a, m, i, false);
        heft_out_fill(&a->o, 0, 10);
        heft_out_u32(&a->o, (uint32_t)a->head[i]);
        put_name_and_extra(a, m, i);
    }
    put_end(a, m, directory);
    assert_int_equal(a->o.st, HEFT_OK);
    a->is_whole = true;
    a->in = (heft_window){ .size = a->o.len, .window = window, .need = need, .err = &a->err };
}

static archive *new_archive(const options *m)
{
    archive *a = calloc(1, sizeof *a);
    assert_non_null(a);
    build(a, m);
    return a;
}

static void free_archive(archive *a)
{
    heft_arena_free(&a->arena);
    free(a);
}

static void check_members(const archive *a, const heft_zip *z, const options *m)
{
    assert_int_equal(z->count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const heft_zip_entry *e = &z->entries[i];
        assert_true(heft_str_is(e->name, names[i]));
        assert_int_equal(e->name_at, a->entry[i] + 46);
        assert_int_equal(e->head, a->head[i]);
        assert_int_equal(e->data, a->data[i]);
        assert_int_equal(e->stored, m->method ? sizes[i] / 2 : sizes[i]);
        assert_int_equal(e->content, sizes[i]);
        assert_int_equal(e->crc, 0xC0FFEE00u + i);
        assert_int_equal(e->end, i ? a->entry[0] : a->head[1] - m->gap);
    }
}

static const options kinds[] = {
    { 0 },
    { .method = 8 },
    { .zip64 = true },
    { .wide_members = true, .zip64 = true },
    { .descriptor = true },
    { .descriptor = true, .no_signature = true },
    { .descriptor = true, .wide_descriptor = true, .method = 8 },
    { .descriptor = true, .wide_descriptor = true, .no_signature = true },
    { .comment = "what for", .zip64 = true },
    { .gap = 400000 },
    { .gap = 100, .descriptor = true, .wide_members = true },
};

static void reads_every_kind_of_archive(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        archive *a = new_archive(&kinds[i]);
        heft_zip z;
        heft_status st = heft_zip_open(&z, &a->in, &a->arena, false);
        if (st)
            print_message("# %zu: %s\n", i, a->err.message);
        assert_int_equal(st, HEFT_OK);
        check_members(a, &z, &kinds[i]);
        free_archive(a);
    }
}

static void lists_opaque_members_only_on_request(void **state)
{
    (void)state;
    const options m = { .method = 0xFFFF };
    archive *a = new_archive(&m);
    heft_zip z;
    assert_int_equal(heft_zip_open(&z, &a->in, &a->arena, true), HEFT_OK);
    check_members(a, &z, &m);
    for (uint32_t i = 0; i < z.count; i++) {
        assert_true(z.entries[i].is_opaque);
        assert_int_equal(heft_zip_refuse_opaque(&z.entries[i], &a->err), HEFT_E_UNSUPPORTED);
        assert_non_null(strstr(a->err.message, "method 65535 is neither stored nor deflated"));
        assert_int_equal(a->err.offset, a->entry[i]);
    }
    assert_int_equal(heft_zip_open(&z, &a->in, &a->arena, false), HEFT_E_UNSUPPORTED);
    free_archive(a);
}

static void reads_an_archive_that_arrives_in_parts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        archive *a = new_archive(&kinds[i]);
        heft_zip z;
        heft_status st;
        a->is_whole = false;
        while ((st = heft_zip_open(&z, &a->in, &a->arena, false)) == HEFT_AGAIN)
            assert_true(a->rounds++ < 30);
        assert_int_equal(st, HEFT_OK);
        check_members(a, &z, &kinds[i]);
        free_archive(a);
    }
}

static void refuses_every_truncation(void **state)
{
    (void)state;
    for (size_t i = 0; i + 2 < sizeof kinds / sizeof *kinds; i++) {
        archive *a = new_archive(&kinds[i]);
        for (size_t len = 0; len < a->o.len; len++) {
            heft_zip z;
            a->in.size = len;
            assert_int_equal(heft_zip_open(&z, &a->in, &a->arena, false), HEFT_E_FORMAT);
        }
        free_archive(a);
    }
}

static void compare_recovered(const heft_zip *z, const heft_zip *all, uint64_t len)
{
    for (uint32_t i = 0; i < z->count; i++) {
        const heft_zip_entry *e = &z->entries[i], *want = &all->entries[all->by_offset[i]];
        assert_true(heft_str_eq(e->name, want->name));
        assert_int_equal(e->data, want->data);
        assert_int_equal(e->method, want->method);
        assert_int_equal(e->is_cut, want->end > len);
        assert_int_equal(e->stored, e->is_cut ? len - e->data : want->stored);
        assert_int_equal(e->crc, e->is_cut ? 0 : want->crc);
        if (!e->is_cut)
            assert_int_equal(e->content, want->content);
    }
}

/* Without signatures the end of data of unknown size is not found, and without local headers next
 * to each other no member after the first. */
static void recovers_the_members_of_every_truncation(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        archive *a = new_archive(&kinds[i]);
        heft_zip all, z;
        assert_int_equal(heft_zip_open(&all, &a->in, &a->arena, false), HEFT_OK);
        for (size_t len = 0; len < all.directory.offset; len++) {
            uint32_t members = 0;
            if (kinds[i].no_signature || kinds[i].gap)
                break;
            while (members < all.count && all.entries[all.by_offset[members]].data <= len)
                members++;
            a->in.size = len;
            heft_status st = heft_zip_recover(&z, &a->in, &a->arena, len);
            assert_int_equal(st, members ? HEFT_OK : HEFT_E_FORMAT);
            assert_int_equal(z.count, members);
            compare_recovered(&z, &all, len);
        }
        free_archive(a);
    }
}

typedef struct fault { /* overwrites count bytes with value, and the expected error */
    options m;
    size_t field; /* offset of the member of archive with the base offset */
    uint32_t at, count;
    uint64_t value;
    heft_status st;
    const char *words;
} fault;

#define AT(field) offsetof(archive, field)
static const fault faults[] = {
    { { 0 }, AT(end), 4, 2, 1, HEFT_E_UNSUPPORTED, "several volumes" },
    { { 0 }, AT(end), 6, 2, 1, HEFT_E_UNSUPPORTED, "several volumes" },
    { { 0 }, AT(end), 8, 2, 1, HEFT_E_UNSUPPORTED, "several volumes" },
    { { 0 }, AT(end), 8, 4, 0x00010001, HEFT_E_FORMAT, "after the last entry" },
    { { 0 }, AT(end), 8, 4, 0x00030003, HEFT_E_FORMAT, "do not fit in a directory" },
    { { 0 }, AT(end), 12, 4, 1, HEFT_E_FORMAT, "does not end at" },
    { { 0 }, AT(end), 16, 4, 1, HEFT_E_FORMAT, "does not end at" },
    { { 0 }, AT(end), 16, 4, UINT32_MAX, HEFT_E_FORMAT, "does not end at" },
    { { 0 }, AT(end), 20, 2, 1, HEFT_E_FORMAT, "the comment should have 1 bytes" },
    { { .comment = "12" }, AT(end), 20, 2, 3, HEFT_E_FORMAT, "the comment should have 3 bytes" },
    { { .zip64 = true }, AT(locator), 4, 4, 1, HEFT_E_UNSUPPORTED, "volumes" },
    { { .zip64 = true }, AT(locator), 16, 4, 2, HEFT_E_UNSUPPORTED, "volumes" },
    { { .zip64 = true }, AT(locator), 8, 8, UINT64_MAX, HEFT_E_FORMAT, "cannot lie at" },
    { { .zip64 = true }, AT(locator), 8, 8, 1, HEFT_E_FORMAT, "before the locator" },
    { { .zip64 = true }, AT(end64), 4, 8, UINT64_MAX, HEFT_E_FORMAT, "before the locator" },
    { { .zip64 = true }, AT(end64), 32, 8, UINT64_MAX, HEFT_E_UNSUPPORTED, "several volumes" },
    { { .zip64 = true }, AT(end64), 40, 8, UINT64_MAX, HEFT_E_FORMAT, "does not end at" },
    { { .zip64 = true }, AT(end64), 48, 8, UINT64_MAX, HEFT_E_FORMAT, "does not end at" },
    { { .zip64 = true }, AT(end64), 0, 1, 'Q', HEFT_E_FORMAT, "before the locator" },
    { { .zip64 = true }, AT(end64), 16, 4, 1, HEFT_E_FORMAT, "disagree" },
    { { .zip64 = true }, AT(end64), 20, 4, 1, HEFT_E_FORMAT, "disagree" },
    { { .zip64 = true }, AT(end), 4, 2, 1, HEFT_E_FORMAT, "disagree" },
    { { .zip64 = true }, AT(end), 6, 2, 1, HEFT_E_FORMAT, "disagree" },
    { { .zip64 = true }, AT(end), 8, 2, 1, HEFT_E_FORMAT, "disagree" },
    { { .zip64 = true }, AT(end), 10, 2, 1, HEFT_E_FORMAT, "disagree" },
    { { .zip64 = true }, AT(end), 12, 4, 1, HEFT_E_FORMAT, "disagree" },
    { { .zip64 = true }, AT(end), 16, 4, 7, HEFT_E_FORMAT, "disagree" },
    { { 0 }, AT(entry[0]), 0, 1, 'Q', HEFT_E_FORMAT, "expected a directory entry" },
    { { 0 }, AT(entry[0]), 8, 2, 1, HEFT_E_UNSUPPORTED, "encrypted" },
    { { 0 }, AT(entry[0]), 8, 2, 0x2000, HEFT_E_UNSUPPORTED, "encrypted" },
    { { 0 }, AT(entry[0]), 8, 2, 0x20, HEFT_E_UNSUPPORTED, "flags 0x20" },
    { { 0 }, AT(entry[0]), 10, 2, 14, HEFT_E_UNSUPPORTED, "method 14" },
    { { 0 }, AT(entry[0]), 24, 4, 7, HEFT_E_FORMAT, "sizes differ: " },
    { { .method = 8 }, AT(entry[0]), 24, 4, 50 * 1032 + 1, HEFT_E_FORMAT, "inflate" },
    { { .method = 8 }, AT(entry[0]), 24, 4, 50 * 1032, HEFT_E_FORMAT, "disagree about the size" },
    { { .method = 8 }, AT(entry[0]), 20, 4, 0, HEFT_E_FORMAT, "inflate" },
    { { .method = 8 }, AT(entry[0]), 20, 8, 0, HEFT_E_FORMAT, "inflate to 0 bytes" },
    { { .descriptor = true }, AT(entry[0]), 20, 8, UINT64_MAX, HEFT_E_FORMAT, "extend past" },
    { { 0 }, AT(entry[0]), 28, 2, 0, HEFT_E_FORMAT, "without a name" },
    { { 0 }, AT(entry[0]), 34, 2, 3, HEFT_E_UNSUPPORTED, "another volume" },
    { { 0 }, AT(entry[0]), 42, 4, 1, HEFT_E_FORMAT, "no local header" },
    { { 0 }, AT(entry[0]), 42, 4, UINT32_MAX - 1, HEFT_E_FORMAT, "cannot begin at" },
    { { 0 }, AT(entry[0]), 46, 1, 0, HEFT_E_FORMAT, "contains a NUL" },
    { { 0 }, AT(entry[0]), 46, 1, 0xFF, HEFT_E_UNSUPPORTED, "not UTF-8" },
    { { 0 }, AT(entry[1]), 28, 4, 0xFFFF, HEFT_E_FORMAT, "are needed" },
    { { .wide_members = true }, AT(entry[0]), 46 + 9 + 8, 2, 8, HEFT_E_FORMAT, "too short" },
    { { .wide_members = true }, AT(entry[0]), 46 + 9 + 8, 2, 17, HEFT_E_FORMAT, "are left" },
    { { .wide_members = true }, AT(entry[0]), 46 + 9, 4, 1, HEFT_E_FORMAT, "too short" },
    { { .wide_members = true },
      AT(entry[0]),
      46 + 9 + 18,
      8,
      UINT64_MAX,
      HEFT_E_FORMAT,
      "sizes differ" },
    { { 0 }, AT(head[0]), 0, 1, 'Q', HEFT_E_FORMAT, "no local header" },
    { { 0 }, AT(head[0]), 6, 2, 1, HEFT_E_FORMAT, "disagree about the flags" },
    { { 0 }, AT(head[0]), 6, 2, 8, HEFT_E_FORMAT, "disagree about the flags" },
    { { 0 }, AT(head[0]), 8, 2, 8, HEFT_E_FORMAT, "disagree about the method" },
    { { 0 }, AT(head[0]), 14, 4, 8, HEFT_E_FORMAT, "disagree about the CRC-32" },
    { { 0 }, AT(head[0]), 18, 4, 8, HEFT_E_FORMAT, "disagree about the size" },
    { { 0 }, AT(head[0]), 22, 4, 0, HEFT_E_FORMAT, "disagree about the size" },
    { { .descriptor = true }, AT(head[0]), 14, 4, 8, HEFT_E_FORMAT, "disagree about the CRC-32" },
    { { 0 }, AT(head[0]), 26, 2, 8, HEFT_E_FORMAT, "disagree about the name" },
    { { 0 }, AT(head[0]), 30, 1, 'F', HEFT_E_FORMAT, "disagree about the name" },
    { { 0 }, AT(head[0]), 28, 2, 3, HEFT_E_FORMAT, "overlap" },
    { { 0 }, AT(head[1]), 28, 2, 1, HEFT_E_FORMAT, "extend past" },
    { { .descriptor = true }, AT(descriptor[0]), 4, 4, 0, HEFT_E_FORMAT, "data descriptor" },
    { { .descriptor = true }, AT(descriptor[0]), 8, 4, 0, HEFT_E_FORMAT, "data descriptor" },
    { { .descriptor = true }, AT(descriptor[1]), 12, 4, 0, HEFT_E_FORMAT, "data descriptor" },
};

static size_t base_offset(const archive *a, size_t field)
{
    size_t offset;
    memcpy(&offset, (const char *)a + field, sizeof offset);
    return offset;
}

static void refuses_every_wrong_field(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const fault *f = &faults[i];
        archive *a = new_archive(&f->m);
        heft_zip z;
        for (uint32_t b = 0; b < f->count; b++)
            a->bytes[base_offset(a, f->field) + f->at + b] = (uint8_t)(f->value >> 8 * b);
        heft_status st = heft_zip_open(&z, &a->in, &a->arena, false);
        if (st != f->st || !strstr(a->err.message, f->words))
            print_message("# %zu: %d %s\n", i, st, a->err.message);
        assert_int_equal(st, f->st);
        assert_non_null(strstr(a->err.message, f->words));
        free_archive(a);
    }
}

static void refuses_two_members_with_the_same_name(void **state)
{
    (void)state;
    archive *a = new_archive(&(options){ 0 });
    heft_zip z;
    a->bytes[a->end + 12] = 2 * (46 + 9);
    memmove(a->bytes + a->entry[1] + 55, a->bytes + a->end, 22);
    memcpy(a->bytes + a->entry[1], a->bytes + a->entry[0], 46 + 9);
    a->in.size = a->entry[1] + 55 + 22;
    assert_int_equal(heft_zip_open(&z, &a->in, &a->arena, false), HEFT_E_FORMAT);
    assert_non_null(strstr(a->err.message, "two members have the name 'first.npy'"));
    free_archive(a);
}

static void reads_an_empty_archive(void **state)
{
    (void)state;
    archive *a = new_archive(&(options){ 0 });
    heft_zip z;
    memset(a->bytes, 0, 22);
    memcpy(a->bytes, "PK\5\6", 4);
    a->in.size = 22;
    assert_int_equal(heft_zip_open(&z, &a->in, &a->arena, false), HEFT_OK);
    assert_int_equal(z.count, 0);
    free_archive(a);
}

static void finds_the_first_name_in_the_first_bytes(void **state)
{
    (void)state;
    archive *a = new_archive(&(options){ 0 });
    int bits;
    assert_true(heft_str_is(heft_zip_first_name(&bits, a->bytes, 64), "first.npy"));
    assert_int_equal(bits, 32);
    assert_true(heft_str_is(heft_zip_first_name(&bits, a->bytes, 33), "fir"));
    assert_int_equal(heft_zip_first_name(&bits, a->bytes + 1, 64).len, 0);
    assert_int_equal(bits, 0);
    assert_int_equal(heft_zip_first_name(&bits, a->bytes, 3).len, 0);
    free_archive(a);
}

/* ---- writing ---- */

typedef struct giant { /* a large file of records, with zeros between */
    heft_window in;
    heft_error err;
    struct {
        uint64_t at;
        size_t len;
        uint8_t bytes[4096];
    } records[9];
    size_t count;
} giant;

static const uint8_t *giant_window(heft_window *in, uint64_t off, uint64_t want, uint64_t *have)
{
    static const uint8_t zeros[64];
    giant *g = (giant *)(void *)in;
    for (size_t i = 0; i < g->count; i++)
        if (off >= g->records[i].at && off - g->records[i].at < g->records[i].len) {
            uint64_t left = g->records[i].len - (off - g->records[i].at);
            *have = left < want ? left : want;
            return g->records[i].bytes + (off - g->records[i].at);
        }
    *have = want < sizeof zeros ? want : sizeof zeros;
    return zeros;
}

static heft_out *giant_out(giant *g, heft_out *o, uint64_t at)
{
    g->records[g->count].at = at;
    *o = (heft_out){ .buf = g->records[g->count].bytes, .cap = sizeof g->records->bytes };
    return o;
}

static uint64_t giant_end(giant *g, const heft_out *o)
{
    assert_int_equal(o->st, HEFT_OK);
    g->records[g->count].len = o->len;
    g->in.size = g->records[g->count].at + o->len;
    g->count++;
    return g->in.size;
}

static void round_trips_64_bit_sizes_and_offsets(void **state)
{
    static const uint64_t member_sizes[] = { 5,   UINT32_MAX,     UINT64_C(1) << 33,
                                             0,   UINT32_MAX - 1, UINT64_C(5) << 30,
                                             4000 };
    static const uint64_t deflated[] = { 0, 0, 0, 0, 0, 6 << 20, 7 }; /* 0: the member is stored */
    static const char *const member_names[] = { "a", "b\xc3\xa9", "c", "d", "e", "f", "g" };
    static const heft_allocator al = { .size = sizeof al, .resize = resize };
    enum { COUNT = sizeof member_sizes / sizeof *member_sizes };
    giant *g = calloc(1, sizeof *g);
    heft_memory mem = { .al = &al, .limit = 1 << 24 };
    heft_arena arena = { .mem = &mem };
    heft_zip_member m[COUNT];
    heft_out o;
    heft_zip z;
    uint64_t at = 0;
    (void)state;
    assert_non_null(g);
    g->in = (heft_window){ .window = giant_window, .err = &g->err };
    for (uint32_t i = 0; i < COUNT; i++) {
        m[i] = (heft_zip_member){ .name = heft_lit(member_names[i]),
                                  .head = at,
                                  .size = member_sizes[i],
                                  .crc = 7 + i,
                                  .extra = i ? HEFT_ZIP_EXTRA + i : 0,
                                  .is_deflated = deflated[i],
                                  .deflated = deflated[i] };
        giant_out(g, &o, at);
        if (i)
            heft_zip_put_descriptor(&o, &m[i - 1]);
        m[i].head = at + o.len;
        heft_zip_put_header(&o, &m[i]);
        at = giant_end(g, &o) + (deflated[i] ? deflated[i] : member_sizes[i]);
    }
    giant_out(g, &o, at);
    heft_zip_put_descriptor(&o, &m[COUNT - 1]);
    heft_range directory = { at + o.len, o.len };
    for (uint32_t i = 0; i < COUNT; i++)
        heft_zip_put_entry(&o, &m[i]);
    directory.length = o.len - directory.length;
    heft_zip_put_end(&o, COUNT, directory);
    giant_end(g, &o);
    heft_status st = heft_zip_open(&z, &g->in, &arena, false);
    if (st)
        print_message("# %s\n", g->err.message);
    assert_int_equal(st, HEFT_OK);
    assert_int_equal(z.count, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_true(heft_str_eq(z.entries[i].name, m[i].name));
        assert_true(z.entries[i].content == member_sizes[i]);
        assert_true(z.entries[i].stored == (deflated[i] ? deflated[i] : member_sizes[i]));
        assert_true(z.entries[i].head == m[i].head);
        assert_int_equal(z.entries[i].crc, 7 + i);
    }
    heft_arena_free(&arena);
    free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_kind_of_archive),
        cmocka_unit_test(lists_opaque_members_only_on_request),
        cmocka_unit_test(reads_an_archive_that_arrives_in_parts),
        cmocka_unit_test(refuses_every_truncation),
        cmocka_unit_test(recovers_the_members_of_every_truncation),
        cmocka_unit_test(refuses_every_wrong_field),
        cmocka_unit_test(refuses_two_members_with_the_same_name),
        cmocka_unit_test(reads_an_empty_archive),
        cmocka_unit_test(finds_the_first_name_in_the_first_bytes),
        cmocka_unit_test(round_trips_64_bit_sizes_and_offsets),
    };
    return cmocka_run_group_tests_name("zip", tests, NULL, NULL);
}
