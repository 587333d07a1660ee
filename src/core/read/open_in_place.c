/* open_in_place.c - opens one file in memory with as little code as possible: a linker can drop
 * shards, gzip, and the decoding of parts. */
#include "base/error.h"
#include "core/read/file.h"

static heft_status no_gunzip(heft_file *f, heft_error *err)
{
    (void)f;
    (void)err;
    return HEFT_OK; /* not recognised: the file has another format, or none */
}

static heft_status no_decode(heft_window *in, heft_encoding e, heft_range stored, void *out,
                             size_t *len)
{
    (void)e;
    (void)out;
    (void)len;
    return heft_error_set(in->err, HEFT_E_UNSUPPORTED, stored.offset,
                          "the index is compressed, and files in place are not decoded");
}

static heft_status refuse_unknown_lengths(heft_file *f, heft_error *err)
{
    if (!f->x.unknown_lengths)
        return HEFT_OK;
    return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                            "a part is compressed and its length is not stated; files in place are "
                            "not decoded");
}

static heft_status refuse_unknown_format(const uint8_t *head, size_t head_len, const uint8_t *tail,
                                         size_t tail_len, uint64_t size, heft_error *err)
{
    (void)head;
    (void)head_len;
    (void)tail;
    (void)tail_len;
    (void)size;
    return heft_error_rule(
        err, heft_error_plain(err, HEFT_E_FORMAT, "no format of this program recognises the file"),
        "heft/unknown-format");
}

static heft_status open_whole(heft_file *f, const void *data, size_t len, heft_error *err)
{
    HEFT_TRY(heft_file_feed(f, 0, data, len, err));
    HEFT_TRY(heft_file_parse(f, err));
    if (heft_ix_has_assembled(&f->x))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "a tensor is stored in pieces; files in place are not assembled");
    if (f->x.shards.len)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "the model has %U more files; a file in place is the only file",
                                (uint64_t)f->x.shards.len);
    return heft_file_finish(f, err);
}

/* Parsers need an error object.  It is allocated because the stack of a board is small. */
static heft_status open_without_error(heft_file *f, const void *data, size_t len)
{
    const heft_allocator *al = f->host->allocator;
    heft_error *own = heft_alloc(al, sizeof *own, 16);
    if (!own)
        return HEFT_E_NOMEM;
    heft_status st = open_whole(f, data, len, heft_error_begin(own, own));
    heft_free(al, own, sizeof *own, 16);
    return st;
}

static heft_status no_note(heft_file *f)
{
    (void)f;
    return HEFT_OK;
}

heft_status heft_file_open_in_place(heft_file **out, const void *data, size_t len,
                                    const heft_open_options *opt, heft_error *err)
{
    static const heft_opening minimal = { .decode = no_decode,
                                          .gunzip_detect = no_gunzip,
                                          .gunzip = no_gunzip,
                                          .resolve_lengths = refuse_unknown_lengths,
                                          .archive_enter = heft_no_archive,
                                          .archive_note = no_note,
                                          .detect_foreign = refuse_unknown_format };
    if (err)
        heft_error_begin(err, err);
    heft_status st = heft_file_create(out, len, &minimal, opt, err);
    if (!st)
        st = err ? open_whole(*out, data, len, err) : open_without_error(*out, data, len);
    if (st) {
        heft_file_close(*out);
        *out = NULL;
    }
    return err ? heft_error_end(err, st) : st;
}
