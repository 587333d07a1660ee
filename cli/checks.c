#include "checks.h"

#include <heft/share.h>
#include <stdlib.h>

#include "model.h"

static bool add(part_list *l, uint32_t part)
{
    if (l->count == l->capacity) {
        uint32_t capacity = l->capacity < UINT32_MAX / 2 ? 2 * l->capacity + 64 : UINT32_MAX;
        uint32_t *parts = capacity > l->capacity
                              ? realloc(l->parts, (size_t)capacity * sizeof *parts)
                              : NULL;
        if (!parts)
            return false;
        l->parts = parts;
        l->capacity = capacity;
    }
    l->parts[l->count++] = part;
    return true;
}

bool checks_add(checks *c, uint32_t part, bool is_own)
{
    bool ok = (!is_own || add(&c->own, part)) && (!c->is_share || add(&c->all, part));
    c->no_memory = c->no_memory || !ok;
    return ok;
}

bool checks_add_tensor(checks *c, const heft_file *f, uint32_t tensor, bool is_own)
{
    heft_tensor t = heft_tensor_at(f, tensor);
    bool ok = true;
    for (uint32_t i = 0; i < t.part_count && ok; i++)
        ok = checks_add(c, t.first_part + i, is_own);
    return ok;
}

int checks_begin(checks *c, const heft_file *f, const char *path)
{
    static const uint32_t none;
    heft_error err;
    c->f = f;
    if (model_settings.no_verify)
        return CODE_DONE;
    if (c->no_memory)
        return say_status(HEFT_E_NOMEM, path, "no memory for a list of parts");
    const uint32_t *own = c->own.parts ? c->own.parts : &none; /* NULL would select all parts */
    const uint32_t *all = c->all.parts ? c->all.parts : &none;
    heft_status st = c->is_share ? heft_share_read_open(&c->read, f, own, c->own.count, all,
                                                        c->all.count, &err)
                                 : heft_checked_read_open(&c->read, f, own, c->own.count, &err);
    return st ? say_error(path, &err) : CODE_DONE;
}

int checks_end(checks *c, const char *path)
{
    heft_error err;
    if (c->f && heft_file_is_unchanged(c->f, &err))
        return say_error(path, &err);
    return c->read && heft_checked_read_end(c->read, &err) ? say_error(path, &err) : CODE_DONE;
}

int checks_put_crcs(const checks *c, outbuf *o, const char *path)
{
    heft_error err;
    heft_blob crcs = { NULL, 0, NULL };
    if (c->read && heft_share_read_crcs(&crcs, c->read, &err))
        return say_error(path, &err);
    out_bytes(o, crcs.data, crcs.size);
    out_char(o, '\n');
    heft_blob_free(&crcs);
    return CODE_DONE;
}

bool checks_join_crcs(const checks *c, heft_str line)
{
    return c->read ? !heft_share_read_join(c->read, line, NULL) : !line.len;
}

void checks_close(checks *c)
{
    heft_checked_read_close(c->read);
    free(c->own.parts);
    free(c->all.parts);
    *c = (checks){ .read = NULL };
}
