/* torch_zip.c - reads the zip archive of torch.save() or TorchScript; torch.c shows the layout. */
#include "format/torch/torch.h"
#include "format/zip_archive.h"

static bool begins(heft_str s, heft_str prefix)
{
    return s.len >= prefix.len && !memcmp(s.ptr, prefix.ptr, prefix.len);
}

static const heft_zip_entry *find_member(const heft_torch_archive *a, const char *name)
{
    heft_str end = heft_lit(name);
    for (uint32_t i = 0; i < a->z.count; i++) {
        heft_str s = a->z.entries[i].name;
        if (s.len == a->folder.len + end.len && begins(s, a->folder) &&
            !memcmp(s.ptr + a->folder.len, end.ptr, end.len))
            return &a->z.entries[i];
    }
    return NULL;
}

/* Get the content of a short member without trailing newlines; empty if there is no such member. */
static heft_status small_member(const heft_torch *t, const heft_torch_archive *a, const char *name,
                                heft_str *out)
{
    enum { MAX_BYTES = 32 };
    const heft_zip_entry *e = find_member(a, name);
    *out = (heft_str){ "", 0 };
    if (!e || e->is_cut)
        return HEFT_OK;
    if (e->is_opaque)
        return heft_zip_refuse_opaque(e, t->x->err);
    if (e->content > MAX_BYTES)
        return heft_error_set(t->x->err, HEFT_E_UNSUPPORTED, e->head,
                              "member %q has more than %U bytes", e->name, (uint64_t)MAX_BYTES);
    heft_cur c = heft_cur_whole(t->in, e->data, e->stored, "a member of the archive");
    heft_status st = c.st;
    if (e->method != HEFT_ZIP_STORED)
        st = heft_torch_inflate(t, e, out);
    else if (!st)
        *out = (heft_str){ (const char *)heft_cur_take(&c, e->stored), (size_t)e->stored };
    if (st)
        return st;
    while (out->len && (out->ptr[out->len - 1] == '\n' || out->ptr[out->len - 1] == '\r'))
        out->len--;
    return HEFT_OK;
}

static heft_status read_properties(heft_torch *t, const heft_torch_archive *a)
{
    heft_str order, version;
    HEFT_TRY(small_member(t, a, "byteorder", &order));
    HEFT_TRY(small_member(t, a, "version", &version));
    t->is_big_endian = heft_str_is(order, "big");
    if (order.len && !t->is_big_endian && !heft_str_is(order, "little"))
        return heft_error_set(t->x->err, HEFT_E_FORMAT, find_member(a, "byteorder")->data,
                              "the byte order is neither 'little' nor 'big' but %q", order);
    bool is_text = heft_is_ascii(version.ptr, version.len) && !heft_str_has_nul(version);
    t->x->version = is_text ? version : heft_lit("");
    return HEFT_OK;
}

heft_status heft_torch_open_archive(heft_torch *t, heft_torch_archive *a)
{
    bool is_member = !HEFT_IS_LEAN && t->member.length;
    HEFT_TRY(is_member ? heft_torch_open_member(&a->z, t) : heft_zip_archive(&a->z, t->x, t->in));
    heft_str first = a->z.count ? a->z.entries[0].name : (heft_str){ "", 0 };
    size_t len = 0;
    while (len < first.len && first.ptr[len] != '/')
        len++;
    a->folder = (heft_str){ first.ptr, len < first.len ? len + 1 : 0 };
    a->storage = heft_arena_join(&t->x->arena, a->folder, heft_lit("data/"), heft_lit(""));
    return a->storage.ptr ? read_properties(t, a) : heft_error_no_memory(t->x->err, "for a name");
}

/* Return the storage that a member holds, or NULL if the pickle does not mention the storage. */
static heft_torch_storage *storage_of(const heft_torch *t, const heft_torch_archive *a,
                                      const heft_zip_entry *e)
{
    heft_str key = { e->name.ptr + a->storage.len, e->name.len - a->storage.len };
    return begins(e->name, a->storage) ? heft_torch_storage_find(t, key) : NULL;
}

/* Locate the storage in a member whose end has not been found.  The storage is lost if more bytes
 * follow, which then are not those of a descriptor. */
static void locate_cut(heft_torch_storage *s, const heft_zip_entry *e)
{
    enum { DESCRIPTOR = 16 };
    s->offset = e->data;
    s->is_located = e->method == HEFT_ZIP_STORED && s->type->type &&
                    (s->bytes > e->stored || e->stored - s->bytes < DESCRIPTOR);
}

/* Record the location of a storage.  The size only matters if the type is supported. */
static heft_status locate_storage(const heft_torch *t, heft_torch_storage *s,
                                  const heft_zip_entry *e)
{
    if (e->is_cut) {
        locate_cut(s, e);
        return HEFT_OK;
    }
    s->offset = e->data;
    s->stored = e->stored;
    s->is_located = true;
    s->is_deflated = e->method == HEFT_ZIP_DEFLATED;
    s->is_opaque = e->is_opaque;
    s->crc = e->crc;
    if (!s->type->type || s->is_opaque || s->bytes == e->content)
        return HEFT_OK;
    if (s->bytes > e->content || s->is_deflated)
        return heft_error_set(t->x->err, HEFT_E_FORMAT, e->head,
                              "storage %q should have %U bytes, the archive has %U", s->key,
                              s->bytes, e->content);
    heft_ix_note(t->x, HEFT_WARNING, "torch/storage-size", e->data + s->bytes, HEFT_NONE,
                 "a storage has more bytes than the pickle states");
    return HEFT_OK;
}

static heft_status locate_storages(const heft_torch *t, const heft_torch_archive *a)
{
    for (uint32_t i = 0; i < a->z.count; i++) {
        const heft_zip_entry *e = &a->z.entries[i];
        heft_torch_storage *s = storage_of(t, a, e);
        if (s)
            HEFT_TRY(locate_storage(t, s, e));
    }
    return HEFT_OK;
}

/* Place the storages of a truncated archive that it has lost after the end of the file: the tensors
 * have names, and no bytes. */
static heft_status place_lost(const heft_torch *t)
{
    uint64_t end = t->x->present;
    heft_torch_storage *s = t->storages;
    for (uint32_t i = 0; i < t->storage_count; i++) {
        uint64_t last = s[i].offset + (s[i].is_deflated ? s[i].stored : s[i].bytes);
        end = s[i].is_located && last > end ? last : end;
    }
    for (uint32_t i = 0; i < t->storage_count; i++) {
        if (s[i].is_located)
            continue;
        s[i].is_located = true;
        s[i].offset = end;
        if (!heft_add(&end, end, s[i].bytes))
            return heft_error_set(t->x->err, HEFT_E_FORMAT, s[i].at,
                                  "the storages have more than 2^64 bytes");
    }
    return end <= t->in->size
               ? HEFT_OK
               : heft_error_expect(t->x->err,
                                   heft_error_set(t->x->err, HEFT_E_FORMAT, t->in->size,
                                                  "the archive is truncated: its tensors take at "
                                                  "least %U bytes",
                                                  end),
                                   end, 0);
}

heft_status heft_torch_checksum(const heft_torch *t, const heft_zip_entry *e, uint32_t tensor,
                                bool at_open)
{
    heft_stored_checksum c = { .rule = "torch/crc32",
                               .algorithm = "crc32",
                               .range = { { e->data, e->stored } },
                               .tensor = tensor,
                               .part = HEFT_NONE,
                               .at_open = at_open };
    heft_put_le64(c.expect, e->crc);
    if (e->is_opaque || e->method != HEFT_ZIP_STORED || !e->stored || !e->crc)
        return HEFT_OK;
    return heft_ix_checksum(t->x, c);
}

/* Return true for a constant in the code of TorchScript. */
static bool is_constant(const heft_torch_archive *a, heft_str name)
{
    heft_str rest = { name.ptr + a->folder.len, name.len - a->folder.len };
    return begins(name, a->folder) && heft_str_begins(rest, "constants/");
}

static heft_status add_checksums(const heft_torch *t, const heft_torch_archive *a,
                                 const heft_zip_entry *pickle)
{
    HEFT_TRY(heft_torch_checksum(t, pickle, HEFT_NONE, true));
    for (uint32_t i = 0; i < a->z.count; i++) {
        const heft_zip_entry *e = &a->z.entries[i];
        const heft_torch_storage *s = storage_of(t, a, e);
        if (s && s->first_tensor != HEFT_NONE)
            HEFT_TRY(heft_torch_checksum(t, e, s->first_tensor, false));
        else if (s || begins(e->name, a->storage) || is_constant(a, e->name))
            HEFT_TRY(heft_torch_checksum(t, e, HEFT_NONE, false));
    }
    return HEFT_OK;
}

/* Report storages that are not read: those that the pickle does not mention, and those of the
 * constants that the code of TorchScript has. */
static void report_members(const heft_torch *t, const heft_torch_archive *a)
{
    for (uint32_t i = 0; i < a->z.count; i++) {
        const heft_zip_entry *e = &a->z.entries[i];
        heft_str rest = { e->name.ptr + a->folder.len, e->name.len - a->folder.len };
        heft_range where = { e->data, e->stored };
        if (!e->content || !begins(e->name, a->folder))
            continue;
        if (is_constant(a, e->name))
            heft_ix_left_out(t->x, HEFT_LEFT_OUT, "torch/constant", where,
                             "%q is left out: a constant in the code of TorchScript", rest);
        else if (begins(e->name, a->storage) && !storage_of(t, a, e))
            heft_ix_left_out(t->x, HEFT_LEFT_OUT, "torch/storage", where,
                             "%q is left out: a storage that the pickle does not mention", rest);
    }
}

/* Read the pickle.  Values of a deflated pickle have the offset of the member. */
static heft_status read_member(heft_torch *t, const heft_zip_entry *e)
{
    heft_str bytes;
    if (e->is_opaque)
        return heft_zip_refuse_opaque(e, t->x->err);
    if (e->method == HEFT_ZIP_STORED)
        return heft_torch_read_main(t, t->in, (heft_range){ e->data, e->stored }, HEFT_NOWHERE,
                                    "data.pkl");
    HEFT_TRY(heft_torch_inflate(t, e, &bytes));
    t->inflated = heft_window_of(bytes.ptr, bytes.len, t->x->err);
    return heft_torch_read_main(t, &t->inflated.in, (heft_range){ 0, bytes.len }, e->data,
                                "data.pkl, inflated");
}

heft_status heft_torch_parse_archive(heft_torch *t, const heft_torch_archive *a)
{
    const heft_zip_entry *pickle = find_member(a, "data.pkl");
    bool is_recovered = !HEFT_IS_LEAN && a->z.is_recovered;
    if (!pickle && is_recovered)
        return heft_error_set(t->x->err, HEFT_E_FORMAT, t->x->present,
                              "the archive ends before data.pkl, which names the tensors");
    if (!pickle)
        return heft_error_set(
            t->x->err, find_member(a, "model.json") ? HEFT_E_UNSUPPORTED : HEFT_E_FORMAT,
            a->z.directory.offset, "the archive has no member data.pkl in its folder %q%s",
            a->folder, find_member(a, "model.json") ? ": an early version of TorchScript" : "");
    heft_status st = read_member(t, pickle);
    if (st == HEFT_E_FORMAT && is_recovered)
        return heft_error_set(t->x->err, HEFT_E_FORMAT, t->x->present,
                              "the archive ends within data.pkl, which names the tensors: %U bytes "
                              "of data.pkl are left",
                              pickle->stored);
    if (!st)
        st = locate_storages(t, a);
    if (!st && is_recovered)
        st = place_lost(t);
    if (!st && !t->x->pick.len)
        report_members(t, a);
    if (!st)
        st = heft_torch_walk(t);
    if (!st && t->is_script)
        heft_ix_note(t->x, HEFT_NOTE, "torch/script", a->z.directory.offset, HEFT_NONE,
                     "TorchScript: code, and constants in the code, are not read");
    return st ? st : add_checksums(t, a, pickle);
}

heft_status heft_torch_open_single(heft_torch *t, heft_torch_stated *out)
{
    heft_torch_archive a = { .folder = { "", 0 } };
    HEFT_TRY(heft_torch_open_archive(t, &a));
    const heft_zip_entry *pickle = find_member(&a, "data.pkl");
    if (!pickle)
        return heft_error_set(t->x->err, HEFT_E_FORMAT, a.z.directory.offset,
                              "the archive has no member data.pkl");
    HEFT_TRY(read_member(t, pickle));
    HEFT_TRY(locate_storages(t, &a));
    HEFT_TRY(heft_torch_single(t, out));
    return heft_torch_checksum(t, pickle, HEFT_NONE, true);
}

heft_status heft_torch_parse_member(heft_torch *t)
{
    heft_torch_archive a = { .folder = { "", 0 } };
    heft_status st = heft_torch_open_archive(t, &a);
    if (!st)
        st = heft_torch_parse_archive(t, &a);
    heft_pickle_free(&t->p);
    return st;
}
