/* signature.c - the object: memory, order of the resources, the signed message. */
#include "sign/signature.h"

#include "base/error.h"
#include "base/sized.h"
#include "base/sort.h"
#include "base/text.h"
#include "core/read/file.h"
#include "grammar/base64.h"

static size_t find_member(const heft_member *members, size_t count, heft_str name)
{
    size_t i = 0;
    while (i < count && !heft_str_is(name, members[i].name))
        i++;
    return i;
}

heft_status heft_read_members(heft_member_reader *r, heft_json_kind first,
                              const heft_member *members, size_t count)
{
    heft_json *j = &r->j;
    uint32_t seen = 0; /* a bit per member of the table */
    heft_json_kind k;
    if (first != HEFT_JSON_OBJECT)
        return heft_json_fail(j, "expected an object");
    while ((k = heft_json_next(j)) == HEFT_JSON_KEY) {
        size_t i = find_member(members, count, j->text);
        if (i < count && seen >> i & 1)
            return heft_json_fail(j, "the member '%s' occurs twice", members[i].name);
        heft_status st = i < count ? members[i].read(r, heft_json_next(j)) : heft_json_skip(j, k);
        if (st || j->st)
            return st ? st : j->st;
        seen |= i < count ? 1u << i : 0;
    }
    for (size_t i = 0; i < count; i++)
        if (members[i].is_required && !(seen >> i & 1))
            return heft_json_fail(j, "the member '%s' is missing", members[i].name);
    return j->st;
}

heft_status heft_read_items(heft_member_reader *r, heft_json_kind first, heft_member_fn fn)
{
    heft_json_kind k;
    if (first != HEFT_JSON_ARRAY)
        return heft_json_fail(&r->j, "expected an array");
    while ((k = heft_json_next(&r->j)) != HEFT_JSON_ARRAY_END && !r->j.st) {
        HEFT_TRY(fn(r, k));
    }
    return r->j.st;
}

heft_status heft_read_text(heft_str *out, heft_member_reader *r, heft_json_kind first)
{
    if (first != HEFT_JSON_STRING)
        return heft_json_fail(&r->j, "expected a string");
    *out = heft_arena_copy(&r->s->arena, r->j.text);
    return out->ptr ? HEFT_OK : heft_error_no_memory(r->j.err, "for a signature");
}

heft_status heft_read_constant(heft_member_reader *r, heft_json_kind first, const char *text,
                               const char *what, heft_status status)
{
    if (first == HEFT_JSON_STRING && heft_str_is(r->j.text, text))
        return HEFT_OK;
    heft_status st = heft_json_fail(&r->j, "the %s is not %s", what, text);
    if (first == HEFT_JSON_STRING && r->j.err) {
        r->j.err->status = status;
        return status;
    }
    return st;
}

heft_status heft_read_base64(heft_str *out, heft_member_reader *r, heft_json_kind first)
{
    bool is_valid;
    if (first != HEFT_JSON_STRING)
        return heft_json_fail(&r->j, "expected a string");
    *out = heft_base64_decode(&is_valid, &r->s->arena, r->j.text);
    if (!is_valid)
        return heft_json_fail(&r->j, "the text is not base64");
    return out->ptr ? HEFT_OK : heft_error_no_memory(r->j.err, "for a signature");
}

heft_status heft_signature_open(heft_signature **out, const heft_host *wanted, heft_error *err)
{
    const heft_host *host;
    *out = NULL;
    HEFT_TRY(heft_host_resolve(&host, wanted, err));
    heft_signature *s = heft_alloc(host->allocator, sizeof *s, 16);
    if (!s)
        return heft_error_no_memory(err, "for a signature");
    *s = (heft_signature){ .host = host, .mem = { host->allocator, UINT64_MAX, 0 } };
    s->arena.mem = &s->mem;
    s->model = s->message = s->statement = s->signature = s->key_hint = (heft_str){ "", 0 };
    *out = s;
    return HEFT_OK;
}

void heft_signature_close(heft_signature *s)
{
    if (!s)
        return;
    heft_mem_free(&s->mem, s->order, 2 * (size_t)s->order_count * sizeof *s->order + 1);
    heft_vec_free(&s->mem, &s->resources, sizeof(heft_resource));
    heft_vec_free(&s->mem, &s->ignored, sizeof(heft_str));
    heft_vec_free(&s->mem, &s->certificates, sizeof(heft_str));
    heft_arena_free(&s->arena);
    heft_free(s->host->allocator, s, sizeof *s, 16);
}

/* ---- names and order ---- */

bool heft_resource_name_is_safe(heft_str name)
{
    if (heft_str_is(name, "."))
        return true;
    for (size_t at = 0; at <= name.len;) {
        size_t end = at;
        while (end < name.len && name.ptr[end] != '/')
            end++;
        heft_str part = { name.ptr + at, end - at };
        if (!part.len || heft_str_is(part, ".") || heft_str_is(part, ".."))
            return false;
        at = end + 1;
    }
    return !heft_str_has_nul(name);
}

/* A slash sorts before every other byte, so that folders are compared component by component. */
static int order_of_names(heft_str a, heft_str b)
{
    size_t n = a.len < b.len ? a.len : b.len, i = 0;
    while (i < n && a.ptr[i] == b.ptr[i])
        i++;
    if (i == n)
        return a.len < b.len ? -1 : a.len > b.len;
    uint32_t x = a.ptr[i] == '/' ? 0 : 1u + (uint8_t)a.ptr[i];
    uint32_t y = b.ptr[i] == '/' ? 0 : 1u + (uint8_t)b.ptr[i];
    return x < y ? -1 : 1;
}

int heft_resource_order(const heft_resource *a, const heft_resource *b)
{
    int order = order_of_names(a->name, b->name);
    return order ? order : a->from < b->from ? -1 : a->from > b->from;
}

static bool is_before(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_resource *x = ctx;
    return heft_resource_order(&x[a], &x[b]) < 0;
}

heft_status heft_signature_sort(heft_signature *s, heft_error *err)
{
    const heft_resource *x = s->resources.ptr;
    uint32_t n = s->resources.len;
    s->order = heft_mem_alloc(&s->mem, 2 * (size_t)n * sizeof *s->order + 1);
    if (!s->order)
        return heft_error_no_memory(err, "for the resources of a signature");
    s->order_count = n;
    heft_sort_numbers(s->order, n, is_before, x);
    for (uint32_t i = 1; i < n; i++)
        if (!heft_resource_order(&x[s->order[i - 1]], &x[s->order[i]]))
            return heft_error_plain(err, HEFT_E_FORMAT, "the resource %q is listed twice",
                                    x[s->order[i]].name);
    return HEFT_OK;
}

heft_status heft_signature_root(uint8_t out[32], const heft_signature *s, const uint32_t *order,
                                heft_error *err)
{
    const heft_digest *sha256 = heft_host_digest(s->host, "sha256");
    const heft_resource *x = s->resources.ptr;
    heft_memory mem = { s->host->allocator, UINT64_MAX, 0 };
    if (!sha256)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "this build of Heft has no SHA-256; rebuild Heft with "
                                "-Dopenssl=enabled");
    HEFT_TRY(heft_digest_load(sha256, err));
    void *state = heft_mem_alloc(&mem, sha256->state_bytes);
    if (!state || !sha256->init(state)) {
        heft_mem_free(&mem, state, sha256->state_bytes);
        return heft_error_no_memory(err, "to compute a digest");
    }
    for (uint32_t i = 0; i < s->resources.len; i++) {
        const heft_file_digest *d = &x[order ? order[i] : i].digest;
        sha256->update(state, d->bytes, d->length);
    }
    sha256->final(out, state);
    heft_mem_free(&mem, state, sha256->state_bytes);
    return HEFT_OK;
}

/* ---- the message ---- */

heft_status heft_signature_wrap(heft_signature *s, heft_error *err)
{
    enum { PREFIX = 64 + sizeof HEFT_PAYLOAD_TYPE };
    static const char head[] = "DSSEv1 ", type[] = HEFT_PAYLOAD_TYPE;
    char *text = heft_arena_alloc(&s->arena, s->statement.len + PREFIX, 1), *p = text;
    if (!text)
        return heft_error_no_memory(err, "for a signature");
    memcpy(p, head, sizeof head - 1);
    p += sizeof head - 1;
    p += heft_u64_text(p, sizeof type - 1);
    *p++ = ' ';
    memcpy(p, type, sizeof type - 1);
    p += sizeof type - 1;
    *p++ = ' ';
    p += heft_u64_text(p, s->statement.len);
    *p++ = ' ';
    memcpy(p, s->statement.ptr, s->statement.len);
    s->message = (heft_str){ text, (size_t)(p - text) + s->statement.len };
    return HEFT_OK;
}

/* ---- access ---- */

void heft_signature_get(heft_signature_info *out, const heft_signature *s)
{
    *out = (heft_signature_info){ .model = s->model,
                                  .message = s->message,
                                  .signature = s->signature,
                                  .key_hint = s->key_hint,
                                  .resources = s->resources.len,
                                  .ignored = s->ignored.len,
                                  .certificates = s->certificates.len,
                                  .allow_symlinks = s->allow_symlinks };
}

uint32_t heft_resource_count(const heft_signature *s)
{
    return s->order_count;
}

heft_resource heft_resource_at(const heft_signature *s, uint32_t i)
{
    const heft_resource *x = s->resources.ptr;
    return i < s->order_count ? x[s->order[i]] : (heft_resource){ .to = 0 };
}

uint32_t heft_resource_find(const heft_signature *s, heft_str name)
{
    const heft_resource *x = s->resources.ptr;
    uint32_t low = 0, high = s->order_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (order_of_names(x[s->order[middle]].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < s->order_count && heft_str_eq(x[s->order[low]].name, name);
    return found ? low : HEFT_NONE;
}

heft_str heft_signature_ignored_at(const heft_signature *s, uint32_t i)
{
    return i < s->ignored.len ? ((const heft_str *)s->ignored.ptr)[i] : (heft_str){ "", 0 };
}

heft_str heft_signature_certificate_at(const heft_signature *s, uint32_t i)
{
    return i < s->certificates.len ? ((const heft_str *)s->certificates.ptr)[i]
                                   : (heft_str){ "", 0 };
}

heft_status heft_signature_add_certificate(heft_signature *s, heft_str der, heft_error *err)
{
    heft_str copy = heft_arena_copy(&s->arena, der);
    if (!copy.ptr || !heft_vec_add(&s->mem, &s->certificates, &copy, sizeof copy))
        return heft_error_no_memory(err, "for a certificate");
    return HEFT_OK;
}

heft_status heft_signature_set(heft_signature *s, heft_str signature, heft_str key_hint,
                               heft_error *err)
{
    heft_str copy = heft_arena_copy(&s->arena, signature);
    heft_str hint = heft_arena_copy(&s->arena, key_hint);
    if (!copy.ptr || !hint.ptr)
        return heft_error_no_memory(err, "for a signature");
    s->signature = copy;
    s->key_hint = hint;
    return HEFT_OK;
}

bool heft_hex_decode(heft_file_digest *out, heft_str text)
{
    *out = (heft_file_digest){ .length = (uint32_t)(text.len / 2) };
    return out->length && out->length <= sizeof out->bytes &&
           heft_hex_read(out->bytes, out->length, text);
}
