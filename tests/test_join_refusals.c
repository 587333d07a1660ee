/* test_join_refusals.c - refusals of functions that join files to a model. No file and no caller
 * of the public functions provokes the refusals alone: the open file is changed for the test, or a
 * function of the library is called directly. */
#include "core/shards/shard_join.h"
#include "limited_host.h"

/* ---- numbers of files and values beyond 32 bits ---------------------------------------------- */

static void a_joined_model_has_at_most_2_to_32_files(void **state)
{
    heft_bytes b;
    heft_error err;
    heft_file *joined;
    (void)state;
    begin();
    heft_file *f = opened("safetensors", &b);
    const heft_file *const files[] = { f };
    for (uint32_t more = 0; more < 2; more++) {
        huge_requests = 0;
        f->opened_shard_count = UINT32_MAX - 1 + more;
        heft_assert_fails(heft_file_join(&joined, files, 1, NULL, &err), HEFT_E_NOMEM, &err,
                          "to join the files of a model");
        assert_null(joined);
        assert_int_equal(huge_requests, !more);
    }
    f->opened_shard_count = 0;
    close_all(f, &b);
}

/* The files of a pipeline are closed after a failure. */
static heft_file *with_shards_until_closed;
void __real_heft_file_close(heft_file *f);
void __wrap_heft_file_close(heft_file *f);

void __wrap_heft_file_close(heft_file *f)
{
    if (f && f == with_shards_until_closed)
        f->opened_shard_count = 0;
    __real_heft_file_close(f);
}

static void a_pipeline_has_at_most_2_to_32_files(void **state)
{
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    heft_limits limits = { .size = sizeof limits, .memory = UINT64_MAX };
    heft_bytes b;
    heft_error err;
    heft_file *joined;
    (void)state;
    begin();
    o.host = &host;
    o.limits = &limits;
    for (uint32_t more = 0; more < 2; more++) {
        huge_requests = 0;
        heft_pipeline_file one = { HEFT_STR("unet"), opened("safetensors", &b), NULL };
        with_shards_until_closed = one.file;
        one.file->opened_shard_count = UINT32_MAX - 1 + more;
        heft_assert_fails(
            heft_file_join_pipeline(&joined, source_of("{}", 2), "i", &one, 1, &o, &err),
            HEFT_E_NOMEM, &err, "");
        assert_null(joined);
        assert_null(one.file);
        assert_int_equal(huge_requests, !more);
        with_shards_until_closed = NULL;
        close_all(NULL, &b);
    }
}

static void joined_metadata_have_at_most_2_to_30_values(void **state)
{
    heft_bytes b;
    heft_error err;
    heft_file *joined;
    (void)state;
    begin();
    heft_file *f = opened("safetensors", &b);
    const heft_file *const files[] = { f };
    uint32_t values = f->x.values.len;
    for (uint32_t more = 0; more < 2; more++) {
        huge_requests = 0;
        f->x.values.len = UINT32_MAX / 4 + more;
        heft_assert_fails(heft_file_join(&joined, files, 1, NULL, &err), HEFT_E_NOMEM, &err, "");
        assert_int_equal(huge_requests, HAS_64_BITS && !more);
    }
    f->x.values.len = values;
    close_all(f, &b);
}

/* ---- files that cannot be joined ------------------------------------------------------------- */

/* Joined files are open, and read from a source. */
static void files_to_join_are_open_and_have_a_source(void **state)
{
    (void)state;
    for (int has_source = 0; has_source < 2; has_source++) {
        heft_bytes b = heft_test_one("mag", 100);
        heft_error err;
        heft_file *joined;
        begin();
        heft_file *f = begun(b);
        const heft_file *const files[] = { f };
        heft_pipeline_file one = { HEFT_STR("unet"), f, NULL };
        if (has_source) {
            heft_assert_ok(heft_file_set_source(f, source_of(b.p, b.len), &err), &err);
        } else {
            heft_assert_ok(heft_file_feed(f, 0, b.p, b.len, &err), &err);
            heft_assert_ok(heft_file_step(f, &err), &err);
        }
        heft_assert_fails(heft_file_join(&joined, files, 1, NULL, &err), HEFT_E_ARGUMENT, &err,
                          "a file to be joined has no source");
        heft_assert_fails(
            heft_file_join_pipeline(&joined, source_of("{}", 2), "i", &one, 1, NULL, &err),
            HEFT_E_ARGUMENT, &err, "component 'unet' has no source");
        assert_null(one.file);
        close_all(NULL, &b);
    }
}

/* ---- shards ---------------------------------------------------------------------------------- */

enum { MAX_SHARDS = 4096 };

static heft_status open_no_shard(heft_source **out, void *ctx, const char *name, heft_error *err)
{
    (void)name;
    *out = NULL;
    ++*(uint32_t *)ctx;
    *err = (heft_error){ .status = HEFT_E_NOTFOUND, .message = "does not exist" };
    return HEFT_E_NOTFOUND;
}

/* Only the formats that number shards in the file can have more than an index lists. */
static void at_most_4096_shards_are_opened(void **state)
{
    uint32_t opens = 0, number;
    heft_shard_folder folder = {
        .size = sizeof folder, .name = "m.gguf", .open = open_no_shard, .ctx = &opens
    };
    heft_ix_shard shard = { HEFT_STR("shard"), NULL, HEFT_UNKNOWN_LENGTH, true, NULL };
    heft_bytes b;
    heft_error err;
    (void)state;
    begin();
    heft_file *f = opened("mag", &b);
    f->shards = &folder;
    for (int i = 0; i <= MAX_SHARDS; i++)
        heft_assert_ok(heft_ix_shard_add(&f->x, shard, &number), &err);
    heft_assert_ok(heft_shards_open(f, &err), &err);
    assert_int_equal(opens, MAX_SHARDS);
    assert_non_null(strstr(f->opened_shards[MAX_SHARDS - 1].error->message, "does not exist"));
    assert_non_null(strstr(f->opened_shards[MAX_SHARDS].error->message,
                           "shard 'shard' exceeds the limit of 4096 shards"));
    assert_int_equal(heft_shard_file_at(f, MAX_SHARDS).status, HEFT_E_IO);
    close_all(f, &b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_joined_model_has_at_most_2_to_32_files),
        cmocka_unit_test(a_pipeline_has_at_most_2_to_32_files),
        cmocka_unit_test(joined_metadata_have_at_most_2_to_30_values),
        cmocka_unit_test(files_to_join_are_open_and_have_a_source),
        cmocka_unit_test(at_most_4096_shards_are_opened),
    };
    return cmocka_run_group_tests_name("join_refusals", tests, NULL, NULL);
}
