/* open_model.c - opens a model: a file, the shards named there, and the joined index. */
#include "core/read/open_file.h"
#include "core/shards/shard_join.h"

heft_status heft_file_step(heft_file *f, heft_error *err)
{
    if (f->ready)
        return HEFT_OK;
    heft_status st = heft_file_parse(f, err);
    if (!st)
        st = heft_shards_open(f, err);
    if (!st)
        st = heft_join_shards(f, err);
    if (!st)
        st = heft_join_note_passed_over(f, err);
    return st ? st : heft_file_finish(f, err);
}

heft_status heft_file_open_source(heft_file **out, heft_source *take, const heft_open_options *opt,
                                  heft_error *err)
{
    *out = NULL;
    if (!take)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "there is no source to open");
    return heft_file_open_one(out, take, opt, heft_file_step, err);
}
