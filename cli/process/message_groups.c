#include "process/message.h"

#include "process/finding.h"

#include <stdlib.h>
#include <string.h>

enum { EXAMPLES = 2 };

typedef struct example {
    char *text;
    heft_str tensor, shard; /* malloc'ed; ptr NULL: none */
    uint64_t offset;
} example;

struct message_group {
    message first; /* kind, severity and rule of all; texts are in the examples */
    char *file, *rule;
    uint64_t count;
    example examples[EXAMPLES];
};

/* ---- adding ---- */

static heft_str copy(bool *failed, heft_str s)
{
    char *to = s.ptr ? malloc(s.len + 1) : NULL;
    *failed = *failed || (s.ptr && !to);
    if (to && s.len)
        memcpy(to, s.ptr, s.len);
    return (heft_str){ to, to ? s.len : 0 };
}

static char *copy_text(bool *failed, const char *text)
{
    char *to = text ? strdup(text) : NULL;
    *failed = *failed || (text && !to);
    return to;
}

static void free_example(example *e)
{
    free(e->text);
    free((char *)e->tensor.ptr);
    free((char *)e->shard.ptr);
}

static bool keep_example(example *to, const message *m)
{
    bool failed = false;
    *to = (example){ .text = copy_text(&failed, m->text),
                     .tensor = copy(&failed, m->tensor),
                     .shard = copy(&failed, m->shard),
                     .offset = m->offset };
    if (failed)
        free_example(to);
    return !failed;
}

static bool is_same(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static message_group *find(const message_groups *g, const message *m)
{
    for (size_t i = 0; i < g->count; i++) {
        const message *first = &g->items[i].first;
        if (first->kind == m->kind && first->severity == m->severity &&
            is_same(g->items[i].rule, m->rule) && is_same(g->items[i].file, m->file))
            return &g->items[i];
    }
    return NULL;
}

/* Return a new group, or NULL without memory. */
static message_group *begin(message_groups *g, const message *m)
{
    bool failed = false;
    if (g->count == g->capacity) {
        size_t capacity = 2 * g->capacity + 8;
        message_group *items = realloc(g->items, capacity * sizeof *items);
        if (!items)
            return NULL;
        g->items = items;
        g->capacity = capacity;
    }
    message_group *to = &g->items[g->count];
    *to = (message_group){ .first = { .kind = m->kind, .severity = m->severity },
                           .file = copy_text(&failed, m->file),
                           .rule = copy_text(&failed, m->rule) };
    if (failed) {
        free(to->file);
        free(to->rule);
        return NULL;
    }
    g->count++;
    return to;
}

void message_groups_add(message_groups *g, const message *m)
{
    message_group *group = g->lists_all || !m->rule ? NULL : find(g, m);
    if (!group && !g->lists_all && m->rule)
        group = begin(g, m);
    bool is_kept = group &&
                   (group->count >= EXAMPLES || keep_example(&group->examples[group->count], m));
    if (is_kept)
        group->count++;
    else
        message_print(m);
}

/* ---- printing ---- */

static message message_of(const message_group *g, size_t i)
{
    const example *e = &g->examples[i];
    message m = g->first;
    m.file = g->file;
    m.rule = g->rule;
    m.text = e->text;
    m.tensor = e->tensor;
    m.shard = e->shard;
    m.offset = e->offset;
    return m;
}

static void print_group(const message_group *g)
{
    message m = message_of(g, 0);
    if (g->count > EXAMPLES) {
        const example *second = &g->examples[1];
        m.more = (message_more){ g->count, second->text, second->tensor };
        message_print(&m);
        return;
    }
    for (size_t i = 0; i < g->count; i++) {
        m = message_of(g, i);
        message_print(&m);
    }
}

void message_groups_print(message_groups *g)
{
    if (!g->count) /* threads that write the output may ask at once */
        return;
    for (size_t i = 0; i < g->count; i++) {
        message_group *group = &g->items[i];
        print_group(group);
        for (size_t k = 0; k < EXAMPLES && k < group->count; k++)
            free_example(&group->examples[k]);
        free(group->file);
        free(group->rule);
    }
    free(g->items);
    *g = (message_groups){ .lists_all = g->lists_all };
}

/* ---- the warnings of a file ---- */

static void add(message_groups *g, const heft_file *f, const char *path, const heft_finding *x)
{
    finding y = finding_of(f, x);
    message_groups_add(g, &(message){ .kind = (message_kind)y.severity,
                                      .file = path,
                                      .rule = y.rule,
                                      .text = y.text,
                                      .tensor = y.tensor,
                                      .shard = y.shard,
                                      .offset = y.where.offset });
}

void notices_say(const heft_file *f, const char *path, bool notes, bool left_out)
{
    heft_finding x;
    message_groups groups = { .lists_all = notes };
    /* The faults of an incomplete model are already in the line about its completeness. */
    bool is_whole = !heft_file_is_complete(f, NULL);
    for (uint32_t i = 0, n = heft_notice_count(f); i < n; i++) {
        x = heft_notice_at(f, i);
        bool is_shown = x.severity == HEFT_NOTE ? notes : x.severity == HEFT_WARNING || is_whole;
        if (is_shown && (left_out || !x.left_out))
            add(&groups, f, path, &x);
    }
    message_groups_print(&groups);
}
