/* no_quantise.c - what the engine asks about encoders and decoders in a build without the module
 * 'quantise'. */
#include <heft/scheme.h>

#include "base/error.h"
#include "core/write/convert/copy.h"
#include "model/quality.h"

#define NEEDS_MODULE                                                                          \
    "needs the module 'quantise', which this build of Heft does not have; rebuild Heft with " \
    "'quantise' among -Dmodules"

const char heft_no_encoders[] = ": encoding blocks " NEEDS_MODULE;

bool heft_rows_can_encode(heft_dtype to, heft_dtype from)
{
    (void)to, (void)from;
    return false;
}

heft_status heft_rows_encode(uint8_t *dst, const heft_copy_context *c, uint32_t part,
                             const uint8_t *src, uint64_t first, uint64_t count, float *values,
                             heft_pair_sums *sums, heft_error *err)
{
    (void)dst, (void)c, (void)part, (void)src, (void)first, (void)count, (void)values, (void)sums;
    return heft_error_plain(err, HEFT_E_UNSUPPORTED, "encoding blocks " NEEDS_MODULE);
}

heft_status heft_quality_add(uint32_t *out, heft_quality *q, heft_str name, heft_dtype from,
                             const char *type, heft_error *err)
{
    (void)q, (void)name, (void)from, (void)type;
    *out = HEFT_NONE;
    return heft_error_plain(err, HEFT_E_UNSUPPORTED, "measuring quantised weights " NEEDS_MODULE);
}

void heft_quality_collect(heft_quality *q, uint32_t record, heft_pair_sums *take)
{
    (void)q, (void)record, (void)take;
}

heft_status heft_schemes_decode(heft_file **out, const heft_file *f, const heft_schemes *s,
                                const heft_decode_options *opt, heft_error *err)
{
    heft_error own;
    heft_quantised q = { .bits = 0 };
    (void)f, (void)opt;
    *out = NULL;
    err = heft_error_begin(err, &own);
    if (heft_schemes_count(s))
        q = heft_schemes_at(s, 0);
    return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                            "tensor %q is quantised (%q), and decoding " NEEDS_MODULE, q.name,
                            q.scheme);
}
