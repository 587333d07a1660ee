#include "float_sets.h"

static bool always(void)
{
    return true;
}

const float_set float_sets[] = { { always, &float_loops_baseline } };
