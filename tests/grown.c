/* grown.c - uses every public struct that begins with its own size. check_grown.py compiles this
 * program with the headers of earlier and later versions and runs it with the current library. With
 * GROWN each of these structs has a last member `grown`, unknown to the library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heft/check.h>
#include <heft/editing.h>
#include <heft/heft_ext.h>
#include <heft/params.h>
#include <heft/split.h>
#include <heft/write.h>

#define REQUIRE(condition)                                    \
    do {                                                      \
        if (!(condition)) {                                   \
            printf("# line %d: %s\n", __LINE__, #condition);  \
            printf("# last error: %s\n", last_error.message); \
            exit(1);                                          \
        }                                                     \
    } while (0)

/* A struct followed by guard bytes, to detect reads and writes past its end. */
#define GUARDED(type)      \
    struct {               \
        type value;        \
        uint8_t guard[64]; \
    }
#define GUARD             \
    {                     \
        [0 ... 63] = 0xEE \
    }

typedef struct bytes {
    uint8_t at[1 << 16];
    size_t len;
    bool is_finished;
} bytes;

static heft_error last_error;
static size_t digested;

/* ---- sink, source, digest and codec of the program ---- */

static heft_status write_bytes(heft_sink *s, const void *data, size_t len, heft_error *err);
static heft_status finish(heft_sink *s, heft_error *err);
static void discard(heft_sink *s);
static heft_status read_bytes(heft_source *s, uint64_t at, void *buf, size_t len, heft_error *err);
static void close_bytes(heft_source *s);
static bool sum_init(void *state);
static void sum_update(void *state, const void *data, size_t len);
static void sum_final(uint8_t *out, void *state);
static heft_status no_decoder(void **state, uint64_t decoded, heft_error *err);

static const GUARDED(heft_sink_ops) sink_ops = {
    { .size = sizeof(heft_sink_ops), .write = write_bytes, .finish = finish, .discard = discard },
    GUARD
};
static const GUARDED(heft_source_ops) source_ops = {
    { .size = sizeof(heft_source_ops), .read = read_bytes, .close = close_bytes }, GUARD
};
static const GUARDED(heft_digest) digest = { { .size = sizeof(heft_digest),
                                               .name = "crc32c",
                                               .bytes = 4,
                                               .state_bytes = 4,
                                               .init = sum_init,
                                               .update = sum_update,
                                               .final = sum_final },
                                             GUARD };
static const GUARDED(heft_codec) codec = {
    { .size = sizeof(heft_codec), .encoding = HEFT_ZSTD, .name = "zstd", .open = no_decoder }, GUARD
};

typedef struct memory_sink {
    heft_sink base;
    bytes *to;
} memory_sink;

static heft_sink *sink_into(bytes *to)
{
    memory_sink *s = malloc(sizeof *s);
    *s = (memory_sink){ { &sink_ops.value }, to };
    to->len = 0;
    to->is_finished = false;
    return &s->base;
}

static heft_status write_bytes(heft_sink *s, const void *data, size_t len, heft_error *err)
{
    bytes *to = ((memory_sink *)s)->to;
    (void)err;
    memcpy(to->at + to->len, data, len);
    to->len += len;
    return HEFT_OK;
}

static heft_status finish(heft_sink *s, heft_error *err)
{
    (void)err;
    ((memory_sink *)s)->to->is_finished = true;
    free(s);
    return HEFT_OK;
}

static void discard(heft_sink *s)
{
    free(s);
}

typedef struct memory_source {
    heft_source base;
    const bytes *from;
} memory_source;

static heft_source *source_of(const bytes *from)
{
    memory_source *s = malloc(sizeof *s);
    *s = (memory_source){ { &source_ops.value, from->len }, from };
    return &s->base;
}

static heft_status read_bytes(heft_source *s, uint64_t at, void *buf, size_t len, heft_error *err)
{
    (void)err;
    memcpy(buf, ((memory_source *)s)->from->at + at, len);
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

/* ---- calls of the library ---- */

static bytes model, copy, shard;
static GUARDED(heft_host) host;

static void begin(void)
{
    static const heft_digest *const digests[] = { &digest.value, NULL };
    static const heft_codec *const codecs[] = { &codec.value, NULL };
    memset(&host, 0xEE, sizeof host);
    heft_host_copy(&host.value, NULL, sizeof host.value);
    host.value.executor = NULL;
    host.value.digests = digests;
    host.value.codecs = codecs;
}

static void write_model(void)
{
    static const uint64_t dims[] = { 16 };
    static const float data[16] = { 1, 2, 3 };
    GUARDED(heft_write_options) o = { HEFT_WRITE_OPTIONS_INIT, GUARD };
    GUARDED(heft_tensor_spec) spec = { HEFT_TENSOR_SPEC_INIT, GUARD };
    heft_writer *w;
    uint32_t part;
    o.value.host = &host.value;
    o.value.storage.digest = "crc32c";
    spec.value.name = (heft_str){ "w", 1 };
    spec.value.dtype = HEFT_F32;
    spec.value.rank = 1;
    spec.value.dims = dims;
    REQUIRE(!heft_writer_open(&w, heft_format_find(HEFT_STR("ztensor")), sink_into(&model),
                              &o.value, &last_error));
    REQUIRE(!heft_writer_add_tensor(&part, w, &spec.value, &last_error));
#ifdef GROWN
    spec.value.grown[1] = 1;
    REQUIRE(heft_writer_add_tensor(&part, w, &spec.value, &last_error) == HEFT_E_ARGUMENT);
#endif
    REQUIRE(!heft_writer_begin(w, &last_error));
    REQUIRE(!heft_writer_write(w, part, data, sizeof data, &last_error));
    REQUIRE(!heft_writer_finish(w, &last_error));
    REQUIRE(model.is_finished && digested >= sizeof data);
}

static heft_status no_shard(heft_source **out, void *ctx, const char *name, heft_error *err)
{
    (void)out, (void)ctx, (void)name, (void)err;
    return HEFT_E_NOTFOUND;
}

static heft_file *open_model(const bytes *b)
{
    GUARDED(heft_open_options) o = { HEFT_OPEN_OPTIONS_INIT, GUARD };
    GUARDED(heft_limits) limits = { HEFT_LIMITS_INIT, GUARD };
    GUARDED(heft_shard_folder)
    folder = { { .size = sizeof(heft_shard_folder), .name = "model.zt", .open = no_shard }, GUARD };
    heft_file *f;
    limits.value.memory = 1 << 20;
    o.value.host = &host.value;
    o.value.limits = &limits.value;
    o.value.shards = &folder.value;
    REQUIRE(!heft_file_open_source(&f, source_of(b), &o.value, &last_error));
    REQUIRE(heft_tensor_count(f) == 1);
#ifdef GROWN
    heft_file *none;
    limits.value.grown[0] = 1;
    REQUIRE(heft_file_open_source(&none, source_of(b), &o.value, &last_error) == HEFT_E_ARGUMENT &&
            !none);
    limits.value.grown[0] = 0;
    o.value.grown[1] = 1;
    REQUIRE(heft_file_open_source(&none, source_of(b), &o.value, &last_error) == HEFT_E_ARGUMENT &&
            !none);
#endif
    return f;
}

static void check_model(const heft_file *f)
{
    GUARDED(heft_verify_options) o = { HEFT_VERIFY_OPTIONS_INIT, GUARD };
    GUARDED(heft_verify_result) r = { { .faults = 1 }, GUARD };
    REQUIRE(!heft_file_verify(&r.value, f, &o.value, &last_error) && !r.value.faults &&
            r.guard[0] == 0xEE);
    GUARDED(heft_join_options) join = { HEFT_JOIN_OPTIONS_INIT, GUARD };
    heft_file *joined;
    REQUIRE(!heft_file_join(&joined, &f, 1, &join.value, &last_error));
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
    GUARDED(heft_write_options) write = { HEFT_WRITE_OPTIONS_INIT, GUARD };
    GUARDED(heft_convert_options) o = { HEFT_CONVERT_OPTIONS_INIT, GUARD };
    GUARDED(heft_append_options) append = { HEFT_APPEND_OPTIONS_INIT, GUARD };
    GUARDED(heft_edit_options) edit = { HEFT_EDIT_OPTIONS_INIT, GUARD };
    GUARDED(heft_split_options) split = { HEFT_SPLIT_OPTIONS_INIT, GUARD };
    GUARDED(heft_save_options) save = { HEFT_SAVE_OPTIONS_INIT, GUARD };
    const heft_format *st = heft_format_find(HEFT_STR("safetensors"));
    heft_edit *e;
    uint32_t count;
    write.value.host = &host.value;
    o.value.write = &write.value;
    REQUIRE(!heft_file_convert(f, st, sink_into(&copy), &o.value, &last_error) && copy.is_finished);
    append.value.convert = split.value.convert = &o.value;
    append.value.duplicates = HEFT_DUPLICATES_FIRST;
    REQUIRE(!heft_append_convert(&count, f, f, sink_into(&shard), &append.value, &last_error) &&
            !count);
    save.value.format = st;
    save.value.write = &write.value;
    REQUIRE(!heft_array_write(sink_into(&copy), NULL, 0, &save.value, &last_error) &&
            copy.is_finished);
    edit.value.host = &host.value;
    REQUIRE(!heft_edit_plan(&e, f, &edit.value, &last_error));
    heft_edit_close(e);
    split.value.count = 1;
    split.value.open = open_shard;
    REQUIRE(!heft_file_split(f, st, &split.value, &last_error) && shard.is_finished);
#ifdef GROWN
    write.value.grown[0] = 1;
    REQUIRE(heft_file_convert(f, st, sink_into(&copy), &o.value, &last_error) == HEFT_E_ARGUMENT);
    REQUIRE(heft_file_split(f, st, &split.value, &last_error) == HEFT_E_ARGUMENT);
    REQUIRE(heft_append_convert(&count, f, f, sink_into(&shard), &append.value, &last_error) ==
            HEFT_E_ARGUMENT);
    edit.value.grown[0] = 1;
    REQUIRE(heft_edit_plan(&e, f, &edit.value, &last_error) == HEFT_E_ARGUMENT);
#endif
}

static void keep_parameters(heft_file *take)
{
    GUARDED(heft_params_options) o = { HEFT_PARAMS_OPTIONS_INIT, GUARD };
    heft_params *p;
    heft_param w;
    heft_id128 space;
    o.value.host = &host.value;
    REQUIRE(!heft_params_open(&p, &o.value, &last_error));
    REQUIRE(!heft_params_add(&space, p, take, &last_error) && heft_params_count(p) == 1);
    REQUIRE(!heft_params_acquire(&w, p, heft_params_key_at(p, 0), &last_error) && w.bytes == 64);
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
