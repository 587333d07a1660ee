/* no_defaults.c - what a build without an operating system has: nothing but the floor. */
#include <heft/heft_ext.h>

const heft_host *heft_host_default(void)
{
    static const heft_host host = { .size = sizeof host };
    return &host;
}
