
#include <stdlib.h>
#include <string.h>

#include "models/model.h"
#include "text/number_text.h"

typedef struct rule {
    char *glob;
    heft_dtype type;
    bool is_used;
} rule;

typedef struct array_types {
    heft_array_types chosen;
    size_t count;
    bool no_memory;
    rule rules[];
} array_types;

static bool read_rule(array_types *t, const char *text)
{
    const char *equals = strrchr(text, '=');
    heft_dtype type = equals ? heft_dtype_find(heft_str_from(equals + 1)) : HEFT_UNTYPED;
    if (!type || equals == text)
        return false;
    rule *r = &t->rules[t->count];
    *r = (rule){ strndup(text, (size_t)(equals - text)), type, false };
    t->count += r->glob != NULL;
    t->no_memory = t->no_memory || !r->glob;
    return true;
}

/* The first rule that matches the name counts. */
static heft_dtype choose(void *ctx, heft_str array, uint64_t bytes)
{
    array_types *t = ctx;
    (void)bytes;
    for (size_t i = 0; i < t->count; i++)
        if (name_matches(&t->no_memory, array, t->rules[i].glob)) {
            t->rules[i].is_used = true;
            return t->rules[i].type;
        }
    return HEFT_UNTYPED;
}

int array_types_read(session *s)
{
    const opt_list *views = &s->views;
    if (!views->count)
        return CODE_DONE;
    array_types *t = calloc(1, sizeof *t + views->count * sizeof *t->rules);
    if (!t)
        return say_status(HEFT_E_NOMEM, NULL, "no memory for --view");
    t->chosen = (heft_array_types){ t, choose };
    s->types = t;
    for (size_t i = 0; i < views->count; i++)
        if (!read_rule(t, views->item[i]))
            return say_usage(s->name,
                             "--view must be NAME=TYPE with a type that `heft formats --types` "
                             "lists, not '%s'",
                             views->item[i]);
    return CODE_DONE;
}

const heft_array_types *array_types_chosen(const session *s)
{
    return s->types ? &s->types->chosen : NULL;
}

/* Return a tensor that the pattern matches, or HEFT_NONE. */
static uint32_t find_match(array_types *t, const heft_file *f, const char *glob)
{
    for (uint32_t i = 0; i < heft_tensor_count(f); i++)
        if (name_matches(&t->no_memory, heft_tensor_at(f, i).name, glob))
            return i;
    return HEFT_NONE;
}

static int check_rule(const session *s, const rule *r, const heft_file *f, const char *path)
{
    uint32_t tensor = find_match(s->types, f, r->glob);
    if (tensor != HEFT_NONE) {
        heft_tensor t = heft_tensor_at(f, tensor);
        const char *type = dtype_name(t.dtype);
        return say_status(HEFT_E_ARGUMENT, path,
                          "tensor '%.*s' has a type, %s: --view is for arrays that are stored "
                          "without one (--cast of `heft convert` converts values)",
                          (int)t.name.len, t.name.ptr, type ? type : "other values");
    }
    unmatched u = { .f = f, .path = path, .strict = s->strict };
    unmatched_say(&u, "view", r->glob);
    return u.code;
}

int array_types_check(const session *s, const heft_file *f, const char *path)
{
    const array_types *t = s->types;
    int code = CODE_DONE;
    for (size_t i = 0; t && i < t->count && !code; i++)
        if (!t->rules[i].is_used)
            code = check_rule(s, &t->rules[i], f, path);
    return t && t->no_memory ? say_status(HEFT_E_NOMEM, path, "no memory for --view") : code;
}

void array_types_free(array_types *t)
{
    for (size_t i = 0; t && i < t->count; i++)
        free(t->rules[i].glob);
    free(t);
}
