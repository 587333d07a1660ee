/* zt2.c - reads and checks the zTensor 2 container: footer, shard table, root of the manifest.
 * |   0    89 "ZT2" 0D 0A 1A 0A
 *   …    blobs, each at a multiple of 4096, zeros between them; the manifest is one of the blobs
 *  -40   u64 offset of the manifest  u64 length  u64 its XXH3  u32 version 2  u32 reserved
 *  -8    the first eight bytes again
 * |   root { "shards": {name: {"size": u64, "digest": text}}?, "objects": {name: object},
 *          "attributes": {…}? }
 * | The manifest is deterministic CBOR (RFC 8949 §4.2.1). A file without a manifest is a data
 * shard, whose blobs another file describes. Section numbers refer to the zTensor 2 specification.
 * | */
#include "format/ztensor/zt2.h"
#include "base/nfc.h"

typedef struct footer {
    uint64_t at; /* offset of the footer, where the data ends */
    heft_range manifest;
    uint64_t hash;
    uint32_t version, reserved;
} footer;

static const char bad_footer[] =
    "file does not end with a zTensor 2 footer: it was truncated, or something was appended";

/* ---- the footer ---- */

static heft_status read_footer(heft_window *in, heft_index *x, footer *f)
{
    if (in->size < HEFT_ZT_MAGIC + HEFT_ZT2_FOOTER)
        return heft_error_set(x->err, HEFT_E_FORMAT, 0,
                              "file has %U bytes, but an empty zTensor 2 file has 48", in->size);
    f->at = in->size - HEFT_ZT2_FOOTER;
    heft_cur c = heft_cur_whole(in, f->at, HEFT_ZT2_FOOTER, "the footer");
    f->manifest.offset = heft_cur_u64(&c);
    f->manifest.length = heft_cur_u64(&c);
    f->hash = heft_cur_u64(&c);
    f->version = heft_cur_u32(&c);
    f->reserved = heft_cur_u32(&c);
    const uint8_t *magic = heft_cur_take(&c, HEFT_ZT_MAGIC);
    if (c.st)
        return c.st;
    if (memcmp(magic, "\x89ZT2\r\n\x1a\n", HEFT_ZT_MAGIC) != 0)
        return heft_error_set(x->err, HEFT_E_FORMAT, f->at + 32, "%s", bad_footer);
    if (f->version != HEFT_ZT2_VERSION)
        return heft_error_set(x->err, HEFT_E_FORMAT, f->at + 24,
                              "footer states version %U, but zTensor 2 requires 2",
                              (uint64_t)f->version);
    return HEFT_OK;
}

/* §3.1, §3.6: the manifest starts at a multiple of 4096 and ends before the footer. */
static heft_status check_manifest_range(heft_index *x, const footer *f)
{
    const heft_range *m = &f->manifest;
    if (m->length > HEFT_ZT2_MAX_MANIFEST)
        return heft_error_set(
            x->err, HEFT_E_FORMAT, f->at + 8,
            "manifest has a stated length of %U bytes, but at most 1 GiB is allowed", m->length);
    if (m->offset < HEFT_ZT2_ALIGN || m->offset % HEFT_ZT2_ALIGN)
        return heft_error_set(x->err, HEFT_E_FORMAT, f->at,
                              "manifest offset %U is not a positive multiple of 4096", m->offset);
    if (!heft_range_in(*m, f->at))
        return heft_error_set(x->err, HEFT_E_FORMAT, f->at,
                              "manifest of %U bytes at %U extends past the footer at %U", m->length,
                              m->offset, f->at);
    return HEFT_OK;
}

/* ---- shards ---- */

/* §7.1: the characters and the length that a shard name may have. */
static bool is_shard_name(heft_str s)
{
    bool is_valid = s.len && s.len <= HEFT_ZT2_MAX_SHARD_NAME && s.ptr[0] != '.';
    for (size_t i = 0; is_valid && i < s.len; i++) {
        char c = s.ptr[i];
        is_valid = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                   c == '.' || c == '_' || c == '-';
    }
    return is_valid;
}

typedef struct shard_identity { /* size and digest of a shard */
    uint64_t size;
    bool has_size;
    heft_str digest;
    const char *algorithm;
    size_t hex_at;
} shard_identity;

static heft_status read_identity(heft_zt2_reader *r, heft_str name, shard_identity *id)
{
    heft_str key;
    bool more;
    heft_status st = heft_zt2_map(r, "a shard");
    uint64_t at = heft_cbor_offset(&r->c, r->c.item);
    while (!st && !(st = heft_zt2_key(r, &key, &more)) && more) {
        if (heft_str_is(key, "size")) {
            id->has_size = true;
            st = heft_zt2_number(r, &id->size, "the size of a shard");
        } else if (heft_str_is(key, "digest"))
            st = heft_zt2_digest(r, &id->digest, &id->algorithm, &id->hex_at);
        else
            st = heft_zt2_skip(r, key, "is an unknown key of a shard and is left out");
    }
    if (!st && (!id->has_size || !id->digest.ptr))
        return heft_error_set(r->x->err, HEFT_E_FORMAT, at, "shard %q: %s is missing", name,
                              id->has_size ? "digest" : "size");
    if (!st && id->size < HEFT_ZT_MAGIC + HEFT_ZT2_FOOTER)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, at,
                              "shard %q: %U bytes are too few for a zTensor 2 file", name,
                              id->size);
    return st;
}

static heft_status read_shard(heft_zt2_reader *r, heft_zt2_shard *shard)
{
    shard_identity id = { .size = 0 };
    if (!is_shard_name(shard->name))
        return heft_cbor_fail(&r->c,
                              "%q is not a valid shard name: up to 64 of A-Z a-z 0-9 . _ -, not "
                              "starting with a full stop",
                              shard->name);
    heft_status st = read_identity(r, shard->name, &id);
    heft_ix_shard file = { shard->name, ".zt", id.size, false, NULL };
    if (!st)
        st = heft_ix_shard_add(r->x, file, &shard->number);
    shard->size = id.size;
    heft_stored_checksum c = { .rule = "ztensor/shard-digest", /* digest of the whole file */
                               .algorithm = id.algorithm,
                               .range = { { heft_global_offset(shard->number, 0), id.size } },
                               .tensor = HEFT_NONE };
    if (!st && id.algorithm) {
        heft_str hex = { id.digest.ptr + id.hex_at, id.digest.len - id.hex_at };
        if (heft_ix_digits(c.expect, id.algorithm, hex))
            return heft_ix_checksum(r->x, c);
    }
    if (!st)
        heft_ix_note(r->x, HEFT_WARNING, "ztensor/digest-unknown", HEFT_NOWHERE, HEFT_NONE,
                     "shard digest of an unknown algorithm is not checked");
    return st;
}

static heft_status read_shards(heft_zt2_reader *r)
{
    bool more;
    heft_status st = heft_zt2_map(r, "shards");
    uint64_t pairs = r->c.u;
    if (st || !pairs)
        return st ? st : heft_zt2_key(r, &(heft_str){ NULL, 0 }, &more);
    size_t bytes = (size_t)pairs *
                   sizeof(heft_zt2_shard); /* bounded by the number of bytes left in the manifest */
    heft_zt2_shard *shards = heft_arena_alloc(&r->x->arena, bytes, 16);
    if (!shards)
        return heft_error_no_memory(r->x->err, "for the table of shards");
    for (heft_str name; !st && !(st = heft_zt2_key(r, &name, &more)) && more;) {
        shards[r->shard_count] = (heft_zt2_shard){ name, 0, 0 };
        st = read_shard(r, &shards[r->shard_count++]);
    }
    r->shards = shards;
    return st;
}

/* ---- the root ---- */

static heft_status read_objects(heft_zt2_reader *r)
{
    enum { MIN_OBJECT = 8 }; /* smallest object in bytes, its name included */
    bool more;
    heft_status st = heft_zt2_map(r, "objects");
    uint64_t at = heft_cbor_offset(&r->c, r->c.item), left = (uint64_t)(r->c.end - r->c.p);
    if (!st)
        st = heft_ix_reserve(r->x, at, r->c.u, left, MIN_OBJECT);
    while (!st && !(st = heft_zt2_name(r, &r->object, &more, "object")) && more)
        st = heft_zt2_object(r);
    r->object = (heft_str){ NULL, 0 };
    return st;
}

static heft_status read_root(heft_zt2_reader *r)
{
    heft_str key;
    bool more, has_objects = false;
    heft_status st = heft_zt2_map(r, "the manifest");
    uint64_t at = heft_cbor_offset(&r->c, r->c.item);
    while (!st && !(st = heft_zt2_key(r, &key, &more)) && more) {
        if (heft_str_is(key, "shards"))
            st = read_shards(r);
        else if (heft_str_is(key, "attributes"))
            st = heft_zt2_attributes(r, HEFT_NONE);
        else if (heft_str_is(key, "objects")) {
            has_objects = true;
            st = read_objects(r);
        } else
            st = heft_zt2_skip(r, key, "is an unknown key of the manifest and is left out");
    }
    if (!st && !has_objects)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, at, "manifest has no objects");
    if (!st && r->c.p != r->c.end)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, heft_cbor_offset(&r->c, r->c.p),
                              "bytes after the manifest's map: %U", (uint64_t)(r->c.end - r->c.p));
    return st;
}

static heft_status read_manifest(heft_window *in, heft_index *x, const footer *f)
{
    heft_cur c = heft_cur_whole(in, f->manifest.offset, f->manifest.length, "the manifest");
    const uint8_t *data = heft_cur_take(&c, f->manifest.length);
    if (c.st)
        return c.st;
    uint32_t depth = x->limits.depth < HEFT_ZT2_MAX_DEPTH ? x->limits.depth : HEFT_ZT2_MAX_DEPTH;
    heft_zt2_reader r = { .x = x, .data_end = f->at };
    r.c = heft_cbor_open(data, (size_t)f->manifest.length, f->manifest.offset, depth, &x->arena,
                         x->err);
    r.c.strict = true;
    heft_status st = read_root(&r);
    if (st == HEFT_E_LIMIT && r.c.st == st && depth == HEFT_ZT2_MAX_DEPTH)
        return heft_error_set(
            x->err, HEFT_E_FORMAT, heft_cbor_offset(&r.c, r.c.item),
            "lists and maps are nested deeper than zTensor 2's limit of 32 levels");
    return st;
}

/* ---- blob ranges ---- */

static heft_status overlap_error(const heft_index *x, uint32_t part, const char *overlapped)
{
    heft_error why;
    const heft_ix_part_row *p = heft_ix_part_row_at(x, part);
    uint64_t at = heft_global_offset_local(x, p->offset);
    uint32_t shard = heft_global_offset_file(x, p->offset);
    heft_error_plain(&why, HEFT_E_FORMAT, "object %q, part %q: %U bytes at %U overlap %s",
                     heft_ix_name(x, heft_ix_owner(x, part)), heft_ix_role(x, p->role), p->stored,
                     at, overlapped);
    return shard ? heft_error_set(x->err, HEFT_E_FORMAT, at, "shard %q: %s",
                                  heft_ix_shard_at(x, shard)->label, why.message)
                 : heft_error_set(x->err, HEFT_E_FORMAT, at, "%s", why.message);
}

/* §2.4: two blobs are identical ranges or do not overlap. */
static heft_status check_overlaps(heft_index *x, heft_range manifest)
{
    heft_range previous = { 0, 0 };
    uint32_t *order, count;
    heft_status st = heft_ix_order(x, &order, &count);
    for (uint32_t i = 0; !st && i < count; i++) {
        const heft_ix_part_row *p = heft_ix_part_row_at(x, order[i]);
        heft_range range = { p->offset, p->stored };
        bool is_duplicate = range.offset == previous.offset && range.length == previous.length;
        bool is_manifest = range.offset == manifest.offset && range.length == manifest.length;
        const char *overlapped = NULL;
        if (!is_duplicate && range.offset < previous.offset + previous.length)
            overlapped = "those of another part";
        else if (!is_manifest && range.offset < manifest.offset + manifest.length &&
                 manifest.offset < range.offset + range.length)
            overlapped = "the manifest";
        if (overlapped)
            st = overlap_error(x, order[i], overlapped);
        previous = range;
    }
    heft_ix_order_free(x, order);
    return st;
}

/* ---- entry points ---- */

heft_status heft_zt2_parse(heft_window *in, heft_index *x)
{
    footer f = { .at = 0 };
    HEFT_TRY(read_footer(in, x, &f));
    x->version = heft_lit("2");
    x->format_private = f.manifest.offset;
    x->strict = true;
    x->data_start = HEFT_ZT_MAGIC;
    x->data_end = f.at;
    if (f.reserved)
        heft_ix_omit(x, HEFT_WARNING, "ztensor/reserved", (heft_str){ NULL, 0 },
                     "the reserved field of the footer, which is not 0, becomes 0");
    if (f.reserved)
        heft_ix_note(x, HEFT_NOTE, "ztensor/reserved", f.at + 28, HEFT_NONE,
                     "reserved field of the footer is not 0");
    if (!f.manifest.length && (f.manifest.offset || f.hash))
        return heft_error_set(
            x->err, HEFT_E_FORMAT, f.at,
            "data shard has no manifest, but its footer has a manifest offset or hash");
    if (!f.manifest.length) {
        heft_ix_omit(x, HEFT_WARNING, "ztensor/data-shard", (heft_str){ NULL, 0 },
                     "the bytes of a data shard belong to no tensor and are left out");
        heft_ix_note(x, HEFT_NOTE, "ztensor/data-shard", f.at, HEFT_NONE,
                     "file is a data shard: the model file that refers to it describes its bytes");
        return HEFT_OK;
    }
    heft_stored_checksum hash = { .rule = "ztensor/manifest-hash",
                                  .algorithm = "xxh3",
                                  .range = { f.manifest },
                                  .tensor = HEFT_NONE,
                                  .at_open = true };
    heft_put_le64(hash.expect, f.hash);
    HEFT_TRY(check_manifest_range(x, &f));
    HEFT_TRY(heft_ix_checksum(x, hash));
    HEFT_TRY(read_manifest(in, x, &f));
    return check_overlaps(x, f.manifest);
}

/* ---- checking ---- */

/* Report unreferenced bytes between *at and the next range, and move *at to the end of that
 * range. */
static heft_status check_gap(heft_check *c, uint64_t *at, heft_range next)
{
    heft_range gap = { *at, next.offset - *at };
    bool is_gap = *at < next.offset;
    *at = next.offset + next.length;
    return is_gap ? c->padding(c, "ztensor/unreferenced", HEFT_NOTE, gap, 0) : HEFT_OK;
}

/* §2.5: bytes between blobs are padding, or were replaced by an append. */
static heft_status check_gaps(heft_check *c)
{
    const heft_stored_checksum *checksums = c->x->checksums.ptr;
    heft_range manifest = checksums[0].range[0];
    const uint32_t *order;
    uint32_t count;
    uint64_t at = c->x->data_start;
    bool manifest_passed = false, is_last = false;
    heft_status st = c->order(c, &order, &count);
    for (uint32_t i = 0; !st && !is_last; i++) {
        const heft_ix_part_row *p = i < count ? heft_ix_part_row_at(c->x, order[i]) : NULL;
        is_last = !p;
        heft_range next = { p ? p->offset : c->x->data_end, p ? p->stored : 0 };
        if (!manifest_passed && manifest.offset < next.offset) {
            st = check_gap(c, &at, manifest);
            manifest_passed = true;
        }
        if (!st)
            st = check_gap(c, &at, next);
    }
    return st;
}

/* §7.3: a shard has the first and last bytes of every zTensor 2 file. */
static heft_status check_shard(heft_check *c, uint32_t number)
{
    uint8_t head[HEFT_ZT_MAGIC], tail[HEFT_ZT2_FOOTER];
    uint64_t size = heft_ix_shard_at(c->x, number)->size;
    heft_range where = { heft_global_offset(number, size - sizeof tail), sizeof tail };
    if (!c->can_read(c, where.offset))
        return HEFT_OK;
    HEFT_TRY(c->read(c, heft_global_offset(number, 0), head, sizeof head));
    HEFT_TRY(c->read(c, where.offset, tail, sizeof tail));
    if (memcmp(head, "\x89ZT2\r\n\x1a\n", sizeof head) != 0 ||
        memcmp(tail + 32, head, sizeof head) != 0 || heft_le32(tail + 24) != HEFT_ZT2_VERSION)
        c->report(c, HEFT_FAULT, "ztensor/shard", where, HEFT_NONE,
                  "shard does not begin and end as a zTensor 2 file");
    return HEFT_OK;
}

/* Return true if the file is in canonical form, names aside: one file, blobs at canonical
 * offsets, nothing compressed, a digest for each part. */
static bool looks_canonical(const heft_index *x)
{
    bool canonical = !x->shards.len && x->format_private &&
                     x->format_private % HEFT_ZT2_CANONICAL_ALIGN == 0;
    for (uint32_t i = 0; canonical && i < x->parts.len; i++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(x, i);
        canonical = part->encoding == HEFT_RAW && part->offset % HEFT_ZT2_CANONICAL_ALIGN == 0 &&
                    heft_str_begins(heft_ix_digest_of(x, i), "xxh3:");
    }
    return canonical;
}

static void check_name(heft_check *c, heft_str name, uint32_t tensor, const char *text)
{
    if (heft_str_breaks_nfc(name))
        c->report(c, HEFT_NOTE, "ztensor/nfc", (heft_range){ HEFT_NOWHERE, 0 }, tensor, text);
}

/* Names in canonical files (§6.3) must be in Unicode Normalization Form C (§3.5). */
static void check_names(heft_check *c)
{
    static const char key[] =
        "attribute key is not in Unicode Normalization Form C, which the canonical form requires";
    const heft_index *x = c->x;
    heft_value v;
    if (!looks_canonical(x))
        return;
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++) {
        check_name(
            c, heft_ix_name(x, t), t,
            "name is not in Unicode Normalization Form C, which the canonical form requires");
        if (!heft_ix_row(x, t)->attrs)
            continue;
        for (uint32_t i = 0; heft_ix_attribute(&v, x, t, i); i = heft_value_next(&v, i))
            check_name(c, v.key, t, key);
    }
    for (uint32_t i = 0; i < x->roles.len; i++)
        check_name(
            c, heft_ix_role(x, i), HEFT_NONE,
            "part name is not in Unicode Normalization Form C, which the canonical form requires");
    for (uint32_t i = 0; i < x->values.len; i = heft_ix_value_next(x, i))
        check_name(c, heft_ix_value(x, i)->key, HEFT_NONE, key);
}

heft_status heft_zt2_check(heft_check *c)
{
    if (c->x->checksums.len)
        HEFT_TRY(check_gaps(c));
    for (uint32_t i = 1; i <= c->x->shards.len; i++)
        /* a model has a check of its own */
        if (!heft_ix_shard_at(c->x, i)->is_model)
            HEFT_TRY(check_shard(c, i));
    for (uint32_t i = 0; !c->is_quick && i < c->x->parts.len; i++)
        if (heft_ix_part_row_at(c->x, i)->encoding == HEFT_ZSTD)
            HEFT_TRY(heft_zt2_check_frames(c, i));
    check_names(c);
    return HEFT_OK;
}
