/* no_map.c - `--map` in a build without the module 'map'. */
#include "models/mapped.h"
#include "models/single_file.h"
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

void single_file_open(single_file *s, const heft_file *f)
{
    *s = (single_file){ .f = f };
}

heft_str single_file_name(single_file *s, uint32_t tensor)
{
    (void)s, (void)tensor;
    return (heft_str){ NULL, 0 };
}

void single_file_release(single_file *s)
{
    (void)s;
}
