/* no_map.c - `--map` in a build without the module 'map'. */
#include "models/mapped.h"
#include "options/command.h"

int mapped_open(mapped *m, const session *s, const heft_file *f, const char *path,
                mapped_output output)
{
    (void)f, (void)path, (void)output;
    *m = (mapped){ .map = NULL };
    return s->map ? command_say_left_out("--map", "map") : CODE_DONE;
}

void mapped_release(mapped *m)
{
    *m = (mapped){ .map = NULL };
}
