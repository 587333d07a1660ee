/* gguf_computed.c - settings for which an architecture of llama.cpp computes one value, out of
 * others. */
#include "gguf/gguf_architectures.h"
#include "gguf/gguf_build.h"

#include "base/checked_math.h"
#include "base/error.h"
#include "base/text.h"

/* Every layer of this number has full attention, the others a window.  Where the model has as many
 * layers as `wide`, queries are scaled by the width over the heads instead of by a head. */
static const struct {
    const char *architecture;
    uint64_t period, wide;
    double head; /* what transformers takes for head_dim */
} rows[] = {
    { "gemma2", 2, 46, 256 },
    { "gemma3", 6, 62, 256 },
    { "gpt-oss", 2, 0, 0 },
};

static double number_of(const heft_gguf_metadata *m, const char *path, double otherwise)
{
    double found;
    heft_value v = heft_gguf_config(m, path);
    return heft_gguf_number(&found, &v) ? found : otherwise;
}

static heft_status check_period(heft_gguf_metadata *m, uint64_t period)
{
    double found = number_of(m, "sliding_window_pattern|_sliding_window_pattern", (double)period);
    return found == (double)period
               ? HEFT_OK
               : heft_error_plain(m->err, HEFT_E_UNSUPPORTED,
                                  "config.json: 'sliding_window_pattern' is not %U, but llama.cpp "
                                  "computes full attention in every layer %U for %s",
                                  period, period, m->architecture->name);
}

static heft_value layer_type(const heft_gguf_metadata *m, uint64_t layer)
{
    static const char list[] = "layer_types.";
    enum { DIGITS = 20 };
    char path[sizeof list + DIGITS];
    memcpy(path, list, sizeof list - 1);
    path[sizeof list - 1 + heft_u64_text(path + sizeof list - 1, layer)] = 0;
    return heft_gguf_config(m, path);
}

static heft_status check_layer_types(heft_gguf_metadata *m, uint64_t period)
{
    enum { MOST = 512 }; /* llama.cpp loads no model with more layers */
    for (uint64_t i = 0; i < MOST; i++) {
        heft_value v = layer_type(m, i);
        bool is_full = heft_div(i + 1, period) * period == i + 1;
        if (v.kind == HEFT_KIND_NULL)
            return HEFT_OK;
        if (!heft_gguf_is_text(&v, is_full ? "full_attention" : "sliding_attention"))
            return heft_error_plain(m->err, HEFT_E_UNSUPPORTED,
                                    "config.json: 'layer_types' has another kind for layer %U than "
                                    "llama.cpp, which computes full attention in every layer %U "
                                    "and a window in the others for %s",
                                    i, period, m->architecture->name);
    }
    return HEFT_OK;
}

static heft_status check_scale(heft_gguf_metadata *m, uint64_t wide, double head)
{
    double want = number_of(m, "head_dim", head), heads = number_of(m, "num_attention_heads", 0);
    double found = number_of(m, "query_pre_attn_scalar", want);
    if (number_of(m, "num_hidden_layers", 0) == (double)wide && heads > 0)
        want = number_of(m, "hidden_size", 0) / heads;
    return found == want ? HEFT_OK
                         : heft_error_plain(m->err, HEFT_E_UNSUPPORTED,
                                            "config.json: 'query_pre_attn_scalar' is %U, but "
                                            "llama.cpp scales queries of such a model by %U",
                                            (uint64_t)found, (uint64_t)want);
}

heft_status heft_gguf_check_computed(heft_gguf_metadata *m)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!heft_str_is(heft_lit(m->architecture->name), rows[i].architecture))
            continue;
        HEFT_TRY(check_period(m, rows[i].period));
        HEFT_TRY(check_layer_types(m, rows[i].period));
        HEFT_TRY(rows[i].wide ? check_scale(m, rows[i].wide, rows[i].head) : HEFT_OK);
    }
    return HEFT_OK;
}
