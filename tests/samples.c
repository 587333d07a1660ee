/* samples.c - finds sample files and reads the expectations in FILE.json. */
#include "samples.h"

#include <ftw.h>
#include <sys/stat.h>

#include "grammar/json.h"

/* ---- facts ---------------------------------------------------------------------------------- */

typedef struct fact {
    char path[120];
    heft_str text;
} fact;

typedef struct facts {
    heft_bytes json;
    heft_memory mem;
    heft_arena arena;
    fact *at;
    size_t count;
} facts;

enum { MAX_DEPTH = 16 };

typedef struct position { /* position in a JSON document, as a path */
    char path[120];
    size_t prefix[MAX_DEPTH]; /* length of the path of each open container */
    uint32_t index[MAX_DEPTH], depth;
    bool is_list[MAX_DEPTH];
} position;

static void step_into(position *p, bool is_list)
{
    assert_in_range(p->depth, 0, MAX_DEPTH - 1);
    p->prefix[p->depth] = strlen(p->path);
    p->index[p->depth] = 0;
    p->is_list[p->depth++] = is_list;
}

static void name_member(position *p, heft_str key)
{
    size_t at = p->prefix[p->depth - 1];
    snprintf(p->path + at, sizeof p->path - at, "%s%.*s", at ? "." : "", (int)key.len, key.ptr);
}

static void name_element(position *p)
{
    if (p->depth && p->is_list[p->depth - 1]) {
        size_t at = p->prefix[p->depth - 1];
        snprintf(p->path + at, sizeof p->path - at, ".%u", p->index[p->depth - 1]++);
    }
}

static void add_fact(facts *f, const position *p, heft_str text)
{
    if (!(f->count & (f->count - 1))) { /* the capacity is a power of two; the array is full */
        f->at = realloc(f->at, (f->count ? 2 * f->count : 1) * sizeof *f->at);
        assert_non_null(f->at);
    }
    memcpy(f->at[f->count].path, p->path, sizeof p->path);
    f->at[f->count++].text = text;
}

static void read_facts(facts *f)
{
    heft_error err;
    position p = { .depth = 0 };
    heft_str text = { (const char *)f->json.p, f->json.len };
    heft_json j = heft_json_open(text, 0, 64, &f->arena, &err);
    for (heft_json_kind k; (k = heft_json_next(&j)) != HEFT_JSON_END;) {
        if (k == HEFT_JSON_FAILED)
            fail_msg("%s", err.message);
        if (k == HEFT_JSON_OBJECT_END || k == HEFT_JSON_ARRAY_END) {
            p.depth--;
            continue;
        }
        if (k == HEFT_JSON_KEY) {
            name_member(&p, j.text);
            continue;
        }
        name_element(&p);
        heft_str word = { j.token, (size_t)(j.p - j.token) };
        if (k == HEFT_JSON_OBJECT || k == HEFT_JSON_ARRAY)
            step_into(&p, k == HEFT_JSON_ARRAY);
        else
            add_fact(f, &p, k == HEFT_JSON_STRING ? j.text : word);
    }
}

static facts *load_facts(const char *path)
{
    char name[1100];
    facts *f = calloc(1, sizeof *f);
    assert_non_null(f);
    snprintf(name, sizeof name, "%s.json", path);
    f->json = heft_test_load(name);
    f->mem = (heft_memory){ .al = heft_host_default()->allocator, .limit = UINT64_MAX };
    f->arena = (heft_arena){ .mem = &f->mem };
    read_facts(f);
    return f;
}

static void free_facts(facts *f)
{
    if (!f)
        return;
    heft_arena_free(&f->arena);
    heft_test_free(&f->json);
    free(f->at);
    free(f);
}

heft_str heft_test_fact(const sample *s, const char *path, ...)
{
    char full[120];
    va_list ap;
    va_start(ap, path);
    vsnprintf(full, sizeof full, path, ap);
    va_end(ap);
    for (size_t i = 0; i < s->facts->count; i++)
        if (!strcmp(s->facts->at[i].path, full))
            return s->facts->at[i].text;
    return (heft_str){ NULL, 0 };
}

bool heft_test_fact_is(heft_str f, const char *text)
{
    return f.ptr && f.len == strlen(text) && !memcmp(f.ptr, text, f.len);
}

/* ---- finding -------------------------------------------------------------------------------- */

static samples found; /* static because nftw() has no context argument */
static const char *root;

static void add_sample(const char *path, const char *title, sample_kind kind)
{
    found.at = realloc(found.at, (found.count + 1) * sizeof *found.at);
    assert_non_null(found.at);
    sample *s = &found.at[found.count++];
    *s = (sample){ strdup(path), strdup(title), kind, { NULL, { NULL, 0 } }, NULL };
    s->in = (heft_test_input){ s->path, heft_test_load(path) };
    s->facts = kind == SAMPLE_REAL ? NULL : load_facts(path);
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n > m && !strcmp(s + n - m, end);
}

/* Return true if this build reads the format of the title's folder: "mag" for "mag/...", or, as in
 * "gptrs/...", the common prefix of several formats. */
static bool is_read(const char *title)
{
    size_t len = strcspn(title, "/");
    for (uint32_t i = 0; i < heft_format_count(); i++) {
        const char *name = heft_format_name(heft_format_at(i));
        if (!strncmp(name, title, len) && (!name[len] || name[len] == '-'))
            return true;
    }
    return false;
}

static int visit_sample(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    const char *title = path + strlen(root) + 1;
    char data[1024];
    (void)st;
    (void)ftw;
    if (kind != FTW_F || !ends_with(path, ".json") || !is_read(title))
        return 0;
    const char *dir = strchr(title, '/');
    if (strncmp(dir, "/good/", 6) != 0 && strncmp(dir, "/bad/", 5) != 0)
        return 0;
    snprintf(data, sizeof data, "%.*s", (int)(strlen(path) - 5), path);
    add_sample(data, data + strlen(root) + 1, dir[1] == 'g' ? SAMPLE_GOOD : SAMPLE_BAD);
    return 0;
}

/* Return true for real-world PyTorch and safetensors files. Large PyTorch files belong to other
 * tests. */
static bool is_real(const char *path, const struct stat *st)
{
    enum { LARGE = 64 << 10 };
    if (ends_with(path, "/broken.pt")) /* damaged on purpose */
        return false;
    if (strstr(path, "/model_world_size_")) /* tensors of a rank, which Heft refuses */
        return false;
    if (ends_with(path, ".pt") || ends_with(path, ".pth"))
        return st->st_size < LARGE && is_read("torch");
    return ends_with(path, ".safetensors") && is_read("safetensors");
}

static int visit_real(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)ftw;
    bool is_wanted = is_real(path, st) ||
                     (ends_with(path, ".gguf") && is_read("gguf") && !strstr(path, "/damaged/"));
    if (kind == FTW_F && is_wanted)
        add_sample(path, path + strlen(root) + 1, SAMPLE_REAL);
    return 0;
}

static void walk(const char *dir,
                 int (*visit)(const char *, const struct stat *, int, struct FTW *))
{
    struct stat st;
    root = dir;
    if (!stat(dir, &st))
        assert_int_equal(nftw(dir, visit, 16, FTW_PHYS), 0);
}

static int by_title(const void *a, const void *b)
{
    return strcmp(((const sample *)a)->title, ((const sample *)b)->title);
}

samples heft_test_samples(void)
{
    const char *own = getenv("HEFT_SAMPLES"), *shared = getenv("HEFT_SHARED");
    found = (samples){ NULL, 0 };
    if (own)
        walk(own, visit_sample);
    if (shared) {
        walk(heft_test_path(shared, "fixtures"), visit_sample);
        walk(heft_test_path(shared, "data"), visit_real);
    }
    if (found.count)
        qsort(found.at, found.count, sizeof *found.at, by_title);
    return found;
}

void heft_test_samples_free(samples *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free(s->at[i].path);
        free(s->at[i].title);
        heft_test_free(&s->at[i].in.bytes);
        free_facts(s->at[i].facts);
    }
    free(s->at);
    *s = (samples){ NULL, 0 };
}
