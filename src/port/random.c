/* random.c - random numbers of the system. */
#include <errno.h>
#include <sys/random.h>

#include <heft/params.h>

#include "base/compiler.h"
#include "port/port.h"

heft_status heft_param_id_new(uint64_t *out, heft_error *err)
{
    uint8_t bytes[8];
    ssize_t n;
    do /* a request this small comes whole or not at all */
        n = getrandom(bytes, sizeof bytes, 0);
    while (n < 0 && errno == EINTR);
    *out = 0;
    if (n != (ssize_t)sizeof bytes)
        return heft_os_error(err, errno, "the system gives no random numbers");
    *out = heft_le64(bytes);
    return HEFT_OK;
}
