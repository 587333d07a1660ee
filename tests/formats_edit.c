/* formats_edit.c - checks that edits keep the format version of a sample and never hide damage. */
#include "core/read/file.h"
#include "every_format.h"

/* ---- edits ---------------------------------------------------------------------------------- */

/* RENAME: to a name of the same length, at most 64 bytes. RENAME_LONG: to a name of 700 bytes,
 * which moves the data. TRAIN: set requires_grad of every tensor and clear the base ids. */
enum { SET = 1, UNSET = 2, RENAME = 4, RENAME_LONG = 8, VOCAB = 16, CONFIG = 32, TRAIN = 64 };

static const int edits[] = {
    SET,
    UNSET,
    SET | UNSET,
    RENAME,
    SET | RENAME,
    UNSET | RENAME,
    SET | UNSET | RENAME,
    RENAME_LONG,
    SET | RENAME_LONG,
    UNSET | RENAME_LONG,
    SET | UNSET | RENAME_LONG,
    VOCAB,
    VOCAB | SET | RENAME_LONG,
    CONFIG,
    CONFIG | RENAME_LONG,
    TRAIN,
    TRAIN | CONFIG | RENAME,
};
enum { EDITS = HEFT_COUNT(edits) };
static const char config[] = "{\"kind\": \"k\", \"config\": {}}";

typedef struct request {
    heft_edit_options opt;
    heft_value set;
    heft_str unset;
    heft_rename rename;
    heft_vocab *vocab;
    heft_special_id special;
    char same_length[64], long_name[700];
} request;

/* Choose a text, or a number for mag, where metadata are numbers. */
static void choose_value(request *r, const heft_file *f)
{
    heft_str format = heft_test_str(heft_format_name(heft_file_format(f)));
    r->set = (heft_value){ .kind = HEFT_KIND_STR, .key = heft_test_str("added") };
    r->set.as.s = heft_test_str("some text");
    if (format.len == 3 && !memcmp(format.ptr, "mag", 3)) {
        r->set.kind = HEFT_KIND_UINT;
        r->set.as.u = 7;
    }
}

/* Choose a name that is as long as `from`, and a much longer name. */
static void choose_names(request *r, heft_str from)
{
    memset(r->same_length, 'Q', sizeof r->same_length);
    memset(r->long_name, 'Q', sizeof r->long_name);
    r->rename.from = from;
    r->rename.to = (heft_str){ r->same_length, from.len < sizeof r->same_length
                                                   ? from.len
                                                   : sizeof r->same_length };
    if (!from.len)
        r->rename.to.len = 1;
}

static bool train(void *ctx, const heft_tensor *t, heft_identity *id)
{
    bool has_base_ids = ctx;
    (void)t;
    id->has |= HEFT_HAS_REQUIRES_GRAD | (has_base_ids ? HEFT_HAS_BASE_ID : 0u);
    id->requires_grad = true;
    memset(&id->base_id, 0, sizeof id->base_id);
    return true;
}

static void choose_texts(request *r, const heft_file *f, int edit)
{
    heft_str format = heft_test_str(heft_format_name(heft_file_format(f)));
    heft_error err;
    if (edit & VOCAB)
        heft_assert_ok(
            heft_vocab_parse_lines(&r->vocab, heft_test_str("[UNK]\nthe\n##s\n"), NULL, &err),
            &err);
    if (edit & CONFIG)
        r->opt.config = heft_test_str(config);
    if (edit & TRAIN)
        r->opt.identify = train;
    r->special = (heft_special_id){ HEFT_PAD, 1 };
    r->opt.vocab = r->vocab;
    r->opt.special = &r->special;
    r->opt.special_count = edit & VOCAB && !heft_str_is(heft_file_version(f), "simple");
    r->opt.ctx = heft_str_is(format, "gptrs-checkpoint") ? r : NULL;
}

/* Fill the request, which borrows from `f`; return false if there is no value to unset or no tensor
 * to rename. */
static bool choose(request *r, const heft_file *f, int edit)
{
    bool has_metadata = heft_meta_count(f);
    memset(r, 0, sizeof *r);
    r->opt = (heft_edit_options)HEFT_EDIT_OPTIONS_INIT;
    choose_value(r, f);
    if (edit & UNSET && !has_metadata)
        return false;
    if (edit & (RENAME | RENAME_LONG) && !heft_tensor_count(f))
        return false;
    if (edit & UNSET)
        r->unset = heft_meta_at(f, 0).key;
    if (edit & (RENAME | RENAME_LONG))
        choose_names(r, heft_tensor_at(f, 0).name);
    if (edit & RENAME_LONG)
        r->rename.to = (heft_str){ r->long_name, sizeof r->long_name };
    r->opt.set = &r->set;
    r->opt.unset = &r->unset;
    r->opt.rename = &r->rename;
    r->opt.set_count = edit & SET ? 1 : 0;
    r->opt.unset_count = edit & UNSET ? 1 : 0;
    r->opt.rename_count = edit & (RENAME | RENAME_LONG) ? 1 : 0;
    choose_texts(r, f, edit);
    return true;
}

static heft_bytes bytes_of(const heft_edit *e, heft_bytes old)
{
    const heft_edit_extent *p;
    size_t n = heft_edit_extents(e, &p);
    heft_bytes b = { calloc(1, (size_t)heft_edit_size(e) + 1), (size_t)heft_edit_size(e) };
    assert_non_null(b.p);
    for (size_t i = 0; i < n; i++) {
        assert_in_range(p[i].at + p[i].length, 0, b.len);
        memcpy(b.p + p[i].at, p[i].data ? p[i].data : old.p + p[i].from, (size_t)p[i].length);
    }
    return b;
}

/* Return the edited file; p NULL: the edit was refused or does not apply. */
static heft_bytes edited(const heft_file *f, heft_bytes old, int edit)
{
    request r;
    heft_edit *e;
    heft_error err;
    heft_bytes b = { NULL, 0 };
    if (!choose(&r, f, edit))
        return b;
    heft_status st = heft_edit_plan(&e, f, &r.opt, &err);
    if (!st)
        b = bytes_of(e, old);
    else if (err.status != st || !err.message[0] || st == HEFT_E_IO || st == HEFT_E_NOMEM)
        fail_msg("edit %d: %s: %s", edit, heft_status_name(st), err.message);
    heft_edit_close(e);
    heft_vocab_close(r.vocab);
    return b;
}

/* ---- format and version stay the same ------------------------------------------------------- */

static void assert_same_generation(const heft_file *f, const heft_file *after, int edit)
{
    const heft_index *a = &f->x, *b = &after->x;
    if (f->format != after->format || !heft_str_eq(a->version, b->version))
        fail_msg("edit %d: %s %.*s became %s %.*s", edit, f->format->name, (int)a->version.len,
                 a->version.ptr, after->format->name, (int)b->version.len, b->version.ptr);
    assert_int_equal(a->parts.len, b->parts.len);
    assert_true(heft_str_eq(a->generator, b->generator));
    assert_int_equal(a->has_omissions, b->has_omissions);
    if (a->parts.len)
        assert_int_equal(heft_ix_part_row_at(a, 0)->flags, heft_ix_part_row_at(b, 0)->flags);
}

/* Rules of notes that identify a variant within a format version. */
static const char *const variants[] = {
    "burnpack/legacy", "burnpack/version-0", "embd/minor",       "gguf/big-endian",
    "mag/code-3",      "npy/big-endian",     "ztensor/reserved", "ztensor/big-endian",
};

static uint32_t count_notes(const heft_index *x, const char *rule)
{
    const heft_note *notes = x->notes.ptr;
    uint32_t count = 0;
    for (uint32_t i = 0; i < x->notes.len; i++)
        count += !strcmp(notes[i].rule, rule);
    return count;
}

static void assert_same_variant(const heft_index *a, const heft_index *b, int edit)
{
    for (size_t i = 0; i < HEFT_COUNT(variants); i++)
        if (count_notes(a, variants[i]) != count_notes(b, variants[i]))
            fail_msg("edit %d: the variant of note %s changed", edit, variants[i]);
}

/* Assert that the edited file contains the requested vocabulary, config and requires_grad. */
static void assert_edited(const heft_file *after, int edit)
{
    heft_error err;
    heft_vocab *v;
    heft_value grad;
    if (edit & VOCAB) {
        heft_assert_ok(heft_vocab_open(&v, after, &err), &err);
        assert_int_equal(heft_vocab_count(v), 3);
        assert_int_equal(heft_vocab_find(v, HEFT_STR("##s")), 2);
        heft_vocab_close(v);
    }
    if (edit & CONFIG) {
        uint32_t part = heft_part_find(after, HEFT_NONE, HEFT_STR("config"));
        assert_int_not_equal(part, HEFT_NONE);
        assert_int_equal(heft_part_at(after, part).length, strlen(config));
    }
    for (uint32_t t = 0; edit & TRAIN && t < heft_tensor_count(after); t++) {
        bool is_trained = false;
        for (uint32_t i = 0, n = heft_attribute_count(after, t); i < n; i++) {
            grad = heft_attribute_at(after, t, i);
            is_trained = is_trained || (heft_str_is(grad.key, "gptrs.requires_grad") && grad.as.b);
        }
        assert_true(is_trained);
        assert_null(heft_ix_base_id_at(&after->x, t));
    }
}

void check_edited(const sample *s)
{
    heft_file *f, *after;
    heft_error err;
    heft_assert_ok(open_sample(&f, s, NULL, &err), &err);
    for (int i = 0; i < EDITS; i++) {
        heft_bytes b = edited(f, s->in.bytes, edits[i]);
        if (!b.p)
            continue;
        heft_assert_ok(heft_test_open(&after, b, NULL, &err), &err);
        assert_same_generation(f, after, edits[i]);
        assert_same_variant(&f->x, &after->x, edits[i]);
        assert_edited(after, edits[i]);
        heft_file_close(after);
        heft_test_free(&b);
    }
    heft_file_close(f);
}

/* ---- damage stays visible -------------------------------------------------------------------- */

typedef struct verdict {
    uint32_t faults, warnings;
} verdict;

/* Verify a file; return the maximum counts if the file does not open. */
static verdict verify(heft_bytes b, const heft_host *host)
{
    heft_verify_result r;
    heft_file *f;
    heft_error err;
    if (heft_test_open(&f, b, host, &err))
        return (verdict){ UINT32_MAX, UINT32_MAX };
    heft_assert_ok(heft_file_verify(&r, f, NULL, &err), &err);
    heft_file_close(f);
    return (verdict){ r.faults, r.warnings };
}

static char *findings_of(heft_bytes b)
{
    heft_verify_result r;
    heft_status st;
    heft_file *f;
    heft_error err;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    char *text = heft_test_findings(&r, &st, f, &err);
    heft_file_close(f);
    return text;
}

static bool is_worse(verdict after, verdict before)
{
    return after.faults > before.faults || after.warnings > before.warnings;
}

static bool is_equal(heft_bytes a, heft_bytes b)
{
    return a.len == b.len && !memcmp(a.p, b.p, a.len);
}

typedef struct trial {
    heft_test_host host;          /* one thread: starting more takes longer than small files */
    heft_bytes good[EDITS];       /* the undamaged sample after each edit; p NULL: refused */
    verdict before, after[EDITS]; /* findings in the undamaged sample, before and after each edit */
} trial;

/* Edit a damaged file and assert that the damage is still found. An edit may repair damage, as in
 * padding that is rewritten. */
static void edit_damaged(const trial *t, heft_bytes b, size_t at, int number, verdict found)
{
    heft_file *f;
    heft_error err;
    heft_assert_ok(heft_test_open(&f, b, &t->host.host, &err), &err);
    heft_bytes after = edited(f, b, edits[number]);
    heft_file_close(f);
    if (!after.p)
        return;
    bool is_repaired = found.faults <= t->before.faults && is_equal(after, t->good[number]);
    if (!is_repaired && !is_worse(verify(after, &t->host.host), t->after[number])) {
        char *findings = findings_of(b);
        fail_msg("edit %d hides damage of byte %zu of %zu:\n%s", edits[number], at, b.len,
                 findings);
    }
    heft_test_free(&after);
}

static int number_of(int edit)
{
    int i = 0;
    while (edits[i] != edit)
        i++;
    return i;
}

static void damage(const trial *t, heft_bytes b, size_t at, uint8_t flipped)
{
    static const int edit_kinds[] = { SET, UNSET, RENAME, RENAME_LONG, VOCAB, CONFIG, TRAIN };
    b.p[at] ^= flipped;
    verdict found = verify(b, &t->host.host);
    if (found.faults < UINT32_MAX && is_worse(found, t->before))
        for (size_t i = 0; i < HEFT_COUNT(edit_kinds); i++)
            if (t->good[number_of(edit_kinds[i])].p)
                edit_damaged(t, b, at, number_of(edit_kinds[i]), found);
    b.p[at] ^= flipped;
}

static void prepare(trial *t, const sample *s)
{
    heft_file *f;
    heft_error err;
    heft_test_host_init(&t->host, 1);
    heft_assert_ok(open_sample(&f, s, &t->host.host, &err), &err);
    t->before = verify(s->in.bytes, &t->host.host);
    for (int i = 0; i < EDITS; i++) {
        t->good[i] = edited(f, s->in.bytes, edits[i]);
        if (t->good[i].p)
            t->after[i] = verify(t->good[i], &t->host.host);
    }
    heft_file_close(f);
}

/* Return the distance between damaged bytes. Large files take longer to check, so that fewer
 * bytes are damaged; and fewer of all files with HEFT_TEST_FEWER. */
static size_t stride_of(size_t len)
{
    enum { WORK = 1 << 18, MIN_BYTES = 48, MAX_BYTES = 256, FEWER = 5 };
    size_t count = WORK / (len + 1);
    count = count < MIN_BYTES ? MIN_BYTES : count > MAX_BYTES ? MAX_BYTES : count;
    size_t stride = len / count + 1;
    return getenv("HEFT_TEST_FEWER") ? FEWER * stride : stride;
}

void check_edited_damage(const sample *s)
{
    enum { HEAD = 64, TAIL = 40 }; /* every byte of the head and the tail is damaged */
    heft_bytes b = heft_test_copy(s->in.bytes.p, s->in.bytes.len);
    size_t stride = stride_of(b.len);
    trial t;
    prepare(&t, s);
    for (size_t i = 0; i < b.len; i++)
        if (i < HEAD || b.len - i <= TAIL || i % stride == 0)
            damage(&t, b, i, (uint8_t)(1 << i % 8));
    for (int i = 0; i < EDITS; i++)
        heft_test_free(&t.good[i]);
    heft_test_free(&b);
}
