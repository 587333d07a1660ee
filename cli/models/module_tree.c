#include "models/module_tree.h"

#include <stdlib.h>

/* ---- names ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_separator(char c)
{
    return c == '.' || c == '/';
}

static size_t digits_at(heft_str s, size_t at)
{
    size_t n = 0;
    while (at + n < s.len && is_digit(s.ptr[at + n]))
        n++;
    return n;
}

static size_t zeros_at(heft_str s, size_t at, size_t digits)
{
    size_t n = 0;
    while (n + 1 < digits && s.ptr[at + n] == '0')
        n++;
    return n;
}

/* Separators sort before all other characters, so that the content of a module is contiguous. */
static int rank_of(heft_str s, size_t at)
{
    return at >= s.len ? 0 : is_separator(s.ptr[at]) ? 1 : 2 + (uint8_t)s.ptr[at];
}

int name_order(heft_str a, heft_str b)
{
    size_t i = 0, k = 0;
    while (i < a.len && k < b.len) {
        size_t da = digits_at(a, i), db = digits_at(b, k);
        if (!da || !db) {
            int order = rank_of(a, i++) - rank_of(b, k++);
            if (order)
                return order;
            continue;
        }
        size_t za = zeros_at(a, i, da), zb = zeros_at(b, k, db);
        int order = da - za != db - zb ? (da - za < db - zb ? -1 : 1)
                                       : memcmp(a.ptr + i + za, b.ptr + k + zb, da - za);
        if (!order && za != zb) /* "01" and "1" are different modules */
            order = za < zb ? 1 : -1;
        if (order)
            return order;
        i += da;
        k += db;
    }
    return rank_of(a, i) - rank_of(b, k);
}

static int member_order(const void *a, const void *b)
{
    const module_member *x = a, *y = b;
    int order = name_order(x->name, y->name);
    return order ? order : x->id < y->id ? -1 : x->id > y->id;
}

/* Return the number of modules that both names have in common, at most MODULE_DEPTH. */
static uint32_t shared_modules(heft_str a, heft_str b)
{
    uint32_t modules = 0;
    for (size_t i = 0; i < a.len && i < b.len && a.ptr[i] == b.ptr[i]; i++)
        modules += is_separator(a.ptr[i]);
    return modules < MODULE_DEPTH ? modules : MODULE_DEPTH;
}

/* Return the position after `modules` separators. */
static size_t component_at(heft_str name, uint32_t modules)
{
    size_t at = 0;
    for (; modules && at < name.len; at++)
        modules -= is_separator(name.ptr[at]);
    return at;
}

static uint32_t modules_of(heft_str name)
{
    return shared_modules(name, name);
}

heft_str module_label(const module_tree *t, const module_row *row)
{
    heft_str name = t->members[row->first].name;
    size_t from = component_at(name, row->depth), to = from;
    if (!row->is_module)
        to = name.len;
    while (row->is_module && to < name.len && !is_separator(name.ptr[to]))
        to++;
    return (heft_str){ name.ptr + from, to - from };
}

heft_str module_prefix(const module_tree *t, const module_row *row)
{
    heft_str name = t->members[row->first].name, label = module_label(t, row);
    return (heft_str){ name.ptr,
                       (size_t)(label.ptr - name.ptr) + label.len + (row->is_module ? 1 : 0) };
}

void out_module(outbuf *o, const module_tree *t, const module_row *row)
{
    heft_str label = module_label(t, row);
    out_fill(o, ' ', 2 * (size_t)row->depth);
    out_name(o, label);
    if (row->is_module)
        out_char(o, label.ptr[label.len]);
}

/* ---- the tree ---- */

void module_tree_close(module_tree *t)
{
    free(t->members);
    free(t->rows);
    *t = (module_tree){ .members = NULL };
}

static bool add_row(module_tree *t, module_row row)
{
    if (t->row_count == t->row_capacity) {
        uint32_t capacity = t->row_capacity < UINT32_MAX / 2 ? 2 * t->row_capacity + 64 : 0;
        module_row *rows = capacity ? realloc(t->rows, (size_t)capacity * sizeof *rows) : NULL;
        if (!rows)
            return false;
        t->rows = rows;
        t->row_capacity = capacity;
    }
    t->rows[t->row_count++] = row;
    return true;
}

/* Return the end of the module that begins at member `first`, with `depth` modules around. */
static uint32_t module_end(const module_tree *t, uint32_t first, uint32_t depth)
{
    uint32_t end = first + 1;
    while (end < t->count && t->members[end].shared > depth)
        end++;
    return end;
}

/* Add the modules that begin at member i, and the member itself. */
static bool add_member_rows(module_tree *t, uint32_t i, uint64_t folded)
{
    uint32_t modules = modules_of(t->members[i].name);
    bool ok = true;
    for (uint32_t d = t->members[i].shared; d < modules && d < folded && ok; d++)
        ok = add_row(t, (module_row){ i, module_end(t, i, d), (uint16_t)d, true });
    if (ok && modules < folded)
        ok = add_row(t, (module_row){ i, i + 1, (uint16_t)modules, false });
    return ok;
}

static void sort_members(module_tree *t)
{
    qsort(t->members, t->count, sizeof *t->members, member_order);
    for (uint32_t i = 1; i < t->count; i++)
        t->members[i].shared = shared_modules(t->members[i - 1].name, t->members[i].name);
}

static bool say_no_memory(module_tree *t, const char *path)
{
    say_status(HEFT_E_NOMEM, path, "no memory for a tree of %u tensors", t->count);
    module_tree_close(t);
    return false;
}

bool module_tree_fold(module_tree *t, const char *path, uint64_t depth)
{
    bool ok = true;
    t->row_count = 0;
    for (uint32_t i = 0; i < t->count && ok; i++)
        ok = add_member_rows(t, i, depth ? depth : UINT64_MAX);
    return ok || say_no_memory(t, path);
}

static bool reserve_members(module_tree *t, uint32_t count, const char *path)
{
    *t = (module_tree){ .count = count };
    t->members = malloc(((size_t)count + 1) * sizeof *t->members);
    return t->members || say_no_memory(t, path);
}

bool module_tree_open(module_tree *t, const heft_file *f, const char *path, const selection *s,
                      uint64_t depth)
{
    if (!reserve_members(t, s->count, path))
        return false;
    for (uint32_t i = 0; i < s->count; i++)
        t->members[i] = (module_member){ heft_tensor_at(f, selected(s, i)).name, selected(s, i),
                                         0 };
    sort_members(t);
    return module_tree_fold(t, path, depth);
}

bool module_tree_open_names(module_tree *t, const heft_str *names, uint32_t count, const char *path,
                            uint64_t depth)
{
    if (!reserve_members(t, count, path))
        return false;
    for (uint32_t i = 0; i < count; i++)
        t->members[i] = (module_member){ names[i], i, 0 };
    sort_members(t);
    return module_tree_fold(t, path, depth);
}

uint32_t module_tree_common(const module_tree *t)
{
    return t->count < 2 ? 0 : shared_modules(t->members[0].name, t->members[t->count - 1].name);
}
