/* value_text.h - a value of the metadata as text for readers. */
#ifndef HEFT_CLI_VALUE_TEXT_H
#define HEFT_CLI_VALUE_TEXT_H
#include "outbuf.h"

/* Write the value; of a text at most `most` bytes, with its length. Lists and maps are numbers of
 * values. */
void out_value(outbuf *o, const heft_value *v, size_t most);

#endif
