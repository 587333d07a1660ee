/* gguf_entries.c - tokens in the order of the texts, before they have their place. */
#include "gguf/gguf_tokenizer.h"

#include "base/text.h"
#include "companion/companion_text.h"

heft_status heft_gguf_add_token(heft_gguf_tokenizer *t, heft_str text, uint64_t id, float score,
                                heft_gguf_token_type type)
{
    heft_gguf_entry e = { text, id, score, (int32_t)type };
    if (!text.ptr || !heft_vec_add(&t->m->mem, &t->entries, &e, sizeof e))
        return heft_companion_no_memory(t->m->err);
    return HEFT_OK;
}

/* Some models do not say that a token is special whose text looks so. */
static bool looks_special(heft_str text)
{
    static const char *const names[] = { "<pad>", "<mask>", "<2mass>", "[@BOS@]" };
    static const char *const forms[][2] = { { "<|", "|>" }, { "<｜", "｜>" }, { "<unused", ">" } };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (heft_str_is(text, names[i]))
            return true;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (heft_str_begins(text, forms[i][0]) && heft_str_ends(text, forms[i][1]))
            return true;
    return false;
}

static const char PHANTOM[] = "\xE2\x96\x81"; /* U+2581, which stands for a space */

/* llama.cpp looks for tokens of users in texts as they are, with spaces. */
static heft_str with_spaces(heft_gguf_tokenizer *t, heft_str text)
{
    enum { LEN = sizeof PHANTOM - 1 };
    size_t len = 0;
    heft_str copy = heft_arena_copy(&t->m->arena, text);
    if (!copy.ptr)
        return copy;
    char *to = (char *)copy.ptr;
    for (size_t i = 0; i < text.len;) {
        bool is_space = text.len - i >= LEN && !memcmp(text.ptr + i, PHANTOM, LEN);
        to[len++] = is_space ? ' ' : text.ptr[i];
        i += is_space ? LEN : 1;
    }
    copy.len = len;
    return copy;
}

heft_status heft_gguf_added_token(heft_gguf_tokenizer *t, heft_str text, uint64_t id, bool special)
{
    if (special || looks_special(text))
        return heft_gguf_add_token(t, text, id, HEFT_GGUF_ADDED_SCORE, HEFT_TOKEN_CONTROL);
    return heft_gguf_add_token(t, with_spaces(t, text), id, HEFT_GGUF_ADDED_SCORE, HEFT_TOKEN_USER);
}
