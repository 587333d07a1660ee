/* change_table.h - what becomes of each tensor, as a table: the dry run of a quantisation. */
#ifndef HEFT_CLI_CHANGE_TABLE_H
#define HEFT_CLI_CHANGE_TABLE_H
#include "process/command_session.h"
#include "text/outbuf.h"

typedef struct change {
    heft_str name; /* in the output */
    const char *from, *to;
    uint64_t bytes, new_bytes;
    const char *note;       /* NULL: there is nothing to say */
    const char *instead_of; /* type that was wanted; NULL: note counts */
} change;

/* Print a row for each of `count` changes; at(ctx, i) returns one. */
void change_table_print(outbuf *o, const session *s, uint32_t count,
                        change (*at)(void *ctx, uint32_t i), void *ctx);

#endif
