/* zt_values.c - reads and writes attributes as CBOR items. */
#include "format/ztensor/ztensor.h"
#include "model/open_containers.h"
#include "model/values.h"

/* ---- reading ---- */

typedef struct value_target { /* where decoded values go */
    heft_cbor *c;
    heft_index *x;
    uint32_t tensor; /* HEFT_NONE: file metadata */
} value_target;

/* Report a value that cannot be kept unchanged, so that the file cannot be reproduced exactly. */
static void note(const value_target *t, const char *rule, const char *text)
{
    heft_zt_omit(t->x, rule, heft_cbor_offset(t->c, t->c->item), t->tensor, text, text);
}

/* Decode the negative number -1 - u. INT holds only the upper half of the range. */
static heft_value negative(const value_target *t)
{
    heft_value v = { .kind = HEFT_KIND_INT };
    if (t->c->u <= INT64_MAX) {
        v.as.i = -1 - (int64_t)t->c->u;
        return v;
    }
    note(t, "ztensor/attribute-number", "number below -2^63 is kept as the nearest float");
    v.kind = HEFT_KIND_FLOAT;
    v.as.f = -1.0 - (double)t->c->u;
    return v;
}

static heft_value value_of(const value_target *t, heft_cbor_kind k)
{
    heft_value v = { .kind = HEFT_KIND_NULL };
    switch (k) {
    case HEFT_CBOR_UINT:
        v.kind = HEFT_KIND_UINT;
        v.as.u = t->c->u;
        break;
    case HEFT_CBOR_NINT:
        return negative(t);
    case HEFT_CBOR_BYTES:
    case HEFT_CBOR_TEXT:
        v.kind = k == HEFT_CBOR_TEXT ? HEFT_KIND_STR : HEFT_KIND_BYTES;
        v.as.s = t->c->str;
        break;
    case HEFT_CBOR_ARRAY:
        v.kind = HEFT_KIND_LIST;
        break;
    case HEFT_CBOR_MAP:
        v.kind = HEFT_KIND_MAP;
        break;
    case HEFT_CBOR_FALSE:
    case HEFT_CBOR_TRUE:
        v.kind = HEFT_KIND_BOOL;
        v.as.b = k == HEFT_CBOR_TRUE;
        break;
    case HEFT_CBOR_FLOAT:
        v.kind = HEFT_KIND_FLOAT;
        heft_cbor_f64(&v.as.f, t->c);
        break;
    case HEFT_CBOR_UNDEFINED:
    case HEFT_CBOR_SIMPLE:
        if (t->c->strict) /* zTensor 2, §3.1 */
            heft_cbor_fail(t->c, "attribute is a simple value without a meaning");
        note(t, "ztensor/attribute-simple", "simple value without a meaning is kept as null");
        break;
    default:
        break;
    }
    return v;
}

static bool is_end(heft_cbor_kind k)
{
    return k == HEFT_CBOR_ARRAY_END || k == HEFT_CBOR_MAP_END;
}

/* Convert the key read last, of kind k, to text. If the key has no text form, skip the pair and
 * return false. */
static bool key_text(const value_target *t, heft_cbor_kind k, heft_str *key, heft_status *st)
{
    char digits[20];
    *st = HEFT_OK;
    *key = t->c->str;
    if (k == HEFT_CBOR_TEXT)
        return true;
    if (k == HEFT_CBOR_UINT) {
        *key = heft_ix_copy(t->x, (heft_str){ digits, heft_u64_text(digits, t->c->u) });
        *st = key->ptr ? HEFT_OK : HEFT_E_NOMEM;
        return key->ptr;
    }
    note(t, "ztensor/attribute-key", "a key that is not a text is left out, with its value");
    *st = heft_cbor_skip(t->c, k);
    if (!*st)
        *st = heft_cbor_skip(t->c, heft_cbor_next(t->c));
    return false;
}

/* Advance to the next value or end of container; read the key first inside a map. */
static heft_status next_value(const value_target *t, heft_cbor_kind *k, heft_str *key)
{
    heft_status st = HEFT_OK;
    for (;;) {
        *key = (heft_str){ "", 0 };
        *k = heft_cbor_next(t->c);
        if (t->c->st || is_end(*k) || t->c->context != HEFT_CBOR_AS_KEY)
            return t->c->st;
        if (key_text(t, *k, key, &st)) {
            *k = heft_cbor_next(t->c);
            return t->c->st;
        }
        if (st)
            return st;
    }
}

static heft_status read_value(heft_cbor *c, heft_cbor_kind k, heft_str key, heft_index *x,
                              uint32_t tensor)
{
    value_target t = { c, x, tensor };
    uint32_t outside = c->depth - (k == HEFT_CBOR_ARRAY || k == HEFT_CBOR_MAP);
    heft_status st = c->st;
    while (!st) {
        heft_value v = value_of(&t, k);
        v.key = key;
        if (!is_end(k))
            st = tensor == HEFT_NONE ? heft_ix_meta(x, v) : heft_ix_attr(x, tensor, v);
        else if (tensor == HEFT_NONE)
            heft_ix_meta_end(x);
        else
            heft_ix_attr_end(x);
        if (st || c->depth == outside)
            break;
        st = next_value(&t, &k, &key);
    }
    return st;
}

/* Attributes that Heft stores for other formats return to their index columns. */
heft_status heft_zt_read_attribute(heft_cbor *c, heft_cbor_kind k, heft_str key, heft_index *x,
                                   uint32_t tensor)
{
    bool is_bool = k == HEFT_CBOR_TRUE || k == HEFT_CBOR_FALSE;
    if (c->st || tensor == HEFT_NONE)
        return c->st ? c->st : read_value(c, k, key, x, tensor);
    if (k == HEFT_CBOR_UINT && heft_str_is(key, "burn.param_id"))
        return heft_ix_param_id(x, tensor, c->u);
    if (!is_bool || !heft_str_is(key, "gptrs.requires_grad"))
        return read_value(c, k, key, x, tensor);
    heft_ix_row(x, tensor)->flags |= (uint8_t)(HEFT_T_GRAD_KNOWN |
                                               (k == HEFT_CBOR_TRUE ? HEFT_T_GRAD : 0));
    return HEFT_OK;
}

heft_status heft_zt_read_values(heft_cbor *c, heft_index *x, uint32_t tensor, const char *what)
{
    heft_str before = { NULL, 0 };
    bool sorted = true;
    for (heft_cbor_kind k; (k = heft_cbor_next(c)) != HEFT_CBOR_MAP_END;) {
        heft_str key = c->str;
        if (c->st)
            return c->st;
        if (k != HEFT_CBOR_TEXT)
            return heft_cbor_fail(c, "a key in %s is not a text", what);
        sorted = sorted && (!before.ptr || heft_str_order(before, key) < 0);
        before = key;
        HEFT_TRY(heft_zt_read_attribute(c, heft_cbor_next(c), key, x, tensor));
    }
    if (sorted)
        return HEFT_OK;
    return tensor == HEFT_NONE ? heft_meta_unique(x, what) : heft_attrs_unique(x, tensor, what);
}

/* ---- writing ---- */

bool heft_zt_value(heft_value *out, const heft_index *x, uint32_t tensor, uint32_t i)
{
    if (tensor != HEFT_NONE)
        return heft_ix_attribute(out, x, tensor, i);
    if (i < x->values.len)
        *out = *heft_ix_value(x, i);
    return i < x->values.len;
}

heft_value heft_zt_value_at(const heft_index *x, uint32_t tensor, uint32_t i)
{
    heft_value v;
    return heft_zt_value(&v, x, tensor, i) ? v : (heft_value){ .kind = HEFT_KIND_NULL };
}

static void put_number(heft_out *o, const heft_value *v)
{
    if (v->kind == HEFT_KIND_BOOL)
        heft_cbor_put_bool(o, v->as.b);
    else if (v->kind == HEFT_KIND_INT)
        heft_cbor_put_i64(o, v->as.i);
    else if (v->kind == HEFT_KIND_UINT)
        heft_cbor_put_u64(o, v->as.u);
    else
        heft_cbor_put_f64(o, v->as.f);
}

static void put_array(heft_out *o, const heft_value *v)
{
    heft_cbor_put_array(o, v->as.array.count);
    for (uint32_t i = 0; i < v->as.array.count; i++) {
        heft_value number = heft_value_element(v, i);
        put_number(o, &number);
    }
}

void heft_zt_put_scalar(heft_out *o, const heft_value *v)
{
    switch (v->kind) {
    case HEFT_KIND_BOOL:
    case HEFT_KIND_INT:
    case HEFT_KIND_UINT:
    case HEFT_KIND_FLOAT:
        put_number(o, v);
        break;
    case HEFT_KIND_STR:
    case HEFT_KIND_BYTES:
    case HEFT_KIND_ID128:
        if (v->kind == HEFT_KIND_STR && heft_str_is_utf8(v->as.s))
            heft_cbor_put_text(o, v->as.s);
        else
            heft_cbor_put_bytes(o, v->as.s);
        break;
    case HEFT_KIND_ARRAY:
        put_array(o, v);
        break;
    case HEFT_KIND_LIST:
        heft_cbor_put_array(o, v->as.container.count);
        break;
    case HEFT_KIND_MAP:
        heft_cbor_put_map(o, v->as.container.count);
        break;
    case HEFT_KIND_NULL:
        heft_cbor_put_null(o);
        break;
    }
}

void heft_zt_put_value(heft_out *o, const heft_index *x, uint32_t tensor, uint32_t i)
{
    heft_open_containers open;
    open.depth = 0;
    do {
        heft_value v = heft_zt_value_at(x, tensor, i++);
        if (heft_open_kind(&open, HEFT_KIND_LIST) == HEFT_KIND_MAP)
            heft_cbor_put_text(o, v.key);
        heft_zt_put_scalar(o, &v);
        heft_open_value(&open, &v);
        while (heft_open_leave(&open))
            continue;
    } while (open.depth);
}

void heft_zt_put_shape(heft_out *o, const heft_index *x, uint32_t tensor)
{
    uint32_t rank = heft_ix_row(x, tensor)->rank;
    heft_cbor_put_key(o, "shape");
    heft_cbor_put_array(o, rank);
    for (uint32_t i = 0; i < rank; i++)
        heft_cbor_put_u64(o, heft_ix_dims(x, tensor)[i]);
}

void heft_zt_put_hex(heft_out *o, heft_str prefix, const uint8_t *bytes, uint32_t count,
                     bool is_number, bool is_upper)
{
    char text[2 * HEFT_CHECKSUM_BYTES + 16];
    size_t len = prefix.len;
    memcpy(text, prefix.ptr, len);
    for (uint32_t i = 0; i < count; i++, len += 2) {
        uint8_t b = bytes ? bytes[is_number ? count - 1 - i : i] : 0;
        (is_upper ? heft_hex_capitals : heft_hex_text)(text + len, &b, 1);
    }
    heft_cbor_put_text(o, (heft_str){ text, len });
}
