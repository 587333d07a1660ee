/* array_save.c - save arrays in memory as a file. */
#include "base/sized.h"
#include "port/port.h"

#include <heft/write.h>

heft_status heft_array_save(const char *path, const heft_array *arrays, uint32_t count,
                            const heft_save_options *opt, heft_error *err)
{
    heft_sink *sink;
    heft_save_options o = HEFT_SAVE_OPTIONS_INIT;
    HEFT_TRY(heft_sized_copy(&o, sizeof o, opt, err));
    if (!o.format)
        o.format = heft_format_for_path(path);
    if (!o.format)
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "no format matches the suffix of '%s': set options.format", path);
    HEFT_TRY(heft_sink_open_file(&sink, path, o.flags, err));
    return heft_array_write(sink, arrays, count, &o, err);
}
