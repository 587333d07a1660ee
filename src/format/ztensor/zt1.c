/* zt1.c - reads zTensor 1.0, 1.1 and 1.2.
 *
 *   "ZTEN1000", zeros, components at multiples of 64 with zeros between, the manifest in CBOR,
 *   u64 length of the manifest, from 1.1 on "ZTEN1000" again
 *
 *   1.0    {"version", "generator", "attributes": {text: text}, "tensors": {name: {"dtype",
 *          "shape", "format", "components": {role: {"offset", "length", "encoding"?, "digest"?}}}}}
 *   1.1 …  {"version", "attributes"?, "objects": {name: {"shape", "format", "attributes"?,
 *          "components": {role: {"dtype", "type"?, "offset", "length", "uncompressed_length"?,
 *          "encoding"?, "digest"?}}}}}
 *
 * Keys may come in any order. A map whose meaning depends on later keys is skipped, and read after
 * the last key.
 */
#include "format/ztensor/ztensor.h"

#include "base/compiler.h"

enum { VERSION, GENERATOR, ATTRIBUTES, TENSORS, OBJECTS, ROOT_FIELDS };
enum { T_DTYPE, T_SHAPE, T_FORMAT, T_COMPONENTS, T_ATTRIBUTES, TENSOR_FIELDS };
enum { P_OFFSET, P_LENGTH, P_ENCODING, P_DIGEST, P_DTYPE, P_TYPE, P_DECODED, PART_FIELDS };

/* Names in the field order of the reference writer's structs, which numeric keys refer to. */
static const char *const root_names[] = { "version", "generator", "attributes", "tensors",
                                          "objects" };
static const char *const tensor_names[] = { "dtype", "shape", "format", "components",
                                            "attributes" };
static const char *const part_names[] = { "offset", "length", "encoding",           "digest",
                                          "dtype",  "type",   "uncompressed_length" };

static const heft_zt_fields root_fields = { "the manifest", root_names, ROOT_FIELDS };
static const heft_zt_fields tensor_fields = { "a tensor", tensor_names, TENSOR_FIELDS };
static const heft_zt_fields part_fields = { "a component", part_names, PART_FIELDS };

typedef struct reader {
    heft_cbor *c;
    heft_index *x;
    bool is_10;  /* True if the container is that of 1.0. */
    bool packed; /* True if some keys were numbers. */
    uint32_t seen;
    heft_str key; /* Last key read, to name unknown keys in messages. */
    heft_str version;
    uint64_t root_at, version_at; /* offsets of the manifest and of the version */
    heft_zt_item
        other_map; /* "tensors" in a container for "objects", or "objects" in one for "tensors" */
} reader;

static void note(const reader *r, uint32_t tensor, const char *rule, const char *text)
{
    uint64_t at = heft_cbor_offset(r->c, r->c->item);
    heft_ix_note(r->x, HEFT_WARNING, rule, at, tensor, text);
}

/* ---- components ---- */

typedef struct tensor {
    uint32_t id;
    uint64_t at;
    bool is_10;      /* True if components have no element type of their own. */
    heft_dtype type; /* "dtype" in 1.0 */
} tensor;

typedef struct component {
    heft_zt_part part;
    heft_str dtype, type;
} component;

/* Call heft_zt_field() and record the key in r->key. */
static uint32_t key_field(reader *r, heft_cbor_kind k, const heft_zt_fields *f, uint32_t *seen)
{
    r->key = k == HEFT_CBOR_TEXT ? r->c->str : heft_lit("a number");
    return heft_zt_field(r->c, k, f, seen, &r->packed);
}

/* Skip the value of an unknown key and record its loss. */
static heft_status skip_unknown(reader *r, heft_cbor_kind k, const char *text)
{
    heft_ix_omit(r->x, HEFT_WARNING, "ztensor/unknown-key", r->key, text);
    return heft_cbor_skip(r->c, k);
}

/* Find an element type by its short or long name; note the name of another generation. */
static heft_status find_type(reader *r, const tensor *t, uint64_t at, heft_str name,
                             heft_dtype *out)
{
    for (size_t i = 0; i < heft_zt_type_count; i++) {
        const heft_zt_type *type = &heft_zt_types[i];
        bool is_short = *type->name && heft_str_is(name, type->name);
        bool is_long = *type->long_name && heft_str_is(name, type->long_name);
        bool has_logical_types = type->logical && heft_str_is(name, type->logical);
        if (!is_short && !is_long && !has_logical_types)
            continue;
        *out = type->dtype;
        if (!(t->is_10 ? is_long : is_short))
            note(r, t->id, "ztensor/dtype-spelling",
                 "element type is spelled as in another generation of zTensor");
        return HEFT_OK;
    }
    return heft_error_set(r->x->err, HEFT_E_FORMAT, at, "tensor %q: unknown element type %q",
                          heft_ix_name(r->x, t->id), name);
}

/* Apply "type", the logical type of the elements. */
static heft_status find_logical(reader *r, const tensor *t, heft_str name, heft_dtype *type)
{
    heft_value attribute = { .kind = HEFT_KIND_STR, .key = heft_lit("stored_dtype") };
    for (size_t i = 0; i < heft_zt_type_count; i++)
        if (heft_zt_types[i].logical && heft_str_is(name, heft_zt_types[i].logical) &&
            heft_zt_types[i].base == *type) {
            *type = heft_zt_types[i].dtype;
            return HEFT_OK;
        }
    note(r, t->id, "ztensor/logical-type",
         "unknown logical type: the tensor is read as its storage type");
    heft_ix_omit(r->x, HEFT_NOTE, "ztensor/logical-type", name,
                 "is an unknown logical type and becomes the attribute stored_dtype");
    attribute.as.s = name;
    return heft_ix_attr(r->x, t->id, attribute);
}

static bool is_index(const heft_index *x, uint32_t id, heft_str role)
{
    uint8_t layout = heft_ix_row(x, id)->layout;
    if (layout == HEFT_SPARSE_CSR)
        return heft_str_is(role, "indices") || heft_str_is(role, "indptr");
    return layout == HEFT_SPARSE_COO && heft_str_is(role, "coords");
}

static heft_status resolve_type(reader *r, const tensor *t, component *c)
{
    heft_index *x = r->x;
    heft_zt_part *p = &c->part;
    heft_ix_tensor_row *row = heft_ix_row(x, t->id);
    bool is_main = heft_str_eq(p->role, heft_zt_main_role(row));
    if (c->dtype.ptr)
        HEFT_TRY(find_type(r, t, p->at, c->dtype, &p->dtype));
    else if (!t->is_10)
        return heft_error_set(x->err, HEFT_E_FORMAT, p->at,
                              "tensor %q, component %q: \"dtype\" is missing",
                              heft_ix_name(x, t->id), p->role);
    else if (is_index(x, t->id, p->role))
        p->dtype = HEFT_U64;
    else if (is_main && row->layout < HEFT_LAYOUT_OTHER)
        p->dtype = t->type;
    if (c->type.ptr)
        HEFT_TRY(find_logical(r, t, c->type, &p->dtype));
    if ((!t->is_10 || row->layout == HEFT_DENSE) && is_main)
        row->dtype = p->dtype;
    return HEFT_OK;
}

static heft_status text_or_null(reader *r, heft_cbor_kind k, const char *what, heft_str *out)
{
    return k == HEFT_CBOR_NULL ? HEFT_OK : heft_zt_expect_text(r->c, k, what, out);
}

static heft_status read_part_field(reader *r, uint32_t field, heft_cbor_kind k, component *p)
{
    switch (field) {
    case P_OFFSET:
        return heft_zt_expect_u64(r->c, k, "offset", &p->part.range.offset);
    case P_LENGTH:
        return heft_zt_expect_u64(r->c, k, "length", &p->part.range.length);
    case P_ENCODING:
        return heft_zt_read_encoding(r->c, k, &p->part.is_zstd);
    case P_DIGEST:
        return text_or_null(r, k, "digest", &p->part.digest);
    case P_DTYPE:
        return heft_zt_expect_text(r->c, k, "dtype", &p->dtype);
    case P_TYPE:
        return text_or_null(r, k, "type", &p->type);
    case P_DECODED:
        return k == HEFT_CBOR_NULL
                   ? HEFT_OK
                   : heft_zt_expect_u64(r->c, k, "uncompressed_length", &p->part.decoded);
    default:
        return skip_unknown(r, k, "is an unknown key of a component and is left out");
    }
}

/* Fail at the offset of the map if a required field is missing. */
static heft_status check_required(reader *r, const heft_zt_fields *f, uint32_t seen,
                                  uint32_t required, heft_str name, uint64_t at)
{
    for (uint32_t i = 0; i < f->count; i++)
        if (required & ~seen & 1u << i)
            return heft_error_set(r->x->err, HEFT_E_FORMAT, at, "%q: \"%s\" is missing in %s", name,
                                  f->names[i], f->map_name);
    return HEFT_OK;
}

static heft_status read_component(reader *r, const tensor *t, heft_str role, heft_cbor_kind k)
{
    component p = { .part = { .role = role, .decoded = HEFT_UNKNOWN_LENGTH } };
    uint32_t seen = 0;
    p.part.at = heft_cbor_offset(r->c, r->c->item);
    if (r->c->st || k != HEFT_CBOR_MAP)
        return heft_cbor_fail(r->c, "component %q is not a map", role);
    while ((k = heft_cbor_next(r->c)) != HEFT_CBOR_MAP_END) {
        uint32_t field = key_field(r, k, &part_fields, &seen);
        HEFT_TRY(r->c->st);
        HEFT_TRY(read_part_field(r, field, heft_cbor_next(r->c), &p));
    }
    HEFT_TRY(
        check_required(r, &part_fields, seen, 1u << P_OFFSET | 1u << P_LENGTH, role, p.part.at));
    HEFT_TRY(resolve_type(r, t, &p));
    return heft_zt_add_part(r->x, t->id, &p.part);
}

static heft_status read_components(reader *r, const tensor *t, heft_cbor_kind k)
{
    if (r->c->st || k != HEFT_CBOR_MAP)
        return heft_cbor_fail(r->c, "components is not a map");
    while ((k = heft_cbor_next(r->c)) != HEFT_CBOR_MAP_END) {
        heft_str role;
        HEFT_TRY(heft_zt_expect_text(r->c, k, "a component's name", &role));
        HEFT_TRY(read_component(r, t, role, heft_cbor_next(r->c)));
    }
    return HEFT_OK;
}

/* ---- tensors ---- */

static heft_status read_tensor_field(reader *r, tensor *t, uint32_t field, uint32_t seen,
                                     heft_cbor_kind k, heft_zt_item *skipped_components)
{
    uint32_t first = 1u << T_SHAPE | 1u << T_FORMAT | (t->is_10 ? 1u << T_DTYPE : 0);
    heft_str name;
    heft_status st;
    switch (field == T_DTYPE && !t->is_10 ? (uint32_t)TENSOR_FIELDS : field) {
    case T_DTYPE:
        st = heft_zt_expect_text(r->c, k, "dtype", &name);
        if (!st)
            st = find_type(r, t, heft_cbor_offset(r->c, r->c->item), name, &t->type);
        if (!st)
            heft_ix_row(r->x, t->id)->dtype = t->type;
        return st;
    case T_SHAPE:
        return heft_zt_read_shape(r->c, k, r->x);
    case T_FORMAT:
        st = heft_zt_expect_text(r->c, k, "format", &name);
        return st ? st : heft_ix_set_layout(r->x, t->id, name);
    case T_ATTRIBUTES:
        if (k == HEFT_CBOR_NULL)
            return HEFT_OK;
        if (r->c->st || k != HEFT_CBOR_MAP)
            return heft_cbor_fail(r->c, "attributes is not a map");
        return heft_zt_read_values(r->c, r->x, t->id, "a tensor's attributes");
    case T_COMPONENTS:
        return (seen & first) == first ? read_components(r, t, k)
                                       : heft_zt_skip_value(r->c, k, skipped_components);
    default:
        return skip_unknown(r, k, "is an unknown key of a tensor and is left out");
    }
}

static heft_status read_tensor(reader *r, bool is_10, heft_str name, heft_cbor_kind k)
{
    tensor t = { .is_10 = is_10, .at = heft_cbor_offset(r->c, r->c->item) };
    heft_zt_item skipped_components = { NULL, NULL };
    uint64_t *dims;
    uint32_t seen = 0;
    if (r->c->st || k != HEFT_CBOR_MAP)
        return heft_cbor_fail(r->c, "tensor %q is not a map", name);
    heft_status st = heft_ix_tensor(r->x, name, HEFT_UNTYPED, 0, &dims, &t.id);
    while (!st && (k = heft_cbor_next(r->c)) != HEFT_CBOR_MAP_END) {
        uint32_t field = key_field(r, k, &tensor_fields, &seen);
        st = r->c->st;
        if (!st)
            st = read_tensor_field(r, &t, field, seen, heft_cbor_next(r->c), &skipped_components);
    }
    uint32_t required = 1u << T_SHAPE | 1u << T_FORMAT | 1u << T_COMPONENTS;
    if (!st)
        st = check_required(r, &tensor_fields, seen, required | (is_10 ? 1u << T_DTYPE : 0), name,
                            t.at);
    if (!st && skipped_components.from) {
        heft_cbor *outer = r->c, again = heft_zt_reopen(outer, skipped_components);
        r->c = &again;
        st = read_components(r, &t, heft_cbor_next(&again));
        r->c = outer;
    }
    return st ? st : heft_zt_check_layout(r->x, t.id, t.at);
}

static heft_status read_tensors(reader *r, bool is_10, heft_cbor_kind k)
{
    enum {
        MIN_TENSOR_ENTRY = 29
    }; /* smallest tensor entry in bytes; larger than the smallest CBOR pair */
    if (r->c->st || k != HEFT_CBOR_MAP)
        return heft_cbor_fail(r->c, "%s is not a map", is_10 ? "tensors" : "objects");
    uint64_t at = heft_cbor_offset(r->c, r->c->item), left = (uint64_t)(r->c->end - r->c->p);
    bool has_count = !(r->c->flags & HEFT_CBOR_INDEFINITE);
    heft_status st = has_count ? heft_ix_reserve(r->x, at, r->c->u, left, MIN_TENSOR_ENTRY)
                               : HEFT_OK;
    for (bool read; !st;) {
        heft_str name;
        st = heft_zt1_read_canonical(r->c, r->x, is_10, &read);
        if (st || read)
            continue;
        if ((k = heft_cbor_next(r->c)) == HEFT_CBOR_MAP_END)
            break;
        st = heft_zt_expect_text(r->c, k, "a tensor's name", &name);
        if (!st)
            st = read_tensor(r, is_10, name, heft_cbor_next(r->c));
    }
    return st;
}

/* ---- the root ---- */

static heft_status read_root_attributes(reader *r, heft_cbor_kind k)
{
    const heft_index *x = r->x;
    if (k == HEFT_CBOR_NULL) {
        note(r, HEFT_NONE, "ztensor/attributes",
             "attributes are null, which zTensor 1.0 does not allow");
        return HEFT_OK;
    }
    if (r->c->st || k != HEFT_CBOR_MAP)
        return heft_cbor_fail(r->c, "attributes is not a map");
    heft_status st = heft_zt_read_values(r->c, r->x, HEFT_NONE, "the attributes");
    for (uint32_t i = 0; r->is_10 && !st && i < x->values.len; i = heft_ix_value_next(x, i))
        if (heft_ix_value(x, i)->kind != HEFT_KIND_STR) {
            note(r, HEFT_NONE, "ztensor/attribute-text",
                 "a file attribute is not a text, which zTensor 1.0 does not allow");
            break;
        }
    return st;
}

/* Choose between "tensors" and "objects" if the map of the other generation is present, or none. */
static heft_status choose_tensor_map(reader *r)
{
    uint32_t own_field = r->is_10 ? TENSORS : OBJECTS, other_field = r->is_10 ? OBJECTS : TENSORS;
    bool has_own = r->seen & 1u << own_field;
    if (!r->other_map.from && !has_own)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, r->root_at,
                              "\"%s\" is missing in the manifest", root_names[own_field]);
    if (!r->other_map.from)
        return HEFT_OK;
    if (has_own) {
        heft_ix_omit(r->x, HEFT_WARNING, "ztensor/both-maps", heft_lit(root_names[other_field]),
                     "of the manifest holds the tensors of another generation and is left out");
        note(r, HEFT_NONE, "ztensor/both-maps",
             "both \"tensors\" and \"objects\" are present: the map of the other generation is "
             "ignored");
        return HEFT_OK;
    }
    heft_ix_omit(
        r->x, HEFT_NOTE, "ztensor/container", (heft_str){ NULL, 0 },
        "a manifest in the container of another generation is moved to the container of its own");
    note(r, HEFT_NONE, "ztensor/container",
         r->is_10 ? "manifest of 1.1 or later in the container of 1.0"
                  : "manifest of 1.0 in the container of 1.1");
    heft_cbor *outer = r->c, again = heft_zt_reopen(outer, r->other_map);
    r->c = &again;
    heft_status st = read_tensors(r, !r->is_10, heft_cbor_next(&again));
    r->c = outer;
    return st;
}

static heft_status read_root(reader *r)
{
    uint32_t own_field = r->is_10 ? TENSORS : OBJECTS, other_field = r->is_10 ? OBJECTS : TENSORS;
    heft_cbor_kind k = heft_cbor_next(r->c);
    heft_status st = r->c->st;
    r->root_at = heft_cbor_offset(r->c, r->c->item);
    if (!st && k != HEFT_CBOR_MAP)
        return heft_cbor_fail(r->c, "manifest is not a map");
    while (!st && (k = heft_cbor_next(r->c)) != HEFT_CBOR_MAP_END) {
        uint32_t field = key_field(r, k, &root_fields, &r->seen);
        if (r->c->st)
            return r->c->st;
        k = heft_cbor_next(r->c);
        if (field == own_field)
            st = read_tensors(r, r->is_10, k);
        else if (field == other_field)
            st = heft_zt_skip_value(r->c, k, &r->other_map);
        else if (field == VERSION) {
            r->version_at = heft_cbor_offset(r->c, r->c->item);
            st = heft_zt_expect_text(r->c, k, "version", &r->version);
        } else if (field == GENERATOR)
            st = text_or_null(r, k, "generator", &r->x->generator);
        else if (field == ATTRIBUTES)
            st = read_root_attributes(r, k);
        else
            st = skip_unknown(r, k, "is an unknown key of the manifest and is left out");
    }
    if (!st)
        st = heft_zt_close_manifest(r->c);
    return st ? st : choose_tensor_map(r);
}

/* ---- the version ---- */

/* Parse digits and move *at past them; return false if there are none. MAX stands for all larger
 * numbers. */
static bool take_number(heft_str s, size_t *at, uint32_t *out)
{
    enum { MAX = 1000000 };
    size_t first = *at;
    *out = 0;
    while (*at < s.len && s.ptr[*at] >= '0' && s.ptr[*at] <= '9') {
        uint32_t digit = (uint32_t)(s.ptr[(*at)++] - '0');
        *out = *out < MAX / 10 ? *out * 10 + digit : (uint32_t)MAX;
    }
    return *at > first;
}

/* Parse MAJOR.MINOR, optionally followed by further numbers; *len is the length of MAJOR.MINOR.
 * Return false if the text is not a version. */
static bool read_version(heft_str s, uint32_t *major, uint32_t *minor, size_t *len)
{
    size_t at = 0;
    uint32_t patch;
    if (!take_number(s, &at, major) || at == s.len || s.ptr[at++] != '.' ||
        !take_number(s, &at, minor))
        return false;
    *len = at;
    while (at < s.len)
        if (s.ptr[at++] != '.' || !take_number(s, &at, &patch))
            return false;
    return true;
}

/* §6.1: refuse another major version; accept a newer minor version. */
static heft_status check_version(reader *r)
{
    enum { MAJOR = 1, NEWEST_MINOR = 2 };
    uint32_t major, minor;
    size_t len;
    if (!(r->seen & 1u << VERSION))
        return heft_error_set(r->x->err, HEFT_E_FORMAT, r->root_at,
                              "\"version\" is missing in the manifest");
    if (!read_version(r->version, &major, &minor, &len))
        return heft_error_set(r->x->err, HEFT_E_FORMAT, r->version_at,
                              "version %q is not of the form MAJOR.MINOR", r->version);
    if (major != MAJOR)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, r->version_at,
                              "version %q: a file with this magic number must be of version 1",
                              r->version);
    if (minor > NEWEST_MINOR)
        note(r, HEFT_NONE, "ztensor/version-newer",
             "version is newer than 1.2, the newest known one: the file may hold data that is not "
             "read");
    else if (r->is_10 != !minor) {
        heft_ix_omit(r->x, HEFT_NOTE, "ztensor/version-container", (heft_str){ NULL, 0 },
                     "a manifest in the container of another generation is moved to the container "
                     "of its own");
        note(r, HEFT_NONE, "ztensor/version-container",
             "version belongs to the container of another generation");
    }
    r->x->version = (heft_str){ r->version.ptr, len };
    r->x->has_omissions = r->x->has_omissions || !heft_zt1_writes(r->version, r->is_10);
    return HEFT_OK;
}

heft_status heft_zt1_parse(heft_window *in, heft_index *x)
{
    heft_cbor c;
    heft_range where;
    reader r = { .c = &c, .x = x };
    HEFT_TRY(heft_zt_find_manifest(in, x, &where, &r.is_10));
    HEFT_TRY(heft_zt_open_manifest(&c, in, x, where));
    HEFT_TRY(heft_zt_check_depth(&c, read_root(&r)));
    HEFT_TRY(check_version(&r));
    if (r.is_10 && !(r.seen & 1u << ATTRIBUTES))
        note(&r, HEFT_NONE, "ztensor/attributes",
             "attributes are missing, which zTensor 1.0 does not allow");
    if (r.is_10 && !x->generator.ptr)
        note(&r, HEFT_NONE, "ztensor/generator",
             "generator is missing, which zTensor 1.0 does not allow");
    if (r.packed)
        note(&r, HEFT_NONE, "ztensor/packed-keys", "some keys are numbers instead of names");
    if (r.is_10 && where.offset == HEFT_ZT_MAGIC)
        heft_ix_note(x, HEFT_WARNING, "ztensor/manifest-length", where.offset, HEFT_NONE,
                     "manifest begins directly after the magic number; section 6 requires it to be "
                     "shorter than the file size less 16");
    return HEFT_OK;
}
