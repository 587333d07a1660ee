/* no_defaults.c - the default host without an operating system: no allocator, no codecs. */
#include <heft/heft_ext.h>

const heft_host *heft_host_default(void)
{
    static const heft_host host = { .size = sizeof host };
    return &host;
}
