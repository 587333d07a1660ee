/* sized.h - structs of a caller that begin with their size: options, and tables of functions.  docs/abi.md has the rules. */
#ifndef HEFT_SIZED_H
#define HEFT_SIZED_H
#include <heft/heft_ext.h>

/* Copies what the caller's options say over the defaults in `to`, a struct of which so many bytes are in use and that begins
 * with its size.  from NULL: the defaults stay.  HEFT_E_ARGUMENT: from has no size, or sets a member that is not known here. */
heft_status heft_sized_copy(void *to, size_t bytes, const void *from, heft_error *err);

/* HEFT_E_ARGUMENT: a table of functions, called `what`, is smaller than what the first version had. */
heft_status heft_sized_check(size_t size, size_t least, const char *what, heft_error *err);
heft_status heft_source_check(const heft_source *s, heft_error *err);
heft_status heft_sink_check(const heft_sink *s, heft_error *err);
/* The host with all that it names. */
heft_status heft_host_check(const heft_host *h, heft_error *err);

/* The options of appending with those that they name, each over its defaults. */
typedef struct heft_append_settings {
    heft_append_options append; /* refers to convert, which refers to write: it does not move */
    heft_convert_options convert;
    heft_write_options write;
} heft_append_settings;
heft_status heft_append_read_options(heft_append_settings *out, const heft_append_options *opt,
                                     heft_error *err);

#endif
