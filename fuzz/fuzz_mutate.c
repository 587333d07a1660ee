/* fuzz_mutate.c - fuzzes conversion of a file that changes meanwhile: its bytes change in callbacks
 * while the file is opened, planned and written.  No output exceeds its plan, every failure is
 * reported, and no memory outside the buffers is accessed. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum {
    MAX_PAYLOAD = 64 << 10,
    START_BYTES = 512, /* bytes at the start, where most changes are made */
    MAX_CALLS = 64,    /* maximum number of calls between two changes */
    MAX_OUTPUT = 8 << 20
};

typedef struct mutation {
    heft_sink sink;
    heft_allocator al;
    heft_host host;
    uint8_t *data;
    size_t size;
    uint64_t random;
    uint64_t wait; /* calls until the next change */
    uint64_t reserved, written;
    bool is_stream;
} mutation;

static uint64_t next_random(mutation *m)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return m->random;
}

/* Choose a byte that occurs in names, texts and numbers, or changes in length when written. */
static uint8_t pick_byte(mutation *m)
{
    static const uint8_t odd[] = { '"', '\\', 0, 0xFF, 0x80, 0x01, 'a', '{' };
    uint64_t r = next_random(m);
    return r % 4 ? odd[r / 4 % sizeof odd] : (uint8_t)(r >> 8);
}

static void change(mutation *m)
{
    if (!m->size || m->wait--)
        return;
    m->wait = next_random(m) % MAX_CALLS;
    for (uint64_t n = 1 + next_random(m) % 4; n; n--) {
        size_t reach = next_random(m) % 4 && m->size > START_BYTES ? START_BYTES : m->size;
        size_t at = next_random(m) % reach, length = 1 + next_random(m) % 8;
        uint8_t byte = pick_byte(m);
        for (size_t i = at; i < at + length && i < m->size; i++)
            m->data[i] = byte;
    }
}

/* ---- callbacks ---- */

static void *resize(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    mutation *m = ctx;
    const heft_allocator *al = heft_host_default()->allocator;
    change(m);
    return al->resize(al->ctx, ptr, old_size, new_size, align);
}

static bool keep(void *ctx, const heft_tensor *t)
{
    (void)t;
    change(ctx);
    return true;
}

static void on_loss(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                    const char *text)
{
    (void)severity;
    (void)rule;
    (void)tensor;
    (void)text;
    change(ctx);
}

static bool progress(void *ctx, uint64_t done, uint64_t total)
{
    fuzz_require(done <= total);
    change(ctx);
    return true;
}

/* ---- a sink that counts ---- */

static heft_status reserve(heft_sink *s, uint64_t size, heft_error *err)
{
    mutation *m = (mutation *)s;
    (void)err;
    m->reserved = size;
    m->wait = 0; /* change after planning, before the first byte is written */
    change(m);
    return HEFT_OK;
}

static void take(mutation *m, uint64_t end, const void *data, size_t len)
{
    fuzz_require(end <= (m->reserved ? m->reserved : (uint64_t)MAX_OUTPUT));
    fuzz_use(len ? ((const uint8_t *)data)[len - 1] : 0u);
    m->written = end > m->written ? end : m->written;
    change(m);
}

static heft_status write_next(heft_sink *s, const void *data, size_t len, heft_error *err)
{
    mutation *m = (mutation *)s;
    (void)err;
    take(m, m->written + len, data, len);
    return HEFT_OK;
}

static heft_status write_at(heft_sink *s, uint64_t offset, const void *data, size_t len,
                            heft_error *err)
{
    (void)err;
    take((mutation *)s, offset + len, data, len);
    return HEFT_OK;
}

static heft_status finish(heft_sink *s, heft_error *err)
{
    (void)s;
    (void)err;
    return HEFT_OK;
}

static void discard(heft_sink *s)
{
    (void)s;
}

static const heft_sink_ops stream_ops = { .size = sizeof(heft_sink_ops),
                                          .write = write_next,
                                          .reserve = reserve,
                                          .finish = finish,
                                          .discard = discard };
static const heft_sink_ops file_ops = { .size = sizeof(heft_sink_ops),
                                        .write_at = write_at,
                                        .reserve = reserve,
                                        .finish = finish,
                                        .discard = discard };

/* ---- one conversion ---- */

/* Require that a failure sets the status and a line of text. */
static void check_error(heft_status st, const heft_error *err)
{
    if (st)
        fuzz_require(err->status == st && *err->message &&
                     memchr(err->message, 0, sizeof err->message));
}

static heft_status open_changing(heft_file **out, mutation *m)
{
    const heft_limits limits = { .size = sizeof limits, .memory = 64 << 20, .tensors = 1 << 12 };
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_source *source = NULL;
    heft_error err;
    memset(&err, 0xA5, sizeof err);
    opt.host = &m->host;
    opt.no_verify = true;
    opt.limits = &limits;
    fuzz_require(!heft_source_open_memory(&source, m->data, m->size, NULL));
    heft_status st = heft_file_open_source(out, source, &opt, &err);
    check_error(st, &err);
    return st;
}

static bool is_small(const heft_file *f)
{
    uint64_t total = 0;
    for (uint32_t id = 0; id < heft_tensor_count(f) && total <= MAX_PAYLOAD; id++)
        total += heft_tensor_bytes(f, id) < MAX_PAYLOAD ? heft_tensor_bytes(f, id)
                                                        : MAX_PAYLOAD + 1;
    return total <= MAX_PAYLOAD;
}

static void convert(mutation *m, const heft_file *in, const heft_format *to, const char *version,
                    bool compress)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    heft_error err;
    uint64_t planned = 0;
    memset(&err, 0xA5, sizeof err);
    m->sink.ops = m->is_stream ? &stream_ops : &file_ops;
    m->reserved = m->written = 0;
    opt.write = &write;
    write.host = &m->host;
    write.version = version;
    write.allow_loss = true;
    write.on_loss = on_loss;
    write.loss_ctx = m;
    write.encoding = compress ? HEFT_ZSTD : HEFT_RAW;
    opt.keep = keep;
    opt.ctx = m;
    opt.planned_bytes = &planned;
    opt.no_verify = next_random(m) % 2;
    opt.progress = progress;
    opt.progress_ctx = m;
    heft_status st = heft_file_convert(in, to, &m->sink, &opt, &err);
    check_error(st, &err);
    if (!st && planned)
        fuzz_require(m->written == planned);
}

static void convert_changing(mutation *m, const uint8_t *data, const heft_format *to,
                             const char *version, bool compress)
{
    heft_file *in = NULL;
    memcpy(m->data, data, m->size);
    m->is_stream = next_random(m) % 2;
    m->wait = next_random(m) % 8 ? UINT64_MAX
                                 : next_random(m) % MAX_CALLS; /* change while opening */
    if (!open_changing(&in, m) && is_small(in)) {
        m->wait = next_random(m) % MAX_CALLS;
        convert(m, in, to, version, compress);
    }
    m->wait = UINT64_MAX;
    heft_file_close(in);
}

static uint64_t seed_of(const uint8_t *data, size_t size)
{
    uint64_t h = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < size; i++)
        h = (h ^ data[i]) * UINT64_C(0x100000001B3);
    return h | 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const generations[] = {
        NULL, "2", "100", "snapshot", "simple", "1.2", "0.20"
    };
    enum { GENERATIONS = sizeof generations / sizeof *generations };
    mutation m = { .size = size, .random = seed_of(data, size) };
    m.data = malloc(size + !size);
    fuzz_require(m.data);
    m.al = (heft_allocator){ .size = sizeof(heft_allocator), .resize = resize, .ctx = &m };
    m.host = *heft_host_default();
    m.host.allocator = &m.al;
    m.host.executor = NULL;
    for (size_t i = 0; i < heft_format_count(); i++) {
        const heft_format *to = heft_format_at(i);
        uint32_t caps = heft_format_caps(to);
        if (!(caps & HEFT_CAN_WRITE))
            continue;
        convert_changing(&m, data, to, NULL, false);
        convert_changing(&m, data, to, generations[next_random(&m) % GENERATIONS],
                         caps & HEFT_CAN_ENCODE && next_random(&m) % 2);
    }
    free(m.data);
    return 0;
}
