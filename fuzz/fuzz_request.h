/* fuzz_request.h - a conversion with options that a script chooses. */
#ifndef HEFT_FUZZ_REQUEST_H
#define HEFT_FUZZ_REQUEST_H
#include <heft/write.h>

#include "fuzz.h"

typedef struct fuzz_request {
    heft_convert_options opt;
    heft_write_options write;
    fuzz_script script; /* answers the questions about each tensor */
    heft_value set;
    char version[16];
    uint64_t planned;
    uint32_t losses; /* a note about a tensor counts: its form changes, it reads back differently */
    bool has_callback; /* tensors of the output may differ from those of the input */
} fuzz_request;

enum { FUZZ_SCRIPT = 16 }; /* bytes of a script with a request */

/* Initialise *r, which must not be moved afterwards. */
void fuzz_request_init(fuzz_request *r, const heft_host *host, const heft_format *to,
                       fuzz_script *s);

#endif
