/* quantise_methods.h - the names that --quantize takes, as a table. */
#ifndef HEFT_QUANTISE_METHODS_H
#define HEFT_QUANTISE_METHODS_H
#include "base/out.h"
#include "scheme/encoding.h"

enum {                           /* heft_quantise_row.takes: what may follow the name */
       HEFT_TAKES_ROWS = 1,      /* "channel": a scale for each row */
       HEFT_TAKES_GROUPS = 2,    /* "64": a scale for 64 elements of a row */
       HEFT_TAKES_BLOCKS = 4,    /* "128x64": a scale for a block of rows x columns */
       HEFT_TAKES_GPT_OSS = 8,   /* "gpt-oss": the names of gpt-oss */
       HEFT_TAKES_MODELOPT = 16, /* "modelopt": the names of ModelOpt */
       HEFT_TAKES_GGUF = 32      /* "gguf": blocks of GGUF */
};

typedef struct heft_quantise_row {
    const char *name, *options, *summary;
    const heft_scheme_encoder *encoder;
    uint64_t block[2]; /* the usual one */
    uint32_t bits;     /* integers have; else 0 */
    unsigned takes;
    /* Write the members of "quantization_config" up to the list of modules that are left alone, and
     * its key.  NULL: there are no settings. */
    void (*config)(heft_out *o, const heft_encode_choice *c);
} heft_quantise_row;

/* Return row i, or NULL after the last. */
const heft_quantise_row *heft_quantise_row_at(uint32_t i);
/* Read "NAME" or "NAME:OPTION,OPTION".  HEFT_E_ARGUMENT: the message lists what there is. */
heft_status heft_encode_choice_read(heft_encode_choice *out, heft_str text, heft_error *err);
/* A reason to leave a tensor alone. */
typedef struct heft_exemption {
    const char *why; /* "embedding" */
    bool is_matrix;  /* programs would take the module for a quantised one: it must be listed */
} heft_exemption;
/* Return why a tensor is left alone by default; NULL: it is not. */
const heft_exemption *heft_left_alone(heft_str name, uint32_t rank);

#endif
