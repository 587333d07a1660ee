/* fuzz_zip.c - fuzzes the reader of zip archives: members lie in the file, do not overlap, and are
 * the same if the bytes arrive in pieces. */
#include "fuzz_pieces.h"
#include "grammar/zip.h"

static heft_status parse_zip(heft_window *in, heft_arena *arena, uint64_t *sum)
{
    heft_zip z = { .count = 0 };
    heft_status st = heft_zip_open(&z, in, arena, true);
    uint64_t end = 0;
    for (uint32_t i = 0; !st && i < z.count; i++) {
        const heft_zip_entry *e = &z.entries[z.by_offset[i]];
        fuzz_require(e->head >= end && e->data > e->head && e->stored <= in->size - e->data);
        fuzz_require(e->data + e->stored <= e->end && e->end <= z.directory.offset);
        fuzz_require(e->name_at <= in->size && e->name.len <= in->size - e->name_at);
        end = e->end;
        fuzz_mix(sum, e->data);
        fuzz_mix(sum, e->content ^ e->crc);
    }
    fuzz_mix(sum, z.count);
    return st;
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    (void)s;
    fuzz_both_ways(parse_zip, data, size);
}

const fuzz_target fuzz_this = { .run = run };
