/* quantise_methods.c - the names that --quantize takes, and how what follows a name is read. */
#include "scheme/quantise_methods.h"

#include "base/error.h"
#include "base/text.h"
#include "scheme/encoded_config.h"

static const heft_quantise_row rows[] = {
    { .name = "fp8",
      .options = "channel|ROWSxCOLUMNS",
      .summary = "floats of 8 bits (E4M3), a scale for 128x128 numbers, or for each row",
      .encoder = &heft_encoder_of_fp8,
      .block = { 128, 128 },
      .takes = HEFT_TAKES_ROWS | HEFT_TAKES_BLOCKS,
      .config = heft_config_of_fp8 },
    { .name = "mxfp8",
      .options = "",
      .summary = "floats of 8 bits (E4M3), a power of two for 32 numbers",
      .encoder = &heft_encoder_of_mxfp8,
      .block = { 1, 32 },
      .config = heft_config_of_mxfp8 },
    { .name = "mxfp4",
      .options = "gpt-oss|gguf",
      .summary = "floats of 4 bits (E2M1), a power of two for 32 numbers",
      .encoder = &heft_encoder_of_mxfp4,
      .block = { 1, 32 },
      .takes = HEFT_TAKES_GPT_OSS | HEFT_TAKES_GGUF,
      .config = heft_config_of_mxfp4 },
    { .name = "nvfp4",
      .options = "modelopt|gguf",
      .summary = "floats of 4 bits (E2M1), a scale for 16 numbers, one for the tensor",
      .encoder = &heft_encoder_of_nvfp4,
      .block = { 1, 16 },
      .takes = HEFT_TAKES_MODELOPT | HEFT_TAKES_GGUF,
      .config = heft_config_of_nvfp4 },
    { .name = "int4",
      .options = "channel|GROUP",
      .summary = "packed integers of 4 bits, a scale for 128 numbers, or for each row",
      .encoder = &heft_encoder_of_integers,
      .block = { 1, 128 },
      .bits = 4,
      .takes = HEFT_TAKES_ROWS | HEFT_TAKES_GROUPS,
      .config = heft_config_of_integers },
    { .name = "int8",
      .options = "channel|GROUP",
      .summary = "packed integers of 8 bits, a scale for each row, or for GROUP numbers",
      .encoder = &heft_encoder_of_integers,
      .block = { 1, 0 },
      .bits = 8,
      .takes = HEFT_TAKES_ROWS | HEFT_TAKES_GROUPS,
      .config = heft_config_of_integers },
};

/* Copies integers with scales, for conversions to Burnpack: it is not listed, since it
 * quantises nothing. */
static const heft_quantise_row qfloat = { .name = "qfloat",
                                          .options = "",
                                          .encoder = &heft_encoder_of_qfloat };

const heft_quantise_row *heft_quantise_row_at(uint32_t i)
{
    return i < sizeof rows / sizeof *rows ? &rows[i] : NULL;
}

/* ---- options ---- */

/* Take the digits at the beginning of *s; false: there are none, or the number is above `most`. */
static bool take_number(uint64_t *out, heft_str *s, uint64_t most)
{
    size_t len = s->len;
    *out = 0;
    while (s->len && *s->ptr >= '0' && *s->ptr <= '9' && *out <= most) {
        *out = *out * 10 + (uint64_t)(*s->ptr - '0');
        *s = (heft_str){ s->ptr + 1, s->len - 1 };
    }
    return s->len < len && *out && *out <= most;
}

/* Read "64" or "128x64". */
static bool read_block(heft_encode_choice *c, heft_str s)
{
    enum { LEAST_GROUP = 16, MOST_BLOCK = 1 << 20 };
    uint64_t first, second = 0;
    if (!take_number(&first, &s, MOST_BLOCK))
        return false;
    if (!s.len) {
        c->block[0] = 1;
        c->block[1] = first;
        return c->row->takes & HEFT_TAKES_GROUPS && first >= LEAST_GROUP &&
               first <= HEFT_GROUP_MOST && !(first & (first - 1));
    }
    bool has_cross = *s.ptr == 'x';
    s = (heft_str){ s.ptr + 1, s.len - 1 };
    bool is_block = has_cross && take_number(&second, &s, MOST_BLOCK) && !s.len;
    c->block[0] = first;
    c->block[1] = second;
    return is_block && c->row->takes & HEFT_TAKES_BLOCKS;
}

static bool read_option(heft_encode_choice *c, heft_str s)
{
    static const struct {
        const char *word;
        unsigned takes;
    } forms[] = { { "gguf", HEFT_TAKES_GGUF },
                  { "gpt-oss", HEFT_TAKES_GPT_OSS },
                  { "modelopt", HEFT_TAKES_MODELOPT } };
    if (heft_str_is(s, "channel") && c->row->takes & HEFT_TAKES_ROWS) {
        c->block[0] = 1;
        c->block[1] = 0;
        return true;
    }
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (heft_str_is(s, forms[i].word) && c->row->takes & forms[i].takes) {
            c->form = forms[i].word;
            return true;
        }
    return read_block(c, s);
}

/* ---- names ---- */

/* List the names in the table. */
static heft_status refuse_name(heft_str name, heft_error *err)
{
    enum { LONGEST = 400 };
    uint8_t buf[LONGEST];
    heft_out list = { .buf = buf, .cap = sizeof buf - 1 };
    for (uint32_t i = 0; heft_quantise_row_at(i); i++) {
        heft_out_str(&list, heft_lit(i ? ", " : ""));
        heft_out_str(&list, heft_lit(heft_quantise_row_at(i)->name));
    }
    buf[list.len] = 0;
    return heft_error_plain(err, HEFT_E_ARGUMENT,
                            "there is no method %q to quantise: choose one of %s", name,
                            (const char *)buf);
}

static heft_str until(heft_str s, char c)
{
    size_t n = 0;
    while (n < s.len && s.ptr[n] != c)
        n++;
    return (heft_str){ s.ptr, n };
}

heft_status heft_encode_choice_read(heft_encode_choice *out, heft_str text, heft_error *err)
{
    heft_str name = until(text, ':');
    const heft_quantise_row *row;
    uint32_t i = 0;
    while ((row = heft_quantise_row_at(i)) != NULL && !heft_str_is(name, row->name))
        i++;
    row = heft_str_is(name, qfloat.name) ? &qfloat : row;
    if (!row)
        return refuse_name(name, err);
    *out = (heft_encode_choice){ .row = row, .block = { row->block[0], row->block[1] } };
    for (size_t at = name.len; at < text.len;) { /* a colon or a comma is at `at` */
        heft_str one = until((heft_str){ text.ptr + at + 1, text.len - at - 1 }, ',');
        if (!read_option(out, one))
            return *row->options
                       ? heft_error_plain(err, HEFT_E_ARGUMENT, "%s has no option %q: it takes %s",
                                          row->name, one, row->options)
                       : heft_error_plain(err, HEFT_E_ARGUMENT, "%s has no options", row->name);
        at += 1 + one.len;
    }
    return HEFT_OK;
}

/* ---- what is left alone ---- */

static const heft_exemption embedding = { "embedding", true }, head = { "head", true },
                            router = { "router", true }, norm = { "norm", false },
                            bias = { "bias", false }, vector = { "vector", false },
                            large = { "not a matrix", false };

/* Words in the names of matrices that models are sensitive to, or that programs do not load in
 * quantised form: the component of the name before ".weight", or the last one. */
static const struct {
    const char *word;
    const heft_exemption *why;
} sensitive[] = {
    { "embed_tokens", &embedding },
    { "tok_embeddings", &embedding },
    { "word_embeddings", &embedding },
    { "position_embeddings", &embedding },
    { "token_type_embeddings", &embedding },
    { "embed_in", &embedding },
    { "embed_positions", &embedding },
    { "embeddings", &embedding },
    { "embedding", &embedding },
    { "token_embd", &embedding },
    { "position_embd", &embedding },
    { "wte", &embedding },
    { "wpe", &embedding },
    { "pos_embed", &embedding },
    { "patch_embed", &embedding },
    { "relative_attention_bias", &embedding },
    { "lm_head", &head },
    { "embed_out", &head },
    { "score", &head },
    { "classifier", &head },
    { "output", &head }, /* in GGUF and llama; "attn_output" and "output.dense" are not heads */
    { "router", &router },
    { "gate", &router },
    { "shared_expert_gate", &router },
    { "ffn_gate_inp", &router },
    { "norm", &norm },
    { "bias", &bias },
};

/* Return the component of the name before ".weight", or the last one. */
static heft_str module_word(heft_str name)
{
    if (heft_str_ends(name, ".weight"))
        name.len -= sizeof ".weight" - 1;
    size_t from = name.len;
    while (from && name.ptr[from - 1] != '.')
        from--;
    return (heft_str){ name.ptr + from, name.len - from };
}

const heft_exemption *heft_left_alone(heft_str name, uint32_t rank)
{
    heft_str word = module_word(name);
    if (rank < 2)
        return &vector;
    if (rank > 3)
        return &large;
    for (size_t i = 0; i < sizeof sensitive / sizeof *sensitive; i++)
        if (heft_str_is(word, sensitive[i].word))
            return sensitive[i].why;
    if (heft_str_ends(word, "norm") || heft_str_begins(word, "ln_"))
        return &norm;
    return heft_str_ends(word, "bias") ? &bias : NULL;
}
