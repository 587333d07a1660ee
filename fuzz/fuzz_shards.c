/* fuzz_shards.c - fuzzes models in several files, in memory: a model is split, opened again and
 * compared; then a file of the set is damaged or missing.  A sound set verifies without faults, and
 * a damaged set opens, verifies and converts without harm.  The input itself is opened as an index,
 * too, in a folder where every name is the input. */
#include <stdlib.h>
#include <string.h>

#include <heft/split.h>

#include "fuzz_request.h"

enum { MAX_FILES = 32, NAME_BYTES = 128 };

typedef struct folder {
    heft_shard_folder shards;
    const heft_host *host;
    fuzz_bytes files[MAX_FILES];
    char names[MAX_FILES][NAME_BYTES];
    uint32_t count;
    uint32_t missing; /* number of a file that cannot be opened, or MAX_FILES */
    bool is_one_file; /* every name is file 0 */
} folder;

static heft_status fail(heft_status st, heft_error *err)
{
    if (err)
        *err = (heft_error){ .status = st, .offset = HEFT_NOWHERE, .message = "not in the folder" };
    return st;
}

static heft_status open_shard(heft_source **out, void *ctx, const char *name, heft_error *err)
{
    folder *d = ctx;
    for (uint32_t i = 0; i < d->count; i++)
        if (d->is_one_file || (i != d->missing && !strcmp(d->names[i], name)))
            return heft_source_open_memory(out, d->files[i].ptr, d->files[i].len, err);
    return fail(HEFT_E_NOTFOUND, err);
}

static heft_status list_names(void *ctx, void (*fn)(void *arg, const char *name), void *arg,
                              heft_error *err)
{
    folder *d = ctx;
    (void)err;
    for (uint32_t i = 0; i < d->count; i++)
        fn(arg, d->names[i]);
    return HEFT_OK;
}

static heft_status add_file(heft_sink **out, void *ctx, const char *name, heft_error *err)
{
    folder *d = ctx;
    if (d->count == MAX_FILES)
        return fail(HEFT_E_LIMIT, err);
    fuzz_require(strlen(name) < NAME_BYTES);
    strcpy(d->names[d->count], name);
    *out = fuzz_sink_at(&d->files[d->count++]);
    return HEFT_OK;
}

static heft_file *open_set(folder *d, uint32_t first)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_file *f = NULL;
    d->shards = (heft_shard_folder){ .size = sizeof d->shards,
                                     .name = d->names[first],
                                     .open = open_shard,
                                     .ctx = d,
                                     .list = list_names };
    opt.host = d->host;
    opt.limits = &fuzz_limits;
    opt.shards = &d->shards;
    heft_status st = fuzz_open(&f, d->files[first].ptr, d->files[first].len, &opt);
    fuzz_require(!st == (f != NULL));
    return f;
}

/* Convert the set to any format. */
static void convert(const folder *d, const heft_file *f, fuzz_script *s)
{
    const heft_format *to = fuzz_writable(fuzz_next(s));
    fuzz_request r;
    fuzz_bytes bytes = { .ptr = NULL };
    heft_error err = fuzz_no_error();
    bool is_complete = !heft_file_is_complete(f, NULL);
    fuzz_request_init(&r, d->host, to, s);
    heft_status st = fuzz_is_small(f) ? heft_file_convert(f, to, fuzz_sink_at(&bytes), &r.opt, &err)
                                      : HEFT_E_LIMIT;
    fuzz_require(is_complete || st || r.opt.keep || r.losses); /* dropped tensors */
    free(bytes.ptr);
}

/* ---- a set that Heft writes ----------------------------------------------------------------- */

/* A script does not answer twice alike, as a split needs it. */
static void forget_callbacks(heft_convert_options *o)
{
    o->keep = NULL;
    o->rename = NULL;
    o->cast = NULL;
    o->transpose = NULL;
    o->densify = NULL;
    o->sparsify = NULL;
    o->identify = NULL;
    o->storage = NULL;
}

static heft_status split(folder *d, const heft_file *in, fuzz_request *r, fuzz_script *s)
{
    heft_split_options opt = HEFT_SPLIT_OPTIONS_INIT;
    const heft_format *to = heft_file_format(in);
    heft_error err = fuzz_no_error();
    if (!heft_format_can_split(to) || fuzz_next(s) % 2)
        to = fuzz_splittable(fuzz_next(s));
    opt.count = fuzz_next(s) % 5;
    opt.max_bytes = opt.count ? 0 : 1 + fuzz_next(s) * UINT64_C(64);
    fuzz_request_init(r, d->host, to, s);
    forget_callbacks(&r->opt);
    opt.convert = &r->opt;
    opt.open = add_file;
    opt.ctx = d;
    heft_status st = heft_file_split(in, to, &opt, &err);
    if (st != HEFT_E_ARGUMENT || err.status)
        fuzz_require_error(st, &err);
    return st;
}

/* The file that stands for the set: the first, or the index, which is written last. */
static uint32_t find_first(folder *d)
{
    for (uint32_t i = d->count; i--;) {
        heft_file *f = open_set(d, i);
        bool is_whole = f && heft_shard_file_count(f) && !heft_file_is_complete(f, NULL);
        heft_file_close(f);
        if (is_whole)
            return i;
    }
    return d->count - 1;
}

static void damage(folder *d, fuzz_script *s)
{
    fuzz_bytes *b = &d->files[fuzz_next(s) % d->count];
    uint32_t how = fuzz_next(s);
    if (how % 8 == 0)
        d->missing = fuzz_next(s) % d->count;
    if (how % 8 == 1)
        b->len -= b->len ? fuzz_next(s) % b->len : 0;
    for (uint32_t n = how % 4; n && b->len; n--) {
        size_t at = fuzz_next(s) | (size_t)fuzz_next(s) << 8;
        b->ptr[at % b->len] ^= (uint8_t)fuzz_next(s);
    }
}

static void try_split(folder *d, const heft_file *in, fuzz_script *s)
{
    fuzz_request r;
    bool is_sound = fuzz_is_sound(in);
    if (split(d, in, &r, s) || !d->count)
        return;
    uint32_t first = find_first(d);
    heft_file *f = open_set(d, first);
    fuzz_require(f);
    if (is_sound && d->count > 1) {
        fuzz_require(!heft_file_is_complete(f, NULL) && !fuzz_faults(f));
        if (!r.losses)
            fuzz_require_same(in, f);
    }
    heft_file_close(f);
    damage(d, s);
    f = open_set(d, first);
    if (f) {
        fuzz_use(fuzz_faults(f));
        convert(d, f, s);
    }
    heft_file_close(f);
}

/* ---- the input as an index ------------------------------------------------------------------ */

static void try_index(folder *d, const uint8_t *data, size_t size, fuzz_script *s)
{
    fuzz_bytes b = { malloc(size + !size), size, size };
    fuzz_require(b.ptr);
    memcpy(b.ptr, data, size);
    d->files[0] = b;
    d->count = 1;
    d->is_one_file = true;
    strcpy(d->names[0], "model.safetensors.index.json");
    heft_file *f = open_set(d, 0);
    if (f) {
        fuzz_use(fuzz_faults(f));
        convert(d, f, s);
    }
    heft_file_close(f);
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    fuzz_memory m;
    folder d = { .missing = MAX_FILES, .host = &m.host };
    fuzz_memory_init(&m, UINT32_MAX);
    if (fuzz_next(s) % 4) {
        heft_file *in = fuzz_open_model(&m.host, data, size);
        if (in)
            try_split(&d, in, s);
        heft_file_close(in);
    } else {
        try_index(&d, data, size, s);
    }
    for (uint32_t i = 0; i < d.count; i++)
        free(d.files[i].ptr);
    fuzz_require(!m.live);
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = 24, .takes_models = true };
