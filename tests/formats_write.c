/* formats_write.c - checks of samples converted to their own format, to every other format and
 * back. */
#include "every_format.h"

/* ---- losses --------------------------------------------------------------------------------- */

typedef struct loss { /* the loss of a tensor; `name` is a copy */
    heft_str name;
    heft_severity severity;
} loss;

typedef struct losses {
    uint32_t count[3];  /* by severity */
    uint32_t odd_names; /* names that npz and GGUF keep with a warning */
    uint32_t ranks;     /* ranks, of mag and of processes, that are kept with a warning */
    loss *tensors;
    size_t tensor_count;
} losses;

static void note_loss(void *ctx, heft_severity s, const char *rule, heft_str tensor,
                      const char *text)
{
    losses *l = ctx;
    assert_non_null(rule);
    assert_non_null(text);
    l->count[s]++;
    bool is_long = s == HEFT_WARNING && !strcmp(rule, "gguf/long-name");
    l->odd_names += is_long || (s == HEFT_WARNING && !strcmp(rule, "npz/name"));
    l->ranks += s == HEFT_WARNING &&
                (!strcmp(rule, "mag/rank") || !strcmp(rule, "torch/rank-alone"));
    if (!tensor.ptr || is_long)
        return;
    l->tensors = realloc(l->tensors, (l->tensor_count + 1) * sizeof *l->tensors);
    assert_non_null(l->tensors);
    heft_bytes name = heft_test_copy(tensor.ptr, tensor.len);
    l->tensors[l->tensor_count++] = (loss){ { (char *)name.p, name.len }, s };
}

static void free_losses(losses *l)
{
    for (size_t i = 0; i < l->tensor_count; i++)
        free((char *)(uintptr_t)l->tensors[i].name.ptr);
    free(l->tensors);
    *l = (losses){ .tensors = NULL };
}

/* Return true if a loss of at least this severity was reported for the tensor. */
static bool was_reported(const losses *l, heft_str name, heft_severity least)
{
    for (size_t i = 0; i < l->tensor_count; i++)
        if (l->tensors[i].severity >= least && l->tensors[i].name.len == name.len &&
            !memcmp(l->tensors[i].name.ptr, name.ptr, name.len))
            return true;
    return false;
}

/* ---- models --------------------------------------------------------------------------------- */

static heft_hash *hash(const heft_file *f, heft_hash *model)
{
    heft_error err;
    heft_hash *tensors = calloc(heft_tensor_count(f) + 1u, sizeof *tensors);
    assert_non_null(tensors);
    heft_status st = heft_file_hash(model, tensors, f, NULL, NULL, &err);
    if (!st || !heft_test_is_rule(&err, "heft/left-out")) /* only the model has no hash */
        heft_assert_ok(st, &err);
    return tensors;
}

/* Return the tensor of `b`, converted from `a`, that corresponds to tensor i of `a`. Formats for a
 * single tensor do not store a name. */
static uint32_t counterpart(const heft_file *a, uint32_t i, const heft_file *b, const losses *lost)
{
    heft_str name = heft_tensor_at(a, i).name;
    if (!(heft_format_caps(heft_file_format(b)) & HEFT_ONE_TENSOR))
        return heft_tensor_find(b, name);
    return was_reported(lost, name, HEFT_WARNING) ? HEFT_NONE : 0;
}

/* Assert that `b` contains every tensor of `a` except reported losses, that the tensors are equal
 * unless a note reported a change, and that `b` contains no other tensors. */
static void compare_models(const heft_file *a, const heft_file *b, const losses *lost)
{
    bool has_any;
    heft_hash left_out;
    heft_error err;
    /* A conversion loses the content that the hash of the model covers, too. */
    heft_status st = heft_left_out_hash(&left_out, &has_any, a, &err);
    bool is_whole = !st && !has_any;
    heft_hash model_a, model_b, *in_a = hash(a, &model_a), *in_b = hash(b, &model_b);
    uint32_t found = 0;
    for (uint32_t i = 0; i < heft_tensor_count(a); i++) {
        heft_tensor t = heft_tensor_at(a, i);
        uint32_t k = counterpart(a, i, b, lost);
        found += k != HEFT_NONE;
        if (was_reported(lost, t.name, HEFT_WARNING))
            continue;
        assert_int_not_equal(k, HEFT_NONE);
        if (!was_reported(lost, t.name, HEFT_NOTE))
            assert_memory_equal(&in_a[i], &in_b[k], sizeof in_a[i]);
    }
    assert_int_equal(found, heft_tensor_count(b));
    if (is_whole && !lost->tensor_count)
        assert_memory_equal(&model_a, &model_b, sizeof model_a);
    free(in_a);
    free(in_b);
}

/* ---- writing -------------------------------------------------------------------------------- */

typedef struct target {
    const heft_format *format;
    const char *version; /* or NULL */
} target;

typedef struct written {
    heft_test_sink sink;
    heft_bytes bytes; /* copy, owned */
    losses lost;
} written;

static bool is_written(const heft_format *f)
{
    return heft_format_caps(f) & HEFT_CAN_WRITE;
}

/* Return the file's own format, or ztensor, the format for any model. */
static target native_target(const heft_file *f)
{
    const heft_format *own = heft_file_format(f);
    return (target){ is_written(own) ? own : heft_format_find(HEFT_STR("ztensor")), NULL };
}

static heft_write_options options_for(const target *t, losses *lost)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    write.version = t->version;
    write.on_loss = note_loss;
    write.ctx = lost;
    return write;
}

/* Assert that nothing is written if there are losses that the options do not allow. */
static void assert_losses_refused(const heft_file *f, const target *t, bool strict)
{
    heft_test_sink sink;
    heft_error err;
    losses lost = { .tensors = NULL };
    heft_write_options write = options_for(t, &lost);
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    opt.write = &write;
    write.strict = strict;
    opt.no_verify = true;
    heft_status st = heft_file_convert(f, t->format, heft_test_sink_init(&sink, false), &opt, &err);
    if (st == HEFT_OK || st == HEFT_E_LOSSY) {
        assert_int_equal(st == HEFT_E_LOSSY, lost.count[HEFT_FAULT] > 0);
        assert_true(!strict || !lost.count[HEFT_WARNING]);
    }
    assert_int_equal(sink.finished, !st);
    if (st)
        assert_int_equal(sink.len, 0);
    heft_test_sink_free(&sink);
    free_losses(&lost);
}

/* True if parts stay compressed because the file is converted to its own format. The
 * compressed size is known only after the write. */
static bool keeps_compressed(const heft_file *f, const target *t)
{
    bool any = false;
    for (uint32_t i = 0; i < heft_tensor_count(f) && !any; i++) {
        heft_tensor tensor = heft_tensor_at(f, i);
        for (uint32_t k = 0; k < tensor.part_count && !any; k++)
            any = heft_part_at(f, tensor.first_part + k).encoding == HEFT_ZSTD;
    }
    return any && t->format == heft_file_format(f) && heft_format_caps(t->format) & HEFT_CAN_ENCODE;
}

static void assert_planned(const heft_file *f, const target *t, uint64_t size)
{
    heft_error err;
    uint64_t planned = 0;
    losses lost = { .tensors = NULL };
    heft_write_options write = options_for(t, &lost);
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    opt.write = &write;
    write.allow_loss = opt.no_verify = opt.dry_run = true;
    opt.planned_bytes = &planned;
    heft_assert_ok(heft_file_convert(f, t->format, NULL, &opt, &err), &err);
    if (keeps_compressed(f, t))
        assert_true(planned >= size); /* the plan counts uncompressed bytes */
    else
        assert_int_equal(planned, size);
    free_losses(&lost);
}

/* Convert the file; return false if the target cannot hold the model. */
static bool write_as(written *w, const heft_file *f, const target *t)
{
    heft_error err;
    *w = (written){ .bytes = { NULL, 0 } };
    heft_write_options write = options_for(t, &w->lost);
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    opt.write = &write;
    write.allow_loss = opt.no_verify = true;
    heft_status st = heft_file_convert(f, t->format, heft_test_sink_init(&w->sink, false), &opt,
                                       &err);
    bool is_broken = (st == HEFT_E_FORMAT || st == HEFT_E_UNSUPPORTED || st == HEFT_E_IO) &&
                     !heft_test_is_readable(f);
    is_broken = is_broken || (st == HEFT_E_UNSUPPORTED && !is_written(t->format));
    bool loses_all = st && heft_test_is_rule(&err, "heft/all-left-out");
    if (st == HEFT_E_ARGUMENT || st == HEFT_E_LOSSY || is_broken || loses_all) {
        assert_true(w->sink.discarded);
        heft_test_sink_free(&w->sink);
        free_losses(&w->lost);
        return false;
    }
    heft_assert_ok(st, &err);
    w->bytes = heft_test_copy(w->sink.p, w->sink.len);
    heft_test_sink_free(&w->sink);
    assert_int_equal(w->sink.reserved, keeps_compressed(f, t) ? 0 : w->bytes.len);
    assert_planned(f, t, w->bytes.len);
    assert_losses_refused(f, t, false);
    assert_losses_refused(f, t, true);
    return true;
}

static void free_written(written *w)
{
    heft_test_free(&w->bytes);
    free_losses(&w->lost);
}

/* Count warnings about names and types that one format has and another has not: a name may look
 * like a path in one of them only, and only PyTorch has types without arithmetic. */
static uint32_t count_name_warnings(const char *findings)
{
    uint32_t count = 0;
    for (const char *at = findings; (at = strstr(at, "/name ")); at++)
        count++;
    for (const char *at = findings; (at = strstr(at, "torch/similar-type ")); at++)
        count++;
    return count;
}

/* Verify the source; count invalid bool values as faults, since format versions differ in severity,
 * and leave out warnings about names. */
static heft_verify_result verified(const heft_file *f)
{
    heft_verify_result result;
    heft_error err;
    heft_status st;
    char *findings = heft_test_findings(&result, &st, f, &err), *at = findings;
    heft_assert_ok(st, &err);
    for (; (at = strstr(at, "warning heft/bool-value")); at++) {
        result.faults++;
        result.warnings--;
    }
    result.warnings -= count_name_warnings(findings);
    free(findings);
    return result;
}

/* Open the written file; assert that its format is recognised and that verify() finds nothing that
 * was neither in the source nor reported as a loss. */
static heft_file *reopen(const written *w, const target *t, const heft_file *of)
{
    heft_error err;
    heft_file *f;
    heft_verify_result result;
    heft_status st;
    heft_assert_ok(heft_test_open(&f, w->bytes, NULL, &err), &err);
    assert_ptr_equal(heft_file_format(f), t->format);
    char *findings = heft_test_findings(&result, &st, f, &err);
    heft_assert_ok(st, &err);
    heft_verify_result source = verified(of);
    result.warnings -= count_name_warnings(findings);
    if (result.faults > source.faults ||
        result.warnings + result.faults >
            source.warnings + source.faults + w->lost.count[HEFT_NOTE] + w->lost.ranks)
        fail_msg("verify() finds more in the written file than in the source: %s", findings);
    free(findings);
    return f;
}

/* Assert that a file written by Heft is written again byte for byte. */
static void assert_fixed_point(const heft_file *f, heft_bytes b, const target *t)
{
    written again;
    assert_true(write_as(&again, f, t));
    assert_int_equal(again.lost.count[HEFT_WARNING], again.lost.odd_names + again.lost.ranks);
    assert_int_equal(again.lost.count[HEFT_FAULT], 0);
    heft_assert_same_bytes(b, again.bytes);
    free_written(&again);
}

static void assert_same_model(const heft_file *a, const heft_file *b)
{
    char *in_a = heft_test_dump(a, DUMP_MODEL), *in_b = heft_test_dump(b, DUMP_MODEL);
    heft_assert_same_text(in_a, in_b);
    free(in_a);
    free(in_b);
}

static void rewrite(const heft_file *f, const target *t, bool is_bad)
{
    written w;
    if (!write_as(&w, f, t))
        return;
    heft_file *back = reopen(&w, t, f);
    compare_models(f, back, &w.lost);
    if (!is_bad && !w.lost.count[HEFT_NOTE] && !w.lost.count[HEFT_WARNING] &&
        !w.lost.count[HEFT_FAULT])
        assert_same_model(f, back);
    assert_fixed_point(back, w.bytes, t);
    heft_file_close(back);
    free_written(&w);
}

/* Samples written by other programs ($HEFT_SHARED/fixtures), and the version that rewrites them
 * byte for byte. Generated samples state the version in FILE.json ("rewritten"). */
static const struct {
    const char *part_of_title, *version;
} rewritten[] = {
    { "burnpack/good/burnpack_020_", "0.20" },
    { "burnpack/good/burnpack_021_", "0.21" },
    { "burnpack/good/burnpack_022p2_", "0.22-pre.2" },
    { "burnpack/good/burnpack_head_", "0.22" },
};

static void rewrite_same(const heft_file *f, const sample *s)
{
    heft_str fact = s->facts ? heft_test_fact(s, "rewritten") : (heft_str){ NULL, 0 };
    char version[16] = "";
    written w;
    snprintf(version, sizeof version, "%.*s", (int)fact.len, fact.ptr ? fact.ptr : "");
    for (size_t i = 0; i < HEFT_COUNT(rewritten); i++)
        if (strstr(s->title, rewritten[i].part_of_title))
            snprintf(version, sizeof version, "%s", rewritten[i].version);
    if (!*version)
        return;
    target t = { heft_file_format(f), version };
    assert_true(write_as(&w, f, &t));
    heft_assert_same_bytes(s->in.bytes, w.bytes);
    free_written(&w);
}

void check_rewritten(const sample *s)
{
    heft_file *f;
    char versions[64], *rest = versions;
    if (open_sample(&f, s, NULL, NULL))
        return;
    rewrite_same(f, s);
    target t = { heft_file_format(f), NULL };
    rewrite(f, &t, s->kind == SAMPLE_BAD);
    snprintf(versions, sizeof versions, "%s", heft_format_versions(t.format));
    while ((t.version = strtok_r(rest, " ", &rest)))
        rewrite(f, &t, s->kind == SAMPLE_BAD);
    heft_file_close(f);
}

/* ---- other formats -------------------------------------------------------------------------- */

static void round_trip(const heft_file *f, const target *other, const target *back)
{
    written out, round_tripped;
    if (!write_as(&out, f, other))
        return;
    heft_file *g = reopen(&out, other, f);
    compare_models(f, g, &out.lost);
    if (write_as(&round_tripped, g, back)) {
        heft_file *h = reopen(&round_tripped, back, g);
        compare_models(g, h, &round_tripped.lost);
        if (!out.lost.tensor_count && !round_tripped.lost.tensor_count)
            compare_models(f, h, &round_tripped.lost);
        heft_file_close(h);
        free_written(&round_tripped);
    }
    heft_file_close(g);
    free_written(&out);
}

void check_other_formats(const sample *s)
{
    heft_file *f;
    if (open_sample(&f, s, NULL, NULL))
        return;
    target back = { heft_file_format(f), NULL };
    bool is_readable = heft_test_is_readable(f);
    for (uint32_t i = 0; is_readable && i < heft_format_count(); i++) {
        target other = { heft_format_at(i), NULL };
        if (other.format != back.format && is_written(other.format))
            round_trip(f, &other, &back);
    }
    heft_file_close(f);
}

/* ---- sinks and threads ---------------------------------------------------------------------- */

static heft_bytes write_with(const heft_file *f, const target *t, uint32_t threads, bool is_stream)
{
    heft_test_host h;
    heft_test_sink sink;
    heft_error err;
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    heft_test_host_init(&h, threads);
    opt.write = &write;
    write.host = &h.host;
    write.allow_loss = opt.no_verify = true;
    heft_assert_ok(
        heft_file_convert(f, t->format, heft_test_sink_init(&sink, is_stream), &opt, &err), &err);
    assert_true(sink.finished);
    heft_bytes b = heft_test_copy(sink.p, sink.len);
    heft_test_sink_free(&sink);
    return b;
}

static void fill_sink(const heft_file *f, const target *t, uint64_t capacity, bool is_stream)
{
    heft_test_sink sink;
    heft_error err;
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    heft_sink *to = heft_test_sink_init(&sink, is_stream);
    sink.fail_from = capacity;
    opt.write = &write;
    write.allow_loss = opt.no_verify = true;
    heft_assert_fails(heft_file_convert(f, t->format, to, &opt, &err), HEFT_E_IO, &err,
                      "the sink is full");
    assert_true(sink.discarded);
    heft_test_sink_free(&sink);
}

void check_sinks(const sample *s)
{
    heft_file *f, *plain;
    heft_error err;
    written w;
    if (open_sample(&f, s, NULL, NULL))
        return;
    target t = native_target(f);
    if (write_as(&w, f, &t)) {
        heft_assert_ok(heft_test_open_methods[3].open(&plain, &s->in, NULL, &err), &err);
        for (int i = 0; i < 8; i++) {
            heft_bytes b = write_with(i & 4 ? plain : f, &t, i & 2 ? 4 : 1, i & 1);
            heft_assert_same_bytes(b, w.bytes);
            heft_test_free(&b);
        }
        for (uint64_t i = 0; i < 8; i++)
            fill_sink(f, &t, w.bytes.len * i / 8, i & 1);
        fill_sink(f, &t, w.bytes.len - 1, true);
        heft_file_close(plain);
        free_written(&w);
    }
    heft_file_close(f);
}
