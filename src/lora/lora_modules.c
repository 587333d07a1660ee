/* lora_modules.c - groups the tensors of an adapter by the modules that they belong to. */
#include "base/error.h"
#include "base/text.h"
#include "lora/merging.h"

static const char purpose[] = "to read an adapter";

static heft_lora_module *module_at(const heft_lora_modules *s, uint32_t i)
{
    return (heft_lora_module *)s->all.ptr + i;
}

static heft_str name_at(const void *ctx, uint32_t i)
{
    return module_at(ctx, i)->name;
}

/* Return the module of that name, which is added if it is new; NULL: no memory. */
static heft_lora_module *find_module(heft_lora_modules *s, heft_memory *m, const heft_index *x,
                                     const heft_lora_name *n)
{
    heft_names_of of = { name_at, s };
    uint32_t hash = heft_names_hash(&x->key, n->module);
    uint32_t i = heft_names_find(&s->names, of, hash, n->module);
    if (i != HEFT_NONE)
        return module_at(s, i);
    heft_lora_module *to = heft_vec_push(m, &s->all, sizeof *to);
    if (!to)
        return NULL;
    *to = (heft_lora_module){ .name = n->module, .is_flat = n->is_flat };
    to->is_whole = n->role == HEFT_LORA_WHOLE;
    for (int k = 0; k < HEFT_LORA_ROLES; k++)
        to->part[k] = HEFT_NONE;
    (void)heft_names_add(&s->names, of, hash, n->module, s->all.len - 1);
    return module_at(s, s->all.len - 1);
}

static heft_status add_tensor(heft_lora_modules *s, heft_memory *m, const heft_file *f, uint32_t i,
                              heft_error *err)
{
    heft_str name = heft_ix_name(&f->x, i);
    heft_lora_name n = heft_lora_name_read(name);
    if (n.role == HEFT_LORA_FOREIGN)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "tensor %q belongs to %s, which is not merged", name, n.what);
    heft_lora_module *to = find_module(s, m, &f->x, &n);
    if (!to)
        return heft_error_no_memory(err, purpose);
    uint32_t *part = &to->part[n.role == HEFT_LORA_WHOLE ? 0 : n.role];
    if (*part != HEFT_NONE || to->is_whole != (n.role == HEFT_LORA_WHOLE))
        return heft_error_plain(err, HEFT_E_FORMAT, "tensor %q: the adapter has two of its kind",
                                name);
    *part = i;
    return HEFT_OK;
}

/* Refuse a matrix whose partner is missing. */
static heft_status check_pair(const heft_lora_module *m, const heft_file *f, int down, int up,
                              heft_error *err)
{
    if ((m->part[down] == HEFT_NONE) == (m->part[up] == HEFT_NONE))
        return HEFT_OK;
    uint32_t there = m->part[down] != HEFT_NONE ? m->part[down] : m->part[up];
    return heft_error_plain(err, HEFT_E_FORMAT,
                            "tensor %q has no partner: module %q lacks the %s matrix",
                            heft_ix_name(&f->x, there), m->name,
                            m->part[down] == HEFT_NONE ? "first (A, down)" : "second (B, up)");
}

static heft_status check_module(const heft_lora_module *m, const heft_file *f, heft_error *err)
{
    if (m->is_whole)
        return HEFT_OK;
    HEFT_TRY(check_pair(m, f, HEFT_LORA_DOWN, HEFT_LORA_UP, err));
    HEFT_TRY(check_pair(m, f, HEFT_LORA_EMBEDDING_DOWN, HEFT_LORA_EMBEDDING_UP, err));
    bool has_pair = m->part[HEFT_LORA_DOWN] != HEFT_NONE;
    bool is_embedding = m->part[HEFT_LORA_EMBEDDING_DOWN] != HEFT_NONE;
    bool has_difference = m->part[HEFT_LORA_DIFFERENCE] != HEFT_NONE;
    for (int k = 0; k < HEFT_LORA_ROLES; k++)
        if (m->part[k] != HEFT_NONE && !has_pair && !is_embedding && !has_difference)
            return heft_error_plain(err, HEFT_E_FORMAT,
                                    "tensor %q has no matrices to which it belongs",
                                    heft_ix_name(&f->x, m->part[k]));
    if (has_pair + is_embedding + has_difference > 1)
        return heft_error_plain(err, HEFT_E_FORMAT, "module %q has two kinds of matrices", m->name);
    return HEFT_OK;
}

heft_status heft_lora_modules_read(heft_lora_modules *out, heft_memory *m, const heft_file *f,
                                   heft_error *err)
{
    uint32_t tensors = heft_ix_tensors(&f->x);
    *out = (heft_lora_modules){ .all = { NULL, 0, 0 } };
    if (!heft_names_reserve(m, &out->names, tensors + 1))
        return heft_error_no_memory(err, purpose);
    for (uint32_t i = 0; i < tensors; i++)
        HEFT_TRY(add_tensor(out, m, f, i, err));
    for (uint32_t i = 0; i < out->all.len; i++)
        HEFT_TRY(check_module(module_at(out, i), f, err));
    return HEFT_OK;
}

void heft_lora_modules_free(heft_lora_modules *s, heft_memory *m)
{
    heft_names_free(m, &s->names);
    heft_vec_free(m, &s->all, sizeof(heft_lora_module));
}
