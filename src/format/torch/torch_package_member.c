/* torch_package_member.c - the members of a package: texts, files of torch.save(), storages. */
#include "base/sort.h"
#include "format/torch/torch_package.h"

static heft_status no_memory(const heft_torch_package *p)
{
    return heft_error_no_memory(p->t.x->err, "for the members of a package");
}

heft_str heft_torch_package_path(const heft_torch_package *p, const heft_zip_entry *e)
{
    size_t skip = p->root.len;
    if (e->name.len < skip || memcmp(e->name.ptr, p->root.ptr, skip) != 0)
        return (heft_str){ NULL, 0 };
    return (heft_str){ e->name.ptr + skip, e->name.len - skip };
}

heft_str heft_torch_package_name(const heft_torch_package *p, heft_str name)
{
    return p->prefix.len ? heft_arena_join(&p->t.x->arena, p->prefix, name, heft_lit("")) : name;
}

heft_status heft_torch_package_text(const heft_torch_package *p, const heft_zip_entry *e,
                                    uint64_t most, heft_str *out)
{
    heft_error *err = p->t.x->err;
    if (e->is_opaque)
        return heft_zip_refuse_opaque(e, err);
    if (e->is_cut)
        return heft_error_set(err, HEFT_E_FORMAT, e->data, "the archive ends within %q", e->name);
    if (e->content > most)
        return heft_error_set(err, HEFT_E_LIMIT, e->head, "member %q has more than %U bytes",
                              e->name, most);
    if (e->method != HEFT_ZIP_STORED)
        return heft_torch_inflate(&p->t, e, out);
    heft_cur c = heft_cur_whole(p->t.in, e->data, e->stored, "a text of the package");
    *out = (heft_str){ (const char *)heft_cur_take(&c, e->stored), (size_t)e->stored };
    return c.st ? c.st : heft_torch_checksum(&p->t, e, HEFT_NONE, true);
}

heft_status heft_torch_package_json(heft_json *out, const heft_torch_package *p,
                                    const heft_zip_entry *e)
{
    enum { MOST = 1 << 30 };
    heft_index *x = p->t.x;
    heft_str text;
    HEFT_TRY(heft_torch_package_text(p, e, MOST, &text));
    *out = heft_json_open(text, e->data, HEFT_JSON_DEPTH, &x->arena, x->err);
    return HEFT_OK;
}

heft_status heft_torch_package_open(heft_torch *out, const heft_torch_package *p,
                                    const heft_zip_entry *e)
{
    heft_error *err = p->t.x->err;
    *out = (heft_torch){ .in = p->t.in, .x = p->t.x, .member = { e->data, e->stored } };
    if (e->is_opaque || e->method != HEFT_ZIP_STORED || !e->stored)
        return heft_error_set(err, HEFT_E_UNSUPPORTED, e->head,
                              "the weights %q in the package are compressed, encrypted or empty: "
                              "unpack it first, and name that file",
                              e->name);
    return e->is_cut
               ? heft_error_set(err, HEFT_E_FORMAT, e->data, "the archive ends within %q", e->name)
               : HEFT_OK;
}

heft_status heft_torch_package_saved(heft_torch_package *p, const heft_zip_entry *e,
                                     heft_str prefix)
{
    heft_torch t;
    if (!e->content) /* the program has no such tensors */
        return HEFT_OK;
    HEFT_TRY(heft_torch_package_open(&t, p, e));
    t.prefix = prefix;
    heft_status st = heft_torch_parse_member(&t);
    if (st == HEFT_AGAIN) { /* let other members say what they need */
        p->lacks_bytes = true;
        return HEFT_OK;
    }
    return st ? heft_error_in(t.x->err, st, e->name)
              : heft_torch_checksum(&p->t, e, HEFT_NONE, false);
}

heft_status heft_torch_package_leave_out(const heft_torch_package *p, uint32_t member,
                                         heft_str name, const char *why)
{
    const heft_zip_entry *e = p->members[member];
    heft_range where = { e->data, e->stored };
    heft_index *x = p->t.x;
    heft_ix_left_out(x, HEFT_LEFT_OUT, "torch/storage", where, "%q is left out: %s", name, why);
    if (x->pick.len || e->is_opaque || e->is_cut || e->method != HEFT_ZIP_STORED || !e->stored)
        return HEFT_OK;
    HEFT_TRY(heft_ix_part(x, HEFT_NONE, name, HEFT_UNTYPED, where, e->stored, HEFT_RAW));
    heft_ix_part_is_left_out(x);
    return heft_torch_checksum(&p->t, e, HEFT_NONE, false);
}

/* ---- folders ---- */

static heft_torch_storage storage_of(const heft_zip_entry *e, heft_str name)
{
    return (heft_torch_storage){ .key = name,
                                 .offset = e->data,
                                 .bytes = e->content,
                                 .stored = e->stored,
                                 .crc = e->crc,
                                 .first_tensor = HEFT_NONE,
                                 .is_located = !e->is_cut,
                                 .is_deflated = e->method == HEFT_ZIP_DEFLATED,
                                 .is_opaque = e->is_opaque };
}

static bool has_lower_name(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_zip_entry *const *entries = ctx;
    return heft_str_order(entries[a]->name, entries[b]->name) < 0;
}

heft_status heft_torch_package_list(heft_torch_package *p, const char *folder)
{
    heft_arena *arena = &p->t.x->arena;
    size_t skip = p->root.len + heft_lit(folder).len, count = p->zip->count, n = 0;
    const heft_zip_entry **found = heft_arena_alloc(arena, count * sizeof(void *) + 1, 8);
    uint32_t *order = heft_arena_alloc(arena, 2 * count * sizeof *order + 1, 4);
    for (uint32_t i = 0; i < p->zip->count && found; i++) {
        heft_str path = heft_torch_package_path(p, &p->zip->entries[i]);
        if (path.ptr && heft_str_begins(path, folder) && path.len > heft_lit(folder).len)
            found[n++] = &p->zip->entries[i];
    }

    p->members = heft_arena_alloc(arena, n * sizeof(void *) + 1, 8);
    p->is_read = heft_arena_alloc(arena, n + 1, 1);
    p->t.storages = heft_arena_alloc(arena, n * sizeof *p->t.storages + 1, 8);
    if (!found || !order || !p->members || !p->is_read || !p->t.storages)
        return no_memory(p);
    memset(p->is_read, 0, n + 1);
    p->t.storage_count = (uint32_t)n;
    heft_sort_numbers(order, p->t.storage_count, has_lower_name, found);
    for (uint32_t i = 0; i < n; i++) {
        const heft_zip_entry *e = found[order[i]];
        p->members[i] = e;
        p->t.storages[i] = storage_of(e, (heft_str){ e->name.ptr + skip, e->name.len - skip });
    }
    return HEFT_OK;
}
