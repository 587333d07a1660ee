#include "models/model_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heft/check.h>

#include "models/model.h"
#include "models/quantised.h"

bool checks_add(checks *c, uint32_t part)
{
    if (c->count == c->capacity) {
        uint32_t capacity = c->capacity < UINT32_MAX / 2 ? 2 * c->capacity + 64 : UINT32_MAX;
        uint32_t *parts = capacity > c->capacity
                              ? realloc(c->parts, (size_t)capacity * sizeof *parts)
                              : NULL;
        if (!parts) {
            c->no_memory = true;
            return false;
        }
        c->parts = parts;
        c->capacity = capacity;
    }
    c->parts[c->count++] = part;
    return true;
}

bool checks_add_tensor(checks *c, const heft_file *f, uint32_t tensor)
{
    heft_tensor t = heft_tensor_at(f, tensor);
    bool ok = true;
    for (uint32_t i = 0; i < t.part_count && ok; i++)
        ok = checks_add(c, t.first_part + i);
    return ok;
}

int checks_begin(checks *c, const session *s, const heft_file *f, const char *path)
{
    static const uint32_t none;
    heft_error err;
    c->f = f;
    if (s->no_verify)
        return CODE_DONE;
    if (c->no_memory)
        return say_status(HEFT_E_NOMEM, path, "no memory for a list of parts");
    const uint32_t *parts = c->parts ? c->parts : &none; /* NULL would select all parts */
    return heft_checked_read_open(&c->read, f, parts, c->count, &err) ? say_error(path, &err)
                                                                      : CODE_DONE;
}

int checks_end(checks *c, const char *path)
{
    heft_error err;
    if (c->f && heft_file_is_unchanged(c->f, &err))
        return say_error(path, &err);
    return c->read && heft_checked_read_end(c->read, &err) ? say_error(path, &err) : CODE_DONE;
}

void checks_close(checks *c)
{
    heft_checked_read_close(c->read);
    free(c->parts);
    *c = (checks){ .read = NULL };
}

/* ---- making the view ---- */

/* Return the part with the role "weight", or else the first part. */
static uint32_t weight_of(const heft_schemes *s, uint32_t quantised)
{
    uint32_t count = heft_schemes_at(s, quantised).part_count;
    for (uint32_t k = 0; k < count; k++) {
        heft_quantised_part p = heft_schemes_part_at(s, quantised, k);
        if (!strcmp(p.role, "weight"))
            return p.tensor;
    }
    return heft_schemes_part_at(s, quantised, 0).tensor;
}

static bool find_rows(model_view *v)
{
    uint32_t count = heft_tensor_count(v->decoded);
    v->rows = malloc(((size_t)count + 1) * sizeof *v->rows);
    for (uint32_t i = 0; v->rows && i < count; i++)
        v->rows[i] = (view_row){ HEFT_NONE, HEFT_NONE };
    for (uint32_t q = 0; v->rows && q < heft_schemes_count(v->schemes); q++) {
        uint32_t i = heft_tensor_find(v->decoded, heft_schemes_at(v->schemes, q).name);
        if (i != HEFT_NONE && quantised_is_decoded(v->decoded, i))
            v->rows[i] = (view_row){ q, weight_of(v->schemes, q) };
    }
    for (uint32_t i = 0; v->rows && i < count; i++)
        if (v->rows[i].quantised == HEFT_NONE)
            v->rows[i].stored = heft_tensor_find(v->stored, heft_tensor_at(v->decoded, i).name);
    return v->rows;
}

/* A listing goes on with the stored tensors. */
static int say_undecoded(const char *path, const heft_error *err, view_use use)
{
    heft_error more = *err;
    size_t used = strlen(more.message);
    if (use == VIEW_TO_LIST && err->status != HEFT_E_NOMEM) {
        say(MESSAGE_WARNING, path, "the stored tensors are listed, not what they represent: %s",
            err->message);
        return CODE_DONE;
    }
    snprintf(more.message + used, sizeof more.message - used,
             ". --raw-tensors takes the stored tensors");
    return say_error(path, &more);
}

model_view model_view_of_stored(const heft_file *f)
{
    return (model_view){ .f = f, .stored = f };
}

int model_view_open(model_view *v, const session *s, const heft_file *f, const char *path,
                    view_use use)
{
    heft_error err;
    heft_decode_options opt = HEFT_DECODE_OPTIONS_INIT;
    *v = model_view_of_stored(f);
    opt.keeps_undecoded = true;
    int code = s->raw_tensors ? CODE_DONE : quantised_open(&v->schemes, f, path);
    if (code || s->raw_tensors || !heft_schemes_count(v->schemes))
        return code;
    if (heft_schemes_decode(&v->decoded, f, v->schemes, &opt, &err))
        return say_undecoded(path, &err, use);
    v->f = v->decoded;
    return find_rows(v) ? CODE_DONE
                        : say_status(HEFT_E_NOMEM, path, "no memory for a list of tensors");
}

void model_view_close(model_view *v)
{
    free(v->rows);
    heft_file_close(v->decoded);
    heft_schemes_close(v->schemes);
    *v = (model_view){ .f = NULL };
}

/* ---- its tensors ---- */

uint32_t view_quantised(const model_view *v, uint32_t tensor)
{
    return v->rows ? v->rows[tensor].quantised : HEFT_NONE;
}

uint32_t view_stored(const model_view *v, uint32_t tensor)
{
    return v->rows ? v->rows[tensor].stored : tensor;
}

bool view_has_own_layout(const model_view *v, uint32_t tensor)
{
    uint32_t stored = view_quantised(v, tensor) == HEFT_NONE ? HEFT_NONE : view_stored(v, tensor);
    return stored != HEFT_NONE && heft_tensor_at(v->stored, stored).layout != HEFT_DENSE;
}

uint64_t view_bytes(const model_view *v, uint32_t tensor)
{
    uint32_t q = view_quantised(v, tensor);
    if (q == HEFT_NONE)
        return heft_tensor_bytes(v->f, tensor);
    uint64_t sum = 0;
    for (uint32_t k = 0; k < heft_schemes_at(v->schemes, q).part_count; k++) {
        uint64_t bytes = heft_tensor_bytes(v->stored,
                                           heft_schemes_part_at(v->schemes, q, k).tensor);
        if (bytes == HEFT_UNKNOWN_LENGTH)
            return bytes;
        sum = add_saturated(sum, bytes);
    }
    return sum;
}

/* Return the number of numbers of `bits` bits in the packed elements of a tensor. */
static uint64_t unpacked(const heft_tensor *t, uint32_t bits)
{
    uint64_t elements = tensor_elements(t);
    const heft_dtype_info *d = heft_dtype_get(t->dtype);
    if (!bits || !d || d->block_elems != 1 || d->block_bytes * 8u <= bits)
        return elements;
    uint64_t bytes = elements * d->block_bytes; /* they are in the file: no overflow */
    return bytes / bits * 8 + bytes % bits * 8 / bits;
}

uint64_t view_parameters(const model_view *v, uint32_t tensor)
{
    heft_quantised q;
    heft_tensor t = heft_tensor_at(v->f, tensor);
    bool is_stored = view_quantised(v, tensor) == HEFT_NONE;
    const char *role = is_stored ? quantised_role(v->schemes, view_stored(v, tensor), &q) : NULL;
    /* data: the settings name a method, no scheme does */
    if (!role || !strcmp(role, "data") || t.layout != HEFT_DENSE)
        return tensor_elements(&t);
    return !strcmp(role, "weight") ? unpacked(&t, q.bits) : 0;
}

/* ---- types ---- */

void view_put_type(outbuf *o, const model_view *v, uint32_t tensor)
{
    uint32_t i = view_quantised(v, tensor);
    if (i != HEFT_NONE) {
        heft_quantised q = heft_schemes_at(v->schemes, i);
        quantised_put_label(o, &q);
        out_char(o, '/');
    }
    out_dtype(o, heft_tensor_at(v->f, tensor).dtype);
}

heft_str view_type(char buf[VIEW_TYPE_BYTES], const model_view *v, uint32_t tensor)
{
    outbuf type;
    out_open_fixed(&type, -1, buf, VIEW_TYPE_BYTES);
    view_put_type(&type, v, tensor);
    return (heft_str){ type.buf, type.used };
}

bool view_has_same_type(const model_view *v, uint32_t a, uint32_t b)
{
    char x[VIEW_TYPE_BYTES], y[VIEW_TYPE_BYTES];
    return str_same(view_type(x, v, a), view_type(y, v, b));
}

uint32_t view_types_add(view_types *types, const model_view *v, uint32_t tensor)
{
    uint32_t k = 0;
    while (k < types->count && !view_has_same_type(v, types->first[k], tensor))
        k++;
    if (k == types->count && k < VIEW_TYPES)
        types->first[types->count++] = tensor;
    return k;
}

void view_json_type(json *j, const model_view *v, uint32_t tensor)
{
    char buf[VIEW_TYPE_BYTES];
    if (view_quantised(v, tensor) != HEFT_NONE)
        json_member_str(j, "type", view_type(buf, v, tensor));
}

void view_json(json *j, const model_view *v, uint32_t tensor)
{
    uint32_t i = view_quantised(v, tensor);
    if (i == HEFT_NONE)
        return;
    heft_quantised q = heft_schemes_at(v->schemes, i);
    json_member_begin(j, "quantised", '{');
    view_json_type(j, v, tensor);
    quantised_json_scheme(j, &q);
    json_member_length(j, "stored", view_bytes(v, tensor));
    json_end(j, '}');
}

/* ---- finding and checking ---- */

/* Say what a stored tensor is part of. */
static void say_part(const model_view *v, const char *path, uint32_t stored)
{
    heft_quantised q;
    const char *role = quantised_role(v->schemes, stored, &q);
    heft_str name = heft_tensor_at(v->stored, stored).name;
    say_status(HEFT_E_NOTFOUND, path,
               "'%.*s' is a part (%s) of the quantised tensor '%.*s': --raw-tensors takes the "
               "stored tensors",
               (int)name.len, name.ptr, role, (int)q.name.len, q.name.ptr);
}

uint32_t view_find(const model_view *v, const char *path, const char *name)
{
    heft_str word = str_of(name), array = { name, strcspn(name, "[") };
    uint32_t stored = HEFT_NONE;
    if (v->decoded && heft_tensor_find(v->f, word) == HEFT_NONE)
        stored = heft_tensor_find(v->stored, word);
    if (v->decoded && stored == HEFT_NONE)
        stored = heft_tensor_find(v->stored, array);
    if (stored == HEFT_NONE || heft_schemes_find(v->schemes, stored) == HEFT_NONE)
        return model_find(v->f, path, name);
    say_part(v, path, stored);
    return HEFT_NONE;
}

int view_verify(const model_view *v, const session *s, const char *path, uint32_t tensor)
{
    uint32_t i = view_quantised(v, tensor);
    uint32_t count = i == HEFT_NONE || s->no_verify ? 0 : heft_schemes_at(v->schemes, i).part_count;
    heft_error err;
    for (uint32_t k = 0; k < count; k++) {
        heft_tensor t = heft_tensor_at(v->stored, heft_schemes_part_at(v->schemes, i, k).tensor);
        for (uint32_t p = 0; p < t.part_count; p++)
            if (heft_part_verify(NULL, v->stored, t.first_part + p, &err))
                return say_error(path, &err);
    }
    return CODE_DONE;
}

int view_verify_selected(const model_view *v, const session *s, const char *path,
                         const selection *chosen)
{
    int code = CODE_DONE;
    for (uint32_t i = 0; i < chosen->count && !code; i++)
        code = view_verify(v, s, path, selected(chosen, i));
    return code;
}
