/* formats_streams.c - checks that a conversion to a stream ends like the conversion to a file: with
 * the same status, the same number of losses and the same bytes, also for damaged samples. */
#include "every_format.h"

typedef struct outcome {
    heft_status st;
    uint32_t losses;
    heft_bytes bytes; /* owned; empty after an error */
    heft_error err;
} outcome;

typedef struct request {
    const heft_format *format;
    const char *version;
    bool allow_loss;
    uint32_t only; /* tensor to keep; HEFT_NONE: all */
} request;

static void count_loss(void *ctx, heft_severity s, const char *rule, heft_str tensor,
                       const char *text)
{
    (void)s, (void)rule, (void)tensor, (void)text;
    ++*(uint32_t *)ctx;
}

static bool is_kept(void *ctx, const heft_tensor *t)
{
    const heft_str *name = ctx;
    return t->name.len == name->len && !memcmp(t->name.ptr, name->ptr, name->len);
}

static outcome convert(const heft_file *f, const request *r, bool is_stream)
{
    outcome o = { .st = HEFT_OK };
    heft_test_sink sink;
    heft_str name = { NULL, 0 };
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    opt.write = &write;
    write.version = r->version;
    write.allow_loss = r->allow_loss;
    write.on_loss = count_loss;
    write.ctx = &o.losses;
    if (r->only != HEFT_NONE) {
        name = heft_tensor_at(f, r->only).name;
        opt.keep = is_kept;
        opt.ctx = &name;
    }
    o.st = heft_file_convert(f, r->format, heft_test_sink_init(&sink, is_stream), &opt, &o.err);
    assert_int_equal(sink.finished, !o.st);
    o.bytes = o.st ? (heft_bytes){ NULL, 0 } : heft_test_copy(sink.p, sink.len);
    heft_test_sink_free(&sink);
    return o;
}

/* A file with several faults may be refused for any of them, always as invalid. */
static heft_status kind_of(heft_status st)
{
    return st == HEFT_E_CHECKSUM ? HEFT_E_FORMAT : st;
}

static void assert_alike(const heft_file *f, const request *r)
{
    outcome file = convert(f, r, false), stream = convert(f, r, true);
    if (kind_of(file.st) != kind_of(stream.st) || file.losses != stream.losses)
        fail_msg("to %s %s, tensor %d: a file ends with %s (%s, %u losses), a stream with %s (%s, "
                 "%u losses)",
                 heft_format_name(r->format), r->version ? r->version : "", (int)r->only,
                 heft_status_name(file.st), file.st ? file.err.message : "", file.losses,
                 heft_status_name(stream.st), stream.st ? stream.err.message : "", stream.losses);
    if (!file.st)
        heft_assert_same_bytes(file.bytes, stream.bytes);
    heft_test_free(&file.bytes);
    heft_test_free(&stream.bytes);
}

static bool is_written(const heft_format *f)
{
    return heft_format_caps(f) & HEFT_CAN_WRITE;
}

/* Convert to every version of a format. */
static void convert_to_versions(const heft_file *f, request r)
{
    char versions[64], *rest = versions;
    assert_alike(f, &r);
    snprintf(versions, sizeof versions, "%s", heft_format_versions(r.format));
    while ((r.version = strtok_r(rest, " ", &rest)))
        assert_alike(f, &r);
}

/* Convert the whole model and the tensor `only` to the file's own format, to a strict format and to
 * a format without checksums. */
static void convert_damaged(const heft_file *f, uint32_t only)
{
    const request requests[] = {
        { heft_file_format(f), NULL, true, HEFT_NONE },
        { heft_file_format(f), NULL, true, only },
        { heft_format_find(HEFT_STR("ztensor")), "2", true, HEFT_NONE },
        { heft_format_find(HEFT_STR("ztensor")), "2", true, only },
        { heft_format_find(HEFT_STR("safetensors")), NULL, true, HEFT_NONE },
        { heft_format_find(HEFT_STR("safetensors")), NULL, true, only },
    };
    for (size_t i = 0; i < HEFT_COUNT(requests); i++)
        if (requests[i].format && is_written(requests[i].format))
            assert_alike(f, &requests[i]);
}

/* Change a byte of the sample; `keep` chooses the tensor to convert alone. */
static void damage_byte(const sample *s, uint64_t at, uint32_t keep)
{
    heft_file *f;
    heft_error err;
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_source *source;
    heft_bytes b = heft_test_copy(s->in.bytes.p, s->in.bytes.len);
    opt.no_verify = true;
    b.p[at] ^= 0xFE;
    heft_assert_ok(heft_source_open_memory(&source, b.p, b.len, &err), &err);
    if (!heft_file_open_source(&f, source, &opt, &err)) {
        if (heft_tensor_count(f))
            convert_damaged(f, keep % heft_tensor_count(f));
        heft_file_close(f);
    }
    heft_test_free(&b);
}

void check_streams(const sample *s)
{
    enum { DAMAGED = 6, LARGE = 1 << 20, SLOW = 4 };
    heft_file *f;
    uint32_t parts;
    /* In slow builds, the length of the sample chooses some of the samples and formats. */
    if (s->in.bytes.len / 8 % SLOW >= heft_test_fewer(SLOW) || open_sample(&f, s, NULL, NULL))
        return;
    uint32_t step = heft_format_count() / (uint32_t)heft_test_fewer(heft_format_count());
    for (uint32_t i = (uint32_t)(s->in.bytes.len % step); i < heft_format_count(); i += step)
        if (is_written(heft_format_at(i)))
            convert_to_versions(f, (request){ heft_format_at(i), NULL, true, HEFT_NONE });
    size_t most = heft_test_fewer(DAMAGED);
    for (uint32_t i = 0; i < heft_tensor_count(f) && i < most; i++)
        convert_damaged(f, i);
    heft_file_parts(f, &parts);
    for (uint32_t i = 0; i < parts && i < most; i++) {
        heft_part p = heft_part_at(f, i);
        if (p.stored && p.offset + p.stored <= s->in.bytes.len && s->in.bytes.len < LARGE)
            for (uint32_t keep = 0; keep < 2; keep++)
                damage_byte(s, p.offset + (keep ? p.stored - 1 : p.stored / 2), i + keep);
    }
    heft_file_close(f);
}
