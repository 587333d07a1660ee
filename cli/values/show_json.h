/* show_json.h - print the values of a tensor as JSON. */
#ifndef HEFT_CLI_SHOW_JSON_H
#define HEFT_CLI_SHOW_JSON_H
#include "values/slice.h"

/* Print a document with all values of a dense tensor, or of the slice that slice_text describes,
 * converted to `as`; the arguments are those of slice_reader_open(). Return an exit code. */
int show_json(outbuf *o, const session *s, const model_view *v, const char *path, uint32_t tensor,
              const char *slice_text, heft_dtype as);

#endif
