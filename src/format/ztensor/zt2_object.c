/* zt2_object.c - reads objects and parts of a zTensor 2 manifest.
 * |   object { "parts": {role: part}, "shape": [u64…], "layout": text, "attributes": {…}? }
 *   part   { "blob": [offset, length], "type": text?, "dtype": text, "shard": text?, "digest":
 * text?,
 *            "encoding": text?, "decoded_length": u64 with an encoding }
 * | Deterministic encoding sorts keys, the shorter first: parts come before the shape that they
 * must match. Unknown keys are skipped (§3.1). */
#include "format/ztensor/zt2.h"

#include "base/bisect.h"

/* ---- items ---- */

heft_status heft_zt2_fail(heft_zt2_reader *r, const char *what)
{
    return r->object.ptr ? heft_cbor_fail(&r->c, "object %q: %s", r->object, what)
                         : heft_cbor_fail(&r->c, "%s", what);
}

static heft_status wrong_kind(heft_zt2_reader *r, const char *what, const char *kind)
{
    if (r->c.st)
        return r->c.st;
    return r->object.ptr ? heft_cbor_fail(&r->c, "object %q: %s is not a %s", r->object, what, kind)
                         : heft_cbor_fail(&r->c, "%s is not a %s", what, kind);
}

heft_status heft_zt2_text(heft_zt2_reader *r, heft_str *out, const char *what)
{
    if (heft_cbor_next(&r->c) != HEFT_CBOR_TEXT)
        return wrong_kind(r, what, "text");
    *out = r->c.str;
    return HEFT_OK;
}

heft_status heft_zt2_number(heft_zt2_reader *r, uint64_t *out, const char *what)
{
    if (heft_cbor_next(&r->c) != HEFT_CBOR_UINT)
        return wrong_kind(r, what, "non-negative integer");
    *out = r->c.u;
    return HEFT_OK;
}

heft_status heft_zt2_map(heft_zt2_reader *r, const char *what)
{
    return heft_cbor_next(&r->c) == HEFT_CBOR_MAP ? HEFT_OK : wrong_kind(r, what, "map");
}

heft_status heft_zt2_key(heft_zt2_reader *r, heft_str *key, bool *more)
{
    heft_cbor_kind k = heft_cbor_next(&r->c);
    *more = k != HEFT_CBOR_MAP_END;
    if (k == HEFT_CBOR_TEXT)
        *key = r->c.str;
    return k == HEFT_CBOR_TEXT || !*more ? r->c.st : wrong_kind(r, "a key", "text");
}

heft_status heft_zt2_name(heft_zt2_reader *r, heft_str *key, bool *more, const char *what)
{
    heft_status st = heft_zt2_key(r, key, more);
    const char *reason = !st && *more ? heft_zt2_bad_name(*key) : NULL;
    return reason ? heft_cbor_fail(&r->c, "%s %q: %s", what, *key, reason) : st;
}

heft_status heft_zt2_skip(heft_zt2_reader *r, heft_str key, const char *text)
{
    heft_ix_omit(r->x, HEFT_WARNING, "ztensor/unknown-key", key, text);
    return heft_cbor_skip(&r->c, heft_cbor_next(&r->c));
}

heft_status heft_zt2_attributes(heft_zt2_reader *r, uint32_t tensor)
{
    heft_str key;
    bool more;
    heft_status st = heft_zt2_map(r, "attributes");
    while (!st && !(st = heft_zt2_name(r, &key, &more, "attribute")) && more)
        st = heft_zt_read_attribute(&r->c, heft_cbor_next(&r->c), key, r->x, tensor);
    return st;
}

/* ---- digests ---- */

/* Return true if s is not empty and consists of digits and of letters from 'a' to `last`. */
static bool consists_of(heft_str s, char last)
{
    bool is_valid = s.len > 0;
    for (size_t i = 0; is_valid && i < s.len; i++)
        is_valid = (s.ptr[i] >= '0' && s.ptr[i] <= '9') || (s.ptr[i] >= 'a' && s.ptr[i] <= last);
    return is_valid;
}

heft_status heft_zt2_digest(heft_zt2_reader *r, heft_str *out, const char **algorithm,
                            size_t *hex_at)
{
    static const struct {
        const char *name;
        size_t digits;
    } known[] = { { "xxh3", 16 }, { "sha256", 64 } };
    HEFT_TRY(heft_zt2_text(r, out, "a digest"));
    size_t colon = 0, digits = 0;
    while (colon < out->len && out->ptr[colon] != ':')
        colon++;
    *algorithm = NULL;
    *hex_at = colon + 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (heft_str_is((heft_str){ out->ptr, colon }, known[i].name)) {
            *algorithm = known[i].name;
            digits = known[i].digits;
        }
    heft_str hex = { out->ptr + colon + 1, colon < out->len ? out->len - colon - 1 : 0 };
    /* §L2: check the form of the name, so that a malformed digest is not taken for an unknown
     * one. */
    if (!consists_of((heft_str){ out->ptr, colon }, 'z') || !consists_of(hex, 'f') ||
        (digits && hex.len != digits))
        return heft_cbor_fail(
            &r->c,
            "%q is not a digest: expected NAME:HEX, with NAME of a-z and 0-9 and HEX in lower case",
            *out);
    return HEFT_OK;
}

/* ---- parts ---- */

enum { BLOB = 1, DTYPE = 2, DECODED = 4 };

typedef struct part {
    uint64_t at; /* offset of the part's map, for messages */
    heft_str role, dtype, type, encoding, digest;
    heft_range blob;
    uint64_t decoded;
    const heft_zt2_shard *shard; /* NULL: this file */
    const char *algorithm;
    size_t hex_at;
    uint32_t fields;
} part;

static heft_status fail_part(heft_zt2_reader *r, const part *p, const char *what)
{
    return r->c.st ? r->c.st
                   : heft_error_set(r->x->err, HEFT_E_FORMAT, p->at, "object %q, part %q: %s",
                                    r->object, p->role, what);
}

static heft_status read_blob(heft_zt2_reader *r, part *p)
{
    if (heft_cbor_next(&r->c) != HEFT_CBOR_ARRAY || r->c.u != 2)
        return r->c.st ? r->c.st : fail_part(r, p, "blob is not [offset, length]");
    HEFT_TRY(heft_zt2_number(r, &p->blob.offset, "the offset of a blob"));
    HEFT_TRY(heft_zt2_number(r, &p->blob.length, "the length of a blob"));
    heft_cbor_next(&r->c); /* the end of the array */
    return r->c.st;
}

/* The table is sorted by key: shorter names first. */
static const heft_zt2_shard *find_shard(const heft_zt2_reader *r, heft_str name)
{
    heft_bisect b = { .end = r->shard_count };
    while (heft_bisect_next(&b)) {
        heft_str at = r->shards[b.mid].name;
        bool is_before = at.len != name.len ? at.len < name.len : heft_str_order(at, name) < 0;
        heft_bisect_narrow(&b, is_before);
    }
    bool is_found = b.first < r->shard_count && heft_str_eq(r->shards[b.first].name, name);
    return is_found ? &r->shards[b.first] : NULL;
}

static heft_status read_shard(heft_zt2_reader *r, part *p)
{
    heft_str name;
    HEFT_TRY(heft_zt2_text(r, &name, "a shard"));
    p->shard = find_shard(r, name);
    if (!p->shard)
        return heft_cbor_fail(&r->c, "object %q, part %q: shard %q is not in the shard table",
                              r->object, p->role, name);
    return HEFT_OK;
}

static heft_status read_part_field(heft_zt2_reader *r, part *p, heft_str key)
{
    switch (key.len) {
    case 4:
        if (heft_str_is(key, "blob")) {
            p->fields |= BLOB;
            return read_blob(r, p);
        }
        if (heft_str_is(key, "type"))
            return heft_zt2_text(r, &p->type, "a type");
        break;
    case 5:
        if (heft_str_is(key, "dtype")) {
            p->fields |= DTYPE;
            return heft_zt2_text(r, &p->dtype, "a dtype");
        }
        if (heft_str_is(key, "shard"))
            return read_shard(r, p);
        break;
    case 6:
        if (heft_str_is(key, "digest"))
            return heft_zt2_digest(r, &p->digest, &p->algorithm, &p->hex_at);
        break;
    case 8:
        if (heft_str_is(key, "encoding"))
            return heft_zt2_text(r, &p->encoding, "an encoding");
        break;
    case 14:
        if (heft_str_is(key, "decoded_length")) {
            p->fields |= DECODED;
            return heft_zt2_number(r, &p->decoded, "a decoded_length");
        }
        break;
    default:
        break;
    }
    return heft_zt2_skip(r, key, "is an unknown key of a part and is left out");
}

/* ---- building parts ---- */

/* §4: an unknown storage type is an error; an unknown logical type is kept without being
 * interpreted. */
static heft_status type_of(heft_zt2_reader *r, const part *p, heft_dtype *out)
{
    bool is_storage = false, has_logical_types = false;
    *out = HEFT_UNTYPED;
    for (size_t i = 0; i < heft_zt2_type_count; i++) {
        const heft_zt2_type *t = &heft_zt2_types[i];
        bool is_same_storage = heft_str_is(p->dtype, t->storage);
        is_storage |= is_same_storage;
        if (!t->dtype || (t->logical ? !heft_str_is(p->type, t->logical) : p->type.ptr != NULL))
            continue;
        has_logical_types |= p->type.ptr != NULL;
        if (is_same_storage)
            *out = t->dtype;
    }
    if (!is_storage)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, p->at,
                              "object %q, part %q: unknown dtype %q", r->object, p->role, p->dtype);
    if (has_logical_types && !*out)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, p->at,
                              "object %q, part %q: type %q cannot be combined with dtype %q",
                              r->object, p->role, p->type, p->dtype);
    return HEFT_OK;
}

/* Keep an unknown logical type as an attribute, so that it can be written back. */
static heft_status preserve_type(heft_zt2_reader *r, uint32_t tensor, const part *p)
{
    heft_arena *arena = &r->x->arena;
    heft_value v = { .kind = HEFT_KIND_STR, .key = heft_lit("stored_dtype") };
    v.as.s = heft_arena_join(arena, p->dtype, heft_lit(":"), p->type);
    if (!heft_str_is(p->role, "data"))
        v.key = heft_arena_join(arena, v.key, heft_lit("."), p->role);
    if (!v.as.s.ptr || !v.key.ptr)
        return heft_error_no_memory(r->x->err, "for a type");
    heft_ix_note(r->x, HEFT_WARNING, "ztensor/type-unknown", p->at, tensor,
                 "unknown logical type: its bytes are listed, not interpreted");
    return heft_ix_attr(r->x, tensor, v);
}

static heft_status add_part(heft_zt2_reader *r, uint32_t tensor, const part *p)
{
    heft_index *x = r->x;
    heft_dtype dtype;
    heft_encoding encoding = HEFT_RAW;
    uint32_t number = x->parts.len;
    uint64_t end = p->shard ? p->shard->size - HEFT_ZT2_FOOTER : r->data_end;
    HEFT_TRY(type_of(r, p, &dtype));
    if (p->blob.offset < HEFT_ZT2_ALIGN || p->blob.offset % HEFT_ZT2_ALIGN)
        return heft_error_set(x->err, HEFT_E_FORMAT, p->at,
                              "object %q, part %q: offset %U is not a positive multiple of 4096",
                              r->object, p->role, p->blob.offset);
    if (!heft_range_in(p->blob, end))
        return heft_error_set(
            x->err, HEFT_E_FORMAT, p->at,
            "object %q, part %q: %U bytes at %U extend past the end of the data, %U", r->object,
            p->role, p->blob.length, p->blob.offset, end);
    uint64_t global_offset = heft_global_offset(p->shard ? p->shard->number : 0, p->blob.offset);
    uint64_t length = p->encoding.ptr ? p->decoded : p->blob.length;
    if (p->encoding.ptr)
        encoding = heft_str_is(p->encoding, heft_zt2_zstd) ? HEFT_ZSTD : HEFT_ENCODING_OTHER;
    HEFT_TRY(heft_ix_part(x, tensor, p->role, dtype, (heft_range){ global_offset, p->blob.length },
                          length, encoding));
    if (p->type.ptr && !dtype)
        HEFT_TRY(preserve_type(r, tensor, p));
    if (p->algorithm)
        return heft_ix_digest(x, number, "ztensor/digest", p->algorithm, p->digest, p->hex_at,
                              true);
    if (p->digest.ptr)
        heft_zt_omit(x, "ztensor/digest-unknown", p->at, tensor,
                     "digests of unknown algorithms are left out",
                     "digest of an unknown algorithm is not checked");
    return HEFT_OK;
}

static heft_status read_part(heft_zt2_reader *r, uint32_t tensor, heft_str role)
{
    part p = { .role = role };
    heft_str key;
    bool more;
    heft_status st = heft_zt2_map(r, "a part");
    p.at = heft_cbor_offset(&r->c, r->c.item);
    while (!st && !(st = heft_zt2_key(r, &key, &more)) && more)
        st = read_part_field(r, &p, key);
    if (st)
        return st;
    if (!(p.fields & BLOB))
        return fail_part(r, &p, "blob is missing");
    if (!(p.fields & DTYPE))
        return fail_part(r, &p, "dtype is missing");
    if (!p.encoding.ptr != !(p.fields & DECODED))
        return fail_part(r, &p, "encoding and decoded_length must occur together");
    return add_part(r, tensor, &p);
}

/* ---- objects ---- */

enum { PARTS = 1, SHAPE = 2, LAYOUT = 4, ALL_FIELDS = 7 };

static heft_status read_shape(heft_zt2_reader *r)
{
    uint64_t n = 0;
    if (heft_cbor_next(&r->c) != HEFT_CBOR_ARRAY)
        return wrong_kind(r, "its shape", "list");
    if (r->c.u > HEFT_ZT2_MAX_RANK)
        return heft_zt2_fail(r, "more than 64 dimensions");
    for (uint64_t rank = r->c.u; rank; rank--) {
        HEFT_TRY(heft_zt2_number(r, &n, "a dimension"));
        HEFT_TRY(heft_ix_dim(r->x, n));
    }
    heft_cbor_next(&r->c); /* the end of the array */
    return r->c.st;
}

static heft_status read_field(heft_zt2_reader *r, uint32_t tensor, heft_str key, uint32_t *fields)
{
    heft_str layout, role;
    bool more;
    heft_status st;
    if (heft_str_is(key, "parts")) {
        *fields |= PARTS;
        st = heft_zt2_map(r, "parts");
        if (!st && !r->c.u)
            return heft_zt2_fail(r, "object has no parts");
        while (!st && !(st = heft_zt2_name(r, &role, &more, "part")) && more)
            st = read_part(r, tensor, role);
        return st;
    }
    if (heft_str_is(key, "shape")) {
        *fields |= SHAPE;
        return read_shape(r);
    }
    if (heft_str_is(key, "attributes"))
        return heft_zt2_attributes(r, tensor);
    if (!heft_str_is(key, "layout"))
        return heft_zt2_skip(r, key, "is an unknown key of an object and is left out");
    *fields |= LAYOUT;
    st = heft_zt2_text(r, &layout, "its layout");
    return st ? st : heft_ix_set_layout(r->x, tensor, heft_zt2_layout_from_file(layout));
}

static heft_status check_object(heft_zt2_reader *r, uint32_t tensor, uint64_t at)
{
    heft_index *x = r->x;
    heft_str role;
    uint64_t n;
    if (!heft_product(&n, heft_ix_dims(x, tensor), heft_ix_row(x, tensor)->rank))
        return heft_error_set(x->err, HEFT_E_FORMAT, at, "object %q: shape overflows 64 bits",
                              r->object);
    /* The main part determines the tensor's type; scales and indices have types of their own. */
    uint32_t data = heft_ix_part_find(x, tensor, heft_lit("data"));
    if (data == HEFT_NONE)
        data = heft_ix_part_find(x, tensor, heft_lit("values"));
    if (data != HEFT_NONE)
        heft_ix_row(x, tensor)->dtype = heft_ix_part_row_at(x, data)->dtype;
    const char *reason = heft_zt2_layout_fault(x, tensor, &role);
    if (!reason)
        return HEFT_OK;
    return role.len ? heft_error_set(x->err, HEFT_E_FORMAT, at, "object %q, part %q: %s", r->object,
                                     role, reason)
                    : heft_error_set(x->err, HEFT_E_FORMAT, at, "object %q: %s", r->object, reason);
}

heft_status heft_zt2_object(heft_zt2_reader *r)
{
    uint32_t fields = 0, tensor;
    uint64_t *dims;
    heft_str key;
    bool more;
    heft_status st = heft_zt2_map(r, "an object");
    uint64_t at = heft_cbor_offset(&r->c, r->c.item);
    if (!st)
        st = heft_ix_tensor(r->x, r->object, HEFT_UNTYPED, 0, &dims, &tensor);
    while (!st && !(st = heft_zt2_key(r, &key, &more)) && more)
        st = read_field(r, tensor, key, &fields);
    if (st)
        return st;
    if (fields != ALL_FIELDS)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, at, "object %q: %s", r->object,
                              !(fields & PARTS)   ? "parts are missing"
                              : !(fields & SHAPE) ? "shape is missing"
                                                  : "layout is missing");
    return check_object(r, tensor, at);
}
