#include "checks.h"

#include <stdlib.h>

#include "model.h"

bool checks_add(checks *c, uint32_t part)
{
    if (c->count == c->room) {
        uint32_t room = c->room < UINT32_MAX / 2 ? 2 * c->room + 64 : UINT32_MAX;
        uint32_t *parts = room > c->room ? realloc(c->parts, (size_t)room * sizeof *parts) : NULL;
        if (!parts) {
            c->no_memory = true;
            return false;
        }
        c->parts = parts;
        c->room = room;
    }
    c->parts[c->count++] = part;
    return true;
}

int checks_begin(checks *c, const heft_file *f, const char *path)
{
    static const uint32_t none;
    heft_error err;
    if (model_opening.no_verify)
        return CODE_DONE;
    if (c->no_memory)
        return say_code(CODE_SYSTEM, path, "no memory for a list of parts");
    const uint32_t *parts = c->parts ? c->parts : &none; /* NULL would be all of them */
    return heft_checked_read_open(&c->read, f, parts, c->count, &err) ? say_error(path, &err)
                                                                      : CODE_DONE;
}

int checks_end(checks *c, const char *path)
{
    heft_error err;
    return c->read && heft_checked_read_end(c->read, &err) ? say_error(path, &err) : CODE_DONE;
}

void checks_close(checks *c)
{
    heft_checked_read_close(c->read);
    free(c->parts);
    *c = (checks){ .read = NULL };
}
