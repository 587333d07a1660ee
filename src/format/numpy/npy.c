/* npy.c - NumPy's arrays, as numpy.save writes them.
 *
 *    0  93 'N' 'U' 'M' 'P' 'Y'
 *    6  u8 version: 1, 2 or 3  u8 0
 *    8  version 1: u16, else u32: n, the length of what follows
 *       the header, n bytes of text: npy_header.c
 *       the elements, without gaps: the last dimension fastest, or the first (fortran_order)
 *
 * Version 3 says that the text is UTF-8, which matters for names of fields only.
 */
#include "format/numpy/npy.h"

#include "format/losses.h"

static const uint8_t magic[] = { 0x93, 'N', 'U', 'M', 'P', 'Y' };
static const char own_name[] = "data"; /* of the only tensor of an .npy, which has no name there */

bool heft_npy_begins(const uint8_t *p, size_t have)
{
    return have >= sizeof magic && !memcmp(p, magic, sizeof magic);
}

/* ---- reading ---- */

enum { SHORTEST = 10, PREFIX = 12, USUAL = 256, MOST_HEADER = 1 << 20 };

heft_status heft_npy_first_bytes(const uint8_t **out, heft_window *in, const heft_npy_layout *place,
                                 uint8_t *buf, size_t *len)
{
    if (place->encoding == HEFT_RAW) {
        heft_cur c = heft_cur_whole(in, place->stored.offset, *len, "the header of an array");
        *out = heft_cur_take(&c, *len);
        return c.st;
    }
    *out = buf;
    return heft_window_decode(in, place->encoding, place->stored, buf, len);
}

static heft_status refuse(const heft_window *in, const heft_npy_layout *place, heft_str name,
                          const char *what)
{
    return heft_error_set(in->err, HEFT_E_FORMAT, place->stored.offset, "array %q: %s", name, what);
}

/* Sets out->header from the first bytes; *prefix: where the text begins. */
static heft_status read_prefix(heft_npy *out, heft_window *in, const heft_npy_layout *place,
                               heft_str name, const uint8_t *p, size_t have, size_t *prefix)
{
    if (!heft_npy_begins(p, have) || have < SHORTEST)
        return refuse(in, place, name, "it does not begin as NumPy's arrays do");
    uint32_t major = p[6], minor = p[7];
    if (major < 1 || major > 3 || minor)
        return heft_error_set(in->err, HEFT_E_UNSUPPORTED, place->stored.offset,
                              "array %q: version %U.%U of the format, 1.0 to 3.0 are known", name,
                              (uint64_t)major, (uint64_t)minor);
    *prefix = major == 1 ? SHORTEST : PREFIX;
    if (have < *prefix)
        return refuse(in, place, name, "it ends within its header");
    out->header = *prefix + (major == 1 ? heft_le16(p + 8) : (uint64_t)heft_le32(p + 8));
    if (out->header > place->content)
        return refuse(in, place, name, "it ends within its header");
    if (out->header > MOST_HEADER)
        return heft_error_set(in->err, HEFT_E_LIMIT, place->stored.offset,
                              "array %q: a header of %U bytes passes the limit of %U", name,
                              out->header, (uint64_t)MOST_HEADER);
    return HEFT_OK;
}

heft_status heft_npy_read(heft_npy *out, heft_window *in, const heft_npy_layout *place,
                          heft_str name, heft_arena *arena)
{
    uint8_t few[USUAL];
    const uint8_t *p;
    uint64_t usual = place->encoding == HEFT_RAW ? PREFIX : USUAL;
    size_t have = (size_t)(place->content < usual ? place->content : usual), prefix = 0;
    *out = (heft_npy){ .rank = 0 };
    heft_status st = heft_npy_first_bytes(&p, in, place, few, &have);
    if (!st)
        st = read_prefix(out, in, place, name, p, have, &prefix);
    if (!st && out->header > have) {
        have = (size_t)out->header;
        uint8_t *room = place->encoding == HEFT_RAW ? few : heft_arena_alloc(arena, have, 1);
        st = room ? heft_npy_first_bytes(&p, in, place, room, &have)
                  : heft_error_plain(in->err, HEFT_E_NOMEM, "no memory for the header of %q", name);
    }
    if (st)
        return st;
    if (have < out->header)
        return refuse(in, place, name, "it ends within its header");
    heft_str text = { (const char *)p + prefix, (size_t)out->header - prefix };
    uint64_t at = place->stored.offset + (place->encoding == HEFT_RAW ? prefix : 0);
    st = heft_npy_literal(out, text, at, name, in->err);
    if (st)
        return st;
    uint64_t elements, bytes, left = place->content - out->header;
    if (!heft_product(&elements, out->dims, out->rank) ||
        !heft_dtype_bytes(&bytes, out->dtype, elements))
        return refuse(in, place, name, "its shape passes 64 bits");
    if (bytes > left) /* before there is a tensor for it */
        return heft_error_set(in->err, HEFT_E_FORMAT, place->stored.offset,
                              "array %q: its elements take %U bytes, %U follow its header", name,
                              bytes, left);
    return HEFT_OK;
}

heft_status heft_npy_add(heft_index *x, const heft_npy *h, const heft_npy_layout *place,
                         heft_str name)
{
    uint64_t *dims, strides[HEFT_NPY_RANK], step = 1, at = place->stored.offset;
    uint32_t id;
    heft_status st = heft_ix_tensor(x, name, h->dtype, h->rank, &dims, &id);
    if (st)
        return st;
    for (uint32_t i = 0; i < h->rank; i++) {
        dims[i] = h->dims[i];
        strides[i] = step;
        step *= dims[i]; /* what passes 64 bits is refused with the shape */
    }
    uint64_t content = place->content, first = h->header;
    heft_range where = place->stored;
    if (place->encoding == HEFT_RAW) {
        where = (heft_range){ at + first, content - first };
        content -= first;
        first = 0;
    }
    st = heft_ix_strided(x, id, at, where, place->encoding, content, first,
                         h->is_fortran ? strides : NULL);
    if (st)
        return st;
    if (h->is_big_endian)
        heft_ix_big_endian(x);
    if (h->is_fortran && h->rank > 1)
        heft_ix_note(x, HEFT_NOTE, "npy/fortran-order", at, id,
                     "its first dimension is the fastest: it is turned when it is read");
    if (h->is_big_endian && heft_dtype_number(h->dtype) > 1)
        heft_ix_note(x, HEFT_NOTE, "npy/big-endian", at, id,
                     "its numbers are big-endian: they are turned when they are read");
    if (heft_ix_part_row_at(x, x->parts.len - 1)->length < content - first)
        heft_ix_note(x, HEFT_WARNING, "npy/trailing-bytes", at, id,
                     "more bytes follow the array than it has elements: they are not read");
    return HEFT_OK;
}

static heft_status npy_parse(heft_window *in, heft_index *x)
{
    heft_npy h;
    heft_npy_layout place = { { 0, in->size }, in->size, HEFT_RAW };
    heft_status st = heft_npy_read(&h, in, &place, heft_lit(own_name), &x->arena);
    return st ? st : heft_npy_add(x, &h, &place, heft_lit(own_name));
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

/* Why a tensor cannot be an array, or NULL. */
static const char *obstacle(const heft_index *x, uint32_t t)
{
    uint64_t elements;
    if (!heft_loss_is_plain(x, t))
        return "only dense tensors can be arrays of NumPy's";
    if (heft_ix_row(x, t)->rank > HEFT_NPY_RANK)
        return "more than 64 dimensions are more than NumPy has";
    for (uint32_t i = 0; i < heft_ix_row(x, t)->rank; i++)
        if (heft_ix_dims(x, t)[i] > INT64_MAX)
            return "a dimension of 2^63 or more is more than NumPy takes";
    if (!heft_product(&elements, heft_ix_dims(x, t), heft_ix_row(x, t)->rank))
        return "more than 2^63 - 1 elements are more than NumPy takes";
    return NULL;
}

heft_status heft_npy_plan_align(heft_plan *p)
{
    p->align = p->align > HEFT_NPY_ALIGN ? p->align : HEFT_NPY_ALIGN;
    return p->align <= HEFT_NPY_MOST_ALIGN
               ? HEFT_OK
               : heft_error_plain(p->err, HEFT_E_ARGUMENT, "an alignment of %U is too large",
                                  p->align);
}

heft_status heft_npy_plan_tensor(heft_plan *p, uint32_t tensor)
{
    enum { RANK_OF_NUMPY_1 = 32 };
    const heft_ix_tensor_row *row = heft_ix_row(p->x, tensor);
    const char *why = obstacle(p->x, tensor);
    if (why || !heft_npy_has_type(row->dtype)) {
        heft_plan_drop(p, tensor);
        return why ? heft_plan_loss(p, HEFT_FAULT, "npy/tensor", tensor, why)
                   : heft_loss_type(p, "npy/dtype", tensor, "NumPy's formats");
    }
    if (row->rank > RANK_OF_NUMPY_1)
        return heft_loss_report(p, HEFT_NOTE, "npy/rank", tensor,
                                "rank %U is more than NumPy takes before version 2 (32)",
                                (uint64_t)row->rank);
    return HEFT_OK;
}

/* The first tensor is the file; the others stand in the way. */
static heft_status plan_tensors(heft_plan *p)
{
    heft_status st = HEFT_OK;
    bool has_one = false;
    for (uint32_t t = 0; t < heft_ix_tensors(p->x) && !st; t++) {
        if (has_one) {
            heft_plan_drop(p, t);
            st = heft_plan_loss(
                p, HEFT_FAULT, "npy/one-tensor", t,
                "an .npy is one array, and there is one already (--to npz takes all)");
            continue;
        }
        st = heft_npy_plan_tensor(p, t);
        has_one = !(heft_ix_row(p->x, t)->flags & HEFT_T_DROPPED);
    }
    if (!st)
        heft_plan_compact(p);
    if (!st && !heft_ix_tensors(p->x))
        return heft_plan_loss(p, HEFT_FAULT, "npy/one-tensor", HEFT_NONE,
                              "an .npy is one array, and there is none to write");
    if (!st && !heft_str_is(heft_ix_name(p->x, 0), own_name))
        st = heft_plan_loss(p, HEFT_NOTE, "npy/name", 0,
                            "its name is not stored: it is read as 'data'");
    return st;
}

static heft_status npy_plan(heft_plan *p)
{
    heft_status st = heft_loss_parts(p, "npy/parts", NULL);
    if (!st)
        st = heft_loss_metadata(p, "npy/metadata");
    if (!st)
        st = heft_loss_attributes(p, "npy/attributes", 0);
    if (!st)
        st = plan_tensors(p);
    if (st)
        return st;
    if (!heft_ix_tensors(p->x))
        return p->allow_loss ? heft_error_plain(p->err, HEFT_E_LOSSY, "there is no array to write")
                             : HEFT_OK;
    st = heft_npy_plan_align(p);
    if (st)
        return st;
    heft_out count = heft_out_counting();
    heft_npy_put(&count, p->x, 0, (uint32_t)p->align, false);
    p->header_bytes = count.total;
    st = heft_plan_place(p, p->header_bytes, 1);
    p->file_bytes = p->data_end;
    return st;
}

static heft_status npy_front(const heft_plan *p, heft_out *o)
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
    .caps = HEFT_CAN_READ | HEFT_CAN_WRITE | HEFT_ONE_TENSOR,
    .align = HEFT_NPY_ALIGN,
    .probe = npy_probe,
    .parse = npy_parse,
    .plan = npy_plan,
    .write_header = npy_front,
};
