/* append_options.h - the options of appending, with their defaults. */
#ifndef HEFT_APPEND_OPTIONS_H
#define HEFT_APPEND_OPTIONS_H
#include <heft/editing.h>

/* Append options with the nested options; members that the caller does not set have defaults. */
typedef struct heft_append_settings {
    heft_append_options append; /* has pointers to convert and write: do not copy the struct */
    heft_convert_options convert;
    heft_write_options write;
} heft_append_settings;
heft_status heft_append_read_options(heft_append_settings *out, const heft_append_options *opt,
                                     heft_error *err);

#endif
