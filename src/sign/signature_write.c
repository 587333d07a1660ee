/* signature_write.c - makes the statement about a model, and writes the bundle. */
#include "base/error.h"
#include "base/sized.h"
#include "base/text.h"
#include "grammar/base64.h"
#include "grammar/json.h"
#include "sign/signature.h"

/* ---- the statement ---- */

static void put_text(heft_out *o, const char *text)
{
    heft_out_str(o, heft_lit(text));
}

static void put_ignored(heft_out *o, const heft_signature *s)
{
    const heft_str *path = s->ignored.ptr;
    for (uint32_t i = 0; i < s->ignored.len; i++) {
        put_text(o, i ? ", " : "");
        heft_json_put_str(o, path[i]);
    }
}

static void put_resources(heft_out *o, const heft_signature *s)
{
    const heft_resource *x = s->resources.ptr;
    for (uint32_t i = 0; i < s->order_count; i++) {
        const heft_resource *r = &x[s->order[i]];
        put_text(o, i ? ",\n  {\"name\": " : "\n  {\"name\": ");
        heft_json_put_str(o, r->name);
        put_text(o, ", \"algorithm\": ");
        heft_json_put_str(o, r->algorithm);
        put_text(o, ", \"digest\": ");
        heft_json_put_hex(o, r->digest.bytes, r->digest.length);
        put_text(o, "}");
    }
}

static void put_statement(heft_out *o, const heft_signature *s, const uint8_t root[32])
{
    put_text(o, "{\"_type\": \"" HEFT_STATEMENT_TYPE "\",\n \"subject\": [{\"name\": ");
    heft_json_put_str(o, s->model);
    put_text(o, ", \"digest\": {\"sha256\": ");
    heft_json_put_hex(o, root, 32);
    put_text(o, "}}],\n \"predicateType\": \"" HEFT_PREDICATE_TYPE "\",\n \"predicate\": "
                "{\"serialization\": {\"method\": \"files\", \"hash_type\": \"sha256\", "
                "\"allow_symlinks\": ");
    put_text(o, s->allow_symlinks ? "true" : "false");
    put_text(o, ", \"ignore_paths\": [");
    put_ignored(o, s);
    put_text(o, "]},\n \"resources\": [");
    put_resources(o, s);
    put_text(o, "]}}");
}

static heft_status make_statement(heft_signature *s, heft_error *err)
{
    uint8_t root[32];
    HEFT_TRY(heft_signature_root(root, s, s->order, err));
    heft_out count = heft_out_counting();
    put_statement(&count, s, root);
    uint8_t *text = count.total < SIZE_MAX ? heft_arena_alloc(&s->arena, (size_t)count.total, 1)
                                           : NULL;
    if (!text)
        return heft_error_no_memory(err, "for the statement of a signature");
    heft_out o = { .buf = text, .cap = (size_t)count.total };
    put_statement(&o, s, root);
    s->statement = (heft_str){ (const char *)text, o.len };
    return o.st ? o.st : heft_signature_wrap(s, err);
}

/* ---- from options ---- */

static bool is_plain(const heft_resource *r)
{
    return !r->from && r->to == HEFT_UNKNOWN_LENGTH && r->digest.length == 32 &&
           heft_str_is(r->algorithm, "sha256") && heft_str_is_utf8(r->name) &&
           heft_resource_name_is_safe(r->name);
}

static heft_status copy_text(heft_str *to, heft_signature *s, heft_str from, heft_error *err)
{
    *to = heft_arena_copy(&s->arena, from);
    return to->ptr ? HEFT_OK : heft_error_no_memory(err, "for a signature");
}

static heft_status copy_resource(heft_signature *s, const heft_resource *from, heft_error *err)
{
    heft_resource r = *from;
    if (!is_plain(from))
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "the file %q cannot be signed: its name is not UTF-8 or not a "
                                "path below the folder, or it has no SHA-256 digest",
                                from->name);
    r.algorithm = heft_lit("sha256");
    HEFT_TRY(copy_text(&r.name, s, from->name, err));
    if (!heft_vec_add(&s->mem, &s->resources, &r, sizeof r))
        return heft_error_no_memory(err, "for the resources of a signature");
    return HEFT_OK;
}

static heft_status copy_options(heft_signature *s, const heft_signature_options *o, heft_error *err)
{
    heft_status st = heft_str_is_utf8(o->model) ? copy_text(&s->model, s, o->model, err)
                                                : copy_text(&s->model, s, heft_lit("model"), err);
    s->allow_symlinks = o->allow_symlinks;
    for (uint32_t i = 0; i < o->resource_count && !st; i++)
        st = copy_resource(s, &o->resources[i], err);
    for (uint32_t i = 0; i < o->ignored_count && !st; i++) {
        heft_str path;
        if (!heft_str_is_utf8(o->ignored[i]) || !heft_resource_name_is_safe(o->ignored[i]))
            return heft_error_plain(err, HEFT_E_ARGUMENT,
                                    "the ignored path %q is not UTF-8, or not a path below the "
                                    "folder without empty components, '.' and '..'",
                                    o->ignored[i]);
        st = copy_text(&path, s, o->ignored[i], err);
        if (!st && !heft_vec_add(&s->mem, &s->ignored, &path, sizeof path))
            st = heft_error_no_memory(err, "for a signature");
    }
    if (!st)
        st = heft_signature_sort(s, err);
    return st == HEFT_E_FORMAT ? heft_error_plain(err, HEFT_E_ARGUMENT, "a file is listed twice")
                               : st;
}

heft_status heft_signature_new(heft_signature **out, const heft_signature_options *opt,
                               heft_error *err)
{
    heft_error own;
    heft_signature *s = NULL;
    heft_signature_options o = { .size = sizeof o };
    err = heft_error_begin(err, &own);
    *out = NULL;
    heft_status st = heft_sized_copy(&o, sizeof o, opt, err);
    if (!st)
        st = heft_signature_open(&s, o.host, err);
    if (!st)
        st = copy_options(s, &o, err);
    if (!st)
        st = make_statement(s, err);
    if (st)
        heft_signature_close(s);
    else
        *out = s;
    return heft_error_end(err, st);
}

/* ---- the bundle ---- */

typedef struct bundle_texts { /* in base64 */
    heft_str payload, signature;
    heft_str *certificates;
} bundle_texts;

static heft_status encode_bundle(bundle_texts *out, const heft_signature *s, heft_arena *a,
                                 heft_error *err)
{
    uint32_t count = s->certificates.len;
    *out = (bundle_texts){
        .payload = heft_base64_encode(a, s->statement),
        .signature = heft_base64_encode(a, s->signature),
        .certificates = heft_arena_alloc(a, (size_t)count * sizeof(heft_str) + 1, sizeof(void *)),
    };
    bool ok = out->payload.ptr && out->signature.ptr && out->certificates;
    for (uint32_t i = 0; ok && i < count; i++) {
        out->certificates[i] = heft_base64_encode(a, heft_signature_certificate_at(s, i));
        ok = out->certificates[i].ptr;
    }
    return ok ? HEFT_OK : heft_error_no_memory(err, "for a signature");
}

static void put_material(heft_out *o, const heft_signature *s, const heft_str *certificates)
{
    if (!s->certificates.len) {
        put_text(o, "\"publicKey\": {\"hint\": ");
        heft_json_put_str(o, s->key_hint);
        put_text(o, "}");
        return;
    }
    put_text(o, "\"x509CertificateChain\": {\"certificates\": [");
    for (uint32_t i = 0; i < s->certificates.len; i++) {
        put_text(o, i ? ", {\"rawBytes\": \"" : "{\"rawBytes\": \"");
        heft_out_str(o, certificates[i]);
        put_text(o, "\"}");
    }
    put_text(o, "]}");
}

static void put_bundle(heft_out *o, const heft_signature *s, const bundle_texts *texts)
{
    put_text(o, "{\"mediaType\": \"" HEFT_BUNDLE_TYPE "\", \"verificationMaterial\": {");
    put_material(o, s, texts->certificates);
    put_text(o, ", \"tlogEntries\": []}, \"dsseEnvelope\": {\"payload\": \"");
    heft_out_str(o, texts->payload);
    put_text(o, "\", \"payloadType\": \"" HEFT_PAYLOAD_TYPE "\", \"signatures\": [{\"sig\": \"");
    heft_out_str(o, texts->signature);
    put_text(o, "\", \"keyid\": \"\"}]}}\n");
}

typedef struct target {
    heft_sink *sink;
    heft_error *err;
} target;

static heft_status flush(void *ctx, uint64_t at, const void *data, size_t len)
{
    const target *t = ctx;
    const heft_sink_ops *ops = t->sink->ops;
    return heft_error_about(t->err,
                            ops->write_at ? ops->write_at(t->sink, at, data, len, t->err)
                                          : ops->write(t->sink, data, len, t->err),
                            HEFT_ABOUT_TARGET);
}

heft_status heft_signature_write(const heft_signature *s, heft_sink *take, heft_error *err)
{
    heft_error own;
    uint8_t buf[4096];
    heft_memory mem = { s->host->allocator, UINT64_MAX, 0 };
    heft_arena arena = { .mem = &mem };
    err = heft_error_begin(err, &own);
    target t = { take, err };
    bundle_texts texts;
    heft_status st = encode_bundle(&texts, s, &arena, err);
    if (!st) {
        heft_out o = { .buf = buf, .cap = sizeof buf, .flush = flush, .ctx = &t };
        put_bundle(&o, s, &texts);
        st = heft_out_flush(&o);
    }
    heft_arena_free(&arena);
    if (st)
        take->ops->discard(take);
    else
        st = heft_error_about(err, take->ops->finish(take, err), HEFT_ABOUT_TARGET);
    return heft_error_end(err, st);
}
