#include "models/checks.h"

#include <stdlib.h>

#include "models/model.h"

bool checks_add(checks *c, uint32_t part)
{
    if (c->count == c->capacity) {
        uint32_t capacity = c->capacity < UINT32_MAX / 2 ? 2 * c->capacity + 64 : UINT32_MAX;
        uint32_t *parts = capacity > c->capacity
                              ? realloc(c->parts, (size_t)capacity * sizeof *parts)
                              : NULL;
        if (!parts) {
            c->no_memory = true;
            return false;
        }
        c->parts = parts;
        c->capacity = capacity;
    }
    c->parts[c->count++] = part;
    return true;
}

bool checks_add_tensor(checks *c, const heft_file *f, uint32_t tensor)
{
    heft_tensor t = heft_tensor_at(f, tensor);
    bool ok = true;
    for (uint32_t i = 0; i < t.part_count && ok; i++)
        ok = checks_add(c, t.first_part + i);
    return ok;
}

int checks_begin(checks *c, const session *s, const heft_file *f, const char *path)
{
    static const uint32_t none;
    heft_error err;
    c->f = f;
    if (s->no_verify)
        return CODE_DONE;
    if (c->no_memory)
        return say_status(HEFT_E_NOMEM, path, "no memory for a list of parts");
    const uint32_t *parts = c->parts ? c->parts : &none; /* NULL would select all parts */
    return heft_checked_read_open(&c->read, f, parts, c->count, &err) ? say_error(path, &err)
                                                                      : CODE_DONE;
}

int checks_end(checks *c, const char *path)
{
    heft_error err;
    if (c->f && heft_file_is_unchanged(c->f, &err))
        return say_error(path, &err);
    return c->read && heft_checked_read_end(c->read, &err) ? say_error(path, &err) : CODE_DONE;
}

void checks_close(checks *c)
{
    heft_checked_read_close(c->read);
    free(c->parts);
    *c = (checks){ .read = NULL };
}
