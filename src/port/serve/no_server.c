/* no_server.c - a build without libmicrohttpd serves nothing. */
#include <heft/private.h>

#include "base/error.h"

heft_status heft_server_open(heft_server **out, uint16_t port, heft_error *err)
{
    (void)port;
    *out = NULL;
    return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                            "this build of Heft has no libmicrohttpd, which serves pages: rebuild "
                            "heft with -Dmicrohttpd=enabled");
}

const char *heft_server_address(const heft_server *s)
{
    (void)s;
    return "";
}

heft_status heft_server_run(heft_server *s, const heft_served_set *set, heft_error *err)
{
    (void)s, (void)set;
    return heft_error_plain(err, HEFT_E_UNSUPPORTED, "this build of Heft has no libmicrohttpd");
}

void heft_server_close(heft_server *s)
{
    (void)s;
}
