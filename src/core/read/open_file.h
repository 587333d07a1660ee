/* open_file.h - opens one file, up to its index; core/shards opens the other files of the same model. */
#ifndef HEFT_OPEN_FILE_H
#define HEFT_OPEN_FILE_H
#include "core/read/file.h"

/* One round: detects the format and parses.  HEFT_AGAIN: heft_file_needs() tells which bytes are wanted. */
heft_status heft_file_parse(heft_file *f, heft_error *err);
/* Once the files beside it are open, too: settles lengths, and the file is ready. */
heft_status heft_file_finish(heft_file *f, heft_error *err);

/* A round of opening; may be repeated, with more bytes. */
typedef heft_status (*heft_file_step_one)(heft_file *f, heft_error *err);
/* Calls step() until it returns something other than HEFT_AGAIN; before each call the bytes that the parser asked for are
 * read from the source. */
heft_status heft_file_open_one(heft_file **out, heft_source *take, const heft_open_options *opt,
                               heft_file_step_one step, heft_error *err);

#endif
