/* crypto_library.c - loads libcrypto when the first digest or signature needs the library.
 *
 * A linked libcrypto is loaded with every program.  The 19,000 addresses in its tables take longer
 * to adjust than a command takes to list a small file. */
#include "port/libraries/crypto_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "base/error.h"

#define LIBRARY "libcrypto.so." OPENSSL_MSTR(OPENSSL_SHLIB_VERSION)

static heft_crypto_functions functions;
static bool is_loaded;
const heft_crypto_functions *const heft_crypto = &functions;

static bool find_functions(void *library)
{
    static const struct {
        const char *name;
        size_t offset;
    } members[] = {
#define FUNCTION(name) { #name, offsetof(heft_crypto_functions, name) },
#include "port/libraries/crypto_functions.def"
#undef FUNCTION
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        void *function = dlsym(library, members[i].name);
        if (!function)
            return false;
        memcpy((char *)&functions + members[i].offset, &function, sizeof function);
    }
    return true;
}

static heft_status load(heft_error *err)
{
    errno = 0;
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library && errno == ENOMEM)
        return heft_error_no_memory(err, "to load " LIBRARY);
    is_loaded = library && find_functions(library);
    return is_loaded ? HEFT_OK
                     : heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                        "digests and signatures need libcrypto, which cannot be "
                                        "loaded (%s): install the package libssl3",
                                        dlerror());
}

heft_status heft_crypto_load(heft_error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    heft_status st = is_loaded ? HEFT_OK : load(err);
    pthread_mutex_unlock(&lock);
    return st;
}
