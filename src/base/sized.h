/* sized.h - checks for structs of the caller that begin with their size: options and tables of
 * functions.  docs/abi.md has the rules. */
#ifndef HEFT_SIZED_H
#define HEFT_SIZED_H
#include <heft/editing.h>
#include <heft/heft_ext.h>

/* Copy the caller's options `from` over the defaults in `to`, a struct of `bytes` bytes; NULL keeps
 * the defaults.  Both structs begin with their size.  Return HEFT_E_ARGUMENT if `from` has an
 * invalid size, or sets a member that this version of the library does not know. */
heft_status heft_sized_copy(void *to, size_t bytes, const void *from, heft_error *err);

/* Return HEFT_E_ARGUMENT if a table of functions is smaller than min_size, the size in the first
 * version; `what` names the table in the message. */
heft_status heft_sized_check(size_t size, size_t min_size, const char *what, heft_error *err);
heft_status heft_source_check(const heft_source *s, heft_error *err);
heft_status heft_sink_check(const heft_sink *s, heft_error *err);
/* Check the host and all tables that the host refers to. */
heft_status heft_host_check(const heft_host *h, heft_error *err);
/* Load the library of a digest, if the digest has one.  Call this function before init(). */
static inline heft_status heft_digest_load(const heft_digest *d, heft_error *err)
{
    return HEFT_HAS(d, load) ? d->load(err) : HEFT_OK;
}

/* ---- options of appending ---- */

/* Append options with the nested options; members that the caller does not set have defaults. */
typedef struct heft_append_settings {
    heft_append_options append; /* has pointers to convert and write: do not copy the struct */
    heft_convert_options convert;
    heft_write_options write;
} heft_append_settings;
heft_status heft_append_read_options(heft_append_settings *out, const heft_append_options *opt,
                                     heft_error *err);

#endif
