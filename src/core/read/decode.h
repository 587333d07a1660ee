/* decode.h - decoding while a file is opened: the beginning of a part, lengths that the index does
 * not state, and files compressed as a whole.  Streams decode the payload: stream.h. */
#ifndef HEFT_DECODE_H
#define HEFT_DECODE_H
#include "core/read/file.h"

/* Implement heft_window.decode with the host's codecs; decode_prefix.c. */
heft_status heft_input_decode(heft_window *in, heft_encoding e, heft_range stored, void *out,
                              size_t *len);

/* ---- lengths: decoded_length.c ----
 *
 * Some files state only the compressed length of a part.  Lengths that the layout of a sparse
 * tensor implies are computed; any other part is decoded once to count the bytes. */

/* Set the length of every part whose length is HEFT_UNKNOWN_LENGTH.  A part that cannot be decoded,
 * or not by this build, keeps HEFT_UNKNOWN_LENGTH.  Fails only with HEFT_E_NOMEM and HEFT_E_IO. */
heft_status heft_resolve_lengths(heft_file *f, heft_error *err);
/* Return HEFT_OK if every length is known and plausible, otherwise the error of the first part that
 * violates this. */
heft_status heft_check_lengths(const heft_file *f, heft_error *err);

/* ---- files compressed with gzip as a whole: gunzip.c ---- */

/* Detect a gzip file whose content is of a format that allows compression as a whole (and equals
 * f->format, unless that is NULL); then fill f->gzip and set f->format.  HEFT_AGAIN: more bytes are
 * needed. */
heft_status heft_gunzip_detect(heft_file *f, heft_error *err);
/* Decode the file into memory or the host's scratch space, check length and CRC-32, and make the
 * result the file's source. */
heft_status heft_gunzip(heft_file *f, heft_error *err);

/* ---- files of weights in archives of other programs: archive_member.c ---- */

/* If the file, of which `head` is the beginning, is an archive with a file of weights, make that
 * member the file's source.  HEFT_AGAIN: more bytes are needed.  HEFT_E_UNSUPPORTED: it cannot be
 * told which member is meant, or the member is compressed. */
heft_status heft_archive_enter(heft_file *f, const uint8_t *head, size_t len, bool *is_entered,
                               heft_error *err);
/* Return the member that is the file's source, or NULL. */
const heft_archive_member *heft_archive_of_source(const heft_source *s);
static inline const heft_archive_member *heft_archive_of(const heft_file *f)
{
    return HEFT_IS_LEAN || !f->source ? NULL : heft_archive_of_source(f->source);
}
/* Note where the bytes lie and what was left out, and add the archive's checksum. */
heft_status heft_archive_note(heft_file *f);

#endif
