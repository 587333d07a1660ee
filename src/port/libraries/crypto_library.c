/* crypto_library.c - loads libcrypto when the first digest or signature needs the library.
 *
 * A linked libcrypto is loaded with every program.  The 19,000 addresses in its tables take longer
 * to adjust than a command takes to list a small file. */
#include "port/libraries/crypto_library.h"

#include <dlfcn.h>
#include <stddef.h>

#include "base/error.h"
#include "port/system/loaded_library.h"

#define LIBRARY "libcrypto.so." OPENSSL_MSTR(OPENSSL_SHLIB_VERSION)

static heft_crypto_functions functions;
const heft_crypto_functions *const heft_crypto = &functions;

static const heft_library_function names[] = {
#define FUNCTION(name) { #name, offsetof(heft_crypto_functions, name) },
#include "port/libraries/crypto_functions.def"
#undef FUNCTION
};
static heft_loaded_library library = HEFT_LOADED_LIBRARY(LIBRARY, functions, names);

heft_status heft_crypto_load(heft_error *err)
{
    heft_library_state state = heft_library_load(&library);
    if (state == HEFT_LIBRARY_NO_MEMORY)
        return heft_error_no_memory(err, "to load " LIBRARY);
    return state == HEFT_LIBRARY_LOADED
               ? HEFT_OK
               : heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                  "digests and signatures need libcrypto, which cannot be loaded "
                                  "(%s): install the package libssl3",
                                  dlerror());
}
