/* fuzz_embd.c - fuzzes EMBD after repairing sizes and checksums, so that mutations reach the
 * parser: the vocabulary is consistent and survives both layouts unchanged. */
#include <stdlib.h>
#include <string.h>

#include <heft/vocabulary.h>
#include <heft/write.h>

#include "base/crc.h"
#include "fuzz.h"

enum { HEADER = 64, FOOTER = 16, CRC_AT = 56, MAX_PAYLOAD = 1 << 20 };
static const heft_limits limits = { .size = sizeof limits, .memory = 64 << 20, .tensors = 1 << 12 };

static uint64_t get(const uint8_t *p, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

static void put(uint8_t *p, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

/* Set the size, the three checksums and the magic numbers of a file. */
static void repair(uint8_t *data, size_t size)
{
    enum { DATA_AT = 36, DATA_SIZE = 40, TOTAL = 48 };
    if (size < HEADER + FOOTER)
        return;
    uint8_t *footer = data + size - FOOTER;
    memcpy(data, "EMBD\1\0", 6);
    memcpy(footer + 8, "DBME", 4);
    put(data + TOTAL, size, 8);
    put(data + CRC_AT, heft_crc32(0, data, CRC_AT), 4);
    uint64_t at = get(data + DATA_AT, 4), length = get(data + DATA_SIZE, 8), end = size - FOOTER;
    if (at <= end && length <= end - at)
        put(footer, heft_crc32(0, data + at, (size_t)length), 4);
    put(footer + 4, heft_crc32(0, data, size - FOOTER), 4);
}

/* ---- the vocabulary ------------------------------------------------------------------------- */

/* Require that each token is found under the first id of its text. */
static void check_vocab(const heft_vocab *v)
{
    for (uint32_t id = 0; id < heft_vocab_count(v); id++) {
        heft_str token = heft_vocab_at(v, id);
        uint32_t found = heft_vocab_find(v, token);
        fuzz_require(found <= id);
        heft_str first = heft_vocab_at(v, found);
        fuzz_require(first.len == token.len && !memcmp(first.ptr, token.ptr, token.len));
    }
}

static void compare_vocabs(const heft_vocab *a, const heft_vocab *b, bool with_special)
{
    fuzz_require(heft_vocab_count(a) == heft_vocab_count(b));
    for (uint32_t id = 0; id < heft_vocab_count(a); id++) {
        heft_str s = heft_vocab_at(a, id), t = heft_vocab_at(b, id);
        fuzz_require(s.len == t.len && !memcmp(s.ptr, t.ptr, s.len));
    }
    for (int i = 0; i < HEFT_SPECIALS && with_special; i++)
        fuzz_require(heft_vocab_special(a, (heft_special)i) ==
                     heft_vocab_special(b, (heft_special)i));
}

/* ---- both layouts --------------------------------------------------------------------------- */

typedef struct losses {
    bool of_vocab, of_special;
} losses;

static void note_loss(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                      const char *text)
{
    losses *l = ctx;
    fuzz_use((uint64_t)severity + strlen(text) + tensor.len);
    l->of_vocab = l->of_vocab || !strcmp(rule, "embd/vocab");
    l->of_special = l->of_special || !strcmp(rule, "embd/special");
}

static bool is_small(const heft_file *f)
{
    uint64_t total = 0;
    for (uint32_t id = 0; id < heft_tensor_count(f) && total <= MAX_PAYLOAD; id++)
        total += heft_tensor_bytes(f, id) < MAX_PAYLOAD ? heft_tensor_bytes(f, id) : MAX_PAYLOAD;
    return total <= MAX_PAYLOAD;
}

static void rewrite(const heft_file *in, const heft_vocab *v, const char *version)
{
    fuzz_bytes bytes = { NULL, 0, 0 };
    losses lost = { false, false };
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    heft_file *out;
    heft_vocab *again;
    opt.write = &write;
    write.version = version;
    write.allow_loss = true;
    write.on_loss = note_loss;
    write.ctx = &lost;
    if (!heft_file_convert(in, heft_file_format(in), fuzz_sink(&bytes), &opt, NULL)) {
        fuzz_require(!fuzz_open(&out, bytes.ptr, bytes.len, NULL));
        bool has_vocab = !heft_vocab_open(&again, out, NULL);
        /* a simple stream stores an empty vocabulary like none */
        fuzz_require(has_vocab || !v || lost.of_vocab || !heft_vocab_count(v));
        if (has_vocab && v)
            compare_vocabs(v, again, !lost.of_special);
        heft_vocab_close(again);
        heft_file_close(out);
    }
    free(bytes.ptr);
}

static void try_bytes(const uint8_t *data, size_t size, const heft_format *embd)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_file *f = NULL;
    heft_vocab *v = NULL;
    opt.format = embd;
    opt.limits = &limits;
    if (!fuzz_open(&f, data, size, &opt) && is_small(f)) {
        heft_status st = heft_vocab_open(&v, f, NULL);
        fuzz_require(!st || st == HEFT_E_NOTFOUND);
        if (v)
            check_vocab(v);
        rewrite(f, v, "1.0");
        rewrite(f, v, "simple");
    }
    heft_vocab_close(v);
    heft_file_close(f);
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    (void)s;
    const heft_format *embd = heft_format_find(HEFT_STR("embd"));
    uint8_t *repaired = malloc(size + !size);
    fuzz_require(embd && repaired);
    memcpy(repaired, data, size);
    repair(repaired, size);
    try_bytes(data, size, embd); /* the bytes may be a simple stream */
    try_bytes(repaired, size, embd);
    free(repaired);
}

const fuzz_target fuzz_this = { .run = run };
