/* fuzz_parse.c - fuzzes opening: a file opened whole and a file fed piece by piece agree, no range
 * of the index leaves the file, and verification ends. */
#include <stdlib.h>
#include <string.h>

#include <heft/check.h>

#include "fuzz.h"

static void look_at_parts(const heft_file *f, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        heft_part p = heft_part_at(f, first + i);
        uint8_t ends[2];
        const uint8_t *view = heft_part_view(f, first + i);
        if (p.shard) /* the shard does not exist */
            continue;
        fuzz_require(p.offset <= heft_file_size(f) && p.stored <= heft_file_size(f) - p.offset);
        if (!p.length || p.encoding != HEFT_RAW)
            continue;
        fuzz_require(!heft_part_read(ends, f, first + i, 0, 1, NULL));
        fuzz_require(!heft_part_read(ends + 1, f, first + i, p.length - 1, 1, NULL));
        fuzz_require(!view || (view[0] == ends[0] && view[p.length - 1] == ends[1]));
    }
}

static void look_at_tensor(const heft_file *f, uint32_t id)
{
    heft_tensor t = heft_tensor_at(f, id);
    heft_value v;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < t.rank; i++)
        sum += t.dims[i];
    for (uint32_t i = 0, n = heft_attribute_count(f, id); i < n; i++) {
        v = heft_attribute_at(f, id, i);
        sum += v.key.len;
    }
    fuzz_use(sum + heft_tensor_bytes(f, id) + heft_tensor_layout_name(f, id).len);
    fuzz_require(heft_tensor_find(f, t.name) == id);
    look_at_parts(f, t.first_part, t.part_count);
}

static void look_at(const heft_file *f)
{
    uint32_t first, count = heft_file_parts(f, &first);
    heft_verify_result result;
    for (uint32_t id = 0; id < heft_tensor_count(f); id++)
        look_at_tensor(f, id);
    look_at_parts(f, first, count);
    for (uint32_t i = 0; i < heft_meta_count(f); i = heft_meta_next(f, i))
        fuzz_use(heft_meta_at(f, i).key.len);
    fuzz_require(!heft_file_verify(&result, f, NULL, NULL));
}

/* Feed exactly the ranges that the parser requests. */
static heft_status open_fed(heft_file **out, const uint8_t *data, size_t size,
                            const heft_open_options *opt)
{
    const heft_range *wanted;
    heft_status st = heft_file_begin(out, size, opt, NULL);
    while (!st && (st = heft_file_step(*out, NULL)) == HEFT_AGAIN) {
        size_t count = heft_file_needs(*out, &wanted);
        fuzz_require(count);
        heft_range *needs = malloc(count * sizeof *needs);
        fuzz_require(needs);
        for (size_t i = 0; i < count; i++)
            needs[i] = wanted[i];
        st = HEFT_OK;
        for (size_t i = 0; i < count && !st; i++)
            st = heft_file_feed(*out, needs[i].offset, data + needs[i].offset,
                                (size_t)needs[i].length, NULL);
        free(needs);
    }
    return st;
}

/* Open the bytes as each format, recognised or not. */
static void try_all_formats(const uint8_t *data, size_t size, heft_open_options opt)
{
    for (uint32_t i = 0; i < heft_format_count(); i++) {
        heft_file *f = NULL;
        opt.format = heft_format_at(i);
        fuzz_require(fuzz_open(&f, data, size, &opt) || heft_file_format(f) == opt.format);
        heft_file_close(f);
    }
}

/* Require that the index takes memory in proportion to the file, or to the decoded content of a
 * compressed file. */
static void check_memory(const fuzz_memory *m, const heft_file *f, size_t size)
{
    enum { MOST_PER_BYTE = 64, MOST_AT_LEAST = 1 << 20 };
    uint64_t bytes = heft_file_size(f) > size ? heft_file_size(f) : size;
    fuzz_require(m->peak <= bytes * MOST_PER_BYTE + MOST_AT_LEAST);
}

/* Return true if the bytes are an archive, of which the members are not opened when they are fed:
 * their offsets would be others. */
static bool is_archive(const uint8_t *data, size_t size, heft_status st, const heft_file *whole)
{
    bool is = st && size > 1 && data[0] == 0x1F && data[1] == 0x8B; /* compressed, or damaged */
    for (uint32_t i = 0; !st && i < heft_notice_count(whole); i++)
        is = is || !strcmp(heft_notice_at(whole, i).rule, "heft/archive");
    return is;
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_file *whole = NULL, *fed = NULL;
    fuzz_memory m;
    (void)s;
    fuzz_memory_init(&m, UINT32_MAX);
    opt.host = &m.host;
    opt.limits = &fuzz_limits;
    opt.no_verify = true;
    heft_status st = fuzz_open(&whole, data, size, &opt);
    if (!st)
        check_memory(&m, whole, size);
    heft_status again = open_fed(&fed, data, size, &opt);
    bool may_differ = again == HEFT_E_FORMAT && is_archive(data, size, st, whole);
    fuzz_require(st == again || st == HEFT_E_LIMIT || again == HEFT_E_LIMIT || may_differ);
    if (!st && !again)
        fuzz_require(heft_tensor_count(whole) == heft_tensor_count(fed) &&
                     heft_meta_count(whole) == heft_meta_count(fed));
    if (!st)
        look_at(whole);
    heft_file_close(whole);
    heft_file_close(fed);
    try_all_formats(data, size, opt);
    fuzz_require(!m.live);
}

const fuzz_target fuzz_this = { .run = run, .takes_models = true };
