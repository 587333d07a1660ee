/* map_ties.h - tensors that one framework stores once and another one twice. */
#ifndef HEFT_MAP_TIES_H
#define HEFT_MAP_TIES_H
#include "map/map_rules.h"

/* Return true if the statement is about files of that side, and its condition is true. */
bool heft_map_tie_holds(const heft_map_tie *t, const heft_map_numbers *numbers, uint32_t side,
                        bool is_untie);

#endif
