/* no_remote.c - names of the Hugging Face cache and `heft verify --hub` in a build without the
 * module 'remote'.  The library refuses names and addresses when they are opened. */
#include "commands/verify_hub.h"
#include "models/profile.h"
#include "options/command.h"

int hub_take(session *s, const char **input, bool is_changed)
{
    (void)s, (void)input, (void)is_changed;
    return CODE_DONE;
}

int hub_print(bool as_json)
{
    (void)as_json;
    return command_say_left_out("hub:", "remote");
}

bool hub_name_of(hub_name *out, const char *path)
{
    (void)path;
    *out = (hub_name){ .os = 0 };
    return false;
}

bool hub_metadata_folder(char *out, unsigned long capacity, const char *dir)
{
    (void)out, (void)capacity, (void)dir;
    return false;
}

int verify_hub(const session *s, bool as_json)
{
    (void)s, (void)as_json;
    return command_say_left_out("--hub", "remote");
}
