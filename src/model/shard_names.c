/* shard_names.c - the files of a model that a parser names: shards, and files of bytes that many
 * tensors refer to by name. */
#include "base/error.h"
#include "base/path_risk.h"
#include "base/text.h"
#include "model/names.h"

heft_status heft_ix_shard_add(heft_index *x, heft_ix_shard s, uint32_t *number)
{
    static const uint64_t max_shards = (UINT64_C(1) << (64 - HEFT_GLOBAL_OFFSET_BITS)) - 1;
    static const uint64_t max_bytes = UINT64_C(1) << HEFT_GLOBAL_OFFSET_BITS;
    if (x->file_bytes > max_bytes || (s.size != HEFT_UNKNOWN_LENGTH && s.size > max_bytes) ||
        x->shards.len == max_shards)
        return heft_error_plain(x->err, HEFT_E_LIMIT,
                                "%q: more than %U files, or more than %U bytes in one of them, "
                                "cannot be one model",
                                s.label, max_shards, max_bytes);
    heft_ix_shard *to = heft_vec_push(&x->mem, &x->shards, sizeof *to);
    if (!to)
        return heft_ix_no_memory(x);
    *to = s;
    *number = x->shards.len;
    return HEFT_OK;
}

static heft_str file_name(const void *ctx, uint32_t i)
{
    return heft_ix_shard_at(ctx, i + 1)->label;
}

uint32_t heft_names_find_file(const heft_names *files, const heft_index *x, heft_str file)
{
    heft_names_of of = { file_name, x };
    return heft_names_find(files, of, heft_names_hash(&x->key, file), file) + 1; /* HEFT_NONE: 0 */
}

heft_status heft_names_add_file(heft_names *files, heft_index *x, heft_str file, uint32_t *number)
{
    heft_names_of of = { file_name, x };
    uint32_t count = x->shards.len;
    *number = heft_names_find_file(files, x, file);
    if (*number)
        return HEFT_OK;
    if (count == HEFT_MAX_SHARDS)
        return heft_error_plain(x->err, HEFT_E_LIMIT, "the model has more than %U files",
                                (uint64_t)HEFT_MAX_SHARDS);
    heft_ix_shard shard = { file, NULL, HEFT_UNKNOWN_LENGTH, false, NULL };
    HEFT_TRY(heft_ix_shard_add(x, shard, number));
    if (!heft_names_grow(&x->mem, files, &x->key, of, count))
        return heft_error_no_memory(x->err, "for the files of a model");
    heft_names_add(files, of, heft_names_hash(&x->key, file), file, count);
    return HEFT_OK;
}
