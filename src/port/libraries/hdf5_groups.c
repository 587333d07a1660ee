/* hdf5_groups.c - opens a file and walks through its groups, each once, whatever links lead to it;
 * in the worker. */
#include "port/libraries/hdf5_library.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { MOST_PATH = 4096 };

typedef struct object { /* a slot of the table of objects by address */
    uint64_t address;
    uint32_t number; /* number of its first array or group, plus 1; 0: free */
    bool is_group;
} object;

typedef struct walk {
    heft_hdf5_file *f;
    heft_vec groups; /* heft_str: paths, the root first */
    heft_vec soft;   /* heft_str: paths of soft links, which are followed at the end */
    object *objects;
    uint32_t mask, count;
    uint64_t secret;
    heft_str path; /* path of the group that is listed */
    heft_status st;
} walk;

heft_status heft_hdf5_fail(heft_hdf5_file *f, const char *what, heft_str name)
{
    heft_status st = heft_hdf5_driver_error(f->driver, f->err);
    return st ? st : heft_hdf5_library_error(f->err, what, name);
}

heft_status heft_hdf5_no_memory(heft_hdf5_file *f)
{
    return heft_error_rule(f->err,
                           heft_error_plain(f->err, HEFT_E_LIMIT,
                                            "the list of the HDF5 file exceeds the limit of %U "
                                            "bytes of memory",
                                            f->mem.limit),
                           "heft/limit-index");
}

/* ---- objects by address ---- */

static uint32_t slot_of(const walk *w, uint64_t address)
{
    uint64_t h = (address ^ w->secret) * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
    uint32_t at = (uint32_t)(h >> 32) & w->mask;
    while (w->objects[at].number && w->objects[at].address != address)
        at = (at + 1) & w->mask;
    return at;
}

static bool grow(walk *w)
{
    enum { FIRST = 256 };
    object *old = w->objects;
    uint32_t slots = old ? w->mask + 1 : 0, more = slots ? 2 * slots : FIRST;
    if (old && w->count < slots / 2)
        return true;
    object *grown = heft_mem_alloc(&w->f->mem, more * sizeof *grown);
    if (!grown)
        return false;
    memset(grown, 0, more * sizeof *grown);
    w->objects = grown;
    w->mask = more - 1;
    for (uint32_t i = 0; i < slots; i++)
        if (old[i].number)
            grown[slot_of(w, old[i].address)] = old[i];
    heft_mem_free(&w->f->mem, old, slots * sizeof *old);
    return true;
}

static uint64_t address_of(const H5G_stat_t *of)
{
    return of->objno[0] + ((uint64_t)of->objno[1] << 32); /* the second is 0 if the first has 64 */
}

/* Return the object, new if its number is 0; NULL: no memory. */
static object *find_object(walk *w, const H5G_stat_t *of)
{
    if (!grow(w))
        return NULL;
    object *o = &w->objects[slot_of(w, address_of(of))];
    o->address = address_of(of);
    w->count += !o->number;
    return o;
}

/* ---- names ---- */

/* Append a link to the path of the group; ptr NULL: refused. */
static heft_str path_of(walk *w, const char *name)
{
    heft_hdf5_file *f = w->f;
    heft_str link = { name, strlen(name) }, path = { NULL, 0 };
    if (!heft_str_is_utf8(link))
        w->st = heft_error_plain(f->err, HEFT_E_UNSUPPORTED, "the name %q is not UTF-8", link);
    else if (w->path.len + link.len > MOST_PATH)
        w->st = heft_error_plain(f->err, HEFT_E_LIMIT,
                                 "the name %q in %q is longer than %U bytes with its groups", link,
                                 w->path, (uint64_t)MOST_PATH);
    else if (!(path = heft_arena_join(&f->arena, w->path, heft_lit(w->path.len ? "/" : ""), link))
                  .ptr ||
             !(path.ptr = heft_arena_join(&f->arena, path, (heft_str){ "", 1 }, (heft_str){ "", 0 })
                              .ptr)) /* ends with a NUL for the library */
        w->st = heft_hdf5_no_memory(f);
    return w->st ? (heft_str){ NULL, 0 } : path;
}

static heft_status add_alias(walk *w, heft_str name, heft_str target)
{
    heft_container_alias a = { name, target };
    return heft_vec_add(&w->f->mem, &w->f->aliases, &a, sizeof a) ? HEFT_OK
                                                                  : heft_hdf5_no_memory(w->f);
}

static heft_status refuse_outside(const walk *w, heft_str path)
{
    return heft_error_rule(w->f->err,
                           heft_error_plain(w->f->err, HEFT_E_UNSUPPORTED,
                                            "%q is a link into another file, which is not opened: "
                                            "join the files with h5copy",
                                            path),
                           "keras/outside");
}

/* ---- objects ---- */

/* Keep only the attribute that says what the elements are. */
static void keep_type(const heft_hdf5_file *f, heft_container_array *a)
{
    const heft_container_attribute *all = f->attributes.ptr;
    uint32_t end = a->first_attribute + a->attribute_count;
    a->attribute_count = 0;
    for (uint32_t i = a->first_attribute; i < end && !a->attribute_count; i++)
        if (all[i].count <= 1 && heft_str_is(all[i].value.key, "dtype")) {
            a->first_attribute = i;
            a->attribute_count = 1;
        }
}

/* List the dataset again under another name: the elements are shared, and the attributes are with
 * the first name, or many names of many attributes would take memory without end. */
static heft_status add_again(walk *w, object *o, heft_str path)
{
    heft_container_array a = ((const heft_container_array *)w->f->arrays.ptr)[o->number - 1];
    a.name = path;
    keep_type(w->f, &a);
    o->number = w->f->arrays.len + 1; /* the next name has few attributes to look at */
    return heft_vec_add(&w->f->mem, &w->f->arrays, &a, sizeof a) ? HEFT_OK
                                                                 : heft_hdf5_no_memory(w->f);
}

static heft_status add_object(walk *w, hid_t group, const char *name, heft_str path,
                              const H5G_stat_t *of)
{
    if (of->type != H5G_GROUP && of->type != H5G_DATASET) /* a named type */
        return HEFT_OK;
    object *o = find_object(w, of);
    if (!o)
        return heft_hdf5_no_memory(w->f);
    if (o->number && o->is_group)
        return add_alias(w, path, ((const heft_str *)w->groups.ptr)[o->number - 1]);
    if (o->number)
        return add_again(w, o, path);
    o->is_group = of->type == H5G_GROUP;
    o->number = (o->is_group ? w->groups.len : w->f->arrays.len) + 1;
    if (!o->is_group)
        return heft_hdf5_add_dataset(w->f, group, name, path);
    return heft_vec_add(&w->f->mem, &w->groups, &path, sizeof path) ? HEFT_OK
                                                                    : heft_hdf5_no_memory(w->f);
}

static herr_t visit(hid_t group, const char *name, void *ctx)
{
    walk *w = ctx;
    H5G_stat_t of;
    heft_str path = path_of(w, name);
    if (!path.ptr)
        return -1;
    if (heft_hdf5->H5Gget_objinfo(group, name, 0, &of) < 0)
        w->st = heft_hdf5_fail(w->f, "the link", path);
    else if (of.type == H5G_UDLINK)
        w->st = refuse_outside(w, path);
    else if (of.type != H5G_LINK)
        w->st = add_object(w, group, name, path, &of);
    else if (!heft_vec_add(&w->f->mem, &w->soft, &path, sizeof path))
        w->st = heft_hdf5_no_memory(w->f);
    return w->st ? -1 : 0;
}

/* The path of the root is empty, which no message shows. */
static heft_str named(heft_str path)
{
    return path.len ? path : heft_lit("/");
}

static heft_status list_group(walk *w, heft_str path)
{
    w->path = path;
    hid_t group = heft_hdf5->H5Gopen2(w->f->file, path.len ? path.ptr : "/", H5P_DEFAULT);
    if (group < 0)
        return heft_hdf5_fail(w->f, "the group", named(path));
    w->st = heft_hdf5_add_attributes(w->f, group, path, &w->f->group_attributes);
    if (!w->st && heft_hdf5->H5Giterate(group, ".", NULL, visit, w) < 0 && !w->st)
        w->st = heft_hdf5_fail(w->f, "the names in", named(path));
    heft_hdf5->H5Gclose(group);
    return w->st;
}

/* A link by name may lead to what its own name says is elsewhere, or nowhere. */
static heft_status follow(walk *w, heft_str path)
{
    H5G_stat_t of;
    if (heft_hdf5->H5Gget_objinfo(w->f->file, path.ptr, 1, &of) >= 0)
        return add_object(w, w->f->file, path.ptr, path, &of);
    heft_status st = heft_hdf5_driver_error(w->f->driver, w->f->err);
    return st ? st : add_alias(w, path, (heft_str){ NULL, 0 });
}

static heft_status walk_through(walk *w)
{
    H5G_stat_t root;
    heft_str none = { "", 0 };
    if (heft_hdf5->H5Gget_objinfo(w->f->file, "/", 0, &root) < 0)
        return heft_hdf5_fail(w->f, "the root group", none);
    HEFT_TRY(add_object(w, w->f->file, "/", none, &root));
    for (uint32_t i = 0; i < w->groups.len; i++)
        HEFT_TRY(list_group(w, ((const heft_str *)w->groups.ptr)[i]));
    for (uint32_t i = 0; i < w->soft.len; i++)
        HEFT_TRY(follow(w, ((const heft_str *)w->soft.ptr)[i]));
    return HEFT_OK;
}

/* Arrays count the attributes from the first; those of groups follow. */
static heft_status join_attributes(heft_hdf5_file *f)
{
    for (uint32_t i = 0; i < f->group_attributes.len; i++)
        if (!heft_vec_add(&f->mem, &f->attributes,
                          (const heft_container_attribute *)f->group_attributes.ptr + i,
                          sizeof(heft_container_attribute)))
            return heft_hdf5_no_memory(f);
    return HEFT_OK;
}

static heft_status open_file(heft_hdf5_file *f)
{
    f->driver = heft_hdf5_driver_new(f->file_bytes);
    if (!f->driver)
        return heft_hdf5_no_memory(f);
    f->file = heft_hdf5_driver_open(f->driver);
    return f->file < 0 ? heft_hdf5_fail(f, "the file", (heft_str){ "", 0 }) : HEFT_OK;
}

heft_status heft_hdf5_list(heft_hdf5_file *f)
{
    walk w = { .f = f };
    HEFT_TRY(heft_hdf5_start(f->err));
    HEFT_TRY(open_file(f));
    heft_status st = heft_random_u64(&w.secret, f->err);
    if (!st)
        st = walk_through(&w);
    if (!st)
        st = join_attributes(f);
    heft_mem_free(&f->mem, w.objects, w.objects ? ((size_t)w.mask + 1) * sizeof *w.objects : 0);
    heft_vec_free(&f->mem, &w.groups, sizeof(heft_str));
    heft_vec_free(&f->mem, &w.soft, sizeof(heft_str));
    return st;
}
