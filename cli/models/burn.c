/* burn.c - read optimizer and scheduler records of Burn 0.22. An optimizer record has tensors
 * "ID.FIELD" for the parameter ID, scalars with the same names and "ID.__rank", and the parameter's
 * path in the model as the metadata value "ID". A scheduler record has only scalars. */
#include "models/burn.h"

#include <errno.h>
#include <heft/ids.h>
#include <stdlib.h>
#include <string.h>

bool burn_number(uint64_t *out, heft_str text)
{
    uint64_t n = 0;
    if (!text.len || (text.len > 1 && *text.ptr == '0'))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = (unsigned)(text.ptr[i] - '0');
        if (digit > 9 || n > (UINT64_MAX - digit) / 10)
            return false;
        n = n * 10 + digit;
    }
    *out = n;
    return true;
}

/* Split "ID.REST" into the numeric id and a rest that is not empty. */
static bool split_name(uint64_t *id, heft_str *rest, heft_str name)
{
    const char *dot = name.len ? memchr(name.ptr, '.', name.len) : NULL;
    size_t len = dot ? (size_t)(dot - name.ptr) : 0;
    if (!dot || !burn_number(id, (heft_str){ name.ptr, len }))
        return false;
    *rest = (heft_str){ dot + 1, name.len - len - 1 };
    return rest->len;
}

/* ---- tensors ---- */

bool burn_id_of(uint64_t *id, const heft_file *f, uint32_t tensor)
{
    heft_value v;
    for (uint32_t i = 0, n = heft_attribute_count(f, tensor); i < n; i++) {
        v = heft_attribute_at(f, tensor, i);
        if (v.kind == HEFT_KIND_UINT && str_same(v.key, str_of("burn.param_id"))) {
            *id = v.as.u;
            return true;
        }
    }
    return false;
}

bool burn_field_of(heft_str *field, heft_str name, uint64_t id)
{
    uint64_t owner;
    return split_name(&owner, field, name) && owner == id;
}

/* ---- the file ---- */

bool burn_is_scalars(const heft_value *v)
{
    return v->kind == HEFT_KIND_MAP && str_same(v->key, str_of("burn.scalars"));
}

/* Find the map "burn.scalars"; its values are the metadata entries [*first, *end). */
static bool find_scalars(const heft_file *f, uint32_t *first, uint32_t *end)
{
    for (uint32_t i = 0; i < heft_meta_count(f); i = heft_meta_next(f, i)) {
        heft_value v = heft_meta_at(f, i);
        if (!burn_is_scalars(&v))
            continue;
        *first = i + 1;
        *end = heft_meta_next(f, i);
        return true;
    }
    return false;
}

burn_record burn_record_of(const heft_file *f, uint64_t *parameters)
{
    uint32_t i, end;
    *parameters = 0;
    if (!find_scalars(f, &i, &end))
        return BURN_MODEL;
    for (; i < end; i = heft_meta_next(f, i)) {
        uint64_t id;
        heft_str rest;
        *parameters += split_name(&id, &rest, heft_meta_at(f, i).key) &&
                       str_same(rest, str_of("__rank"));
    }
    return *parameters ? BURN_OPTIMIZER : heft_tensor_count(f) ? BURN_MODEL : BURN_SCHEDULER;
}

/* ---- names ---- */

static int compare_ids(const void *a, const void *b)
{
    uint64_t x = ((const burn_name *)a)->id, y = ((const burn_name *)b)->id;
    return (x > y) - (x < y);
}

static bool begin_names(burn_names *out, size_t max)
{
    *out = (burn_names){ calloc(max + 1, sizeof *out->items), 0 };
    return out->items;
}

static bool end_names(burn_names *names)
{
    qsort(names->items, names->count, sizeof *names->items, compare_ids);
    return true;
}

bool burn_names_of_record(burn_names *out, const heft_file *f)
{
    if (!begin_names(out, heft_meta_count(f)))
        return false;
    for (uint32_t i = 0; i < heft_meta_count(f); i = heft_meta_next(f, i)) {
        heft_value v = heft_meta_at(f, i);
        uint64_t id;
        if (v.kind == HEFT_KIND_STR && burn_number(&id, v.key))
            out->items[out->count++] = (burn_name){ id, v.as.s };
    }
    return end_names(out);
}

bool burn_names_of_model(burn_names *out, const heft_file *f)
{
    if (!begin_names(out, heft_tensor_count(f)))
        return false;
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        heft_str name = heft_tensor_at(f, i).name, field;
        uint64_t id;
        if (burn_id_of(&id, f, i) && !burn_field_of(&field, name, id))
            out->items[out->count++] = (burn_name){ id, name };
    }
    return end_names(out);
}

heft_str burn_name_find(const burn_names *names, uint64_t id)
{
    burn_name key = { id, { NULL, 0 } };
    const burn_name *found = bsearch(&key, names->items, names->count, sizeof *names->items,
                                     compare_ids);
    return found ? found->name : key.name;
}

/* ---- ids as text ---- */

bool burn_read_number(uint64_t *out, const char *text)
{
    bool is_hex = text[0] == '0' && text[1] == 'x' && text[2];
    const char *digits = is_hex ? text + 2 : text;
    if (!*digits || digits[strspn(digits, is_hex ? "0123456789abcdefABCDEF" : "0123456789")])
        return false;
    errno = 0;
    *out = strtoull(digits, NULL, is_hex ? 16 : 10);
    return !errno;
}

bool burn_read_id(uint64_t *id, const char *text)
{
    return burn_read_number(id, text) || heft_param_id_parse(id, heft_str_from(text));
}
