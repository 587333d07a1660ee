/* decode.h - what is decoded while a file is opened: the beginning of a part, lengths that the index does not tell, and
 * files that are compressed as a whole.  Content is decoded by streams: stream.h. */
#ifndef HEFT_DECODE_H
#define HEFT_DECODE_H
#include "core/read/file.h"

/* heft_window.decode for the inbox's host: decode_prefix.c. */
heft_status heft_input_decode(heft_window *in, heft_encoding e, heft_range stored, void *out,
                              size_t *len);

/* ---- lengths: decoded_length.c ----
 *
 * Compressed parts of some files say only how long they are compressed: what the layout implies is worked out, the
 * rest is decoded once and counted. */

/* Settles the lengths of all parts that are HEFT_NOWHERE and can be settled: a part that cannot be
 * decoded, or not here, stays as it is.  Fails only when the system does. */
heft_status heft_resolve_lengths(heft_file *f, heft_error *err);
/* HEFT_OK when every length is known and possible, else what is wrong with the first that is not. */
heft_status heft_check_lengths(const heft_file *f, heft_error *err);

/* ---- files that are compressed with gzip as a whole: gunzip.c ---- */

/* Whether the file is compressed with gzip and its content is of a format that may be so (of `format` if that is not
 * NULL): f->gzip then tells where, and f->format is set.  HEFT_AGAIN: more bytes are wanted. */
heft_status heft_gunzip_detect(heft_file *f, heft_error *err);
/* Decodes it into memory or the host's scratch, checks length and CRC-32, and makes that the file's source. */
heft_status heft_gunzip(heft_file *f, heft_error *err);

#endif
