/* zip_trailing.c - notes bytes after a zip archive. */
#include "format/zip_trailing.h"

void heft_zip_note_trailing(heft_index *x, const heft_zip *z)
{
    if (z->trailing.length)
        heft_ix_note_format(x, HEFT_NOTE, "zip/trailing-bytes", z->trailing, HEFT_NONE,
                            "%U bytes follow the end of the archive", z->trailing.length);
}
