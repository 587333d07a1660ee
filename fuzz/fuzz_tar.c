/* fuzz_tar.c - fuzzes the reader of tar archives: members lie in the file, come in order, and are
 * the same if the bytes arrive in pieces. */
#include "fuzz_pieces.h"
#include "grammar/tar.h"

static heft_status parse_tar(heft_window *in, heft_arena *arena, uint64_t *sum)
{
    heft_tar tar = { .in = in };
    heft_tar_entry e;
    heft_status st = HEFT_OK;
    bool found = true;
    (void)arena;
    while (!st && found) {
        uint64_t at = tar.at;
        st = heft_tar_next(&tar, &e, &found);
        if (st || !found)
            break;
        fuzz_require(tar.at > at && e.header >= at && e.data.offset > e.header);
        fuzz_require(e.data.offset <= in->size && e.data.length <= in->size - e.data.offset);
        fuzz_mix(sum, e.data.offset ^ e.data.length << 32 ^ e.name.len);
    }
    return st;
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    (void)s;
    fuzz_both_ways(parse_tar, data, size);
}

const fuzz_target fuzz_this = { .run = run, .takes_models = true }; /* checksums of headers */
