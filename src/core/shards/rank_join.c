/* rank_join.c - joins the files of ranks of which a format makes the tensors of the model. */
#include "core/shards/shard_join.h"

static const char purpose[] = "to join the files of ranks";

/* Let the checksums of a file's tensors be those of the tensors with their elements. */
static void join_checksums(heft_file *f, const heft_joined_file *from, const uint32_t *joined)
{
    const heft_stored_checksum *own = from->file->x.checksums.ptr;
    heft_stored_checksum *to = f->x.checksums.ptr;
    for (uint32_t i = 0; i < from->file->x.checksums.len; i++) {
        uint32_t tensor = own[i].tensor == HEFT_NONE ? HEFT_NONE : joined[own[i].tensor];
        if (tensor == HEFT_NONE)
            continue;
        to[from->first_checksum + i].tensor = tensor;
        to[from->first_checksum + i].covers_piece = !own[i].covers_metadata_only;
    }
}

/* Call the format.  joined: a number for each tensor of the files. */
static heft_status join(heft_file *f, heft_rank_file *files, uint32_t *joined)
{
    for (uint32_t m = 0; m < f->joined_count; m++) {
        const heft_joined_file *from = &f->joined_files[m];
        files[m] = (heft_rank_file){ .x = &from->file->x,
                                     .name = heft_shard_name(f, from->first_shard),
                                     .number = from->first_shard,
                                     .joined = joined };
        for (uint32_t i = 0; i < heft_ix_tensors(files[m].x); i++)
            *joined++ = HEFT_NONE;
    }
    HEFT_TRY(f->format->join_ranks(&f->x, files, f->joined_count));
    for (uint32_t m = 0; m < f->joined_count; m++)
        join_checksums(f, &f->joined_files[m], files[m].joined);
    return HEFT_OK;
}

heft_status heft_join_ranks(heft_file *f, heft_error *err)
{
    uint64_t tensors = 0;
    heft_memory *mem = &f->x.mem;
    if (f->missing) { /* each tensor has elements in all files */
        *err = *f->missing;
        return f->missing->status;
    }
    for (uint32_t m = 0; m < f->joined_count; m++)
        tensors += heft_ix_tensors(&f->joined_files[m].file->x);
    uint64_t bytes = f->joined_count * sizeof(heft_rank_file) + tensors * sizeof(uint32_t);
    heft_rank_file *files = bytes < SIZE_MAX ? heft_mem_alloc(mem, (size_t)bytes) : NULL;
    if (!files)
        return heft_error_no_memory(err, purpose);
    heft_status st = join(f, files, (uint32_t *)(void *)(files + f->joined_count));
    heft_mem_free(mem, files, (size_t)bytes);
    return st;
}
