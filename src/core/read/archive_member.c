/* archive_member.c - the bytes of a file in an archive as the source of a model. */
#include "base/numbered_name.h"
#include "core/read/decode.h"

typedef struct member {
    heft_source base;     /* first member: the bytes of the file in the archive */
    heft_source *archive; /* owned */
    heft_archive_member m;
    const heft_allocator *al;
    char text[]; /* the names */
} member;

static const member *member_of(const heft_source *s)
{
    return (const member *)(const void *)s;
}

static heft_status read_member(heft_source *s, uint64_t offset, void *buf, size_t len,
                               heft_error *err)
{
    heft_source *archive = member_of(s)->archive;
    return archive->ops->read(archive, member_of(s)->m.where.offset + offset, buf, len, err);
}

static const void *map_member(heft_source *s, uint64_t offset, uint64_t len)
{
    heft_source *archive = member_of(s)->archive;
    return archive->ops->map
               ? archive->ops->map(archive, member_of(s)->m.where.offset + offset, len)
               : NULL;
}

static heft_status check_archive(heft_source *s, heft_error *err)
{
    heft_source *archive = member_of(s)->archive;
    return archive->ops->check ? archive->ops->check(archive, err) : HEFT_OK;
}

static void will_need(heft_source *s, uint64_t offset, uint64_t len)
{
    heft_source *archive = member_of(s)->archive;
    if (archive->ops->will_need)
        archive->ops->will_need(archive, member_of(s)->m.where.offset + offset, len);
}

static void begin_access(heft_source *s)
{
    heft_source *archive = member_of(s)->archive;
    if (archive->ops->begin_access)
        archive->ops->begin_access(archive);
}

static void end_access(heft_source *s)
{
    heft_source *archive = member_of(s)->archive;
    if (archive->ops->end_access)
        archive->ops->end_access(archive);
}

static void dont_need(heft_source *s, uint64_t offset, uint64_t len)
{
    heft_source *archive = member_of(s)->archive;
    if (HEFT_HAS(archive->ops, dont_need))
        archive->ops->dont_need(archive, member_of(s)->m.where.offset + offset, len);
}

static heft_status populate(heft_source *s, uint64_t offset, uint64_t len, heft_error *err)
{
    heft_source *archive = member_of(s)->archive;
    return HEFT_HAS(archive->ops, populate)
               ? archive->ops->populate(archive, member_of(s)->m.where.offset + offset, len, err)
               : HEFT_OK;
}

static heft_status check_unchanged(heft_source *s, heft_error *err)
{
    heft_source *archive = member_of(s)->archive;
    return HEFT_HAS(archive->ops, check_unchanged) ? archive->ops->check_unchanged(archive, err)
                                                   : HEFT_OK;
}

static const heft_executor *executor(const heft_source *s)
{
    const heft_source *archive = member_of(s)->archive;
    return HEFT_HAS(archive->ops, executor) ? archive->ops->executor(archive) : NULL;
}

static void close_member(heft_source *s)
{
    member *o = (member *)(void *)s;
    heft_source_close(o->archive);
    heft_free(o->al, o, sizeof *o + o->m.name.len + o->m.other.len, 16);
}

static const heft_source_ops ops = { .size = sizeof(heft_source_ops),
                                     .read = read_member,
                                     .map = map_member,
                                     .check = check_archive,
                                     .will_need = will_need,
                                     .begin_access = begin_access,
                                     .end_access = end_access,
                                     .close = close_member,
                                     .dont_need = dont_need,
                                     .populate = populate,
                                     .check_unchanged = check_unchanged,
                                     .executor = executor };

const heft_archive_member *heft_archive_of_source(const heft_source *s)
{
    return s->ops == &ops ? &member_of(s)->m : NULL;
}

/* Make the member the source of the file; names are copied, since the archive's window goes. */
static heft_status enter(heft_file *f, const heft_archive_member *m, heft_error *err)
{
    const heft_allocator *al = f->host->allocator;
    size_t first = m->name.len, second = m->other.len;
    member *o = heft_alloc(al, sizeof *o + first + second, 16);
    if (!o)
        return heft_error_no_memory(err, "to open a file in an archive");
    *o = (member){ .base = { &ops, m->where.length }, .archive = f->source, .m = *m, .al = al };
    memcpy(o->text, m->name.ptr, first);
    memcpy(o->text + first, m->other.ptr ? m->other.ptr : "", second);
    o->m.name.ptr = o->text;
    o->m.other.ptr = second ? o->text + first : NULL;
    f->source = &o->base;
    heft_file_use_source(f);
    return HEFT_OK;
}

heft_status heft_archive_enter(heft_file *f, const uint8_t *head, size_t len, bool *is_entered,
                               heft_error *err)
{
    heft_archive_member m;
    *is_entered = false;
    if (HEFT_IS_LEAN || heft_archive_of(f))
        return HEFT_OK;
    heft_status st = heft_archive_find(&m, &f->input.in, &f->x.arena, head, len, err);
    if (st || !m.name.ptr)
        return st;
    *is_entered = true;
    return enter(f, &m, err);
}

/* Warn of a shard: the search for weights would have found others in the archive. */
static void note_shard(heft_index *x, heft_str name)
{
    heft_numbered_name n;
    size_t at = name.len;
    while (at && name.ptr[at - 1] != '/')
        at--;
    if (heft_numbered_name_read(&n, (heft_str){ name.ptr + at, name.len - at }) && n.count > 1)
        heft_ix_left_out(x, HEFT_LEFT_OUT, "heft/shard-alone", (heft_range){ HEFT_NOWHERE, 0 },
                         "%q is numbered as shard %U of %U of a model, and the archive does not "
                         "have the others",
                         name, (uint64_t)n.number, (uint64_t)n.count);
}

heft_status heft_archive_note(heft_file *f)
{
    static const heft_range nowhere = { HEFT_NOWHERE, 0 };
    heft_index *x = &f->x;
    const heft_archive_member *m = heft_archive_of(f);
    if (!m)
        return HEFT_OK;
    heft_ix_note_format(x, HEFT_NOTE, "heft/archive", nowhere, HEFT_NONE,
                        "the weights are %q, at byte %U of an archive: offsets and sizes refer to "
                        "that file",
                        m->name, m->where.offset);
    if (m->other.ptr)
        heft_ix_left_out(x, HEFT_LEFT_OUT, "heft/left-out", nowhere,
                         "the archive also has %q, which was not read%s", m->other,
                         m->others > 1 ? ", and more files of weights" : "");
    note_shard(x, m->name);
    heft_stored_checksum c = { .rule = "heft/archive-crc",
                               .algorithm = "crc32",
                               .range = { { 0, m->where.length } },
                               .tensor = HEFT_NONE,
                               .part = HEFT_NONE };
    heft_put_le64(c.expect, m->crc);
    return m->has_crc ? heft_ix_checksum(x, c) : HEFT_OK;
}
