/* recognise.c - finds the quantised tensors of a file.
 *
 * One pass over the names finds the anchors: tensors whose names end as the anchor of some scheme.
 * For these, in the order of the schemes, the other parts are looked up by name.  A tensor belongs
 * to one quantised tensor at most. */
#include "base/sized.h"

#include "base/text.h"
#include "core/read/file.h"
#include "model/names.h"
#include "scheme/module_settings.h"
#include "scheme/recognition.h"
#include <heft/companion.h>
#include <heft/scheme.h>

typedef struct quantised { /* stored form of heft_quantised, which borrows the texts */
    heft_str name;
    const heft_scheme *scheme; /* NULL: the method of the settings */
    const char *variant;
    uint32_t bits, first_part, part_count;
    uint64_t block[2];
    bool has_block;
    const heft_quantisation_settings *settings; /* settings of its module */
} quantised;

struct heft_schemes {
    heft_memory mem;
    heft_arena arena;
    heft_vec all;     /* quantised */
    heft_vec parts;   /* heft_quantised_part, by quantised tensor */
    uint32_t *owner;  /* by tensor: number of the quantised tensor + 1; 0: none */
    uint32_t tensors; /* length of owner */
    heft_module_settings modules;
};

typedef struct naming { /* a way to name parts, and its scheme */
    const heft_scheme *scheme;
    const heft_scheme_names *names;
} naming;

typedef struct anchor {
    uint64_t namings; /* a bit for each naming whose anchor the name may be */
    uint32_t tensor;
} anchor;

typedef struct search {
    heft_schemes *s;
    const heft_index *x;
    naming namings[HEFT_SCHEME_NAMES];
    uint32_t naming_count;
    uint64_t by_last_byte[256]; /* namings by the last byte of the anchor's suffix */
    heft_vec anchors;           /* anchor */
    uint64_t work;              /* steps that are left to match patterns of settings */
    char *name;                 /* buffer for the name of a part */
} search;

static const quantised *at(const heft_schemes *s, uint32_t i)
{
    return (const quantised *)s->all.ptr + i;
}

/* ---- names ---- */

/* Set *stem to the name before the suffix; see recognition.h.  Return false if the name has no such
 * suffix. */
static bool find_stem(heft_str *stem, heft_str name, const char *suffix)
{
    heft_str end = heft_lit(suffix);
    bool is_component = *suffix == '/';
    end = (heft_str){ end.ptr + is_component, end.len - is_component };
    if (name.len < end.len || memcmp(name.ptr + name.len - end.len, end.ptr, end.len) != 0)
        return false;
    *stem = (heft_str){ name.ptr, name.len - end.len };
    return is_component ? !stem->len || stem->ptr[stem->len - 1] == '.' : stem->len > 0;
}

/* Return the beginning of the name up to the last dot, with the dot. */
static heft_str module_of(heft_str name)
{
    while (name.len && name.ptr[name.len - 1] != '.')
        name.len--;
    return name;
}

/* Write the name of the part to the buffer, which is large enough for any stem and suffix. */
static heft_str build_name(const search *q, heft_str stem, const char *suffix)
{
    bool is_component = *suffix == '/';
    heft_str end = heft_lit(suffix + is_component);
    if (is_component)
        stem = module_of(stem);
    if (stem.len)
        memcpy(q->name, stem.ptr, stem.len);
    if (end.len)
        memcpy(q->name + stem.len, end.ptr, end.len);
    return (heft_str){ q->name, stem.len + end.len };
}

/* ---- anchors ---- */

static void list_namings(search *q)
{
    const heft_scheme *scheme;
    for (uint32_t i = 0; (scheme = heft_scheme_at(i)) != NULL; i++)
        for (uint32_t k = 0; k < scheme->name_count; k++) {
            heft_str suffix = heft_lit(scheme->names[k].part[0].suffix);
            if (!scheme->attribute)
                q->by_last_byte[(uint8_t)suffix.ptr[suffix.len - 1]] |= UINT64_C(1)
                                                                        << q->naming_count;
            q->namings[q->naming_count++] = (naming){ scheme, &scheme->names[k] };
        }
}

/* Return the namings whose anchor the tensor may be. */
static uint64_t namings_of(const search *q, uint32_t tensor)
{
    heft_str name = heft_ix_name(q->x, tensor), stem;
    heft_value v;
    uint64_t found = 0, left = name.len ? q->by_last_byte[(uint8_t)name.ptr[name.len - 1]] : 0;
    for (uint32_t i = 0; left; i++, left >>= 1)
        if (left & 1 && find_stem(&stem, name, q->namings[i].names->part[0].suffix))
            found |= UINT64_C(1) << i;
    if (!heft_ix_row(q->x, tensor)->attrs)
        return found;
    for (uint32_t i = 0; i < q->naming_count; i++) {
        const char *key = q->namings[i].scheme->attribute;
        if (key && heft_ix_find_attribute(&v, q->x, tensor, key))
            found |= UINT64_C(1) << i;
    }
    return found;
}

/* Find the anchors, and allocate the buffer for names. */
static bool find_anchors(search *q)
{
    enum { LONGEST_SUFFIX = 64 };
    size_t longest = 0;
    for (uint32_t i = 0; i < q->s->tensors; i++) {
        anchor a = { namings_of(q, i), i };
        size_t len = heft_ix_name(q->x, i).len;
        longest = len > longest ? len : longest;
        if (a.namings && !heft_vec_add(&q->s->mem, &q->anchors, &a, sizeof a))
            return false;
    }
    if (q->anchors.len)
        q->name = heft_arena_alloc(&q->s->arena, longest + LONGEST_SUFFIX, 1);
    return !q->anchors.len || q->name;
}

/* ---- quantised tensors ---- */

static bool add_part(heft_schemes *s, uint32_t tensor, const char *role)
{
    heft_quantised_part part = { tensor, role };
    s->owner[tensor] = s->all.len; /* the quantised tensor was added before its parts */
    return heft_vec_add(&s->mem, &s->parts, &part, sizeof part);
}

static bool add_group(search *q, const heft_scheme *scheme, const heft_scheme_group *g,
                      heft_str name)
{
    heft_schemes *s = q->s;
    bool is_named = scheme->is_vague && g->settings->method.len;
    quantised one = { .name = heft_arena_copy(&s->arena, name),
                      .scheme = is_named ? NULL : scheme,
                      .variant = g->variant,
                      .bits = g->bits,
                      .first_part = s->parts.len,
                      .block = { g->block[0], g->block[1] },
                      .has_block = g->has_block,
                      .settings = g->settings };
    for (uint32_t k = 0; k < HEFT_SCHEME_PARTS; k++)
        one.part_count += g->tensor[k] != HEFT_NONE;
    if (!one.name.ptr || !heft_vec_add(&s->mem, &s->all, &one, sizeof one))
        return false;
    for (uint32_t k = 0; k < HEFT_SCHEME_PARTS; k++)
        if (g->tensor[k] != HEFT_NONE && !add_part(s, g->tensor[k], g->names->part[k].role))
            return false;
    return true;
}

/* Return the tensor with that name, or HEFT_NONE if a quantised tensor has taken the tensor. */
static uint32_t find_free(const search *q, heft_str name)
{
    uint32_t found = heft_ix_find(q->x, name);
    return found == HEFT_NONE || q->s->owner[found] ? HEFT_NONE : found;
}

/* Return the tensor that an attribute of the anchor names; several anchors may name it. */
static uint32_t find_named(const search *q, uint32_t tensor, const char *key)
{
    heft_value v;
    bool has = heft_ix_find_attribute(&v, q->x, tensor, key) && v.kind == HEFT_KIND_STR;
    return has ? heft_ix_find(q->x, v.as.s) : HEFT_NONE;
}

/* Return true if an attribute names the part, even if there is no such tensor: a node of a graph
 * computes it. */
static bool is_named(const search *q, uint32_t tensor, const char *suffix)
{
    heft_value v;
    return *suffix == '@' && heft_ix_find_attribute(&v, q->x, tensor, suffix + 1);
}

static uint32_t find_part(const search *q, uint32_t tensor, heft_str stem, const char *suffix)
{
    return *suffix == '@' ? find_named(q, tensor, suffix + 1)
                          : find_free(q, build_name(q, stem, suffix));
}

/* Add the quantised tensor to which the anchor belongs by this naming, if the parts exist. */
static bool try_naming(search *q, const naming *n, uint32_t tensor)
{
    heft_scheme_group g = { .x = q->x, .names = n->names, .variant = n->names->variant };
    heft_str name = heft_ix_name(q->x, tensor), stem = name;
    const heft_scheme_part *part = n->names->part;
    if (!n->scheme->attribute)
        (void)find_stem(&stem, name, part[0].suffix);
    for (uint32_t k = 0; k < HEFT_SCHEME_PARTS; k++) {
        g.tensor[k] = !k             ? tensor
                      : part[k].role ? find_part(q, tensor, stem, part[k].suffix)
                                     : HEFT_NONE;
        bool is_needed = part[k].role &&
                         (!part[k].is_optional || is_named(q, tensor, part[k].suffix));
        if (is_needed && g.tensor[k] == HEFT_NONE)
            return true;
    }
    g.settings = heft_module_settings_of(&q->s->modules, module_of(name), &q->work);
    return !n->scheme->recognise(&g) ||
           add_group(q, n->scheme, &g, build_name(q, stem, n->names->logical));
}

static bool try_all(search *q)
{
    const anchor *anchors = q->anchors.ptr;
    for (uint32_t i = 0; i < q->naming_count; i++)
        for (uint32_t k = 0; k < q->anchors.len; k++)
            if (anchors[k].namings >> i & 1 && !q->s->owner[anchors[k].tensor] &&
                !try_naming(q, &q->namings[i], anchors[k].tensor))
                return false;
    return true;
}

/* ---- a method of the settings that no scheme recognises ---- */

static bool is_quantised_type(const heft_index *x, uint32_t tensor)
{
    heft_dtype t = heft_ix_row(x, tensor)->dtype;
    return heft_is_packed(t) || heft_is_float8(t);
}

static heft_str name_at(const void *ctx, uint32_t i)
{
    return at(ctx, i)->name;
}

/* Add a quantised tensor without parts for each module with packed tensors. */
static bool add_modules(search *q, heft_names *modules)
{
    heft_schemes *s = q->s;
    const heft_names_of of = { name_at, s };
    for (uint32_t i = 0; i < s->tensors; i++) {
        quantised one = { .name = module_of(heft_ix_name(q->x, i)), .settings = &s->modules.model };
        if (!is_quantised_type(q->x, i))
            continue;
        if (!heft_names_grow(&s->mem, modules, &q->x->key, of, s->all.len))
            return false;
        uint32_t hash = heft_names_hash(&q->x->key, one.name);
        if (heft_names_find(modules, of, hash, one.name) != HEFT_NONE)
            continue;
        one.name = heft_arena_copy(&s->arena, one.name);
        if (!one.name.ptr || !heft_vec_add(&s->mem, &s->all, &one, sizeof one))
            return false;
        heft_names_add(modules, of, hash, one.name, s->all.len - 1);
    }
    return true;
}

/* Store the tensors of each module as the parts of its quantised tensor. */
static bool add_module_parts(search *q, const heft_names *modules)
{
    heft_schemes *s = q->s;
    const heft_names_of of = { name_at, s };
    quantised *all = s->all.ptr;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < s->tensors; i++) {
        heft_str module = module_of(heft_ix_name(q->x, i));
        uint32_t n = heft_names_find(modules, of, heft_names_hash(&q->x->key, module), module);
        s->owner[i] = n == HEFT_NONE ? 0 : n + 1;
        if (n != HEFT_NONE)
            all[n].part_count++;
    }
    for (uint32_t n = 0; n < s->all.len; n++) {
        all[n].first_part = sum;
        sum += all[n].part_count;
        all[n].part_count = 0;
    }
    if (!heft_vec_reserve(&s->mem, &s->parts, sum, sizeof(heft_quantised_part)))
        return false;
    s->parts.len = sum;
    heft_quantised_part *parts = s->parts.ptr;
    for (uint32_t i = 0; i < s->tensors; i++)
        if (s->owner[i]) {
            quantised *n = &all[s->owner[i] - 1];
            parts[n->first_part + n->part_count++] = (heft_quantised_part){ i, "data" };
        }
    return true;
}

/* The settings say that the model is quantised, but no scheme has recognised a tensor.  Then every
 * tensor in a module with packed tensors may belong to them. */
static bool use_settings(search *q)
{
    heft_names modules = { .slots = NULL };
    bool ok = add_modules(q, &modules) && (!q->s->all.len || add_module_parts(q, &modules));
    heft_names_free(&q->s->mem, &modules);
    return ok;
}

/* ---- the object ---- */

static bool find_all(search *q, const heft_settings *settings, const heft_settings *embedded)
{
    heft_schemes *s = q->s;
    s->modules.mem = &s->mem;
    s->modules.arena = &s->arena;
    s->modules.key = &q->x->key;
    s->owner = heft_mem_alloc(&s->mem, ((size_t)s->tensors + 1) * sizeof *s->owner);
    if (!s->owner || !heft_module_settings_read(&s->modules, settings, embedded))
        return false;
    memset(s->owner, 0, ((size_t)s->tensors + 1) * sizeof *s->owner);
    list_namings(q);
    bool ok = find_anchors(q) && try_all(q);
    if (ok && !s->all.len && s->modules.model.method.len)
        ok = use_settings(q);
    heft_vec_free(&s->mem, &q->anchors, sizeof(anchor));
    s->modules.is_spent = !q->work;
    return ok;
}

heft_status heft_schemes_of_index(heft_schemes **out, const heft_index *x, const heft_allocator *al,
                                  const heft_settings *settings, const heft_settings *embedded,
                                  heft_error *err)
{
    *out = NULL;
    heft_schemes *s = heft_alloc(al, sizeof *s, 16);
    if (!s)
        return heft_error_no_memory(err, "to find quantised tensors");
    *s = (heft_schemes){ .mem = { al, UINT64_MAX, 0 }, .tensors = heft_ix_tensors(x) };
    s->arena.mem = &s->mem;
    s->modules.mem = &s->mem;
    search q = { .s = s, .x = x, .work = HEFT_PATTERN_WORK };
    if (find_all(&q, settings, embedded)) {
        *out = s;
        return HEFT_OK;
    }
    heft_schemes_close(s);
    return heft_error_no_memory(err, "to find quantised tensors");
}

heft_status heft_schemes_open(heft_schemes **out, const heft_file *f, const heft_settings *settings,
                              heft_error *err)
{
    heft_error own;
    heft_settings *embedded = NULL;
    err = heft_error_begin(err, &own);
    *out = NULL;
    heft_file_enter(f); /* names are mapped */
    heft_status st = heft_embedded_settings(&embedded, f, err);
    if (!st)
        st = heft_schemes_of_index(out, &f->x, f->host->allocator, settings, embedded, err);
    heft_settings_close(embedded);
    st = heft_file_leave_after(f, st, err);
    if (st) {
        heft_schemes_close(*out);
        *out = NULL;
    }
    return heft_error_end(err, st);
}

void heft_schemes_close(heft_schemes *s)
{
    if (!s)
        return;
    const heft_allocator *al = s->mem.al;
    heft_mem_free(&s->mem, s->owner, ((size_t)s->tensors + 1) * sizeof *s->owner);
    heft_module_settings_free(&s->modules);
    heft_vec_free(&s->mem, &s->all, sizeof(quantised));
    heft_vec_free(&s->mem, &s->parts, sizeof(heft_quantised_part));
    heft_arena_free(&s->arena);
    heft_free(al, s, sizeof *s, 16);
}

uint32_t heft_schemes_count(const heft_schemes *s)
{
    return s->all.len;
}

heft_quantised heft_schemes_at(const heft_schemes *s, uint32_t i)
{
    if (i >= heft_schemes_count(s))
        return (heft_quantised){ .part_count = 0 };
    const quantised *one = at(s, i);
    return (heft_quantised){ .name = one->name,
                             .scheme = one->scheme ? heft_lit(one->scheme->name)
                                                   : one->settings->method,
                             .variant = heft_lit(one->variant ? one->variant : ""),
                             .bits = one->bits,
                             .part_count = one->part_count,
                             .block = { one->block[0], one->block[1] },
                             .has_block = one->has_block };
}

heft_quantised_part heft_schemes_part_at(const heft_schemes *s, uint32_t i, uint32_t k)
{
    if (k >= heft_schemes_at(s, i).part_count)
        return (heft_quantised_part){ .tensor = HEFT_NONE };
    return ((const heft_quantised_part *)s->parts.ptr)[at(s, i)->first_part + k];
}

uint32_t heft_schemes_find(const heft_schemes *s, uint32_t tensor)
{
    return tensor < s->tensors && s->owner[tensor] ? s->owner[tensor] - 1 : HEFT_NONE;
}

const heft_scheme *heft_schemes_scheme(const heft_schemes *s, uint32_t i)
{
    return at(s, i)->scheme;
}

const char *heft_schemes_variant(const heft_schemes *s, uint32_t i)
{
    return at(s, i)->variant;
}

const heft_quantisation_settings *heft_schemes_settings(const heft_schemes *s, uint32_t i)
{
    return at(s, i)->settings;
}

const heft_module_settings *heft_schemes_modules(const heft_schemes *s)
{
    return &s->modules;
}
