#include "models/model_card.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process/textfile.h"

void card_list_add(card_list *to, heft_str value)
{
    uint32_t i = 0;
    while (i < to->count && !str_same(to->value[i], value))
        i++;
    if (value.len && i == to->count && to->count < CARD_VALUES)
        to->value[to->count++] = value;
}

/* ---- metadata of the file ---- */

static heft_str find_text(const heft_file *f, const char *const *keys)
{
    heft_value v;
    for (; *keys; keys++)
        if (heft_meta_find(&v, f, str_of(*keys)) && v.kind == HEFT_KIND_STR && v.as.s.len)
            return v.as.s;
    return (heft_str){ NULL, 0 };
}

/* Add a text, or the texts of a list. */
static void add_texts(card_list *to, const heft_file *f, const char *key)
{
    uint32_t count = heft_meta_count(f), i = 0;
    while (i < count && !str_same(heft_meta_at(f, i).key, str_of(key)))
        i = heft_meta_next(f, i);
    if (i == count)
        return;
    heft_value v = heft_meta_at(f, i);
    uint32_t end = heft_meta_next(f, i);
    if (v.kind == HEFT_KIND_STR)
        card_list_add(to, v.as.s);
    for (i++; v.kind == HEFT_KIND_LIST && i < end && to->count < CARD_VALUES;
         i = heft_meta_next(f, i)) {
        heft_value item = heft_meta_at(f, i);
        if (item.kind == HEFT_KIND_STR)
            card_list_add(to, item.as.s);
    }
}

/* Add the texts of the keys "general.base_model.0.name", "general.base_model.1.name", ... */
static void add_numbered(card_list *to, const heft_file *f, const char *stem)
{
    enum { MOST = 64 };
    char key[64];
    const char *const keys[] = { key, NULL };
    for (unsigned i = 0; i < MOST; i++) {
        snprintf(key, sizeof key, "%s.%u.name", stem, i);
        card_list_add(to, find_text(f, keys));
    }
}

static void read_metadata(model_facts *out, const heft_file *f)
{
    static const char *const names[] = { "general.name", "modelspec.title", NULL };
    static const char *const versions[] = { "general.version", "modelspec.version", NULL };
    static const char *const licences[] = { "general.license", "license", "modelspec.license",
                                            NULL };
    static const char *const bases[] = { "ss_sd_model_name", NULL };
    out->name = find_text(f, names);
    out->version = find_text(f, versions);
    card_list_add(&out->licences, find_text(f, licences));
    add_numbered(&out->bases, f, "general.base_model");
    card_list_add(&out->bases, find_text(f, bases));
    add_numbered(&out->datasets, f, "general.dataset");
    add_texts(&out->datasets, f, "general.datasets");
    add_texts(&out->languages, f, "general.languages");
}

/* ---- the model card ---- */

static heft_str first_of(const card_list *l)
{
    return l->count ? l->value[0] : (heft_str){ NULL, 0 };
}

static void join_lists(card_list *to, const card_list *from)
{
    for (uint32_t i = 0; i < from->count; i++)
        card_list_add(to, from->value[i]);
}

/* Return true for an address that needs no escapes: letters, digits and punctuation of ASCII. */
static bool is_address(heft_str s)
{
    bool is = (s.len > 8 && !memcmp(s.ptr, "https://", 8)) ||
              (s.len > 7 && !memcmp(s.ptr, "http://", 7));
    for (size_t i = 0; i < s.len && is; i++)
        is = s.ptr[i] > ' ' && s.ptr[i] < 0x7F && !strchr("\"<>\\^`{|}[]%", s.ptr[i]);
    return is;
}

/* "license: other" has the name of the licence in license_name. */
static void read_licences(model_facts *out)
{
    const card_list *field = out->card.field;
    heft_str name = first_of(&field[CARD_LICENCE_NAME]), link = first_of(&field[CARD_LICENCE_LINK]);
    bool is_other = field[CARD_LICENCES].count == 1 &&
                    str_same(field[CARD_LICENCES].value[0], str_of("other"));
    if (out->licences.count)
        return;
    if (name.len && is_other)
        card_list_add(&out->licences, name);
    else
        join_lists(&out->licences, &field[CARD_LICENCES]);
    if (is_address(link))
        out->licence_link = link;
}

static void read_card(model_facts *out)
{
    const card_list *field = out->card.field;
    out->task = first_of(&field[CARD_TASK]);
    out->library = first_of(&field[CARD_LIBRARY]);
    read_licences(out);
    join_lists(&out->bases, &field[CARD_BASE_MODELS]);
    join_lists(&out->datasets, &field[CARD_DATASETS]);
    join_lists(&out->languages, &field[CARD_LANGUAGES]);
}

int model_facts_find(model_facts *out, const heft_file *f, const char *path)
{
    *out = (model_facts){ .name = { NULL, 0 } };
    read_metadata(out, f);
    if (stdin_is(path))
        return CODE_DONE;
    char *dir;
    int code = model_find_dir(&dir, path);
    if (!code)
        code = model_card_read(&out->card, dir);
    free(dir);
    if (!code)
        read_card(out);
    return code;
}

void model_facts_free(model_facts *facts)
{
    model_card_free(&facts->card);
}
