/* test_plan_memory.c - memory that runs out while a conversion is planned: each request to an arena
 * fails once. */
#include "failing_arena.h"
#include "models.h"
#include "samples.h"

/* ---- conversions that differ ----------------------------------------------------------------- */

typedef struct conversion {
    const heft_file *in;
    const heft_format *to;
    const char *version;
    bool allow_loss;
} conversion;

/* Hashes of the losses of a plan, without names and numbers. */
typedef struct losses {
    uint64_t hash[16];
    uint32_t count;
    uint64_t target; /* hash of format and version */
} losses;

static uint64_t add_text(uint64_t hash, const char *s)
{
    bool quoted = false;
    for (; *s; s++) {
        quoted = quoted != (*s == '\'' || *s == '"');
        if (!quoted && (*s < '0' || *s > '9'))
            hash = (hash ^ (uint8_t)*s) * 0x100000001B3u;
    }
    return (hash ^ 0xFF) * 0x100000001B3u;
}

static void note_loss(void *ctx, heft_severity s, const char *rule, heft_str tensor,
                      const char *text)
{
    losses *l = ctx;
    uint64_t hash = add_text(add_text(l->target ^ (uint64_t)s, rule), text);
    (void)tensor;
    bool is_known = l->count == HEFT_COUNT(l->hash);
    for (uint32_t i = 0; i < l->count; i++)
        is_known = is_known || l->hash[i] == hash;
    if (!is_known)
        l->hash[l->count++] = hash;
}

static heft_status plan(const conversion *c, losses *l, heft_error *err)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    *l = (losses){ .target = add_text(add_text(0, heft_format_name(c->to)),
                                      c->version ? c->version : "") };
    l->target += c->allow_loss;
    write.version = c->version;
    write.allow_loss = c->allow_loss;
    write.on_loss = note_loss;
    write.ctx = l;
    o.write = &write;
    o.no_verify = true;
    o.dry_run = true;
    arena_calls = 0;
    heft_test_poison(err);
    heft_status st = heft_file_convert(c->in, c->to, NULL, &o, err);
    heft_assert_error_set(st, err);
    return st;
}

/* Each request of the plan fails in turn. */
static void starve(const conversion *c, heft_status expected)
{
    heft_error err;
    losses ignored;
    for (uint32_t n = 1;; n++) {
        arena_fails_at = n;
        heft_status st = plan(c, &ignored, &err);
        arena_fails_at = 0;
        if (arena_calls < n) {
            heft_assert_status(st, expected, &err);
            return;
        }
        heft_assert_status(st, HEFT_E_NOMEM, &err);
    }
}

static uint64_t seen[1 << 16];

static bool is_new(uint64_t hash)
{
    size_t i = hash % HEFT_COUNT(seen);
    while (seen[i] && seen[i] != hash)
        i = (i + 1) % HEFT_COUNT(seen);
    bool is_free = !seen[i];
    seen[i] = hash;
    return is_free;
}

/* Starve a plan that reports a loss, or makes a number of requests, that no plan before did. */
static void starve_if_new(const conversion *c)
{
    enum { FEW = 40 };
    heft_error err;
    losses l;
    heft_status st = plan(c, &l, &err);
    uint32_t few = arena_calls < FEW ? arena_calls : FEW;
    bool starves = is_new((l.target ^ few) * 0x100000001B3u);
    for (uint32_t i = 0; i < l.count; i++)
        starves = is_new(l.hash[i]) || starves;
    if (starves)
        starve(c, st);
}

/* Plan the file in each version of each format. */
static void starve_each_target(conversion c)
{
    for (uint32_t i = 0; heft_format_at(i); i++) {
        char versions[100];
        c.to = heft_format_at(i);
        if (!(heft_format_caps(c.to) & HEFT_CAN_WRITE))
            continue;
        snprintf(versions, sizeof versions, "%s", heft_format_versions(c.to));
        for (char *rest = versions; (c.version = strtok_r(rest, " ", &rest));)
            for (int k = 0; k < 2; k++) {
                c.allow_loss = k;
                starve_if_new(&c);
            }
    }
}

static void samples_are_planned_or_memory_is_reported(void **state)
{
    samples s = heft_test_samples();
    const size_t step = 4 / heft_test_fewer(4);
    (void)state;
    for (size_t i = 0; i < s.count; i += step) {
        heft_file *f;
        heft_error err;
        if (s.at[i].kind == SAMPLE_REAL || heft_test_open(&f, s.at[i].in.bytes, NULL, &err))
            continue;
        starve_each_target((conversion){ .in = f });
        heft_file_close(f);
    }
    heft_test_samples_free(&s);
}

/* The second tensor would begin at an odd offset, so safetensors changes the order. */
static void a_new_order_is_planned_or_memory_is_reported(void **state)
{
    static const test_tensor tensors[] = { { "a", HEFT_U8, 1, { 3 } },
                                           { "b", HEFT_F32, 1, { 2 } } };
    heft_bytes b = heft_test_model("ztensor", tensors, HEFT_COUNT(tensors));
    heft_file *f = heft_test_opened(b, NULL, false);
    conversion c = { .in = f, .to = heft_format_find(HEFT_STR("safetensors")) };
    (void)state;
    starve(&c, HEFT_OK);
    heft_file_close(f);
    heft_test_free(&b);
}

/* ---- models that no sample contains ---------------------------------------------------------- */

typedef struct model { /* a tensor and a value */
    const char *format, *version, *layout, *stored_type;
    heft_dtype dtype;
    uint32_t rank;
    heft_component part; /* no role: the part of a dense tensor */
    heft_value value;
    heft_status st;
    const char *rule;
} model;

static void note_rule(void *ctx, heft_severity s, const char *rule, heft_str tensor,
                      const char *text)
{
    const char **expected = ctx;
    (void)s, (void)tensor;
    assert_non_null(text);
    if (*expected && !strcmp(rule, *expected))
        *expected = NULL;
}

/* Plan the model with a writer; *rule becomes NULL if the rule is reported. */
static heft_status plan_model(const model *m, const char **rule, heft_error *err)
{
    uint64_t dims[64];
    uint32_t part;
    heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
    heft_tensor_spec t = HEFT_TENSOR_SPEC_INIT;
    heft_test_sink sink;
    heft_writer *w;
    for (uint32_t i = 0; i < m->rank; i++)
        dims[i] = 1;
    opt.version = m->version;
    opt.on_loss = note_rule;
    opt.ctx = rule;
    t.name = HEFT_STR("t");
    t.dtype = m->dtype;
    t.rank = m->rank;
    t.dims = dims;
    t.layout = heft_test_str(m->layout ? m->layout : "");
    t.stored_type = heft_test_str(m->stored_type ? m->stored_type : "");
    t.components = m->part.role.len ? &m->part : NULL;
    t.component_count = m->part.role.len != 0;
    heft_test_poison(err);
    arena_calls = 0;
    heft_status st = heft_writer_open(&w, heft_format_find(heft_str_from(m->format)),
                                      heft_test_sink_init(&sink, false), &opt, err);
    if (!st) {
        if (m->value.kind)
            st = heft_writer_add_meta(w, m->value, err);
        if (!st)
            st = heft_writer_add_tensor(&part, w, &t, err);
        if (!st)
            st = heft_writer_begin(w, err);
        heft_writer_discard(w);
    }
    heft_test_sink_free(&sink);
    return st;
}

static void models_are_planned_or_memory_is_reported(void **state)
{
    static char long_key[65536];
    const heft_value number = { .kind = HEFT_KIND_FLOAT, .key = HEFT_STR("split.count") };
    const heft_value long_value = { .kind = HEFT_KIND_INT, .key = { long_key, sizeof long_key } };
    const heft_component data = { .role = HEFT_STR("data"), .dtype = HEFT_U8, .count = 1 };
    heft_component floats = data, bytes = data;
    floats.dtype = HEFT_F32;
    bytes.dtype = HEFT_UNTYPED;
    const model rows[] = {
        { .format = "burnpack",
          .dtype = HEFT_F32,
          .stored_type = "F128",
          .st = HEFT_E_LOSSY,
          .rule = "burnpack/stored-dtype" },
        { .format = "npz", .dtype = HEFT_F32, .rank = 33, .rule = "npy/rank" },
        { .format = "gguf", .dtype = HEFT_F32, .value = number, .rule = "gguf/metadata" },
        { .format = "embd",
          .dtype = HEFT_F32,
          .value = long_value,
          .st = HEFT_E_LOSSY,
          .rule = "embd/metadata-length" },
        { .format = "ztensor",
          .version = "2",
          .layout = "own",
          .part = floats,
          .rule = "ztensor/part-dtype" },
        { .format = "ztensor",
          .version = "1.0",
          .layout = "own",
          .dtype = HEFT_Q4_0,
          .part = data,
          .st = HEFT_E_LOSSY,
          .rule = "ztensor/dtype" },
        { .format = "ztensor",
          .version = "1.2",
          .layout = "own",
          .dtype = HEFT_Q4_0,
          .part = bytes,
          .st = HEFT_E_LOSSY,
          .rule = "ztensor/dtype" },
    };
    (void)state;
    memset(long_key, 'k', sizeof long_key);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        bool needs_xxh3 = rows[i].version && !strcmp(rows[i].version, "2");
        for (uint32_t n = 0; !needs_xxh3 || !heft_test_lacks_libraries(); n++) {
            heft_error err;
            const char *rule = rows[i].rule;
            arena_fails_at = n;
            heft_status st = plan_model(&rows[i], &rule, &err);
            arena_fails_at = 0;
            heft_assert_error_set(st, &err);
            bool is_reached = n && arena_calls >= n;
            heft_assert_status(st, is_reached ? HEFT_E_NOMEM : rows[i].st, &err);
            if (!is_reached && rule)
                fail_msg("%s was not reported: %s", rule, st ? err.message : "");
            if (n && !is_reached)
                break;
        }
    }
}

/* ---- models in several files ----------------------------------------------------------------- */

typedef struct files {
    heft_blob blobs[4];
    uint32_t count;
} files;

static heft_status open_file(heft_sink **out, void *ctx, const char *name, heft_error *err)
{
    files *f = ctx;
    (void)name;
    assert_true(f->count < HEFT_COUNT(f->blobs));
    return heft_sink_open_memory(out, &f->blobs[f->count++], NULL, err);
}

static void shards_are_planned_or_memory_is_reported(void **state)
{
    static const test_tensor tensors[] = { { "a", HEFT_F32, 1, { 3 } },
                                           { "b", HEFT_F32, 1, { 2 } } };
    heft_bytes b = heft_test_model("safetensors", tensors, HEFT_COUNT(tensors));
    heft_file *in = heft_test_opened(b, NULL, false);
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
    bool is_reached = !heft_test_lacks_libraries();
    (void)state;
    write.version = "2";
    convert.write = &write;
    for (uint32_t n = 1; is_reached; n++) {
        files f = { .count = 0 };
        heft_split_options opt = HEFT_SPLIT_OPTIONS_INIT;
        heft_error err;
        opt.convert = &convert;
        opt.count = 2;
        opt.open = open_file;
        opt.ctx = &f;
        arena_calls = 0;
        arena_fails_at = n;
        heft_status st = heft_file_split(in, heft_format_find(HEFT_STR("ztensor")), &opt, &err);
        arena_fails_at = 0;
        is_reached = arena_calls >= n;
        heft_assert_status(st, is_reached ? HEFT_E_NOMEM : HEFT_OK, &err);
        assert_int_equal(st || f.count == 3, true); /* two shards and the manifest */
        for (uint32_t i = 0; i < f.count; i++)
            heft_blob_free(&f.blobs[i]);
    }
    heft_file_close(in);
    heft_test_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_order_is_planned_or_memory_is_reported),
        cmocka_unit_test(models_are_planned_or_memory_is_reported),
        cmocka_unit_test(shards_are_planned_or_memory_is_reported),
        cmocka_unit_test(samples_are_planned_or_memory_is_reported),
    };
    return cmocka_run_group_tests_name("plan_memory", tests, NULL, NULL);
}
