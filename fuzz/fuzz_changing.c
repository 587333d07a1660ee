/* fuzz_changing.c - fuzzes conversion of a file that changes meanwhile: bytes of the source change
 * in callbacks while the file is opened, planned and written.  No output exceeds the plan (the sink
 * checks that), every failure is reported, and no memory outside the buffers is accessed. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_request.h"

enum {
    START_BYTES = 512, /* bytes at the start, where most changes are made */
    MAX_CALLS = 64     /* maximum number of calls between two changes */
};

typedef struct mutation {
    fuzz_memory memory;
    uint8_t *data;
    size_t size;
    uint64_t random;
    uint64_t wait; /* calls until the next change */
} mutation;

static uint64_t next_random(mutation *m)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return m->random;
}

static uint64_t seed_of(const uint8_t *data, size_t size)
{
    uint64_t h = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < size; i++)
        h = (h ^ data[i]) * UINT64_C(0x100000001B3);
    return h | 1;
}

/* Choose a byte that occurs in names, texts and numbers, or changes in length when written. */
static uint8_t pick_byte(mutation *m)
{
    static const uint8_t odd[] = { '"', '\\', 0, 0xFF, 0x80, 0x01, 'a', '{' };
    uint64_t r = next_random(m);
    return r % 4 ? odd[r / 4 % sizeof odd] : (uint8_t)(r >> 8);
}

static void change(void *ctx)
{
    mutation *m = ctx;
    if (!m->size || m->wait--)
        return;
    m->wait = next_random(m) % MAX_CALLS;
    for (uint64_t n = 1 + next_random(m) % 4; n; n--) {
        size_t reach = next_random(m) % 4 && m->size > START_BYTES ? START_BYTES : m->size;
        size_t at = (size_t)(next_random(m) % reach), length = 1 + next_random(m) % 8;
        uint8_t byte = pick_byte(m);
        for (size_t i = at; i < at + length && i < m->size; i++)
            m->data[i] = byte;
    }
}

typedef struct changing_request {
    fuzz_request base; /* the context of its callbacks */
    mutation *m;
} changing_request;

static bool progress(void *ctx, uint64_t done, uint64_t total)
{
    fuzz_require(done <= total);
    change(((changing_request *)ctx)->m);
    return true;
}

static void convert(mutation *m, const heft_file *in, const heft_format *to, fuzz_script *s)
{
    fuzz_bytes bytes = { .ptr = NULL };
    changing_request changing = { .m = m };
    fuzz_request *r = &changing.base;
    heft_error err = fuzz_no_error();
    heft_sink *sink = next_random(m) % 2 ? fuzz_sink(&bytes) : fuzz_sink_at(&bytes);
    fuzz_request_init(r, &m->memory.host, to, s);
    r->opt.progress = progress;
    heft_status st = heft_file_convert(in, to, sink, &r->opt, &err);
    fuzz_require_error(st, &err);
    fuzz_require(st || !r->planned || bytes.len <= r->planned);
    free(bytes.ptr);
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    mutation m = { .size = size, .random = seed_of(s->bytes, s->len) };
    const heft_format *to = fuzz_writable(fuzz_next(s));
    fuzz_memory_init(&m.memory, UINT32_MAX);
    m.data = malloc(size + !size);
    fuzz_require(m.data);
    memcpy(m.data, data, size);
    m.memory.on_request = change;
    m.memory.ctx = &m;
    m.wait = next_random(&m) % 8 ? UINT64_MAX : next_random(&m) % MAX_CALLS; /* while opening */
    heft_file *in = fuzz_open_model(&m.memory.host, m.data, size);
    if (in) {
        m.wait = next_random(&m) % MAX_CALLS;
        convert(&m, in, to, s);
    }
    m.wait = UINT64_MAX;
    heft_file_close(in);
    fuzz_require(!m.memory.live);
    free(m.data);
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = FUZZ_SCRIPT, .takes_models = true };
