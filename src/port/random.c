/* random.c - random numbers of the system. */
#include <errno.h>
#include <sys/random.h>

#include <heft/heft_ext.h>

#include "port/port.h"

heft_status heft_random_u64(uint64_t *out, heft_error *err)
{
    ssize_t n;
    *out = 0;
    do /* a request this small comes whole or not at all */
        n = getrandom(out, sizeof *out, 0);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *out
               ? HEFT_OK
               : heft_os_error(err, errno, "the system gives no random numbers");
}
