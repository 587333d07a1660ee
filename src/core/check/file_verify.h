/* file_verify.h - what a format demands of a file, without checksums and contents. */
#ifndef HEFT_FILE_VERIFY_H
#define HEFT_FILE_VERIFY_H
#include "core/read/file.h"

/* Runs the format's own check, which calls fn with what it finds; padding of which `passes` says so is not read. */
heft_status heft_verify_layout(const heft_file *f,
                               bool (*skips_padding)(void *ctx, heft_range where),
                               heft_finding_fn fn, void *ctx, heft_error *err);

#endif
