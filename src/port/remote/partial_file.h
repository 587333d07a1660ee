/* partial_file.h - the downloaded blocks of a file on a server, kept on the disk. */
#ifndef HEFT_PORT_REMOTE_PARTIAL_FILE_H
#define HEFT_PORT_REMOTE_PARTIAL_FILE_H
#include "port/port.h"

typedef struct heft_partial heft_partial;
enum { HEFT_PARTIAL_BLOCK = 4 << 20, HEFT_VERSION_BYTES = 32 };

/* Open the partial file of `stem`, the path of the output, for the address with this text, or begin
 * a partial file.  `version` is a digest of address, size and version of the file; *was_other: a
 * partial file of a different version was replaced.
 *   HEFT_E_IO  also if a second process uses the partial file */
heft_status heft_partial_open(heft_partial **out, const char *stem, const char *address,
                              uint64_t size, const uint8_t version[HEFT_VERSION_BYTES],
                              bool *was_other, heft_error *err);
void heft_partial_close(heft_partial *p); /* NULL is ignored */
uint64_t heft_partial_blocks(const heft_partial *p);
/* Return the size of a block: HEFT_PARTIAL_BLOCK, less for the last block. */
size_t heft_partial_length(const heft_partial *p, uint64_t number);
/* Return true if the block was stored; the bytes may be damaged. */
bool heft_partial_has(const heft_partial *p, uint64_t number);

/* Threads may call the following functions for different blocks at the same time. */

/* Read a whole block; false: other bytes were stored. */
bool heft_partial_load(heft_partial *p, uint64_t number, uint8_t *to);
heft_status heft_partial_store(heft_partial *p, uint64_t number, const uint8_t *from,
                               heft_error *err);
/* Read bytes of blocks that have been loaded or stored since the file was opened. */
heft_status heft_partial_read(heft_partial *p, uint64_t offset, void *to, size_t len,
                              heft_error *err);

/* Remove all partial files of the stem. */
heft_status heft_partial_remove_all(const char *stem, heft_error *err);

#endif
