/* gguf_pre_rows.c - the table of pre-tokenizers.  tests/py/check_gguf_runs.py compares each row
 * with llama.cpp and with the library of the tokenizers. */
#include "gguf/gguf_pre.h"

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
/* An equal form of SUFFIXES, WORD and so on, with quantifiers that give nothing back. */
#define POSSESSIVE(digits)                                         \
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|" digits \
    "| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*"
#define LAST_SPACES        "|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"
#define CASED_REST(digits) "|" digits "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" SPACES
#define DEEPSEEK_WORDS                                                                   \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?" \
    "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+"
#define EAST_ASIAN "[一-龥぀-ゟ゠-ヿ]+"
#define BLOOM      " ?[^(\\s|[.,!?…。，、।۔،])]+"
/* Without the characters of Chinese. */
#define NO_HAN(set) "[" set "&&[^\\p{Han}]]"
#define KIMI_UPPER  NO_HAN("\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}")
#define KIMI_LOWER  NO_HAN("\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}")

/* The first row that fits counts. */
static const heft_gguf_pre_row rows[] = {
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
      "S[\\r\\n]\nS\\s?[A-Za-zµ" HEFT_GGUF_REST_OF_LINE "\nS\\s?[!-/:-~！" HEFT_GGUF_REST_OF_LINE
      "\nS\\s+$\nS[一-龥ࠀ-一가-퟿]+\nD\nB\n" },
    { "deepseek-coder", false,
      "S[\\r\\n]\nS\\s?\\p{L}+\nS\\s?\\p{P}+\nS[一-龥ࠀ-一가-퟿]+\nD\nB\n" },
    { "seed-coder", false,
      "S" SUFFIXES "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+" SPACES
      "\nB\n" },
    { "llama-bpe", true, "S" POSSESSIVE("\\p{N}{1,3}") LAST_SPACES "\nB\n" },
    { "dbrx", false, "S" POSSESSIVE("\\p{N}{1,3}") LAST_SPACES "\nB\n" },
    { "bailingmoe", false, "S" POSSESSIVE("\\p{N}") LAST_SPACES "\nB\n" },
    { "granite-embed-multi-97m", true, "S" CASED(SUFFIXES "?") CASED_REST("\\p{N}{1,3}") "\nB\n" },
    { "tiny_aya", false,
      "S\\d{1,3}(?=(?:\\d{3})*\\b)\nS" CASED(SUFFIXES "?") CASED_REST("\\p{N}{1,3}") "\nB\n" },
    { "youtu", true,
      "S[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-"
      "ゟ゠-"
      "ヿ]"
      "+"
      "\n"
      "S" CASED(SUFFIXES "?") CASED_REST("\\p{N}") "\nB\n" },
    { "kimi-k2", false,
      "S[\\p{Han}]+|[^\\r\\n\\p{L}\\p{N}]?" KIMI_UPPER "*" KIMI_LOWER "+" SUFFIXES
      "?|[^\\r\\n\\p{L}\\p{N}]?" KIMI_UPPER "+" KIMI_LOWER "*" SUFFIXES "?|\\p{N}{1,3}" REST
      "\nB\n" },
    { "minicpm5", true, "S\\p{N}{1,3}\nS" SUFFIXES "|" WORD "|\\p{N}+" REST "\nB\n" },
    { "ufakzeka", false, "S" WORD "|\\p{N}" REST "\nB\n" },
    { "laguna", false, "S[^\\n]+|[\\n]+\nS" SUFFIXES "|" WORD "|\\p{N}" REST "\nB\n" },
    { "exaone-moe", false,
      "S" SUFFIXES "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}"
      "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?" LAST_SPACES "\nB\n" },
    { "jais-2", false,
      "S" SUFFIXES "|" WORD
      "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s{512}(?!\\S)"
      "|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)|\\s{32}(?!\\S)|\\s{16}(?!\\S)|\\s{8}(?!\\S)"
      "|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s{1}\nB\n" },
    { "superbpe", false, "S\\p{N}+\nS(?=(\\d{3})+(?!\\d))\nB\n" },
    { "spark2_5", false,
      "S\\p{N}{1,3}\nS" EAST_ASIAN "\nS" DEEPSEEK_WORDS
      "|[\\r\\n]|\\s+(?!\\S)|\\s+\nS\\p{N}\nB\n" },
    { "bloom", false, "S" BLOOM "\nB\n" },
    { "viking", false, "S" BLOOM "\nD\nB\n" },
    { "falcon", false, "C\nG\nN\nS[0-9][0-9][0-9]\n" },
    { "chameleon", false,
      "S<sentinel:[0-9]+>\nS(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z\nS([\\t\\n]|    |  )\nD\nP\nG\n" },
};

/* Other names of rows, and classes of transformers that stand for one. */
static const struct {
    const char *others, *name;
} aliases[] = {
    { "mpt|olmo|jais|trillion|granite-docling|phi-2|jina-es|jina-de|gigachat|jina-v2-es|"
      "jina-v2-de|a.x-4.0|mellum|modern-bert|jina-v1-en|jina-v2-code|roberta-bpe|exaone4|"
      "GPT2Tokenizer|GPT2TokenizerFast",
      "gpt-2" },
    { "starcoder|refact|command-r|codeshell|exaone|minerva-7b|mellum2", "smollm" },
    { "llama3|llama-v3|falcon3|falcon-h1|pixtral|midm-2.0|lfm2|jina-v5-nano", "llama-bpe" },
    { "smaug-bpe|glm4|chatglm-bpe", "dbrx" },
    { "stablelm2|deepseek-r1-qwen|kormo|f2llmv2|megrez|hunyuan|grok-2|solar-open|Qwen2Tokenizer|"
      "Qwen2TokenizerFast",
      "qwen2" },
    { "llama4|kanana2|talkie|minimax-m2", "gpt-4o" },
    { "hunyuan-dense|hy_v4|joyai-llm", "deepseek-v3" },
    { "bailingmoe2|llada-moe", "bailingmoe" },
    { "cohere2moe", "tiny_aya" },
    { "poro-chat|gpt3-finnish", "bloom" },
};

/* Names whose steps are not in the table. */
static const char others[] = "default|afmoe|whitespace|gemma4|sarvam-moe|granite-embed-multi-311m";

const heft_gguf_pre_row *heft_gguf_pre_row_at(size_t i)
{
    return i < sizeof rows / sizeof *rows ? &rows[i] : NULL;
}

const heft_gguf_pre_row *heft_gguf_pre_row_of(heft_str name)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (heft_gguf_is_among(name, aliases[i].others))
            name = heft_lit(aliases[i].name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (heft_str_is(name, rows[i].name))
            return &rows[i];
    return NULL;
}

bool heft_gguf_pre_is_known(heft_str name)
{
    bool is_class = heft_str_ends(name, "Tokenizer") || heft_str_ends(name, "TokenizerFast");
    return (heft_gguf_pre_row_of(name) && !is_class) || heft_gguf_is_among(name, others);
}
