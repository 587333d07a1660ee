/* make OUT FORMAT LAYERS ROWS COLUMNS [holes] - writes a model of LAYERS layers.  Each layer has
 * six matrices of ROWS x COLUMNS, alternately f32 and f16, and two f32 vectors of COLUMNS
 * elements.  With "holes" the file has its full length, but payloads are holes of a sparse file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <heft/heft_ext.h>
#include <heft/write.h>

enum { PATTERN = 16 << 20, CHUNK = 4 << 20 };

static const struct {
    const char *name;
    uint32_t rank;
    heft_dtype dtype;
} members[] = {
    { "norm1.weight", 1, HEFT_F32 },  { "attn.q.weight", 2, HEFT_F32 },
    { "attn.k.weight", 2, HEFT_F16 }, { "attn.v.weight", 2, HEFT_F32 },
    { "attn.o.weight", 2, HEFT_F16 }, { "norm2.weight", 1, HEFT_F32 },
    { "mlp.up.weight", 2, HEFT_F32 }, { "mlp.down.weight", 2, HEFT_F16 },
};
enum { MEMBERS = sizeof members / sizeof *members };

typedef struct model {
    uint32_t layers;
    uint64_t rows, columns;
    const char *bytes; /* PATTERN bytes, from which tensors are written */
    bool holes;
} model;

/* ---- sink that leaves payloads as holes ---- */

typedef struct hole_sink {
    heft_sink base;
    int fd;
    const char *bytes;
} hole_sink;

static heft_status fail(heft_error *err)
{
    snprintf(err->message, sizeof err->message, "%s", strerror(errno));
    err->status = HEFT_E_IO;
    return HEFT_E_IO;
}

static heft_status reserve(heft_sink *s, uint64_t size, heft_error *err)
{
    return ftruncate(((hole_sink *)s)->fd, (off_t)size) ? fail(err) : HEFT_OK;
}

static heft_status write_at(heft_sink *s, uint64_t at, const void *data, size_t len,
                            heft_error *err)
{
    const hole_sink *h = (hole_sink *)s;
    const char *p = data;
    if (p >= h->bytes && p < h->bytes + PATTERN)
        return HEFT_OK;
    for (ssize_t n; len; p += n, at += (size_t)n, len -= (size_t)n) {
        n = pwrite(h->fd, p, len, (off_t)at);
        if (n < 0)
            return fail(err);
    }
    return HEFT_OK;
}

static void discard(heft_sink *s)
{
    close(((hole_sink *)s)->fd);
    free(s);
}

static heft_status finish(heft_sink *s, heft_error *err)
{
    (void)err;
    discard(s);
    return HEFT_OK;
}

static heft_status open_holes(heft_sink **out, const char *path, const char *bytes, heft_error *err)
{
    static const heft_sink_ops ops = { .size = sizeof(heft_sink_ops),
                                       .reserve = reserve,
                                       .write_at = write_at,
                                       .finish = finish,
                                       .discard = discard };
    hole_sink *h = calloc(1, sizeof *h);
    if (!h)
        return fail(err);
    *h = (hole_sink){ { &ops }, open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666), bytes };
    *out = &h->base;
    return h->fd < 0 ? fail(err) : HEFT_OK;
}

/* ---- the model ---- */

/* Return PATTERN bytes similar to weights: f32 around zero, few of them large, with low halves
 * that are finite as f16 as well.  Return zeros for holes, so that checksums match. */
static const char *some_weights(bool zeros)
{
    uint64_t state = 88172645463325252ull;
    float *p = mmap(NULL, PATTERN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    for (size_t i = 0; i < PATTERN / sizeof *p && !zeros; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        float sum = 0;
        for (int k = 0; k < 64; k += 16)
            sum += (float)(state >> k & 0xFFFF) / 65536 - 0.5F;
        uint32_t bits;
        sum *= 0.05F;
        memcpy(&bits, &sum, sizeof bits);
        bits = (bits & 0xFFFF8000) |
               (state & 0x3FFF); /* replace low bits, which a sum of short numbers leaves regular */
        memcpy(&p[i], &bits, sizeof bits);
    }
    return (const char *)p;
}

static uint64_t bytes_of(const model *m, uint32_t i)
{
    uint64_t elements = (members[i % MEMBERS].rank == 2 ? m->rows : 1) * m->columns;
    return elements * (members[i % MEMBERS].dtype == HEFT_F16 ? 2 : 4);
}

static heft_status declare(heft_writer *w, const model *m, heft_error *err)
{
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < m->layers * MEMBERS && !st; i++) {
        char name[64];
        uint32_t rank = members[i % MEMBERS].rank, part;
        uint64_t dims[2] = { rank == 2 ? m->rows : m->columns, m->columns };
        int len = snprintf(name, sizeof name, "layers.%u.%s", (unsigned)(i / MEMBERS),
                           members[i % MEMBERS].name);
        st = heft_writer_add_dense(&part, w, (heft_str){ name, (size_t)len },
                                   members[i % MEMBERS].dtype, dims, rank, err);
    }
    return st;
}

/* Return an offset in the pattern for n bytes, a multiple of every element's size. */
static uint64_t offset_in_pattern(uint64_t i, uint64_t done, uint64_t n)
{
    enum { UNIT = 64 };
    return (i * 52361 + done / UNIT) % ((PATTERN - n) / UNIT + 1) * UNIT;
}

/* Write the payload; each tensor begins at a different offset of the pattern. */
static heft_status put_bytes(heft_writer *w, const model *m, heft_error *err)
{
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < m->layers * MEMBERS; i++)
        for (uint64_t done = 0, all = bytes_of(m, i), n; done < all && !st; done += n) {
            n = all - done < CHUNK ? all - done : CHUNK;
            st = heft_writer_write(w, i, m->bytes + offset_in_pattern(i, done, n), (size_t)n, err);
        }
    return st;
}

static heft_status write_model(const char *path, const char *format, const model *m,
                               heft_error *err)
{
    heft_sink *sink;
    heft_writer *w;
    heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
    opt.allow_loss = true; /* Burnpack: more tensors than the reference reader accepts */
    heft_status st = m->holes ? open_holes(&sink, path, m->bytes, err)
                              : heft_sink_open_file(&sink, path, HEFT_SINK_REPLACE, err);
    if (!st)
        st = heft_writer_open(&w, heft_format_find(heft_str_from(format)), sink, &opt, err);
    if (st)
        return st;
    st = declare(w, m, err);
    if (!st)
        st = heft_writer_begin(w, err);
    if (!st)
        st = put_bytes(w, m, err);
    if (!st)
        return heft_writer_finish(w, err);
    heft_writer_discard(w);
    return st;
}

int main(int argc, char **argv)
{
    heft_error err = { .message = "" };
    if (argc < 6 || argc > 7) {
        fputs("usage: make OUT FORMAT LAYERS ROWS COLUMNS [holes]\n", stderr);
        return 2;
    }
    model m = { (uint32_t)strtoul(argv[3], NULL, 10), strtoull(argv[4], NULL, 10),
                strtoull(argv[5], NULL, 10), some_weights(argc == 7), argc == 7 };
    if (!m.bytes || write_model(argv[1], argv[2], &m, &err)) {
        fprintf(stderr, "%s: %s\n", argv[1], m.bytes ? err.message : "no memory");
        return 1;
    }
    return 0;
}
