/* unpack.h - files that are compressed with gzip as a whole. */
#ifndef HEFT_UNPACK_H
#define HEFT_UNPACK_H
#include "core/read/file.h"

/* Whether the file is compressed with gzip and its content is of a format that may be so (of `format` if that is not
 * NULL): f->packed then tells where, and f->format is set.  HEFT_AGAIN: more bytes are wanted. */
heft_status heft_unpack_look(heft_file *f, heft_error *err);
/* Decodes it into memory or the host's scratch, checks length and CRC-32, and makes that the file's source. */
heft_status heft_unpack(heft_file *f, heft_error *err);

#endif
