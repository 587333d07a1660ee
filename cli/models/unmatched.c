
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "models/model.h"
#include "text/words.h"

enum { HINT_BYTES = 512 };

static bool is_in_module(heft_str name, heft_str module, bool at_start)
{
    for (size_t i = 0; i + module.len < name.len; i++) {
        bool begins = !i || (!at_start && name.ptr[i - 1] == '.');
        if (begins && name.ptr[i + module.len] == '.' &&
            !memcmp(name.ptr + i, module.ptr, module.len))
            return true;
        if (at_start)
            return false;
    }
    return false;
}

/* Return how many tensors are in the module, at the beginning of the name or anywhere. */
static uint32_t count_in_module(const heft_file *f, heft_str module, bool at_start)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < heft_tensor_count(f); i++)
        count += is_in_module(heft_tensor_at(f, i).name, module, at_start);
    return count;
}

/* A module's name alone matches none of its tensors. */
static bool hint_at_module(char out[HINT_BYTES], const heft_file *f, const char *glob)
{
    enum { LONGEST = 200 };
    heft_str module = str_of(glob);
    if (!module.len || module.len > LONGEST || strpbrk(glob, "*?[{"))
        return false;
    if (glob[module.len - 1] == '.')
        module.len--;
    for (int at_start = 1; at_start >= 0; at_start--) {
        uint32_t count = count_in_module(f, module, at_start);
        if (!count)
            continue;
        snprintf(out, HINT_BYTES, "; it is a module: '%s%.*s.*' matches %s%u tensor%s",
                 at_start ? "" : "*", (int)module.len, glob, count == 1 ? "its " : "", count,
                 count == 1 ? "" : "s");
        return true;
    }
    return false;
}

static void hint_at_name(char out[HINT_BYTES], const heft_file *f, const char *glob)
{
    suggestion s = { .word = str_of(glob) };
    for (uint32_t i = 0; i < heft_tensor_count(f); i++)
        suggestion_try(&s, heft_tensor_at(f, i).name);
    suggestion_text(out, &s);
}

/* `heft ls A B` takes B for a pattern. */
static bool hint_at_file(char out[HINT_BYTES], const char *glob)
{
    if (access(glob, F_OK))
        return false;
    snprintf(out, HINT_BYTES,
             "; it is a file, but only the first argument names one (`heft info` "
             "takes several, `heft diff` compares two)");
    return true;
}

void unmatched_say(unmatched *u, const char *option, const char *glob)
{
    char hint[HINT_BYTES] = "";
    bool is_expression = option && (!strcmp(option, "rename") || !strcmp(option, "tensor-type"));
    bool is_file = !option && hint_at_file(hint, glob);
    if (!is_file && !is_expression && !hint_at_module(hint, u->f, glob))
        hint_at_name(hint, u->f, glob);
    const char *dashes = option ? "--" : "", *space = option ? " " : "";
    option = option ? option : "";
    if (u->strict)
        u->code = say_status(HEFT_E_ARGUMENT, u->path, "no tensor matches %s%s%s'%s'%s", dashes,
                             option, space, glob, hint);
    else
        say(MESSAGE_WARNING, u->path, "no tensor matches %s%s%s'%s'%s", dashes, option, space, glob,
            hint);
}

void unmatched_check(unmatched *u, const char *option, const char *glob)
{
    for (uint32_t i = 0; i < heft_tensor_count(u->f); i++)
        if (name_matches(&u->no_memory, heft_tensor_at(u->f, i).name, glob) || u->no_memory)
            return;
    unmatched_say(u, option, glob);
}
