/* open_model.c - opens a model: a file, the shards named there, and the joined index. */
#include "core/read/file.h"
#include "core/shards/assembly.h"
#include "core/shards/shard_join.h"

heft_status heft_refuse_piece(const char *name, heft_error *err)
{
    if (!name || !heft_str_ends(heft_lit(name), ".distcp"))
        return HEFT_OK;
    return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                            "is a part of a distributed checkpoint (DCP) of PyTorch, a folder with "
                            "the index .metadata, and not a file of weights by itself");
}

heft_status heft_file_step(heft_file *f, heft_error *err)
{
    if (f->ready)
        return HEFT_OK;
    HEFT_TRY(heft_refuse_piece(f->shards ? f->shards->name : NULL, err));
    HEFT_TRY(heft_file_parse(f, err));
    HEFT_TRY(heft_add_folder_shards(f, err));
    HEFT_TRY(heft_shards_open(f, err));
    HEFT_TRY(heft_join_shards(f, err));
    HEFT_TRY(heft_note_folder_files(f, err));
    HEFT_TRY(heft_note_pieces(f, err));
    if (!HEFT_IS_LEAN)
        HEFT_TRY(heft_assembly_add(f, err));
    return heft_file_finish(f, err);
}

heft_status heft_file_open_source(heft_file **out, heft_source *take, const heft_open_options *opt,
                                  heft_error *err)
{
    *out = NULL;
    if (!take)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "there is no source to open");
    return heft_file_open_one(out, take, opt, heft_file_step, err);
}
