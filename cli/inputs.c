#include "inputs.h"

#include <stdio.h>

#include "textfile.h"

bool inputs_have(char why[128], int *code, const input *all, size_t count, const struct stat *about)
{
    enum { WHY = 128 };
    for (size_t i = 0; i < count; i++) {
        bool no_memory = false, is = all[i].path && path_is_same(all[i].path, about);
        if (!is && all[i].model)
            is = model_has_file(&no_memory, all[i].model, all[i].path, about);
        if (!is && !no_memory)
            continue;
        if (is)
            snprintf(why, WHY, "is %s: an input is never written to", all[i].is);
        else
            snprintf(why, WHY, "no memory to tell whether it is an input");
        *code = is ? CODE_USAGE : CODE_SYSTEM;
        return true;
    }
    return false;
}

int inputs_check(const char *name, const input *all, size_t count, const struct stat *about)
{
    char why[128];
    int code = CODE_DONE;
    if (inputs_have(why, &code, all, count, about))
        say(name, "%s", why);
    return code;
}

bool inputs_is_part(bool *no_memory, char *const *paths, heft_file *const *files, uint32_t count,
                    uint32_t i)
{
    struct stat about;
    bool is = false;
    if (stat(paths[i], &about) || !S_ISREG(about.st_mode))
        return false;
    for (uint32_t k = 0; k < count && !is; k++)
        is = k != i && heft_shard_file_count(files[k]) && !path_is_same(paths[k], &about) &&
             model_has_file(no_memory, files[k], paths[k], &about);
    return is;
}
