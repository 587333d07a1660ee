/* code_tables.c - decodes numbers of 4 bits by tables. */
#include "scheme/code_tables.h"

#include "base/checked_math.h"

enum { NUMBERS = 16, LEAST_WIDTH = 16, AT_ONCE = 16 /* groups */ };

heft_coded_run heft_coded_run_of(uint64_t column, uint64_t width, size_t count)
{
    uint64_t into = column - heft_div(column, width) * width;
    return (heft_coded_run){ .into = into, .width = width, .count = count };
}

bool heft_coded_run_fits(const heft_coded_run *run)
{
    bool is_whole = !run->into || run->width - run->into >= run->count;
    return is_whole && run->width >= LEAST_WIDTH && run->width % 2 == 0 && run->into % 2 == 0 &&
           run->count % 2 == 0;
}

void heft_look_up_run(const heft_coded_run *run, const heft_code_table *tables,
                      const uint8_t *which, uint8_t *out)
{
    size_t width = run->into || run->width > run->count ? run->count : (size_t)run->width;
    size_t groups = run->count / width, done = groups * width;
    const heft_packed_loops *loops = heft_packed_now();
    loops->look_up(out, run->codes, tables, which, width, groups);
    if (done < run->count)
        loops->look_up(out + 2 * done, run->codes + done / 2, tables, which + groups,
                       run->count - done, 1);
}

/* Decode whole groups, and at the end perhaps a part of one. */
static void look_up_some(const heft_coded_run *run, size_t groups, const float *zero,
                         const float *scale, heft_dtype as, uint8_t *out)
{
    static const uint8_t which[AT_ONCE] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    float numbers[AT_ONCE * NUMBERS];
    heft_code_table tables[AT_ONCE];
    for (size_t g = 0; g < groups; g++)
        for (size_t i = 0; i < NUMBERS; i++)
            numbers[g * NUMBERS + i] = ((float)(int32_t)i - zero[g]) * scale[g];
    if (as == HEFT_BF16)
        heft_packed_now()->bf16((uint8_t *)tables, numbers, groups * NUMBERS);
    else
        (void)heft_dtype_cast(tables, as, numbers, HEFT_F32, groups * NUMBERS);
    heft_look_up_run(run, tables, which, out);
}

void heft_look_up_scaled(const heft_coded_run *run, const float *zero, const float *scale,
                         heft_dtype as, uint8_t *out)
{
    heft_coded_run some = *run;
    for (size_t left = run->count; left; left -= some.count) {
        size_t groups = 1;
        some.count = left;
        if (!run->into && run->width < left) {
            groups = (left - 1) / (size_t)run->width + 1;
            groups = groups < AT_ONCE ? groups : AT_ONCE;
            some.count = groups * (size_t)run->width < left ? groups * (size_t)run->width : left;
        }
        look_up_some(&some, groups, zero, scale, as, out);
        some.codes += some.count / 2;
        out += 2 * some.count;
        zero += groups;
        scale += groups;
    }
}
