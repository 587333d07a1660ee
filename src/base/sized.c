/* sized.c - structs of a caller that begin with their size. */
#include "base/sized.h"

#include <string.h>

#include "base/error.h"

heft_status heft_sized_copy(void *to, size_t bytes, const void *from, heft_error *err)
{
    enum { MOST = 1 << 16 }; /* more is rubbish */
    size_t size;
    if (!from)
        return HEFT_OK;
    memcpy(&size, from, sizeof size);
    if (size < sizeof size || size > MOST)
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "options begin with their size, which is not %U: see HEFT_..._INIT",
                                (uint64_t)size);
    for (size_t i = bytes; i < size; i++)
        if (((const uint8_t *)from)[i])
            return heft_error_plain(err, HEFT_E_ARGUMENT,
                                    "options of a later version of the library: byte %U is set",
                                    (uint64_t)i);
    memcpy(to, from, size < bytes ? size : bytes);
    memcpy(to, &bytes, sizeof bytes);
    return HEFT_OK;
}

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
