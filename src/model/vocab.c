/* vocab.c - vocabulary: concatenated tokens, their end offsets, a hash table from tokens to ids. */
#include "model/vocab.h"

#include "base/error.h"
#include "base/text.h"

static const struct {
    const char *name, *token;
} specials[HEFT_SPECIALS] = {
    { "pad", "[PAD]" }, { "unk", "[UNK]" },   { "cls", "[CLS]" },
    { "sep", "[SEP]" }, { "mask", "[MASK]" },
};

static const char purpose[] = "for the vocabulary";

heft_status heft_vocab_begin(heft_vocab **out, const heft_allocator *al, uint64_t count,
                             uint64_t bytes, heft_error *err)
{
    *out = NULL;
    if (count >= UINT32_MAX || bytes > UINT32_MAX)
        return heft_error_plain(err, HEFT_E_LIMIT, "a vocabulary of %U tokens, %U bytes", count,
                                bytes);
    heft_vocab *v = heft_alloc(al, sizeof *v, 16);
    if (!v)
        return heft_error_no_memory(err, purpose);
    *v = (heft_vocab){ .mem = { al, UINT64_MAX, sizeof *v },
                       .text_bytes = (size_t)bytes + 1,
                       .capacity = (uint32_t)count + 1 };
    for (int i = 0; i < HEFT_SPECIALS; i++)
        v->special[i] = HEFT_NONE;
    v->text = heft_mem_alloc(&v->mem, v->text_bytes);
    v->ends = heft_mem_alloc(&v->mem, v->capacity * sizeof *v->ends);
    if (v->text && v->ends) {
        *out = v;
        return HEFT_OK;
    }
    heft_vocab_close(v);
    return heft_error_no_memory(err, purpose);
}

void heft_vocab_close(heft_vocab *v)
{
    if (!v)
        return;
    heft_names_free(&v->mem, &v->names);
    heft_mem_free(&v->mem, v->text, v->text_bytes);
    heft_mem_free(&v->mem, v->ends, v->capacity * sizeof *v->ends);
    heft_free(v->mem.al, v, sizeof *v, 16);
}

static uint32_t start_of(const heft_vocab *v, uint32_t id)
{
    return id ? v->ends[id - 1] : 0;
}

void heft_vocab_add(heft_vocab *v, heft_str token)
{
    uint32_t at = start_of(v, v->count);
    if (token.len)
        memmove(v->text + at, token.ptr, token.len);
    v->ends[v->count++] = at + (uint32_t)token.len;
}

static heft_str token_of(const void *ctx, uint32_t id)
{
    return heft_vocab_at(ctx, id);
}

/* Most tokens are too short for the faster hash of tensor names (base/name_hash.h). */
static uint32_t hash_of(const heft_vocab *v, heft_str token)
{
    return (uint32_t)heft_siphash13(v->key, token.ptr, token.len);
}

uint32_t heft_vocab_find_special(const heft_vocab *v, heft_special s)
{
    return heft_vocab_find(v, heft_lit(specials[s].token));
}

heft_status heft_vocab_end(heft_vocab *v, bool by_name, heft_error *err)
{
    heft_names_of of = { token_of, v };
    if (!heft_names_reserve(&v->mem, &v->names, v->count))
        return heft_error_no_memory(err, purpose);
    for (uint32_t i = 0; i < v->count; i++) {
        heft_str token = token_of(v, i);
        heft_names_add(&v->names, of, hash_of(v, token), token, i);
    }
    for (int i = 0; i < HEFT_SPECIALS && by_name; i++)
        v->special[i] = heft_vocab_find_special(v, (heft_special)i);
    return HEFT_OK;
}

heft_status heft_vocab_copy(heft_vocab **out, const heft_vocab *v, const heft_allocator *al,
                            heft_error *err)
{
    HEFT_TRY(heft_vocab_begin(out, al, v->count, v->count ? v->ends[v->count - 1] : 0, err));
    memcpy((*out)->key, v->key, sizeof v->key);
    for (uint32_t i = 0; i < v->count; i++)
        heft_vocab_add(*out, token_of(v, i));
    heft_status st = heft_vocab_end(*out, false, err);
    if (!st) {
        memcpy((*out)->special, v->special, sizeof v->special);
        return HEFT_OK;
    }
    heft_vocab_close(*out);
    *out = NULL;
    return st;
}

/* ---- public functions ---- */

uint32_t heft_vocab_count(const heft_vocab *v)
{
    return v->count;
}

heft_str heft_vocab_at(const heft_vocab *v, uint32_t id)
{
    if (id >= v->count)
        return (heft_str){ NULL, 0 };
    uint32_t at = start_of(v, id);
    return (heft_str){ v->text + at, v->ends[id] - at };
}

uint32_t heft_vocab_find(const heft_vocab *v, heft_str token)
{
    heft_names_of of = { token_of, v };
    return heft_names_find(&v->names, of, hash_of(v, token), token);
}

uint32_t heft_vocab_special(const heft_vocab *v, heft_special s)
{
    return (unsigned)s < HEFT_SPECIALS ? v->special[s] : HEFT_NONE;
}

void heft_vocab_set_special(heft_vocab *v, heft_special s, uint32_t id)
{
    if ((unsigned)s < HEFT_SPECIALS)
        v->special[s] = id;
}

const char *heft_vocab_special_name(heft_special s)
{
    return (unsigned)s < HEFT_SPECIALS ? specials[s].name : "unknown";
}
