/* heft_web.c - the functions of the WebAssembly module that open, list and read a model.
 *
 * JavaScript feeds the index (heft_file_step()) and answers reads of the source through the
 * function `read`.  JavaScript cannot wait inside of a call: a read of bytes that have not arrived
 * fails, and the call is repeated when the bytes are there. */
#include "heft_web.h"

#include <heft/check.h>
#include <heft/vocabulary.h>

#include <stddef.h>

web_results web_result;
heft_error web_error;

/* Read len bytes at offset of a source into p: 0, or -1 if JavaScript has noted what is missing. */
WEB_IMPORT(read) int32_t js_read(uint32_t source, double offset, void *p, uint32_t len);
/* Open the shard of that name for a model. Return the number of the source; -1 if the shard does
 * not exist; -2 if the shard cannot be read, or not yet. */
WEB_IMPORT(open_shard) int32_t js_open_shard(uint32_t model, const char *name, uint32_t len);
WEB_IMPORT(source_size) double js_source_size(uint32_t source);
WEB_IMPORT(progress) int32_t js_progress(double done, double total);
WEB_IMPORT(random) void js_random(void *p, uint32_t len);
/* Report the finding in web_result. */
WEB_IMPORT(finding) void js_finding(void);

/* ---- results -------------------------------------------------------------------------------- */

heft_status web_fail(heft_error *err, heft_status st, const char *message)
{
    size_t n = 0;
    if (!err)
        return st;
    memset(err, 0, sizeof *err);
    err->status = st;
    err->offset = HEFT_NOWHERE;
    for (; message[n] && n < sizeof err->message - 1; n++)
        err->message[n] = message[n];
    err->message[n] = '\0';
    return st;
}

void web_set_text(uint32_t i, heft_str s)
{
    web_result.text[i].ptr = s.ptr;
    web_result.text[i].len = (uint32_t)s.len;
}

static void set_c_text(uint32_t i, const char *s)
{
    web_set_text(i, s ? heft_str_from(s) : (heft_str){ NULL, 0 });
}

double web_number(uint64_t v)
{
    return v == UINT64_MAX ? __builtin_nan("") : (double)v;
}

bool web_progress(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    return js_progress((double)done, (double)total);
}

WEB_EXPORT(result) web_results *result(void)
{
    return &web_result;
}

WEB_EXPORT(error) heft_error *error(void)
{
    return &web_error;
}

WEB_EXPORT(error_offset) double error_offset(void)
{
    return web_number(web_error.offset);
}

/* ---- sources -------------------------------------------------------------------------------- */

typedef struct web_source {
    heft_source base;
    uint32_t number; /* of JavaScript */
} web_source;

static heft_status read_source(heft_source *s, uint64_t offset, void *buf, size_t len,
                               heft_error *err)
{
    const web_source *w = (const web_source *)(const void *)s;
    if (!js_read(w->number, (double)offset, buf, (uint32_t)len))
        return HEFT_OK;
    web_fail(err, HEFT_E_IO, "the bytes have not arrived");
    if (err)
        err->offset = offset;
    return HEFT_E_IO;
}

static void close_source(heft_source *s)
{
    web_allocator.resize(NULL, s, sizeof(web_source), 0, 16);
}

static const heft_source_ops source_ops = {
    .size = sizeof(heft_source_ops),
    .read = read_source,
    .close = close_source,
};

static heft_status open_source(heft_source **out, uint32_t number, heft_error *err)
{
    web_source *w = web_allocator.resize(NULL, NULL, 0, sizeof *w, 16);
    if (!w)
        return web_fail(err, HEFT_E_NOMEM, "no memory for a source");
    *w = (web_source){ { &source_ops, (uint64_t)js_source_size(number) }, number };
    *out = &w->base;
    return HEFT_OK;
}

static heft_status open_shard(heft_source **out, void *ctx, const char *name, heft_error *err)
{
    enum { IO_ERROR = 5 };
    uint32_t model = *(const uint32_t *)ctx;
    int32_t number = js_open_shard(model, name, (uint32_t)heft_str_from(name).len);
    if (number >= 0)
        return open_source(out, (uint32_t)number, err);
    if (number == -1)
        return web_fail(err, HEFT_E_NOTFOUND, "cannot be opened: No such file or directory");
    web_fail(err, HEFT_E_IO, "cannot be read");
    if (err)
        err->os = IO_ERROR;
    return HEFT_E_IO;
}

/* ---- opening -------------------------------------------------------------------------------- */

static void random_bytes(void *buf, size_t len)
{
    js_random(buf, (uint32_t)len);
}

static const heft_digest *const digests[] = { &web_sha256, &web_xxh3, NULL };
static const heft_codec *const codecs[] = { &web_inflate, NULL };
const heft_host web_host = {
    .size = sizeof(heft_host),
    .allocator = &web_allocator,
    .digests = digests,
    .codecs = codecs,
    .entropy = random_bytes,
};

WEB_EXPORT(model_close) void model_close(web_model *m)
{
    heft_vocab_close(m->vocab);
    heft_file_close(m->file);
    web_allocator.resize(NULL, m, sizeof *m, 0, 16);
}

static heft_status begin(web_model *m, const char *format, const char *key,
                         const heft_limits *limits, bool no_verify)
{
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    heft_source *s = NULL;
    o.host = &web_host;
    o.limits = limits;
    o.no_verify = no_verify;
    o.key = key;
    o.shards = m->folder.name ? &m->folder : NULL;
    if (format) {
        o.format = heft_format_find(heft_str_from(format));
        if (!o.format)
            return web_fail(&web_error, HEFT_E_ARGUMENT, "there is no format of that name");
    }
    heft_status st = open_source(&s, m->number, &web_error);
    if (!st)
        st = heft_file_begin(&m->file, s->size, &o, &web_error);
    if (st && s)
        heft_source_close(s);
    return st ? st : heft_file_set_source(m->file, s, &web_error);
}

/* Begin to open source `number`; NULL on failure.  Texts are terminated, or NULL, and stay until
 * the model is closed. */
WEB_EXPORT(model_open)
web_model *model_open(uint32_t number, const char *name, const char *format, const char *key,
                      uint32_t max_tensors, double max_index, bool no_verify)
{
    heft_limits limits = HEFT_LIMITS_INIT;
    web_model *m = web_allocator.resize(NULL, NULL, 0, sizeof *m, 16);
    if (!m) {
        web_fail(&web_error, HEFT_E_NOMEM, "no memory for a model");
        return NULL;
    }
    web_crc_tables();
    web_block_grids();
    *m = (web_model){ .number = number };
    m->folder = (heft_shard_folder){ sizeof m->folder, name, open_shard, &m->number, NULL, NULL };
    limits.tensors = max_tensors;
    limits.index_bytes = (uint64_t)max_index;
    if (!begin(m, format, key, &limits, no_verify))
        return m;
    model_close(m);
    return NULL;
}

WEB_EXPORT(model_step) int32_t model_step(web_model *m)
{
    return heft_file_step(m->file, &web_error);
}

/* Return the number of ranges that the next step needs; text 0 becomes the array. */
WEB_EXPORT(model_needs) uint32_t model_needs(const web_model *m)
{
    const heft_range *r;
    size_t n = heft_file_needs(m->file, &r);
    web_result.text[0].ptr = r;
    return (uint32_t)n;
}

WEB_EXPORT(model_feed)
int32_t model_feed(web_model *m, double offset, const void *data, uint32_t len)
{
    return heft_file_feed(m->file, (uint64_t)offset, data, len, &web_error);
}

/* Text 0: the name of the format if it is known by now. */
WEB_EXPORT(model_format) bool model_format(const web_model *m)
{
    const heft_format *f = heft_file_format(m->file);
    set_c_text(0, f ? heft_format_name(f) : NULL);
    return f;
}

/* ---- facts ---------------------------------------------------------------------------------- */

WEB_EXPORT(model_facts) void model_facts(const web_model *m)
{
    const heft_file *f = m->file;
    uint32_t first;
    const double numbers[WEB_NUMBERS] = {
        heft_tensor_count(f),
        (double)heft_file_size(f),
        (double)heft_file_alignment(f),
        (double)heft_file_memory(f),
        heft_meta_count(f),
        heft_shard_file_count(f),
        heft_file_parts(f, &first),
        first,
    };
    memcpy(web_result.number, numbers, sizeof numbers);
    set_c_text(0, heft_format_name(heft_file_format(f)));
    web_set_text(1, heft_file_version(f));
    web_set_text(2, heft_file_name(f));
    web_set_text(3, heft_file_generator(f));
}

WEB_EXPORT(format_at) bool format_at(uint32_t i)
{
    const heft_format *f = heft_format_at(i);
    if (!f)
        return false;
    set_c_text(0, heft_format_name(f));
    set_c_text(1, heft_format_title(f));
    set_c_text(2, heft_format_suffixes(f));
    return true;
}

WEB_EXPORT(dtype_at) bool dtype_at(uint32_t t)
{
    const heft_dtype_info *d = heft_dtype_get((heft_dtype)t);
    if (!d)
        return false;
    bool is_complex = d->kind == HEFT_DTYPE_COMPLEX;
    web_result.number[0] = d->kind;
    web_result.number[1] = d->block_elems;
    web_result.number[2] = d->block_bytes;
    web_result.number[3] = is_complex || heft_dtype_can_cast(HEFT_F32, (heft_dtype)t);
    set_c_text(0, d->name);
    return true;
}

WEB_EXPORT(shard_at) void shard_at(const web_model *m, uint32_t i)
{
    heft_shard_file s = heft_shard_file_at(m->file, i);
    web_result.number[0] = web_number(s.size);
    web_result.number[1] = s.status;
    web_set_text(0, s.name);
}

/* Checksum i: text 0 becomes the algorithm.  False after the last one. */
WEB_EXPORT(checksum_at) bool checksum_at(const web_model *m, uint32_t i)
{
    const char *algorithm = heft_checksum_at(m->file, i).algorithm;
    if (algorithm)
        set_c_text(0, algorithm);
    return algorithm;
}

static void set_finding(const heft_finding *f)
{
    web_result.number[0] = f->severity;
    web_result.number[1] = web_number(f->where.offset);
    web_result.number[2] = (double)f->where.length;
    web_result.number[3] = f->tensor;
    web_result.number[4] = f->shard;
    set_c_text(0, f->rule);
    set_c_text(1, f->text);
}

WEB_EXPORT(notice_at) bool notice_at(const web_model *m, uint32_t i)
{
    heft_finding f = heft_notice_at(m->file, i);
    if (f.rule)
        set_finding(&f);
    return f.rule;
}

/* ---- tensors and parts ---------------------------------------------------------------------- */

WEB_EXPORT(tensor_at) void tensor_at(const web_model *m, uint32_t id)
{
    heft_tensor t = heft_tensor_at(m->file, id);
    const double numbers[] = { t.rank, t.dtype, t.first_part, t.part_count,
                               web_number(heft_tensor_bytes(m->file, id)) };
    memcpy(web_result.number, numbers, sizeof numbers);
    web_set_text(0, t.name);
    web_set_text(1, heft_tensor_layout_name(m->file, id));
    web_result.text[2].ptr = t.dims;
}

WEB_EXPORT(tensor_find)
uint32_t tensor_find(const web_model *m, const char *name, uint32_t len)
{
    return heft_tensor_find(m->file, (heft_str){ name, len });
}

WEB_EXPORT(part_at) void part_at(const web_model *m, uint32_t part)
{
    heft_part p = heft_part_at(m->file, part);
    const double numbers[] = { (double)p.offset, (double)p.stored, web_number(p.length),
                               p.dtype,          p.encoding,       p.shard };
    memcpy(web_result.number, numbers, sizeof numbers);
    web_set_text(0, p.role);
    web_set_text(1, p.digest);
}

WEB_EXPORT(tied) int32_t tied(uint32_t *first, const web_model *m)
{
    return heft_tensor_find_tied(first, m->file, &web_error);
}

/* ---- values --------------------------------------------------------------------------------- */

static void set_value(const heft_value *v)
{
    web_result.number[0] = v->kind;
    web_result.number[1] = v->stored;
    web_result.text[2].ptr = &v->as; /* 64-bit numbers, see integer() */
    web_set_text(0, v->key);
    if (v->kind == HEFT_KIND_STR || v->kind == HEFT_KIND_BYTES || v->kind == HEFT_KIND_ID128)
        web_set_text(1, v->as.s);
    if (v->kind == HEFT_KIND_BOOL)
        web_result.number[2] = v->as.b;
    if (v->kind == HEFT_KIND_FLOAT)
        web_result.number[2] = v->as.f;
    if (v->kind == HEFT_KIND_LIST || v->kind == HEFT_KIND_MAP) {
        web_result.number[2] = v->as.container.count;
        web_result.number[3] = v->as.container.end;
    }
    if (v->kind == HEFT_KIND_ARRAY) {
        web_result.text[1].ptr = v->as.array.ptr;
        web_result.number[2] = v->as.array.count;
        web_result.number[3] = v->as.array.dtype;
    }
}

static heft_value current;

WEB_EXPORT(value_at) void value_at(const web_model *m, uint32_t i)
{
    current = heft_meta_at(m->file, i);
    set_value(&current);
}

/* False after the last attribute.  Call with i = 0 first. */
WEB_EXPORT(attribute_at) bool attribute_at(const web_model *m, uint32_t tensor, uint32_t i)
{
    static uint32_t count;
    if (!i)
        count = heft_attribute_count(m->file, tensor);
    current = heft_attribute_at(m->file, tensor, i);
    set_value(&current);
    return i < count;
}

/* ---- reading -------------------------------------------------------------------------------- */

WEB_EXPORT(part_find)
uint32_t part_find(const web_model *m, uint32_t owner, const char *role, uint32_t len)
{
    return heft_part_find(m->file, owner, (heft_str){ role, len });
}

WEB_EXPORT(part_read)
int32_t part_read(void *buf, const web_model *m, uint32_t part, double from, uint32_t len)
{
    return heft_part_read(buf, m->file, part, (uint64_t)from, len, &web_error);
}

/* Convert `count` numbers; complex elements count as two. */
WEB_EXPORT(cast)
bool cast(void *dst, uint32_t to, const void *src, uint32_t from, uint32_t count)
{
    const heft_dtype_info *d = heft_dtype_get((heft_dtype)from);
    if (d && d->kind == HEFT_DTYPE_COMPLEX)
        from = from == HEFT_C64 ? HEFT_F32 : HEFT_F64;
    return heft_dtype_cast(dst, (heft_dtype)to, src, (heft_dtype)from, count);
}

/* ---- vocabulary ----------------------------------------------------------------------------- */

/* Number 0 becomes the number of tokens.  The model keeps the vocabulary. */
WEB_EXPORT(vocab_open) int32_t vocab_open(web_model *m)
{
    heft_status st = m->vocab ? HEFT_OK : heft_vocab_open(&m->vocab, m->file, &web_error);
    web_result.number[0] = st ? 0 : heft_vocab_count(m->vocab);
    return st;
}

WEB_EXPORT(vocab_token) void vocab_token(const web_model *m, uint32_t id)
{
    web_set_text(0, heft_vocab_at(m->vocab, id));
}

WEB_EXPORT(vocab_find) uint32_t vocab_find(const web_model *m, const char *token, uint32_t len)
{
    return heft_vocab_find(m->vocab, (heft_str){ token, len });
}

/* Text 0: the name of special token i; the result is the id, or HEFT_NONE. */
WEB_EXPORT(vocab_special) uint32_t vocab_special(const web_model *m, uint32_t i)
{
    set_c_text(0, heft_vocab_special_name((heft_special)i));
    return heft_vocab_special(m->vocab, (heft_special)i);
}

/* ---- checking ------------------------------------------------------------------------------- */

static void on_finding(void *ctx, const heft_finding *f)
{
    (void)ctx;
    set_finding(f);
    js_finding();
}

WEB_EXPORT(verify) int32_t verify(const web_model *m, bool quick)
{
    heft_verify_result r;
    heft_verify_options o = HEFT_VERIFY_OPTIONS_INIT;
    o.on_finding = on_finding;
    o.progress = web_progress;
    o.quick = quick;
    heft_status st = heft_file_verify(&r, m->file, &o, &web_error);
    const double numbers[] = { (double)r.bytes_checked, (double)r.payload_bytes,
                               (double)r.payload_checked, r.faults };
    memcpy(web_result.number, numbers, sizeof numbers);
    return st;
}

WEB_EXPORT(hash) int32_t hash(heft_hash *model, heft_hash *tensors, const web_model *m)
{
    return heft_file_hash(model, tensors, m->file, web_progress, NULL, &web_error);
}

/* Hash `count` tensors: a share of those of a model, or those that only one of two models has. */
WEB_EXPORT(hash_some)
int32_t hash_some(heft_hash *out, const web_model *m, const uint32_t *tensors, uint32_t count)
{
    return heft_tensor_hash_many(out, m->file, tensors, count, web_progress, NULL, &web_error);
}

WEB_EXPORT(hash_model)
int32_t hash_model(heft_hash *out, const heft_hash *tensors, const web_model *m)
{
    return heft_hash_model(out, tensors, m->file, &web_error);
}

/* Check the digest of a part where the part has one. */
WEB_EXPORT(part_verify) int32_t part_verify(const web_model *m, uint32_t part)
{
    return heft_part_verify(NULL, m->file, part, &web_error);
}
