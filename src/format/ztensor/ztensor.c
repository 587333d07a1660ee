/* ztensor.c - dispatches to the zTensor generation that a file has, or that is to be written.
 * |   first 8 bytes              last 8 bytes         generation
 *   "ZTEN0001"                 u64 size             0.1
 *   "ZTEN1000"                 u64 size             1.0
 *   "ZTEN1000"                 "ZTEN1000"           1.1, 1.2
 *   89 "ZT2" 0D 0A 1A 0A       same as the first    2 | */
#include "format/ztensor/ztensor.h"

typedef struct generation {
    const char *magic;
    heft_status (*parse)(heft_window *in, heft_index *x);
} generation;

static const generation generations[] = {
    { "ZTEN1000", heft_zt1_parse },
    { "ZTEN0001", heft_zt01_parse },
    { "\x89ZT2\r\n\x1a\n", heft_zt2_parse },
};
enum { GENERATIONS = sizeof generations / sizeof *generations };

/* Return NULL if no generation begins with this magic number. */
static const generation *generation_of(const uint8_t *magic)
{
    for (unsigned i = 0; i < GENERATIONS; i++)
        if (!memcmp(magic, generations[i].magic, HEFT_ZT_MAGIC))
            return &generations[i];
    return NULL;
}

static heft_status zt_parse(heft_window *in, heft_index *x)
{
    heft_cur c = heft_cur_open(in, 0, HEFT_ZT_MAGIC, "the magic number");
    const uint8_t *magic = heft_cur_take(&c, HEFT_ZT_MAGIC);
    if (!magic)
        return c.st;
    const generation *g = generation_of(magic);
    if (!g)
        return heft_error_set(x->err, HEFT_E_FORMAT, 0,
                              "no zTensor generation begins with this magic number");
    return g->parse(in, x);
}

static const heft_name_rules odd_rules = { "ztensor/name", "ztensor/nul-in-name", NULL,
                                           "ztensor/rank" };

static heft_status zt_notice(heft_index *x)
{
    return heft_str_is(x->version, "2") ? HEFT_OK : heft_zt1_notice(x);
}

static heft_status zt_check(heft_check *c)
{
    return heft_str_is(c->x->version, "2") ? heft_zt2_check(c) : heft_zt1_check(c);
}

static bool writes_2(const heft_plan *p)
{
    return p->version && heft_str_is(heft_lit(p->version), "2");
}

/* Keep the digest and encoding of an existing file where the target generation supports them. */
static void zt_storage(const heft_plan *p, heft_storage *storage, bool is_kept)
{
    const char *own = writes_2(p) ? "xxh3" : "crc32c";
    bool takes_own = storage->digest ? is_kept && !heft_zt_has_digest(storage->digest, own)
                                     : !is_kept && writes_2(p);
    if (takes_own)
        storage->digest = own;
    if (is_kept && storage->encoding != HEFT_ZSTD)
        storage->encoding = HEFT_RAW;
}

static heft_status zt_plan(heft_plan *p)
{
    return writes_2(p) ? heft_zt2_plan(p) : heft_zt1_plan(p);
}

static heft_status zt_write_header(const heft_plan *p, heft_out *o)
{
    return writes_2(p) ? heft_zt2_write_header(p, o) : heft_zt1_write_header(p, o);
}

static heft_status zt_write_trailer(const heft_plan *p, heft_out *o)
{
    return writes_2(p) ? heft_zt2_write_trailer(p, o) : heft_zt1_write_trailer(p, o);
}

static int zt_probe(const uint8_t *head, size_t head_len, const uint8_t *tail, size_t tail_len,
                    uint64_t size)
{
    (void)tail;
    (void)tail_len;
    (void)size;
    return head_len >= HEFT_ZT_MAGIC && generation_of(head) ? 8 * HEFT_ZT_MAGIC : 0;
}

const heft_format heft_format_ztensor = {
    .name = "ztensor",
    .title = "zTensor",
    .structure_rule = "ztensor/structure",
    .suffixes = ".zt",
    .versions = "1.0 1.1 1.2 2",
    .caps = HEFT_CAN_READ | HEFT_CAN_WRITE | HEFT_CAN_EDIT | HEFT_CAN_SCHEMES | HEFT_CAN_APPEND |
            HEFT_CAN_SPARSE | HEFT_CAN_ENCODE | HEFT_CAN_META | HEFT_CAN_DIGEST,
    .align = HEFT_ZT_ALIGN,
    .probe = zt_probe,
    .parse = zt_parse,
    .name_rules = &odd_rules,
    .notice = zt_notice,
    .check = zt_check,
};

const heft_format_writer heft_format_writer_ztensor = {
    .storage = zt_storage,
    .plan = zt_plan,
    .write_header = zt_write_header,
    .write_trailer = zt_write_trailer,
    .sharding = &heft_zt2_sharding,
};
