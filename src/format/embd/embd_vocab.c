/* embd_vocab.c - vocabularies of EMBD files.
 *
 * The section of the specified layout:
 *    0  u32 tokens   4  u32 bytes of the tokens   8  u32 where the special ids are, from the file's start
 *   12  tokens: u16 length, text
 *       special ids: u32 [PAD], [UNK], [CLS], [SEP], [MASK]
 * Some writers count "where" from the section's start, put the special ids in front of the tokens,
 * or count their bytes with those of the tokens.
 *
 * At the end of a simple stream: u32 tokens, then per token u32 length, text.
 */
#include "format/embd/embd.h"
#include "format/losses.h"
#include "model/vocab.h"

enum { HEAD = HEFT_EMBD_VOCAB_HEAD, SPECIAL = HEFT_EMBD_SPECIAL, LAST_ASCII = 127 };

static uint64_t read_length(heft_cur *c, uint32_t length_bytes)
{
    return length_bytes == 2 ? heft_cur_u16(c) : heft_cur_u32(c);
}

/* Steps over the tokens; whether no length is above 127. */
static bool step_over(heft_cur *c, uint32_t count, uint32_t length_bytes)
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
    heft_cur again = *c;
    uint64_t at = heft_cur_pos(c);
    if ((uint64_t)count * length_bytes > heft_cur_left(c))
        return heft_cur_fail(c, "%U tokens are announced, %U bytes are left", (uint64_t)count,
                             heft_cur_left(c));
    bool short_ones = step_over(c, count, length_bytes);
    uint64_t bytes = heft_cur_pos(c) - at;
    /* Lengths below 128 are ASCII: no sequence of UTF-8 reaches over them from one token into the
     * next, and all the text can be looked at at once. */
    heft_cur all = again;
    const uint8_t *text = !c->st && short_ones ? heft_cur_take(&all, bytes) : NULL;
    bool is_text = text && heft_utf8_valid(text, (size_t)bytes) == bytes;
    for (uint32_t i = 0; i < count && !c->st && !is_text && !again.st; i++)
        heft_cur_text(&again, read_length(&again, length_bytes), "a token");
    x->tokens.where = (heft_range){ at, bytes };
    x->tokens.count = count;
    x->tokens.length_bytes = (uint8_t)length_bytes;
    return c->st ? c->st : again.st;
}

/* ---- the specified layout ---- */

enum { EXACT, COUNTED, WITHIN, READINGS };

/* Whether the special ids may begin at this byte of the section: right before or behind the tokens;
 * behind them, when their own bytes count as the tokens'; or anywhere. */
static bool may_begin(unsigned reading, heft_range section, uint64_t total, uint64_t at)
{
    if (at < HEAD || at > section.length - SPECIAL)
        return false;
    if (reading == EXACT)
        return at == HEAD || at == HEAD + total;
    return reading == WITHIN || at + SPECIAL == HEAD + total;
}

/* Where the special ids begin in the section, 0: nowhere.  What fits exactly comes first: by range
 * alone an offset from the section's start may look like one from the file's. */
static uint64_t find_special(heft_range section, uint64_t total, uint64_t value)
{
    uint64_t absolute = value > section.offset ? value - section.offset : 0;
    for (unsigned reading = EXACT; reading < READINGS; reading++) {
        if (may_begin(reading, section, total, absolute))
            return absolute;
        if (may_begin(reading, section, total, value))
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
                         "the vocabulary has no special token of this kind");
        else if (id >= x->tokens.count)
            heft_ix_note(x, HEFT_WARNING, "embd/special-id", at + 4 * i, HEFT_NONE,
                         "the id of a special token is beyond the last token");
    }
}

static heft_status check_extent(heft_index *x, heft_range section, uint64_t total, uint64_t special)
{
    uint64_t bytes = x->tokens.where.length;
    uint64_t end = x->tokens.where.offset + bytes - section.offset;
    if (special != HEAD && end > special)
        return heft_error_set(x->err, HEFT_E_FORMAT, section.offset + special,
                              "the ids of special tokens lie inside the tokens");
    if (total != bytes && total != bytes + SPECIAL)
        return heft_error_set(x->err, HEFT_E_FORMAT, section.offset + 4,
                              "the tokens take %U bytes, total_size says %U", bytes, total);
    if (section.length != HEAD + bytes + SPECIAL)
        heft_ix_note(x, HEFT_WARNING, "embd/vocab-size", section.offset, HEFT_NONE,
                     "the vocabulary section is larger than what it holds");
    return HEFT_OK;
}

heft_status heft_embd_read_vocab(heft_window *in, heft_index *x, heft_range section)
{
    heft_cur c = heft_cur_whole(in, section.offset, section.length, "the vocabulary"), ids = c;
    uint32_t count = heft_cur_u32(&c), total = heft_cur_u32(&c), value = heft_cur_u32(&c);
    if (!c.st && section.length < HEAD + SPECIAL)
        heft_cur_fail(&c, "the vocabulary has %U bytes, at least 32 are needed", section.length);
    if (c.st)
        return c.st;
    uint64_t special = find_special(section, total, value);
    if (!special)
        return heft_error_set(x->err, HEFT_E_FORMAT, section.offset + 8,
                              "the ids of special tokens at %U lie outside the vocabulary",
                              (uint64_t)value);
    heft_cur_take(&ids, special);
    if (special == HEAD)
        heft_cur_take(&c, SPECIAL);
    heft_status st = read_tokens(&c, x, count, 2);
    if (!st)
        st = check_extent(x, section, total, special);
    if (st)
        return st;
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
    heft_status st = read_tokens(&c, x, count, 4);
    if (st)
        return st;
    *end = heft_cur_pos(&c);
    if (count > HEFT_EMBD_SIMPLE_TOKENS)
        heft_ix_note(x, HEFT_NOTE, "embd/many-tokens", at, HEFT_NONE,
                     "the reference program reads at most 100000 tokens");
    heft_range where = { at, *end - at };
    return heft_ix_part(x, HEFT_NONE, heft_lit("vocab"), HEFT_UNTYPED, where, where.length,
                        HEFT_RAW);
}

/* ---- planning ---- */

/* A simple stream has special tokens by their names only. */
static heft_status plan_simple_special(heft_plan *p, const heft_vocab *v)
{
    bool found = true;
    for (unsigned i = 0; i < HEFT_SPECIALS; i++)
        found = found &&
                heft_vocab_special(v, (heft_special)i) == heft_vocab_named(v, (heft_special)i);
    if (found)
        return heft_plan_loss(p, HEFT_NOTE, "embd/special", HEFT_NONE,
                              "special tokens are known by their names only");
    return heft_plan_loss(p, HEFT_WARNING, "embd/special", HEFT_NONE,
                          "ids of special tokens are left out: a simple stream knows them by the "
                          "names [PAD], [UNK], [CLS], [SEP], [MASK] only");
}

static heft_status plan_special(heft_plan *p, const heft_vocab *v)
{
    heft_status st = HEFT_OK;
    for (unsigned i = 0; i < HEFT_SPECIALS && !st; i++)
        if (heft_vocab_special(v, (heft_special)i) == HEFT_NONE)
            st = heft_loss_report(p, HEFT_NOTE, "embd/special", HEFT_NONE,
                                  "the vocabulary has no special token %s: its id is written as "
                                  "2^32 - 1",
                                  heft_vocab_special_name((heft_special)i));
    return st;
}

heft_status heft_embd_plan_vocab(heft_plan *p, bool simple, const heft_vocab **out)
{
    uint64_t most = simple ? (uint64_t)HEFT_EMBD_SIMPLE_TEXT : UINT16_MAX, longest = 0;
    *out = p->vocab;
    if (!p->vocab)
        return HEFT_OK;
    for (uint32_t i = 0; i < heft_vocab_count(p->vocab); i++)
        if (heft_vocab_token(p->vocab, i).len > longest)
            longest = heft_vocab_token(p->vocab, i).len;
    if (longest > most) {
        *out = NULL;
        return heft_loss_report(p, HEFT_FAULT, "embd/vocab", HEFT_NONE,
                                "a token has %U bytes, at most %U can be stored%s", longest, most,
                                p->existing ? "" : " (--allow-loss leaves the vocabulary out)");
    }
    heft_status st = HEFT_OK;
    if (simple && heft_vocab_count(p->vocab) > HEFT_EMBD_SIMPLE_TOKENS)
        st = heft_plan_loss(p, HEFT_NOTE, "embd/many-tokens", HEFT_NONE,
                            "the reference program reads at most 100000 tokens");
    if (st)
        return st;
    return simple ? plan_simple_special(p, p->vocab) : plan_special(p, p->vocab);
}

/* ---- writing ---- */

uint64_t heft_embd_token_bytes(const heft_vocab *v, uint32_t length_bytes)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < heft_vocab_count(v); i++)
        bytes += length_bytes + heft_vocab_token(v, i).len;
    return bytes;
}

static void put_tokens(heft_out *o, const heft_vocab *v, uint32_t length_bytes)
{
    for (uint32_t i = 0; v && i < heft_vocab_count(v); i++) {
        heft_str token = heft_vocab_token(v, i);
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
    heft_out_u32(o, section_at + HEAD + total);
    put_tokens(o, v, 2);
    for (unsigned i = 0; i < HEFT_SPECIALS; i++)
        heft_out_u32(o, heft_vocab_special(v, (heft_special)i));
}

void heft_embd_put_simple_vocab(heft_out *o, const heft_vocab *v)
{
    heft_out_u32(o, v ? heft_vocab_count(v) : 0);
    put_tokens(o, v, 4);
}
