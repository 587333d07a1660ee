/* value_rules.h - rules about the values of elements: a boolean is 0 or 1, and the unused half of
 * the last byte of half-byte elements is 0. */
#ifndef HEFT_VALUE_RULES_H
#define HEFT_VALUE_RULES_H
#include "model/index.h"

typedef enum heft_value_rule {
    HEFT_ANY_VALUE,
    HEFT_BOOL_VALUE, /* each byte is 0 or 1 */
    HEFT_HALF_BYTE,  /* the high half of the last byte is 0 */
} heft_value_rule;

/* Return the rule that applies to the decoded bytes of a part. */
heft_value_rule heft_value_rule_of(const heft_index *x, uint32_t part);
/* Return the offset of the first byte that breaks the rule, or len.  is_end: the last byte is the
 * last byte of the part. */
size_t heft_value_rule_broken_at(heft_value_rule rule, const uint8_t *p, size_t len, bool is_end);
const char *heft_value_rule_name(heft_value_rule rule); /* "heft/bool-value" */
const char *heft_value_rule_text(heft_value_rule rule); /* what is wrong with the value */

#endif
