/* registry_writers.c - the writers of the formats of this build; see registry.c. */
#include "format/format.h"

#define X(name, ...)                             \
    extern const heft_format heft_format_##name; \
    extern const heft_format_writer heft_format_writer_##name;
#include "format/formats.def"
#undef X

#define X(name, ...) { &heft_format_##name, &heft_format_writer_##name },
static const struct {
    const heft_format *format;
    const heft_format_writer *writer;
} writers[] = {
#include "format/formats.def"
};
#undef X

const heft_format_writer *heft_registry_writer(const heft_format *f)
{
    if (f->writer)
        return f->writer;
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
        if (writers[i].format == f && writers[i].writer->plan)
            return writers[i].writer;
    return NULL;
}
