/* fuzz_keras.c - fuzzes files of Keras in two ways: libhdf5 reads them in its process, or a host
 * makes up arrays and attributes from the script, so that what Heft makes of them is tried too. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { SCRIPT = 64, ARRAYS = 6, VALUES = 12, RANK = 3, DECODED = 1 << 12 };

/* ---- a made-up container ---- */

typedef struct made {
    heft_container base; /* first member */
    heft_source decoded;
    heft_container_array arrays[ARRAYS];
    heft_container_attribute attributes[2 * VALUES];
    heft_container_alias aliases[2];
    uint64_t dims[ARRAYS][RANK];
} made;

static fuzz_script *script;

static heft_str text(void)
{
    static const char *const texts[] = { "",
                                         "a",
                                         "layers/dense/vars/0",
                                         "model_weights",
                                         "model_weights/dense",
                                         "dense/kernel:0",
                                         "model_weights/dense/dense/kernel:0",
                                         "bfloat16",
                                         "float8_e5m2",
                                         "3.1.0",
                                         "{\"class_name\":\"Sequential\",\"x\":[{}]}",
                                         "{\"class_name\":",
                                         "vars",
                                         "a/b" };
    const char *s = texts[fuzz_next(script) % (sizeof texts / sizeof *texts)];
    return (heft_str){ s, strlen(s) };
}

static heft_str key(void)
{
    static const char *const keys[] = {
        "dtype", "weight_names", "weight_names0", "keras_version", "model_config", "name", ""
    };
    const char *s = keys[fuzz_next(script) % (sizeof keys / sizeof *keys)];
    return (heft_str){ s, strlen(s) };
}

static heft_value value(heft_str name)
{
    static const heft_kind kinds[] = { HEFT_KIND_STR,  HEFT_KIND_STR,   HEFT_KIND_BYTES,
                                       HEFT_KIND_NULL, HEFT_KIND_FLOAT, HEFT_KIND_BOOL };
    heft_value v = { .kind = kinds[fuzz_next(script) % 6], .key = name };
    if (v.kind == HEFT_KIND_STR || v.kind == HEFT_KIND_BYTES)
        v.as.s = text();
    return v;
}

/* Add a value or a list, of at most `most` elements. */
static uint32_t add_values(heft_container_attribute *a, uint32_t most)
{
    uint32_t count = fuzz_next(script) % 4, n = count ? count : 1;
    heft_str name = key(), owner = text();
    for (uint32_t i = 0; n <= most && i < n; i++)
        a[i] = (heft_container_attribute){ owner, value(name), i, count };
    return n <= most ? n : 0;
}

static void make_array(made *m, uint32_t i, uint64_t file_bytes)
{
    static const heft_dtype types[] = { HEFT_F32, HEFT_U16, HEFT_U8, HEFT_C64, HEFT_UNTYPED };
    static const uint32_t sizes[] = { 4, 2, 1, 8, 2 };
    heft_container_array *a = &m->arrays[i];
    uint32_t type = fuzz_next(script) % 5;
    *a = (heft_container_array){ .name = text(),
                                 .dims = m->dims[i],
                                 .rank = fuzz_next(script) % 4,
                                 .dtype = types[type],
                                 .type = type == 4 ? "records" : NULL,
                                 .bytes = sizes[type],
                                 .element_bytes = sizes[type] };
    for (uint32_t d = 0; d < a->rank; d++)
        a->bytes *= m->dims[i][d] = fuzz_next(script) % 5;
    a->is_big_endian = fuzz_next(script) % 2;
    a->is_decoded = fuzz_next(script) % 2;
    uint64_t size = a->is_decoded ? DECODED : file_bytes;
    if (a->bytes > size) {
        a->rank = 1;
        a->bytes = m->dims[i][0] = 0;
    }
    a->offset = size - a->bytes ? fuzz_next(script) % (size - a->bytes) : 0;
}

static heft_status read_decoded(heft_source *s, uint64_t at, void *to, size_t len, heft_error *err)
{
    (void)err;
    fuzz_require(at <= s->size && len <= s->size - at);
    memset(to, (int)at, len);
    return HEFT_OK;
}

static void close_decoded(heft_source *s)
{
    (void)s;
}

static void close_made(heft_container *c)
{
    free(c);
}

static const heft_source_ops decoded_ops = { .size = sizeof(heft_source_ops),
                                             .read = read_decoded,
                                             .close = close_decoded };

static heft_status make(heft_container **out, heft_source *bytes, uint64_t memory, heft_error *err)
{
    made *m = calloc(1, sizeof *m);
    heft_container *c = &m->base;
    (void)memory;
    (void)err;
    fuzz_require(m);
    *c = (heft_container){ .size = sizeof *c,
                           .arrays = m->arrays,
                           .attributes = m->attributes,
                           .aliases = m->aliases,
                           .array_count = fuzz_next(script) % (ARRAYS + 1),
                           .alias_count = fuzz_next(script) % 3,
                           .decoded = &m->decoded,
                           .close = close_made };
    m->decoded = (heft_source){ &decoded_ops, DECODED };
    for (uint32_t i = 0; i < c->array_count; i++) {
        heft_container_array *a = &m->arrays[i];
        make_array(m, i, bytes->size);
        a->first_attribute = c->attribute_count;
        a->attribute_count = add_values(m->attributes + c->attribute_count,
                                        VALUES - c->attribute_count);
        c->attribute_count += a->attribute_count;
    }
    for (uint32_t n = fuzz_next(script) % 4; n; n--)
        c->group_attributes += add_values(m->attributes + c->attribute_count + c->group_attributes,
                                          VALUES - c->group_attributes);
    c->attribute_count += c->group_attributes;
    for (uint32_t i = 0; i < c->alias_count; i++)
        m->aliases[i] = (heft_container_alias){ text(), i ? text() : (heft_str){ NULL, 0 } };
    *out = c;
    return HEFT_OK;
}

/* ---- the model ---- */

static void look_at(const heft_file *f)
{
    heft_hash hash;
    uint64_t sum = 0;
    for (uint32_t id = 0; id < heft_tensor_count(f); id++) {
        heft_tensor t = heft_tensor_at(f, id);
        fuzz_require(heft_tensor_find(f, t.name) == id);
        for (uint32_t i = 0, n = heft_attribute_count(f, id); i < n; i++)
            sum += heft_attribute_at(f, id, i).key.len;
    }
    for (uint32_t i = 0; i < heft_meta_count(f); i = heft_meta_next(f, i))
        sum += heft_meta_at(f, i).key.len;
    fuzz_use(sum + fuzz_faults(f));
    if (fuzz_is_small(f))
        fuzz_use(fuzz_hash(&hash, f));
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_file *f = NULL;
    fuzz_memory m;
    fuzz_memory_init(&m, UINT32_MAX);
    script = s;
    m.host.open_hdf5 = fuzz_next(s) % 8 ? make : heft_host_default()->open_hdf5;
    opt.host = &m.host;
    opt.limits = &fuzz_limits;
    opt.no_verify = true;
    heft_status st = fuzz_open(&f, data, size, &opt);
    if (!st)
        look_at(f);
    heft_file_close(f);
    fuzz_require(!m.live);
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = SCRIPT };
