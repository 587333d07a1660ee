#include "models/unscaled.h"

#include <string.h>

#include "models/model.h"

static bool is_scale(const heft_quantised_part *p)
{
    return !strcmp(p->role, "global_scale");
}

int unscaled_add(unscaled *u, const session *s, const heft_file *f, const char *path,
                 uint32_t tensor)
{
    heft_error err;
    heft_tensor t = heft_tensor_at(f, tensor);
    if (t.dtype != HEFT_NVFP4 || s->raw_tensors)
        return CODE_DONE;
    if (!u->schemes && heft_schemes_open(&u->schemes, f, NULL, &err))
        return say_error(path, &err);
    uint32_t i = heft_schemes_find(u->schemes, tensor);
    uint32_t parts = i == HEFT_NONE ? 0 : heft_schemes_at(u->schemes, i).part_count;
    for (uint32_t k = 0; k < parts; k++) {
        heft_quantised_part p = heft_schemes_part_at(u->schemes, i, k);
        if (is_scale(&p) && !u->count++) {
            u->tensor = t.name;
            u->scale = heft_tensor_at(f, p.tensor).name;
        }
    }
    return CODE_DONE;
}

void unscaled_end(unscaled *u, const char *path)
{
    if (u->count == 1)
        say(MESSAGE_WARNING, path, "the values of '%.*s' are without its scale, '%.*s'",
            (int)u->tensor.len, u->tensor.ptr, (int)u->scale.len, u->scale.ptr);
    else if (u->count)
        say(MESSAGE_WARNING, path,
            "the values of %llu tensors are without their scales, as those of '%.*s' are "
            "without '%.*s'",
            (unsigned long long)u->count, (int)u->tensor.len, u->tensor.ptr, (int)u->scale.len,
            u->scale.ptr);
    heft_schemes_close(u->schemes);
    *u = (unscaled){ .count = 0 };
}
