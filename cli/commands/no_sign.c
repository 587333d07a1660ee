/* no_sign.c - `heft verify --signature` in a build without the module 'sign'. */
#include "commands/verify_signature.h"
#include "options/command.h"

int verify_signature(const signature_request *r)
{
    (void)r;
    return command_say_left_out("--signature", "sign");
}
