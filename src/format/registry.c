/* registry.c - the formats of this build, in the order of formats.def.
 *
 * A line of formats.def names a format and the source files.  With -Dformats=..., Meson generates a
 * copy with only the selected formats, which comes first in the include path.
 */
#include "format/format.h"

#define X(name, ...) extern const heft_format heft_format_##name;
#include "format/formats.def"
#undef X

#define X(name, ...) &heft_format_##name,
static const heft_format *const formats[] = {
#include "format/formats.def"
};
#undef X

uint32_t heft_registry_count(void)
{
    return sizeof formats / sizeof formats[0];
}

const heft_format *heft_registry_at(size_t i)
{
    return i < heft_registry_count() ? formats[i] : NULL;
}
