#include "options/set_options.h"

#include <stdlib.h>
#include <string.h>

#include "process/textfile.h"
#include "text/set_list.h"

static int no_memory(void)
{
    return say_status(HEFT_E_NOMEM, NULL, "no memory for the options");
}

/* ---- arguments ---- */

static void add(set_options *s, const assignment *a)
{
    size_t i = 0;
    while (i < s->count && !str_same(s->given[i].value.key, a->value.key))
        i++;
    s->given[i] = *a;
    s->count += i == s->count;
}

static int read_file(assignment *out, heft_str *text, const char *cmd, const char *arg)
{
    const char *equals = strchr(arg, '=');
    if (!equals || equals == arg || !equals[1])
        return say_usage(cmd, "'%s' is not KEY=FILE", arg);
    int code = text_read(text, equals + 1, TEXT_NAMED);
    *out = (assignment){
        .value = { .kind = HEFT_KIND_STR, .key = { arg, (size_t)(equals - arg) }, .as.s = *text }
    };
    return code;
}

int set_options_prepare(set_options *s, const char *cmd)
{
    assignment one;
    int code = CODE_DONE;
    s->given = calloc(s->args.count + s->files.count + 1, sizeof *s->given);
    s->texts = calloc(s->files.count + 1, sizeof *s->texts);
    if (!s->given || !s->texts)
        return no_memory();
    for (size_t i = 0; i < s->args.count && !code; i++) {
        code = assign_parse(&one, cmd, s->args.item[i]);
        if (!code)
            add(s, &one);
    }
    for (size_t i = 0; i < s->files.count && !code; i++) {
        code = read_file(&one, &s->texts[i], cmd, s->files.item[i]);
        if (!code)
            add(s, &one);
    }
    return code;
}

bool set_options_add(set_options *s, const heft_value *values, size_t count)
{
    set_options all = { .given = calloc(s->count + count + 1, sizeof *all.given) };
    if (!all.given)
        return false;
    for (size_t i = 0; i < count; i++)
        add(&all, &(assignment){ .value = values[i], .is_typed = true });
    for (size_t i = 0; i < s->count; i++)
        add(&all, &s->given[i]);
    free(s->given);
    s->given = all.given;
    s->count = all.count;
    return true;
}

/* ---- the metadata of the file ---- */

static const char *name_of(const heft_value *v)
{
    static const char *const names[] = {
        [HEFT_KIND_NULL] = "null",      [HEFT_KIND_BOOL] = "a boolean",
        [HEFT_KIND_INT] = "an integer", [HEFT_KIND_UINT] = "an integer",
        [HEFT_KIND_FLOAT] = "a number", [HEFT_KIND_STR] = "a text",
        [HEFT_KIND_BYTES] = "bytes",    [HEFT_KIND_ID128] = "an id",
        [HEFT_KIND_ARRAY] = "a list",   [HEFT_KIND_LIST] = "a list",
        [HEFT_KIND_MAP] = "a map",
    };
    return names[v->kind];
}

static bool is_integer(const heft_value *v)
{
    return v->kind == HEFT_KIND_INT || v->kind == HEFT_KIND_UINT;
}

/* Return true if a value can take the place of the file's value without another kind. */
static bool suits(const heft_value *v, const heft_value *old)
{
    bool becomes_number = old->kind == HEFT_KIND_FLOAT && is_integer(v);
    return v->kind == old->kind || (is_integer(v) && is_integer(old)) || becomes_number ||
           old->kind == HEFT_KIND_NULL;
}

static int refuse(const assignment *a, const heft_value *old, const char *path)
{
    outbuf key;
    out_open(&key, -1);
    out_escaped(&key, a->value.key);
    const char *name = out_cstr(&key);
    const heft_dtype_info *d = heft_dtype_get(old->stored);
    int code =
        say_status(HEFT_E_ARGUMENT, path,
                   "metadata '%s' is %s%s%s, and %s%s%s is no such value; '%s:TYPE=...' changes "
                   "the type",
                   name, name_of(old), d ? " of type " : "", d ? d->name : "", a->text ? "'" : "",
                   a->text ? a->text : "the text of the file", a->text ? "'" : "", name);
    out_free(&key);
    return code;
}

/* Return true if the elements of the list at `now` have the same kind as in the file. */
static bool has_same_elements(const heft_value *now, const heft_value *old, const heft_file *f)
{
    if (!old || old->kind != HEFT_KIND_LIST || !old->as.container.count)
        return true;
    heft_value first = heft_meta_at(f, old->as.container.end - old->as.container.count);
    bool is_number = first.kind != HEFT_KIND_STR && first.kind != HEFT_KIND_BOOL;
    bool is_empty = now->kind == HEFT_KIND_LIST && !now->as.container.count;
    return is_empty ||
           (now->kind == HEFT_KIND_ARRAY ? is_number : !is_number && now[1].kind == first.kind);
}

static const char *element_name(const assignment *a)
{
    const heft_dtype_info *d = heft_dtype_get(a->stored);
    return d ? d->name : a->element == HEFT_KIND_BOOL ? "booleans" : "texts";
}

/* Append the values of one assignment. */
static int resolve(set_options *s, const assignment *a, const heft_value *old, bool can_list,
                   const heft_file *f, const char *path)
{
    heft_value *to = &s->values[s->value_count];
    bool is_list = old && (old->kind == HEFT_KIND_LIST || old->kind == HEFT_KIND_ARRAY);
    bool may_be_list = a->text && !a->is_typed && a->value.kind == HEFT_KIND_STR;
    bool wants_list = a->is_list || (may_be_list && (is_list || (!old && can_list)));
    *to = a->value;
    if (wants_list) {
        list_elements elements = { a->element, a->stored, can_list };
        size_t more = 0;
        heft_dtype own = is_list && !a->is_list ? set_list_dtype(old) : HEFT_UNTYPED;
        if (own == HEFT_BOOL)
            elements.kind = HEFT_KIND_BOOL;
        else if (own)
            elements.stored = own;
        list_result r = set_list_read(&s->lists, to, &more, (uint32_t)s->value_count, a->value,
                                      elements);
        if (r == LIST_NO_MEMORY)
            return no_memory();
        if (r == LIST_READ && (a->is_list || has_same_elements(to, old, f))) {
            s->value_count += 1 + more;
            return CODE_DONE;
        }
        *to = a->value;
        if (a->is_list)
            return say_status(HEFT_E_ARGUMENT, path, "metadata '%.*s': '%s' is not a list of %s",
                              (int)a->value.key.len, a->value.key.ptr, a->text, element_name(a));
        if (is_list)
            return refuse(a, old, path);
    }
    if (old && !a->is_typed && old->kind == HEFT_KIND_STR && a->text) {
        to->kind = HEFT_KIND_STR; /* a text that looks like a number stays a text */
        to->as.s = a->value.kind == HEFT_KIND_STR ? a->value.as.s : str_of(a->text);
    } else if (old && !a->is_typed && !suits(to, old)) {
        return refuse(a, old, path);
    }
    s->value_count++;
    return CODE_DONE;
}

int set_options_resolve(set_options *s, const heft_file *f, bool can_list, const char *path)
{
    size_t most = s->count;
    int code = CODE_DONE;
    for (size_t i = 0; i < s->count; i++)
        if (s->given[i].value.kind == HEFT_KIND_STR)
            most += s->given[i].value.as.s.len / 2 + 1; /* an element takes two bytes at least */
    free(s->values);
    s->value_count = 0;
    s->values = calloc(most + 1, sizeof *s->values);
    if (!s->values)
        return no_memory();
    for (size_t i = 0; i < s->count && !code; i++) {
        heft_value old;
        bool has = heft_meta_find(&old, f, s->given[i].value.key);
        code = resolve(s, &s->given[i], has ? &old : NULL, can_list, f, path);
    }
    return code;
}

void set_options_release(set_options *s)
{
    for (size_t i = 0; s->texts && i < s->files.count; i++)
        text_free(s->texts[i]);
    free(s->texts);
    free(s->given);
    free(s->values);
    set_list_free(s->lists);
    *s = (set_options){ .args = s->args, .files = s->files };
}
