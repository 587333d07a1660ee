/* flax_array.c - reads the extension in which Flax stores an array; flax.c shows the layout. */
#include "format/flax/flax.h"

const uint8_t heft_flax_empty[HEFT_FLAX_EMPTY_BYTES] = { 0xDE, 0, 0 };
const char heft_flax_chunked[] = "__msgpack_chunked_array__";

static const heft_dtype_spelling rows[] = {
    { "float32", HEFT_F32 },
    { "bfloat16", HEFT_BF16 },
    { "float16", HEFT_F16 },
    { "float64", HEFT_F64 },
    { "int8", HEFT_I8 },
    { "int16", HEFT_I16 },
    { "int32", HEFT_I32 },
    { "int64", HEFT_I64 },
    { "uint8", HEFT_U8 },
    { "uint16", HEFT_U16 },
    { "uint32", HEFT_U32 },
    { "uint64", HEFT_U64 },
    { "bool", HEFT_BOOL },
    { "complex64", HEFT_C64 },
    { "complex128", HEFT_C128 },
    { "float8_e4m3fn", HEFT_F8_E4M3FN },
    { "float8_e5m2", HEFT_F8_E5M2 },
    { "float8_e4m3fnuz", HEFT_F8_E4M3FNUZ },
    { "float8_e5m2fnuz", HEFT_F8_E5M2FNUZ },
    { "float8_e8m0fnu", HEFT_F8_E8M0 },
};
static const heft_dtype_spellings names = { rows, sizeof rows / sizeof *rows };

heft_dtype heft_flax_type(heft_str name)
{
    return heft_dtype_spelled(&names, name);
}

const char *heft_flax_type_name(heft_dtype t)
{
    return heft_dtype_spelling_of(&names, t);
}

heft_status heft_flax_expect(heft_msgpack_tree *t, heft_msgpack_kind kind, const char *name,
                             heft_msgpack_item *it)
{
    *it = heft_msgpack_next(&t->c);
    if (!t->c.st && it->kind != kind)
        heft_cur_fail_at(&t->c, it->at, "an array of Flax: %s is missing", name);
    return t->c.st;
}

/* Read the name of the type, which writers of old store as bytes. */
static heft_status read_type(heft_msgpack_tree *t, heft_str *out)
{
    heft_msgpack_item it = heft_msgpack_next(&t->c);
    if (!t->c.st && it.kind != HEFT_MSGPACK_TEXT && it.kind != HEFT_MSGPACK_BYTES)
        heft_cur_fail_at(&t->c, it.at, "an array of Flax: the name of its type is missing");
    *out = heft_msgpack_text(&t->c, &it);
    return t->c.st;
}

heft_status heft_flax_read_array(heft_msgpack_tree *t, const heft_msgpack_item *ext,
                                 heft_flax_array *a)
{
    enum { MEMBERS = 3 };
    heft_msgpack_item it;
    *a = (heft_flax_array){ .at = ext->at, .end = heft_cur_pos(&t->c) + ext->u };
    HEFT_TRY(heft_flax_expect(t, HEFT_MSGPACK_ARRAY, "the list of shape, type and bytes", &it));
    if (it.u != MEMBERS)
        return heft_cur_fail_at(&t->c, it.at, "an array of Flax has %U members instead of 3", it.u);
    HEFT_TRY(heft_flax_expect(t, HEFT_MSGPACK_ARRAY, "the shape", &it));
    a->shape = t->c;
    a->rank = it.u;
    heft_msgpack_skip(&t->c, &it);
    HEFT_TRY(t->c.st ? t->c.st : read_type(t, &a->type));
    HEFT_TRY(heft_flax_expect(t, HEFT_MSGPACK_BYTES, "its data", &it));
    a->data = (heft_range){ heft_cur_pos(&t->c), it.u };
    heft_cur_skip(&t->c, it.u);
    if (!t->c.st && heft_cur_pos(&t->c) != a->end)
        heft_cur_fail_at(&t->c, a->at, "an array of Flax ends at %U, its extension at %U",
                         heft_cur_pos(&t->c), a->end);
    return t->c.st;
}
