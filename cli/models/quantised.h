/* quantised.h - the quantised tensors of a model: found with the model's settings, and counted. */
#ifndef HEFT_CLI_QUANTISED_H
#define HEFT_CLI_QUANTISED_H
#include "text/jsonout.h"

/* Find the quantised tensors of the model opened from `path`, whose config.json, or another file
 * with settings, may name the scheme. Close with heft_schemes_close(). Return an exit code. */
int quantised_open(heft_schemes **out, const heft_file *f, const char *path);
/* Set *out if the folder of the model has settings of a quantised model. Return an exit code. */
int quantised_has_settings(bool *out, const heft_file *f, const char *path);
/* Write a line for each kind of quantised tensors, or nothing if there are none. */
void quantised_print(outbuf *o, const heft_schemes *s);
/* Write the same as the member "quantised", a list. */
void quantised_json(json *j, const heft_schemes *s);

#endif
