/* open_file.h - opens a single file, up to the index; core/shards opens the other files of the same
 * model. */
#ifndef HEFT_OPEN_FILE_H
#define HEFT_OPEN_FILE_H
#include "core/read/file.h"

/* Detect the format and parse, once.  HEFT_AGAIN: heft_file_needs() lists the missing ranges. */
heft_status heft_file_parse(heft_file *f, heft_error *err);
/* Resolve unknown lengths and mark the file ready; call after the shards are open. */
heft_status heft_file_finish(heft_file *f, heft_error *err);

/* An attempt to open; called again after more bytes were fetched. */
typedef heft_status (*heft_file_step_one)(heft_file *f, heft_error *err);
/* Take ownership of a source and call step() until the result is not HEFT_AGAIN.  After each
 * HEFT_AGAIN the requested bytes are read from the source. */
heft_status heft_file_open_one(heft_file **out, heft_source *take, const heft_open_options *opt,
                               heft_file_step_one step, heft_error *err);

#endif
