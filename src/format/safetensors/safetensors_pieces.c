/* safetensors_pieces.c - pieces of a distributed checkpoint (DCP) of PyTorch in safetensors.
 *
 * Each file has pieces of tensors under the names of the tensors. The metadata say where:
 *
 *   "DCP_SHARDING_INFO": "{\"NAME\": {\"saved_offsets\": [0, 128]}, ...}"
 *
 * No file states the shape of a whole tensor, which ends where the last of its pieces ends.
 *
 * Reference: torch/distributed/checkpoint/_hf_utils.py of PyTorch 2.8. */
#include "format/safetensors/safetensors.h"
#include "grammar/json.h"
#include "model/boxes.h"

static const char key[] = "DCP_SHARDING_INFO";

typedef struct pieces {
    heft_index *x;
    heft_json j;
    uint64_t **offsets; /* by tensor; NULL: not listed */
} pieces;

static heft_status read_offsets(pieces *s, uint32_t tensor)
{
    heft_index *x = s->x;
    uint32_t rank = heft_ix_row(x, tensor)->rank, n = 0;
    uint64_t *offsets = heft_arena_alloc(&x->arena, ((size_t)rank + 1) * sizeof *offsets, 8);
    heft_json_kind k = heft_json_next(&s->j);
    if (!offsets)
        return heft_error_no_memory(x->err, "for the offsets of pieces");
    if (k != HEFT_JSON_ARRAY)
        return heft_json_fail(&s->j, "tensor %q: saved_offsets is not a list",
                              heft_ix_name(x, tensor));
    while ((k = heft_json_next(&s->j)) == HEFT_JSON_NUMBER && n < rank &&
           heft_json_u64(&offsets[n], s->j.text))
        n++;
    if (s->j.st)
        return s->j.st;
    if (k != HEFT_JSON_ARRAY_END || n != rank)
        return heft_json_fail(&s->j, "tensor %q: saved_offsets is not %U numbers from 0 on",
                              heft_ix_name(x, tensor), (uint64_t)rank);
    s->offsets[tensor] = offsets;
    return HEFT_OK;
}

/* Read the object of one tensor; a name without a tensor in this file has none of its elements. */
static heft_status read_entry(pieces *s, uint32_t tensor)
{
    heft_json_kind k = heft_json_next(&s->j);
    if (k != HEFT_JSON_OBJECT)
        return s->j.st ? s->j.st : heft_json_fail(&s->j, "%s: an entry is not an object", key);
    while ((k = heft_json_next(&s->j)) == HEFT_JSON_KEY) {
        bool is_offsets = heft_str_is(s->j.text, "saved_offsets") && tensor != HEFT_NONE;
        HEFT_TRY(is_offsets ? read_offsets(s, tensor) : heft_json_skip(&s->j, k));
    }
    return s->j.st;
}

static heft_status read_entries(pieces *s)
{
    heft_json_kind k = heft_json_next(&s->j);
    if (k != HEFT_JSON_OBJECT)
        return s->j.st ? s->j.st : heft_json_fail(&s->j, "%s is not an object", key);
    while ((k = heft_json_next(&s->j)) == HEFT_JSON_KEY)
        HEFT_TRY(read_entry(s, heft_ix_find(s->x, s->j.text)));
    if (!s->j.st)
        (void)heft_json_next(&s->j);
    return s->j.st;
}

static heft_status add_pieces(pieces *s)
{
    heft_index *x = s->x;
    for (uint32_t i = 0; i < heft_ix_tensors(x); i++)
        if (s->offsets[i])
            HEFT_TRY(heft_ix_piece_add(x, i, s->offsets[i], NULL, false));
    return heft_ix_pieces_fill(x);
}

static uint32_t find_key(const heft_index *x)
{
    for (uint32_t i = 0; i < x->values.len; i = heft_ix_value_next(x, i)) {
        const heft_value *v = heft_ix_value(x, i);
        if (heft_str_is(v->key, key) && v->kind == HEFT_KIND_STR)
            return i;
    }
    return HEFT_NONE;
}

heft_status heft_st_read_pieces(heft_index *x)
{
    enum { DEPTH = 8 };
    uint32_t i = find_key(x);
    x->has_pieces = i != HEFT_NONE;
    if (!x->has_pieces || HEFT_IS_LEAN)
        return HEFT_OK;
    size_t bytes = ((size_t)heft_ix_tensors(x) + 1) * sizeof(uint64_t *);
    pieces s = { .x = x, .offsets = heft_arena_alloc(&x->arena, bytes, 8) };
    if (!s.offsets)
        return heft_error_no_memory(x->err, "for the offsets of pieces");
    memset(s.offsets, 0, bytes);
    HEFT_TRY(heft_ix_build_name_table(x));
    s.j = heft_json_open(heft_ix_value(x, i)->as.s, HEFT_ST_LENGTH, DEPTH, &x->arena, x->err);
    HEFT_TRY(read_entries(&s));
    x->shard_info.prefix = heft_lit("DCP_"); /* keys of the checkpoint, not of the model */
    return add_pieces(&s);
}
