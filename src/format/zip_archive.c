/* zip_archive.c - opens the zip archive that a file of weights is. */
#include "format/zip_archive.h"

/* Take the members from the local headers if the end is missing. */
static heft_status recover(heft_zip *z, heft_index *x, heft_window *in, heft_status st)
{
    heft_error why = *in->err;
    heft_status recovered = heft_zip_recover(z, in, &x->arena, x->present);
    if (recovered == HEFT_E_FORMAT)
        *in->err = why;
    if (recovered)
        return recovered == HEFT_E_FORMAT ? st : recovered;
    st = heft_error_set(
        in->err, HEFT_E_FORMAT, z->entries[z->count - 1].head,
        "zip: the archive is truncated: there is no directory at its end; %U members "
        "are found",
        (uint64_t)z->count);
    return heft_ix_forgive(x, st, "no-directory");
}

heft_status heft_zip_archive(heft_zip *out, heft_index *x, heft_window *in)
{
    heft_status st = heft_zip_open(out, in, &x->arena, true);
    bool is_lost = st == HEFT_E_FORMAT && !out->directory.offset;
    if (heft_ix_forgives(x) && is_lost && in->err)
        return recover(out, x, in, st);
    if (!HEFT_IS_SMALL && !st && out->trailing.length)
        heft_ix_note_format(x, HEFT_NOTE, "zip/trailing-bytes", out->trailing, HEFT_NONE,
                            "%U bytes follow the end of the archive", out->trailing.length);
    return st;
}
