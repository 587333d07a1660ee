/* error.h - filling in a heft_error without a libc. */
#ifndef HEFT_ERROR_H
#define HEFT_ERROR_H
#include <stdarg.h>

#include <heft/heft.h>

/* Sets *err, which may be NULL, and returns s.  The format knows %s (const char *), %q (heft_str,
 * quoted, escaped and shortened), %U (uint64_t), %D (int64_t), %X (uint64_t, hexadecimal) and %%. */
heft_status heft_error_set(heft_error *err, heft_status s, uint64_t offset, const char *fmt, ...);
/* The same without a place in the file. */
heft_status heft_error_plain(heft_error *err, heft_status s, const char *fmt, ...);
/* The same with the arguments in a list, for functions that take a format themselves. */
heft_status heft_error_set_list(heft_error *err, heft_status s, uint64_t offset, const char *fmt,
                                va_list *ap);
/* HEFT_E_NOMEM, "no memory PURPOSE": the purpose is like "for a name" or "to plan the file". */
heft_status heft_error_no_memory(heft_error *err, const char *purpose);

/* Gives an error that was just set the name of its rule, or the system's number, and returns s. */
heft_status heft_error_rule(heft_error *err, heft_status s, const char *rule);
heft_status heft_error_os(heft_error *err, heft_status s, int os);

/* A public function that goes through several layers, or through functions of the caller, begins with the first and
 * returns through the second, so that a failure always comes with a set error.  begin() clears the error and
 * returns it, or own when err is NULL; end() returns st, and sets an error that is not that of st. */
heft_error *heft_error_begin(heft_error *err, heft_error *own);
heft_status heft_error_end(heft_error *err, heft_status st);

#endif
