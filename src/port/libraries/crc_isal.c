/* crc_isal.c - CRC-32 and CRC-32C at memory speed, by ISA-L. */
#include "port/port.h"

#include <isa-l/crc.h>

#include "base/compiler.h"
#include "base/crc.h"

enum { MAX_UPDATE = 1 << 30 }; /* crc32_iscsi takes an int */

static bool init(void *state)
{
    *(uint32_t *)state = 0;
    return true;
}

static void final(uint8_t *out, void *state)
{
    uint32_t v = *(uint32_t *)state;
    for (int i = 0; out && i < 4; i++)
        out[i] = (uint8_t)(v >> 8 * i);
}

static void update_crc32(void *state, const void *data, size_t len)
{
    *(uint32_t *)state = crc32_gzip_refl(*(uint32_t *)state, data, len);
    heft_clear_wide_registers();
}

/* crc32_iscsi() takes a non-const pointer and leaves the inversions before and after to the
 * caller. */
static void update_crc32c(void *state, const void *data, size_t len)
{
    unsigned char *p = (unsigned char *)(uintptr_t)data;
    uint32_t crc = ~*(uint32_t *)state;
    while (len) {
        size_t n = len < MAX_UPDATE ? len : MAX_UPDATE;
        crc = crc32_iscsi(p, (int)n, crc);
        p += n;
        len -= n;
    }
    heft_clear_wide_registers();
    *(uint32_t *)state = ~crc;
}

static void join_crc32(void *state, const void *next, uint64_t len)
{
    *(uint32_t *)state = heft_crc32_join(*(uint32_t *)state, *(const uint32_t *)next, len);
}

static void join_crc32c(void *state, const void *next, uint64_t len)
{
    *(uint32_t *)state = heft_crc32c_join(*(uint32_t *)state, *(const uint32_t *)next, len);
}

const heft_digest heft_isal_crc32 = { sizeof(heft_digest), "crc32", 4,          4,   init,
                                      update_crc32,        final,   join_crc32, NULL };
const heft_digest heft_isal_crc32c = { sizeof(heft_digest), "crc32c", 4,           4,   init,
                                       update_crc32c,       final,    join_crc32c, NULL };
