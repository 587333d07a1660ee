/* record_types.c - names of element types: Burn's, and Rust's in the metadata of old records.
 *
 * A type with parameters becomes JSON without spaces, {"QFloat":{"value":"Q8S",...}}, in the
 * attribute stored_dtype, from which Burnpacks are written.
 */
#include "format/burn_types.h"
#include "format/burnrecord/burnrecord.h"
#include "grammar/json.h"

static const heft_dtype_spelling rust_rows[] = {
    { "f32", HEFT_F32 }, { "f64", HEFT_F64 }, { "bf16", HEFT_BF16 }, { "f16", HEFT_F16 },
    { "i64", HEFT_I64 }, { "i32", HEFT_I32 }, { "i16", HEFT_I16 },   { "i8", HEFT_I8 },
    { "u64", HEFT_U64 }, { "u32", HEFT_U32 }, { "u16", HEFT_U16 },   { "u8", HEFT_U8 },
};
static const heft_dtype_spellings rust_types = { rust_rows, sizeof rust_rows / sizeof *rust_rows };

/* Only the last component of a path matters: half::binary16::f16. */
heft_dtype heft_record_rust_type(heft_str name)
{
    size_t from = name.len;
    while (from && name.ptr[from - 1] != ':')
        from--;
    heft_str last = { name.ptr + from, name.len - from };
    return heft_dtype_spelled(&rust_types, last);
}

static heft_status read_bool(heft_record *r, heft_record_type *out)
{
    heft_msgpack_item it = heft_msgpack_next(&r->tree.c);
    if (!r->tree.c.st && it.kind != HEFT_MSGPACK_TEXT)
        return heft_cur_fail_at(&r->tree.c, it.at, "the storage of a Bool is not a string");
    heft_str kind = heft_msgpack_text(&r->tree.c, &it);
    *out = (heft_record_type){ .dtype = HEFT_UNTYPED };
    if (!r->tree.c.st)
        out->dtype = heft_burn_bool_type(kind, &out->stored);
    if (out->dtype)
        return HEFT_OK;
    return heft_cur_fail_at(&r->tree.c, it.at,
                            "unknown storage %q of a Bool: not Native, U8 or U32", kind);
}

/* ---- quantization schemes ---- */

enum { MAX_LEVELS = 8, MAX_TEXT = 4096 };

typedef struct level { /* an open container of a scheme */
    uint64_t left;     /* remaining items */
    bool is_map, is_value, is_begun;
} level;

static heft_status put_item(heft_record *r, heft_out *o, const heft_msgpack_item *it)
{
    static const char *const truth[] = { "false", "true" };
    if (it->kind == HEFT_MSGPACK_NIL)
        heft_out_str(o, heft_lit("null"));
    else if (it->kind == HEFT_MSGPACK_BOOL)
        heft_out_str(o, heft_lit(truth[it->u & 1]));
    else if (it->kind == HEFT_MSGPACK_UINT)
        heft_json_put_u64(o, it->u);
    else if (it->kind == HEFT_MSGPACK_INT)
        heft_json_put_i64(o, it->i);
    else if (it->kind == HEFT_MSGPACK_TEXT)
        heft_json_put_str(o, heft_msgpack_text(&r->tree.c, it));
    else
        return heft_error_set(r->tree.x->err, HEFT_E_UNSUPPORTED, it->at,
                              "a quantization scheme has unsupported values");
    return r->tree.c.st;
}

/* Emit the separator before an item, and advance to the next key, value or item. */
static void put_separator(heft_out *o, level *l)
{
    if (l->is_value)
        heft_out_u8(o, ':');
    else if (l->is_begun)
        heft_out_u8(o, ',');
    l->is_begun = true;
    l->is_value = l->is_map && !l->is_value;
    l->left--;
}

static heft_status put_tree(heft_record *r, heft_out *o)
{
    level levels[MAX_LEVELS];
    uint32_t depth = 0;
    do {
        if (depth)
            put_separator(o, &levels[depth - 1]);
        heft_msgpack_item it = heft_msgpack_next(&r->tree.c);
        bool is_map = it.kind == HEFT_MSGPACK_MAP;
        if (r->tree.c.st)
            return r->tree.c.st;
        if (!is_map && it.kind != HEFT_MSGPACK_ARRAY) {
            heft_status st = put_item(r, o, &it);
            if (st)
                return st;
        } else if (depth == MAX_LEVELS || o->total > MAX_TEXT) {
            return heft_error_set(r->tree.x->err, HEFT_E_LIMIT, it.at,
                                  "a quantization scheme has more than %U levels or %U bytes",
                                  (uint64_t)MAX_LEVELS, (uint64_t)MAX_TEXT);
        } else {
            heft_out_u8(o, is_map ? '{' : '[');
            levels[depth++] = (level){ .left = is_map ? 2 * it.u : it.u, .is_map = is_map };
        }
        while (depth && !levels[depth - 1].left)
            heft_out_u8(o, levels[--depth].is_map ? '}' : ']');
    } while (depth);
    return HEFT_OK;
}

/* Called after {"QFloat": */
static heft_status read_scheme(heft_record *r, heft_record_type *out)
{
    heft_out o = heft_out_counting();
    heft_cur begin = r->tree.c;
    HEFT_TRY(put_tree(r, &o));
    heft_str prefix = heft_lit("{\"QFloat\":");
    size_t len = prefix.len + (size_t)o.total + 1;
    uint8_t *text = heft_arena_alloc(&r->tree.x->arena, len, 1);
    if (!text)
        return heft_msgpack_tree_no_memory(&r->tree);
    o = (heft_out){ .buf = text, .cap = len };
    heft_out_str(&o, prefix);
    r->tree.c = begin;
    heft_status st = put_tree(r, &o);
    heft_out_u8(&o, '}');
    *out = (heft_record_type){ .dtype = HEFT_U8,
                               .stored = { (char *)text, len },
                               .is_quantized = true };
    return st;
}

heft_status heft_record_read_type(heft_record *r, heft_record_type *out)
{
    heft_msgpack_item it = heft_msgpack_next(&r->tree.c);
    if (!r->tree.c.st && it.kind == HEFT_MSGPACK_TEXT) {
        heft_str name = heft_msgpack_text(&r->tree.c, &it);
        *out = (heft_record_type){ .dtype = HEFT_UNTYPED };
        if (!r->tree.c.st)
            out->dtype = heft_burn_type(name, &out->stored);
        if (out->dtype)
            return HEFT_OK;
        return heft_cur_fail_at(&r->tree.c, it.at, "unknown element type %q", name);
    }
    if (!r->tree.c.st && (it.kind != HEFT_MSGPACK_MAP || it.u != 1))
        return heft_cur_fail_at(&r->tree.c, it.at,
                                "a dtype is neither a string nor a map with one entry");
    it = heft_msgpack_next(&r->tree.c);
    heft_str name = it.kind == HEFT_MSGPACK_TEXT ? heft_msgpack_text(&r->tree.c, &it)
                                                 : heft_lit("");
    if (r->tree.c.st)
        return r->tree.c.st;
    if (heft_str_is(name, "Bool"))
        return read_bool(r, out);
    if (heft_str_is(name, "QFloat"))
        return read_scheme(r, out);
    return heft_cur_fail_at(&r->tree.c, it.at, "unknown element type %q with a value", name);
}
