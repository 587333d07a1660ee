/* append_options.c - see append_options.h. */
#include "base/append_options.h"
#include "base/sized.h"

heft_status heft_append_read_options(heft_append_settings *out, const heft_append_options *opt,
                                     heft_error *err)
{
    *out = (heft_append_settings){ .append = HEFT_APPEND_OPTIONS_INIT,
                                   .convert = HEFT_CONVERT_OPTIONS_INIT,
                                   .write = HEFT_WRITE_OPTIONS_INIT };
    heft_status st = heft_sized_copy(&out->append, sizeof out->append, opt, err);
    if (!st)
        st = heft_sized_copy(&out->convert, sizeof out->convert, out->append.convert, err);
    if (!st)
        st = heft_sized_copy(&out->write, sizeof out->write, out->convert.write, err);
    out->append.convert = &out->convert;
    out->convert.write = &out->write;
    return st;
}
