/* safetensors_header.c - parses the JSON header of a safetensors file; safetensors.c shows the
 * layout.
 *
 * As in the reference implementation, the fields of an entry may be in any order, with additional
 * fields, and the entries need not be sorted by data_offsets.  Large headers are parsed in
 * parallel. */
#include "format/safetensors/safetensors.h"
#include "grammar/json.h"
#include "model/parallel.h"

/* ---- element types ---- */

/* Searched linearly: common types come first. */
static const heft_dtype_spelling types[] = {
    { "F32", HEFT_F32 },
    { "BF16", HEFT_BF16 },
    { "F16", HEFT_F16 },
    { "I64", HEFT_I64 },
    { "I32", HEFT_I32 },
    { "U8", HEFT_U8 },
    { "F8_E4M3", HEFT_F8_E4M3FN },
    { "F8_E5M2", HEFT_F8_E5M2 },
    { "F8_E8M0", HEFT_F8_E8M0 },
    { "BOOL", HEFT_BOOL },
    { "I8", HEFT_I8 },
    { "I16", HEFT_I16 },
    { "U16", HEFT_U16 },
    { "U32", HEFT_U32 },
    { "U64", HEFT_U64 },
    { "F64", HEFT_F64 },
    { "C64", HEFT_C64 },
    { "F4", HEFT_F4_E2M1 },
    { "F6_E2M3", HEFT_F6_E2M3 },
    { "F6_E3M2", HEFT_F6_E3M2 },
    { "F8_E4M3FNUZ", HEFT_F8_E4M3FNUZ },
    { "F8_E5M2FNUZ", HEFT_F8_E5M2FNUZ },
};
const heft_dtype_spellings heft_st_types = { types, sizeof types / sizeof *types };

const char heft_st_fnuz_text[] = "readers before safetensors 0.8 refuse the file because of this "
                                 "element type (there may be more)";

uint32_t heft_st_find_fnuz(const heft_index *x)
{
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++) {
        heft_dtype type = heft_ix_row(x, t)->dtype;
        if (type == HEFT_F8_E4M3FNUZ || type == HEFT_F8_E5M2FNUZ)
            return t;
    }
    return HEFT_NONE;
}

/* ---- an entry of the header ---- */

enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4, ALL_FIELDS = 7, FAST_RANK = 8 };

typedef struct reader {
    heft_json j;
    heft_index *x;
    heft_st_header h;
    bool has_metadata;
} reader;

typedef struct entry {
    heft_str name, shape; /* shape: text between the brackets; empty if dims is set */
    uint64_t at, elements, begin, end;
    uint64_t dims[FAST_RANK]; /* set by the fast path */
    uint32_t fields, rank;
    heft_dtype dtype;
    bool has_unknown_fields;
    heft_str unknown_dtype; /* spelling of dtype */
    uint64_t dtype_at;
} entry;

/* Fast path for the shape; return false if read_shape() must parse the tokens. */
static bool read_shape_fast(reader *r, entry *e)
{
    const char *after;
    uint32_t rank = heft_json_fast_u64s(&r->j, e->dims, FAST_RANK, &after);
    uint64_t elements = 1;
    for (uint32_t i = 0; i < rank; i++)
        if (e->dims[i] > INT64_MAX || !heft_mul(&elements, elements, e->dims[i]))
            return false;
    if (rank == HEFT_JSON_NOT_PLAIN)
        return false;
    heft_json_accept(&r->j, after);
    e->elements = elements;
    e->rank = rank;
    return true;
}

/* Like the reference, fail on overflow even if a later dimension is zero. */
static heft_status read_shape(reader *r, entry *e)
{
    uint64_t dim;
    if (read_shape_fast(r, e))
        return HEFT_OK;
    heft_json_kind k = heft_json_next(&r->j);
    if (k != HEFT_JSON_ARRAY)
        return heft_json_fail(&r->j, "tensor %q: shape is not a list", e->name);
    e->shape.ptr = r->j.p;
    e->elements = 1;
    for (; (k = heft_json_next(&r->j)) == HEFT_JSON_NUMBER; e->rank++) {
        if (!heft_json_u64(&dim, r->j.text) || dim > INT64_MAX)
            return heft_json_fail(&r->j, "tensor %q: dimension %q is not an integer below 2^63",
                                  e->name, r->j.text);
        if (!heft_mul(&e->elements, e->elements, dim))
            return heft_json_fail(&r->j, "tensor %q: the shape has more than 2^64 elements",
                                  e->name);
    }
    e->shape.len = (size_t)(r->j.p - 1 - e->shape.ptr);
    return k == HEFT_JSON_ARRAY_END
               ? HEFT_OK
               : heft_json_fail(&r->j, "tensor %q: a dimension is not a number", e->name);
}

static heft_status read_offsets(reader *r, entry *e)
{
    heft_json *j = &r->j;
    const char *after;
    uint64_t both[2];
    if (heft_json_fast_u64s(j, both, 2, &after) == 2) {
        heft_json_accept(j, after);
        e->begin = both[0];
        e->end = both[1];
    } else if (heft_json_next(j) != HEFT_JSON_ARRAY || heft_json_next(j) != HEFT_JSON_NUMBER ||
               !heft_json_u64(&e->begin, j->text) || heft_json_next(j) != HEFT_JSON_NUMBER ||
               !heft_json_u64(&e->end, j->text) || heft_json_next(j) != HEFT_JSON_ARRAY_END)
        return heft_json_fail(j, "tensor %q: data_offsets are not two integers", e->name);
    if (e->begin > e->end)
        return heft_json_fail(j, "tensor %q: data_offsets %U and %U are descending", e->name,
                              e->begin, e->end);
    if (e->end > r->h.data_bytes)
        return heft_error_expect(
            j->err,
            heft_json_fail(j,
                           "file is truncated: tensor %q needs data up to byte %U of the data "
                           "section, only %U are present",
                           e->name, e->end, r->h.data_bytes),
            r->h.data, e->end);
    return HEFT_OK;
}

static heft_status read_field(reader *r, entry *e)
{
    heft_str key = r->j.text;
    uint32_t field = key.len == 12 && !memcmp(key.ptr, "data_offsets", 12) ? OFFSETS
                     : key.len == 5 && !memcmp(key.ptr, "dtype", 5)        ? DTYPE
                     : key.len == 5 && !memcmp(key.ptr, "shape", 5)        ? SHAPE
                                                                           : 0;
    if (e->fields & field)
        return heft_json_fail(&r->j, "tensor %q: %s occurs twice", e->name,
                              field == DTYPE   ? "dtype"
                              : field == SHAPE ? "shape"
                                               : "data_offsets");
    e->fields |= field;
    if (field == DTYPE) {
        if (heft_json_next(&r->j) != HEFT_JSON_STRING)
            return heft_json_fail(&r->j, "tensor %q: dtype is not a string", e->name);
        e->dtype = heft_dtype_spelled(&heft_st_types, r->j.text);
        if (HEFT_IS_SMALL && !e->dtype)
            return heft_json_fail(&r->j, "tensor %q: dtype %q is unknown to safetensors", e->name,
                                  r->j.text);
        e->unknown_dtype = r->j.text;
        e->dtype_at = r->j.base + (uint64_t)(r->j.token - r->j.start);
        return HEFT_OK;
    }
    if (field == SHAPE)
        return read_shape(r, e);
    if (field == OFFSETS)
        return read_offsets(r, e);
    e->has_unknown_fields = true;
    heft_ix_omit(r->x, HEFT_WARNING, "safetensors/unknown-field", r->j.text,
                 "of a tensor's entry is unknown and left out");
    return heft_json_skip(&r->j, HEFT_JSON_KEY);
}

/* Convert the numbers of a shape; the text was validated before. */
static void read_dims(uint64_t *dims, heft_str shape)
{
    uint64_t v = 0;
    bool in_number = false;
    for (const char *p = shape.ptr, *end = p + shape.len; p < end; p++) {
        uint32_t digit = (uint32_t)(uint8_t)*p - '0';
        if (digit > 9) {
            if (in_number)
                *dims++ = v;
            v = 0;
        } else {
            v = v * 10 + digit;
        }
        in_number = digit <= 9;
    }
    if (in_number)
        *dims = v;
}

/* Leave a tensor of an unknown type out; the bytes become a part of the file. */
static heft_status leave_out(reader *r, const entry *e)
{
    heft_range where = { r->h.data + e->begin, e->end - e->begin };
    heft_str role = heft_ix_copy(r->x, e->name);
    if (!role.ptr)
        return HEFT_E_NOMEM;
    heft_ix_left_out(r->x, HEFT_LEFT_OUT, "safetensors/dtype", where,
                     "tensor %q is left out: dtype %q is unknown to safetensors", e->name,
                     e->unknown_dtype);
    if (r->x->file_bytes && !heft_range_in(where, r->x->file_bytes))
        return heft_error_set(r->x->err, HEFT_E_FORMAT, e->at,
                              "tensor %q: the data pass the end of the file", e->name);
    HEFT_TRY(heft_ix_part(r->x, HEFT_NONE, role, HEFT_UNTYPED, where, where.length, HEFT_RAW));
    heft_ix_part_is_left_out(r->x);
    return HEFT_OK;
}

static heft_status add_tensor(reader *r, const entry *e)
{
    uint64_t *dims;
    uint32_t id;
    if (!HEFT_IS_SMALL && !e->dtype) {
        r->h.in_order = false;
        return leave_out(r, e);
    }
    if (!heft_dtype_fills_blocks(e->dtype, e->elements))
        return heft_error_set(r->x->err, HEFT_E_FORMAT, e->at,
                              "tensor %q: %U elements of %s do not fill whole bytes", e->name,
                              e->elements, heft_dtype_name(e->dtype));
    HEFT_TRY(heft_ix_tensor(r->x, e->name, e->dtype, e->rank, &dims, &id));
    if (e->shape.ptr)
        read_dims(dims, e->shape);
    else
        memcpy(dims, e->dims, e->rank * sizeof *dims);
    if (e->begin != r->h.next && r->h.next != HEFT_NOWHERE)
        r->h.in_order = false;
    r->h.next = e->end;
    if (e->has_unknown_fields)
        heft_ix_note(r->x, HEFT_NOTE, "safetensors/unknown-field", e->at, id,
                     "the entry in the header has unknown fields");
    return heft_ix_dense(r->x, id, e->at, r->h.data + e->begin, e->end - e->begin);
}

static heft_status read_tensor(reader *r)
{
    heft_json_kind k;
    entry e = { .name = r->j.text, .at = r->j.base + (uint64_t)(r->j.token - r->j.start) };
    if (heft_json_next(&r->j) != HEFT_JSON_OBJECT)
        return heft_json_fail(&r->j, "tensor %q: the entry is not an object", e.name);
    while ((k = heft_json_next(&r->j)) == HEFT_JSON_KEY) {
        HEFT_TRY(read_field(r, &e));
    }
    if (k != HEFT_JSON_OBJECT_END)
        return r->j.st;
    /* Without a range of data, nothing can be left out. */
    if (e.fields != ALL_FIELDS && e.fields & DTYPE && !e.dtype)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, e.dtype_at,
                              "tensor %q: dtype %q is unknown to safetensors", e.name,
                              e.unknown_dtype);
    if (e.fields != ALL_FIELDS)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, e.at, "tensor %q: the entry has no %s",
                              e.name,
                              !(e.fields & DTYPE)   ? "dtype"
                              : !(e.fields & SHAPE) ? "shape"
                                                    : "data_offsets");
    return add_tensor(r, &e);
}

/* ---- parallel parsing ---- */

typedef struct parallel {
    const reader *from;
    heft_st_header *h, chunk[HEFT_IX_CHUNKS];
    uint64_t begin[HEFT_IX_CHUNKS]; /* offset of the first data of each chunk */
} parallel;

/* Return a position after the end of some entry at or after p, where another entry may begin. */
static const uint8_t *find_boundary(const void *ctx, const uint8_t *p, const uint8_t *end)
{
    static const uint8_t border[] = { '}', ',' };
    (void)ctx;
    p = end > p + 1 ? heft_str_seek(p + 1, end, border, sizeof border) : NULL;
    return p ? p + 1 : NULL;
}

/* Parse the entries up to `end`, or up to a key that is not a tensor's name. */
static const uint8_t *read_chunk(void *ctx, const uint8_t *p, const uint8_t *end, heft_index *x,
                                 uint32_t number)
{
    parallel *m = ctx;
    reader r = *m->from;
    uint32_t first = x->tensors.len;
    r.x = x;
    r.h.next = HEFT_NOWHERE;
    r.h.in_order = true;
    heft_json_fork(&r.j, (const char *)p, &x->arena);
    while (p < end && heft_json_next(&r.j) == HEFT_JSON_KEY && !heft_st_is_metadata(r.j.text)) {
        if (read_tensor(&r))
            return NULL;
        p = (const uint8_t *)r.j.p;
    }
    m->chunk[number] = r.h;
    if (x->tensors.len > first)
        m->begin[number] = heft_ix_part_row_at(x, first)->offset - r.h.data;
    return r.j.st ? NULL : p;
}

static void join_chunk(void *ctx, uint32_t number, uint32_t moved)
{
    const parallel *m = ctx;
    const heft_st_header *s = &m->chunk[number];
    (void)moved;
    if (s->next == HEFT_NOWHERE)
        return;
    m->h->in_order = m->h->in_order && s->in_order && m->begin[number] == m->h->next;
    m->h->next = s->next;
}

/* ---- the header ---- */

/* Forgive an error about the value whose first token is k, and skip the value. */
static heft_status skip_forgiven(reader *r, heft_json_kind k, heft_status st)
{
    if (k == HEFT_JSON_FAILED || heft_ix_forgive(r->x, st, "metadata"))
        return st;
    r->j.st = HEFT_OK;
    return heft_json_skip(&r->j, k);
}

/* Refuse a value that is not a string.  If that is forgiven, the text of the JSON is the value. */
static heft_status read_other_value(reader *r, heft_str key, heft_json_kind k)
{
    const char *from = r->j.token;
    if (HEFT_IS_SMALL)
        return heft_json_fail(&r->j, "__metadata__: the value of %q is not a string", key);
    HEFT_TRY(skip_forgiven(
        r, k, heft_json_fail(&r->j, "__metadata__: the value of %q is not a string", key)));
    heft_str text = { from, (size_t)(r->j.p - from) };
    return heft_ix_meta_text(r->x, key, text);
}

static heft_status read_metadata(reader *r)
{
    if (r->has_metadata)
        r->j.st = heft_ix_forgive(r->x, heft_json_fail(&r->j, "__metadata__ occurs twice"),
                                  "metadata");
    if (r->j.st)
        return r->j.st;
    r->has_metadata = true;
    heft_json_kind k = heft_json_next(&r->j);
    if (k == HEFT_JSON_NULL)
        return HEFT_OK;
    if (k != HEFT_JSON_OBJECT)
        return skip_forgiven(r, k, heft_json_fail(&r->j, "__metadata__ is not an object"));
    while ((k = heft_json_next(&r->j)) == HEFT_JSON_KEY) {
        heft_str key = r->j.text;
        k = heft_json_next(&r->j);
        HEFT_TRY(k == HEFT_JSON_STRING ? heft_ix_meta_text(r->x, key, r->j.text)
                                       : read_other_value(r, key, k));
    }
    return r->j.st;
}

/* Note deviations that the reference accepts: the specification requires that the header begins
 * with { and is padded with spaces only. */
static void note_space(reader *r, heft_str header, const char *end)
{
    if (*header.ptr != '{')
        heft_ix_note(r->x, HEFT_WARNING, "safetensors/leading-space", HEFT_ST_LENGTH, HEFT_NONE,
                     "the header begins with white space instead of {");
    while (end < header.ptr + header.len && *end == ' ')
        end++;
    if (end < header.ptr + header.len)
        heft_ix_note(r->x, HEFT_NOTE, "safetensors/padding",
                     HEFT_ST_LENGTH + (uint64_t)(end - header.ptr), HEFT_NONE,
                     "the header is padded with characters other than spaces");
}

enum { SAMPLE = 256 }; /* entries after which the length of the others is judged */

/* Reserve rows for the entries that are left, judged by the length of the entries so far: a column
 * that grows by doubling is copied, and leaves memory behind.  Without memory the columns grow. */
static void reserve_rest(reader *r, heft_str header)
{
    size_t parsed = (size_t)(r->j.p - header.ptr), bytes = parsed / SAMPLE;
    uint64_t tensors = (header.len - parsed) / bytes, dims = tensors * r->x->dims.len / SAMPLE;
    (void)heft_ix_reserve_rows(r->x, tensors + tensors / 8, dims + dims / 8);
}

static heft_status read_json(reader *r, heft_str header)
{
    heft_json_kind k;
    if (heft_json_next(&r->j) != HEFT_JSON_OBJECT)
        return heft_json_fail(&r->j, "the header is not a JSON object");
    while ((k = heft_json_next(&r->j)) == HEFT_JSON_KEY) {
        bool is_metadata = heft_st_is_metadata(r->j.text);
        HEFT_TRY(is_metadata ? read_metadata(r) : read_tensor(r));
        if (!is_metadata && r->x->tensors.len == SAMPLE && !HEFT_IS_SMALL)
            reserve_rest(r, header);
        if (is_metadata || r->x->tensors.len != 1)
            continue;
        /* Parse the rest in parallel from the second tensor on. */
        parallel m = { .from = r, .h = &r->h };
        heft_ix_text_records how = {
            .seek = find_boundary, .read = read_chunk, .join = join_chunk, .ctx = &m
        };
        r->j.p = (const char *)heft_ix_parallel_text(r->x, (const uint8_t *)r->j.p,
                                                     (const uint8_t *)r->j.end, UINT32_MAX, &how);
    }
    const char *end = r->j.p;
    if (k == HEFT_JSON_OBJECT_END && heft_json_next(&r->j) == HEFT_JSON_END)
        note_space(r, header, end);
    if (k != HEFT_JSON_OBJECT_END || r->j.st != HEFT_E_FORMAT || !heft_ix_forgives(r->x))
        return r->j.st;
    return heft_ix_forgive(r->x,
                           heft_error_set(r->x->err, HEFT_E_FORMAT, r->x->err->offset,
                                          "the header is padded with 0x%X instead of spaces",
                                          (uint64_t)(uint8_t)*r->j.token),
                           "header-padding");
}

/* Reserve rows for as many tensors as the header may describe.  In other builds the columns grow
 * instead, which takes more memory and less time. */
static heft_status reserve(heft_index *x, heft_str header)
{
    static const char key[] = "\"dtype\"";
    const uint8_t *p = (const uint8_t *)header.ptr, *end = p + header.len;
    uint64_t count = 0;
    while ((p = heft_str_seek(p, end, key, sizeof key - 1)) != NULL) {
        p += sizeof key - 1;
        count++;
    }
    return heft_ix_reserve(x, HEFT_ST_LENGTH, count, header.len, sizeof key - 1);
}

heft_status heft_st_read_header(heft_st_header *h, heft_index *x, heft_str header)
{
    enum { MARK = 3 };
    reader r = { .x = x, .h = *h };
    uint64_t at = HEFT_ST_LENGTH;
    heft_status st = HEFT_IS_SMALL ? reserve(x, header) : HEFT_OK;
    if (!HEFT_IS_SMALL && !st && heft_st_has_mark(header)) {
        st = heft_error_set(x->err, HEFT_E_FORMAT, HEFT_ST_LENGTH,
                            "the header begins with a byte order mark (EF BB BF) instead of {");
        st = heft_ix_forgive(x, st, "header-padding");
        header = (heft_str){ header.ptr + MARK, header.len - MARK };
        at += MARK;
    }
    r.j = heft_json_open(header, at, x->limits.depth, &x->arena, x->err);
    if (!st)
        st = read_json(&r, header);
    *h = r.h;
    return st;
}
