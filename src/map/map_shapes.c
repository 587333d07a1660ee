/* map_shapes.c - compares the tensors of a GGUF model with the metadata that config.json gives:
 * llama.cpp loads no file in which they differ, and rows of heads are moved by these numbers. */
#include "base/checked_math.h"
#include "base/error.h"
#include "base/text.h"
#include "map/map_file.h"

enum { ROWS = 2, COLUMNS = 1 }; /* counted from the last dimension */

/* A dimension that is one number of the metadata, or the product of two. */
typedef struct shape_rule {
    const char *name; /* after "blk.N.", or the whole name */
    uint32_t from_last;
    const char *times, *of;
} shape_rule;

static const shape_rule rules[] = {
    { "token_embd.weight", COLUMNS, NULL, "embedding_length" },
    { "attn_norm.weight", COLUMNS, NULL, "embedding_length" },
    { "attn_q.weight", ROWS, "attention.head_count", "attention.key_length" },
    { "attn_k.weight", ROWS, "attention.head_count_kv", "attention.key_length" },
    { "attn_v.weight", ROWS, "attention.head_count_kv", "attention.value_length" },
    { "attn_output.weight", COLUMNS, "attention.head_count", "attention.value_length" },
    { "ffn_down.weight", COLUMNS, NULL, "feed_forward_length" },
    { "ffn_down_exps.weight", COLUMNS, NULL, "expert_feed_forward_length" },
    { "ffn_gate_inp.weight", ROWS, NULL, "expert_count" },
};

/* Keys that count before another one, or that llama.cpp takes where it is missing. */
static const struct {
    const char *key, *before, *after;
    bool is_of_head; /* else it is the width, divided by the heads */
} sources[] = {
    { "attention.key_length", "attention.key_length_mla", NULL, true },
    { "attention.value_length", "attention.value_length_mla", NULL, true },
    { "attention.head_count_kv", NULL, "attention.head_count", false },
    { "expert_feed_forward_length", NULL, "feed_forward_length", false },
};

typedef struct stated_numbers {
    const heft_value *values;
    size_t count;
} stated_numbers;

static bool is_key(heft_str key, const char *name)
{
    size_t len = heft_lit(name).len;
    return key.len > len && heft_str_ends(key, name) && key.ptr[key.len - len - 1] == '.';
}

/* Return a number of the metadata; 0: they have none. */
static uint64_t stated(const stated_numbers *n, const char *key)
{
    for (size_t i = 0; key && i < n->count; i++) {
        const heft_value *v = &n->values[i];
        if (v->kind == HEFT_KIND_UINT && is_key(v->key, key))
            return v->as.u;
        i += v->kind == HEFT_KIND_LIST ? v->as.container.count : 0;
    }
    return 0;
}

static uint64_t number(const stated_numbers *n, const char *key)
{
    uint64_t found = stated(n, key), heads = stated(n, "attention.head_count");
    for (size_t i = 0; key && i < sizeof sources / sizeof *sources; i++) {
        if (!heft_str_is(heft_lit(key), sources[i].key))
            continue;
        uint64_t before = stated(n, sources[i].before);
        found = before ? before : found ? found : stated(n, sources[i].after);
        if (!found && sources[i].is_of_head && heads)
            found = heft_div(stated(n, "embedding_length"), heads);
    }
    return found;
}

/* Set *block to the N of "blk.N." at the beginning of the name, and return the rest. */
static heft_str without_block(heft_str name, uint64_t *block)
{
    enum { PREFIX = 4, MOST_DIGITS = 9 };
    size_t at = PREFIX;
    *block = 0;
    if (!heft_str_begins(name, "blk."))
        return name;
    for (; at < name.len && at < PREFIX + MOST_DIGITS && name.ptr[at] >= '0' && name.ptr[at] <= '9';
         at++)
        *block = *block * 10 + (uint64_t)(name.ptr[at] - '0');
    at += at < name.len && name.ptr[at] == '.';
    return (heft_str){ name.ptr + at, name.len - at };
}

static heft_status refuse_shape(const heft_map_run *a, uint32_t tensor, const shape_rule *rule,
                                uint64_t is, uint64_t want)
{
    bool is_product = rule->times;
    return heft_error_plain(
        a->err, HEFT_E_FORMAT,
        "config.json contradicts the weights: tensor %q has %U %s, not %U (%s%s%s)",
        heft_ix_name(&a->out->x, tensor), is, rule->from_last == ROWS ? "rows" : "columns", want,
        is_product ? rule->times : "", is_product ? " * " : "", rule->of);
}

static heft_status check_tensor(const heft_map_run *a, uint32_t tensor, const uint64_t *want)
{
    const heft_index *x = &a->out->x;
    const heft_ix_tensor_row *t = heft_ix_row(x, tensor);
    uint64_t block;
    heft_str name = without_block(heft_ix_name(x, tensor), &block);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (!want[i] || t->rank < rules[i].from_last || !heft_str_is(name, rules[i].name))
            continue;
        uint64_t is = heft_ix_dims(x, tensor)[t->rank - rules[i].from_last];
        if (is != want[i])
            return refuse_shape(a, tensor, &rules[i], is, want[i]);
    }
    return HEFT_OK;
}

static heft_status check_layers(const heft_map_run *a, uint64_t layers)
{
    uint64_t block, found = 0;
    for (uint32_t i = 0; i < heft_ix_tensors(&a->out->x); i++) {
        heft_str name = heft_ix_name(&a->out->x, i);
        bool is_in_block = without_block(name, &block).len != name.len;
        found = is_in_block && block >= found ? block + 1 : found;
    }
    return !layers || !found || found == layers
               ? HEFT_OK
               : heft_error_plain(a->err, HEFT_E_FORMAT,
                                  "config.json contradicts the weights: its number of layers is "
                                  "%U, and the weights have %U",
                                  layers, found);
}

heft_status heft_map_check_shapes(const heft_map_run *a)
{
    uint64_t want[sizeof rules / sizeof *rules];
    stated_numbers n = { NULL, 0 };
    if (!a->opt.gguf)
        return HEFT_OK;
    n.values = heft_gguf_metadata_values(&n.count, a->opt.gguf);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        uint64_t times = rules[i].times ? number(&n, rules[i].times) : 1;
        want[i] = times * number(&n, rules[i].of); /* both have 32 bits */
    }
    uint64_t layers = stated(&n, "block_count");
    HEFT_TRY(check_layers(a, layers));
    for (uint32_t i = 0; i < heft_ix_tensors(&a->out->x); i++)
        HEFT_TRY(check_tensor(a, i, want));
    return HEFT_OK;
}
