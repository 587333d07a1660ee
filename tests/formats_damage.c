/* formats_damage.c - checks of samples that are truncated, damaged, or used while memory runs
 * out. */
#include "every_format.h"

/* Most bytes of memory for each byte of the file, and for any file. The worst records are metadata
 * entries of eleven bytes in JSON, whose columns double while they grow. */
enum { PEAK_FACTOR = 32, PEAK_BASE = 16 << 10 };

static bool is_refusal(heft_status st)
{
    return st == HEFT_E_FORMAT || st == HEFT_E_UNSUPPORTED || st == HEFT_E_LIMIT ||
           st == HEFT_E_CHECKSUM;
}

/* True for the status of a part that does not decode or lies in a missing shard. */
static bool is_unreadable(heft_status st)
{
    return st == HEFT_E_FORMAT || st == HEFT_E_UNSUPPORTED || st == HEFT_E_IO;
}

static void assert_refused(heft_status st, const heft_error *err)
{
    if (!is_refusal(st) || err->status != st || !err->message[0])
        fail_msg("%s: %s", heft_status_name(st), err->message);
}

/* ---- operations on a file ------------------------------------------------------------------- */

static heft_status verify(const heft_file *f, heft_error *err)
{
    return heft_file_verify(NULL, f, NULL, err);
}

static heft_status hash(const heft_file *f, heft_error *err)
{
    heft_hash model, *tensors = calloc(heft_tensor_count(f) + 1u, sizeof *tensors);
    assert_non_null(tensors);
    heft_status st = heft_file_hash(&model, tensors, f, NULL, NULL, err);
    free(tensors);
    /* only the model has no hash */
    return st && heft_test_is_rule(err, "heft/left-out") ? HEFT_OK : st;
}

/* Return the format with number i among those that can be written; NULL past the last. */
static const heft_format *writable(size_t i)
{
    for (uint32_t k = 0, n = 0; k < heft_format_count(); k++)
        if (heft_format_caps(heft_format_at(k)) & HEFT_CAN_WRITE && n++ == i)
            return heft_format_at(k);
    return NULL;
}

static size_t writable_count(void)
{
    size_t n = 0;
    while (writable(n))
        n++;
    return n;
}

static heft_status convert_to(const heft_file *f, const heft_format *target, bool verifies,
                              const heft_host *host, heft_error *err)
{
    heft_test_sink sink;
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    opt.write = &write;
    write.allow_loss = true;
    write.host = host;
    opt.no_verify = !verifies;
    heft_status st = heft_file_convert(f, target, heft_test_sink_init(&sink, false), &opt, err);
    assert_int_equal(sink.finished, !st);
    assert_int_equal(sink.discarded, !!st);
    heft_test_sink_free(&sink);
    return st;
}

/* True if the tensors are large: a kilobyte may decode to gigabytes, so few such files are used. */
static bool is_large(const heft_file *f)
{
    enum { LARGE = 256 << 10 };
    uint64_t sum = 0;
    for (uint32_t i = 0; i < heft_tensor_count(f) && sum <= LARGE; i++)
        sum += heft_tensor_bytes(f, i) < LARGE ? heft_tensor_bytes(f, i) : LARGE + 1;
    return sum > LARGE;
}

/* Return true if verify() finds a value that the format forbids, or a part that does not decode;
 * reading the tensors finds neither forbidden values nor damage of parts without values. */
static bool has_invalid_data(const heft_file *f)
{
    static const char *const faults[] = { "fault heft/decode", "fault heft/bool-value",
                                          "fault heft/half-byte" };
    heft_verify_result result;
    heft_error err;
    heft_status st;
    bool any = false;
    char *findings = heft_test_findings(&result, &st, f, &err);
    for (size_t i = 0; i < HEFT_COUNT(faults) && !any; i++)
        any = strstr(findings, faults[i]);
    free(findings);
    return any;
}

/* Read, verify, hash and convert an open file, which may be damaged. Each operation must end with
 * success or with one of the allowed errors. */
static void use_file(const heft_file *f, uint32_t round, const heft_host *host)
{
    heft_error err;
    if (round % 128 && is_large(f))
        return;
    bool is_readable = heft_test_is_readable(f); /* a compressed part may be damaged */
    if (round % 8 == 0)
        free(heft_test_dump(f, DUMP_ALL));
    heft_assert_ok(verify(f, &err), &err);
    heft_status st = hash(f, &err);
    if (st && (is_readable || !is_unreadable(st)))
        fail_msg("hashing ended with %s: %s", heft_status_name(st), err.message);
    st = convert_to(f, writable((round >> 1) % writable_count()), round & 1, host, &err);
    if (st && st != HEFT_E_LOSSY && st != HEFT_E_CHECKSUM && st != HEFT_E_UNSUPPORTED &&
        st != HEFT_E_ARGUMENT && (is_readable || !is_unreadable(st)) &&
        (st != HEFT_E_FORMAT || !has_invalid_data(f)))
        fail_msg("converting ended with %s: %s", heft_status_name(st), err.message);
}

/* ---- truncated ------------------------------------------------------------------------------ */

static void open_truncated(const sample *s, size_t len)
{
    heft_test_memory m;
    heft_error err;
    heft_file *f;
    heft_bytes b = heft_test_copy(s->in.bytes.p, len);
    heft_test_memory_init(&m, 0);
    heft_status st = heft_test_open(&f, b, &m.host, &err);
    assert_in_range(atomic_load(&m.peak), 0, PEAK_BASE + PEAK_FACTOR * (uint64_t)len);
    if (st)
        assert_refused(st, &err);
    else
        use_file(f, (uint32_t)len, heft_host_default());
    heft_file_close(f);
    heft_assert_all_freed(&m);
    heft_test_free(&b);
}

static void feed_truncated(const sample *s, size_t len)
{
    heft_test_memory m;
    heft_error err;
    heft_file *f;
    heft_test_input in = { NULL, heft_test_copy(s->in.bytes.p, len) };
    const heft_test_open_method *method =
        &heft_test_open_methods[heft_test_open_method_count - 1 - len % 3];
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_test_memory_init(&m, 0);
    opt.host = &m.host;
    heft_status st = method->open(&f, &in, &opt, &err);
    if (st)
        assert_refused(st, &err);
    heft_file_close(f);
    heft_assert_all_freed(&m);
    heft_test_free(&in.bytes);
}

void check_truncated(const sample *s)
{
    enum { SMALL = 3000, HEAD = 600, TAIL = 70, SAMPLED = 300 };
    size_t size = s->in.bytes.len, middle = size > SMALL ? size - HEAD - TAIL : 0;
    if (s->kind == SAMPLE_BAD) { /* few lengths suffice: a bad sample is refused anyway */
        for (size_t i = 0; i < 32; i++)
            open_truncated(s, size * i / 32);
        return;
    }
    for (size_t len = 0; len < (middle ? HEAD : size); len++) {
        open_truncated(s, len);
        if (len % 5 == 0)
            feed_truncated(s, len);
    }
    for (size_t i = 0; i < SAMPLED && middle; i++)
        open_truncated(s, HEAD + middle / SAMPLED * i);
    for (size_t len = size - TAIL; middle && len < size; len++)
        open_truncated(s, len);
}

/* ---- damaged -------------------------------------------------------------------------------- */

/* Return a malloc'ed array: for each byte of the file, true if the byte is payload. A file that
 * does not open has no payload. */
static bool *payload_of(const sample *s)
{
    heft_file *f;
    uint32_t first;
    bool *is_payload = calloc(s->in.bytes.len + 1, 1);
    assert_non_null(is_payload);
    if (open_sample(&f, s, NULL, NULL))
        return is_payload;
    heft_file_parts(f, &first);
    if (heft_file_size(f) != s->in.bytes.len) /* a gzip file: offsets refer to the decoded bytes */
        first = 0;
    for (uint32_t i = 0; i < first; i++) {
        heft_part p = heft_part_at(f, i);
        memset(is_payload + p.offset, 1, (size_t)p.stored);
    }
    heft_file_close(f);
    return is_payload;
}

static void open_damaged(const heft_bytes *b, uint32_t round, const heft_host *host)
{
    heft_error err;
    heft_file *f;
    heft_source *source;
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    opt.host = host;
    opt.no_verify = round % 4; /* otherwise a wrong checksum hides most other errors */
    heft_assert_ok(heft_source_open_memory(&source, b->p, b->len, &err), &err);
    heft_status st = heft_file_open_source(&f, source, &opt, &err);
    if (st)
        assert_refused(st, &err);
    else
        use_file(f, round, host);
    heft_file_close(f);
}

static void damage_byte(heft_bytes *b, size_t at, uint32_t *round, const heft_host *host)
{
    uint8_t original = b->p[at];
    const uint8_t values[] = { 0,
                               0xFF,
                               (uint8_t)(original ^ 1),
                               (uint8_t)(original ^ 0x80),
                               (uint8_t)(original + 1),
                               (uint8_t)(original - 1),
                               '"' };
    for (size_t i = 0; i < HEFT_COUNT(values); i++) {
        if (values[i] == original)
            continue;
        b->p[at] = values[i];
        open_damaged(b, ++*round, host);
    }
    b->p[at] = original;
}

void check_damaged(const sample *s)
{
    heft_test_host h;
    heft_bytes b = heft_test_copy(s->in.bytes.p, s->in.bytes.len);
    bool *is_payload = payload_of(s);
    bool is_good = s->kind == SAMPLE_GOOD; /* damage more bytes than of the other kinds */
    uint32_t round = 0;
    size_t index_bytes = 0, seen = 0, first = heft_test_fewer(is_good ? 24 : 12);
    size_t max_damaged = heft_test_fewer(is_good ? 50 : 10);
    heft_test_host_init(&h, 1);
    for (size_t i = 0; i < b.len; i++)
        index_bytes += !is_payload[i];
    size_t stride = index_bytes / max_damaged + 1;
    for (size_t i = 0; i < b.len; i++)
        if (!is_payload[i] && (seen++ % stride == 0 || seen < first))
            damage_byte(&b, i, &round, &h.host);
    for (size_t i = 0; i < 4 && b.len; i++)
        damage_byte(&b, b.len * i / 4, &round, &h.host);
    free(is_payload);
    heft_test_free(&b);
}

/* ---- memory that runs out ------------------------------------------------------------------- */

typedef struct operation {
    const char *name;
    heft_status (*run)(const heft_file *f, const heft_format *target, heft_test_memory *m,
                       heft_error *err);
    const heft_format *target; /* result of run_convert() */
} operation;

static heft_status run_verify(const heft_file *f, const heft_format *target, heft_test_memory *m,
                              heft_error *err)
{
    (void)target;
    (void)m;
    return verify(f, err);
}

static heft_status run_hash(const heft_file *f, const heft_format *target, heft_test_memory *m,
                            heft_error *err)
{
    (void)target;
    (void)m;
    return hash(f, err);
}

static heft_status run_convert(const heft_file *f, const heft_format *target, heft_test_memory *m,
                               heft_error *err)
{
    heft_status st = convert_to(f, target, false, &m->host, err);
    bool cannot_hold = st == HEFT_E_ARGUMENT || st == HEFT_E_LOSSY ||
                       (st &&
                        heft_test_is_rule(err, "heft/all-left-out")); /* even with enough memory */
    return cannot_hold ? HEFT_OK : st;
}

/* Open a sample while request n fails; return false if fewer requests were made. */
static bool starve_opening(const heft_test_open_method *method, const sample *s, uint32_t n,
                           bool keeps_failing)
{
    heft_test_memory m;
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_error err;
    heft_file *f;
    heft_test_memory_init(&m, n);
    m.keeps_failing = keeps_failing;
    opt.host = &m.host;
    heft_test_poison(&err);
    heft_status st = method->open(&f, &s->in, &opt, &err);
    heft_assert_error_set(st, &err);
    bool is_reached = atomic_load(&m.calls) >= n;
    if (st && (!is_reached || st != HEFT_E_NOMEM))
        assert_refused(st, &err);
    heft_file_close(f);
    heft_assert_all_freed(&m);
    return is_reached;
}

/* Run an operation while request n fails; return false if fewer requests were made. */
static bool starve(const operation *o, const sample *s, uint32_t n, bool keeps_failing)
{
    heft_test_memory m;
    heft_error err;
    heft_file *f;
    heft_test_memory_init(&m, 0);
    heft_assert_ok(open_sample(&f, s, &m.host, &err), &err);
    heft_test_memory_rewind(&m);
    m.fail_at = n;
    m.keeps_failing = keeps_failing;
    heft_test_poison(&err);
    heft_status st = o->run(f, o->target, &m, &err);
    heft_assert_error_set(st, &err);
    bool is_reached = atomic_load(&m.calls) >= n;
    if (st && (st != HEFT_E_NOMEM || !is_reached))
        fail_msg("%s: %s: %s", o->name, heft_status_name(st), err.message);
    heft_file_close(f);
    heft_assert_all_freed(&m);
    return is_reached;
}

/* Return the next request to fail: increasingly few, because later requests of a sample are alike.
 * With HEFT_TEST_ALL every request of samples without hundreds of tensors or values fails; with
 * HEFT_TEST_FEWER fewer do, for sanitizer builds that take ten times as long. */
static uint32_t next_request(uint32_t n, bool has_many)
{
    static const char *fewer, *all;
    fewer = fewer ? fewer : getenv("HEFT_TEST_FEWER");
    all = all ? all : getenv("HEFT_TEST_ALL");
    return n + 1 + (fewer ? n / 8 : has_many || !all ? n / 32 : 0);
}

static bool has_many(const heft_file *f)
{
    enum { MANY = 256 };
    return heft_tensor_count(f) > MANY || heft_meta_count(f) > MANY;
}

static void starve_each_request(operation o, const sample *s, bool many)
{
    for (uint32_t n = 1; starve(&o, s, n, n & 1); n = next_request(n, many))
        ;
}

void check_memory(const sample *s)
{
    heft_file *f;
    bool opens = !open_sample(&f, s, NULL, NULL), many = opens && has_many(f);
    for (size_t method = 0; method < heft_test_open_method_count; method++)
        for (uint32_t n = 1; starve_opening(&heft_test_open_methods[method], s, n, n & 1);
             n = next_request(n, many))
            ;
    if (!opens)
        return;
    bool is_readable = heft_test_is_readable(f);
    heft_file_close(f);
    starve_each_request((operation){ "verify", run_verify, NULL }, s, many);
    if (!is_readable)
        return;
    starve_each_request((operation){ "hash", run_hash, NULL }, s, many);
    for (size_t i = 0; writable(i); i++)
        starve_each_request((operation){ "convert", run_convert, writable(i) }, s, many);
}
