#include "float_sets.h"

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}

static bool always(void)
{
    return true;
}

const float_set float_sets[] = {
    { has_avx512, &float_loops_avx512 },
    { has_avx2, &float_loops_avx2 },
    { always, &float_loops_baseline },
};
