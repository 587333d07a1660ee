/* torch.c - reads zip archives of torch.save() and TorchScript; other files have older layouts.
 *
 *   zip      NAME/data.pkl     the pickle
 *            NAME/data/KEY     a storage, not compressed by PyTorch
 *            NAME/byteorder    "little" or "big"; if missing: little
 *            NAME/version      decimal; other members: TorchScript code, hints of the writer
 *
 *   .pt2     a zip archive of torch.export: torch_package.c
 *   legacy   a stream of pickles: torch_legacy.c
 *   tar      before version 0.1.11: torch_tar.c
 *
 * Reference: torch/serialization.py and torch/csrc/jit/serialization of PyTorch 2.
 */
#include "format/torch/torch_write.h"
#include "format/torch/zero.h"

#include "format/shard_index.h"
#include "format/zip_archive.h"

/* A package has no pickle of its own. */
static heft_status parse_zip(heft_torch *t)
{
    heft_torch_archive a = { .folder = { "", 0 } };
    HEFT_TRY(heft_torch_open_archive(t, &a));
    if (!HEFT_IS_LEAN && heft_torch_is_package(&a.z))
        return heft_torch_parse_package(t, &a.z);
    return heft_torch_parse_archive(t, &a);
}

heft_status heft_torch_refuse_lean(const heft_index *x, const char *files)
{
    return heft_error_plain(x->err, HEFT_E_UNSUPPORTED,
                            "%s are read by the command, and not in browsers or on boards", files);
}

static heft_status torch_parse(heft_window *in, heft_index *x)
{
    enum { TAR_HEAD = 512, TAR_MAGIC = 257, INDEX_TEXT = 8 };
    static const heft_shard_index_kind index = { .total_rule = "torch/total-size",
                                                 .mark_rule = "torch/byte-order-mark",
                                                 .is_own = heft_shard_index_is_torch_name,
                                                 .title = "PyTorch" };
    heft_torch t = { .in = in, .x = x };
    uint64_t have = in->size < TAR_HEAD ? in->size : TAR_HEAD;
    heft_cur c = heft_cur_whole(in, 0, have, "the file");
    const uint8_t *head = heft_cur_take(&c, have);
    if (!head)
        return c.st;
    if (have >= INDEX_TEXT && heft_shard_index_is_json_object(head)) {
        if (!x->pick.len)
            return heft_shard_index_parse(in, x, &index);
        return heft_error_plain(
            x->err, HEFT_E_UNSUPPORTED,
            "--key needs a single file, not an index: open the shard that holds %q", x->pick);
    }
    bool is_zip = have > 1 && head[0] == 'P' && head[1] == 'K';
    bool is_tar = have > TAR_MAGIC + 5 && !memcmp(head + TAR_MAGIC, "ustar", 5);
    if (HEFT_IS_LEAN && is_tar)
        return heft_torch_refuse_lean(x, "tar files of PyTorch before 0.1.11");
    heft_status st = is_zip   ? parse_zip(&t)
                     : is_tar ? heft_torch_parse_tar(&t)
                              : heft_torch_parse_legacy(&t);
    heft_pickle_free(&t.p);
    return st;
}

static int torch_probe(const uint8_t *head, size_t head_len, const uint8_t *tail, size_t tail_len,
                       uint64_t size)
{
    enum { SURE = 80, TAR = 64, NAMED = 16, LISTED = 32 };
    int bits;
    (void)size;
    if (heft_torch_is_legacy(head, head_len))
        return SURE;
    if (heft_torch_is_tar(head, head_len))
        return TAR;
    if (heft_shard_index_recognise(head, head_len) &&
        heft_shard_index_is_torch_name(heft_shard_index_first_shard(head, head_len)))
        return LISTED; /* must exceed safetensors' result for the same text */
    heft_str first = heft_zip_first_name(&bits, head, head_len);
    static const char *const names[] = { "/data.pkl", "/byteorder", "/.format_version", "/data/0" };
    const uint8_t *name = (const uint8_t *)first.ptr, *found = NULL;
    if (!bits)
        return 0;
    for (size_t i = 0; !found && i < sizeof names / sizeof *names; i++)
        found = heft_str_seek(name, name + first.len, names[i], heft_lit(names[i]).len);
    if (!found) { /* a member may be a file of PyTorch: look in the directory */
        heft_str directory = heft_zip_directory_in(tail, tail_len);
        const uint8_t *from = (const uint8_t *)directory.ptr;
        found = heft_str_seek(from, from + directory.len, names[0], heft_lit(names[0]).len);
        if (!HEFT_IS_LEAN && !found && heft_torch_looks_like_package(first, directory))
            found = name;
    }
    return found ? bits + NAMED : 0;
}

static const heft_name_rules name_rules = { "torch/name", NULL, NULL, "torch/rank" };

const heft_format heft_format_torch = {
    .name = "torch",
    .title = "PyTorch",
    .structure_rule = "torch/structure",
    .suffixes = ".pt .pth",
    .versions = "3 checkpoint",
    .caps = HEFT_CAN_READ | HEFT_CAN_WRITE | HEFT_CAN_SCHEMES | HEFT_CAN_META | HEFT_CAN_LISTS |
            HEFT_CAN_SPARSE | HEFT_CAN_OPEN_KEY,
    .align = 64,
    .probe = torch_probe,
    .parse = torch_parse,
    .join_ranks = HEFT_IS_LEAN ? NULL : heft_zero_join,
    .name_rules = &name_rules,
};

const heft_format_writer heft_format_writer_torch = {
    .plan = heft_torch_plan_file,
    .write_header = heft_torch_write_header,
    .write_record_header = heft_torch_write_record_header,
    .write_trailer = heft_torch_write_trailer,
    .sharding = &heft_torch_sharding,
};
