/* lora_match.c - finds the tensors of a model by the names of an adapter's modules. */
#include "base/error.h"
#include "base/text.h"
#include "lora/merging.h"

/* ---- other names ---- */

static heft_str other_at(const void *ctx, uint32_t i)
{
    return ((const heft_lora_base *)ctx)->others[i];
}

bool heft_lora_base_open(heft_lora_base *b)
{
    uint32_t tensors = heft_ix_tensors(&b->f->x);
    heft_names_of of = { other_at, b };
    if (!b->opt->other_name)
        return true;
    b->others = heft_arena_alloc(b->arena, ((size_t)tensors + 1) * sizeof *b->others,
                                 sizeof(void *));
    if (!b->others || !heft_names_reserve(b->mem, &b->other_names, tensors + 1))
        return false;
    for (uint32_t i = 0; i < tensors; i++) {
        heft_str name = b->opt->other_name(b->opt->ctx, i);
        b->others[i] = name.len ? heft_arena_copy(b->arena, name) : heft_lit("");
        if (!b->others[i].ptr)
            return false;
        if (name.len)
            (void)heft_names_add(&b->other_names, of, heft_names_hash(&b->f->x.key, b->others[i]),
                                 b->others[i], i);
    }
    return true;
}

static uint32_t find_name(const heft_lora_base *b, heft_str name)
{
    heft_names_of of = { other_at, b };
    uint32_t found = heft_tensor_find(b->f, name);
    return found != HEFT_NONE || !b->others
               ? found
               : heft_names_find(&b->other_names, of, heft_names_hash(&b->f->x.key, name), name);
}

/* ---- names with dots ---- */

/* Find PREFIX NAME SUFFIX; the name without the first `cut` bytes. */
static uint32_t find_joined(heft_lora_base *b, const char *prefix, heft_str name, size_t cut,
                            const char *suffix, bool *no_memory)
{
    heft_str first = heft_lit(prefix), last = heft_lit(suffix);
    size_t bytes = first.len + (name.len - cut) + last.len;
    if (!bytes)
        return HEFT_NONE;
    if (bytes > b->text_bytes) {
        char *text = heft_mem_resize(b->mem, b->text, b->text_bytes, 2 * bytes);
        *no_memory = *no_memory || !text;
        if (!text)
            return HEFT_NONE;
        b->text = text;
        b->text_bytes = 2 * bytes;
    }
    if (first.len)
        memcpy(b->text, first.ptr, first.len);
    memcpy(b->text + first.len, name.ptr + cut, name.len - cut);
    if (last.len)
        memcpy(b->text + first.len + name.len - cut, last.ptr, last.len);
    return find_name(b, (heft_str){ b->text, bytes });
}

/* Return how many bytes of the name a prefix takes; false: the name begins in another way. */
static bool has_prefix(heft_str name, const char *prefix, size_t *cut)
{
    heft_str p = heft_lit(prefix);
    *cut = p.len;
    return !p.len || (name.len > p.len && !memcmp(name.ptr, p.ptr, p.len));
}

static uint32_t find_dotted(heft_lora_base *b, heft_str module, const char *suffix, bool *no_memory)
{
    uint32_t found = HEFT_NONE;
    size_t cut;
    for (uint32_t i = 0; found == HEFT_NONE && heft_lora_prefix_at(i, false).from; i++) {
        heft_lora_prefix p = heft_lora_prefix_at(i, false);
        if (has_prefix(module, p.from, &cut))
            found = find_joined(b, p.to, module, cut, suffix, no_memory);
    }
    return found;
}

/* ---- names with underscores ---- */

static heft_str flat_at(const void *ctx, uint32_t i)
{
    return ((const heft_lora_base *)ctx)->flat[i];
}

/* Copy the name of a weight without ".weight", with underscores for dots; empty: no weight. */
static heft_str flatten(heft_arena *a, heft_str name)
{
    if (!heft_str_ends(name, ".weight"))
        return heft_lit("");
    heft_str flat = heft_arena_copy(a, (heft_str){ name.ptr, name.len - (sizeof ".weight" - 1) });
    for (size_t i = 0; flat.ptr && i < flat.len; i++)
        if (flat.ptr[i] == '.')
            ((char *)(uintptr_t)flat.ptr)[i] = '_';
    return flat;
}

/* Make the table of flat names, once. */
static bool make_flat_names(heft_lora_base *b)
{
    uint32_t tensors = heft_ix_tensors(&b->f->x), n = b->others ? 2 * tensors : tensors;
    heft_names_of of = { flat_at, b };
    if (b->flat)
        return true;
    if (tensors > (UINT32_MAX - 1) / 2)
        return false;
    b->flat = heft_arena_alloc(b->arena, ((size_t)n + 1) * sizeof *b->flat, sizeof(void *));
    b->is_shared = heft_arena_alloc(b->arena, (size_t)n + 1, 1);
    if (!b->flat || !b->is_shared || !heft_names_reserve(b->mem, &b->flat_names, n + 1))
        return false;
    memset(b->is_shared, 0, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++) {
        b->flat[i] = flatten(b->arena,
                             i < tensors ? heft_ix_name(&b->f->x, i) : b->others[i - tensors]);
        if (!b->flat[i].ptr)
            return false;
        if (!b->flat[i].len)
            continue;
        uint32_t first = heft_names_add(&b->flat_names, of,
                                        heft_names_hash(&b->f->x.key, b->flat[i]), b->flat[i], i);
        if (first != HEFT_NONE && first + tensors != i)
            b->is_shared[first] = 1;
    }
    return true;
}

static uint32_t find_flat(heft_lora_base *b, heft_str module, bool *no_memory)
{
    heft_names_of of = { flat_at, b };
    uint32_t found = HEFT_NONE;
    size_t cut;
    if (!make_flat_names(b)) {
        *no_memory = true;
        return HEFT_NONE;
    }
    for (uint32_t i = 0; found == HEFT_NONE && heft_lora_prefix_at(i, true).from; i++) {
        heft_lora_prefix p = heft_lora_prefix_at(i, true);
        if (!has_prefix(module, p.from, &cut))
            continue;
        heft_str name = heft_arena_join(b->arena, heft_lit(p.to),
                                        (heft_str){ module.ptr + cut, module.len - cut },
                                        heft_lit(""));
        *no_memory = *no_memory || !name.ptr;
        if (name.ptr)
            found = heft_names_find(&b->flat_names, of, heft_names_hash(&b->f->x.key, name), name);
    }
    if (found == HEFT_NONE || b->is_shared[found])
        return HEFT_NONE;
    uint32_t tensors = heft_ix_tensors(&b->f->x);
    return found < tensors ? found : found - tensors;
}

/* ---- the call ---- */

/* Old files of diffusers name the object that computes attention, too. */
static heft_str without_processor(heft_lora_base *b, heft_str module)
{
    static const char word[] = ".processor.";
    size_t len = sizeof word - 1;
    for (size_t i = 0; i + len < module.len; i++)
        if (!memcmp(module.ptr + i, word, len))
            return heft_arena_join(b->arena, (heft_str){ module.ptr, i + 1 },
                                   (heft_str){ module.ptr + i + len, module.len - i - len },
                                   heft_lit(""));
    return module;
}

uint32_t heft_lora_base_find(heft_lora_base *b, heft_str module, bool is_flat, const char *suffix,
                             bool *no_memory)
{
    heft_str name = heft_lora_unwrapped(module);
    uint32_t found = is_flat ? find_flat(b, module, no_memory)
                             : find_dotted(b, name, suffix, no_memory);
    if (found != HEFT_NONE || is_flat)
        return found;
    heft_str other = without_processor(b, name);
    *no_memory = *no_memory || !other.ptr;
    found = other.ptr && other.len != name.len ? find_dotted(b, other, suffix, no_memory) : found;
    /* "to_out" is a list, whose first entry has the weight. */
    if (found == HEFT_NONE && other.ptr && heft_str_ends(other, ".to_out")) {
        other = heft_arena_join(b->arena, other, heft_lit(".0"), heft_lit(""));
        *no_memory = *no_memory || !other.ptr;
        found = other.ptr ? find_dotted(b, other, suffix, no_memory) : found;
    }
    return found;
}

void heft_lora_base_free(heft_lora_base *b)
{
    heft_names_free(b->mem, &b->other_names);
    heft_names_free(b->mem, &b->flat_names);
    heft_mem_free(b->mem, b->text, b->text_bytes);
}
