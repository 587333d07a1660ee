/* params_store.c - models, names and keys of the parameter store, and its public functions. */
#include "params/params_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

heft_status heft_store_no_memory(heft_error *err)
{
    return heft_error_no_memory(err, "for parameters");
}

bool heft_params_store_reserve(void **items, size_t *capacity, size_t count, size_t elem)
{
    if (count < *capacity)
        return true;
    size_t more = *capacity ? *capacity : 16;
    while (more <= count)
        more = more > SIZE_MAX / 2 ? SIZE_MAX : 2 * more;
    void *p = more > SIZE_MAX / elem ? NULL : realloc(*items, more * elem);
    if (!p)
        return false;
    *items = p;
    *capacity = more;
    return true;
}

/* ---- the table ---- */

static size_t slot_of(const table *t, heft_id128 key)
{
    size_t h; /* keys are hashes */
    memcpy(&h, key.bytes, sizeof h);
    return h & t->mask;
}

entry *heft_store_find(const heft_params *p, heft_id128 key)
{
    const table *t = atomic_load_explicit(&p->table, memory_order_acquire);
    entry *e = NULL;
    for (size_t i = t ? slot_of(t, key) : 0; t; i = (i + 1) & t->mask) {
        e = atomic_load_explicit(&t->slots[i], memory_order_acquire);
        if (!e || !memcmp(e->key.bytes, key.bytes, sizeof key.bytes))
            break;
    }
    return e;
}

static void put(table *t, entry *e)
{
    size_t i = slot_of(t, e->key);
    while (atomic_load_explicit(&t->slots[i], memory_order_relaxed))
        i = (i + 1) & t->mask;
    atomic_store_explicit(&t->slots[i], e, memory_order_release);
}

/* Readers may still use the old table, so it is freed with the store. The table has eight slots or
 * more for each entry: where keys collide, a processor reads ahead in the wrong entry before the
 * keys are compared, which takes the entry's line away from the thread that uses the entry. */
static bool grow_table(heft_params *p, size_t count)
{
    table *old = atomic_load(&p->table), *t;
    size_t slots = 64;
    while (slots < 8 * count)
        slots *= 2;
    if (old && old->mask + 1 >= slots)
        return true;
    t = calloc(1, sizeof *t + slots * sizeof *t->slots);
    if (!t)
        return false;
    t->older = old;
    t->mask = slots - 1;
    const list *order = atomic_load(&p->order);
    for (uint32_t i = 0; i < atomic_load(&p->count); i++)
        put(t, order->items[i]);
    atomic_store_explicit(&p->table, t, memory_order_release);
    return true;
}

/* Old lists are freed with the store, as old tables are. */
static bool grow_order(heft_params *p, size_t count)
{
    list *old = atomic_load(&p->order), *l;
    size_t capacity = old ? old->capacity : 16;
    while (capacity < count)
        capacity *= 2;
    if (old && capacity == old->capacity)
        return true;
    l = malloc(sizeof *l + capacity * sizeof *l->items);
    if (!l)
        return false;
    l->older = old;
    l->capacity = capacity;
    if (old)
        memcpy(l->items, old->items, atomic_load(&p->count) * sizeof *l->items);
    atomic_store_explicit(&p->order, l, memory_order_release);
    return true;
}

/* ---- opening and closing ---- */

heft_status heft_params_open(heft_params **out, const heft_params_options *opt, heft_error *err)
{
    heft_params_options o = HEFT_PARAMS_OPTIONS_INIT;
    *out = NULL;
    HEFT_TRY(heft_sized_copy(&o, offsetof(heft_params_options, reserved), opt, err));
    if (o.host)
        HEFT_TRY(heft_host_check(o.host, err));
    heft_params *p = calloc(1, sizeof *p);
    if (!p)
        return heft_store_no_memory(err);
    p->opt = o;
    p->host = p->opt.host ? p->opt.host : heft_host_default();
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    *out = p;
    return HEFT_OK;
}

static void free_member(heft_params *p, member *m)
{
    for (uint32_t i = 0; i < m->count; i++) {
        entry *e = &m->entries[i];
        for (entry *form = atomic_load(&e->forms), *next; form; form = next) {
            next = form->next_form;
            heft_cache_free(p, form);
            free(form);
        }
        heft_cache_free(p, e);
    }
    free(m->entries);
    heft_file_close(m->file);
}

void heft_params_close(heft_params *p)
{
    if (!p)
        return;
    heft_prefetch_stop(p);
    for (size_t i = 0; i < p->member_count; i++)
        free_member(p, &p->members[i]);
    for (table *t = atomic_load(&p->table), *older; t; t = older) {
        older = t->older;
        free(t);
    }
    for (list *l = atomic_load(&p->order), *older; l; l = older) {
        older = l->older;
        free(l);
    }
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p->members);
    free(p->burns);
    free(p->heap);
    free(p);
}

/* ---- adding ---- */

/* Find an attribute by key and kind. */
static bool attribute(heft_value *out, const heft_file *f, uint32_t tensor, const char *key,
                      heft_kind kind)
{
    size_t len = strlen(key);
    for (uint32_t i = 0, n = heft_attribute_count(f, tensor); i < n; i++) {
        *out = heft_attribute_at(f, tensor, i);
        if (out->key.len == len && !memcmp(out->key.ptr, key, len))
            return out->kind == kind;
    }
    return false;
}

/* Make entries for all parameters of a file; heft_store_find() does not find them yet. */
static heft_status list_entries(member *m, heft_error *err)
{
    uint32_t n = heft_tensor_count(m->file);
    m->entries = calloc(n ? n : 1, sizeof *m->entries);
    if (!m->entries)
        return heft_store_no_memory(err);
    for (uint32_t i = 0; i < n; i++) {
        heft_tensor t = heft_tensor_at(m->file, i);
        heft_value stored;
        heft_id128 base;
        bool is_param = t.layout == HEFT_DENSE && t.part_count == 1 && heft_dtype_get(t.dtype);
        if (!is_param || !heft_param_base_id(&base, t.name))
            continue;
        if (attribute(&stored, m->file, i, "gptrs.base_id", HEFT_KIND_ID128) &&
            memcmp(stored.as.s.ptr, base.bytes, sizeof base.bytes) != 0)
            return heft_error_plain(err, HEFT_E_FORMAT,
                                    "tensor %q: the stored base id does not match the name",
                                    t.name);
        entry *e = &m->entries[m->count++];
        e->key = heft_param_key(m->space, base);
        e->file = m->file;
        e->tensor = i;
        e->part = t.first_part;
        e->view = (heft_param){ NULL, heft_part_at(m->file, t.first_part).length, t.dims, t.rank,
                                t.dtype };
    }
    return HEFT_OK;
}

static bool make_heap(heft_params *p, size_t entries)
{
    return heft_params_store_reserve((void **)&p->heap, &p->heap_capacity, entries,
                                     sizeof *p->heap);
}

/* The item of the order is stored before the count includes it. */
static void add_entry(heft_params *p, const member *m, entry *e)
{
    heft_value v;
    uint32_t i = atomic_load(&p->count);
    if (attribute(&v, m->file, e->tensor, "burn.param_id", HEFT_KIND_UINT))
        p->burns[p->burn_count++] = (burn_id){ m->space, e->key, v.as.u };
    atomic_load(&p->order)->items[i] = e;
    put(atomic_load(&p->table), e);
    p->entries++;
    atomic_store_explicit(&p->count, i + 1, memory_order_release);
}

static int by_burn(const void *a, const void *b)
{
    const burn_id *x = a, *y = b;
    int order = memcmp(x->space.bytes, y->space.bytes, sizeof x->space.bytes);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

static heft_status add_member(heft_params *p, member *m, heft_error *err)
{
    for (uint32_t i = 0; i < m->count; i++)
        if (heft_store_find(p, m->entries[i].key))
            return heft_error_plain(err, HEFT_E_ARGUMENT, "the model already has a tensor %q",
                                    heft_tensor_at(m->file, m->entries[i].tensor).name);
    /* Reserve everything that grows with the entries first, so that no failure leaves half a
     * file. */
    size_t all = (size_t)atomic_load(&p->count) + m->count;
    if (all > UINT32_MAX || !make_heap(p, p->entries + m->count) ||
        !heft_params_store_reserve((void **)&p->burns, &p->burn_capacity, p->burn_count + m->count,
                                   sizeof *p->burns) ||
        !heft_params_store_reserve((void **)&p->members, &p->member_capacity, p->member_count,
                                   sizeof *p->members) ||
        !grow_order(p, all) || !grow_table(p, all))
        return heft_store_no_memory(err);
    p->members[p->member_count++] = *m;
    for (uint32_t i = 0; i < m->count; i++)
        add_entry(p, m, &m->entries[i]);
    p->burns_are_sorted = false;
    return HEFT_OK;
}

heft_status heft_params_add_to(heft_params *p, heft_id128 space, heft_file *take, heft_error *err)
{
    member m = { .space = space, .file = take };
    heft_status st = list_entries(&m, err);
    if (!st) {
        pthread_mutex_lock(&p->lock);
        st = add_member(p, &m, err);
        pthread_mutex_unlock(&p->lock);
    }
    if (st) {
        free(m.entries);
        heft_file_close(take);
    }
    return st;
}

heft_status heft_params_add(heft_id128 *space, heft_params *p, heft_file *take, heft_error *err)
{
    *space = heft_param_namespace_new();
    return heft_params_add_to(p, *space, take, err);
}

/* ---- finding ---- */

uint32_t heft_params_count(const heft_params *p)
{
    return atomic_load_explicit(&p->count, memory_order_acquire);
}

heft_id128 heft_params_key_at(const heft_params *p, uint32_t i)
{
    if (i >= heft_params_count(p))
        return (heft_id128){ { 0 } };
    return atomic_load_explicit(&p->order, memory_order_acquire)->items[i]->key;
}

bool heft_params_find_base(heft_id128 *key, const heft_params *p, heft_id128 space, heft_id128 base)
{
    *key = heft_param_key(space, base);
    return heft_store_find(p, *key);
}

bool heft_params_find(heft_id128 *key, const heft_params *p, heft_id128 space, heft_str name)
{
    heft_id128 base;
    return heft_param_base_id(&base, name) && heft_params_find_base(key, p, space, base);
}

bool heft_params_find_burn(heft_id128 *key, const heft_params *p, heft_id128 space, uint64_t burn)
{
    heft_params *m = (heft_params *)(uintptr_t)p;
    burn_id wanted = { .space = space, .id = burn };
    const burn_id *found = NULL;
    pthread_mutex_lock(&m->lock);
    if (m->burn_count && !m->burns_are_sorted) /* sort on first use, not for each added file */
        qsort(m->burns, m->burn_count, sizeof *m->burns, by_burn);
    m->burns_are_sorted = true;
    if (m->burn_count)
        found = bsearch(&wanted, m->burns, m->burn_count, sizeof wanted, by_burn);
    if (found)
        *key = found->key;
    pthread_mutex_unlock(&m->lock);
    return found;
}

heft_str heft_params_name(const heft_params *p, heft_id128 key)
{
    const entry *e = heft_store_find(p, key);
    return e ? heft_tensor_at(e->file, e->tensor).name : (heft_str){ NULL, 0 };
}

/* ---- using ---- */

static heft_status not_found(heft_error *err)
{
    return heft_error_rule(err, heft_error_plain(err, HEFT_E_NOTFOUND, "no parameter has this key"),
                           "heft/no-parameter");
}

static heft_status acquire(heft_param *out, heft_params *p, entry *e, const heft_derivation *d,
                           heft_error *err)
{
    HEFT_TRY(heft_uses_add(p, e, true) ? HEFT_OK : heft_cache_acquire(p, e, d, false, err));
    *out = e->view;
    return HEFT_OK;
}

heft_status heft_params_acquire(heft_param *out, heft_params *p, heft_id128 key, heft_error *err)
{
    entry *e = heft_store_find(p, key);
    return e ? acquire(out, p, e, NULL, err) : not_found(err);
}

void heft_params_release(heft_params *p, heft_id128 key)
{
    entry *e = heft_store_find(p, key);
    if (e)
        heft_cache_release(p, e);
}

/* A pin is a use that is released by heft_params_unpin(). */
heft_status heft_params_pin(heft_params *p, heft_id128 key, heft_error *err)
{
    heft_param unused;
    return heft_params_acquire(&unused, p, key, err);
}

void heft_params_unpin(heft_params *p, heft_id128 key)
{
    heft_params_release(p, key);
}

static uint64_t hits_of(const member *m)
{
    uint64_t hits = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        hits += heft_uses_hits(&m->entries[i]);
        for (entry *form = atomic_load(&m->entries[i].forms); form; form = form->next_form)
            hits += heft_uses_hits(form);
    }
    return hits;
}

heft_params_stats heft_params_statistics(const heft_params *p)
{
    heft_params *m = (heft_params *)(uintptr_t)p;
    pthread_mutex_lock(&m->lock);
    heft_params_stats s = p->stats;
    for (size_t i = 0; i < p->member_count; i++)
        s.hits += hits_of(&p->members[i]);
    pthread_mutex_unlock(&m->lock);
    return s;
}

/* ---- derived forms ---- */

static entry *find_form(entry *e, uint64_t kind)
{
    entry *form = atomic_load_explicit(&e->forms, memory_order_acquire);
    while (form && form->kind != kind)
        form = form->next_form;
    return form;
}

/* Call under the lock. */
static entry *add_form(heft_params *p, entry *e, uint64_t kind)
{
    entry *form = find_form(e, kind);
    if (form)
        return form;
    form = make_heap(p, p->entries + 1) ? calloc(1, sizeof *form) : NULL;
    if (!form)
        return NULL;
    p->entries++;
    form->key = e->key;
    form->kind = kind;
    form->source = e;
    form->next_form = atomic_load(&e->forms);
    atomic_store_explicit(&e->forms, form, memory_order_release);
    return form;
}

heft_status heft_params_resolve(heft_param *out, heft_params *p, heft_id128 key,
                                const heft_derivation *d, heft_error *err)
{
    entry *e = heft_store_find(p, key);
    if (!e)
        return not_found(err);
    entry *form = find_form(e, d->kind);
    if (!form) {
        pthread_mutex_lock(&p->lock);
        form = add_form(p, e, d->kind);
        pthread_mutex_unlock(&p->lock);
    }
    return form ? acquire(out, p, form, d, err) : heft_store_no_memory(err);
}

void heft_params_release_form(heft_params *p, heft_id128 key, uint64_t kind)
{
    entry *e = heft_store_find(p, key), *form = e ? find_form(e, kind) : NULL;
    if (form)
        heft_cache_release(p, form);
}
