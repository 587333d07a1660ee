/* zip_archive.h - opens the zip archive that a file of weights is. */
#ifndef HEFT_ZIP_ARCHIVE_H
#define HEFT_ZIP_ARCHIVE_H
#include "format/format.h"
#include "grammar/zip.h"

/* Call heft_zip_open() with takes_opaque, and note bytes after the archive, which other programs
 * ignore.  If the index forgives (heft_index.forgives), an archive without its end has the members
 * that heft_zip_recover() finds. */
heft_status heft_zip_archive(heft_zip *out, heft_index *x, heft_window *in);

/* Why a package of torch.export (.pt2) without weights is refused. */
#define HEFT_ZIP_PT2                                                                      \
    "the .pt2 package has no weights of a program: those of compiled code are a part of " \
    "the code, or of a file that the code alone describes"

#endif
