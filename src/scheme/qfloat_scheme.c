/* qfloat_scheme.c - reads the scheme of a quantised tensor of Burn, as the readers of Burn's files
 * state it: JSON without escapes.
 *
 *   {"QFloat":{"value":text,"param":scale,"store":store,"level":level,"mode":text}}  before 0.22
 *   {"QFloat":{"value":text,"store":store,"mode":text,"tensor":scale,"block":block}} since 0.22
 *   store  "Native", "U32", {"PackedNative":dim}, {"PackedU32":dim}
 *   level  "Tensor", {"Block":size}, {"BlockTensor":{"block":size,"global":scale}}
 *   block  {"size":size,"dtype":scale}         size  {"storage":[5 numbers],"len":number}
 *   scale  "F32", "F16", "BF16", "UE8M0", "UE4M3"
 */
#include "scheme/qfloat_scheme.h"

#include "base/text.h"
#include "grammar/json.h"
#include "model/dtype.h"

enum { DEPTH = 8 };

static const struct {
    const char *name;
    uint8_t bits;
    heft_dtype type;
} values[] = { { "Q8F", 8, HEFT_UNTYPED },    { "Q8S", 8, HEFT_UNTYPED },
               { "Q4F", 4, HEFT_UNTYPED },    { "Q4S", 4, HEFT_UNTYPED },
               { "Q2F", 2, HEFT_UNTYPED },    { "Q2S", 2, HEFT_UNTYPED },
               { "E4M3", 8, HEFT_F8_E4M3FN }, { "E5M2", 8, HEFT_F8_E5M2 },
               { "E2M1", 4, HEFT_F4_E2M1 } };

static const heft_dtype_spelling scales[] = { { "F32", HEFT_F32 },
                                              { "F16", HEFT_F16 },
                                              { "BF16", HEFT_BF16 },
                                              { "UE8M0", HEFT_F8_E8M0 },
                                              { "UE4M3", HEFT_F8_E4M3FN } };
static const heft_dtype_spellings scale_types = { scales, sizeof scales / sizeof *scales };

static bool is_next(heft_json *j, heft_json_kind kind)
{
    return heft_json_next(j) == kind;
}

static bool is_key(heft_json *j, const char *key)
{
    return is_next(j, HEFT_JSON_KEY) && heft_str_is(j->text, key);
}

static bool read_number(heft_json *j, uint64_t *out, uint64_t most)
{
    return is_next(j, HEFT_JSON_NUMBER) && heft_json_u64(out, j->text) && *out <= most;
}

/* The token of a scale was the last. */
static bool is_scale(const heft_json *j, heft_json_kind kind, heft_dtype *out)
{
    *out = kind == HEFT_JSON_STRING ? heft_dtype_spelled(&scale_types, j->text)
                                    : (heft_dtype)HEFT_UNTYPED;
    return *out != HEFT_UNTYPED;
}

static bool read_scale(heft_json *j, heft_dtype *out)
{
    heft_json_kind kind = heft_json_next(j);
    return is_scale(j, kind, out);
}

static bool read_size(heft_json *j, heft_qfloat_scheme *s)
{
    uint64_t n;
    if (!is_next(j, HEFT_JSON_OBJECT) || !is_key(j, "storage") || !is_next(j, HEFT_JSON_ARRAY))
        return false;
    for (uint32_t i = 0; i < HEFT_QFLOAT_RANK; i++) {
        if (!read_number(j, &n, UINT8_MAX))
            return false;
        s->size[i] = (uint8_t)n;
    }
    if (!is_next(j, HEFT_JSON_ARRAY_END) || !is_key(j, "len") ||
        !read_number(j, &n, HEFT_QFLOAT_RANK))
        return false;
    s->size_count = (uint32_t)n;
    return is_next(j, HEFT_JSON_OBJECT_END);
}

static bool read_value(heft_json *j, heft_qfloat_scheme *s)
{
    if (!is_next(j, HEFT_JSON_STRING))
        return false;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (heft_str_is(j->text, values[i].name)) {
            s->value = values[i].name;
            s->bits = values[i].bits;
            s->type = values[i].type;
        }
    return s->value;
}

static bool read_store(heft_json *j, heft_qfloat_scheme *s)
{
    heft_json_kind kind = heft_json_next(j);
    s->store = heft_str_is(j->text, "U32") ? HEFT_QFLOAT_WORDS : HEFT_QFLOAT_BYTES;
    if (kind == HEFT_JSON_STRING)
        return s->store == HEFT_QFLOAT_WORDS || heft_str_is(j->text, "Native");
    if (kind != HEFT_JSON_OBJECT || !is_next(j, HEFT_JSON_KEY))
        return false;
    s->store = heft_str_is(j->text, "PackedU32") ? HEFT_QFLOAT_WORDS : HEFT_QFLOAT_NATIVE;
    return (s->store == HEFT_QFLOAT_WORDS || heft_str_is(j->text, "PackedNative")) &&
           read_number(j, &s->packed_dim, UINT32_MAX) && is_next(j, HEFT_JSON_OBJECT_END);
}

static bool read_mode(heft_json *j, heft_qfloat_scheme *s)
{
    if (!is_next(j, HEFT_JSON_STRING))
        return false;
    s->is_lookup = heft_str_is(j->text, "Lookup");
    return s->is_lookup || heft_str_is(j->text, "Symmetric");
}

/* ---- scales ---- */

static bool read_param(heft_json *j, heft_qfloat_scheme *s)
{
    return read_scale(j, &s->block_scale); /* settle() moves it if no block follows */
}

static bool read_level(heft_json *j, heft_qfloat_scheme *s)
{
    heft_json_kind kind = heft_json_next(j);
    if (kind == HEFT_JSON_STRING)
        return heft_str_is(j->text, "Tensor");
    if (kind != HEFT_JSON_OBJECT || !is_next(j, HEFT_JSON_KEY))
        return false;
    bool is_read = false;
    if (heft_str_is(j->text, "Block"))
        is_read = read_size(j, s);
    else if (heft_str_is(j->text, "BlockTensor"))
        is_read = is_next(j, HEFT_JSON_OBJECT) && is_key(j, "block") && read_size(j, s) &&
                  is_key(j, "global") && read_scale(j, &s->tensor_scale) &&
                  is_next(j, HEFT_JSON_OBJECT_END);
    return is_read && s->size_count && is_next(j, HEFT_JSON_OBJECT_END);
}

static bool read_tensor(heft_json *j, heft_qfloat_scheme *s)
{
    heft_json_kind kind = heft_json_next(j);
    return kind == HEFT_JSON_NULL || is_scale(j, kind, &s->tensor_scale);
}

static bool read_block(heft_json *j, heft_qfloat_scheme *s)
{
    heft_json_kind kind = heft_json_next(j);
    return kind == HEFT_JSON_NULL ||
           (kind == HEFT_JSON_OBJECT && is_key(j, "size") && read_size(j, s) &&
            is_key(j, "dtype") && read_scale(j, &s->block_scale) &&
            is_next(j, HEFT_JSON_OBJECT_END));
}

/* ---- the scheme ---- */

enum { VALUE = 1, STORE = 2, MODE = 4, PARAM = 8, LEVEL = 16, TENSOR = 32, BLOCK = 64 };

static const struct {
    const char *key;
    bool (*read)(heft_json *j, heft_qfloat_scheme *s);
} members[] = { { "value", read_value }, { "store", read_store }, { "mode", read_mode },
                { "param", read_param }, { "level", read_level }, { "tensor", read_tensor },
                { "block", read_block } };
enum { MEMBERS = sizeof members / sizeof *members };

static bool read_members(heft_json *j, heft_qfloat_scheme *s, uint32_t *found)
{
    heft_json_kind kind;
    while ((kind = heft_json_next(j)) == HEFT_JSON_KEY) {
        uint32_t i = 0;
        while (i < MEMBERS && !heft_str_is(j->text, members[i].key))
            i++;
        if (i == MEMBERS || *found >> i & 1 || !members[i].read(j, s))
            return false;
        *found |= 1U << i;
    }
    return kind == HEFT_JSON_OBJECT_END;
}

/* Before 0.22 "param" is the type of the only scale, or of those of blocks.  Since 0.22 a scheme
 * without types has an f32 for the tensor. */
static bool settle(heft_qfloat_scheme *s, uint32_t found)
{
    enum { ALL = VALUE | STORE | MODE, OLD = PARAM | LEVEL };
    bool is_old = (found & OLD) == OLD && !(found & (TENSOR | BLOCK));
    s->is_since_0_22 = !is_old;
    if (is_old && !s->size_count) {
        s->tensor_scale = s->block_scale;
        s->block_scale = HEFT_UNTYPED;
    } else if (!is_old && !s->block_scale && !s->tensor_scale) {
        s->tensor_scale = HEFT_F32;
    }
    return (found & ALL) == ALL && (is_old || !(found & OLD));
}

bool heft_qfloat_scheme_read(heft_qfloat_scheme *out, heft_str stored_dtype)
{
    heft_json j = heft_json_open(stored_dtype, 0, DEPTH, NULL, NULL);
    uint32_t found = 0;
    *out = (heft_qfloat_scheme){ .value = NULL };
    return is_next(&j, HEFT_JSON_OBJECT) && is_key(&j, "QFloat") && is_next(&j, HEFT_JSON_OBJECT) &&
           read_members(&j, out, &found) && is_next(&j, HEFT_JSON_OBJECT_END) &&
           is_next(&j, HEFT_JSON_END) && settle(out, found);
}
