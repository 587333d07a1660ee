/* keras_archive.c - the archive that .keras files are: model.weights.h5, and texts beside it. */
#include "format/keras/keras.h"

enum { MOST_TEXT = 64 << 20, MOST_PER_BYTE = 1032 };

static const char weights_name[] = "model.weights.h5";

static heft_range stored_of(const heft_zip_entry *e)
{
    return (heft_range){ e->data, e->stored };
}

/* ---- texts ---- */

static heft_status read_text(heft_keras *k, const heft_zip_entry *e, heft_str *out)
{
    size_t len = (size_t)e->content;
    char *buf = NULL;
    *out = (heft_str){ "", 0 };
    if (e->is_opaque || e->content > MOST_TEXT || heft_div(e->content, MOST_PER_BYTE) > e->stored)
        return HEFT_OK;
    if (e->method == HEFT_ZIP_STORED) {
        heft_cur c = heft_cur_whole(k->in, e->data, e->stored, "a text of the archive");
        const uint8_t *p = heft_cur_take(&c, e->stored);
        out->ptr = (const char *)p;
        out->len = p ? len : 0;
        return c.st;
    }
    buf = heft_arena_alloc(&k->x->arena, len + 1, 1);
    if (!buf)
        return heft_ix_no_memory(k->x);
    HEFT_TRY(heft_window_decode(k->in, HEFT_DEFLATE, stored_of(e), buf, &len));
    *out = (heft_str){ buf, len };
    return HEFT_OK;
}

static heft_status add_text_facts(heft_keras *k, const heft_zip_entry *e)
{
    bool is_metadata = heft_str_is(e->name, "metadata.json");
    heft_str text;
    if (!is_metadata && !heft_str_is(e->name, "config.json"))
        return HEFT_OK;
    HEFT_TRY(read_text(k, e, &text));
    return is_metadata ? heft_keras_add_metadata_json(k, text) : heft_keras_add_class(k, text);
}

/* ---- members ---- */

static heft_status add_checksum(heft_keras *k, const heft_zip_entry *e)
{
    if (e->method == HEFT_ZIP_DEFLATED)
        return heft_ix_digest_crc32(k->x, k->x->parts.len + k->x->model_parts.len - 1,
                                    "keras/crc32", e->crc);
    heft_stored_checksum c = { .rule = "keras/crc32",
                               .algorithm = "crc32",
                               .range = { stored_of(e) },
                               .tensor = HEFT_NONE,
                               .part = HEFT_NONE };
    heft_put_le64(c.expect, e->crc);
    return heft_ix_checksum(k->x, c);
}

/* Add a member other than the weights as a part of the model, with its name as the role. */
static heft_status add_member(heft_keras *k, const heft_zip_entry *e)
{
    bool is_folder = !e->content && e->name.len && e->name.ptr[e->name.len - 1] == '/';
    heft_encoding how = e->method == HEFT_ZIP_DEFLATED ? HEFT_DEFLATE : HEFT_RAW;
    if (is_folder || heft_str_is(e->name, weights_name))
        return HEFT_OK;
    HEFT_TRY(heft_ix_part(k->x, HEFT_NONE, e->name, HEFT_UNTYPED, stored_of(e),
                          e->is_opaque ? e->stored : e->content,
                          e->is_opaque ? (heft_encoding)HEFT_ENCODING_OTHER : how));
    return e->is_opaque ? HEFT_OK : add_checksum(k, e);
}

static heft_status use_weights(heft_keras *k, const heft_zip_entry *e)
{
    HEFT_TRY(heft_zip_refuse_opaque(e, k->in->err));
    k->weights = (heft_packed_range){ .stored = stored_of(e),
                                      .content = e->content,
                                      .crc = e->crc,
                                      .is_deflated = e->method == HEFT_ZIP_DEFLATED };
    return k->weights.is_deflated ? HEFT_OK : add_checksum(k, e);
}

heft_status heft_keras_open_archive(heft_keras *k)
{
    bool has_weights = false;
    HEFT_TRY(heft_zip_archive(&k->zip, k->x, k->in));
    for (uint32_t i = 0; i < k->zip.count; i++) {
        const heft_zip_entry *e = &k->zip.entries[i];
        HEFT_TRY(add_text_facts(k, e));
        if (heft_str_is(e->name, weights_name)) {
            HEFT_TRY(use_weights(k, e));
            has_weights = true;
        }
    }
    return has_weights
               ? HEFT_OK
               : heft_error_plain(k->in->err, HEFT_E_FORMAT, "the archive has no %s", weights_name);
}

heft_status heft_keras_add_members(heft_keras *k)
{
    for (uint32_t i = 0; i < k->zip.count; i++)
        HEFT_TRY(add_member(k, &k->zip.entries[i]));
    return HEFT_OK;
}
