/* test_edit_texts.c - edits of vocabularies, configurations and tensor identities in place. */
#include "models.h"

#include <heft/params.h>
#include <unistd.h>

#include "stopping_disk.h"

/* ---- files and edits ------------------------------------------------------------------------ */

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

/* Return the two tensors as a file of the format; without a vocabulary if lines is NULL. */
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

typedef struct losses { /* rules, separated by spaces, and counts of the reported losses */
    char rules[256];
    uint32_t warnings, faults;
} losses;

static void record_loss(void *ctx, heft_severity s, const char *rule, heft_str tensor,
                        const char *text)
{
    losses *l = ctx;
    (void)tensor;
    assert_non_null(text);
    if (s == HEFT_NOTE)
        return;
    l->warnings += s == HEFT_WARNING;
    l->faults += s == HEFT_FAULT;
    if (strlen(l->rules) + strlen(rule) + 2 < sizeof l->rules)
        strcat(strcat(l->rules, rule), " ");
}

/* Return the edited file, or NULL bytes and *st if the edit was refused. */
static heft_bytes edited(heft_bytes old, heft_edit_options *o, losses *l, heft_status *st,
                         heft_error *err)
{
    const heft_edit_extent *p;
    heft_bytes now = { NULL, 0 };
    heft_edit *e;
    heft_file *f;
    *l = (losses){ .warnings = 0 };
    o->on_loss = record_loss;
    o->ctx = l;
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
        heft_str a = heft_vocab_at(want, i), g = heft_vocab_at(got, i);
        assert_int_equal(a.len, g.len);
        assert_memory_equal(a.ptr, g.ptr, a.len);
    }
    for (int s = 0; s < HEFT_SPECIALS; s++)
        assert_int_equal(heft_vocab_special(got, (heft_special)s), special[s]);
    heft_vocab_close(got);
    heft_vocab_close(want);
    heft_file_close(f);
}

static const char three_pieces[] = "[PAD]\nthe\n##ing\n";
static const char three_tokens[] = "x\n[UNK]\n[PAD]\n";
static const char many_tokens[] =
    "the\nof\nand\nto\na\nin\nthat\nit\nis\nwas\nI\nfor\non\nyou\nhe\nbe\nwith\nas\nby\nat\n"
    "have\nare\nthis\nnot\nbut\nhad\nhis\nthey\nfrom\nshe\nwhich\nor\nwe\nan\nthere\nher\n"
    "were\none\ndo\nbeen\nall\ntheir\nhas\nwould\nwill\nwhat\nif\ncan\nwhen\nso\nno\nsaid\n"
    "who\nmore\n[UNK]\n";

static void replaces_a_vocabulary(void **state)
{
    static const uint32_t special_of_tokens[] = { 2, 1, HEFT_NONE, HEFT_NONE, HEFT_NONE };
    static const uint32_t special_of_many[] = { HEFT_NONE, 54, HEFT_NONE, HEFT_NONE, HEFT_NONE };
    const char *const versions[] = { "1.0", "simple" }, *const old_lines[] = { three_pieces, NULL,
                                                                               many_tokens };
    (void)state;
    for (size_t i = 0; i < 12; i++) {
        const char *lines = i % 2 ? many_tokens : three_tokens;
        heft_bytes old = model("embd", versions[i / 6], old_lines[i / 2 % 3]);
        heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
        heft_vocab *v = vocab_of(lines);
        heft_status st;
        heft_error err;
        losses l;
        o.vocab = v;
        heft_bytes now = edited(old, &o, &l, &st, &err);
        heft_assert_ok(st, &err);
        heft_vocab_close(v);
        assert_vocab(now, lines, i % 2 ? special_of_many : special_of_tokens);
        assert_same_tensors(old, now);
        heft_test_free(&old);
        heft_test_free(&now);
    }
}

static void replaces_a_vocabulary_by_an_empty_vocabulary(void **state)
{
    static const uint32_t none[] = { HEFT_NONE, HEFT_NONE, HEFT_NONE, HEFT_NONE, HEFT_NONE };
    const char *const versions[] = { "1.0", "simple" };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(versions); i++) {
        heft_bytes old = model("embd", versions[i], three_pieces);
        heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
        heft_vocab *v = vocab_of("");
        heft_status st;
        heft_error err;
        losses l;
        o.vocab = v;
        heft_bytes now = edited(old, &o, &l, &st, &err);
        heft_assert_ok(st, &err);
        if (!i)
            assert_vocab(now, "", none);
        assert_same_tensors(old, now);
        heft_vocab_close(v);
        heft_test_free(&old);
        heft_test_free(&now);
    }
}

static void changes_special_token_ids(void **state)
{
    static const heft_special_id ids[] = { { HEFT_CLS, 2 },
                                           { HEFT_PAD, HEFT_NONE },
                                           { HEFT_SEP, 1 } };
    static const uint32_t special_of_pieces[] = { HEFT_NONE, HEFT_NONE, 2, 1, HEFT_NONE };
    static const uint32_t special_of_tokens[] = { HEFT_NONE, 1, 2, 1, HEFT_NONE };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        heft_bytes old = model("embd", NULL, three_pieces);
        heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
        heft_vocab *v = i ? vocab_of(three_tokens) : NULL;
        heft_status st;
        heft_error err;
        losses l;
        o.vocab = v;
        o.special = ids;
        o.special_count = HEFT_COUNT(ids);
        heft_bytes now = edited(old, &o, &l, &st, &err);
        heft_assert_ok(st, &err);
        assert_vocab(now, i ? three_tokens : three_pieces,
                     i ? special_of_tokens : special_of_pieces);
        if (v) /* the caller's vocabulary is unchanged */
            assert_int_equal(heft_vocab_special(v, HEFT_PAD), 2);
        if (!i)
            assert_int_equal(now.len, old.len);
        heft_vocab_close(v);
        heft_test_free(&old);
        heft_test_free(&now);
    }
}

static heft_status refusal_of(heft_bytes old, heft_edit_options *o, losses *l, heft_error *err)
{
    heft_status st;
    heft_bytes now = edited(old, o, l, &st, err);
    heft_test_free(&now);
    heft_test_free(&old);
    return st;
}

static void refuses_vocabularies_that_the_file_cannot_store(void **state)
{
    heft_special_id id = { HEFT_PAD, 3 }, unknown = { (heft_special)HEFT_SPECIALS, 0 };
    heft_special_id moved = { HEFT_PAD, 1 };
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_error err;
    losses l;
    (void)state;
    o.special = &id;
    o.special_count = 1;
    heft_assert_fails(refusal_of(model("embd", NULL, three_pieces), &o, &l, &err), HEFT_E_ARGUMENT,
                      &err, "3 tokens");
    heft_assert_fails(refusal_of(model("embd", NULL, NULL), &o, &l, &err), HEFT_E_NOTFOUND, &err,
                      "no vocabulary");
    o.special = &unknown;
    heft_assert_fails(refusal_of(model("embd", NULL, three_pieces), &o, &l, &err), HEFT_E_ARGUMENT,
                      &err, "no special token 5");
    o.special = &moved;
    heft_assert_status(refusal_of(model("embd", "simple", three_pieces), &o, &l, &err),
                       HEFT_E_LOSSY, &err);
    assert_string_equal(l.rules, "embd/special ");
    o.special_count = 0;
    heft_vocab *v = vocab_of(three_pieces);
    o.vocab = v;
    heft_assert_fails(refusal_of(model("mag", NULL, NULL), &o, &l, &err), HEFT_E_UNSUPPORTED, &err,
                      "cannot store a vocabulary");
    heft_assert_fails(refusal_of(model("gguf", NULL, NULL), &o, &l, &err), HEFT_E_UNSUPPORTED, &err,
                      "heft convert --vocab");
    heft_vocab_close(v);
    char *token = calloc(1, 65537);
    assert_non_null(token);
    memset(token, 't', 65536);
    o.vocab = v = vocab_of(token);
    heft_assert_status(refusal_of(model("embd", NULL, three_pieces), &o, &l, &err), HEFT_E_LOSSY,
                       &err);
    assert_string_equal(l.rules, "embd/vocab ");
    heft_vocab_close(v);
    free(token);
}

/* ---- atomic edits --------------------------------------------------------------------------- */

typedef struct task {
    const char *path;
    const heft_vocab *vocab;
} task;

static heft_status edit_vocab(void *ctx)
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

static void killed_edit_leaves_the_old_or_the_new_vocabulary(void **state)
{
    const char *path = heft_test_path(*state, "model");
    for (size_t i = 0; i < 2; i++) {
        heft_vocab *v = vocab_of(i ? many_tokens : three_tokens);
        task t = { path, v };
        heft_bytes old = model("embd", NULL, three_pieces);
        bool killed = true, undone;
        heft_error err;
        heft_test_save(path, old.p, old.len);
        memset(&heft_stop, 0, sizeof heft_stop);
        assert_int_equal(edit_vocab(&t), HEFT_OK);
        heft_bytes new = heft_test_load(path);
        for (unsigned n = 1; killed; n++) {
            heft_test_save(path, old.p, old.len);
            memset(&heft_stop, 0, sizeof heft_stop);
            killed = heft_test_is_killed(HEFT_KILLED, n, edit_vocab, &t);
            memset(&heft_stop, 0, sizeof heft_stop);
            heft_assert_ok(heft_edit_recover(&undone, path, &err), &err);
            assert_true(heft_test_file_is(path, old) || heft_test_file_is(path, new));
        }
        assert_true(heft_test_file_is(path, new));
        heft_vocab_close(v);
        heft_test_free(&old);
        heft_test_free(&new);
        unlink(path);
    }
}

static void reports_every_failed_allocation(void **state)
{
    heft_bytes embd = model("embd", NULL, three_pieces),
               gptrs = model("gptrs-checkpoint", NULL, NULL);
    heft_vocab *v = vocab_of(three_tokens);
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

static void replaces_a_configuration(void **state)
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
        losses l;
        o.config = heft_test_str(rows[i].config);
        heft_bytes now = edited(old, &o, &l, &st, &err);
        heft_assert_ok(st, &err);
        assert_int_equal(l.warnings, rows[i].warnings);
        assert_config(now, rows[i].want);
        assert_same_tensors(old, now);
        heft_test_free(&old);
        heft_test_free(&now);
    }
}

static void refuses_malformed_configurations(void **state)
{
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_error err;
    losses l;
    (void)state;
    const char *const broken[] = {
        "", "{", "[]", "{\"kind\": 1}", "{}", "{\"kind\": \"k\"} x", "{\"kind\": \"\xff\"}"
    };
    for (size_t i = 0; i < HEFT_COUNT(broken); i++) {
        o.config = heft_test_str(broken[i]);
        heft_assert_fails(refusal_of(model("gptrs-checkpoint", NULL, NULL), &o, &l, &err),
                          HEFT_E_ARGUMENT, &err, "config");
    }
    o.config = heft_test_str("{\"kind\": \"k\"}");
    heft_assert_status(refusal_of(model("gptrs-archive", NULL, NULL), &o, &l, &err), HEFT_E_LOSSY,
                       &err);
    heft_assert_status(refusal_of(model("mag", NULL, NULL), &o, &l, &err), HEFT_E_LOSSY, &err);
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
        for (uint32_t i = 0, n = heft_attribute_count(f, t); i < n; i++) {
            v = heft_attribute_at(f, t, i);
            assert_false(v.key.len == 13 && !memcmp(v.key.ptr, "gptrs.base_id", 13));
            is_trained = is_trained || (v.kind == HEFT_KIND_BOOL && v.as.b);
        }
        assert_int_equal(is_trained, heft_tensor_at(f, t).name.ptr[0] == 'a');
    }
    heft_file_close(f);
}

static void edit_changes_gptrs_identities(void **state)
{
    const char *const formats[] = { "gptrs-checkpoint", "gptrs-archive" };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(formats); i++) {
        heft_bytes old = model(formats[i], NULL, NULL);
        heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
        heft_status st;
        heft_error err;
        losses l;
        o.identify = train_a_without_ids;
        heft_bytes now = edited(old, &o, &l, &st, &err);
        heft_assert_ok(st, &err);
        assert_int_equal(now.len, old.len);
        assert_trained_without_ids(now);
        assert_same_tensors(old, now);
        heft_test_free(&old);
        heft_test_free(&now);
    }
}

/* Either the name or the id is damaged; without the id nobody could tell. */
static void refuses_to_remove_a_wrong_base_id(void **state)
{
    heft_bytes old = model("gptrs-checkpoint", NULL, NULL);
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_id128 id;
    heft_error err;
    losses l;
    (void)state;
    assert_true(heft_param_base_id(&id, HEFT_STR("b")));
    uint8_t *at = memmem(old.p, old.len, id.bytes, sizeof id.bytes);
    assert_non_null(at);
    *at ^= 1;
    o.identify = train_a_without_ids;
    heft_assert_fails(refusal_of(old, &o, &l, &err), HEFT_E_CHECKSUM, &err, "tensor 'b'");
}

static void conversion_changes_gptrs_identities(void **state)
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
        cmocka_unit_test(replaces_a_vocabulary),
        cmocka_unit_test(replaces_a_vocabulary_by_an_empty_vocabulary),
        cmocka_unit_test(changes_special_token_ids),
        cmocka_unit_test(refuses_vocabularies_that_the_file_cannot_store),
        in_dir(killed_edit_leaves_the_old_or_the_new_vocabulary),
        cmocka_unit_test(reports_every_failed_allocation),
        cmocka_unit_test(replaces_a_configuration),
        cmocka_unit_test(refuses_malformed_configurations),
        cmocka_unit_test(edit_changes_gptrs_identities),
        cmocka_unit_test(refuses_to_remove_a_wrong_base_id),
        cmocka_unit_test(conversion_changes_gptrs_identities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
