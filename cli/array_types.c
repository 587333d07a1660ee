#include "array_types.h"

#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "unmatched.h"

typedef struct rule {
    char *glob;
    heft_dtype type;
    bool is_used;
} rule;

static struct {
    rule *items;
    size_t count;
    bool no_memory;
} rules;

bool array_types_add(const char *text)
{
    const char *equals = strrchr(text, '=');
    heft_dtype type = equals ? heft_dtype_find(heft_str_from(equals + 1)) : HEFT_UNTYPED;
    if (!type || equals == text)
        return false;
    rule *items = realloc(rules.items, (rules.count + 1) * sizeof *items);
    if (items)
        rules.items = items;
    char *glob = items ? strndup(text, (size_t)(equals - text)) : NULL;
    if (glob)
        rules.items[rules.count++] = (rule){ glob, type, false };
    rules.no_memory = rules.no_memory || !glob;
    return true; /* the process keeps the rules */
}

/* The first rule that matches the name counts. */
static heft_dtype choose(void *ctx, heft_str array, uint64_t bytes)
{
    (void)ctx;
    (void)bytes;
    for (size_t i = 0; i < rules.count; i++)
        if (name_matches(&rules.no_memory, array, rules.items[i].glob)) {
            rules.items[i].is_used = true;
            return rules.items[i].type;
        }
    return HEFT_UNTYPED;
}

const heft_array_types *array_types_chosen(void)
{
    static const heft_array_types types = { NULL, choose };
    return rules.count || rules.no_memory ? &types : NULL;
}

/* Return a tensor that the pattern matches, or HEFT_NONE. */
static uint32_t find_match(const heft_file *f, const char *glob)
{
    for (uint32_t i = 0; i < heft_tensor_count(f); i++)
        if (name_matches(&rules.no_memory, heft_tensor_at(f, i).name, glob))
            return i;
    return HEFT_NONE;
}

static int check_rule(const rule *r, const heft_file *f, const char *path)
{
    uint32_t tensor = find_match(f, r->glob);
    if (tensor != HEFT_NONE) {
        heft_tensor t = heft_tensor_at(f, tensor);
        const char *type = dtype_name(t.dtype);
        return say_status(HEFT_E_ARGUMENT, path,
                          "tensor '%.*s' has a type, %s: --view is for arrays that are stored "
                          "without one (--cast of `heft convert` converts values)",
                          (int)t.name.len, t.name.ptr, type ? type : "other values");
    }
    unmatched u = { .f = f, .path = path };
    unmatched_say(&u, "view", r->glob);
    return u.code;
}

int array_types_check(const heft_file *f, const char *path)
{
    int code = CODE_DONE;
    for (size_t i = 0; i < rules.count && !code; i++)
        if (!rules.items[i].is_used)
            code = check_rule(&rules.items[i], f, path);
    return rules.no_memory ? say_status(HEFT_E_NOMEM, path, "no memory for --view") : code;
}

void array_types_release(void)
{
    for (size_t i = 0; i < rules.count; i++)
        free(rules.items[i].glob);
    free(rules.items);
    rules.items = NULL;
    rules.count = 0;
    rules.no_memory = false;
}
