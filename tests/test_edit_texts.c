/* test_edit_texts.c - vocabularies, configurations and identities of tensors, changed where they stand. */
#include "models.h"

#include <heft/params.h>
#include <unistd.h>

#include "stopping_disk.h"

/* ---- files, and edits of them --------------------------------------------------------------- */

static const test_tensor tensors[] = { { "a", HEFT_F32, 1, { 2 } },
                                       { "b", HEFT_F32, 2, { 2, 3 } } };
enum { TENSORS = HEFT_COUNT(tensors) };

static heft_vocab *vocab_of(const char *lines)
{
    heft_error err;
    heft_vocab *v;
    heft_assert_ok(heft_vocab_parse_lines(&v, heft_test_str(lines), NULL, &err), &err);
    return v;
}

/* The two tensors in that format; lines NULL: without a vocabulary. */
static heft_bytes model(const char *format, const char *version, const char *lines)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    heft_vocab *v = lines ? vocab_of(lines) : NULL;
    o.write = &write;
    write.version = version;
    o.vocab = v;
    heft_bytes b = heft_test_converted("mag", tensors, TENSORS, format, &o);
    heft_vocab_close(v);
    return b;
}

typedef struct heard { /* what an edit said */
    char rules[256];
    uint32_t warnings, faults;
} heard;

static void hear(void *ctx, heft_severity s, const char *rule, heft_str tensor, const char *text)
{
    heard *h = ctx;
    (void)tensor;
    assert_non_null(text);
    if (s == HEFT_NOTE)
        return;
    h->warnings += s == HEFT_WARNING;
    h->faults += s == HEFT_FAULT;
    if (strlen(h->rules) + strlen(rule) + 2 < sizeof h->rules)
        strcat(strcat(h->rules, rule), " ");
}

/* The edited file; p NULL: it was refused, with *st. */
static heft_bytes edited(heft_bytes old, heft_edit_options *o, heard *h, heft_status *st,
                         heft_error *err)
{
    const heft_edit_extent *p;
    heft_bytes now = { NULL, 0 };
    heft_edit *e;
    heft_file *f;
    *h = (heard){ .warnings = 0 };
    o->on_loss = hear;
    o->loss_ctx = h;
    heft_assert_ok(heft_test_open(&f, old, NULL, err), err);
    *st = heft_edit_plan(&e, f, o, err);
    heft_file_close(f);
    if (*st)
        return now;
    now = (heft_bytes){ calloc(1, (size_t)heft_edit_size(e) + 1), (size_t)heft_edit_size(e) };
    assert_non_null(now.p);
    for (size_t i = 0, n = heft_edit_extents(e, &p); i < n; i++)
        memcpy(now.p + p[i].at, p[i].data ? p[i].data : old.p + p[i].from, (size_t)p[i].length);
    heft_edit_close(e);
    return now;
}

static heft_file *open_flawless(heft_bytes b)
{
    heft_verify_result r;
    heft_file *f;
    heft_error err;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    heft_assert_ok(heft_file_verify(&r, f, NULL, &err), &err);
    assert_int_equal(r.faults + r.warnings, 0);
    return f;
}

static void assert_same_tensors(heft_bytes a, heft_bytes b)
{
    heft_file *x = open_flawless(a), *y = open_flawless(b);
    assert_int_equal(heft_tensor_count(x), heft_tensor_count(y));
    for (uint32_t t = 0; t < heft_tensor_count(x); t++) {
        heft_tensor of_x = heft_tensor_at(x, t), of_y = heft_tensor_at(y, t);
        heft_part part = heft_part_at(x, of_x.first_part);
        assert_memory_equal(of_x.name.ptr, of_y.name.ptr, of_x.name.len);
        assert_memory_equal(heft_part_view(x, of_x.first_part), heft_part_view(y, of_y.first_part),
                            (size_t)part.length);
    }
    heft_file_close(x);
    heft_file_close(y);
}

/* ---- vocabularies --------------------------------------------------------------------------- */

static void assert_vocab(heft_bytes b, const char *lines, const uint32_t special[HEFT_SPECIALS])
{
    heft_vocab *want = vocab_of(lines), *got;
    heft_file *f = open_flawless(b);
    heft_error err;
    heft_assert_ok(heft_vocab_open(&got, f, &err), &err);
    assert_int_equal(heft_vocab_count(got), heft_vocab_count(want));
    for (uint32_t i = 0; i < heft_vocab_count(want); i++) {
        heft_str a = heft_vocab_token(want, i), g = heft_vocab_token(got, i);
        assert_int_equal(a.len, g.len);
        assert_memory_equal(a.ptr, g.ptr, a.len);
    }
    for (int s = 0; s < HEFT_SPECIALS; s++)
        assert_int_equal(heft_vocab_special(got, (heft_special)s), special[s]);
    heft_vocab_close(got);
    heft_vocab_close(want);
    heft_file_close(f);
}

static const char few
    [] = "[PAD]\nthe\n##ing\n",
 some[] = "x\n[UNK]\n[PAD]\n",
 many[] =
     "the\nof\nand\nto\na\nin\nthat\nit\nis\nwas\nI\nfor\non\nyou\nhe\nbe\nwith\nas\nby\nat\nhave\n"
     "are\nthis\nnot\nbut\nhad\nhis\nthey\nfrom\nshe\nwhich\nor\nwe\nan\nthere\nher\nwere\none\n"
     "do\nbeen\nall\ntheir\nhas\nwould\nwill\nwhat\nif\ncan\nwhen\nso\nno\nsaid\nwho\nmore\n[UNK]"
     "\n";

static void a_vocabulary_takes_the_place_of_the_old(void **state)
{
    static const uint32_t of_some[] = { 2, 1, HEFT_NONE, HEFT_NONE, HEFT_NONE };
    static const uint32_t of_many[] = { HEFT_NONE, 54, HEFT_NONE, HEFT_NONE, HEFT_NONE };
    const char *const versions[] = { "1.0", "simple" }, *const before[] = { few, NULL, many };
    (void)state;
    for (size_t i = 0; i < 12; i++) {
        const char *lines = i % 2 ? many : some;
        heft_bytes old = model("embd", versions[i / 6], before[i / 2 % 3]);
        heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
        heft_vocab *v = vocab_of(lines);
        heft_status st;
        heft_error err;
        heard h;
        o.vocab = v;
        heft_bytes now = edited(old, &o, &h, &st, &err);
        heft_assert_ok(st, &err);
        heft_vocab_close(v);
        assert_vocab(now, lines, i % 2 ? of_many : of_some);
        assert_same_tensors(old, now);
        heft_test_free(&old);
        heft_test_free(&now);
    }
}

static void a_vocabulary_may_become_empty(void **state)
{
    static const uint32_t none[] = { HEFT_NONE, HEFT_NONE, HEFT_NONE, HEFT_NONE, HEFT_NONE };
    const char *const versions[] = { "1.0", "simple" };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(versions); i++) {
        heft_bytes old = model("embd", versions[i], few);
        heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
        heft_vocab *v = vocab_of("");
        heft_status st;
        heft_error err;
        heard h;
        o.vocab = v;
        heft_bytes now = edited(old, &o, &h, &st, &err);
        heft_assert_ok(st, &err);
        if (!i)
            assert_vocab(now, "", none);
        assert_same_tensors(old, now);
        heft_vocab_close(v);
        heft_test_free(&old);
        heft_test_free(&now);
    }
}

static void special_ids_are_changed(void **state)
{
    static const heft_special_id ids[] = { { HEFT_CLS, 2 },
                                           { HEFT_PAD, HEFT_NONE },
                                           { HEFT_SEP, 1 } };
    static const uint32_t of_few[] = { HEFT_NONE, HEFT_NONE, 2, 1, HEFT_NONE };
    static const uint32_t of_some[] = { HEFT_NONE, 1, 2, 1, HEFT_NONE };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        heft_bytes old = model("embd", NULL, few);
        heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
        heft_vocab *v = i ? vocab_of(some) : NULL;
        heft_status st;
        heft_error err;
        heard h;
        o.vocab = v;
        o.special = ids;
        o.special_count = HEFT_COUNT(ids);
        heft_bytes now = edited(old, &o, &h, &st, &err);
        heft_assert_ok(st, &err);
        assert_vocab(now, i ? some : few, i ? of_some : of_few);
        if (v)
            assert_int_equal(heft_vocab_special(v, HEFT_PAD), 2); /* the caller's is as it was */
        if (!i)
            assert_int_equal(now.len, old.len);
        heft_vocab_close(v);
        heft_test_free(&old);
        heft_test_free(&now);
    }
}

static heft_status refusal_of(heft_bytes old, heft_edit_options *o, heard *h, heft_error *err)
{
    heft_status st;
    heft_bytes now = edited(old, o, h, &st, err);
    heft_test_free(&now);
    heft_test_free(&old);
    return st;
}

static void vocabularies_that_cannot_be_are_refused(void **state)
{
    heft_special_id id = { HEFT_PAD, 3 }, other = { (heft_special)HEFT_SPECIALS, 0 };
    heft_special_id moved = { HEFT_PAD, 1 };
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_error err;
    heard h;
    (void)state;
    o.special = &id;
    o.special_count = 1;
    heft_assert_fails(refusal_of(model("embd", NULL, few), &o, &h, &err), HEFT_E_ARGUMENT, &err,
                      "3 tokens");
    heft_assert_fails(refusal_of(model("embd", NULL, NULL), &o, &h, &err), HEFT_E_NOTFOUND, &err,
                      "no vocabulary");
    o.special = &other;
    heft_assert_fails(refusal_of(model("embd", NULL, few), &o, &h, &err), HEFT_E_ARGUMENT, &err,
                      "no special token 5");
    o.special = &moved;
    heft_assert_status(refusal_of(model("embd", "simple", few), &o, &h, &err), HEFT_E_LOSSY, &err);
    assert_string_equal(h.rules, "embd/special ");
    o.special_count = 0;
    heft_vocab *v = vocab_of(few);
    o.vocab = v;
    heft_assert_fails(refusal_of(model("mag", NULL, NULL), &o, &h, &err), HEFT_E_UNSUPPORTED, &err,
                      "cannot store a vocabulary");
    heft_assert_fails(refusal_of(model("gguf", NULL, NULL), &o, &h, &err), HEFT_E_UNSUPPORTED, &err,
                      "heft convert --vocab");
    heft_vocab_close(v);
    char *token = calloc(1, 65537);
    assert_non_null(token);
    memset(token, 't', 65536);
    o.vocab = v = vocab_of(token);
    heft_assert_status(refusal_of(model("embd", NULL, few), &o, &h, &err), HEFT_E_LOSSY, &err);
    assert_string_equal(h.rules, "embd/vocab ");
    heft_vocab_close(v);
    free(token);
}

/* ---- whole or not at all -------------------------------------------------------------------- */

typedef struct task {
    const char *path;
    const heft_vocab *vocab;
} task;

static heft_status give_vocab(void *ctx)
{
    const task *t = ctx;
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_test_host host;
    heft_error err;
    heft_test_host_init(&host, 1);
    o.host = &host.host;
    o.vocab = t->vocab;
    return heft_edit_file_on(&heft_stopping_disk, NULL, t->path, &o, &err);
}

static bool file_is(const char *path, heft_bytes want)
{
    heft_bytes b = heft_test_load(path);
    bool same = b.len == want.len && !memcmp(b.p, want.p, b.len);
    heft_test_free(&b);
    return same;
}

static void a_killed_edit_leaves_one_of_two_vocabularies(void **state)
{
    const char *path = heft_test_path(*state, "model");
    for (size_t i = 0; i < 2; i++) {
        heft_vocab *v = vocab_of(i ? many : some);
        task t = { path, v };
        heft_bytes old = model("embd", NULL, few);
        bool killed = true, undone;
        heft_error err;
        heft_test_save(path, old.p, old.len);
        memset(&heft_stop, 0, sizeof heft_stop);
        assert_int_equal(give_vocab(&t), HEFT_OK);
        heft_bytes new = heft_test_load(path);
        for (unsigned n = 1; killed; n++) {
            heft_test_save(path, old.p, old.len);
            memset(&heft_stop, 0, sizeof heft_stop);
            killed = heft_test_is_killed(HEFT_KILLED, n, give_vocab, &t);
            memset(&heft_stop, 0, sizeof heft_stop);
            heft_assert_ok(heft_edit_recover(&undone, path, &err), &err);
            assert_true(file_is(path, old) || file_is(path, new));
        }
        assert_true(file_is(path, new));
        heft_vocab_close(v);
        heft_test_free(&old);
        heft_test_free(&new);
        unlink(path);
    }
}

static void memory_that_runs_out_is_told(void **state)
{
    heft_bytes embd = model("embd", NULL, few), gptrs = model("gptrs-checkpoint", NULL, NULL);
    heft_vocab *v = vocab_of(some);
    heft_special_id id = { HEFT_CLS, 0 };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        heft_status st = HEFT_E_NOMEM;
        for (uint32_t n = 1; st; n++) {
            heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
            heft_test_memory m;
            heft_edit *e = NULL;
            heft_file *f;
            heft_error err;
            heft_test_memory_init(&m, n);
            o.host = &m.host;
            if (i) {
                o.config = heft_test_str("{\"kind\": \"k\"}");
            } else {
                o.vocab = v;
                o.special = &id;
                o.special_count = 1;
            }
            heft_assert_ok(heft_test_open(&f, i ? gptrs : embd, NULL, &err), &err);
            st = heft_edit_plan(&e, f, &o, &err);
            if (st)
                heft_assert_status(st, HEFT_E_NOMEM, &err);
            heft_edit_close(e);
            heft_file_close(f);
            heft_assert_all_freed(&m);
        }
    }
    heft_vocab_close(v);
    heft_test_free(&embd);
    heft_test_free(&gptrs);
}

/* ---- configurations ------------------------------------------------------------------------- */

#define BARE                                                                           \
    "{\"vocab_size\": 8, \"context_length\": 4, \"embed_dim\": 2, \"num_layers\": 1, " \
    "\"num_heads\": 1, \"mlp_ratio\": 4, \"dropout\": 0.5}"
#define WRAPPED "{\"kind\":\"gpt\",\"config\":" BARE "}"

static void assert_config(heft_bytes b, const char *want)
{
    heft_file *f = open_flawless(b);
    uint32_t part = heft_part_find(f, HEFT_NONE, HEFT_STR("config"));
    assert_int_not_equal(part, HEFT_NONE);
    assert_int_equal(heft_part_at(f, part).length, strlen(want));
    assert_memory_equal(heft_part_view(f, part), want, strlen(want));
    heft_file_close(f);
}

static void a_configuration_takes_the_place_of_the_old(void **state)
{
    static const struct {
        const char *config, *want;
        uint32_t warnings;
    } rows[] = {
        { "{\"kind\":\"k\"}", "{\"kind\":\"k\"}", 0 },
        { " {\"later\": [1.50], \"kind\": \"k\"}\n", " {\"later\": [1.50], \"kind\": \"k\"}\n", 0 },
        { WRAPPED, WRAPPED, 0 },
        { BARE, WRAPPED, 1 },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_bytes old = model("gptrs-checkpoint", NULL, NULL);
        heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
        heft_status st;
        heft_error err;
        heard h;
        o.config = heft_test_str(rows[i].config);
        heft_bytes now = edited(old, &o, &h, &st, &err);
        heft_assert_ok(st, &err);
        assert_int_equal(h.warnings, rows[i].warnings);
        assert_config(now, rows[i].want);
        assert_same_tensors(old, now);
        heft_test_free(&old);
        heft_test_free(&now);
    }
}

static void configurations_that_cannot_be_are_refused(void **state)
{
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_error err;
    heard h;
    (void)state;
    const char *const broken[] = {
        "", "{", "[]", "{\"kind\": 1}", "{}", "{\"kind\": \"k\"} x", "{\"kind\": \"\xff\"}"
    };
    for (size_t i = 0; i < HEFT_COUNT(broken); i++) {
        o.config = heft_test_str(broken[i]);
        heft_assert_fails(refusal_of(model("gptrs-checkpoint", NULL, NULL), &o, &h, &err),
                          HEFT_E_ARGUMENT, &err, "config");
    }
    o.config = heft_test_str("{\"kind\": \"k\"}");
    heft_assert_status(refusal_of(model("gptrs-archive", NULL, NULL), &o, &h, &err), HEFT_E_LOSSY,
                       &err);
    heft_assert_status(refusal_of(model("mag", NULL, NULL), &o, &h, &err), HEFT_E_LOSSY, &err);
}

/* ---- identities ----------------------------------------------------------------------------- */

static bool train_a_without_ids(void *ctx, const heft_tensor *t, heft_identity *id)
{
    (void)ctx;
    id->has |= HEFT_HAS_REQUIRES_GRAD | HEFT_HAS_BASE_ID;
    id->requires_grad = t->name.ptr[0] == 'a';
    memset(&id->base_id, 0, sizeof id->base_id);
    return true;
}

static void assert_trained_without_ids(heft_bytes b)
{
    heft_file *f = open_flawless(b);
    for (uint32_t t = 0; t < TENSORS; t++) {
        heft_value v;
        bool is_trained = false;
        for (uint32_t i = 0; heft_attribute_at(&v, f, t, i); i++) {
            assert_false(v.key.len == 13 && !memcmp(v.key.ptr, "gptrs.base_id", 13));
            is_trained = is_trained || (v.kind == HEFT_KIND_BOOL && v.as.b);
        }
        assert_int_equal(is_trained, heft_tensor_at(f, t).name.ptr[0] == 'a');
    }
    heft_file_close(f);
}

static void identities_of_gpt_rs_are_changed_by_an_edit(void **state)
{
    const char *const formats[] = { "gptrs-checkpoint", "gptrs-archive" };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(formats); i++) {
        heft_bytes old = model(formats[i], NULL, NULL);
        heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
        heft_status st;
        heft_error err;
        heard h;
        o.identify = train_a_without_ids;
        heft_bytes now = edited(old, &o, &h, &st, &err);
        heft_assert_ok(st, &err);
        assert_int_equal(now.len, old.len);
        assert_trained_without_ids(now);
        assert_same_tensors(old, now);
        heft_test_free(&old);
        heft_test_free(&now);
    }
}

/* Name or id is damaged, and afterwards nobody could tell. */
static void a_wrong_base_id_is_not_taken_away(void **state)
{
    heft_bytes old = model("gptrs-checkpoint", NULL, NULL);
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_id128 id;
    heft_error err;
    heard h;
    (void)state;
    assert_true(heft_param_base_id(&id, HEFT_STR("b")));
    uint8_t *at = memmem(old.p, old.len, id.bytes, sizeof id.bytes);
    assert_non_null(at);
    *at ^= 1;
    o.identify = train_a_without_ids;
    heft_assert_fails(refusal_of(old, &o, &h, &err), HEFT_E_CHECKSUM, &err, "tensor 'b'");
}

static void identities_of_gpt_rs_are_changed_by_a_conversion(void **state)
{
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    (void)state;
    o.identify = train_a_without_ids;
    heft_bytes b = heft_test_converted("mag", tensors, TENSORS, "gptrs-checkpoint", &o);
    assert_trained_without_ids(b);
    heft_test_free(&b);
}

#define in_dir(test) cmocka_unit_test_setup_teardown(test, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_vocabulary_takes_the_place_of_the_old),
        cmocka_unit_test(a_vocabulary_may_become_empty),
        cmocka_unit_test(special_ids_are_changed),
        cmocka_unit_test(vocabularies_that_cannot_be_are_refused),
        in_dir(a_killed_edit_leaves_one_of_two_vocabularies),
        cmocka_unit_test(memory_that_runs_out_is_told),
        cmocka_unit_test(a_configuration_takes_the_place_of_the_old),
        cmocka_unit_test(configurations_that_cannot_be_are_refused),
        cmocka_unit_test(identities_of_gpt_rs_are_changed_by_an_edit),
        cmocka_unit_test(a_wrong_base_id_is_not_taken_away),
        cmocka_unit_test(identities_of_gpt_rs_are_changed_by_a_conversion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
