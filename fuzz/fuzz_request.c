/* fuzz_request.c - decodes options of a conversion from a script. */
#include "fuzz_request.h"

#include <string.h>

enum { KEEP, RENAME, CAST, TRANSPOSE, DENSIFY, SPARSIFY, IDENTIFY, STORAGE }; /* questions */

static const char *const digests[] = { NULL, "crc32c", "sha256", "xxh3", "crc32", "unknown" };
static const heft_encoding encodings[] = { HEFT_RAW, HEFT_ZSTD, HEFT_RAW, HEFT_DEFLATE };
enum {
    DIGESTS = sizeof digests / sizeof *digests,
    ENCODINGS = sizeof encodings / sizeof *encodings
};

static uint32_t ask(void *ctx, const heft_tensor *t, uint32_t question)
{
    return fuzz_choice(&((fuzz_request *)ctx)->script, t->name, question);
}

static bool keep(void *ctx, const heft_tensor *t)
{
    return ask(ctx, t, KEEP) % 4 != 0;
}

static heft_str rename_tensor(void *ctx, const heft_tensor *t)
{
    static const char *const names[] = { "a", "", "x/../y", "\xC3\xA9", "blocks.0.weight" };
    enum { NAMES = sizeof names / sizeof *names };
    uint32_t answer = ask(ctx, t, RENAME);
    if (answer % 16 < NAMES)
        return heft_str_from(names[answer % 16]);
    if (answer & 16 && t->name.len)
        return (heft_str){ t->name.ptr + 1, t->name.len - 1 };
    return t->name;
}

static heft_dtype cast(void *ctx, const heft_tensor *t)
{
    static const heft_dtype types[] = { HEFT_UNTYPED, HEFT_F32,  HEFT_F16, HEFT_BF16,
                                        HEFT_F64,     HEFT_BOOL, HEFT_U8,  HEFT_I64 };
    return types[ask(ctx, t, CAST) % 8];
}

static bool transpose(void *ctx, const heft_tensor *t)
{
    return t->rank == 2 && ask(ctx, t, TRANSPOSE) % 2;
}

static bool densify(void *ctx, const heft_tensor *t)
{
    return ask(ctx, t, DENSIFY) % 2;
}

static heft_layout sparsify(void *ctx, const heft_tensor *t)
{
    static const heft_layout layouts[] = { HEFT_DENSE, HEFT_SPARSE_COO, HEFT_SPARSE_CSR };
    uint32_t answer = ask(ctx, t, SPARSIFY) % 3;
    return layouts[answer == 2 && t->rank != 2 ? 0 : answer];
}

static bool identify(void *ctx, const heft_tensor *t, heft_identity *id)
{
    uint32_t answer = ask(ctx, t, IDENTIFY);
    id->has = answer % 8;
    id->requires_grad = answer & 8;
    id->param_id = answer >> 4;
    memset(&id->base_id, 0, sizeof id->base_id);
    return answer & 16;
}

static bool choose_storage(void *ctx, const heft_tensor *t, heft_str role, heft_storage *how)
{
    uint32_t answer = ask(ctx, t, STORAGE + (uint32_t)role.len);
    how->encoding = encodings[answer % ENCODINGS];
    how->digest = digests[answer / 8 % DIGESTS];
    return answer & 128;
}

static void count_loss(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                       const char *text)
{
    fuzz_use(strlen(rule) + strlen(text) + tensor.len);
    ((fuzz_request *)ctx)->losses += severity != HEFT_NOTE || tensor.ptr;
}

static bool progress(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    fuzz_require(done <= total);
    return true;
}

/* Choose a word of the versions that the format can write. */
static const char *choose_version(fuzz_request *r, const heft_format *to, uint32_t number)
{
    const char *p = heft_format_versions(to);
    for (; number % 4 && strchr(p, ' '); number--)
        p = strchr(p, ' ') + 1;
    size_t len = strcspn(p, " ");
    if (!len || len >= sizeof r->version)
        return NULL;
    memcpy(r->version, p, len);
    return r->version;
}

/* Give each callback a bit. */
static void choose_callbacks(fuzz_request *r, uint32_t bits)
{
    heft_convert_options *o = &r->opt;
    r->has_callback = bits & 63;
    o->keep = bits & 1 ? keep : NULL;
    o->rename = bits & 2 ? rename_tensor : NULL;
    o->cast = bits & 4 ? cast : NULL;
    o->transpose = bits & 8 ? transpose : NULL;
    o->densify = bits & 16 ? densify : NULL;
    o->sparsify = bits & 32 ? sparsify : NULL;
    o->identify = bits & 64 ? identify : NULL;
    o->storage = bits & 128 ? choose_storage : NULL;
}

static void choose_texts(fuzz_request *r, uint32_t bits)
{
    if (bits & 1) {
        r->set = (heft_value){ .kind = bits & 2 ? HEFT_KIND_UINT : HEFT_KIND_STR,
                               .key = heft_str_from(bits & 4 ? "added" : "general.name") };
        if (bits & 2)
            r->set.as.u = bits;
        else
            r->set.as.s = heft_str_from("some text");
        r->opt.set = &r->set;
        r->opt.set_count = 1;
    }
    if (bits & 8)
        r->opt.config = heft_str_from(bits & 16 ? "{\"kind\":\"k\",\"config\":{}}" : "[1");
    if (bits & 32)
        r->opt.generator = heft_str_from("fuzz 1");
}

/* Most requests are plain, because most formats refuse unusual alignments, codecs and digests. */
static void choose_form(fuzz_request *r, fuzz_script *s)
{
    uint32_t align = fuzz_next(s), digest = fuzz_next(s), encoding = fuzz_next(s);
    if (align >= 0xF0)
        r->write.align = align;
    else if (align >= 0xC0)
        r->write.align = UINT32_C(1) << (align & 15);
    if (digest >= 0xC0)
        r->write.storage.digest = digests[digest % DIGESTS];
    if (encoding >= 0xC0) {
        r->write.storage.encoding = encodings[encoding % ENCODINGS];
        r->write.storage.level = (int)(encoding >> 2 & 3);
    }
}

void fuzz_request_init(fuzz_request *r, const heft_host *host, const heft_format *to,
                       fuzz_script *s)
{
    *r = (fuzz_request){ .opt = HEFT_CONVERT_OPTIONS_INIT, .write = HEFT_WRITE_OPTIONS_INIT };
    uint32_t version = fuzz_next(s), flags = fuzz_next(s);
    r->write.host = host;
    r->write.version = choose_version(r, to, version);
    r->write.allow_loss = flags & 1;
    r->write.strict = !(flags & 6);
    r->opt.no_verify = !(flags & 24);
    choose_form(r, s);
    uint32_t callbacks = fuzz_next(s), texts = fuzz_next(s);
    choose_callbacks(r, callbacks & fuzz_next(s));
    choose_texts(r, texts & fuzz_next(s));
    r->script = *s;
    r->write.on_loss = count_loss;
    r->write.ctx = r;
    r->opt.write = &r->write;
    r->opt.ctx = r;
    r->opt.planned_bytes = &r->planned;
    r->opt.progress = progress;
}
