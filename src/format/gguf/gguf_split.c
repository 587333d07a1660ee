/* gguf_split.c - models in several GGUF files, as llama.cpp splits them.
 *
 * A shard is called STEM-00001-of-00003.gguf.  Its metadata have its number, "split.no", counted
 * from 0, the number of shards, "split.count", and the number of tensors in all shards,
 * "split.tensors.count".  The first shard has the metadata of the model.
 */
#include "base/path_risk.h"
#include "format/gguf/gguf.h"

enum { DIGITS = 5, NUMBERS_BYTES = 2 * DIGITS + 16 };

static const char *const keys[] = { "split.no", "split.count", "split.tensors.count" };
enum { NUMBER, COUNT, TENSORS, KEYS };

static const char suffix[] = ".gguf";

static void put_numbers(heft_out *o, uint32_t i, uint32_t count)
{
    heft_out_decimal(o, i + 1, DIGITS);
    heft_out_str(o, heft_lit("-of-"));
    heft_out_decimal(o, count, DIGITS);
}

/* ---- reading ---- */

/* Copy "BEFORE00001-of-00003AFTER" into the index, with the number of shard i. */
static heft_str numbers_text(heft_index *x, const char *before, uint32_t i, const char *after)
{
    uint8_t buf[NUMBERS_BYTES + sizeof suffix];
    heft_out o = { .buf = buf, .cap = sizeof buf };
    heft_out_str(&o, heft_lit(before));
    put_numbers(&o, i, x->shard_info.count);
    heft_out_str(&o, heft_lit(after));
    heft_out_u8(&o, 0);
    heft_str text = heft_ix_copy(x, (heft_str){ (const char *)buf, o.len });
    text.len -= text.ptr != NULL;
    return text;
}

static heft_status add_shards(heft_index *x)
{
    heft_str own_suffix = numbers_text(x, "-", 0, suffix);
    uint32_t id;
    if (!own_suffix.ptr)
        return HEFT_E_NOMEM;
    for (uint32_t i = 1; i < x->shard_info.count; i++) {
        heft_ix_shard s = { numbers_text(x, "", i, ""), suffix, HEFT_UNKNOWN_LENGTH, true,
                            own_suffix.ptr };
        HEFT_TRY(s.label.ptr ? heft_ix_shard_add(x, s, &id) : HEFT_E_NOMEM);
    }
    return HEFT_OK;
}

static bool is_count(const heft_value *v)
{
    return v->kind == HEFT_KIND_UINT || (v->kind == HEFT_KIND_INT && v->as.i >= 0);
}

bool heft_gguf_allows_split_value(const heft_value *v)
{
    for (int k = 0; k < KEYS; k++)
        if (heft_str_is(v->key, keys[k]))
            return is_count(v);
    return true;
}

heft_status heft_gguf_read_split(heft_index *x)
{
    uint64_t found[KEYS], at[KEYS]; /* values, and offsets of the keys */
    for (int k = 0; k < KEYS; k++) {
        const heft_value *v = heft_gguf_find_value(x, keys[k]);
        found[k] = v ? v->as.u : HEFT_NOWHERE;
        at[k] = v ? heft_ix_offset_of(x, v->key) : HEFT_NOWHERE;
        if (v && !is_count(v))
            return heft_error_set(x->err, HEFT_E_FORMAT, at[k],
                                  "metadata %q must be an unsigned integer", v->key);
    }
    if (found[COUNT] == HEFT_NOWHERE || !found[COUNT])
        return HEFT_OK;
    if (found[COUNT] > HEFT_MAX_SHARDS)
        return heft_error_set(x->err, HEFT_E_LIMIT, at[COUNT],
                              "the model has %U shards, more than the limit of %U", found[COUNT],
                              (uint64_t)HEFT_MAX_SHARDS);
    found[NUMBER] = found[NUMBER] == HEFT_NOWHERE ? 0 : found[NUMBER];
    if (found[NUMBER] >= found[COUNT])
        return heft_error_set(x->err, HEFT_E_FORMAT, at[NUMBER],
                              "split.no is %U, but split.count is %U (split.no is counted from 0)",
                              found[NUMBER], found[COUNT]);
    x->shard_info = (heft_ix_shard_info){ (uint32_t)found[NUMBER], (uint32_t)found[COUNT],
                                          found[TENSORS], heft_lit("split.") };
    return x->shard_info.number ? HEFT_OK : add_shards(x);
}

/* ---- writing ---- */

static void put_name(heft_out *o, heft_str stem, uint32_t i, uint32_t count)
{
    heft_out_str(o, stem);
    heft_out_u8(o, '-');
    put_numbers(o, i, count);
    heft_out_str(o, heft_lit(suffix));
}

static uint32_t values(heft_value out[HEFT_SHARD_SET_VALUES], uint32_t i, uint32_t count,
                       uint32_t tensors)
{
    static const heft_dtype types[] = { HEFT_U16, HEFT_U16, HEFT_I32 };
    uint32_t numbers[] = { i, count, tensors };
    for (int k = 0; k < KEYS; k++) {
        out[k] = (heft_value){ .kind = k == TENSORS ? HEFT_KIND_INT : HEFT_KIND_UINT,
                               .stored = types[k],
                               .key = heft_lit(keys[k]) };
        out[k].as.u = numbers[k];
    }
    return KEYS;
}

const heft_sharding heft_gguf_sharding = { .name = put_name, .values = values };
