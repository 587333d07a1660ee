
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <heft/heft_ext.h>
#include <heft/private.h>

#include "options/command.h"
#include "text/words.h"

static const char scheme[] = "hub:";
enum { SCHEME = sizeof scheme - 1 };

/* ---- names of repositories ---- */

typedef struct name_list {
    char **names;
    size_t count, capacity;
    bool no_memory;
} name_list;

static bool reserve_name(name_list *l)
{
    if (l->count < l->capacity)
        return true;
    size_t capacity = 2 * l->capacity + 16;
    char **names = realloc(l->names, capacity * sizeof *names);
    if (!names)
        return false;
    l->names = names;
    l->capacity = capacity;
    return true;
}

static void add_name(void *ctx, const char *name)
{
    name_list *l = ctx;
    char *copy = reserve_name(l) ? strdup(name) : NULL;
    if (copy)
        l->names[l->count++] = copy;
    else
        l->no_memory = true;
}

static void free_names(name_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->names[i]);
    free(l->names);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void print_names(outbuf *o, const name_list *l, bool as_json)
{
    json j = { o, false };
    if (as_json)
        json_begin(&j, '[');
    for (size_t i = 0; i < l->count; i++)
        if (as_json) {
            json_str(&j, str_of(l->names[i]));
        } else {
            out_text(o, scheme);
            out_name(o, str_of(l->names[i]));
            out_char(o, '\n');
        }
    if (as_json) {
        json_end(&j, ']');
        out_char(o, '\n');
    }
}

int hub_print(bool as_json)
{
    heft_error err;
    outbuf o;
    name_list l = { .names = NULL };
    if (heft_hub_list(add_name, &l, &err) || l.no_memory) {
        free_names(&l);
        return l.no_memory ? say_system(ENOMEM, scheme) : say_error(scheme, &err);
    }
    if (l.count)
        qsort(l.names, l.count, sizeof *l.names, compare_names);
    out_open(&o, STDOUT_FILENO);
    print_names(&o, &l, as_json);
    free_names(&l);
    return out_end(&o, CODE_DONE);
}

/* ---- arguments ---- */

/* The owner is not compared if the user has left the owner out. */
static void suggest_name(suggestion *s, heft_str known)
{
    const char *slash = memchr(known.ptr, '/', known.len);
    size_t skip = slash && !memchr(s->word.ptr, '/', s->word.len) ? (size_t)(slash - known.ptr) + 1
                                                                  : 0;
    size_t before = s->distance;
    bool had = s->closest.ptr;
    suggestion_try(s, (heft_str){ known.ptr + skip, known.len - skip });
    if (!had || s->distance < before)
        s->closest = known;
}

static int say_unresolved(const char *name, const heft_error *err)
{
    char hint[SUGGESTION_BYTES] = "";
    name_list l = { .names = NULL };
    suggestion s = { .word = { name + SCHEME, strcspn(name + SCHEME, "@") }, .prefix = scheme };
    if (err->os != ENOENT)
        return say_error(name, err);
    if (!heft_hub_list(add_name, &l, NULL) && l.count) {
        for (size_t i = 0; i < l.count; i++)
            suggest_name(&s, str_of(l.names[i]));
        suggestion_text(hint, &s);
        bool is_known = s.closest.ptr && !s.distance && str_same(s.closest, s.word);
        say_status(err->status, name, "%s%s", err->message,
                   is_known ? ""
                   : *hint  ? hint
                            : "; `heft ls hub:` lists what is there");
    } else {
        say_error(name, err);
    }
    free_names(&l);
    return CODE_SYSTEM;
}

int hub_take(session *s, const char **input, bool is_changed)
{
    heft_error err;
    char path[PATH_MAX];
    if (strncmp(*input, scheme, SCHEME) != 0)
        return CODE_DONE;
    if (is_changed)
        return say_usage(s->command->name,
                         "'%s': files of the cache are not changed; convert the model to a file "
                         "of your own",
                         *input);
    heft_status st = heft_hub_path(path, sizeof path, *input, &err);
    if (st == HEFT_E_NOTFOUND) /* no cache: the environment is at fault, not the usage */
        err.status = HEFT_E_IO;
    if (st)
        return say_unresolved(*input, &err);
    kept_path *p = malloc(sizeof *p + strlen(path) + 1);
    if (!p)
        return say_system(ENOMEM, *input);
    p->next = s->paths;
    strcpy(p->text, path);
    s->paths = p;
    s->is_cache = !(*input)[SCHEME];
    *input = p->text;
    return CODE_DONE;
}
