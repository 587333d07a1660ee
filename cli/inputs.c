#include "inputs.h"

#include <stdio.h>
#include <stdlib.h>

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

/* ---- several models that become one ---- */

/* Whether file i is one that another file has as a shard; *no_memory is set when that cannot be told. */
static bool is_part(bool *no_memory, const inputs *in, uint32_t i)
{
    struct stat about;
    bool is = false;
    if (stat(in->paths[i], &about) || !S_ISREG(about.st_mode))
        return false;
    for (uint32_t k = 0; k < in->count && !is; k++)
        is = k != i && heft_shard_file_count(in->files[k]) && !path_is_same(in->paths[k], &about) &&
             model_has_file(no_memory, in->files[k], in->paths[k], &about);
    return is;
}

int inputs_open(inputs *in)
{
    int code = CODE_DONE;
    bool no_memory = false;
    in->files = calloc(in->count, sizeof *in->files);
    in->kept = calloc(in->count, sizeof *in->kept);
    in->numbers = calloc(in->count, sizeof *in->numbers);
    if (!in->files || !in->kept || !in->numbers)
        return say_code(CODE_SYSTEM, NULL, "no memory for a list of files");
    for (uint32_t i = 0; i < in->count && !code; i++)
        code = model_load_whole(&in->files[i], in->paths[i]);
    if (code)
        return code;
    for (uint32_t i = 0; i < in->count; i++)
        if (!is_part(&no_memory, in, i)) {
            in->numbers[in->kept_count] = i;
            in->kept[in->kept_count++] = in->files[i];
        }
    if (!in->kept_count)
        in->kept[in->kept_count++] = in->files[0];
    if (no_memory)
        return say_code(CODE_SYSTEM, NULL, "no memory for a list of files");
    for (uint32_t i = 0; i < in->kept_count; i++)
        model_say_notices(in->kept[i], in->paths[in->numbers[i]]);
    return CODE_DONE;
}

int inputs_join(inputs *in, const heft_join_options *how, const char *name)
{
    heft_error err;
    if (in->kept_count < 2 || !heft_file_join(&in->joined, in->kept, in->kept_count, how, &err))
        return CODE_DONE;
    int code = model_say_not_open(name, &err);
    return err.status == HEFT_E_ARGUMENT ? CODE_CANNOT : code;
}

const heft_file *inputs_model(const inputs *in)
{
    return in->joined ? in->joined : in->kept[0];
}

void inputs_close(inputs *in)
{
    heft_file_close(in->joined);
    for (uint32_t i = 0; in->files && i < in->count; i++)
        heft_file_close(in->files[i]);
    free(in->files);
    free(in->kept);
    free(in->numbers);
}
