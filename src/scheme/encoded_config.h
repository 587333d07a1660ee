/* encoded_config.h - "quantization_config" of config.json for encoded tensors. */
#ifndef HEFT_ENCODED_CONFIG_H
#define HEFT_ENCODED_CONFIG_H
#include "scheme/quantise_methods.h"

/* Members of heft_quantise_row. */
void heft_config_of_fp8(heft_out *o, const heft_encode_choice *c);
void heft_config_of_integers(heft_out *o, const heft_encode_choice *c);
void heft_config_of_mxfp4(heft_out *o, const heft_encode_choice *c);
void heft_config_of_mxfp8(heft_out *o, const heft_encode_choice *c);
void heft_config_of_nvfp4(heft_out *o, const heft_encode_choice *c);

#endif
