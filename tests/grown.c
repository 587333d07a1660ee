/* grown.c - a program that uses every struct that begins with its size.  check_grown.py builds it with the headers of
 * earlier and later versions and runs it with this library.  GROWN: each of these structs ends with a member `grown`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heft/heft_ext.h>
#include <heft/params.h>

#define DEMAND(condition)                                    \
    do {                                                     \
        if (!(condition)) {                                  \
            printf("# line %d: %s\n", __LINE__, #condition); \
            printf("# the last error: %s\n", last.message);  \
            exit(1);                                         \
        }                                                    \
    } while (0)

/* A struct in memory where rubbish lies behind it. */
#define AMID_RUBBISH(type)   \
    struct {                 \
        type is;             \
        uint8_t rubbish[64]; \
    }
#define RUBBISH           \
    {                     \
        [0 ... 63] = 0xEE \
    }

typedef struct bytes {
    uint8_t at[1 << 16];
    size_t len;
    bool is_finished;
} bytes;

static heft_error last;
static size_t digested;

/* ---- what a program brings along ---- */

static heft_status write_bytes(heft_sink *s, const void *data, size_t len, heft_error *err);
static heft_status finish(heft_sink *s, heft_error *err);
static void discard(heft_sink *s);
static heft_status read_bytes(heft_source *s, uint64_t at, void *buf, size_t len, heft_error *err);
static void close_bytes(heft_source *s);
static bool sum_init(void *state);
static void sum_update(void *state, const void *data, size_t len);
static void sum_final(uint8_t *out, void *state);
static heft_status no_decoder(void **state, uint64_t decoded, heft_error *err);

static const AMID_RUBBISH(heft_sink_ops) sink_ops = {
    { .size = sizeof(heft_sink_ops), .write = write_bytes, .finish = finish, .discard = discard },
    RUBBISH
};
static const AMID_RUBBISH(heft_source_ops) source_ops = {
    { .size = sizeof(heft_source_ops), .read = read_bytes, .close = close_bytes }, RUBBISH
};
static const AMID_RUBBISH(heft_digest) digest = { { .size = sizeof(heft_digest),
                                                    .name = "crc32c",
                                                    .bytes = 4,
                                                    .state_bytes = 4,
                                                    .init = sum_init,
                                                    .update = sum_update,
                                                    .final = sum_final },
                                                  RUBBISH };
static const AMID_RUBBISH(heft_codec) codec = {
    { .size = sizeof(heft_codec), .encoding = HEFT_ZSTD, .name = "zstd", .open = no_decoder },
    RUBBISH
};

typedef struct own_sink {
    heft_sink base;
    bytes *to;
} own_sink;

static heft_sink *sink_into(bytes *to)
{
    own_sink *s = malloc(sizeof *s);
    *s = (own_sink){ { &sink_ops.is }, to };
    to->len = 0;
    to->is_finished = false;
    return &s->base;
}

static heft_status write_bytes(heft_sink *s, const void *data, size_t len, heft_error *err)
{
    bytes *to = ((own_sink *)s)->to;
    (void)err;
    memcpy(to->at + to->len, data, len);
    to->len += len;
    return HEFT_OK;
}

static heft_status finish(heft_sink *s, heft_error *err)
{
    (void)err;
    ((own_sink *)s)->to->is_finished = true;
    free(s);
    return HEFT_OK;
}

static void discard(heft_sink *s)
{
    free(s);
}

typedef struct own_source {
    heft_source base;
    const bytes *from;
} own_source;

static heft_source *source_of(const bytes *from)
{
    own_source *s = malloc(sizeof *s);
    *s = (own_source){ { &source_ops.is, from->len }, from };
    return &s->base;
}

static heft_status read_bytes(heft_source *s, uint64_t at, void *buf, size_t len, heft_error *err)
{
    (void)err;
    memcpy(buf, ((own_source *)s)->from->at + at, len);
    return HEFT_OK;
}

static void close_bytes(heft_source *s)
{
    free(s);
}

static bool sum_init(void *state)
{
    memset(state, 0, 4);
    return true;
}

static void sum_update(void *state, const void *data, size_t len)
{
    (void)state, (void)data;
    digested += len;
}

static void sum_final(uint8_t *out, void *state)
{
    if (out)
        memcpy(out, state, 4);
}

static heft_status no_decoder(void **state, uint64_t decoded, heft_error *err)
{
    (void)state, (void)decoded, (void)err;
    return HEFT_E_UNSUPPORTED;
}

/* ---- what it does ---- */

static bytes model, copy, shard;
static AMID_RUBBISH(heft_host) host;

static void begin(void)
{
    static const heft_digest *const digests[] = { &digest.is, NULL };
    static const heft_codec *const codecs[] = { &codec.is, NULL };
    memset(&host, 0xEE, sizeof host);
    heft_host_copy(&host.is, NULL, sizeof host.is);
    host.is.executor = NULL;
    host.is.digests = digests;
    host.is.codecs = codecs;
}

static void write_model(void)
{
    static const uint64_t dims[] = { 16 };
    static const float data[16] = { 1, 2, 3 };
    AMID_RUBBISH(heft_write_options) o = { HEFT_WRITE_OPTIONS_INIT, RUBBISH };
    AMID_RUBBISH(heft_tensor_spec) spec = { HEFT_TENSOR_SPEC_INIT, RUBBISH };
    heft_writer *w;
    uint32_t part;
    o.is.host = &host.is;
    o.is.digest = "crc32c";
    spec.is.name = (heft_str){ "w", 1 };
    spec.is.dtype = HEFT_F32;
    spec.is.rank = 1;
    spec.is.dims = dims;
    DEMAND(!heft_writer_open(&w, heft_format_find("ztensor"), sink_into(&model), &o.is, &last));
    DEMAND(!heft_writer_add_tensor(&part, w, &spec.is, &last));
#ifdef GROWN
    spec.is.grown[1] = 1;
    DEMAND(heft_writer_add_tensor(&part, w, &spec.is, &last) == HEFT_E_ARGUMENT);
#endif
    DEMAND(!heft_writer_begin(w, &last));
    DEMAND(!heft_writer_write(w, part, data, sizeof data, &last));
    DEMAND(!heft_writer_finish(w, &last));
    DEMAND(model.is_finished && digested >= sizeof data);
}

static heft_status no_shard(heft_source **out, void *ctx, const char *name, heft_error *err)
{
    (void)out, (void)ctx, (void)name, (void)err;
    return HEFT_E_NOTFOUND;
}

static heft_file *open_model(const bytes *b)
{
    AMID_RUBBISH(heft_open_options) o = { HEFT_OPEN_OPTIONS_INIT, RUBBISH };
    AMID_RUBBISH(heft_limits) limits = { HEFT_LIMITS_INIT, RUBBISH };
    AMID_RUBBISH(heft_shard_folder)
    folder = { { .size = sizeof(heft_shard_folder), .name = "model.zt", .open = no_shard },
               RUBBISH };
    heft_file *f;
    limits.is.memory = 1 << 20;
    o.is.host = &host.is;
    o.is.limits = &limits.is;
    o.is.shards = &folder.is;
    DEMAND(!heft_file_open_source(&f, source_of(b), &o.is, &last));
    DEMAND(heft_tensor_count(f) == 1);
#ifdef GROWN
    heft_file *none;
    limits.is.grown[0] = 1;
    DEMAND(heft_file_open_source(&none, source_of(b), &o.is, &last) == HEFT_E_ARGUMENT && !none);
    limits.is.grown[0] = 0;
    o.is.grown[1] = 1;
    DEMAND(heft_file_open_source(&none, source_of(b), &o.is, &last) == HEFT_E_ARGUMENT && !none);
#endif
    return f;
}

static void check_model(const heft_file *f)
{
    AMID_RUBBISH(heft_verify_options) o = { HEFT_VERIFY_OPTIONS_INIT, RUBBISH };
    AMID_RUBBISH(heft_verify_result) r = { { .faults = 1 }, RUBBISH };
    DEMAND(!heft_file_verify(&r.is, f, &o.is, &last) && !r.is.faults && r.rubbish[0] == 0xEE);
    AMID_RUBBISH(heft_finding) finding = { { .tensor = 0 }, RUBBISH };
    while (heft_notice_at(&finding.is, f, 0) && finding.rubbish[0] != 0xEE)
        DEMAND(false);
    AMID_RUBBISH(heft_join_options) join = { HEFT_JOIN_OPTIONS_INIT, RUBBISH };
    heft_file *joined;
    DEMAND(!heft_file_join(&joined, &f, 1, &join.is, &last));
    heft_file_close(joined);
}

static heft_status open_shard(heft_sink **out, void *ctx, const char *name, heft_error *err)
{
    (void)ctx, (void)name, (void)err;
    *out = sink_into(&shard);
    return HEFT_OK;
}

static void convert_model(const heft_file *f)
{
    AMID_RUBBISH(heft_write_options) write = { HEFT_WRITE_OPTIONS_INIT, RUBBISH };
    AMID_RUBBISH(heft_convert_options) o = { HEFT_CONVERT_OPTIONS_INIT, RUBBISH };
    AMID_RUBBISH(heft_append_options) append = { HEFT_APPEND_OPTIONS_INIT, RUBBISH };
    AMID_RUBBISH(heft_edit_options) edit = { HEFT_EDIT_OPTIONS_INIT, RUBBISH };
    AMID_RUBBISH(heft_split_options) split = { HEFT_SPLIT_OPTIONS_INIT, RUBBISH };
    AMID_RUBBISH(heft_save_options) save = { HEFT_SAVE_OPTIONS_INIT, RUBBISH };
    const heft_format *st = heft_format_find("safetensors");
    heft_edit *e;
    uint32_t count;
    write.is.host = &host.is;
    o.is.write = &write.is;
    DEMAND(!heft_file_convert(f, st, sink_into(&copy), &o.is, &last) && copy.is_finished);
    append.is.convert = split.is.convert = &o.is;
    append.is.duplicates = HEFT_DUPLICATES_FIRST;
    DEMAND(!heft_append_convert(&count, f, f, sink_into(&shard), &append.is, &last) && !count);
    save.is.format = st;
    save.is.write = &write.is;
    DEMAND(!heft_array_write(sink_into(&copy), NULL, 0, &save.is, &last) && copy.is_finished);
    edit.is.host = &host.is;
    DEMAND(!heft_edit_plan(&e, f, &edit.is, &last));
    heft_edit_close(e);
    split.is.count = 1;
    split.is.open = open_shard;
    DEMAND(!heft_file_split(f, st, &split.is, &last) && shard.is_finished);
#ifdef GROWN
    write.is.grown[0] = 1;
    DEMAND(heft_file_convert(f, st, sink_into(&copy), &o.is, &last) == HEFT_E_ARGUMENT);
    DEMAND(heft_file_split(f, st, &split.is, &last) == HEFT_E_ARGUMENT);
    DEMAND(heft_append_convert(&count, f, f, sink_into(&shard), &append.is, &last) ==
           HEFT_E_ARGUMENT);
    edit.is.grown[0] = 1;
    DEMAND(heft_edit_plan(&e, f, &edit.is, &last) == HEFT_E_ARGUMENT);
#endif
}

static void keep_parameters(heft_file *take)
{
    AMID_RUBBISH(heft_params_options) o = { HEFT_PARAMS_OPTIONS_INIT, RUBBISH };
    heft_params *p;
    heft_param w;
    heft_id128 space;
    o.is.host = &host.is;
    DEMAND(!heft_params_open(&p, &o.is, &last));
    DEMAND(!heft_params_add(&space, p, take, &last) && heft_params_count(p) == 1);
    DEMAND(!heft_params_acquire(&w, p, heft_params_key_at(p, 0), &last) && w.bytes == 64);
    heft_params_release(p, heft_params_key_at(p, 0));
    heft_params_close(p);
}

int main(void)
{
    begin();
    write_model();
    heft_file *f = open_model(&model);
    check_model(f);
    convert_model(f);
    keep_parameters(f);
    return 0;
}
