/* test_lora.c - adapters that are merged and extracted while memory runs out: an error each time,
 * and nothing stays. */
#include <heft/lora.h>

#include "lora/lora_patterns.h"
#include "models.h"

static const test_tensor base_tensors[] = {
    { "model.q.weight", HEFT_F32, 2, { 12, 9 } },
    { "model.q.bias", HEFT_F32, 1, { 12 } },
    { "model.e.weight", HEFT_F32, 2, { 7, 5 } },
};
static const test_tensor adapter_tensors[] = {
    { "lora_unet_other.lora_down.weight", HEFT_F32, 2, { 3, 9 } },
    { "lora_unet_other.lora_up.weight", HEFT_F32, 2, { 12, 3 } },
    { "unet.model.e.lora_A.weight", HEFT_F32, 2, { 2, 5 } },
    { "unet.model.e.lora_B.weight", HEFT_F32, 2, { 7, 2 } },
    { "model.q.bias", HEFT_F32, 1, { 12 } },
};

typedef struct models {
    heft_test_memory memory;
    heft_bytes bytes[2];
    heft_file *files[2];
} models;

static void open_models(models *m, const test_tensor *second, size_t count)
{
    heft_error err;
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_test_memory_init(&m->memory, 0);
    opt.host = &m->memory.host;
    m->bytes[0] = heft_test_model("safetensors", base_tensors,
                                  sizeof base_tensors / sizeof *base_tensors);
    m->bytes[1] = heft_test_model("safetensors", second, count);
    for (int i = 0; i < 2; i++) {
        heft_source *source;
        heft_assert_ok(heft_source_open_memory(&source, m->bytes[i].p, m->bytes[i].len, &err),
                       &err);
        heft_assert_ok(heft_file_open_source(&m->files[i], source, &opt, &err), &err);
    }
}

static void close_models(models *m)
{
    m->memory.fail_at = 0;
    for (int i = 0; i < 2; i++) {
        heft_file_close(m->files[i]);
        heft_test_free(&m->bytes[i]);
    }
    heft_assert_all_freed(&m->memory);
}

/* Read all tensors, into memory of the test. */
static heft_status read_all(const heft_file *f, heft_error *err)
{
    float out[256];
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < heft_tensor_count(f) && !st; i++) {
        heft_part p = heft_part_at(f, heft_tensor_at(f, i).first_part);
        assert_true(p.length <= sizeof out);
        st = heft_part_read(out, f, heft_tensor_at(f, i).first_part, 0, (size_t)p.length, err);
    }
    return st;
}

/* The first tensor has the name "other.weight", too. */
static heft_str other_name(void *ctx, uint32_t tensor)
{
    (void)ctx;
    return tensor ? (heft_str){ NULL, 0 } : heft_str_from("other.weight");
}

static heft_status merge(const models *m, heft_error *err)
{
    heft_lora *l;
    heft_lora_options opt = HEFT_LORA_OPTIONS_INIT;
    heft_lora_adapter a = { .f = m->files[1], .scale = 1 };
    opt.allow_nan = true; /* numbers are random bits */
    opt.other_name = other_name;
    heft_status st = heft_lora_open(&l, m->files[0], &a, 1, &opt, err);
    if (st)
        return st;
    assert_int_equal(heft_lora_count(l), 3);
    st = read_all(heft_lora_file(l), err);
    heft_lora_close(l);
    return st;
}

/* Numbers are random bits, so that matrices may have a NaN. */
static heft_status extract(const models *m, heft_error *err)
{
    heft_extraction *x;
    heft_blob text;
    heft_status st = heft_extraction_open(&x, m->files[0], m->files[1], NULL, err);
    if (st)
        return st;
    st = read_all(heft_extraction_file(x), err);
    if (st == HEFT_E_LOSSY)
        st = HEFT_OK;
    if (!st)
        st = heft_extraction_config(&text, x, err);
    if (!st)
        heft_blob_free(&text);
    heft_extraction_close(x);
    return st;
}

static void fail_each(models *m, heft_status (*call)(const models *m, heft_error *err))
{
    heft_error err;
    heft_status st = HEFT_E_NOMEM;
    uint32_t n = 0;
    for (n = 1; st; n++) {
        heft_test_memory_rewind(&m->memory);
        m->memory.fail_at = n;
        st = call(m, &err);
        assert_true(st == HEFT_OK || st == HEFT_E_NOMEM);
        assert_true(n < 2000);
    }
    assert_true(n > 5);
}

static void merging_without_memory_is_an_error(void **state)
{
    models m;
    (void)state;
    open_models(&m, adapter_tensors, sizeof adapter_tensors / sizeof *adapter_tensors);
    fail_each(&m, merge);
    close_models(&m);
}

static void extracting_without_memory_is_an_error(void **state)
{
    static const test_tensor tuned[] = { { "model.e.weight", HEFT_F32, 2, { 7, 5 } },
                                         { "model.q.weight", HEFT_F32, 2, { 12, 9 } } };
    models m;
    (void)state;
    open_models(&m, tuned, sizeof tuned / sizeof *tuned);
    fail_each(&m, extract);
    close_models(&m);
}

/* ---- patterns ---- */

static void patterns_that_cost_too_much_leave_no_work(void **state)
{
    static const char *const all[] = { "other", "x.*y", "(a|b)c", "m[op]d" };
    heft_test_memory m;
    heft_test_memory_init(&m, 0);
    heft_memory mem = { m.host.allocator, UINT64_MAX, 0 };
    const uint64_t secret[2] = { 1, 2 };
    heft_name_hash key;
    heft_name_hash_init(&key, secret);
    for (uint64_t begun = 1; begun < 1 << 20; begun *= 4) {
        uint64_t work = begun;
        double out = 0;
        heft_lora_patterns p = { .mem = &mem, .key = &key, .work = &work };
        assert_true(heft_lora_patterns_reserve(&p, HEFT_COUNT(all)));
        for (size_t i = 0; i < HEFT_COUNT(all); i++)
            assert_true(heft_lora_patterns_add(&p, heft_test_str(all[i]), (double)i));
        bool found = heft_lora_patterns_find(&out, &p, heft_test_str("a.mod"));
        assert_true(!work || (found && out == 3.0));
        assert_true(work || begun < 1 << 14);
        heft_lora_patterns_free(&p);
    }
    heft_assert_all_freed(&m);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merging_without_memory_is_an_error),
        cmocka_unit_test(extracting_without_memory_is_an_error),
        cmocka_unit_test(patterns_that_cost_too_much_leave_no_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
