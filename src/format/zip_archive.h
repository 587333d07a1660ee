/* zip_trailing.h - notes bytes after a zip archive. */
#ifndef HEFT_ZIP_TRAILING_H
#define HEFT_ZIP_TRAILING_H
#include "format/format.h"
#include "grammar/zip.h"

/* Add a note that says how many bytes follow the archive, if any: other programs ignore them. */
void heft_zip_note_trailing(heft_index *x, const heft_zip *z);

#endif
