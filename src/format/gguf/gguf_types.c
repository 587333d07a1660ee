/* gguf_types.c - type numbers and metadata keys of GGUF. */
#include "format/gguf/gguf.h"

static const heft_dtype value_types[HEFT_GGUF_KINDS] = {
    HEFT_U8,   HEFT_I8,      HEFT_U16,     HEFT_I16, HEFT_U32, HEFT_I32, HEFT_F32,
    HEFT_BOOL, HEFT_UNTYPED, HEFT_UNTYPED, HEFT_U64, HEFT_I64, HEFT_F64,
};

heft_dtype heft_gguf_value_type(uint32_t kind)
{
    return kind < HEFT_GGUF_KINDS ? value_types[kind] : HEFT_UNTYPED;
}

uint32_t heft_gguf_kind_of(heft_dtype t)
{
    return heft_dtype_code(t, value_types, HEFT_GGUF_KINDS);
}

enum { REMOVED = HEFT_UNTYPED };
const heft_dtype heft_gguf_types[HEFT_GGUF_TYPES] = {
    HEFT_F32,   HEFT_F16,   HEFT_Q4_0,    HEFT_Q4_1,   REMOVED,      REMOVED,    HEFT_Q5_0,
    HEFT_Q5_1,  HEFT_Q8_0,  HEFT_Q8_1,    HEFT_Q2_K,   HEFT_Q3_K,    HEFT_Q4_K,  HEFT_Q5_K,
    HEFT_Q6_K,  HEFT_Q8_K,  HEFT_IQ2_XXS, HEFT_IQ2_XS, HEFT_IQ3_XXS, HEFT_IQ1_S, HEFT_IQ4_NL,
    HEFT_IQ3_S, HEFT_IQ2_S, HEFT_IQ4_XS,  HEFT_I8,     HEFT_I16,     HEFT_I32,   HEFT_I64,
    HEFT_F64,   HEFT_IQ1_M, HEFT_BF16,    REMOVED,     REMOVED,      REMOVED,    HEFT_TQ1_0,
    HEFT_TQ2_0, REMOVED,    REMOVED,      REMOVED,     HEFT_MXFP4,   HEFT_NVFP4, HEFT_Q1_0,
    HEFT_Q2_0,
};

const char *heft_gguf_removed_type(uint32_t number)
{
    static const char *const names[HEFT_GGUF_TYPES] = {
        [4] = "q4_2",      [5] = "q4_3",        [31] = "q4_0_4_4",   [32] = "q4_0_4_8",
        [33] = "q4_0_8_8", [36] = "iq4_nl_4_4", [37] = "iq4_nl_4_8", [38] = "iq4_nl_8_8",
    };
    return names[number];
}

const char heft_gguf_opaque[] = "ggml.opaque";

static const char type_prefix[] = "ggml:";
enum { TYPE_PREFIX = sizeof type_prefix - 1 };

bool heft_gguf_is_opaque(const heft_index *x, uint32_t tensor)
{
    return heft_ix_row(x, tensor)->layout >= HEFT_LAYOUT_OTHER &&
           heft_str_is(heft_ix_layout(x, tensor), heft_gguf_opaque);
}

static bool read_number(uint32_t *out, heft_str digits)
{
    uint32_t number = 0;
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.ptr[i] < '0' || digits.ptr[i] > '9')
            return false;
        number = number * 10 + (uint32_t)(digits.ptr[i] - '0');
        if (number > HEFT_GGUF_MAX_TYPE)
            return false;
    }
    *out = number;
    return digits.len && number >= HEFT_GGUF_TYPES;
}

uint32_t heft_gguf_type_number(const heft_index *x, uint32_t tensor)
{
    heft_dtype t = heft_ix_row(x, tensor)->dtype;
    if (heft_gguf_is_opaque(x, tensor)) {
        heft_str type = heft_ix_stored_dtype(x, tensor);
        uint32_t number;
        bool is_valid = type.len > TYPE_PREFIX && !memcmp(type.ptr, type_prefix, TYPE_PREFIX) &&
                        read_number(&number,
                                    (heft_str){ type.ptr + TYPE_PREFIX, type.len - TYPE_PREFIX });
        return is_valid ? number : UINT32_MAX;
    }
    uint32_t number = heft_dtype_code(t, heft_gguf_types, HEFT_GGUF_TYPES);
    return number < HEFT_GGUF_TYPES ? number : UINT32_MAX;
}

heft_status heft_gguf_set_type_number(heft_index *x, uint32_t tensor, uint32_t number)
{
    char text[TYPE_PREFIX + 20];
    memcpy(text, type_prefix, TYPE_PREFIX);
    size_t len = TYPE_PREFIX + heft_u64_text(text + TYPE_PREFIX, number);
    heft_str type = heft_arena_copy(&x->arena, (heft_str){ text, len });
    if (!type.ptr)
        return heft_error_no_memory(x->err, "for an element type");
    return heft_ix_attr_text(x, tensor, heft_lit("stored_dtype"), type);
}

const char heft_gguf_alignment_key[] = "general.alignment";
const char heft_gguf_tokens_key[] = "tokenizer.ggml.tokens";

/* llama.cpp and existing files misspell "seperator". */
const char *const heft_gguf_special_keys[HEFT_SPECIALS][2] = {
    [HEFT_PAD] = { "tokenizer.ggml.padding_token_id", NULL },
    [HEFT_UNK] = { "tokenizer.ggml.unknown_token_id", NULL },
    [HEFT_CLS] = { "tokenizer.ggml.cls_token_id", NULL },
    [HEFT_SEP] = { "tokenizer.ggml.seperator_token_id", "tokenizer.ggml.separator_token_id" },
    [HEFT_MASK] = { "tokenizer.ggml.mask_token_id", NULL },
};

uint64_t heft_gguf_alignment_of(const heft_value *v)
{
    bool is_number = v->kind == HEFT_KIND_UINT || (v->kind == HEFT_KIND_INT && v->as.i > 0);
    bool is_power = is_number && v->as.u && !(v->as.u & (v->as.u - 1));
    return is_power && v->as.u <= HEFT_GGUF_MAX_ALIGN ? v->as.u : 0;
}

const heft_value *heft_gguf_find_value(const heft_index *x, const char *key)
{
    for (uint32_t i = 0; i < x->values.len; i = heft_ix_value_next(x, i))
        if (heft_str_is(heft_ix_value(x, i)->key, key))
            return heft_ix_value(x, i);
    return NULL;
}

uint64_t heft_gguf_alignment(const heft_index *x)
{
    const heft_value *v = heft_gguf_find_value(x, heft_gguf_alignment_key);
    if (!v)
        return HEFT_GGUF_ALIGN;
    bool is_forgiven = heft_ix_forgives(x) && v->kind == HEFT_KIND_UINT &&
                       v->as.u <= HEFT_GGUF_MAX_ALIGN;
    return is_forgiven ? v->as.u : heft_gguf_alignment_of(v);
}

bool heft_gguf_align_up(uint64_t *out, uint64_t at, uint64_t align)
{
    if (HEFT_IS_SMALL || !(align & (align - 1)))
        return heft_align_up(out, at, align);
    uint64_t blocks = heft_div(at, (uint32_t)align);
    *out = blocks * align + (blocks * align < at ? align : 0);
    return *out >= at;
}
