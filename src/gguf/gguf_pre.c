/* gguf_pre.c - names of pre-tokenizers in llama.cpp, by what tokenizer.json says.
 *
 * llama.cpp splits texts by expressions of its own for each name.  A row has the expressions that
 * tokenizer.json has for it, in a short form of one line for each step:
 *   S expression   split, isolated
 *   D              digits one by one
 *   N              digits together
 *   G              bytes to letters, after the split of GPT-2
 *   B              bytes to letters
 * A line that ends with REST_OF_LINE fits any expression that begins so.
 */
#include "gguf/gguf_tokenizer.h"

#include "base/error.h"
#include "base/out.h"
#include "base/text.h"
#include "gguf/gguf_architectures.h"

#define SUFFIXES "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES   "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define REST     "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACES
#define WORD     "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define UPPER    "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(x) \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" x "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" x

enum { STEPS = 3072 };
#define REST_OF_LINE "\1"

typedef struct pre_row {
    const char *name;
    bool ignores_merges; /* a token of the vocabulary needs no merges */
    const char *steps;
} pre_row;

/* The first row that fits counts. */
static const pre_row rows[] = {
    { "gpt-2", false, "G\n" },
    { "smollm", false, "D\nG\n" },
    { "llama-bpe", true, "S" SUFFIXES "|" WORD "|\\p{N}{1,3}" REST "\nB\n" },
    { "dbrx", false, "S" SUFFIXES "|" WORD "|\\p{N}{1,3}" REST "\nB\n" },
    { "qwen2", false, "S" SUFFIXES "|" WORD "|\\p{N}" REST "\nB\n" },
    { "qwen35", false,
      "S" SUFFIXES
      "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" SPACES
      "\nB\n" },
    { "gpt-4o", false,
      "S" CASED(SUFFIXES "?") "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" SPACES "\nB\n" },
    { "tekken", true, "S" CASED("") "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" SPACES "\nB\n" },
    { "deepseek-v3", false,
      "S\\p{N}{1,3}\nS[一-龥぀-ゟ゠-ヿ]+\n"
      "S[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?"
      "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*" SPACES "\nB\n" },
    { "deepseek-llm", false,
      "S[\\r\\n]\nS\\s?[A-Za-zµ" REST_OF_LINE "\nS\\s?[!-/:-~！" REST_OF_LINE
      "\nS\\s+$\nS[一-龥ࠀ-一가-퟿]+\nD\nB\n" },
    { "deepseek-coder", false,
      "S[\\r\\n]\nS\\s?\\p{L}+\nS\\s?\\p{P}+\nS[一-龥ࠀ-一가-퟿]+\nD\nB\n" },
    { "seed-coder", false,
      "S" SUFFIXES "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+" SPACES
      "\nB\n" },
};

/* Other names of rows, and classes of transformers that stand for one. */
static const struct {
    const char *others, *name;
} aliases[] = {
    { "gpt2|mpt|olmo|jais|GPT2Tokenizer|GPT2TokenizerFast|roberta-bpe", "gpt-2" },
    { "starcoder|refact|command-r|codeshell|exaone", "smollm" },
    { "llama3|llama-v3|falcon3|pixtral", "llama-bpe" },
    { "smaug-bpe|glm4|chatglm-bpe", "dbrx" },
    { "stablelm2|deepseek-r1-qwen|megrez|hunyuan|grok-2|Qwen2Tokenizer|Qwen2TokenizerFast",
      "qwen2" },
    { "llama4", "gpt-4o" },
    { "hunyuan-dense", "deepseek-v3" },
};

/* ---- short forms ---- */

/* An object within settings: its values. */
typedef struct object {
    const heft_settings *s;
    uint32_t begin, end;
} object;

static object object_at(const heft_settings *s, uint32_t i)
{
    return (object){ s, i + 1, heft_settings_next(s, i) };
}

static heft_value member(object o, const char *key)
{
    for (uint32_t i = o.begin; i < o.end; i = heft_settings_next(o.s, i))
        if (heft_str_is(heft_settings_value_at(o.s, i).key, key))
            return heft_settings_value_at(o.s, i);
    return (heft_value){ .kind = HEFT_KIND_NULL };
}

static bool flag(object o, const char *key, bool otherwise)
{
    heft_value v = member(o, key);
    return v.kind == HEFT_KIND_BOOL ? v.as.b : otherwise;
}

/* Write an expression with its line breaks escaped: tokenizer.json has either. */
static void put_expression(heft_out *out, heft_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\r' || text.ptr[i] == '\n')
            heft_out_str(out, heft_lit(text.ptr[i] == '\r' ? "\\r" : "\\n"));
        else
            heft_out_u8(out, (uint8_t)text.ptr[i]);
    }
}

static void put_split(heft_out *out, object o)
{
    heft_value behaviour = member(o, "behavior"), pattern = member(o, "pattern");
    bool inverted = flag(o, "invert", false);
    bool isolated = heft_gguf_is_text(&behaviour, "Isolated") ||
                    (heft_gguf_is_text(&behaviour, "Removed") && inverted);
    for (uint32_t i = o.begin; pattern.kind == HEFT_KIND_MAP && i < o.end; i++)
        if (heft_str_is(heft_settings_value_at(o.s, i).key, "Regex"))
            pattern = heft_settings_value_at(o.s, i);
    heft_out_u8(out, isolated && pattern.kind == HEFT_KIND_STR ? 'S' : '?');
    if (pattern.kind == HEFT_KIND_STR)
        put_expression(out, pattern.as.s);
}

static void put_step(heft_out *out, object o)
{
    heft_value type = member(o, "type");
    if (heft_gguf_is_text(&type, "Split"))
        put_split(out, o);
    else if (heft_gguf_is_text(&type, "Digits"))
        heft_out_u8(out, flag(o, "individual_digits", false) ? 'D' : 'N');
    else if (heft_gguf_is_text(&type, "ByteLevel") && !flag(o, "add_prefix_space", true))
        heft_out_u8(out, flag(o, "use_regex", true) ? 'G' : 'B');
    else
        heft_out_u8(out, '?');
    heft_out_u8(out, '\n');
}

static void put_steps(heft_out *out, const heft_settings *s)
{
    uint32_t list = heft_settings_find_path(s, heft_lit("pretokenizers"));
    if (list == HEFT_NONE) {
        put_step(out, (object){ s, 0, heft_settings_value_count(s) });
        return;
    }
    object o = object_at(s, list);
    for (uint32_t i = o.begin; i < o.end; i = heft_settings_next(s, i))
        put_step(out, object_at(s, i));
}

/* ---- rows ---- */

/* Return whether the steps of a file are those of a row, in which REST_OF_LINE stands for the rest
 * of a line. */
static bool fits(heft_str steps, const char *row)
{
    size_t at = 0;
    for (; *row; row++) {
        if (*row == *REST_OF_LINE) {
            while (at < steps.len && steps.ptr[at] != '\n')
                at++;
        } else if (at == steps.len || steps.ptr[at++] != *row) {
            return false;
        }
    }
    return at == steps.len;
}

static const pre_row *find_row(heft_str name)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (heft_gguf_is_among(name, aliases[i].others))
            name = heft_lit(aliases[i].name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (heft_str_is(name, rows[i].name))
            return &rows[i];
    return NULL;
}

const char *heft_gguf_pre_steps(heft_str name, bool *ignores_merges)
{
    const pre_row *row = find_row(name);
    if (row)
        *ignores_merges = row->ignores_merges;
    return row && !heft_str_begins(heft_lit(row->steps), "S[\\r\\n]\nS\\s?[A") ? row->steps : NULL;
}

/* Without tokenizer.json the class of the tokenizer says how texts are split. */
static heft_status find_by_class(heft_gguf_tokenizer *t)
{
    heft_value v = heft_gguf_setting(t->m, HEFT_GGUF_TOKENIZER_CONFIG, "tokenizer_class");
    const pre_row *row = v.kind == HEFT_KIND_STR ? find_row(v.as.s) : NULL;
    if (!row && heft_str_is(heft_lit(t->m->architecture->name), "gpt2"))
        row = &rows[0];
    if (!row)
        return heft_error_plain(
            t->m->err, HEFT_E_UNSUPPORTED,
            "without tokenizer.json the pre-tokenizer is not known; name the one "
            "of llama.cpp with --pre-tokenizer, such as qwen2");
    t->pre = row->name;
    return HEFT_OK;
}

heft_status heft_gguf_find_pre(heft_gguf_tokenizer *t)
{
    uint8_t text[STEPS];
    heft_out out = { .buf = text, .cap = sizeof text };
    t->pre = t->m->opt.pre;
    if (t->pre)
        return HEFT_OK;
    if (!t->m->opt.texts[HEFT_GGUF_TOKENIZER].ptr)
        return find_by_class(t);
    if (t->pre_tokenizer)
        put_steps(&out, t->pre_tokenizer);
    heft_str steps = { (const char *)text, out.st ? 0 : out.len };
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !t->pre; i++)
        if (fits(steps, rows[i].steps) && rows[i].ignores_merges == t->ignore_merges)
            t->pre = rows[i].name;
    if (!t->pre)
        return heft_error_plain(
            t->m->err, HEFT_E_UNSUPPORTED,
            "tokenizer.json: no pre-tokenizer of llama.cpp is known to split "
            "texts by these steps; name one with --pre-tokenizer, such as qwen2");
    return HEFT_OK;
}
