/* file_verify.h - a format's own check of a file, without checksums and decoded content. */
#ifndef HEFT_FILE_VERIFY_H
#define HEFT_FILE_VERIFY_H
#include <heft/check.h>

#include "core/read/file.h"

/* Run the format's check and call fn for each finding.  Padding is not read where skips_padding()
 * returns true. */
heft_status heft_verify_layout(const heft_file *f,
                               bool (*skips_padding)(void *ctx, heft_range where),
                               heft_finding_fn fn, void *ctx, heft_error *err);

#endif
