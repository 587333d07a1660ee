/* torch_tar.c - reads files of torch.save() before version 0.1.11: a tar archive of four members.
 *
 *   sys_info   pickle of a dictionary: protocol_version 1000, little_endian, type_sizes
 *   pickle     the main pickle; a persistent id is the number of a tensor or storage, as decimal
 *              text, or (class, file, source) for the class of a module
 *   tensors    pickle of a count; for each: pickle of (key, storage key or None, class), i32 rank,
 *              4 unused bytes, i64 sizes, i64 strides, i64 offset in the storage
 *   storages   pickle of a count; for each: pickle of (key, location, class), i64 elements, the
 *              elements; then pickle of a list of views: (key, storage key, offset, elements)
 *
 * The first archives have (key, class, storage key) and (key, class), and no views.  Numbers are in
 * the byte order of the machine.  Reference: _legacy_load() of torch/serialization.py.
 */
#include "format/torch/torch.h"
#include "grammar/tar.h"

enum {
    PROTOCOL = 1000,
    NUMBER = 8,      /* size of a dimension, stride, offset or count */
    MAX_MEMBERS = 64 /* limit for the archive; PyTorch */
};

typedef enum member { SYS_INFO, PICKLE, TENSORS, STORAGES, MEMBERS } member;
static const char *const member_names[] = { "sys_info", "pickle", "tensors", "storages" };

typedef struct reader {
    heft_torch *t;
    heft_tar_entry members[MEMBERS];
    bool has[MEMBERS];
    heft_vec storages, storage_views, records;
} reader;

static const char purpose[] = "for a list of storages";

static heft_status fail(const reader *r, uint64_t at, member m, const char *what)
{
    return heft_error_set(r->t->x->err, HEFT_E_FORMAT, at, "%s: %s", member_names[m], what);
}

static uint64_t end_of(const reader *r, member m)
{
    return r->members[m].data.offset + r->members[m].data.length;
}

static uint64_t read_number(const heft_torch *t, const uint8_t *p)
{
    return t->is_big_endian ? heft_be64(p) : heft_le64(p);
}

/* ---- members ---- */

static member member_of(heft_str name)
{
    uint32_t m = 0;
    if (name.len > 2 && name.ptr[0] == '.' && name.ptr[1] == '/')
        name = (heft_str){ name.ptr + 2, name.len - 2 };
    while (m < MEMBERS && !heft_str_is(name, member_names[m]))
        m++;
    return (member)m;
}

/* Given less than a header, recognise a name followed by zeros: the name of a member, or Python's
 * name of a pax header. */
bool heft_torch_is_tar(const uint8_t *head, size_t len)
{
    enum { NAME = 100, HEADER = 512 };
    heft_str name = { (const char *)head, 0 };
    if (len >= HEADER)
        return member_of(heft_tar_first_name(head, len)) < MEMBERS;
    len = len < NAME ? len : NAME;
    while (name.len < len && head[name.len])
        name.len++;
    for (size_t i = name.len; i < len; i++)
        if (head[i])
            return false;
    return member_of(name) < MEMBERS || heft_str_is(name, "././@PaxHeader");
}

static heft_status read_members(reader *r)
{
    heft_tar tar = { .in = r->t->in };
    heft_tar_entry e;
    bool found = true;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; !st && found; i++) {
        if (i > MAX_MEMBERS)
            return heft_error_set(r->t->x->err, HEFT_E_LIMIT, tar.at,
                                  "the archive has more than %U members; PyTorch writes 4",
                                  (uint64_t)MAX_MEMBERS);
        st = heft_tar_next(&tar, &e, &found);
        member m = st || !found ? MEMBERS : member_of(e.name);
        if (m == MEMBERS || e.has_prefix)
            continue;
        if (!e.is_file)
            return fail(r, e.header, m, "a link or a directory, not a file");
        if (r->has[m])
            return fail(r, e.header, m, "the archive has two members of that name");
        r->members[m] = e;
        r->has[m] = true;
    }
    for (uint32_t m = PICKLE; !st && m < MEMBERS; m++)
        if (!r->has[m])
            st = heft_error_plain(r->t->x->err, HEFT_E_FORMAT, "the archive has no member '%s'",
                                  member_names[m]);
    return st;
}

/* ---- small pickles ---- */

/* Read a pickle that ends within the member; advance *at from the start to the end. */
static heft_status read_small(const reader *r, heft_pickle *p, uint64_t *at, member m)
{
    heft_range where = { *at, end_of(r, m) - *at };
    HEFT_TRY(heft_pickle_read(p, r->t->in, where, &r->t->x->arena, member_names[m]));
    *at = heft_pickle_end(p);
    return HEFT_OK;
}

static heft_status read_count(const reader *r, uint64_t *count, uint64_t *at, member m)
{
    heft_pickle p;
    uint64_t begin = *at;
    heft_status st = read_small(r, &p, at, m);
    if (!st && !heft_pickle_u64(count, &p, p.root))
        st = fail(r, begin, m, "the count is missing");
    heft_pickle_free(&p);
    return st;
}

/* ---- the machine ---- */

static heft_status read_machine(const reader *r)
{
    heft_torch *t = r->t;
    heft_pickle p;
    uint64_t at = r->members[SYS_INFO].data.offset, begin = at, protocol = PROTOCOL;
    if (!r->has[SYS_INFO])
        return HEFT_OK;
    heft_status st = read_small(r, &p, &at, SYS_INFO);
    uint32_t order = st ? HEFT_NONE : heft_pickle_dict_get(&p, p.root, "little_endian");
    uint32_t version = st ? HEFT_NONE : heft_pickle_dict_get(&p, p.root, "protocol_version");
    t->is_big_endian = heft_pickle_is(&p, order, HEFT_PICKLE_BOOL) &&
                       !heft_pickle_at(&p, order)->as.b;
    bool is_known = version == HEFT_NONE ||
                    (heft_pickle_u64(&protocol, &p, version) && protocol == PROTOCOL);
    heft_pickle_free(&p);
    if (!st && !is_known)
        st = heft_error_set(t->x->err, HEFT_E_UNSUPPORTED, begin, "the protocol version is not %U",
                            (uint64_t)PROTOCOL);
    return st;
}

/* ---- storages ---- */

/* Read (key, location, class) or (key, class). */
static heft_status read_identity(const reader *r, uint64_t *at, heft_torch_storage_view *to,
                                 heft_torch_storage *s)
{
    heft_pickle p;
    to->id.at = s->at = *at;
    heft_status st = read_small(r, &p, at, STORAGES);
    uint32_t last = st ? HEFT_NONE : heft_pickle_item(&p, p.root, 2);
    if (!st && last == HEFT_NONE)
        last = heft_pickle_item(&p, p.root, 1);
    s->type = st ? NULL : heft_torch_type_of_class(&p, last, "Storage");
    if (!st && !heft_torch_read_key(&to->id.key, &p, heft_pickle_item(&p, p.root, 0)))
        st = fail(r, to->id.at, STORAGES, "the key of a storage is not a number");
    if (!st && !s->type)
        st = fail(r, to->id.at, STORAGES, "unknown storage class");
    if (!st && !s->type->type)
        st = heft_error_set(r->t->x->err, HEFT_E_UNSUPPORTED, to->id.at,
                            "%s: element type %s is not supported", member_names[STORAGES],
                            s->type->dtype);
    heft_pickle_free(&p);
    return st;
}

static heft_status read_elements(const reader *r, uint64_t *at, heft_torch_storage *s)
{
    heft_window *in = r->t->in;
    uint64_t end = end_of(r, STORAGES);
    heft_cur c = heft_cur_whole(in, *at, NUMBER, "the size of a storage");
    const uint8_t *p = heft_cur_take(&c, NUMBER);
    if (!p)
        return c.st;
    if (end - *at < NUMBER)
        return fail(r, *at, STORAGES, "truncated within the size of a storage");
    s->elements = read_number(r->t, p);
    s->offset = *at + NUMBER;
    s->is_located = true;
    s->first_tensor = HEFT_NONE;
    s->key = (heft_str){ "", 0 };
    if (s->elements > INT64_MAX || !heft_dtype_bytes(&s->bytes, s->type->type, s->elements) ||
        !heft_range_in((heft_range){ s->offset, s->bytes }, end))
        return heft_error_set(r->t->x->err, HEFT_E_FORMAT, *at,
                              "%s: truncated within a storage of %U elements of type %s",
                              member_names[STORAGES], s->elements, s->type->dtype);
    *at = s->offset + s->bytes;
    return HEFT_OK;
}

static heft_status read_storage(reader *r, uint64_t *at)
{
    heft_memory *mem = &r->t->x->mem;
    uint64_t begin = *at;
    heft_torch_storage s = { .key = { "", 0 } };
    heft_torch_storage_view m = { .storage = r->storages.len };
    heft_status st = read_identity(r, at, &m, &s);
    if (!st)
        st = read_elements(r, at, &s);
    if (st == HEFT_AGAIN)
        heft_window_ask_ahead(r->t->in, begin, r->storages.len);
    if (st)
        return st;
    m.bytes = s.bytes;
    bool has_memory = heft_vec_add(mem, &r->storages, &s, sizeof s) &&
                      heft_vec_add(mem, &r->storage_views, &m, sizeof m);
    return has_memory ? HEFT_OK : heft_error_no_memory(r->t->x->err, purpose);
}

/* ---- views of storages ---- */

static heft_status read_view(reader *r, const heft_pickle *p, uint32_t item)
{
    const heft_torch *t = r->t;
    heft_torch_storage_view v = { .id.at = heft_pickle_offset(p, item) };
    uint64_t first, elements;
    int64_t root;
    if (!heft_torch_read_key(&v.id.key, p, heft_pickle_item(p, item, 0)) ||
        !heft_torch_read_key(&root, p, heft_pickle_item(p, item, 1)) ||
        !heft_pickle_u64(&first, p, heft_pickle_item(p, item, 2)) ||
        !heft_pickle_u64(&elements, p, heft_pickle_item(p, item, 3)))
        return fail(r, v.id.at, STORAGES, "a view does not consist of four numbers");
    uint32_t parent = heft_torch_find_storage_view(t, root);
    if (parent == HEFT_NONE)
        return fail(r, v.id.at, STORAGES, "a view refers to a missing storage");
    v.storage = t->storage_views[parent].storage;
    const heft_torch_storage *s = (const heft_torch_storage *)r->storages.ptr + v.storage;
    uint64_t size = heft_dtype_size(s->type->type);
    if (!heft_mul(&v.base, first, size) || !heft_mul(&v.bytes, elements, size) ||
        !heft_range_in((heft_range){ v.base, v.bytes }, s->bytes))
        return fail(r, v.id.at, STORAGES, "a view extends past the storage");
    return heft_vec_add(&r->t->x->mem, &r->storage_views, &v, sizeof v)
               ? HEFT_OK
               : heft_error_no_memory(r->t->x->err, purpose);
}

static heft_status read_views(reader *r, uint64_t at)
{
    heft_pickle p;
    uint32_t item;
    uint64_t begin = at, end = end_of(r, STORAGES);
    if (at == end) /* the first archives have no views */
        return HEFT_OK;
    heft_status st = read_small(r, &p, &at, STORAGES);
    if (!st && !heft_pickle_is(&p, p.root, HEFT_PICKLE_LIST))
        st = fail(r, begin, STORAGES, "the views are not a list");
    if (!st) {
        heft_pickle_items i = heft_pickle_items_of(&p, p.root);
        while (!st && heft_pickle_next(&p, &i, &item))
            st = read_view(r, &p, item);
    }
    heft_pickle_free(&p);
    if (!st && at < end)
        heft_ix_note(r->t->x, HEFT_WARNING, "torch/trailing", at, HEFT_NONE,
                     "unexpected bytes after the last storage");
    return st;
}

static heft_status sort_storage_views(const reader *r)
{
    void *sorted;
    heft_status st = heft_torch_sort(r->t, &r->storage_views, sizeof *r->t->storage_views,
                                     "storage", &sorted);
    r->t->storage_views = sorted;
    r->t->storage_view_count = r->storage_views.len;
    return st;
}

static heft_status read_storages(reader *r)
{
    uint64_t count = 0, at = r->members[STORAGES].data.offset;
    heft_status st = read_count(r, &count, &at, STORAGES);
    for (uint64_t i = 0; !st && i < count;
         i++) /* every storage takes bytes, so the loop ends with the member */
        st = read_storage(r, &at);
    if (!st)
        st = sort_storage_views(r); /* needed to look up the storages of views */
    if (!st)
        st = read_views(r, at);
    if (!st)
        st = sort_storage_views(r);
    r->t->storages = r->storages.ptr;
    r->t->storage_count = r->storages.len;
    return st;
}

/* ---- tensors ---- */

/* Read (key, storage key, class) or (key, class, storage key). */
static heft_status read_names(const reader *r, uint64_t *at, heft_torch_record *to)
{
    heft_pickle p;
    int64_t storage;
    to->id.at = *at;
    heft_status st = read_small(r, &p, at, TENSORS);
    if (st) {
        heft_pickle_free(&p);
        return st;
    }
    bool is_first_version = heft_pickle_is(&p, heft_pickle_item(&p, p.root, 1), HEFT_PICKLE_GLOBAL);
    uint32_t parent = heft_pickle_item(&p, p.root, is_first_version ? 2 : 1);
    to->type = heft_torch_type_of_class(&p, heft_pickle_item(&p, p.root, is_first_version ? 1 : 2),
                                        "Tensor");
    if (!heft_torch_read_key(&to->id.key, &p, heft_pickle_item(&p, p.root, 0)))
        st = fail(r, to->id.at, TENSORS, "the key of a tensor is not a number");
    else if (heft_torch_read_key(&storage, &p, parent)) {
        to->storage_view = heft_torch_find_storage_view(r->t, storage);
        if (to->storage_view == HEFT_NONE)
            st = fail(r, to->id.at, TENSORS, "the storage of a tensor is missing");
    } else if (!heft_pickle_is(&p, parent, HEFT_PICKLE_NONE))
        st = fail(r, to->id.at, TENSORS, "the storage of a tensor is neither a number nor None");
    else if (!to->type || !to->type->type)
        st = heft_error_set(r->t->x->err, HEFT_E_UNSUPPORTED, to->id.at,
                            "%s: a tensor without a storage has an unknown class",
                            member_names[TENSORS]);
    heft_pickle_free(&p);
    return st;
}

static heft_status read_sizes(const reader *r, uint64_t *at, heft_torch_record *to)
{
    enum { RANK = 8 }; /* four bytes, and four unused bytes */
    uint64_t end = end_of(r, TENSORS);
    heft_cur c = heft_cur_whole(r->t->in, *at, end - *at, member_names[TENSORS]);
    const uint8_t *p = heft_cur_take(&c, RANK);
    if (!p)
        return c.st;
    to->rank = r->t->is_big_endian ? (uint32_t)(heft_be64(p) >> 32) : heft_le32(p);
    uint64_t numbers = 2 * (uint64_t)to->rank + 1;
    if (to->rank > INT32_MAX || numbers > heft_cur_left(&c) / NUMBER)
        return heft_error_set(r->t->x->err, HEFT_E_FORMAT, *at,
                              "%s: truncated within the sizes of a tensor of rank %U",
                              member_names[TENSORS], (uint64_t)to->rank);
    to->sizes = heft_cur_take(&c, numbers * NUMBER);
    for (uint64_t i = 0; i < numbers; i++)
        if (read_number(r->t, to->sizes + NUMBER * i) > INT64_MAX)
            return fail(r, *at, TENSORS, "a size, stride or offset is negative");
    to->first = read_number(r->t, to->sizes + NUMBER * (numbers - 1));
    *at = heft_cur_pos(&c);
    return HEFT_OK;
}

/* Request the whole member at once: the member is small, since elements are stored elsewhere. */
static heft_status read_tensors(reader *r)
{
    heft_torch *t = r->t;
    heft_range where = r->members[TENSORS].data;
    uint64_t count = 0, at = where.offset;
    heft_cur all = heft_cur_whole(t->in, where.offset, where.length, member_names[TENSORS]);
    HEFT_TRY(all.st ? all.st : read_count(r, &count, &at, TENSORS));
    for (uint64_t i = 0; i < count; i++) {
        heft_torch_record record = { .storage_view = HEFT_NONE };
        HEFT_TRY(read_names(r, &at, &record));
        HEFT_TRY(read_sizes(r, &at, &record));
        if (!heft_vec_add(&t->x->mem, &r->records, &record, sizeof record))
            return heft_error_no_memory(r->t->x->err, purpose);
    }
    if (at < where.offset + where.length)
        heft_ix_note(t->x, HEFT_WARNING, "torch/trailing", at, HEFT_NONE,
                     "unexpected bytes after the last tensor");
    void *sorted;
    heft_status st = heft_torch_sort(t, &r->records, sizeof *t->records, "tensor", &sorted);
    t->records = sorted;
    t->record_count = r->records.len;
    return st;
}

/* ---- the archive ---- */

heft_status heft_torch_parse_tar(heft_torch *t)
{
    reader r = { .t = t };
    t->is_tar = true;
    t->x->version = heft_lit("tar");
    heft_status st = read_members(&r);
    if (!st)
        st = read_machine(&r);
    if (!st)
        st = heft_torch_read_pickle(t, t->in, r.members[PICKLE].data, HEFT_NOWHERE, "the pickle");
    if (!st)
        st = read_storages(&r);
    if (!st)
        st = read_tensors(&r);
    if (!st)
        st = heft_torch_walk(t);
    heft_vec_free(&t->x->mem, &r.records, sizeof(heft_torch_record));
    heft_vec_free(&t->x->mem, &r.storage_views, sizeof(heft_torch_storage_view));
    heft_vec_free(&t->x->mem, &r.storages, sizeof(heft_torch_storage));
    t->storages = NULL;
    t->storage_count = 0;
    return st;
}
