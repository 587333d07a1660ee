/* crypto_linked.c - the functions of a linked libcrypto: see -Dlink_libcrypto. */
#include "port/libraries/crypto_library.h"

static const heft_crypto_functions functions = {
#define FUNCTION(name) .name = (name),
#include "port/libraries/crypto_functions.def"
#undef FUNCTION
};

const heft_crypto_functions *const heft_crypto = &functions;

heft_status heft_crypto_load(heft_error *err)
{
    (void)err;
    return HEFT_OK;
}
