/* gguf_pieces.c - reads tokenizer.model, a message of SentencePiece in the wire format of protobuf:
 *   1: a piece        1: text, 2: score, a float, 3: kind
 *   2: the trainer    3: model (1 Unigram, 2 BPE), 40 to 43: ids of unknown, start, end, padding
 *   3: the normaliser 2: table of characters, 3: add a space before the text,
 *                     4: remove extra spaces
 */
#include "gguf/gguf_tokenizer.h"

#include "base/error.h"
#include "companion/companion_text.h"
#include "grammar/protobuf.h"
#include "model/float.h"

/* ---- pieces ---- */

static heft_status read_piece(heft_gguf_tokenizer *t, heft_cur *outer,
                              const heft_protobuf_field *message, uint64_t id)
{
    enum { TEXT = 1, SCORE = 2, KIND = 3 };
    heft_cur c = heft_protobuf_open(outer->in, message->bytes, "a piece");
    heft_str text = { "", 0 };
    uint64_t kind = HEFT_TOKEN_NORMAL;
    float score = 0;
    for (heft_protobuf_field f; heft_protobuf_next(&c, &f);) {
        if (f.number == TEXT && f.wire == HEFT_WIRE_BYTES)
            text = heft_protobuf_bytes(&c, &f);
        else if (f.number == SCORE)
            score = heft_f32_of((uint32_t)f.u);
        else if (f.number == KIND)
            kind = f.u;
    }
    HEFT_TRY(c.st);
    if (kind < HEFT_TOKEN_NORMAL || kind > HEFT_TOKEN_BYTE)
        return heft_cur_fail(outer, "piece %U has the unknown kind %U", id, kind);
    if (heft_utf8_valid(text.ptr, text.len) < text.len)
        return heft_cur_fail(outer, "piece %U is not UTF-8", id);
    return heft_gguf_add_token(t, text, id, score, (heft_gguf_token_type)kind);
}

static heft_status read_trainer(heft_gguf_tokenizer *t, heft_cur *outer,
                                const heft_protobuf_field *message)
{
    enum { MODEL = 3, UNIGRAM = 1, BPE = 2, UNKNOWN = 40 };
    heft_cur c = heft_protobuf_open(outer->in, message->bytes, "the trainer");
    uint64_t model = UNIGRAM; /* the default */
    t->unknown_id = 0;
    for (heft_protobuf_field f; heft_protobuf_next(&c, &f);) {
        if (f.number == MODEL)
            model = f.u;
        else if (f.number == UNKNOWN)
            t->unknown_id = f.u < HEFT_NONE ? (uint32_t)f.u : HEFT_NONE;
    }
    HEFT_TRY(c.st);
    if (model != BPE && model != UNIGRAM)
        return heft_error_plain(t->m->err, HEFT_E_UNSUPPORTED,
                                "llama.cpp has no tokenizer for words or characters");
    t->kind = heft_str_from(model == BPE ? "pieces" : "Unigram");
    return HEFT_OK;
}

static heft_status read_normaliser(heft_gguf_tokenizer *t, heft_cur *outer,
                                   const heft_protobuf_field *message)
{
    enum { CHARACTERS = 2, ADD_SPACE = 3, REMOVE_SPACES = 4 };
    heft_cur c = heft_protobuf_open(outer->in, message->bytes, "the normaliser");
    bool is_unigram = t->kind.ptr && t->kind.ptr[0] == 'U', removes = true;
    t->adds_space = true;
    for (heft_protobuf_field f; heft_protobuf_next(&c, &f);) {
        if (f.number == ADD_SPACE)
            t->adds_space = f.u;
        else if (f.number == REMOVE_SPACES)
            removes = f.u;
        else if (f.number == CHARACTERS && f.bytes.length && is_unigram) {
            heft_str table = heft_protobuf_bytes(&c, &f);
            heft_gguf_add_array(t->m, "tokenizer.ggml.precompiled_charsmap", table.ptr,
                                (uint32_t)table.len, HEFT_U8);
        }
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
    for (heft_protobuf_field f; !st && heft_protobuf_next(&c, &f);) {
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
