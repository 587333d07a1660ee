/* test_starved.c - checks, conversions and edits that run out of memory, see starved.h. */
#include "starved.h"

#include "core/check/verification.h"

#include <heft/share.h>

/* ---- inputs --------------------------------------------------------------------------------- */

static const test_tensor tensors[] = { { "a", HEFT_F32, 2, { 20, 30 } },
                                       { "b", HEFT_F32, 1, { 3000 } },
                                       { "c", HEFT_F32, 1, { 5 } } };

static heft_bytes with_digests(void)
{
    heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    w.storage.digest = "crc32c";
    o.write = &w;
    return heft_test_converted("safetensors", tensors, HEFT_COUNT(tensors), "ztensor", &o);
}

static heft_bytes compressed(void)
{
    heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    const test_tensor flags = { "a", HEFT_BOOL, 1, { 3000 } };
    w.storage.encoding = HEFT_ZSTD;
    w.storage.digest = "crc32c";
    o.write = &w;
    return heft_test_converted("safetensors", &flags, 1, "ztensor", &o);
}

static heft_bytes truncated(void)
{
    heft_bytes b = heft_test_model("mag", tensors, HEFT_COUNT(tensors));
    b.len -= 3000;
    return b;
}

/* Flip a bit of the last tensor but one. */
static heft_bytes damaged(heft_bytes b)
{
    heft_file *f = heft_test_opened(b, NULL, false);
    heft_part p = heft_part_at(f, heft_tensor_at(f, 1).first_part);
    heft_file_close(f);
    b.p[p.offset + p.stored / 2] ^= 1;
    return b;
}

/* A truncated file with another name in the index than the checksum of the index covers. */
static heft_bytes truncated_and_damaged(void)
{
    heft_bytes b = truncated();
    uint8_t *name = memchr(b.p + 16, 'c', 512);
    assert_non_null(name);
    *name = 'd';
    return b;
}

static heft_bytes plain(void)
{
    return heft_test_model("safetensors", tensors, HEFT_COUNT(tensors));
}

static heft_bytes with_checksums(void)
{
    return heft_test_model("embd", tensors, HEFT_COUNT(tensors));
}

static heft_bytes with_wrong_digest(void)
{
    return damaged(with_digests());
}

static heft_bytes with_wrong_checksum(void)
{
    return damaged(with_checksums());
}

/* A download that stopped at a multiple of 4096. */
static heft_bytes unfinished(void)
{
    enum { RECEIVED = 8192 };
    heft_bytes b = plain();
    memset(b.p + RECEIVED, 0, b.len - RECEIVED);
    return b;
}

/* Large data at offsets that a file system can share. */
static heft_bytes aligned(void)
{
    static const test_tensor large = { "a", HEFT_F32, 1, { 1 << 18 } };
    heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    w.align = 4096;
    o.write = &w;
    return heft_test_converted("safetensors", &large, 1, "mag", &o);
}

/* Two tensors with equal bytes. */
static heft_bytes with_equal_tensors(void)
{
    static const test_tensor equal[] = { { "a", HEFT_F32, 1, { 2000 } },
                                         { "b", HEFT_F32, 1, { 2000 } } };
    heft_bytes b = heft_test_model("safetensors", equal, 2);
    memcpy(b.p + b.len - 8000, b.p + b.len - 16000, 8000);
    return b;
}

static heft_bytes with_shared_tensors(void)
{
    heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    heft_bytes from = with_equal_tensors();
    heft_test_sink sink;
    heft_error err;
    heft_file *f = heft_test_opened(from, NULL, false);
    w.version = "2";
    o.write = &w;
    heft_assert_ok(heft_file_convert(f, heft_format_find(HEFT_STR("ztensor")),
                                     heft_test_sink_init(&sink, false), &o, &err),
                   &err);
    heft_file_close(f);
    heft_test_free(&from);
    return (heft_bytes){ sink.p, sink.len };
}

static const char config[] = "{\"kind\":\"gpt\",\"config\":{}}";

static heft_bytes checkpoint(void)
{
    static const uint64_t dims[] = { 2 };
    heft_test_sink sink;
    heft_writer *w;
    heft_error err;
    uint32_t part;
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("gptrs-checkpoint")),
                                    heft_test_sink_init(&sink, false), NULL, &err),
                   &err);
    heft_assert_ok(
        heft_writer_add_model_part(w, HEFT_STR("config"), config, sizeof config - 1, &err), &err);
    heft_assert_ok(heft_writer_add_dense(&part, w, HEFT_STR("a"), HEFT_F32, dims, 1, &err), &err);
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    heft_assert_ok(heft_writer_write(w, part, "01234567", 8, &err), &err);
    heft_assert_ok(heft_writer_finish(w, &err), &err);
    return (heft_bytes){ sink.p, sink.len };
}

/* ---- checks --------------------------------------------------------------------------------- */

static heft_status run_coverage(const input *in, heft_error *err)
{
    heft_verify_result result = { .notes = 0 };
    return heft_file_coverage(&result, in->f, false, err);
}

static heft_status run_hash_model(const input *in, heft_error *err)
{
    static const heft_hash hashes[HEFT_COUNT(tensors)];
    heft_hash model;
    return heft_hash_model(&model, hashes, in->f, err);
}

static heft_status run_verify_share(const input *in, heft_error *err)
{
    heft_verify_options o = HEFT_VERIFY_OPTIONS_INIT;
    heft_verify_result r;
    o.share = 1;
    o.share_count = 2;
    return heft_file_verify(&r, in->f, &o, err);
}

static heft_status run_plan_shares(const input *in, heft_error *err)
{
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    heft_share_plan *p;
    heft_status st = heft_share_open(&p, in->f, heft_format_find(HEFT_STR("ztensor")), 2, &o, err);
    if (!st)
        heft_share_close(p);
    return st;
}

static heft_status run_doctor(const input *in, heft_error *err)
{
    heft_doctor_options o = HEFT_DOCTOR_OPTIONS_INIT;
    heft_doctor *d;
    o.host = &memory.host;
    heft_status st = heft_doctor_open(&d, source_of(in->bytes.p, in->bytes.len), &o, err);
    if (!st)
        heft_doctor_close(d);
    return st;
}

/* Without an error object of the caller, the function allocates an object for the parser. */
static heft_status run_open_in_place(const input *in, heft_error *err)
{
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    heft_file *f;
    o.host = &memory.host;
    heft_status st = heft_file_open_in_place(&f, in->bytes.p, in->bytes.len, &o, NULL);
    *err = (heft_error){ .status = st, .message = "the caller wants no message" };
    if (!st)
        heft_file_close(f);
    return st;
}

static heft_status run_find_tied(const input *in, heft_error *err)
{
    uint32_t first[HEFT_COUNT(tensors)];
    return heft_tensor_find_tied(first, in->f, err);
}

/* ---- models in several files ----------------------------------------------------------------- */

#define SHARD(number) "m-0000" #number "-of-00005.safetensors"

static const char index_text[] =
    "{\"weight_map\":{\"a\":\"" SHARD(1) "\",\"b\":\"" SHARD(2) "\",\"c\":\"" SHARD(3) "\"}}";
static const char shard_text[] = "\x40\0\0\0\0\0\0\0"
                                 "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}"
                                 "           abcd";

/* The second shard is not a model, the third does not exist. */
static heft_status open_shard(heft_source **out, void *ctx, const char *name, heft_error *err)
{
    bool is_first = !strcmp(name, SHARD(1));
    (void)ctx;
    *out = NULL;
    if (!is_first && strcmp(name, SHARD(2)) != 0) {
        *err = (heft_error){ .status = HEFT_E_NOTFOUND, .os = 2, .message = "does not exist" };
        return HEFT_E_NOTFOUND;
    }
    *out = source_of(shard_text, is_first ? sizeof shard_text - 1 : 20);
    return HEFT_OK;
}

static heft_status list_folder(void *ctx, void (*fn)(void *arg, const char *name), void *arg,
                               heft_error *err)
{
    (void)ctx, (void)err;
    fn(arg, SHARD(4));
    return HEFT_OK;
}

static heft_status open_index(heft_file **out, heft_error *err)
{
    heft_shard_folder folder = { .size = sizeof folder,
                                 .name = "m.safetensors.index.json",
                                 .open = open_shard,
                                 .list = list_folder };
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    o.host = &memory.host;
    o.shards = &folder;
    return heft_file_open_source(out, source_of(index_text, sizeof index_text - 1), &o, err);
}

static heft_status run_open_index(const input *in, heft_error *err)
{
    heft_file *f;
    (void)in;
    heft_status st = open_index(&f, err);
    if (!st)
        heft_file_close(f);
    return st;
}

/* The first component is complete, the second lacks shards, the third cannot be opened. */
static heft_status run_join_pipeline(const input *in, heft_error *err)
{
    heft_error why = { .status = HEFT_E_FORMAT, .message = "is no file" };
    heft_pipeline_file files[] = { { HEFT_STR("unet"), NULL, NULL },
                                   { HEFT_STR("text"), NULL, NULL },
                                   { HEFT_STR("vae"), NULL, &why } };
    const heft_folder_file other = { "other.safetensors", HEFT_FOLDER_ALTERNATIVE };
    const heft_folder folder = { &other, 1, NULL };
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    heft_file *joined = NULL;
    o.host = &memory.host;
    o.folder = &folder;
    heft_status st = open_input(&files[0].file, in->bytes, err);
    if (!st)
        st = open_index(&files[1].file, err);
    if (st)
        heft_file_close(files[0].file);
    if (!st)
        st = heft_file_join_pipeline(&joined, source_of("{}", 2), "index.json", files, 3, &o, err);
    heft_file_close(joined);
    return st;
}

/* ---- conversions ---------------------------------------------------------------------------- */

static heft_dtype to_f16(void *ctx, const heft_tensor *t)
{
    (void)ctx;
    return t->dtype == HEFT_F32 ? HEFT_F16 : HEFT_UNTYPED;
}

static heft_status convert(const input *in, const char *version, heft_convert_options o,
                           heft_test_sink *sink, heft_error *err)
{
    heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
    w.host = &memory.host;
    w.version = version;
    w.align = 4096;
    o.write = &w;
    return heft_file_convert(in->f, heft_format_find(HEFT_STR("ztensor")),
                             sink ? &sink->base : NULL, &o, err);
}

/* Values that a cast loses are counted without writing. */
static heft_status run_count_losses(const input *in, heft_error *err)
{
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    o.cast = to_f16;
    o.dry_run = true;
    return convert(in, "1.2", o, NULL, err);
}

static heft_status run_convert(const input *in, heft_error *err)
{
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    heft_test_sink sink;
    heft_test_sink_init(&sink, false);
    heft_status st = convert(in, "2", o, &sink, err);
    heft_test_sink_free(&sink);
    return st;
}

/* A compressed part is copied while the checksums of the stored bytes are computed. */
static heft_status run_decode(const input *in, heft_error *err)
{
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    heft_test_sink sink;
    heft_test_sink_init(&sink, false);
    heft_status st = convert(in, "1.2", o, &sink, err);
    heft_test_sink_free(&sink);
    return st;
}

static bool reflink(heft_sink *s, uint64_t offset, heft_source *from, uint64_t at, uint64_t len)
{
    (void)s, (void)offset, (void)from, (void)at, (void)len;
    return false;
}

static heft_status run_reflink(const input *in, heft_error *err)
{
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    heft_test_sink sink;
    heft_test_sink_init(&sink, false);
    sink.ops.reflink = reflink;
    o.no_verify = true;
    heft_status st = convert(in, "1.2", o, &sink, err);
    heft_test_sink_free(&sink);
    return st;
}

typedef struct blobs {
    heft_blob at[4];
    uint32_t count;
} blobs;

static heft_status open_sink(heft_sink **out, void *ctx, const char *name, heft_error *err)
{
    blobs *b = ctx;
    (void)name;
    assert_true(b->count < HEFT_COUNT(b->at));
    return heft_sink_open_memory(out, &b->at[b->count++], &memory.host, err);
}

/* The target stores equal tensors once, so the split keeps the tensors in the same shard. */
static heft_status run_split(const input *in, heft_error *err)
{
    heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options c = HEFT_CONVERT_OPTIONS_INIT;
    heft_split_options o = HEFT_SPLIT_OPTIONS_INIT;
    blobs b = { .count = 0 };
    w.host = &memory.host;
    w.version = "2";
    c.write = &w;
    o.convert = &c;
    o.count = 1;
    o.open = open_sink;
    o.ctx = &b;
    heft_status st = heft_file_split(in->f, heft_format_find(HEFT_STR("ztensor")), &o, err);
    while (b.count)
        heft_blob_free(&b.at[--b.count]);
    return st;
}

/* ---- edits ---------------------------------------------------------------------------------- */

static heft_status edit(const input *in, heft_edit_options o, heft_error *err)
{
    heft_edit *e;
    o.host = &memory.host;
    heft_status st = heft_edit_plan(&e, in->f, &o, err);
    if (!st)
        heft_edit_close(e);
    return st;
}

static heft_status run_set(const input *in, heft_error *err)
{
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_value v = { .kind = HEFT_KIND_STR, .key = HEFT_STR("k"), .as.s = HEFT_STR("v") };
    o.set = &v;
    o.set_count = 1;
    return edit(in, o, err);
}

static bool train(void *ctx, const heft_tensor *t, heft_identity *id)
{
    (void)ctx, (void)t;
    id->has |= HEFT_HAS_REQUIRES_GRAD;
    id->requires_grad = true;
    return true;
}

static heft_status run_identify(const input *in, heft_error *err)
{
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    o.identify = train;
    return edit(in, o, err);
}

static heft_status run_configure(const input *in, heft_error *err)
{
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    o.config = HEFT_STR("{\"kind\":\"other\",\"config\":{}}");
    return edit(in, o, err);
}

static void reports_each_request_that_fails(void **state)
{
    static const operation operations[] = {
        { "find tied tensors", run_find_tied, plain, false, 0 },
        { "coverage", run_coverage, with_digests, false, 0 },
        { "hash of the model", run_hash_model, plain, false, 0 },
        { "verify a share", run_verify_share, with_digests, false, 0 },
        { "plan shares", run_plan_shares, with_digests, false, 0 },
        { "doctor", run_doctor, truncated, true, 0 },
        { "doctor, wrong index", run_doctor, truncated_and_damaged, true, 0 },
        { "doctor, wrong digest", run_doctor, with_wrong_digest, true, 0 },
        { "doctor, wrong checksum", run_doctor, with_wrong_checksum, true, 0 },
        { "doctor, unfinished download", run_doctor, unfinished, true, 0 },
        { "open in place", run_open_in_place, plain, true, 0 },
        { "open an index", run_open_index, nothing, true, 1 },
        { "join a pipeline", run_join_pipeline, plain, true, 2 },
        { "count losses", run_count_losses, plain, false, 0 },
        { "convert equal tensors", run_convert, with_equal_tensors, false, 0 },
        { "reflink", run_reflink, aligned, false, 0 },
        { "split equal tensors", run_split, with_equal_tensors, false, 0 },
        { "split shared tensors", run_split, with_shared_tensors, false, 0 },
        { "set", run_set, with_digests, false, 0 },
        { "identify", run_identify, checkpoint, false, 0 },
        { "configure", run_configure, checkpoint, false, 0 },
        /* the last: some builds skip the test here */
        { "decode", run_decode, compressed, false, 0 },
    };
    (void)state;
    starve(operations, HEFT_COUNT(operations));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(reports_each_request_that_fails) };
    return cmocka_run_group_tests_name("starved", tests, NULL, NULL);
}
