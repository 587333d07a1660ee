/* test_edit_differs.c - an edit is refused if the edited file would differ from the request in any
 * respect. No writer of the library makes this mistake, so the comparison receives a file that was
 * written with one deviation. The call is intercepted through --wrap, see meson.build. */
#include "models.h"

#include "core/edit/edit.h"

/* ---- the edited file is replaced ------------------------------------------------------------ */

heft_status __real_heft_edit_check(heft_edit_job *g);
heft_status __wrap_heft_edit_check(heft_edit_job *g);

static heft_bytes replacement; /* p NULL: none */
static bool forgets_request;   /* the planned model lacks the value "k" */

static void drop_value(heft_index *x, heft_str key)
{
    uint32_t i = 0;
    while (i < x->values.len && !heft_str_eq(heft_ix_value(x, i)->key, key))
        i = heft_ix_value_next(x, i);
    assert_true(i < x->values.len);
    heft_ix_drop_value(x, i);
}

/* Replace the bytes of the edited file. The replacement must stay until the edit is closed. */
heft_status __wrap_heft_edit_check(heft_edit_job *g)
{
    if (replacement.p) {
        heft_edit_extent *all = g->e->extents.ptr;
        assert_true(g->e->extents.len > 0);
        all[0] = (heft_edit_extent){ .length = replacement.len, .data = replacement.p };
        g->e->extents.len = 1;
        g->e->size = replacement.len;
    }
    if (forgets_request)
        drop_value(&g->p.x, heft_test_str("k"));
    return __real_heft_edit_check(g);
}

/* ---- the plan of the format is replaced ------------------------------------------------------ */

heft_status __real_heft_planner_parts_in_order(heft_planner *p, uint32_t **out, uint32_t *count,
                                               heft_error *err);
heft_status __wrap_heft_planner_parts_in_order(heft_planner *p, uint32_t **out, uint32_t *count,
                                               heft_error *err);

enum { AS_PLANNED, OVERLAPPING, END_TOO_EARLY };
static int mistake;

heft_status __wrap_heft_planner_parts_in_order(heft_planner *p, uint32_t **out, uint32_t *count,
                                               heft_error *err)
{
    heft_status st = __real_heft_planner_parts_in_order(p, out, count, err);
    if (!st && mistake == OVERLAPPING)
        heft_ix_part_row_at(&p->x, (*out)[1])->offset = heft_ix_part_row_at(&p->x, **out)->offset;
    if (!st && mistake == END_TOO_EARLY)
        p->plan.data_end--;
    return st;
}

/* ---- models with a deviation ---------------------------------------------------------------- */

typedef enum deviation {
    NOTHING,
    NAME,
    RANK,
    DIMS,
    DTYPE,
    LAYOUT,
    ROLE,
    PARTS,
    PART_LENGTH,
    PART_DTYPE,
    PART_DIGEST,
    NO_DIGEST,
    ATTRIBUTE,
    ATTRIBUTE_KEY,
    NO_ATTRIBUTE,
    MORE_ATTRIBUTES,
    SHORT_LIST,
    LIST_ITEM,
    META,
    META_LIST,
    NO_META,
    MORE_META,
    GENERATOR,
    FEWER_TENSORS,
    MORE_TENSORS,
    PARAM_ID,
    NO_PARAM_ID,
    NO_BASE_ID,
    GRAD,
} deviation;

typedef struct model {
    const char *format, *version;
    bool is_bare;           /* no metadata */
    bool has_ids;           /* of Burn */
    bool has_grad;          /* flags and ids of gpt-rs */
    bool is_plain;          /* a dense tensor without attributes */
    bool is_empty;          /* the tensor has no elements */
    const heft_value *meta; /* a further value, or NULL */
    const char *config;
    const heft_vocab *vocab;
} model;

static heft_value number(const char *key, uint64_t v)
{
    return (heft_value){ .key = heft_test_str(key), .kind = HEFT_KIND_UINT, .as.u = v };
}

static heft_value text(const char *key, const char *v)
{
    return (
        heft_value){ .key = heft_test_str(key), .kind = HEFT_KIND_STR, .as.s = heft_test_str(v) };
}

static heft_value list(const char *key, uint32_t count, uint32_t end)
{
    heft_value v = { .key = heft_test_str(key), .kind = HEFT_KIND_LIST };
    v.as.container.count = count;
    v.as.container.end = end;
    return v;
}

static uint32_t make_attributes(heft_value out[5], deviation d)
{
    out[0] = number(d == ATTRIBUTE_KEY ? "x" : "n", d == ATTRIBUTE ? 8 : 7);
    out[1] = list("list", d == SHORT_LIST ? 1 : 2, d == SHORT_LIST ? 3 : 4);
    out[2] = number("", 1);
    out[3] = number(d == SHORT_LIST ? "z" : "", d == LIST_ITEM ? 3 : 2);
    out[4] = number("more", 1);
    return d == NO_ATTRIBUTE ? 0 : d == MORE_ATTRIBUTES ? 5 : 4;
}

static void add_dense(heft_writer *w, const model *m, const char *name, deviation d)
{
    static const uint64_t dims[] = { 2, 3 }, swapped[] = { 3, 2 }, flat[] = { 6 },
                          empty[] = { 0, 3 };
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    heft_value attributes[5];
    heft_error err;
    uint32_t part;
    spec.name = heft_test_str(d == NAME ? "c" : name);
    spec.dtype = d == DTYPE ? HEFT_I32 : HEFT_F32;
    spec.rank = d == RANK ? 1 : 2;
    spec.dims = m->is_empty ? empty : d == RANK ? flat : d == DIMS ? swapped : dims;
    spec.attributes = attributes;
    spec.attribute_count = m->is_plain ? 0 : make_attributes(attributes, d);
    if (m->has_grad)
        spec.identity = (heft_identity){ .has = HEFT_HAS_REQUIRES_GRAD |
                                                (d == NO_BASE_ID ? HEFT_HAS_BASE_ID : 0),
                                         .requires_grad = d != GRAD };
    if (m->has_ids && d != NO_PARAM_ID)
        spec.identity = (heft_identity){ .has = HEFT_HAS_PARAM_ID,
                                         .param_id = d == PARAM_ID ? 9 : 8 };
    heft_assert_ok(heft_writer_add_tensor(&part, w, &spec, &err), &err);
}

static void add_parts(heft_writer *w, deviation d)
{
    static const uint64_t dims[] = { 4 };
    const heft_storage stored = { .digest = d == NO_DIGEST     ? NULL
                                            : d == PART_DIGEST ? "crc32c"
                                                               : "sha256" };
    const heft_component parts[] = {
        { HEFT_STR("p0"), HEFT_U8, 4, &stored },
        { heft_test_str(d == ROLE ? "p2" : "p1"), d == PART_DTYPE ? HEFT_I8 : HEFT_U8,
          d == PART_LENGTH ? 5 : 4, NULL },
    };
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    heft_error err;
    uint32_t first;
    spec.name = HEFT_STR("b");
    spec.dtype = HEFT_U8;
    spec.rank = 1;
    spec.dims = dims;
    spec.layout = heft_test_str(d == LAYOUT ? "my.latout" : "my.layout");
    spec.components = parts;
    spec.component_count = d == PARTS ? 1 : 2;
    heft_assert_ok(heft_writer_add_tensor(&first, w, &spec, &err), &err);
}

static void add_meta(heft_writer *w, heft_value v)
{
    heft_error err;
    heft_assert_ok(heft_writer_add_meta(w, v, &err), &err);
}

static void add_metadata(heft_writer *w, const model *m, deviation d)
{
    heft_error err;
    if (d != NO_META && !m->is_bare)
        add_meta(w, text("m", d == META ? "two" : "one"));
    if (d == MORE_META)
        add_meta(w, text("more", "one"));
    if (!m->is_plain) {
        add_meta(w, list("list", 2, 0));
        add_meta(w, number("", 1));
        add_meta(w, number("", d == META_LIST ? 3 : 2));
        heft_assert_ok(heft_writer_end_meta(w, &err), &err);
    }
    if (m->meta)
        add_meta(w, *m->meta);
}

static void write_parts(heft_writer *w, const model *m, deviation d)
{
    static const uint8_t data[24] = "abcdefghijklmnopqrstuvw";
    heft_error err;
    uint32_t part = 0, dense = d == MORE_TENSORS ? 2 : 1;
    for (uint32_t i = 0; i < dense; i++)
        heft_assert_ok(heft_writer_write(w, part++, data, m->is_empty ? 0 : 24, &err), &err);
    if (m->is_plain || d == FEWER_TENSORS)
        return;
    heft_assert_ok(heft_writer_write(w, part++, data, 4, &err), &err);
    if (d != PARTS)
        heft_assert_ok(heft_writer_write(w, part, data, d == PART_LENGTH ? 5 : 4, &err), &err);
}

static heft_bytes make(const model *m, deviation d)
{
    heft_test_sink sink;
    heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
    heft_writer *w;
    heft_error err;
    opt.version = m->version;
    heft_assert_ok(heft_writer_open(&w, heft_format_find(heft_str_from(m->format)),
                                    heft_test_sink_init(&sink, false), &opt, &err),
                   &err);
    if (d == GENERATOR)
        heft_assert_ok(heft_writer_set_generator(w, HEFT_STR("other"), &err), &err);
    add_metadata(w, m, d);
    add_dense(w, m, "a", d);
    if (d == MORE_TENSORS)
        add_dense(w, m, "d", d);
    if (!m->is_plain && d != FEWER_TENSORS)
        add_parts(w, d);
    if (m->config)
        heft_assert_ok(
            heft_writer_add_model_part(w, HEFT_STR("config"), m->config, strlen(m->config), &err),
            &err);
    if (m->vocab)
        heft_assert_ok(heft_writer_set_vocab(w, m->vocab, &err), &err);
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    write_parts(w, m, d);
    heft_assert_ok(heft_writer_finish(w, &err), &err);
    heft_bytes b = heft_test_copy(sink.p, sink.len);
    heft_test_sink_free(&sink);
    return b;
}

/* ---- edits ---------------------------------------------------------------------------------- */

/* Plan an edit of `before`, and replace the result by `after`; free both. */
static heft_status plan(heft_bytes before, heft_bytes after, const heft_edit_options *o,
                        heft_error *err)
{
    heft_edit *e;
    heft_file *f;
    heft_assert_ok(heft_test_open(&f, before, NULL, err), err);
    replacement = after;
    heft_status st = heft_edit_plan(&e, f, o, err);
    replacement = (heft_bytes){ NULL, 0 };
    heft_edit_close(e);
    heft_file_close(f);
    heft_test_free(&before);
    heft_test_free(&after);
    return st;
}

static void assert_plan(heft_status st, const char *words, const heft_error *err)
{
    if (words)
        heft_assert_fails(st, HEFT_E_UNSUPPORTED, err, words);
    else
        heft_assert_ok(st, err);
}

static void refuses_each_deviation(void **state)
{
    static const model zt = { .format = "ztensor", .version = "1.2" },
                       bpk = { .format = "burnpack", .has_ids = true, .is_plain = true };
    static const struct {
        const model *model;
        deviation deviation;
        const char *words; /* NULL: no refusal */
    } rows[] = {
        { &zt, NOTHING, NULL },
        { &zt, NAME, "tensor 'a': its name" },
        { &zt, RANK, "tensor 'a': its shape, type or layout" },
        { &zt, DIMS, "tensor 'a': its shape, type or layout" },
        { &zt, DTYPE, "tensor 'a': its shape, type or layout" },
        { &zt, LAYOUT, "tensor 'b': its shape, type or layout" },
        { &zt, ROLE, "tensor 'b': its parts, or their attributes" },
        { &zt, PARTS, "tensor 'b': its parts" },
        { &zt, PART_LENGTH, "tensor 'b': its parts, or their attributes" },
        { &zt, PART_DTYPE, "tensor 'b': its parts, or their attributes" },
        { &zt, PART_DIGEST, "tensor 'b': its parts, or their attributes" },
        { &zt, NO_DIGEST, "checksums" },
        { &zt, ATTRIBUTE, "tensor 'a': its attributes" },
        { &zt, ATTRIBUTE_KEY, "tensor 'a': its attributes" },
        { &zt, NO_ATTRIBUTE, "tensor 'a': its attributes" },
        { &zt, MORE_ATTRIBUTES, "tensor 'a': its attributes" },
        { &zt, SHORT_LIST, "tensor 'a': its attributes" },
        { &zt, LIST_ITEM, "tensor 'a': its attributes" },
        { &zt, META, "metadata" },
        { &zt, META_LIST, "metadata" },
        { &zt, NO_META, "metadata" },
        { &zt, MORE_META, "metadata" },
        { &zt, FEWER_TENSORS, "the number of tensors" },
        { &zt, MORE_TENSORS, "the number of tensors" },
        { &bpk, NOTHING, NULL },
        { &bpk, PARAM_ID, "tensor 'a': its ids" },
        { &bpk, NO_PARAM_ID, "tensor 'a': its ids" },
        { &bpk, DTYPE, "tensor 'a': its shape, type or layout" },
        { &bpk, META, "metadata" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_value set = text("k", "new");
        heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
        heft_error err;
        model after = *rows[i].model;
        after.meta = &set;
        o.set = &set;
        o.set_count = 1;
        assert_plan(plan(make(rows[i].model, NOTHING), make(&after, rows[i].deviation), &o, &err),
                    rows[i].words, &err);
    }
}

/* A value that the plan has lost cannot be compared. */
static void refuses_a_plan_without_the_requested_value(void **state)
{
    static const model m = { .format = "ztensor", .version = "1.2" };
    (void)state;
    for (int forgets = 0; forgets < 2; forgets++) {
        heft_value set = text("k", "new");
        heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
        heft_error err;
        model after = m;
        after.meta = &set;
        o.set = &set;
        o.set_count = 1;
        forgets_request = forgets;
        heft_status st = plan(make(&m, NOTHING), make(&after, NOTHING), &o, &err);
        forgets_request = false;
        assert_plan(st, forgets ? "metadata 'k' cannot be set" : NULL, &err);
    }
}

/* A format with headers between the parts copies part by part. */
static void refuses_a_plan_with_overlapping_parts(void **state)
{
    static const test_tensor tensors[] = { { "a", HEFT_F32, 1, { 100 } },
                                           { "b", HEFT_F32, 1, { 100 } } };
    static const char *const words[] = { NULL, "npz planned overlapping data",
                                         "npz planned overlapping data" };
    (void)state;
    for (int i = AS_PLANNED; i <= END_TOO_EARLY; i++) {
        heft_rename rename = { HEFT_STR("a"), HEFT_STR("c") };
        heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
        heft_bytes before = heft_test_model("npz", tensors, 2);
        heft_error err;
        o.rename = &rename;
        o.rename_count = 1;
        mistake = i;
        heft_status st = plan(before, (heft_bytes){ NULL, 0 }, &o, &err);
        mistake = AS_PLANNED;
        assert_plan(st, words[i], &err);
    }
}

/* A Burnpack with the scalars "x" and "y". */
static heft_bytes with_scalars(uint64_t x, uint64_t y)
{
    heft_test_sink sink;
    heft_writer *w;
    heft_error err;
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("burnpack")),
                                    heft_test_sink_init(&sink, false), NULL, &err),
                   &err);
    add_meta(w, (heft_value){ .kind = HEFT_KIND_MAP, .key = HEFT_STR("burn.scalars") });
    add_meta(w, number("x", x));
    add_meta(w, number("y", y));
    heft_assert_ok(heft_writer_end_meta(w, &err), &err);
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    heft_assert_ok(heft_writer_finish(w, &err), &err);
    heft_bytes b = heft_test_copy(sink.p, sink.len);
    heft_test_sink_free(&sink);
    return b;
}

static void refuses_other_scalars_than_requested(void **state)
{
    heft_value set = number("burn.scalars.x", 5);
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_error err;
    (void)state;
    o.set = &set;
    o.set_count = 1;
    assert_plan(plan(with_scalars(1, 2), with_scalars(5, 2), &o, &err), NULL, &err);
    assert_plan(plan(with_scalars(1, 2), with_scalars(6, 2), &o, &err),
                "metadata 'burn.scalars.x' cannot be set", &err);
    assert_plan(plan(with_scalars(1, 2), with_scalars(5, 3), &o, &err),
                "more than requested: burn.scalars", &err);
}

static void refuses_another_generator_or_version(void **state)
{
    static const model m = { .format = "ztensor", .version = "1.0", .is_plain = true },
                       newer = { .format = "ztensor", .version = "1.1", .is_plain = true };
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_error err;
    (void)state;
    assert_plan(plan(make(&m, NOTHING), make(&m, NOTHING), &o, &err), NULL, &err);
    assert_plan(plan(make(&m, NOTHING), make(&m, GENERATOR), &o, &err), "the generator", &err);
    assert_plan(plan(make(&m, NOTHING), make(&newer, NOTHING), &o, &err), "the version", &err);
}

static void refuses_other_ids_of_gptrs(void **state)
{
    static const model m = { .format = "gptrs-checkpoint",
                             .is_bare = true,
                             .is_plain = true,
                             .has_grad = true,
                             .config = "{\"kind\":\"gpt\",\"config\":{}}" };
    static const struct {
        deviation deviation;
        const char *words;
    } rows[] = { { NOTHING, NULL },
                 { GRAD, "tensor 'a': its ids" },
                 { NO_BASE_ID, "tensor 'a': its ids" } };
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        assert_plan(plan(make(&m, NOTHING), make(&m, rows[i].deviation), &o, &err), rows[i].words,
                    &err);
    }
}

/* ---- values that are set -------------------------------------------------------------------- */

static heft_value boolean(const char *key, bool v)
{
    return (heft_value){ .key = heft_test_str(key), .kind = HEFT_KIND_BOOL, .as.b = v };
}

static void a_value_may_be_stored_as_another_kind(void **state)
{
    static const model st = { .format = "safetensors", .is_plain = true },
                       zt = { .format = "ztensor", .version = "1.2", .is_plain = true };
    const struct {
        const model *model;
        heft_value set, is;
        bool is_accepted;
    } rows[] = {
        { &zt, text("k", "a"), text("k", "a"), true },
        { &zt, text("k", "a"), text("k", "b"), false },
        { &zt, text("k", "a"), text("l", "a"), false },
        { &zt, text("k", "a"), number("k", 1), false },
        { &zt, number("k", 1), number("k", 1), true },
        { &zt, number("k", 1), number("k", 2), false },
        { &zt, boolean("k", true), boolean("k", true), true },
        { &zt, boolean("k", true), boolean("k", false), false },
        { &zt, boolean("k", true), number("k", 1), true },
        { &zt, boolean("k", true), number("k", 2), false },
        { &zt, boolean("k", false), number("k", 0), true },
        { &zt, boolean("k", false), number("k", 1), false },
        { &zt, boolean("k", true), text("k", "x"), false },
        { &st, number("k", 7), text("k", "7"), true },
        { &st, number("k", 7), text("k", "8"), false },
        { &st, boolean("k", true), text("k", "true"), true },
        { &st, boolean("k", true), text("k", "false"), false },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
        heft_error err;
        model after = *rows[i].model;
        after.meta = &rows[i].is;
        o.set = &rows[i].set;
        o.set_count = 1;
        assert_plan(plan(make(rows[i].model, NOTHING), make(&after, NOTHING), &o, &err),
                    rows[i].is_accepted ? NULL : "it would be read back as another value", &err);
    }
}

static void a_value_that_is_removed_must_be_gone(void **state)
{
    static const model m = { .format = "ztensor", .version = "1.2", .is_plain = true };
    const heft_str key = HEFT_STR("m");
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_error err;
    (void)state;
    o.unset = &key;
    o.unset_count = 1;
    assert_plan(plan(make(&m, NOTHING), make(&m, NO_META), &o, &err), NULL, &err);
    assert_plan(plan(make(&m, NOTHING), make(&m, NOTHING), &o, &err), "metadata", &err);
}

/* ---- the configuration and other parts of the file ------------------------------------------- */

static void the_configuration_has_little_around_the_request(void **state)
{
    static const char config[] = "{\"kind\":\"gpt\",\"config\":{}}",
                      other[] = "{\"kind\":\"gpx\",\"config\":{}}";
    char padded[200];
    (void)state;
    for (int extra = 0; extra < 67; extra++) {
        model before = { .format = "gptrs-checkpoint",
                         .is_bare = true,
                         .is_plain = true,
                         .is_empty = true,
                         .config = other };
        model after = before;
        heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
        heft_error err;
        bool is_other = extra == 66;
        snprintf(padded, sizeof padded, "%*s%s", is_other ? 0 : extra, "",
                 is_other ? other : config);
        after.config = padded;
        o.config = heft_test_str(config);
        assert_plan(plan(make(&before, NOTHING), make(&after, NOTHING), &o, &err),
                    extra > 64 ? "the configuration" : NULL, &err);
    }
}

static void parts_of_the_file_stay(void **state)
{
    enum { LENGTH = 3000 };
    static const char start[] = "{\"kind\":\"gpt\",\"config\":{}}";
    static const size_t changed[] = { 9, 1022, 1023, 1024, 2047, 2048, LENGTH - 1 };
    char config[LENGTH + 2], other[LENGTH + 2];
    heft_rename rename = { HEFT_STR("a"), HEFT_STR("c") };
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_error err;
    (void)state;
    memset(config, ' ', LENGTH);
    memcpy(config, start, sizeof start - 1);
    config[LENGTH] = '\0';
    o.rename = &rename;
    o.rename_count = 1;
    for (size_t i = 0; i < HEFT_COUNT(changed) + 2; i++) {
        bool is_same = i == HEFT_COUNT(changed), is_longer = i > HEFT_COUNT(changed);
        model before = { .format = "gptrs-checkpoint",
                         .is_bare = true,
                         .is_plain = true,
                         .is_empty = true,
                         .config = config };
        model after = before;
        memcpy(other, config, sizeof config);
        if (is_longer)
            strcpy(other + LENGTH, " ");
        else if (!is_same)
            other[changed[i]] = i ? '\n' : 'G';
        after.config = other;
        assert_plan(plan(make(&before, NOTHING), make(&after, NAME), &o, &err),
                    is_same ? NULL : "parts of the file", &err);
    }
}

static heft_vocab *vocab_of(const char *lines, uint32_t pad)
{
    heft_error err;
    heft_vocab *v;
    heft_assert_ok(heft_vocab_parse_lines(&v, heft_test_str(lines), NULL, &err), &err);
    heft_vocab_set_special(v, HEFT_PAD, pad);
    return v;
}

/* The new name has the same length, so the data keep the offset. */
static void the_vocabulary_stays_or_is_the_requested_one(void **state)
{
    static const struct {
        const char *before, *request, *after; /* request NULL: only a tensor is renamed */
        uint32_t pad;                         /* after the edit */
        bool is_accepted;
    } rows[] = {
        { "a\nb\n", NULL, "a\nb\n", 1, true },      { "a\nb\n", NULL, "a\nc\n", 1, false },
        { "a\nb\n", NULL, "c\nb\n", 1, false },     { "a\nb\n", NULL, "a\nb\n", 0, false },
        { "a\nb\n", NULL, "a\nb\nc\n", 1, false },  { "a\nb\n", "c\nd\n", "c\nd\n", 1, true },
        { "a\nb\n", "c\nd\n", "c\nd\n", 0, false }, { "a\nb\n", "c\nd\n", "a\nb\n", 1, false },
        { "a\nb\n", NULL, NULL, 1, false },         { "a\nb\n", "c\nd\n", NULL, 1, false },
    };
    heft_rename rename = { HEFT_STR("a"), HEFT_STR("c") };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
        heft_error err;
        model before = { .format = "embd", .is_plain = true, .is_bare = true }, after = before;
        heft_vocab *v[3] = { vocab_of(rows[i].before, 1),
                             rows[i].request ? vocab_of(rows[i].request, 1) : NULL,
                             rows[i].after ? vocab_of(rows[i].after, rows[i].pad) : NULL };
        before.vocab = v[0];
        after.vocab = v[2];
        o.rename = &rename;
        o.rename_count = 1;
        o.vocab = v[1];
        assert_plan(plan(make(&before, NOTHING), make(&after, NAME), &o, &err),
                    rows[i].is_accepted ? NULL : "the edit would change more than requested", &err);
        for (size_t k = 0; k < HEFT_COUNT(v); k++)
            heft_vocab_close(v[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_each_deviation),
        cmocka_unit_test(refuses_a_plan_without_the_requested_value),
        cmocka_unit_test(refuses_a_plan_with_overlapping_parts),
        cmocka_unit_test(refuses_other_scalars_than_requested),
        cmocka_unit_test(refuses_another_generator_or_version),
        cmocka_unit_test(a_value_may_be_stored_as_another_kind),
        cmocka_unit_test(a_value_that_is_removed_must_be_gone),
        cmocka_unit_test(the_configuration_has_little_around_the_request),
        cmocka_unit_test(parts_of_the_file_stay),
        cmocka_unit_test(refuses_other_ids_of_gptrs),
        cmocka_unit_test(the_vocabulary_stays_or_is_the_requested_one),
    };
    return cmocka_run_group_tests_name("edit_differs", tests, NULL, NULL);
}
