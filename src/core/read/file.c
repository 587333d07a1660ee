/* file.c - creates and closes struct heft_file, and returns the content of the index. */
#include "core/read/file.h"

void heft_source_close(heft_source *s)
{
    if (s)
        s->ops->close(s);
}

void heft_shards_close(heft_file *f)
{
    for (uint32_t i = 0; i < f->opened_shard_count; i++) {
        heft_shard *shard = &f->opened_shards[i];
        if (shard->model)
            heft_file_close(shard->model);
        else if (!shard->is_borrowed)
            heft_source_close(shard->source);
    }
    heft_mem_free(&f->x.mem, f->opened_shards, f->opened_shard_capacity * sizeof *f->opened_shards);
    f->opened_shards = NULL;
    f->opened_shard_count = f->opened_shard_capacity = 0;
}

void heft_joined_files_free(heft_file *f)
{
    heft_mem_free(&f->x.mem, f->joined_files, f->joined_capacity * sizeof *f->joined_files);
    f->joined_files = NULL;
    f->joined_count = f->joined_capacity = 0;
}

void heft_file_close(heft_file *f)
{
    if (!f)
        return;
    if (f->close_schemes)
        f->close_schemes((heft_schemes *)f->schemes);
    heft_joined_files_free(f);
    heft_shards_close(f);
    if (f->container)
        f->close_container(f->container);
    heft_input_free(&f->input);
    heft_ix_free(&f->x);
    heft_source_close(f->source);
    heft_free(f->host->allocator, f, sizeof *f, 16);
}

void heft_file_use_source(heft_file *f)
{
    enum { SMALL_REQUEST = 4 << 10 }; /* holds most headers between the data of an archive */
    heft_source *s = f->source;
    heft_input_free(&f->input);
    heft_input_init(&f->input, &f->x.mem, s->size, f->x.limits.index_bytes);
    f->input.host = f->host;
    f->input.in.decode = f->opening->decode;
    f->input.in.container = f->opening->container;
    f->input.least = SMALL_REQUEST;
    f->input.whole_file = s->ops->map && s->size ? s->ops->map(s, 0, s->size) : NULL;
    f->x.file_bytes = s->size;
    f->requested_ends = false;
}

heft_status heft_file_create(heft_file **out, uint64_t file_size, const heft_opening *opening,
                             const heft_open_options *opt, heft_error *err)
{
    const heft_host *host;
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    heft_limits limits = HEFT_LIMITS_INIT;
    *out = NULL;
    heft_status st = heft_sized_copy(&o, offsetof(heft_open_options, reserved), opt, err);
    if (!st)
        st = heft_sized_copy(&limits, sizeof limits, o.limits, err);
    if (!st)
        st = heft_host_resolve(&host, o.host, err);
    if (!st && o.shards)
        st = heft_sized_check(o.shards->size, offsetof(heft_shard_folder, list),
                              "heft_shard_folder", err);
    bool lists = o.shards && HEFT_HAS(o.shards, list);
    if (!st && HEFT_IS_LEAN && (o.folder || o.array_types || lists))
        st = heft_error_plain(err, HEFT_E_UNSUPPORTED,
                              "this build takes neither a list of a folder nor types of arrays");
    if (st)
        return st;
    const heft_allocator *al = host->allocator;
    heft_file *f = heft_alloc(al, sizeof *f, 16);
    if (!f)
        return heft_error_no_memory(err, "for an open file");
    *f = (heft_file){
        .host = host,
        .opening = opening,
        .format = o.format,
        .shards = o.shards,
        .folder = o.folder,
        .check_parts = o.check_parts,
        .no_verify = o.no_verify,
        .raw_tensors = o.raw_tensors,
    };
    heft_host_init_index(host, &f->x, &limits);
    if (!f->x.limits.read_counter)
        f->x.limits.read_counter = &f->read_counter;
    f->x.file_bytes = file_size;
    f->x.array_types = o.array_types;
    f->x.pick = o.key ? heft_lit(o.key) : (heft_str){ "", 0 };
    heft_input_init(&f->input, &f->x.mem, file_size, f->x.limits.index_bytes);
    f->input.host = host;
    f->input.in.decode = opening->decode;
    f->input.in.container = opening->container;
    *out = f;
    return HEFT_OK;
}

/* ---- getters ---- */

const heft_format *heft_file_format(const heft_file *f)
{
    return f->format;
}

heft_str heft_file_name(const heft_file *f)
{
    return f->name;
}

heft_str heft_file_version(const heft_file *f)
{
    return f->x.version;
}

heft_str heft_file_generator(const heft_file *f)
{
    return f->x.generator;
}

uint64_t heft_file_size(const heft_file *f)
{
    return f->input.in.size;
}

uint64_t heft_file_memory(const heft_file *f)
{
    return f->x.mem.used + sizeof *f;
}

uint64_t heft_file_alignment(const heft_file *f)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < f->x.parts.len; i++) {
        const heft_ix_part_row *p = heft_ix_part_row_at(&f->x, i);
        bits |= p->stored ? p->offset | 64 << 10 : 0;
    }
    return bits & (~bits + 1);
}

uint32_t heft_tensor_count(const heft_file *f)
{
    return heft_ix_tensors(&f->x);
}

heft_tensor heft_tensor_at(const heft_file *f, uint32_t id)
{
    if (heft_unlikely(id >= heft_ix_tensors(&f->x)))
        return (heft_tensor){ .rank = 0 };
    const heft_ix_tensor_row *row = heft_ix_row(&f->x, id);
    return (heft_tensor){
        .name = { row->name, row->name_len },
        .dims = heft_ix_dims(&f->x, id),
        .rank = row->rank,
        .first_part = row->first_part,
        .part_count = row->part_count,
        .dtype = row->dtype,
        .layout = row->layout < HEFT_LAYOUT_OTHER ? row->layout : (uint8_t)HEFT_LAYOUT_OTHER,
    };
}

uint32_t heft_tensor_find(const heft_file *f, heft_str name)
{
    heft_file_enter(f);
    uint32_t id = heft_ix_find(&f->x, name);
    heft_file_disarm(f); /* reading the tensor reports a truncated file */
    return id;
}

heft_str heft_tensor_layout_name(const heft_file *f, uint32_t tensor)
{
    return tensor < heft_ix_tensors(&f->x) ? heft_ix_layout(&f->x, tensor) : (heft_str){ NULL, 0 };
}

uint64_t heft_tensor_bytes(const heft_file *f, uint32_t id)
{
    if (id >= heft_ix_tensors(&f->x))
        return 0;
    const heft_ix_tensor_row *row = heft_ix_row(&f->x, id);
    if (row->part_count == 1) /* in any role */
        return heft_ix_part_row_at(&f->x, row->first_part)->length;
    uint32_t data = heft_part_find(f, id, heft_lit("data"));
    if (data != HEFT_NONE)
        return heft_ix_part_row_at(&f->x, data)->length;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < row->part_count; i++) {
        uint64_t length = heft_ix_part_row_at(&f->x, row->first_part + i)->length;
        if (length == HEFT_UNKNOWN_LENGTH)
            return HEFT_UNKNOWN_LENGTH;
        sum += length;
    }
    return sum;
}

uint32_t heft_part_find(const heft_file *f, uint32_t owner, heft_str role)
{
    if (owner >= heft_ix_tensors(&f->x) && owner != HEFT_NONE)
        return HEFT_NONE;
    heft_file_enter(f); /* roles are mapped */
    uint32_t part = heft_ix_part_find(&f->x, owner, role);
    heft_file_disarm(f); /* reading the part reports a truncated file */
    return part;
}

heft_part heft_part_at(const heft_file *f, uint32_t part)
{
    if (heft_unlikely(!heft_ix_has_part(&f->x, part)))
        return (heft_part){ .length = 0 };
    const heft_ix_part_row *p = heft_ix_part_row_at(&f->x, part);
    return (heft_part){
        .role = heft_ix_role(&f->x, p->role),
        .offset = heft_global_offset_local(&f->x, p->offset),
        .shard = heft_global_offset_file(&f->x, p->offset),
        .stored = p->stored,
        .length = p->length,
        .digest = heft_ix_digest_of(&f->x, part),
        .dtype = p->dtype,
        .encoding = p->encoding,
    };
}

uint32_t heft_file_parts(const heft_file *f, uint32_t *first)
{
    *first = f->x.parts.len;
    return f->x.model_parts.len;
}

uint32_t heft_meta_count(const heft_file *f)
{
    return f->x.values.len;
}

heft_value heft_meta_at(const heft_file *f, uint32_t i)
{
    return i < f->x.values.len ? *heft_ix_value(&f->x, i) : (heft_value){ .kind = HEFT_KIND_NULL };
}

uint32_t heft_meta_next(const heft_file *f, uint32_t i)
{
    return i < f->x.values.len ? heft_ix_value_next(&f->x, i) : f->x.values.len;
}

bool heft_meta_find(heft_value *out, const heft_file *f, heft_str key)
{
    for (uint32_t i = 0; i < f->x.values.len; i = heft_ix_value_next(&f->x, i)) {
        if (heft_str_eq(heft_ix_value(&f->x, i)->key, key)) {
            *out = *heft_ix_value(&f->x, i);
            return true;
        }
    }
    return false;
}

uint32_t heft_attribute_count(const heft_file *f, uint32_t tensor)
{
    heft_value v;
    uint32_t count = 0;
    while (tensor < heft_ix_tensors(&f->x) && heft_ix_attribute(&v, &f->x, tensor, count))
        count++;
    return count;
}

heft_value heft_attribute_at(const heft_file *f, uint32_t tensor, uint32_t i)
{
    heft_value v;
    bool exists = tensor < heft_ix_tensors(&f->x) && heft_ix_attribute(&v, &f->x, tensor, i);
    return exists ? v : (heft_value){ .kind = HEFT_KIND_NULL };
}

static heft_checksum checksum_of(const heft_file *f, const heft_stored_checksum *c)
{
    heft_range r = { heft_global_offset_local(&f->x, c->range[0].offset), c->range[0].length };
    return (heft_checksum){ .rule = c->rule,
                            .algorithm = c->algorithm,
                            .range = r,
                            .shard = heft_global_offset_file(&f->x, c->range[0].offset) };
}

/* Return whether checksum k stands for itself, and is not an alternative to the one before. */
static bool is_listed(const heft_file *f, uint32_t k)
{
    const heft_stored_checksum *checksums = f->x.checksums.ptr;
    return !k || !checksums[k - 1].is_alternative;
}

static uint32_t listed_checksums(const heft_file *f)
{
    uint32_t count = 0;
    if (!f->x.has_alternatives)
        return f->x.checksums.len;
    for (uint32_t k = 0; k < f->x.checksums.len; k++)
        count += is_listed(f, k);
    return count;
}

uint32_t heft_checksum_count(const heft_file *f)
{
    return listed_checksums(f) + f->x.digests.len;
}

heft_checksum heft_checksum_at(const heft_file *f, uint32_t i)
{
    const heft_stored_checksum *checksums = f->x.checksums.ptr;
    uint32_t listed = listed_checksums(f), k = 0;
    if (i >= heft_checksum_count(f))
        return (heft_checksum){ .rule = NULL };
    if (i >= listed) {
        heft_stored_checksum c = heft_ix_checksum_at(&f->x, f->x.checksums.len + i - listed);
        return checksum_of(f, &c);
    }
    if (!f->x.has_alternatives)
        return checksum_of(f, &checksums[i]);
    for (uint32_t left = i; left || !is_listed(f, k); k++)
        left -= is_listed(f, k);
    return checksum_of(f, &checksums[k]);
}

heft_status heft_no_archive(heft_file *f, const uint8_t *head, size_t len, bool *is_entered,
                            heft_error *err)
{
    (void)f, (void)head, (void)len, (void)is_entered, (void)err;
    return HEFT_OK;
}
