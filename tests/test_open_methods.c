/* test_open_methods.c - methods to open the same bytes; all must produce the same model. */
#include "heft_test.h"

heft_status heft_test_open(heft_file **out, heft_bytes b, const heft_host *host, heft_error *err)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_source *s;
    opt.host = host;
    heft_status st = heft_source_open_memory(&s, b.p, b.len, err);
    return st ? st : heft_file_open_source(out, s, &opt, err);
}

heft_file *heft_test_opened(heft_bytes b, const heft_host *host, bool check)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_error err;
    heft_source *s;
    heft_file *f;
    opt.host = host;
    opt.check_parts = check;
    heft_assert_ok(heft_source_open_memory(&s, b.p, b.len, &err), &err);
    heft_assert_ok(heft_file_open_source(&f, s, &opt, &err), &err);
    return f;
}

static heft_status open_path(heft_file **out, const heft_test_input *in, heft_access access,
                             const heft_open_options *opt, heft_error *err)
{
    heft_source *s;
    heft_status st = heft_source_open_file(&s, in->path, access, err);
    *out = NULL;
    return st ? st : heft_file_open_source(out, s, opt, err);
}

static heft_status open_mapped(heft_file **out, const heft_test_input *in,
                               const heft_open_options *opt, heft_error *err)
{
    return open_path(out, in, HEFT_ACCESS_MAP, opt, err);
}

static heft_status open_read(heft_file **out, const heft_test_input *in,
                             const heft_open_options *opt, heft_error *err)
{
    return open_path(out, in, HEFT_ACCESS_READ, opt, err);
}

static heft_status open_memory(heft_file **out, const heft_test_input *in,
                               const heft_open_options *opt, heft_error *err)
{
    heft_source *s;
    heft_status st = heft_source_open_memory(&s, in->bytes.p, in->bytes.len, err);
    *out = NULL;
    return st ? st : heft_file_open_source(out, s, opt, err);
}

/* ---- a source that cannot map --------------------------------------------------------------- */

typedef struct plain_source {
    heft_source base;
    const uint8_t *p;
} plain_source;

static heft_status read_plain(heft_source *s, uint64_t off, void *buf, size_t len, heft_error *err)
{
    (void)err;
    if (off > s->size || len > s->size - off)
        abort(); /* the engine must check ranges first */
    memcpy(buf, ((plain_source *)s)->p + off, len);
    return HEFT_OK;
}

static void close_plain(heft_source *s)
{
    free(s);
}

static heft_status open_plain(heft_file **out, const heft_test_input *in,
                              const heft_open_options *opt, heft_error *err)
{
    static const heft_source_ops ops = { .size = sizeof(heft_source_ops),
                                         .read = read_plain,
                                         .close = close_plain };
    plain_source *s = malloc(sizeof *s);
    assert_non_null(s);
    *s = (plain_source){ { &ops, in->bytes.len }, in->bytes.p };
    *out = NULL;
    return heft_file_open_source(out, &s->base, opt, err);
}

/* ---- feeding -------------------------------------------------------------------------------- */

typedef struct feeder {
    heft_file *f;
    heft_bytes bytes;
    uint64_t random;
    heft_error *err;
} feeder;

/* Feed a copy that is freed afterwards: only a buffer of the whole file may be borrowed. */
static heft_status feed_copy(const feeder *fd, uint64_t off, uint64_t len)
{
    if (len > fd->bytes.len - off)
        len = fd->bytes.len - off;
    if (len == fd->bytes.len)
        return heft_file_feed(fd->f, 0, fd->bytes.p, fd->bytes.len, fd->err);
    heft_bytes copy = heft_test_copy(fd->bytes.p + off, (size_t)len);
    heft_status st = heft_file_feed(fd->f, off, copy.p, copy.len, fd->err);
    memset(copy.p, 0xDD, copy.len);
    heft_test_free(&copy);
    return st;
}

/* Feed exactly the requested range. */
static heft_status feed_requested(feeder *fd, heft_range r)
{
    return feed_copy(fd, r.offset, r.length);
}

/* Feed only the first bytes of the range, so that the parser stops nearly everywhere. */
static heft_status feed_few_bytes(feeder *fd, heft_range r)
{
    uint64_t max_bytes = fd->bytes.len / 512 + 1 + heft_test_random(&fd->random, 24);
    return feed_copy(fd, r.offset, r.length < max_bytes ? r.length : max_bytes);
}

/* Feed the range in small overlapping chunks, from the end to the beginning. */
static heft_status feed_overlapping(feeder *fd, heft_range r)
{
    uint64_t step = r.length / 64 + 3, at = r.length;
    heft_status st = HEFT_OK;
    while (at && !st) {
        uint64_t n = at < step ? at : step;
        at -= n;
        uint64_t before = r.offset + at < 5 ? 0 : 5;
        st = feed_copy(fd, r.offset + at - before, n + before + 2);
    }
    return st;
}

/* Feed a few random ranges first, then the requested range in two halves. */
static heft_status feed_unrequested(feeder *fd, heft_range r)
{
    heft_status st = HEFT_OK;
    for (int i = 0; i < 4 && fd->bytes.len > 64 && !st; i++) {
        uint32_t at = heft_test_random(&fd->random, (uint32_t)fd->bytes.len);
        st = feed_copy(fd, at, 1 + heft_test_random(&fd->random, 32));
    }
    uint64_t half = r.length / 2;
    if (!st && half)
        st = feed_copy(fd, r.offset, half);
    return st ? st : feed_copy(fd, r.offset + half, r.length - half);
}

static heft_status feed_until_open(feeder *fd, heft_status (*feed)(feeder *, heft_range))
{
    heft_status st;
    uint64_t rounds = 0;
    while ((st = heft_file_step(fd->f, fd->err)) == HEFT_AGAIN) {
        const heft_range *needs;
        size_t n = heft_file_needs(fd->f, &needs);
        heft_range ranges[64];
        assert_in_range(n, 1, HEFT_COUNT(ranges));
        memcpy(ranges, needs, n * sizeof *needs);
        for (size_t i = 0; i < n; i++) {
            assert_in_range(ranges[i].length, 1, fd->bytes.len);
            assert_in_range(ranges[i].offset, 0, fd->bytes.len - ranges[i].length);
            if ((st = feed(fd, ranges[i])))
                return st;
        }
        assert_in_range(++rounds, 1, 2 * fd->bytes.len + 16); /* bounds the number of rounds */
    }
    return st;
}

static heft_status open_fed(heft_file **out, const heft_test_input *in,
                            const heft_open_options *opt, heft_error *err,
                            heft_status (*feed)(feeder *, heft_range))
{
    feeder fd = { .bytes = in->bytes, .random = 1, .err = err };
    heft_status st = heft_file_begin(out, in->bytes.len, opt, err);
    if (st)
        return st;
    fd.f = *out;
    st = feed_until_open(&fd, feed);
    if (st) {
        heft_file_close(*out);
        *out = NULL;
    }
    return st;
}

static heft_status open_requested(heft_file **out, const heft_test_input *in,
                                  const heft_open_options *opt, heft_error *err)
{
    return open_fed(out, in, opt, err, feed_requested);
}

static heft_status open_few_bytes(heft_file **out, const heft_test_input *in,
                                  const heft_open_options *opt, heft_error *err)
{
    return open_fed(out, in, opt, err, feed_few_bytes);
}

static heft_status open_overlapping(heft_file **out, const heft_test_input *in,
                                    const heft_open_options *opt, heft_error *err)
{
    return open_fed(out, in, opt, err, feed_overlapping);
}

static heft_status open_unrequested(heft_file **out, const heft_test_input *in,
                                    const heft_open_options *opt, heft_error *err)
{
    return open_fed(out, in, opt, err, feed_unrequested);
}

const heft_test_open_method heft_test_open_methods[] = {
    { "memory", false, true, open_memory },
    { "mapped", true, true, open_mapped },
    { "read", true, true, open_read },
    { "a source that cannot map", false, true, open_plain },
    { "fed requested ranges", false, false, open_requested },
    { "fed a few bytes at a time", false, false, open_few_bytes },
    { "fed overlapping chunks", false, false, open_overlapping },
    { "fed unrequested ranges", false, false, open_unrequested },
};
const size_t heft_test_open_method_count = HEFT_COUNT(heft_test_open_methods);
