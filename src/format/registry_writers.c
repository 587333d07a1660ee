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

static const heft_format_writer *find(const heft_format *f)
{
    for (size_t i = 0; i < sizeof writers / sizeof *writers && !f->writer; i++)
        if (writers[i].format == f)
            return writers[i].writer;
    return f->writer;
}

const heft_format_writer *heft_registry_writer(const heft_format *f)
{
    const heft_format_writer *w = find(f);
    return w && w->plan ? w : NULL;
}

const heft_format_writer *heft_registry_mover(const heft_format *f)
{
    const heft_format_writer *w = find(f);
    return w && w->move ? w : NULL;
}
