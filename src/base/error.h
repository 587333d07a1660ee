/* error.h - functions that fill in a heft_error, without a C library. */
#ifndef HEFT_ERROR_H
#define HEFT_ERROR_H
#include <stdarg.h>

#include <heft/heft.h>

/* Return from the function with the status of `call`, unless it is HEFT_OK; for functions that have
 * nothing to release. */
#define HEFT_TRY(call)                   \
    do {                                 \
        heft_status heft_tried = (call); \
        if (heft_tried)                  \
            return heft_tried;           \
    } while (0)

/* Set *err, which may be NULL, and return s.  The conversions of fmt are %s (const char *), %q
 * (heft_str, quoted, escaped and shortened), %U (uint64_t), %D (int64_t), %X (uint64_t,
 * hexadecimal) and %%. */
heft_status heft_error_set(heft_error *err, heft_status s, uint64_t offset, const char *fmt, ...);
/* Set an error without an offset in the file. */
heft_status heft_error_plain(heft_error *err, heft_status s, const char *fmt, ...);
/* Set an error with arguments in a va_list, for functions that have a format parameter. */
heft_status heft_error_set_list(heft_error *err, heft_status s, uint64_t offset, const char *fmt,
                                va_list *ap);
/* Set and return HEFT_E_NOMEM with the message "no memory PURPOSE"; PURPOSE is, for example,
 * "for a name" or "to plan the file". */
heft_status heft_error_no_memory(heft_error *err, const char *purpose);

/* Add the name of a rule, or an errno, to the error that was just set; return s. */
heft_status heft_error_rule(heft_error *err, heft_status s, const char *rule);
heft_status heft_error_os(heft_error *err, heft_status s, int os);
/* Add whose fault the error is that was just set, unless that is known; return st.  If the callback
 * of the user that failed has set no message, set one. */
heft_status heft_error_about(heft_error *err, heft_status st, heft_about about);
/* Set the number of the file, from 1, that the error is about, if st is one; return st.  The
 * function that the user called has the last word. */
heft_status heft_error_input(heft_error *err, heft_status st, uint32_t input);
enum { HEFT_INPUT_FIRST = 1, HEFT_INPUT_SECOND = 2 };
/* Append ", in FILE" to the message of the error that was just set, unless the name is empty or the
 * message ends with the name of a file; return s. */
heft_status heft_error_in(heft_error *err, heft_status s, heft_str file);
/* Add to the error that was just set the size that the file should have: the sum of a and b, or
 * nothing if the sum overflows; return s. */
heft_status heft_error_expect(heft_error *err, heft_status s, uint64_t a, uint64_t b);

/* Make a public function that uses several layers, or callbacks of the user, set the error on every
 * failure: call begin() first and return the status through end().  begin() clears *err and returns
 * err, or `own` if err is NULL.  end() returns st and sets *err if *err is not an error of st. */
heft_error *heft_error_begin(heft_error *err, heft_error *own);
heft_status heft_error_end(heft_error *err, heft_status st);

#endif
