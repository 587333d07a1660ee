/* embd_vocab.c - reads, plans and writes the vocabularies of EMBD files.
 *
 * The section of the specified layout:
 *    0  u32 tokens   4  u32 bytes of the tokens   8  u32 offset of the special ids in the file
 *   12  tokens: u16 length, text
 *       special ids: u32 [PAD], [UNK], [CLS], [SEP], [MASK]
 * Some writers count that offset from the start of the section, put the special ids before the
 * tokens, or include the special ids in the bytes of the tokens.
 *
 * At the end of a simple stream: u32 tokens, then per token u32 length, text.
 */
#include "format/embd/embd.h"
#include "format/losses.h"
#include "model/vocab.h"

enum { HEADER = HEFT_EMBD_VOCAB_HEADER, SPECIAL = HEFT_EMBD_SPECIAL, LAST_ASCII = 127 };

static uint64_t read_length(heft_cur *c, uint32_t length_bytes)
{
    return length_bytes == 2 ? heft_cur_u16(c) : heft_cur_u32(c);
}

/* Skip the tokens; return true if every token is shorter than 128 bytes. */
static bool skip_tokens(heft_cur *c, uint32_t count, uint32_t length_bytes)
{
    uint64_t longest = 0;
    for (uint32_t i = 0; i < count && !c->st; i++) {
        uint64_t length = read_length(c, length_bytes);
        longest = length > longest ? length : longest;
        if (length > HEFT_EMBD_SIMPLE_TEXT)
            heft_cur_fail(c, "token %U has %U bytes, at most %U are allowed", (uint64_t)i, length,
                          (uint64_t)HEFT_EMBD_SIMPLE_TEXT);
        heft_cur_take(c, length);
    }
    return longest <= LAST_ASCII;
}

static heft_status read_tokens(heft_cur *c, heft_index *x, uint32_t count, uint32_t length_bytes)
{
    heft_cur each = *c, whole = *c;
    uint64_t at = heft_cur_pos(c);
    if ((uint64_t)count * length_bytes > heft_cur_left(c))
        return heft_cur_fail(c, "%U tokens do not fit into the %U bytes that are left",
                             (uint64_t)count, heft_cur_left(c));
    bool are_short = skip_tokens(c, count, length_bytes);
    uint64_t bytes = heft_cur_pos(c) - at;
    /* The bytes of lengths below 128 are ASCII.  No UTF-8 sequence can extend across ASCII into the
     * next token, so that all tokens and lengths can be validated as a single text. */
    const uint8_t *text = !c->st && are_short ? heft_cur_take(&whole, bytes) : NULL;
    bool is_valid = text && heft_utf8_valid(text, (size_t)bytes) == bytes;
    for (uint32_t i = 0; i < count && !c->st && !is_valid && !each.st; i++)
        heft_cur_text(&each, read_length(&each, length_bytes), "a token");
    x->tokens.where = (heft_range){ at, bytes };
    x->tokens.count = count;
    x->tokens.length_bytes = (uint8_t)length_bytes;
    return c->st ? c->st : each.st;
}

/* ---- the specified layout ---- */

enum special_match {
    ADJACENT,         /* immediately before or after the tokens */
    COUNTED_AS_TOKEN, /* after the tokens, if `total` includes the special ids */
    INSIDE_SECTION,
    SPECIAL_MATCHES
};

/* Return true if the special ids may begin at offset `at` of the section, by the given
 * criterion. */
static bool may_begin(unsigned match, heft_range section, uint64_t total, uint64_t at)
{
    if (at < HEADER || at > section.length - SPECIAL)
        return false;
    if (match == ADJACENT)
        return at == HEADER || at == HEADER + total;
    return match == INSIDE_SECTION || at + SPECIAL == HEADER + total;
}

/* Return the offset of the special ids in the section, or 0 if the stored value does not lie in the
 * section.  Strict criteria come first: an offset counted from the start of the section may also
 * be a plausible offset in the file. */
static uint64_t find_special(heft_range section, uint64_t total, uint64_t value)
{
    uint64_t from_file_start = value > section.offset ? value - section.offset : 0;
    for (unsigned match = ADJACENT; match < SPECIAL_MATCHES; match++) {
        if (may_begin(match, section, total, from_file_start))
            return from_file_start;
        if (may_begin(match, section, total, value))
            return value;
    }
    return 0;
}

static void read_special(heft_cur *c, heft_index *x)
{
    uint64_t at = heft_cur_pos(c);
    x->tokens.has_special = true;
    for (unsigned i = 0; i < HEFT_SPECIALS; i++) {
        uint32_t id = heft_cur_u32(c);
        x->tokens.special[i] = id;
        if (id == HEFT_NONE)
            heft_ix_note(x, HEFT_NOTE, "embd/special-none", at + 4 * i, HEFT_NONE,
                         "the vocabulary does not define this special token");
        else if (id >= x->tokens.count)
            heft_ix_note(x, HEFT_WARNING, "embd/special-id", at + 4 * i, HEFT_NONE,
                         "the id of a special token is beyond the last token");
    }
}

static heft_status check_extent(heft_index *x, heft_range section, uint64_t total, uint64_t special)
{
    uint64_t bytes = x->tokens.where.length;
    uint64_t end = x->tokens.where.offset + bytes - section.offset;
    if (special != HEADER && end > special)
        return heft_error_set(x->err, HEFT_E_FORMAT, section.offset + special,
                              "the ids of special tokens overlap with the tokens");
    if (total != bytes && total != bytes + SPECIAL)
        return heft_error_set(x->err, HEFT_E_FORMAT, section.offset + 4,
                              "the tokens take %U bytes, but total_size is %U", bytes, total);
    if (section.length != HEADER + bytes + SPECIAL)
        heft_ix_note(x, HEFT_WARNING, "embd/vocab-size", section.offset, HEFT_NONE,
                     "the vocabulary section is larger than its content");
    return HEFT_OK;
}

heft_status heft_embd_read_vocab(heft_window *in, heft_index *x, heft_range section)
{
    heft_cur c = heft_cur_whole(in, section.offset, section.length, "the vocabulary"), ids = c;
    uint32_t count = heft_cur_u32(&c), total = heft_cur_u32(&c), value = heft_cur_u32(&c);
    if (!c.st && section.length < HEADER + SPECIAL)
        heft_cur_fail(&c, "the vocabulary has %U bytes, at least 32 are needed", section.length);
    if (c.st)
        return c.st;
    uint64_t special = find_special(section, total, value);
    if (!special)
        return heft_error_set(x->err, HEFT_E_FORMAT, section.offset + 8,
                              "the offset %U of the special token ids lies outside the vocabulary",
                              (uint64_t)value);
    heft_cur_take(&ids, special);
    if (special == HEADER)
        heft_cur_take(&c, SPECIAL);
    HEFT_TRY(read_tokens(&c, x, count, 2));
    HEFT_TRY(check_extent(x, section, total, special));
    read_special(&ids, x);
    return heft_ix_part(x, HEFT_NONE, heft_lit("vocab"), HEFT_UNTYPED, section, section.length,
                        HEFT_RAW);
}

/* ---- the simple stream ---- */

heft_status heft_embd_read_simple_vocab(heft_window *in, heft_index *x, uint64_t at, uint64_t *end)
{
    heft_cur c = heft_cur_open(in, at, in->size, "the vocabulary");
    uint32_t count = heft_cur_u32(&c);
    *end = heft_cur_pos(&c);
    if (c.st || !count)
        return c.st;
    HEFT_TRY(read_tokens(&c, x, count, 4));
    *end = heft_cur_pos(&c);
    if (count > HEFT_EMBD_SIMPLE_TOKENS)
        heft_ix_note(x, HEFT_NOTE, "embd/many-tokens", at, HEFT_NONE,
                     "the reference program reads at most 100000 tokens");
    heft_range range = { at, *end - at };
    return heft_ix_part(x, HEFT_NONE, heft_lit("vocab"), HEFT_UNTYPED, range, range.length,
                        HEFT_RAW);
}

/* ---- planning ---- */

/* A simple stream stores no ids: readers find special tokens by name. */
static heft_status plan_simple_special(heft_plan *p, const heft_vocab *v)
{
    bool names_suffice = true;
    for (unsigned i = 0; i < HEFT_SPECIALS; i++)
        names_suffice = names_suffice && heft_vocab_special(v, (heft_special)i) ==
                                             heft_vocab_find_special(v, (heft_special)i);
    if (names_suffice)
        return heft_plan_loss(p, HEFT_NOTE, "embd/special", HEFT_NONE,
                              "ids of special tokens are not stored: readers find them by name");
    return heft_plan_loss(p, HEFT_WARNING, "embd/special", HEFT_NONE,
                          "ids of special tokens are left out: readers of a simple stream find "
                          "special tokens only by the names [PAD], [UNK], [CLS], [SEP], [MASK]");
}

static heft_status plan_special(heft_plan *p, const heft_vocab *v)
{
    for (unsigned i = 0; i < HEFT_SPECIALS; i++)
        if (heft_vocab_special(v, (heft_special)i) == HEFT_NONE)
            HEFT_TRY(
                heft_loss_report(p, HEFT_NOTE, "embd/special", HEFT_NONE,
                                 "the vocabulary has no special token %s: its id is written as "
                                 "2^32 - 1",
                                 heft_vocab_special_name((heft_special)i)));
    return HEFT_OK;
}

heft_status heft_embd_plan_vocab(heft_plan *p, bool is_simple, const heft_vocab **out)
{
    uint64_t max = is_simple ? (uint64_t)HEFT_EMBD_SIMPLE_TEXT : UINT16_MAX, longest = 0;
    *out = p->vocab;
    if (!p->vocab)
        return HEFT_OK;
    for (uint32_t i = 0; i < heft_vocab_count(p->vocab); i++)
        if (heft_vocab_at(p->vocab, i).len > longest)
            longest = heft_vocab_at(p->vocab, i).len;
    if (longest > max) {
        *out = NULL;
        return heft_loss_report(p, HEFT_FAULT, "embd/vocab", HEFT_NONE,
                                "a token has %U bytes, at most %U can be stored%s", longest, max,
                                p->existing ? "" : " (--allow-loss leaves the vocabulary out)");
    }
    if (is_simple && heft_vocab_count(p->vocab) > HEFT_EMBD_SIMPLE_TOKENS)
        HEFT_TRY(heft_plan_loss(p, HEFT_NOTE, "embd/many-tokens", HEFT_NONE,
                                "the reference program reads at most 100000 tokens"));
    return is_simple ? plan_simple_special(p, p->vocab) : plan_special(p, p->vocab);
}

/* ---- writing ---- */

uint64_t heft_embd_token_bytes(const heft_vocab *v, uint32_t length_bytes)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < heft_vocab_count(v); i++)
        bytes += length_bytes + heft_vocab_at(v, i).len;
    return bytes;
}

static void put_tokens(heft_out *o, const heft_vocab *v, uint32_t length_bytes)
{
    for (uint32_t i = 0; v && i < heft_vocab_count(v); i++) {
        heft_str token = heft_vocab_at(v, i);
        if (length_bytes == 2)
            heft_out_u16(o, (uint16_t)token.len);
        else
            heft_out_u32(o, (uint32_t)token.len);
        heft_out_str(o, token);
    }
}

void heft_embd_put_vocab(heft_out *o, const heft_vocab *v, uint32_t section_at)
{
    uint32_t total = (uint32_t)heft_embd_token_bytes(v, 2);
    heft_out_u32(o, heft_vocab_count(v));
    heft_out_u32(o, total);
    heft_out_u32(o, section_at + HEADER + total);
    put_tokens(o, v, 2);
    for (unsigned i = 0; i < HEFT_SPECIALS; i++)
        heft_out_u32(o, heft_vocab_special(v, (heft_special)i));
}

void heft_embd_put_simple_vocab(heft_out *o, const heft_vocab *v)
{
    heft_out_u32(o, v ? heft_vocab_count(v) : 0);
    put_tokens(o, v, 4);
}
