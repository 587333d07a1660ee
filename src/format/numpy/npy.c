/* npy.c - NumPy arrays, as written by numpy.save.
 *
 *    0  93 'N' 'U' 'M' 'P' 'Y'
 *    6  u8 version: 1, 2 or 3  u8 0
 *    8  n, the length of the header: u16 in version 1, else u32
 *       header, n bytes of text: see npy_header.c
 *       elements without gaps: row-major, or column-major (fortran_order)
 *
 * In version 3 the text is UTF-8, which only affects names of fields.
 */
#include "format/numpy/npy.h"

#include "format/losses.h"

static const uint8_t magic[] = { 0x93, 'N', 'U', 'M', 'P', 'Y' };
static const char tensor_name[] = "data"; /* the array of an .npy file has no name */

bool heft_npy_begins(const uint8_t *p, size_t have)
{
    return have >= sizeof magic && !memcmp(p, magic, sizeof magic);
}

/* ---- reading ---- */

enum { SHORT_PREFIX = 10, LONG_PREFIX = 12, FIRST_DECODED = 256, MAX_HEADER = 1 << 20 };

heft_status heft_npy_first_bytes(const uint8_t **out, heft_window *in,
                                 const heft_npy_layout *layout, uint8_t *buf, size_t *len)
{
    if (layout->encoding == HEFT_RAW) {
        heft_cur c = heft_cur_whole(in, layout->stored.offset, *len, "the header of an array");
        *out = heft_cur_take(&c, *len);
        return c.st;
    }
    *out = buf;
    return heft_window_decode(in, layout->encoding, layout->stored, buf, len);
}

static heft_status refuse(const heft_window *in, const heft_npy_layout *layout, heft_str name,
                          const char *what)
{
    return heft_error_set(in->err, HEFT_E_FORMAT, layout->stored.offset, "array %q: %s", name,
                          what);
}

/* Set out->header from the first bytes, and *prefix to the offset of the text. */
static heft_status read_prefix(heft_npy *out, heft_window *in, const heft_npy_layout *layout,
                               heft_str name, const uint8_t *p, size_t have, size_t *prefix)
{
    if (!heft_npy_begins(p, have) || have < SHORT_PREFIX)
        return refuse(in, layout, name, "the magic number of a NumPy array is missing");
    uint32_t major = p[6], minor = p[7];
    if (major < 1 || major > 3 || minor)
        return heft_error_set(
            in->err, HEFT_E_UNSUPPORTED, layout->stored.offset,
            "array %q: version %U.%U of the format is not supported, only 1.0 to 3.0", name,
            (uint64_t)major, (uint64_t)minor);
    out->has_long = major < 3;
    *prefix = major == 1 ? SHORT_PREFIX : LONG_PREFIX;
    if (have < *prefix)
        return refuse(in, layout, name, "truncated within the header");
    out->header = *prefix + (major == 1 ? heft_le16(p + 8) : (uint64_t)heft_le32(p + 8));
    if (out->header > layout->content)
        return refuse(in, layout, name, "truncated within the header");
    if (out->header > MAX_HEADER)
        return heft_error_set(in->err, HEFT_E_LIMIT, layout->stored.offset,
                              "array %q: the header has %U bytes, more than the limit of %U", name,
                              out->header, (uint64_t)MAX_HEADER);
    return HEFT_OK;
}

heft_status heft_npy_read(heft_npy *out, heft_window *in, const heft_npy_layout *layout,
                          heft_str name, heft_index *x)
{
    uint8_t first_bytes[FIRST_DECODED];
    const uint8_t *p;
    uint64_t wanted = layout->encoding == HEFT_RAW ? LONG_PREFIX : FIRST_DECODED;
    size_t have = (size_t)(layout->content < wanted ? layout->content : wanted), prefix = 0;
    *out = (heft_npy){ .rank = 0 };
    HEFT_TRY(heft_npy_first_bytes(&p, in, layout, first_bytes, &have));
    HEFT_TRY(read_prefix(out, in, layout, name, p, have, &prefix));
    if (out->header > have) {
        have = (size_t)out->header;
        uint8_t *buf = layout->encoding == HEFT_RAW ? first_bytes
                                                    : heft_arena_alloc(&x->arena, have, 1);
        HEFT_TRY(
            buf ? heft_npy_first_bytes(&p, in, layout, buf, &have)
                : heft_error_plain(in->err, HEFT_E_NOMEM, "no memory for the header of %q", name));
    }
    if (have < out->header)
        return refuse(in, layout, name, "truncated within the header");
    heft_str text = { (const char *)p + prefix, (size_t)out->header - prefix };
    if (!out->has_long && !heft_str_is_utf8(text))
        return refuse(in, layout, name, "the header is not UTF-8");
    bool is_stored = layout->encoding == HEFT_RAW;
    uint64_t at = layout->stored.offset + (is_stored ? prefix : 0);
    HEFT_TRY(heft_npy_literal(out, text, at, is_stored, name, x->array_types, in->err));
    uint64_t elements, bytes, left = layout->content - out->header;
    if (!heft_product(&elements, out->dims, out->rank) ||
        !heft_dtype_bytes(&bytes, out->dtype, elements))
        return refuse(in, layout, name, "the size of the shape exceeds 64 bits");
    if (bytes > left) /* checked before a tensor is added */
        return heft_error_expect(
            in->err,
            heft_error_set(in->err, HEFT_E_FORMAT, layout->stored.offset,
                           "array %q: the elements take %U bytes, but %U follow the header", name,
                           bytes, left),
            layout->stored.offset + out->header, bytes);
    return HEFT_OK;
}

/* Note which type an array without a type is read as. */
static void note_nameless(heft_index *x, const heft_npy *h, uint64_t at, uint32_t tensor)
{
    bool is_usual = h->is_chosen || h->dtype == HEFT_BF16;
    const char *text = HEFT_IS_SMALL ? "stored without a type"
                       : !HEFT_IS_LEAN && h->is_chosen
                           ? "stored without a type: read as the type that "
                             "was chosen for it"
                       : h->dtype == HEFT_BF16    ? "type V2, which NumPy stores for bfloat16: "
                                                    "read as bf16"
                       : h->dtype == HEFT_F8_E5M2 ? "type f1 of ml_dtypes: read as f8_e5m2"
                                                  : "type V1 of ml_dtypes: read as f8_e4m3fn, "
                                                    "though other types of one byte have the same "
                                                    "name (--view NAME=TYPE)";
    heft_ix_note(x, is_usual ? HEFT_NOTE : HEFT_WARNING, "npy/nameless", at, tensor, text);
}

heft_status heft_npy_add(heft_index *x, const heft_npy *h, const heft_npy_layout *layout,
                         heft_str name)
{
    uint64_t *dims, strides[HEFT_NPY_RANK], step = 1, at = layout->stored.offset;
    uint32_t id;
    HEFT_TRY(heft_ix_tensor(x, name, h->dtype, h->rank, &dims, &id));
    for (uint32_t i = 0; i < h->rank; i++) {
        dims[i] = h->dims[i];
        strides[i] = step;
        step *= dims[i]; /* heft_npy_read() has checked for overflow */
    }
    uint64_t content = layout->content, first = h->header;
    heft_range where = layout->stored;
    if (layout->encoding == HEFT_RAW) {
        where = (heft_range){ at + first, content - first };
        content -= first;
        first = 0;
    }
    HEFT_TRY(heft_ix_strided(x, id, at, where, layout->encoding, content, first,
                             h->is_fortran ? strides : NULL));
    if (h->is_big_endian)
        heft_ix_big_endian(x);
    if (h->is_nameless)
        note_nameless(x, h, at, id);
    if (h->is_fortran && h->rank > 1)
        heft_ix_note(x, HEFT_NOTE, "npy/fortran-order", at, id,
                     "stored column-major (Fortran order): transposed on reading");
    if (h->is_big_endian && heft_dtype_number_bytes(h->dtype) > 1)
        heft_ix_note(x, HEFT_NOTE, "npy/big-endian", at, id,
                     "stored big-endian: byte-swapped on reading");
    if (heft_ix_part_row_at(x, x->parts.len - 1)->length < content - first)
        heft_ix_note(x, HEFT_WARNING, "npy/trailing-bytes", at, id,
                     "unexpected bytes after the elements are ignored");
    return HEFT_OK;
}

static heft_status npy_parse(heft_window *in, heft_index *x)
{
    heft_npy h;
    heft_npy_layout layout = { { 0, in->size }, in->size, HEFT_RAW };
    HEFT_TRY(heft_npy_read(&h, in, &layout, heft_lit(tensor_name), x));
    return heft_npy_add(x, &h, &layout, heft_lit(tensor_name));
}

static int npy_probe(const uint8_t *head, size_t head_len, const uint8_t *tail, size_t tail_len,
                     uint64_t size)
{
    (void)tail;
    (void)tail_len;
    (void)size;
    return heft_npy_begins(head, head_len) ? 8 * (int)sizeof magic : 0;
}

/* ---- writing ---- */

/* Return why a tensor cannot be an array, or NULL. */
static const char *obstacle(const heft_index *x, uint32_t t)
{
    uint64_t elements;
    if (!heft_loss_is_plain(x, t))
        return "only dense tensors can be NumPy arrays";
    if (heft_ix_row(x, t)->rank > HEFT_NPY_RANK)
        return "exceeds NumPy's limit of 64 dimensions";
    for (uint32_t i = 0; i < heft_ix_row(x, t)->rank; i++)
        if (heft_ix_dims(x, t)[i] > INT64_MAX)
            return "a dimension exceeds NumPy's limit of 2^63 - 1";
    if (!heft_product(&elements, heft_ix_dims(x, t), heft_ix_row(x, t)->rank))
        return "exceeds NumPy's limit of 2^63 - 1 elements";
    return NULL;
}

heft_status heft_npy_plan_align(heft_plan *p)
{
    p->align = p->align > HEFT_NPY_ALIGN ? p->align : HEFT_NPY_ALIGN;
    return p->align <= HEFT_NPY_MAX_ALIGN
               ? HEFT_OK
               : heft_error_plain(p->err, HEFT_E_ARGUMENT, "an alignment of %U is too large",
                                  p->align);
}

heft_status heft_npy_plan_tensor(heft_plan *p, uint32_t tensor)
{
    enum { NUMPY1_MAX_RANK = 32 };
    const heft_ix_tensor_row *row = heft_ix_row(p->x, tensor);
    const char *why = obstacle(p->x, tensor);
    if (why || !heft_npy_has_type(row->dtype)) {
        heft_plan_drop(p, tensor);
        return why ? heft_plan_loss(p, HEFT_FAULT, "npy/tensor", tensor, why)
                   : heft_loss_type(p, "npy/dtype", tensor, "NumPy's formats");
    }
    if (row->rank > NUMPY1_MAX_RANK)
        return heft_loss_report(p, HEFT_NOTE, "npy/rank", tensor,
                                "rank %U exceeds the limit of NumPy before version 2 (32)",
                                (uint64_t)row->rank);
    return HEFT_OK;
}

/* The first suitable tensor becomes the file; all further tensors are losses. */
static heft_status plan_tensors(heft_plan *p)
{
    heft_status st = HEFT_OK;
    bool has_one = false;
    for (uint32_t t = 0; t < heft_ix_tensors(p->x) && !st; t++) {
        if (has_one) {
            heft_plan_drop(p, t);
            st = heft_plan_loss(p, HEFT_FAULT, "npy/one-tensor", t,
                                "an .npy file holds a single array (--to npz stores all)");
            continue;
        }
        st = heft_npy_plan_tensor(p, t);
        has_one = !(heft_ix_row(p->x, t)->flags & HEFT_T_DROPPED);
    }
    if (!st)
        heft_plan_compact(p);
    if (!st && !heft_ix_tensors(p->x))
        return heft_plan_loss(p, HEFT_FAULT, "npy/one-tensor", HEFT_NONE,
                              "an .npy file needs an array, and no tensor is left");
    if (!st && !heft_str_is(heft_ix_name(p->x, 0), tensor_name))
        st = heft_plan_loss(p, HEFT_NOTE, "npy/name", 0, "the name is not stored: read as 'data'");
    return st;
}

static heft_status npy_plan(heft_plan *p)
{
    HEFT_TRY(heft_loss_parts(p, "npy/parts", NULL, "an .npy file"));
    HEFT_TRY(heft_loss_metadata(p, "npy/metadata", "an .npy file"));
    HEFT_TRY(heft_loss_attributes(p, "npy/attributes", 0));
    HEFT_TRY(plan_tensors(p));
    if (!heft_ix_tensors(p->x))
        return p->allow_loss ? heft_error_plain(p->err, HEFT_E_LOSSY, "there is no array to write")
                             : HEFT_OK;
    HEFT_TRY(heft_npy_plan_align(p));
    heft_out count = heft_out_counting();
    heft_npy_put(&count, p->x, 0, (uint32_t)p->align, false);
    p->header_bytes = count.total;
    heft_status st = heft_plan_place(p, p->header_bytes, 1);
    p->file_bytes = p->data_end;
    return st;
}

static heft_status npy_write_header(const heft_plan *p, heft_out *o)
{
    heft_npy_put(o, p->x, 0, (uint32_t)p->align, false);
    return o->st;
}

const heft_format heft_format_npy = {
    .name = "npy",
    .title = "NumPy array",
    .structure_rule = "npy/structure",
    .suffixes = ".npy",
    .versions = "",
    .caps = HEFT_CAN_READ | HEFT_CAN_WRITE | HEFT_CAN_EDIT | HEFT_CAN_SCHEMES | HEFT_ONE_TENSOR,
    .align = HEFT_NPY_ALIGN,
    .probe = npy_probe,
    .parse = npy_parse,
};

const heft_format_writer heft_format_writer_npy = {
    .plan = npy_plan,
    .write_header = npy_write_header,
};
