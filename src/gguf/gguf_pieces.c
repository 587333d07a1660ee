/* gguf_pieces.c - reads tokenizer.model, a message of SentencePiece in the wire format of protobuf:
 *   1: a piece        1: text, 2: score, a float, 3: kind
 *   2: the trainer    3: model (1 Unigram, 2 BPE), 40 to 43: ids of unknown, start, end, padding
 *   3: the normaliser 2: table of characters, 3: add a space before the text,
 *                     4: remove extra spaces
 */
#include "gguf/gguf_tokenizer.h"

#include "base/cursor.h"
#include "base/error.h"
#include "companion/companion_text.h"
#include "model/float.h"

/* ---- the wire format ---- */

typedef struct field {
    uint32_t number;
    uint64_t value; /* an integer, or the bits of a fixed number */
    heft_str bytes; /* ptr NULL: a number */
} field;

static uint64_t take_varint(heft_cur *c)
{
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 64; shift += 7) {
        uint8_t byte = heft_cur_u8(c);
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (!(byte & 0x80))
            return value;
    }
    heft_cur_fail(c, "an integer has more than 64 bits");
    return 0;
}

/* Take the next field of a message; return false at its end, or if c->st is set. */
static bool take_field(heft_cur *c, field *f)
{
    enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
    if (!heft_cur_left(c) || c->st)
        return false;
    uint64_t tag = take_varint(c);
    uint32_t wire = tag & 7;
    *f = (field){ .number = (uint32_t)(tag >> 3) };

    if (wire == VARINT) {
        f->value = take_varint(c);
    } else if (wire == FIXED32) {
        f->value = heft_cur_u32(c);
    } else if (wire == FIXED64) {
        f->value = heft_cur_u64(c);
    } else if (wire == BYTES) {
        uint64_t len = take_varint(c);
        const uint8_t *p = c->st ? NULL : heft_cur_take(c, len);
        f->bytes = (heft_str){ (const char *)p, p ? (size_t)len : 0 };
    } else {
        heft_cur_fail(c, "wire type %U is not one of protobuf", (uint64_t)wire);
    }
    return !c->st;
}

/* Open a message within another. */
static heft_cur inner(const heft_cur *c, const field *f, const char *what)
{
    uint64_t at = c->base + (uint64_t)((const uint8_t *)f->bytes.ptr - c->start);
    return heft_cur_open(c->in, f->bytes.ptr ? at : 0, f->bytes.len, what);
}

/* ---- pieces ---- */

static heft_status read_piece(heft_gguf_tokenizer *t, heft_cur *outer, const field *message,
                              uint64_t id)
{
    enum { TEXT = 1, SCORE = 2, KIND = 3 };
    heft_cur c = inner(outer, message, "a piece");
    heft_str text = { "", 0 };
    uint64_t kind = HEFT_TOKEN_NORMAL;
    float score = 0;
    for (field f; take_field(&c, &f);) {
        if (f.number == TEXT && f.bytes.ptr)
            text = f.bytes;
        else if (f.number == SCORE)
            score = heft_f32_of((uint32_t)f.value);
        else if (f.number == KIND)
            kind = f.value;
    }
    HEFT_TRY(c.st);
    if (kind < HEFT_TOKEN_NORMAL || kind > HEFT_TOKEN_BYTE)
        return heft_cur_fail(outer, "piece %U has the unknown kind %U", id, kind);
    if (heft_utf8_valid(text.ptr, text.len) < text.len)
        return heft_cur_fail(outer, "piece %U is not UTF-8", id);
    return heft_gguf_add_token(t, text, id, score, (heft_gguf_token_type)kind);
}

static heft_status read_trainer(heft_gguf_tokenizer *t, heft_cur *outer, const field *message)
{
    enum { MODEL = 3, UNIGRAM = 1, BPE = 2, UNKNOWN = 40 };
    heft_cur c = inner(outer, message, "the trainer");
    uint64_t model = UNIGRAM; /* the default */
    t->unknown_id = 0;
    for (field f; take_field(&c, &f);) {
        if (f.number == MODEL)
            model = f.value;
        else if (f.number == UNKNOWN)
            t->unknown_id = f.value < HEFT_NONE ? (uint32_t)f.value : HEFT_NONE;
    }
    HEFT_TRY(c.st);
    if (model != BPE && model != UNIGRAM)
        return heft_error_plain(t->m->err, HEFT_E_UNSUPPORTED,
                                "llama.cpp has no tokenizer for words or characters");
    t->kind = heft_str_from(model == BPE ? "pieces" : "Unigram");
    return HEFT_OK;
}

static heft_status read_normaliser(heft_gguf_tokenizer *t, heft_cur *outer, const field *message)
{
    enum { CHARACTERS = 2, ADD_SPACE = 3, REMOVE_SPACES = 4 };
    heft_cur c = inner(outer, message, "the normaliser");
    bool is_unigram = t->kind.ptr && t->kind.ptr[0] == 'U', removes = true;
    t->adds_space = true;
    for (field f; take_field(&c, &f);) {
        if (f.number == ADD_SPACE)
            t->adds_space = f.value;
        else if (f.number == REMOVE_SPACES)
            removes = f.value;
        else if (f.number == CHARACTERS && f.bytes.len && is_unigram)
            heft_gguf_add_array(t->m, "tokenizer.ggml.precompiled_charsmap", f.bytes.ptr,
                                (uint32_t)f.bytes.len, HEFT_U8);
    }
    if (is_unigram)
        heft_gguf_add_bool(t->m, "tokenizer.ggml.remove_extra_whitespaces", removes);
    t->knows_space = true;
    return c.st;
}

heft_status heft_gguf_read_pieces(heft_gguf_tokenizer *t)
{
    enum { PIECE = 1, TRAINER = 2, NORMALISER = 3 };
    heft_str bytes = t->m->opt.texts[HEFT_GGUF_PIECES];
    heft_window_bytes window = heft_window_of(bytes.ptr, bytes.len, t->m->err);
    heft_cur c = heft_cur_open(&window.in, 0, bytes.len, "the tokenizer");
    heft_status st = HEFT_OK;
    uint64_t pieces = 0;
    t->kind = heft_str_from("Unigram");
    for (field f; !st && take_field(&c, &f);) {
        if (f.number == PIECE)
            st = read_piece(t, &c, &f, pieces++);
        else if (f.number == TRAINER)
            st = read_trainer(t, &c, &f);
        else if (f.number == NORMALISER)
            st = read_normaliser(t, &c, &f);
    }
    st = st ? st : c.st;
    if (!st && !pieces)
        st = heft_error_plain(t->m->err, HEFT_E_FORMAT, "there are no pieces");
    t->has_scores = true;
    return st ? heft_error_in(t->m->err, st, heft_str_from("tokenizer.model"))
              : heft_gguf_read_added(t);
}
