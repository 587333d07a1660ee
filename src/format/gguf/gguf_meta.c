/* gguf_meta.c - parsing of GGUF metadata.  gguf.c shows the layout of the file.
 *
 * A value is a number, a boolean, a text, or an array.
 *   text   length, bytes
 *   array  u32 kind of the elements, count, elements, perhaps nested arrays
 * Lengths and counts are u64; in version 1, u32.
 *
 * Arrays of numbers and texts are borrowed from the file.  An array of numbers is one value; an
 * array of texts is a list with one value per text.
 */
#include "format/gguf/gguf.h"

#include "model/float.h"
#include "model/open_containers.h"
#include "model/unique_keys.h"

enum { REPLACEMENT_BYTES = 3 };

/* ---- numbers and texts ---- */

static uint64_t load_uint(const uint8_t *p, uint32_t size, bool big_endian)
{
    uint64_t v = 0;
    for (uint32_t i = 0; i < size; i++)
        v |= (uint64_t)p[i] << 8 * (big_endian ? size - 1 - i : i);
    return v;
}

uint32_t heft_gguf_read_u32(heft_gguf_reader *r)
{
    r->field_offset = heft_cur_pos(&r->c);
    const uint8_t *p = heft_cur_take(&r->c, 4);
    return !p ? 0 : r->big_endian ? (uint32_t)load_uint(p, 4, true) : heft_le32(p);
}

uint64_t heft_gguf_read_u64(heft_gguf_reader *r)
{
    r->field_offset = heft_cur_pos(&r->c);
    const uint8_t *p = heft_cur_take(&r->c, 8);
    return !p ? 0 : r->big_endian ? load_uint(p, 8, true) : heft_le64(p);
}

uint64_t heft_gguf_read_length(heft_gguf_reader *r)
{
    return r->length_bytes == 8 ? heft_gguf_read_u64(r) : heft_gguf_read_u32(r);
}

/* Read a length and a text of any bytes. */
static heft_str read_bytes(heft_gguf_reader *r, const char *what)
{
    uint64_t n = heft_gguf_read_length(r), left = heft_cur_left(&r->c);
    if (heft_unlikely(n > left)) {
        if (!r->c.st)
            heft_error_set(r->x->err, HEFT_E_FORMAT, r->field_offset,
                           "%s has a length of %U bytes, only %U are left", what, n, left);
        r->c.st = r->c.st ? r->c.st : HEFT_E_FORMAT;
        return (heft_str){ "", 0 };
    }
    const uint8_t *p = heft_cur_take(&r->c, n);
    return p ? (heft_str){ (const char *)p, (size_t)n } : (heft_str){ "", 0 };
}

heft_str heft_gguf_read_text(heft_gguf_reader *r, const char *what)
{
    heft_str s = read_bytes(r, what);
    size_t valid = heft_utf8_valid(s.ptr, s.len);
    if (heft_unlikely(valid < s.len))
        r->c.st = heft_error_set(r->x->err, HEFT_E_FORMAT, heft_cur_pos(&r->c) - s.len + valid,
                                 "%s is not UTF-8: byte 0x%X", what,
                                 (uint64_t)(uint8_t)s.ptr[valid]);
    if (!r->c.st)
        r->binary_start = r->c;
    return s;
}

heft_status heft_gguf_explain_error(heft_gguf_reader *r, heft_status st)
{
    static const uint8_t replacement_char[REPLACEMENT_BYTES] = { 0xEF, 0xBF, 0xBD };
    if (st != HEFT_E_FORMAT)
        return st;
    heft_cur c = r->binary_start;
    while (heft_cur_pos(&c) <= r->field_offset) {
        heft_cur ahead = c;
        uint64_t at = heft_cur_pos(&c);
        if ((uint64_t)(c.end - c.p) < REPLACEMENT_BYTES)
            return st;
        if (!memcmp(heft_cur_take(&ahead, REPLACEMENT_BYTES), replacement_char, REPLACEMENT_BYTES))
            return heft_error_set(
                r->x->err, HEFT_E_FORMAT, at,
                "corrupted by a text conversion: U+FFFD (EF BF BD) stands in place of binary data; "
                "copy or download the file as binary");
        heft_cur_take(&c, 1);
    }
    return st;
}

/* ---- values ---- */

static heft_status add_text(heft_gguf_reader *r, heft_str key, bool *is_text)
{
    heft_value v = { .kind = HEFT_KIND_STR, .key = key };
    v.as.s = read_bytes(r, "a text");
    if (r->c.st)
        return r->c.st;
    r->binary_start = r->c;
    if (heft_unlikely(heft_utf8_valid(v.as.s.ptr, v.as.s.len) < v.as.s.len)) {
        v.kind = HEFT_KIND_BYTES;
        v.stored = HEFT_U8;
        *is_text = false;
        if (!r->noted_invalid_utf8)
            heft_ix_note(r->x, HEFT_WARNING, "gguf/not-text", heft_cur_pos(&r->c) - v.as.s.len,
                         HEFT_NONE, "a metadata text is not UTF-8 (there may be more)");
        r->noted_invalid_utf8 = true;
    }
    return heft_ix_meta(r->x, v);
}

static heft_status check_bool(heft_gguf_reader *r, heft_str key, uint64_t at, uint8_t byte)
{
    if (byte <= 1)
        return HEFT_OK;
    return heft_ix_forgive(r->x,
                           heft_error_set(r->x->err, HEFT_E_FORMAT, at,
                                          "metadata %q: a boolean is %U, neither 0 nor 1", key,
                                          (uint64_t)byte),
                           "metadata");
}

static heft_status add_number(heft_gguf_reader *r, heft_str key, heft_dtype t)
{
    uint32_t size = heft_dtype_size(t);
    uint64_t at = heft_cur_pos(&r->c);
    const uint8_t *p = heft_cur_take(&r->c, size);
    if (!p)
        return r->c.st;
    heft_value v = { .kind = HEFT_KIND_UINT, .key = key, .stored = t };
    uint64_t bits = load_uint(p, size, r->big_endian);
    v.as.u = bits;
    if (t == HEFT_BOOL)
        HEFT_TRY(check_bool(r, key, at, *p));
    if (t == HEFT_BOOL) {
        v = (heft_value){ .kind = HEFT_KIND_BOOL, .key = key };
        v.as.b = bits;
    } else if (heft_dtype_is_float(t)) {
        v.kind = HEFT_KIND_FLOAT;
        v.as.f = heft_f64_of(t == HEFT_F32 ? heft_f32_to_f64((uint32_t)bits) : bits);
    } else if (heft_dtype_is_signed_int(t)) {
        v.kind = HEFT_KIND_INT;
        uint64_t sign = UINT64_C(1) << (8 * size - 1);
        bits = (bits ^ sign) - sign; /* sign-extend to 64 bits */
        memcpy(&v.as.i, &bits, sizeof bits);
    }
    return heft_ix_meta(r->x, v);
}

/* ---- arrays ---- */

/* Add an array of numbers, byte-swapped if the file is big-endian. */
static heft_status add_numbers(heft_gguf_reader *r, heft_str key, heft_dtype t, uint32_t count)
{
    uint32_t size = heft_dtype_size(t);
    uint64_t at = heft_cur_pos(&r->c);
    size_t len = (size_t)count * size;
    const uint8_t *p = heft_cur_take(&r->c, len);
    if (!p)
        return r->c.st;
    for (uint32_t i = 0; t == HEFT_BOOL && i < count; i++)
        HEFT_TRY(check_bool(r, key, at + i, p[i]));
    heft_value v = { .kind = HEFT_KIND_ARRAY, .key = key };
    v.as.array.ptr = p;
    v.as.array.count = count;
    v.as.array.dtype = t;
    if (!r->big_endian || size == 1)
        return heft_ix_meta(r->x, v);
    uint8_t *copy = heft_arena_alloc(&r->x->arena, len + 1, 8);
    if (!copy)
        return heft_error_no_memory(r->x->err, "for metadata");
    for (size_t i = 0; i < len; i++)
        copy[i] = p[i - i % size + (size - 1 - i % size)];
    v.as.array.ptr = copy;
    return heft_ix_meta(r->x, v);
}

static heft_status add_texts(heft_gguf_reader *r, heft_str key, uint32_t count)
{
    const heft_value list = { .kind = HEFT_KIND_LIST, .key = key };
    uint64_t at = heft_cur_pos(&r->c);
    bool is_text = true;
    HEFT_TRY(heft_ix_meta(r->x, list));
    for (uint32_t i = 0; i < count; i++)
        HEFT_TRY(add_text(r, (heft_str){ "", 0 }, &is_text));
    heft_ix_meta_end(r->x);
    uint64_t bytes = heft_cur_pos(&r->c) - at;
    if (heft_str_is(key, heft_gguf_tokens_key) && is_text && bytes <= UINT32_MAX) {
        heft_ix_tokens *t = &r->x->tokens;
        t->where = (heft_range){ at, bytes };
        t->count = count;
        t->length_bytes = r->length_bytes;
        t->big_endian = r->big_endian;
    }
    return HEFT_OK;
}

/* Add one array; only an array of the top level has a key.  For an array of arrays, open a list
 * and set *inner to the number of arrays that follow.  `entry_key` is the key of the entry, for
 * messages. */
static heft_status add_array(heft_gguf_reader *r, heft_str key, heft_str entry_key, uint32_t *inner)
{
    uint64_t at = heft_cur_pos(&r->c), min_bytes;
    uint32_t kind = heft_gguf_read_u32(r);
    uint64_t count = heft_gguf_read_length(r), left = heft_cur_left(&r->c);
    heft_dtype t = heft_gguf_value_type(kind);
    if (r->c.st)
        return r->c.st;
    if (!t && kind != HEFT_GGUF_STRING && kind != HEFT_GGUF_ARRAY)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, at,
                              "metadata %q: unknown kind %U of array elements (0 to 12 are known)",
                              entry_key, (uint64_t)kind);
    uint64_t min_element_bytes = t ? heft_dtype_size(t)
                                   : r->length_bytes + (kind == HEFT_GGUF_ARRAY ? 4u : 0);
    if (!heft_mul(&min_bytes, count, min_element_bytes) || min_bytes > left)
        return heft_error_set(
            r->x->err, HEFT_E_FORMAT, r->field_offset,
            "metadata %q: an array of %U elements does not fit into the %U bytes that are left",
            entry_key, count, left);
    if (count >= UINT32_MAX)
        return heft_error_set(r->x->err, HEFT_E_LIMIT, r->field_offset,
                              "metadata %q: an array of %U elements exceeds the limit of 2^32 - 2",
                              entry_key, count);
    *inner = 0;
    if (kind == HEFT_GGUF_ARRAY && !r->noted_nested)
        heft_ix_note(
            r->x, HEFT_NOTE, "gguf/nested", at, HEFT_NONE,
            "the metadata contain an array of arrays, which ggml cannot read (there may be more)");
    r->noted_nested = r->noted_nested || kind == HEFT_GGUF_ARRAY;
    if (t)
        return add_numbers(r, key, t, (uint32_t)count);
    if (kind == HEFT_GGUF_STRING)
        return add_texts(r, key, (uint32_t)count);
    heft_status st = heft_ix_meta(r->x, (heft_value){ .kind = HEFT_KIND_LIST, .key = key });
    *inner = (uint32_t)count;
    if (!st && !count)
        heft_ix_meta_end(r->x);
    return st;
}

static heft_status add_array_tree(heft_gguf_reader *r, heft_str key)
{
    heft_open_containers open;
    uint32_t inner = 0;
    heft_str element_key = key;
    open.depth = 0;
    do {
        HEFT_TRY(add_array(r, element_key, key, &inner));
        if (inner)
            heft_open_enter(&open, inner, HEFT_KIND_LIST); /* heft_ix_meta() has checked depth */
        else
            heft_open_leaf(&open);
        while (heft_open_leave(&open))
            heft_ix_meta_end(r->x);
        element_key = heft_lit("");
    } while (open.depth);
    return HEFT_OK;
}

/* ---- entries ---- */

static heft_status check_alignment(heft_gguf_reader *r, uint64_t at)
{
    const heft_value *v = heft_ix_value(r->x, r->x->values.len - 1);
    heft_status st = HEFT_OK;
    if (v->stored != HEFT_U32)
        st = heft_error_set(r->x->err, HEFT_E_FORMAT, at, "general.alignment is not a u32");
    st = heft_ix_forgive(r->x, st, "alignment");
    if (st || heft_gguf_alignment_of(v))
        return st;
    st = heft_error_set(r->x->err, HEFT_E_FORMAT, at,
                        "general.alignment is %U, not a power of two up to %U", v->as.u,
                        (uint64_t)HEFT_GGUF_MAX_ALIGN);
    return heft_gguf_alignment(r->x) ? heft_ix_forgive(r->x, st, "alignment") : st;
}

static heft_status read_entry(heft_gguf_reader *r)
{
    uint64_t at = heft_cur_pos(&r->c);
    heft_str key = heft_gguf_read_text(r, "a metadata key");
    if (!r->c.st && !key.len)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, at, "a metadata key is empty");
    if (key.len > HEFT_GGUF_MAX_KEY)
        heft_ix_note(r->x, HEFT_WARNING, "gguf/long-key", at, HEFT_NONE,
                     "a metadata key has more than 65535 bytes");
    if (r->c.st)
        return r->c.st;
    uint32_t kind = heft_gguf_read_u32(r);
    heft_dtype t = heft_gguf_value_type(kind);
    bool is_text = true;
    heft_status st;
    if (r->c.st)
        return r->c.st;
    if (!t && kind != HEFT_GGUF_STRING && kind != HEFT_GGUF_ARRAY)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, r->field_offset,
                              "metadata %q: unknown kind %U (0 to 12 are known)", key,
                              (uint64_t)kind);
    if (t) {
        at = heft_cur_pos(&r->c);
        st = add_number(r, key, t);
        return st || !heft_str_is(key, heft_gguf_alignment_key) ? st : check_alignment(r, at);
    }
    if (heft_str_is(key, heft_gguf_alignment_key))
        return heft_error_set(r->x->err, HEFT_E_FORMAT, r->field_offset,
                              "general.alignment is not a u32");
    return kind == HEFT_GGUF_STRING ? add_text(r, key, &is_text) : add_array_tree(r, key);
}

static int find_special(heft_str key)
{
    static const char prefix[] = "tokenizer.ggml.";
    int s = 0;
    if (key.len < sizeof prefix || memcmp(key.ptr, prefix, sizeof prefix - 1) != 0)
        return HEFT_SPECIALS;
    while (s < HEFT_SPECIALS && !heft_str_is(key, heft_gguf_special_keys[s][0]) &&
           !(heft_gguf_special_keys[s][1] && heft_str_is(key, heft_gguf_special_keys[s][1])))
        s++;
    return s;
}

bool heft_gguf_is_special(heft_str key)
{
    return find_special(key) < HEFT_SPECIALS;
}

void heft_gguf_find_special(const heft_index *x, heft_ix_tokens *t)
{
    for (int s = 0; s < HEFT_SPECIALS; s++)
        t->special[s] = HEFT_NONE;
    for (uint32_t i = 0; i < x->values.len; i = heft_ix_value_next(x, i)) {
        const heft_value *v = heft_ix_value(x, i);
        int s = find_special(v->key);
        bool is_id = v->kind == HEFT_KIND_UINT || (v->kind == HEFT_KIND_INT && v->as.i >= 0);
        if (s == HEFT_SPECIALS || !is_id || v->as.u >= t->count)
            continue;
        t->special[s] = (uint32_t)v->as.u;
        t->has_special = true;
    }
}

heft_status heft_gguf_read_metadata(heft_gguf_reader *r, uint64_t count)
{
    heft_status st = HEFT_OK;
    for (uint64_t i = 0; i < count && !st; i++)
        st = read_entry(r);
    if (!st)
        st = heft_meta_unique(r->x, "the metadata");
    const heft_ix_tokens *t = &r->x->tokens;
    if (st || !t->length_bytes)
        return heft_gguf_explain_error(r, st);
    heft_gguf_find_special(r->x, &r->x->tokens);
    return heft_ix_part(r->x, HEFT_NONE, heft_lit("vocab"), HEFT_UNTYPED, t->where, t->where.length,
                        HEFT_RAW);
}
