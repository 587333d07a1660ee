/* map_operations.c - the operations of maps, and those that are made of others. */
#include "map/map_rules.h"

const heft_map_op_row heft_map_op_rows[HEFT_MAP_KINDS] = {
    [HEFT_MAP_FOLD] = { "fold", HEFT_MAP_MERGE, 3, 3, false, false, false },
    [HEFT_MAP_MERGE] = { "merge", HEFT_MAP_FOLD, 3, 3, false, false, false },
    [HEFT_MAP_SWAP] = { "swap", HEFT_MAP_SWAP, 2, 2, false, false, false },
    [HEFT_MAP_SWAP_NUMBERS] = { "swap-numbers", HEFT_MAP_SWAP_NUMBERS, 2, 2, false, false, false },
    [HEFT_MAP_STACK] = { "stack", HEFT_MAP_UNSTACK, 1, 2, true, false, false },
    [HEFT_MAP_UNSTACK] = { "unstack", HEFT_MAP_STACK, 1, 2, true, false, false },
    [HEFT_MAP_JOIN] = { "join", HEFT_MAP_TAKE, 1, 1, false, true, false },
    [HEFT_MAP_TAKE] = { "take", HEFT_MAP_JOIN, 1, 1, false, false, true },
    [HEFT_MAP_CONCAT] = { "concat", HEFT_MAP_SPLIT, 1, HEFT_MAP_ARGS, false, true, false },
    [HEFT_MAP_SPLIT] = { "split", HEFT_MAP_CONCAT, 1, HEFT_MAP_ARGS, false, false, true },
    [HEFT_MAP_RESIZE] = { "resize", HEFT_MAP_RESIZE, 3, 3, false, false, false },
    [HEFT_MAP_ADD] = { "add", HEFT_MAP_ADD, 1, 1, false, false, false },
    [HEFT_MAP_F32] = { "f32", HEFT_MAP_F32, 0, 0, false, false, false },
};

/* $1 and $2 are arguments, $+ is the dimension after $1.  Rotary rows of a head are in two halves
 * on the left side, and in pairs on the right one. */
const heft_map_macro heft_map_macros[] = {
    { "transpose", "swap 0 1" },
    { "rotary", "fold 0 $1 _; fold 1 2 _; swap 1 2; merge 1 _ 2; merge 0 $1 _" },
    { "interleave", "join $+; merge $1 _ $2" },
    { "deinterleave", "fold $1 _ $2; take $+" },
    { NULL, NULL },
};
