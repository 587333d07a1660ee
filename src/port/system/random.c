/* random.c - random numbers from the system. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include <heft/heft_ext.h>

#include "port/port.h"

heft_status heft_random_u64(uint64_t *out, heft_error *err)
{
    ssize_t n;
    *out = 0;
    do /* getrandom() never returns part of a request of up to 256 bytes */
        n = getrandom(out, sizeof *out, 0);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *out
               ? HEFT_OK
               : heft_os_error(err, errno, "the system returned no random numbers");
}

void heft_os_entropy(void *buf, size_t len)
{
    if (getrandom(buf, len, GRND_NONBLOCK) != (ssize_t)len)
        memset(buf, 0, len);
}
