/* share_crcs.h - numbers and CRCs in the records of shares. */
#ifndef HEFT_SHARE_CRCS_H
#define HEFT_SHARE_CRCS_H
#include "core/read/partial_crcs.h"
#include "grammar/json.h"

/* Begin an array, or write the next number. */
void heft_share_put_number(heft_out *o, bool *any, uint64_t v);
void heft_share_end_array(heft_out *o, bool any);
/* Write an array [OFFSET,BYTES,CRC,...] with the first `kinds` CRCs of each segment. */
void heft_share_crcs_put(heft_out *o, const heft_partial_crcs *s, uint32_t kinds);

/* Read the next element of an array of numbers; false: the array ends, or j->st is set. */
bool heft_share_next_number(heft_json *j, uint64_t *out);
/* Read n further elements; false: j->st is set. */
bool heft_share_next_numbers(heft_json *j, uint64_t *out, uint32_t n);
heft_status heft_share_damaged(heft_json *j);
/* Add the rest of an array of heft_share_crcs_put(). */
heft_status heft_share_crcs_read(heft_json *j, heft_partial_crcs *to, uint32_t kinds);

#endif
