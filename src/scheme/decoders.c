/* decoders.c - the decoders of schemes. */
#include "scheme/decoding.h"

const heft_scheme_decoder *heft_scheme_decoder_of(const heft_scheme *s)
{
    static const struct {
        const heft_scheme *scheme;
        const heft_scheme_decoder *decoder;
    } rows[] = {
        { &heft_scheme_awq, &heft_decoder_of_awq },
        { &heft_scheme_bitnet, &heft_decoder_of_bitnet },
        { &heft_scheme_bitsandbytes, &heft_decoder_of_bitsandbytes },
        { &heft_scheme_comfyui, &heft_decoder_of_comfyui },
        { &heft_scheme_compressed_tensors, &heft_decoder_of_compressed_tensors },
        { &heft_scheme_fp8, &heft_decoder_of_fp8 },
        { &heft_scheme_gptq, &heft_decoder_of_gptq },
        { &heft_scheme_mlx, &heft_decoder_of_mlx },
        { &heft_scheme_modelopt, &heft_decoder_of_modelopt },
        { &heft_scheme_mxfp4, &heft_decoder_of_mxfp4 },
        { &heft_scheme_mxfp8, &heft_decoder_of_mxfp8 },
        { &heft_scheme_nvfp4, &heft_decoder_of_nvfp4 },
        { &heft_scheme_onnx, &heft_decoder_of_onnx },
        { &heft_scheme_qfloat, &heft_decoder_of_qfloat },
        { &heft_scheme_torch, &heft_decoder_of_torch },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].scheme == s)
            return rows[i].decoder;
    return NULL;
}
