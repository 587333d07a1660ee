/* burn_types.c - Burn's names of element types: a text such as "F32", or {"Bool": text}. */
#include "format/burn_types.h"

#include "base/text.h"

static const heft_dtype_spelling rows[] = {
    { "F32", HEFT_F32 }, { "F16", HEFT_F16 }, { "BF16", HEFT_BF16 }, { "F64", HEFT_F64 },
    { "I64", HEFT_I64 }, { "I32", HEFT_I32 }, { "U8", HEFT_U8 },     { "I8", HEFT_I8 },
    { "I16", HEFT_I16 }, { "U64", HEFT_U64 }, { "U32", HEFT_U32 },   { "U16", HEFT_U16 },
};
const heft_dtype_spellings heft_burn_numbers = { rows, sizeof rows / sizeof *rows };

const heft_burn_bool heft_burn_bools[HEFT_BURN_BOOLS] = {
    { "Native", "{\"Bool\":\"Native\"}", HEFT_BOOL },
    { "U8", "{\"Bool\":\"U8\"}", HEFT_BOOL },
    { "U32", "{\"Bool\":\"U32\"}", HEFT_U32 },
};

const char heft_burn_flex32[] =
    "Flex32"; /* stored as f32; the attribute stored_dtype keeps the name */
const char heft_burn_qfloat[] = "burn.qfloat";

heft_dtype heft_burn_type(heft_str name, heft_str *stored)
{
    bool is_flex32 = heft_str_is(name, heft_burn_flex32);
    *stored = is_flex32 ? name : (heft_str){ NULL, 0 };
    if (heft_str_is(name, "Bool"))
        return HEFT_BOOL;
    return is_flex32 ? HEFT_F32 : heft_dtype_spelled(&heft_burn_numbers, name);
}

heft_dtype heft_burn_bool_type(heft_str store, heft_str *stored)
{
    unsigned i = 0;
    while (i < HEFT_BURN_BOOLS && !heft_str_is(store, heft_burn_bools[i].store))
        i++;
    *stored = i && i < HEFT_BURN_BOOLS ? heft_lit(heft_burn_bools[i].stored)
                                       : (heft_str){ NULL, 0 };
    return i < HEFT_BURN_BOOLS ? heft_burn_bools[i].dtype : HEFT_UNTYPED;
}
