/* quantised.h - the quantised tensors of a model: found with the model's settings, and counted. */
#ifndef HEFT_CLI_QUANTISED_H
#define HEFT_CLI_QUANTISED_H
#include <heft/scheme.h>

#include "text/jsonout.h"

/* Find the quantised tensors of the model opened from `path`, whose config.json, or another file
 * with settings, may name the scheme. Close with heft_schemes_close(). Return an exit code. */
int quantised_open(heft_schemes **out, const heft_file *f, const char *path);
/* Do as quantised_open() for a conversion: settings of a model on a server are requested. */
int quantised_open_to_convert(heft_schemes **out, const heft_file *f, const char *path);
/* Set *out if the folder of the model has settings of a quantised model. Return an exit code. */
int quantised_has_settings(bool *out, const char *path);
/* Return whether a tensor of a file that heft_schemes_decode() has made is a decoded one. */
bool quantised_is_decoded(const heft_file *decoded, uint32_t tensor);
/* Write a line for each kind of quantised tensors, or nothing if there are none. decoded has the
 * parameters of those that are decoded; NULL: none. */
void quantised_print(outbuf *o, const heft_schemes *s, const heft_file *decoded);
/* Write the same as the member "quantised", a list. */
void quantised_json(json *j, const heft_schemes *s, const heft_file *decoded);

/* Write a short name of the scheme: "fp8-block", "gptq-4bit", "bitsandbytes-nf4". */
void quantised_put_label(outbuf *o, const heft_quantised *q);
/* Return the role of a stored tensor in the quantised tensor *of, of which it is a part, or NULL if
 * it is no part. s may be NULL, and `stored` HEFT_NONE. */
const char *quantised_role(const heft_schemes *s, uint32_t stored, heft_quantised *of);
/* Write the members "scheme", "variant", "bits" and "block", as far as they are known. */
void quantised_json_scheme(json *j, const heft_quantised *q);

#endif
