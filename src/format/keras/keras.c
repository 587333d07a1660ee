/* keras.c - reads weights of Keras: HDF5 files (.weights.h5, .h5), and archives with one (.keras).
 *
 * HDF5 begins with the bytes 89 "HDF" CR LF 1A LF, at offset 0 or after a block of the user of 512,
 * 1024, 2048 ... bytes.  The host's library lists its arrays (heft_container); this file knows what
 * they are to Keras.
 *
 *   .weights.h5   Keras 3: layers/dense/vars/0, layers/dense/vars/1: the variables of a layer, in
 *                 the order of their creation; the attribute "name" of vars is the layer's name
 *   .h5           Keras 2: model_weights/dense/dense/kernel:0; the attribute weight_names of
 *                 model_weights/dense has "dense/kernel:0"
 *   .keras        zip: config.json, metadata.json, model.weights.h5
 *   .weights.json  index of several .weights.h5: the groups of variables, each with its files
 *
 * Reference: keras/src/saving/saving_lib.py, keras/src/legacy/saving/legacy_h5_format.py. */
#include "format/keras/keras.h"

#include "format/shard_index.h"

enum { USER_BLOCK = 512 }; /* least bytes of the user before the signature */
static const uint8_t signature[] = { 0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n' };

static bool has_signature(const uint8_t *head, size_t len)
{
    bool has = false;
    for (size_t at = 0; !has && at + sizeof signature <= len; at = at ? 2 * at : USER_BLOCK)
        has = !memcmp(head + at, signature, sizeof signature);
    return has;
}

static bool is_own_name(heft_str file)
{
    return heft_str_ends(file, ".h5") && file.len > 3;
}

static int probe(const uint8_t *head, size_t head_len, const uint8_t *tail, size_t tail_len,
                 uint64_t size)
{
    enum { SURE = 64 };
    static const char weights[] = "model.weights.h5";
    int bits;
    (void)size;
    if (has_signature(head, head_len))
        return SURE;
    if (heft_shard_index_recognise(head, head_len) &&
        is_own_name(heft_shard_index_first_shard(head, head_len)))
        return SURE;
    heft_str first = heft_zip_first_name(&bits, head, head_len);
    heft_str entries = heft_zip_directory_in(tail, tail_len);
    bool is_archive = bits && (heft_str_is(first, weights) ||
                               heft_str_seek((const uint8_t *)entries.ptr, tail + tail_len, weights,
                                             sizeof weights - 1));
    return is_archive ? SURE : 0;
}

/* ---- tensors ---- */

/* Bytes that are not in the file as they are: a deflated HDF5 file, then decoded arrays. */
static heft_status add_apart(heft_keras *k)
{
    uint64_t size = k->weights.is_deflated ? k->weights.content : 0;
    if (k->c->decoded && !heft_add(&size, size, k->c->decoded->size))
        size = HEFT_NOWHERE;
    if (size >> HEFT_GLOBAL_OFFSET_BITS)
        return heft_error_plain(k->in->err, HEFT_E_LIMIT, "the arrays pass 2^%U bytes",
                                (uint64_t)HEFT_GLOBAL_OFFSET_BITS);
    if (!size)
        return HEFT_OK;
    heft_ix_shard shard = { heft_lit("decoded arrays"), NULL, size, false, NULL };
    HEFT_TRY(heft_ix_shard_add(k->x, shard, &k->apart));
    k->x->assembled_shard = k->apart;
    return HEFT_OK;
}

static uint64_t offset_of(const heft_keras *k, const heft_container_array *a)
{
    const heft_packed_range *w = &k->weights;
    if (!a->bytes)
        return w->stored.offset;
    if (a->is_decoded)
        return heft_global_offset(k->apart, a->offset + (w->is_deflated ? w->content : 0));
    return w->is_deflated ? heft_global_offset(k->apart, a->offset) : w->stored.offset + a->offset;
}

static heft_status add_part(heft_keras *k, const heft_container_array *a, heft_dtype t)
{
    heft_range where = { offset_of(k, a), a->bytes };
    HEFT_TRY(
        heft_ix_part(k->x, heft_ix_tensors(k->x) - 1, heft_ix_data, t, where, a->bytes, HEFT_RAW));
    if (a->is_big_endian)
        heft_ix_big_endian(k->x);
    return HEFT_OK;
}

static heft_status add_tensor(heft_keras *k, uint32_t i, heft_dtype t, bool is_noted)
{
    const heft_container_array *a = &k->c->arrays[i];
    uint64_t *dims;
    uint32_t tensor;
    HEFT_TRY(heft_ix_tensor(k->x, k->names[i], t, a->rank, &dims, &tensor));
    for (uint32_t d = 0; d < a->rank; d++)
        dims[d] = a->dims[d];
    HEFT_TRY(add_part(k, a, t));
    return heft_keras_add_attributes(k, a, tensor, is_noted);
}

static heft_status add_array(heft_keras *k, uint32_t i)
{
    const heft_container_array *a = &k->c->arrays[i];
    heft_dtype noted = a->is_decoded || !a->type || a->attribute_count ? heft_keras_noted_type(k, a)
                                                                       : (heft_dtype)HEFT_UNTYPED;
    if (noted || a->dtype)
        return add_tensor(k, i, noted ? noted : a->dtype, noted);
    heft_ix_left_out(k->x, HEFT_LEFT_OUT, "keras/unread", (heft_range){ HEFT_NOWHERE, 0 },
                     "%q holds %s: left out", a->name, a->type);
    return HEFT_OK;
}

static void note_aliases(const heft_keras *k)
{
    for (uint32_t i = 0; i < k->c->alias_count; i++) {
        const heft_container_alias *a = &k->c->aliases[i];
        heft_range nowhere = { HEFT_NOWHERE, 0 };
        if (a->target.ptr)
            heft_ix_note_format(k->x, HEFT_NOTE, "keras/alias", nowhere, HEFT_NONE,
                                "%q is another name of the group %q: its arrays are listed once",
                                a->name, a->target);
        else
            heft_ix_note_format(k->x, HEFT_WARNING, "keras/dangling", nowhere, HEFT_NONE,
                                "%q is a link that leads to nothing", a->name);
    }
}

/* Without any tensor, fail with the first reason. */
static heft_status check_any(const heft_keras *k)
{
    if (heft_ix_tensors(k->x) || !k->c->array_count)
        return HEFT_OK;
    return heft_error_rule(k->in->err,
                           heft_error_plain(k->in->err, HEFT_E_UNSUPPORTED,
                                            "the HDF5 file has no array of numbers: %q holds %s",
                                            k->c->arrays[0].name, k->c->arrays[0].type),
                           "keras/unread");
}

/* Refuse bytes without the signature, which bytes of the user may precede: 512, 1024, ... of them.
 * The library is not asked. */
static heft_status check_signature(const heft_keras *k)
{
    heft_range r = k->weights.stored;
    for (uint64_t at = 0; at < r.length && r.length - at >= sizeof signature;
         at = at ? 2 * at : USER_BLOCK) {
        heft_cur c = heft_cur_whole(k->in, r.offset + at, sizeof signature, "the signature");
        const uint8_t *p = heft_cur_take(&c, sizeof signature);
        if (c.st || !memcmp(p, signature, sizeof signature))
            return c.st;
    }
    return heft_error_set(k->in->err, HEFT_E_FORMAT, r.offset, "there is no signature of HDF5");
}

static heft_status open_container(heft_keras *k)
{
    if (!k->weights.is_deflated)
        HEFT_TRY(check_signature(k));
    if (k->in->container)
        return k->in->container(k->in, &k->c, &k->weights);
    return heft_error_rule(
        k->in->err,
        heft_error_plain(k->in->err, HEFT_E_UNSUPPORTED,
                         "the weights are in HDF5, which this build of Heft does "
                         "not read"),
        "keras/library");
}

static heft_status parse(heft_window *in, heft_index *x)
{
    static const heft_shard_index_kind index = { .total_rule = "keras/total-size",
                                                 .mark_rule = "keras/byte-order-mark",
                                                 .is_own = is_own_name,
                                                 .title = "Keras",
                                                 .names_groups = true };
    enum { INDEX_TEXT = 8 };
    uint64_t have;
    heft_keras k = { .in = in, .x = x, .weights = { .stored = { 0, in->size } } };
    k.weights.content = in->size;
    const uint8_t *head = in->window(in, 0, INDEX_TEXT, &have);
    if (have >= INDEX_TEXT && heft_shard_index_is_json_object(head))
        return heft_shard_index_parse(in, x, &index);
    if (have >= 2 && head[0] == 'P' && head[1] == 'K')
        HEFT_TRY(heft_keras_open_archive(&k));
    HEFT_TRY(open_container(&k));
    HEFT_TRY(heft_ix_reserve(x, 0, k.c->array_count, UINT64_MAX, 1));
    HEFT_TRY(add_apart(&k));
    HEFT_TRY(heft_keras_name(&k));
    HEFT_TRY(heft_keras_add_facts(&k));
    for (uint32_t i = 0; i < k.c->array_count; i++)
        HEFT_TRY(add_array(&k, i));
    note_aliases(&k);
    HEFT_TRY(heft_keras_add_members(&k));
    return check_any(&k);
}

/* ---- checking ---- */

/* Read the arrays that are decoded: their chunks may have checksums, or be damaged. */
static heft_status check_tensor(heft_check *c, uint32_t tensor)
{
    uint8_t buf[4 << 10];
    const heft_ix_tensor_row *row = heft_ix_row(c->x, tensor);
    const heft_ix_part_row *p = heft_ix_part_row_at(c->x, row->first_part);
    heft_error why = { .message = "" }, *err = c->err;
    heft_status st = HEFT_OK;
    if (!p->stored || heft_global_offset_file(c->x, p->offset) != c->x->assembled_shard)
        return HEFT_OK;
    c->err = &why;
    for (uint64_t done = 0, n; !st && done < p->stored; done += n) {
        n = p->stored - done < sizeof buf ? p->stored - done : sizeof buf;
        st = c->read(c, p->offset + done, buf, (size_t)n);
    }
    c->err = err;
    if (st == HEFT_E_CHECKSUM || st == HEFT_E_FORMAT) {
        c->report(c, HEFT_FAULT, why.rule ? why.rule : "keras/chunk",
                  (heft_range){ HEFT_NOWHERE, 0 }, tensor, why.message);
        return HEFT_OK;
    }
    if (st && err)
        *err = why;
    return st;
}

static heft_status check(heft_check *c)
{
    bool is_needed = !c->is_quick && c->x->assembled_shard;
    for (uint32_t t = 0; is_needed && t < heft_ix_tensors(c->x); t++)
        HEFT_TRY(check_tensor(c, t));
    return HEFT_OK;
}

static const heft_name_rules rules = { .path_rule = "keras/name", .rank_rule = "keras/rank" };

const heft_format heft_format_keras = {
    .name = "keras",
    .title = "Keras",
    .structure_rule = "keras/structure",
    .suffixes = ".weights.h5 .h5 .keras .hdf5",
    .versions = "",
    .caps = HEFT_CAN_READ | HEFT_CAN_SCHEMES,
    .align = 1,
    .probe = probe,
    .parse = parse,
    .name_rules = &rules,
    .check = check,
};

const heft_format_writer heft_format_writer_keras = { .plan = NULL };
