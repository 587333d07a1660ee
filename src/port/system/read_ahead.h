/* read_ahead.h - read files on slow file systems by large requests, several at the same time. */
#ifndef HEFT_READ_AHEAD_H
#define HEFT_READ_AHEAD_H
#include "port/port.h"

/* The best way to read a file, by the file system. */
typedef enum heft_file_cost {
    HEFT_COST_LOCAL,   /* a mapping is fast */
    HEFT_COST_REQUEST, /* every request takes long: read ahead through the page cache */
    HEFT_COST_PASSING  /* like REQUEST, but the page cache would not keep bytes: read directly */
} heft_file_cost;
/* Ask the file system of the descriptor; if files there can be slow, also measure how long reads of
 * single bytes take.  file_system.c */
heft_file_cost heft_file_cost_of(int fd, uint64_t size);

typedef struct heft_read_ahead heft_read_ahead;
/* Prepare to read the file of the borrowed descriptor fd.  is_direct: with O_DIRECT, where
 * the file system supports this flag.  Returns NULL if memory is short or the system has no such
 * reads. */
heft_read_ahead *heft_read_ahead_new(int fd, uint64_t size, bool is_direct);
void heft_read_ahead_free(heft_read_ahead *a);
/* Read up to len bytes at offset off; return their number, perhaps 0.  The caller reads the
 * rest by ordinary reads, and those find the error of a failed request.  Safe to call from
 * several threads. */
size_t heft_read_ahead_read(heft_read_ahead *a, uint64_t off, void *buf, size_t len);
/* Begin to read a range, as far as memory for blocks is left. */
void heft_read_ahead_request(heft_read_ahead *a, uint64_t off, uint64_t len);

#endif
