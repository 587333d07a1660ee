/* gguf_tokenizer_back.c - makes tokenizer.json of the metadata of a GGUF file with byte-level
 * tokens. */
#include "gguf/gguf_back.h"
#include "gguf/gguf_tokenizer.h"

#include "base/error.h"
#include "base/text.h"
#include "core/read/file.h"
#include "grammar/json.h"
#include "model/values.h"

/* ---- metadata ---- */

static heft_value find(const heft_gguf_texts *t, const char *key)
{
    heft_value v = { .kind = HEFT_KIND_NULL };
    return heft_meta_find(&v, t->f, heft_lit(key)) ? v : (heft_value){ .kind = HEFT_KIND_NULL };
}

static bool is_set(const heft_gguf_texts *t, const char *key)
{
    heft_value v = find(t, key);
    return v.kind == HEFT_KIND_BOOL && v.as.b;
}

static const char *steps_of(const heft_gguf_texts *t, bool *ignores_merges)
{
    heft_value pre = find(t, "tokenizer.ggml.pre");
    return pre.kind == HEFT_KIND_STR ? heft_gguf_pre_steps(pre.as.s, ignores_merges) : NULL;
}

static bool is_list(const heft_gguf_texts *t, const char *key)
{
    heft_value v = find(t, key);
    return v.kind == HEFT_KIND_LIST;
}

const char *heft_gguf_tokenizer_refusal(const heft_gguf_texts *t)
{
    bool unused;
    heft_value model = find(t, "tokenizer.ggml.model"),
               types = find(t, "tokenizer.ggml.token_type");
    heft_value tokens = find(t, "tokenizer.ggml.tokens");
    if (model.kind != HEFT_KIND_STR)
        return "the file has no tokenizer";
    if (!heft_gguf_is_text(&model, "gpt2"))
        return "a tokenizer.json can be made of byte-level tokens only";
    if (!is_list(t, "tokenizer.ggml.tokens") || !is_list(t, "tokenizer.ggml.merges") ||
        types.kind != HEFT_KIND_ARRAY || types.as.array.dtype != HEFT_I32 ||
        types.as.array.count != tokens.as.container.count)
        return "the tokenizer is incomplete";
    return steps_of(t, &unused) ? NULL : "the steps of the pre-tokenizer are not known";
}

/* ---- tokens ---- */

/* Elements of a list precede its end; all of them are texts or are left out. */
static heft_value element(const heft_gguf_texts *t, const heft_value *list, uint32_t i)
{
    return heft_meta_at(t->f, list->as.container.end - list->as.container.count + i);
}

static void put_added(heft_gguf_texts *t, heft_out *out, const heft_value *tokens,
                      const heft_value *types)
{
    bool has_any = false;
    for (uint32_t i = 0; i < tokens->as.container.count; i++) {
        int64_t type = heft_value_element(types, i).as.i;
        heft_value token = element(t, tokens, i);
        if ((type != HEFT_TOKEN_CONTROL && type != HEFT_TOKEN_USER) || token.kind != HEFT_KIND_STR)
            continue;
        heft_out_str(out, heft_lit(has_any ? ",\n    {\"id\": " : "\n    {\"id\": "));
        heft_json_put_u64(out, i);
        heft_out_str(out, heft_lit(", \"content\": "));
        heft_json_put_str(out, token.as.s);
        heft_out_str(out,
                     heft_lit(", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
                              "\"normalized\": false, \"special\": "));
        heft_out_str(out, heft_lit(type == HEFT_TOKEN_CONTROL ? "true}" : "false}"));
        has_any = true;
    }
}

static void put_vocab(heft_gguf_texts *t, heft_out *out, const heft_value *tokens,
                      const heft_value *types)
{
    bool has_any = false;
    for (uint32_t i = 0; i < tokens->as.container.count; i++) {
        heft_value token = element(t, tokens, i);
        if (heft_value_element(types, i).as.i != HEFT_TOKEN_NORMAL || token.kind != HEFT_KIND_STR)
            continue;
        heft_out_str(out, heft_lit(has_any ? ",\n      " : "\n      "));
        heft_json_put_str(out, token.as.s);
        heft_out_str(out, heft_lit(": "));
        heft_json_put_u64(out, i);
        has_any = true;
    }
}

static void put_merges(heft_gguf_texts *t, heft_out *out)
{
    heft_value merges = find(t, "tokenizer.ggml.merges");
    for (uint32_t i = 0; i < merges.as.container.count; i++) {
        heft_value merge = element(t, &merges, i);
        heft_out_str(out, heft_lit(i ? ",\n      " : "\n      "));
        heft_json_put_str(out, merge.kind == HEFT_KIND_STR ? merge.as.s : heft_lit(""));
    }
}

/* ---- steps ---- */

static void put_step(heft_out *out, heft_str line)
{
    heft_str rest = { line.ptr + 1, line.len - 1 };
    if (*line.ptr == 'S') {
        heft_out_str(out, heft_lit("{\"type\": \"Split\", \"pattern\": {\"Regex\": "));
        heft_json_put_str(out, rest);
        heft_out_str(out, heft_lit("}, \"behavior\": \"Isolated\", \"invert\": false}"));
    } else if (*line.ptr == 'D' || *line.ptr == 'N') {
        heft_out_str(out, heft_lit("{\"type\": \"Digits\", \"individual_digits\": "));
        heft_out_str(out, heft_lit(*line.ptr == 'D' ? "true}" : "false}"));
    } else if (*line.ptr == 'P' || *line.ptr == 'C') {
        heft_out_str(out, heft_lit("{\"type\": \"Punctuation\", \"behavior\": "));
        heft_out_str(out, heft_lit(*line.ptr == 'P' ? "\"Isolated\"}" : "\"Contiguous\"}"));
    } else {
        heft_out_str(out, heft_lit("{\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
                                   "\"trim_offsets\": true, \"use_regex\": "));
        heft_out_str(out, heft_lit(*line.ptr == 'G' ? "true}" : "false}"));
    }
}

static void put_steps(heft_out *out, const char *steps)
{
    heft_out_str(out, heft_lit("{\"type\": \"Sequence\", \"pretokenizers\": ["));
    for (bool is_first = true; *steps; is_first = false) {
        size_t len = 0;
        while (steps[len] != '\n')
            len++;
        heft_out_str(out, heft_lit(is_first ? "\n    " : ",\n    "));
        put_step(out, (heft_str){ steps, len });
        steps += len + 1;
    }
    heft_out_str(out, heft_lit("]}"));
}

/* ---- what is added to a text ---- */

typedef struct special_token {
    heft_str text; /* ptr NULL: there is none */
    uint64_t id;
} special_token;

static special_token special(const heft_gguf_texts *t, const char *key)
{
    heft_value id = find(t, key), tokens = find(t, "tokenizer.ggml.tokens");
    double number;
    if (!heft_gguf_number(&number, &id) || number < 0 || number >= tokens.as.container.count)
        return (special_token){ .id = 0 };
    heft_value v = element(t, &tokens, (uint32_t)number);
    return v.kind == HEFT_KIND_STR ? (special_token){ v.as.s, (uint64_t)number }
                                   : (special_token){ .id = 0 };
}

static void put_special(heft_out *out, const special_token *token, const char *after)
{
    heft_out_str(out, heft_lit("{\"SpecialToken\": {\"id\": "));
    heft_json_put_str(out, token->text);
    heft_out_str(out, heft_lit(", \"type_id\": 0}}"));
    heft_out_str(out, heft_lit(after));
}

static void put_special_id(heft_out *out, const special_token *token)
{
    heft_json_put_str(out, token->text);
    heft_out_str(out, heft_lit(": {\"id\": "));
    heft_json_put_str(out, token->text);
    heft_out_str(out, heft_lit(", \"ids\": ["));
    heft_json_put_u64(out, token->id);
    heft_out_str(out, heft_lit("], \"tokens\": ["));
    heft_json_put_str(out, token->text);
    heft_out_str(out, heft_lit("]}"));
}

static void put_template(heft_gguf_texts *t, heft_out *out)
{
    special_token bos = special(t, "tokenizer.ggml.bos_token_id");
    special_token eos = special(t, "tokenizer.ggml.eos_token_id");
    bool begins = is_set(t, "tokenizer.ggml.add_bos_token") && bos.text.ptr;
    bool ends = is_set(t, "tokenizer.ggml.add_eos_token") && eos.text.ptr;
    heft_out_str(out, heft_lit("{\"type\": \"TemplateProcessing\",\n    \"single\": ["));
    if (begins)
        put_special(out, &bos, ", ");
    heft_out_str(out, heft_lit("{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}"));
    if (ends) {
        heft_out_str(out, heft_lit(", "));
        put_special(out, &eos, "");
    }
    heft_out_str(out,
                 heft_lit("],\n    \"pair\": [{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, "
                          "{\"Sequence\": {\"id\": \"B\", \"type_id\": 1}}],\n"
                          "    \"special_tokens\": {"));
    if (begins)
        put_special_id(out, &bos);
    if (begins && ends)
        heft_out_str(out, heft_lit(", "));
    if (ends)
        put_special_id(out, &eos);
    heft_out_str(out, heft_lit("}}"));
}

/* ---- documents ---- */

heft_status heft_gguf_put_tokenizer(heft_gguf_texts *t, heft_out *out)
{
    heft_value tokens = find(t, "tokenizer.ggml.tokens"),
               types = find(t, "tokenizer.ggml.token_type");
    bool ignores_merges = false;
    const char *steps = steps_of(t, &ignores_merges);
    heft_out_str(out,
                 heft_lit("{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": "
                          "null,\n  \"added_tokens\": ["));
    put_added(t, out, &tokens, &types);
    heft_out_str(out, heft_lit("],\n  \"normalizer\": null,\n  \"pre_tokenizer\": "));
    put_steps(out, steps);
    heft_out_str(out, heft_lit(",\n  \"post_processor\": "));
    put_template(t, out);
    heft_out_str(out,
                 heft_lit(",\n  \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
                          "\"trim_offsets\": true, \"use_regex\": true},\n  \"model\": {\"type\": "
                          "\"BPE\", \"dropout\": null, \"unk_token\": null,\n    "
                          "\"continuing_subword_prefix\": null, \"end_of_word_suffix\": null,\n"
                          "    \"fuse_unk\": false, \"byte_fallback\": false, "
                          "\"ignore_merges\": "));
    heft_out_str(out,
                 heft_lit(ignores_merges ? "true,\n    \"vocab\": {" : "false,\n    \"vocab\": {"));
    put_vocab(t, out, &tokens, &types);
    heft_out_str(out, heft_lit("},\n    \"merges\": ["));
    put_merges(t, out);
    heft_out_str(out, heft_lit("]}\n}\n"));
    return HEFT_OK;
}

heft_status heft_gguf_put_tokenizer_config(heft_gguf_texts *t, heft_out *out)
{
    static const char *const tokens[][2] = {
        { "bos_token", "tokenizer.ggml.bos_token_id" },
        { "eos_token", "tokenizer.ggml.eos_token_id" },
        { "pad_token", "tokenizer.ggml.padding_token_id" },
        { "unk_token", "tokenizer.ggml.unknown_token_id" },
    };
    static const char *const flags[][2] = {
        { "add_bos_token", "tokenizer.ggml.add_bos_token" },
        { "add_eos_token", "tokenizer.ggml.add_eos_token" },
    };
    heft_gguf_json j = { t, out, false };
    heft_gguf_put_key(&j, "tokenizer_class");
    heft_json_put_str(out, heft_lit("PreTrainedTokenizerFast"));
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        heft_str text = special(t, tokens[i][1]).text;
        if (!text.ptr)
            continue;
        heft_gguf_put_key(&j, tokens[i][0]);
        heft_json_put_str(out, text);
    }
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        heft_gguf_put_key(&j, flags[i][0]);
        heft_out_str(out, heft_lit(is_set(t, flags[i][1]) ? "true" : "false"));
    }
    heft_value chat = find(t, "tokenizer.chat_template");
    if (chat.kind == HEFT_KIND_STR) {
        heft_gguf_put_key(&j, "chat_template");
        heft_json_put_str(out, chat.as.s);
    }
    heft_out_str(out, heft_lit("\n}\n"));
    return HEFT_OK;
}
