/* no_sign.c - `heft verify --signature` in a build without the module 'sign'. */
#include "command.h"
#include "verify_signature.h"

int verify_signature(const signature_request *r)
{
    (void)r;
    return command_say_left_out("--signature", "sign");
}
