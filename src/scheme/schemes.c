/* schemes.c - the table of schemes. */
#include "scheme/recognition.h"

/* In the order of precedence: a scheme with more particular parts comes first. */
static const heft_scheme *const schemes[] = {
    &heft_scheme_comfyui,      &heft_scheme_nvfp4,  &heft_scheme_mxfp4,
    &heft_scheme_mxfp8,        &heft_scheme_fp8,    &heft_scheme_compressed_tensors,
    &heft_scheme_bitnet,       &heft_scheme_gptq,   &heft_scheme_awq,
    &heft_scheme_bitsandbytes, &heft_scheme_mlx,    &heft_scheme_modelopt,
    &heft_scheme_torch,        &heft_scheme_qfloat,
};

const heft_scheme *heft_scheme_at(uint32_t i)
{
    enum { COUNT = sizeof schemes / sizeof *schemes, ALL = COUNT + !HEFT_IS_LEAN };
    if (i < COUNT)
        return schemes[i];
    return i < ALL ? &heft_scheme_onnx : heft_other_scheme_at(i - ALL); /* no page reads ONNX */
}
