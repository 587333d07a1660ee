/* safetensors.c - files of the safetensors library.
 *
 *    0  u64 n, the length of the header: at most 100,000,000
 *    8  the header, n bytes of JSON: {"__metadata__": {text: text, ...},
 *           name: {"dtype": text, "shape": [...], "data_offsets": [begin, end]}, ...}
 *  8+n  the data; data_offsets count from here
 *
 * Sorted by data_offsets the tensors fill the data from its first byte to the end of the file, without
 * a gap.  The reference, the Rust crate safetensors, decides what is accepted; it allows the fields of an entry in
 * any order and others besides, and the entries in any order of their data.
 */
#include "format/safetensors/safetensors.h"

#include "format/carried.h"
#include "grammar/json.h"
#include "model/names.h"

/* Found from the front, so what is usual comes first. */
const heft_st_type heft_st_types[] = {
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
const size_t heft_st_type_count = sizeof heft_st_types / sizeof *heft_st_types;

/* ---- an entry of the header ---- */

enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4, ALL_FIELDS = 7, PLAIN_RANK = 8 };

typedef struct reader {
    heft_json j;
    heft_index *x;
    uint64_t data, data_bytes;
    uint64_t next; /* where the data end, as far as tensors came in order */
    bool in_order, has_metadata;
} reader;

typedef struct entry {
    heft_str name, shape; /* shape: the text between the brackets */
    uint64_t at, elements, begin, end;
    uint64_t dims[PLAIN_RANK]; /* when shape is empty */
    uint32_t fields, rank;
    heft_dtype dtype;
    bool has_others;
} entry;

static uint32_t field_of(heft_str key)
{
    if (key.len == 5 && !memcmp(key.ptr, "dtype", 5))
        return DTYPE;
    if (key.len == 5 && !memcmp(key.ptr, "shape", 5))
        return SHAPE;
    return key.len == 12 && !memcmp(key.ptr, "data_offsets", 12) ? OFFSETS : 0;
}

static heft_status read_dtype(reader *r, entry *e)
{
    if (heft_json_next(&r->j) != HEFT_JSON_STRING)
        return heft_json_fail(&r->j, "tensor %q: its dtype is not a text", e->name);
    for (size_t i = 0; i < heft_st_type_count; i++)
        if (heft_str_is(r->j.text, heft_st_types[i].name)) {
            e->dtype = heft_st_types[i].dtype;
            return HEFT_OK;
        }
    return heft_json_fail(&r->j, "tensor %q: dtype %q is none of safetensors'", e->name, r->j.text);
}

/* The usual shape; false when it has to be read more closely. */
static bool read_plain_shape(reader *r, entry *e)
{
    const char *behind;
    uint32_t rank = heft_json_peek_u64s(&r->j, e->dims, PLAIN_RANK, &behind);
    uint64_t elements = 1;
    for (uint32_t i = 0; i < rank; i++)
        if (e->dims[i] > INT64_MAX || !heft_mul(&elements, elements, e->dims[i]))
            return false;
    if (rank == HEFT_JSON_NOT_PLAIN)
        return false;
    heft_json_pass(&r->j, behind);
    e->elements = elements;
    e->rank = rank;
    return true;
}

/* The product is taken as the reference does: it overflows even when a later dimension is zero. */
static heft_status read_shape(reader *r, entry *e)
{
    uint64_t dim;
    if (read_plain_shape(r, e))
        return HEFT_OK;
    heft_json_kind k = heft_json_next(&r->j);
    if (k != HEFT_JSON_ARRAY)
        return heft_json_fail(&r->j, "tensor %q: its shape is not a list", e->name);
    e->shape.ptr = r->j.p;
    e->elements = 1;
    for (; (k = heft_json_next(&r->j)) == HEFT_JSON_NUMBER; e->rank++) {
        if (!heft_json_u64(&dim, r->j.text) || dim > INT64_MAX)
            return heft_json_fail(&r->j, "tensor %q: dimension %q is no integer below 2^63",
                                  e->name, r->j.text);
        if (!heft_mul(&e->elements, e->elements, dim))
            return heft_json_fail(&r->j, "tensor %q: its shape holds more than 2^64 elements",
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
    const char *behind;
    uint64_t both[2];
    if (heft_json_peek_u64s(j, both, 2, &behind) == 2) {
        heft_json_pass(j, behind);
        e->begin = both[0];
        e->end = both[1];
    } else if (heft_json_next(j) != HEFT_JSON_ARRAY || heft_json_next(j) != HEFT_JSON_NUMBER ||
               !heft_json_u64(&e->begin, j->text) || heft_json_next(j) != HEFT_JSON_NUMBER ||
               !heft_json_u64(&e->end, j->text) || heft_json_next(j) != HEFT_JSON_ARRAY_END)
        return heft_json_fail(j, "tensor %q: its data_offsets are not two integers", e->name);
    if (e->begin > e->end || e->end > r->data_bytes)
        return heft_json_fail(j, "tensor %q: data_offsets %U and %U are no range of %U bytes",
                              e->name, e->begin, e->end, r->data_bytes);
    return HEFT_OK;
}

static heft_status read_field(reader *r, entry *e)
{
    uint32_t field = field_of(r->j.text);
    if (e->fields & field)
        return heft_json_fail(&r->j, "tensor %q: %s occurs twice", e->name,
                              field == DTYPE   ? "dtype"
                              : field == SHAPE ? "shape"
                                               : "data_offsets");
    e->fields |= field;
    if (field == DTYPE)
        return read_dtype(r, e);
    if (field == SHAPE)
        return read_shape(r, e);
    if (field == OFFSETS)
        return read_offsets(r, e);
    e->has_others = true;
    return heft_json_skip(&r->j, HEFT_JSON_KEY);
}

/* The numbers of a shape whose text was checked before. */
static void read_dims(uint64_t *dims, heft_str shape)
{
    uint64_t v = 0;
    bool is_in = false;
    for (const char *p = shape.ptr, *end = p + shape.len; p < end; p++) {
        uint32_t digit = (uint32_t)(uint8_t)*p - '0';
        if (digit > 9) {
            if (is_in)
                *dims++ = v;
            v = 0;
        } else {
            v = v * 10 + digit;
        }
        is_in = digit <= 9;
    }
    if (is_in)
        *dims = v;
}

static heft_status add_tensor(reader *r, const entry *e)
{
    uint64_t *dims;
    uint32_t id;
    if (!heft_dtype_whole(e->dtype, e->elements))
        return heft_error_set(r->x->err, HEFT_E_FORMAT, e->at,
                              "tensor %q: %U elements of %s do not fill whole bytes", e->name,
                              e->elements, heft_dtype_name(e->dtype));
    heft_status st = heft_ix_tensor(r->x, e->name, e->dtype, e->rank, &dims, &id);
    if (st)
        return st;
    if (e->shape.ptr)
        read_dims(dims, e->shape);
    else
        memcpy(dims, e->dims, e->rank * sizeof *dims);
    if (e->begin != r->next)
        r->in_order = false;
    r->next = e->end;
    r->x->unread = r->x->unread || e->has_others;
    if (e->has_others)
        heft_ix_note(r->x, HEFT_NOTE, "safetensors/unknown-field", e->at, id,
                     "its entry in the header has fields of unknown names");
    return heft_ix_dense(r->x, id, e->at, r->data + e->begin, e->end - e->begin);
}

static heft_status read_tensor(reader *r)
{
    heft_json_kind k;
    entry e = { .name = r->j.text, .at = r->j.base + (uint64_t)(r->j.token - r->j.start) };
    if (heft_json_next(&r->j) != HEFT_JSON_OBJECT)
        return heft_json_fail(&r->j, "tensor %q: its entry is not an object", e.name);
    while ((k = heft_json_next(&r->j)) == HEFT_JSON_KEY) {
        heft_status st = read_field(r, &e);
        if (st)
            return st;
    }
    if (k != HEFT_JSON_OBJECT_END)
        return r->j.st;
    if (e.fields != ALL_FIELDS)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, e.at, "tensor %q: its entry has no %s",
                              e.name,
                              !(e.fields & DTYPE)   ? "dtype"
                              : !(e.fields & SHAPE) ? "shape"
                                                    : "data_offsets");
    return add_tensor(r, &e);
}

/* ---- the header ---- */

static heft_status read_metadata(reader *r)
{
    if (r->has_metadata)
        return heft_json_fail(&r->j, "__metadata__ occurs twice");
    r->has_metadata = true;
    heft_json_kind k = heft_json_next(&r->j);
    if (k == HEFT_JSON_NULL)
        return HEFT_OK;
    if (k != HEFT_JSON_OBJECT)
        return heft_json_fail(&r->j, "__metadata__ is not an object");
    while ((k = heft_json_next(&r->j)) == HEFT_JSON_KEY) {
        heft_value v = { .kind = HEFT_KIND_STR, .key = r->j.text };
        if (heft_json_next(&r->j) != HEFT_JSON_STRING)
            return heft_json_fail(&r->j, "__metadata__: the value of %q is not a text", v.key);
        v.as.s = r->j.text;
        heft_status st = heft_ix_meta(r->x, v);
        if (st)
            return st;
    }
    return r->j.st;
}

/* What the reference accepts and the specification does not: the header begins with {, and spaces
 * are all that may follow. */
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
                     "the header is padded with other characters than spaces");
}

static heft_status read_header(reader *r, heft_str header)
{
    heft_json_kind k;
    r->j = heft_json_open(header, HEFT_ST_LENGTH, r->x->limits.depth, &r->x->arena, r->x->err);
    if (heft_json_next(&r->j) != HEFT_JSON_OBJECT)
        return heft_json_fail(&r->j, "the header is not a JSON object");
    while ((k = heft_json_next(&r->j)) == HEFT_JSON_KEY) {
        heft_status st = heft_st_is_metadata(r->j.text) ? read_metadata(r) : read_tensor(r);
        if (st)
            return st;
    }
    const char *end = r->j.p;
    if (k == HEFT_JSON_OBJECT_END && heft_json_next(&r->j) == HEFT_JSON_END)
        note_space(r, header, end);
    return r->j.st;
}

/* ---- where the data lie ---- */

/* next is where the data before it end. */
static heft_status refuse_place(const reader *r, uint32_t tensor, uint64_t next)
{
    uint64_t begin = heft_ix_part_row_at(r->x, tensor)->offset;
    heft_str name = heft_ix_name(r->x, tensor);
    if (begin > next)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, next,
                              "tensor %q: its data begin at %U of the data section, those before "
                              "it end at %U",
                              name, begin - r->data, next - r->data);
    return heft_error_set(r->x->err, HEFT_E_FORMAT, begin,
                          "tensor %q: its data begin at %U of the data section, inside another's",
                          name, begin - r->data);
}

/* Whether some part begins there; order is sorted by place. */
static bool is_boundary(const heft_index *x, const uint32_t *order, uint32_t count, uint64_t offset)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        uint64_t begins = heft_ix_part_row_at(x, order[mid])->offset;
        if (begins == offset)
            return true;
        if (begins < offset)
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}

/* Every tensor has one part, of its own number. */
static heft_status check_sorted(reader *r, const uint32_t *order, uint32_t count)
{
    uint64_t next = r->data;
    for (uint32_t i = 0; i < count; i++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(r->x, order[i]);
        if (part->offset != next)
            return refuse_place(r, order[i], next);
        next += part->stored;
    }
    r->next = next - r->data;
    for (uint32_t t = 0; t < heft_ix_tensors(r->x); t++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(r->x, t);
        if (!part->stored && part->offset != next && !is_boundary(r->x, order, count, part->offset))
            return refuse_place(r, t, part->offset < next ? UINT64_MAX : next);
    }
    return HEFT_OK;
}

static heft_status check_places(reader *r)
{
    heft_status st = HEFT_OK;
    if (!r->in_order) {
        uint32_t *order = NULL, count = 0;
        st = heft_ix_order(r->x, &order, &count);
        if (!st)
            st = check_sorted(r, order, count);
        heft_ix_order_free(r->x, order);
    }
    if (!st && r->next != r->data_bytes)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, r->data + r->next,
                              "bytes behind the data of the last tensor: %U",
                              r->data_bytes - r->next);
    return st;
}

/* ---- the format ---- */

static heft_status st_parse(heft_in *in, heft_index *x)
{
    if (in->size < HEFT_ST_LENGTH)
        return heft_error_set(x->err, HEFT_E_FORMAT, 0,
                              "the file has %U bytes, the length of the header alone takes 8",
                              in->size);
    heft_cur c = heft_cur_whole(in, 0, HEFT_ST_LENGTH, "the length of the header");
    const uint8_t *first = heft_cur_take(&c, HEFT_ST_LENGTH);
    if (c.st)
        return c.st;
    uint64_t n = heft_le64(first), left = in->size - HEFT_ST_LENGTH;
    if (n > HEFT_ST_MAX_HEADER && heft_st_is_text(first))
        return heft_st_parse_index(in, x);
    if (n > HEFT_ST_MAX_HEADER)
        return heft_error_set(x->err, HEFT_E_FORMAT, 0,
                              "a header of %U bytes is announced, at most 100000000 are allowed",
                              n);
    if (n > left)
        return heft_error_set(x->err, HEFT_E_FORMAT, 0,
                              "a header of %U bytes is announced, but the file has only %U more", n,
                              left);
    c = heft_cur_whole(in, HEFT_ST_LENGTH, n, "the header");
    heft_str header = { (const char *)heft_cur_take(&c, n), (size_t)n };
    if (c.st)
        return c.st;
    reader r = { .x = x, .data = HEFT_ST_LENGTH + n, .data_bytes = left - n, .in_order = true };
    heft_status st = read_header(&r, header);
    if (!st)
        st = check_places(&r);
    if (!st)
        st = heft_meta_unique(x, "__metadata__");
    return st ? st : heft_restore_attributes(x);
}

static heft_status st_check(heft_check *c)
{
    uint64_t data = c->size;
    if (c->x->listed.len) /* an index has no data; its files are looked at one by one */
        return HEFT_OK;
    for (uint32_t t = 0; t < heft_ix_tensors(c->x); t++) {
        uint64_t offset = heft_ix_part_row_at(c->x, t)->offset;
        data = offset < data ? offset : data;
    }
    if (data % HEFT_ST_ALIGN)
        c->report(c, HEFT_NOTE, "safetensors/align", (heft_range){ data, c->size - data },
                  HEFT_NONE, "the data do not begin at a multiple of 8");
    return HEFT_OK;
}

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static int st_probe(const uint8_t *head, size_t head_len, const uint8_t *tail, size_t tail_len,
                    uint64_t size)
{
    enum { SURE = 24, BROKEN = 12 };
    (void)tail;
    (void)tail_len;
    if (size <= HEFT_ST_LENGTH || head_len <= HEFT_ST_LENGTH)
        return 0;
    uint64_t n = heft_le64(head);
    size_t at = HEFT_ST_LENGTH;
    if (heft_st_is_index(head, head_len))
        return SURE;
    if (n >= 2 && n <= HEFT_ST_MAX_HEADER && n <= size - HEFT_ST_LENGTH) {
        while (at < head_len && is_space(head[at]))
            at++;
        return at < head_len && head[at] == '{' ? SURE : 0;
    }
    /* Cut short, or with a length that cannot be: parsing will say so. */
    return head[at] == '{' ? BROKEN : 0;
}

const heft_format heft_format_safetensors = {
    .name = "safetensors",
    .title = "safetensors",
    .suffixes = ".safetensors",
    .versions = "",
    .caps = HEFT_CAN_READ | HEFT_CAN_WRITE | HEFT_CAN_META,
    .align = 64,
    .probe = st_probe,
    .parse = st_parse,
    .check = st_check,
    .plan = heft_st_plan,
    .front = heft_st_front,
    .sharding = &heft_st_sharding,
};
