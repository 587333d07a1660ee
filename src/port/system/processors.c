/* processors.c - the number of processors, from Linux. */
#include <sched.h>

#include "port/port.h"

uint32_t heft_processors(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set))
        return 1;
    int n = CPU_COUNT(&set);
    return n < 1 ? 1 : (uint32_t)n;
}
