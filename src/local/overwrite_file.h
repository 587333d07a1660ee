/* overwrite_file.h - new values of tensors over the old ones, in a file that no writer lays out. */
#ifndef HEFT_OVERWRITE_FILE_H
#define HEFT_OVERWRITE_FILE_H
#include "base/sized.h"
#include "port/system/disk.h"

/* Write the tensors that the options choose of `from` over those of the model f, which t has open:
 * into t, or into the one file of external data that has their bytes.  Arrays have the type and
 * the shape of those that they replace; nothing else changes.  *f is closed before a byte
 * changes. */
heft_status heft_overwrite_file(heft_append_result *out, const heft_target *t, heft_file **f,
                                const heft_file *from, const heft_append_settings *o,
                                heft_error *err);

/* Roll back interrupted edits of the files of external data of the model that is open, if its name
 * is that of such a format.  *undone is set if there was one. */
heft_status heft_overwrite_recover(bool *undone, const heft_target *model, heft_error *err);

#endif
