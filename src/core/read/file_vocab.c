/* file_vocab.c - opens the vocabulary of a file. */
#include "core/read/file.h"
#include "model/vocab.h"

/* Read the length before the token at *at and advance *at to the token.  Return false if the bytes
 * end before. */
static bool take_length(const heft_ix_tokens *t, const uint8_t *p, uint64_t *at, uint64_t *length)
{
    *length = 0;
    if (t->length_bytes > t->where.length - *at)
        return false;
    for (uint32_t i = 0; i < t->length_bytes; i++)
        *length |= (uint64_t)p[*at + i] << 8 * (t->big_endian ? t->length_bytes - 1 - i : i);
    *at += t->length_bytes;
    return *length <= t->where.length - *at;
}

/* The parser has walked through all tokens, so only a file that changed since can fail here. */
static heft_status split_tokens(heft_vocab *v, const heft_ix_tokens *t, heft_error *err)
{
    uint64_t at = 0, length;
    for (uint32_t i = 0; i < t->count; i++) {
        if (!take_length(t, (const uint8_t *)v->text, &at, &length))
            return heft_error_set(err, HEFT_E_IO, t->where.offset + at,
                                  "the vocabulary has changed since the file was opened");
        heft_vocab_add(v, (heft_str){ v->text + at, (size_t)length });
        at += length;
    }
    return HEFT_OK;
}

heft_status heft_vocab_open(heft_vocab **out, const heft_file *f, heft_error *err)
{
    const heft_ix_tokens *t = &f->x.tokens;
    heft_vocab *v = NULL;
    *out = NULL;
    if (!t->length_bytes) {
        heft_error_plain(err, HEFT_E_NOTFOUND, "the file has no vocabulary");
        return heft_error_rule(err, HEFT_E_NOTFOUND, "heft/no-vocabulary");
    }
    HEFT_TRY(heft_vocab_begin(&v, f->host->allocator, t->count, t->where.length, err));
    memcpy(v->key, f->x.key.secret, sizeof v->key);
    for (int i = 0; i < HEFT_SPECIALS && t->has_special; i++)
        v->special[i] = t->special[i];
    heft_status st = heft_file_count_read(f, HEFT_NONE, t->where.length, err);
    if (!st)
        st = heft_file_read_stored(f, t->where.offset, v->text, (size_t)t->where.length, err);
    if (!st)
        st = split_tokens(v, t, err);
    if (!st)
        st = heft_vocab_end(v, !t->has_special, err);
    if (st) {
        heft_vocab_close(v);
        return st;
    }
    *out = v;
    return HEFT_OK;
}
