/* hub_list.c - the list of the files of a repository, by which the hub answers in JSON:
 *
 *     {"sha": COMMIT, "siblings": [{"rfilename": "model.safetensors"}, ...]}
 *
 * The commit of the list is the revision of all files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "port/remote/session.h"

enum { NAME_BYTES = 256, COMMIT_BYTES = 20 };

/* Call fn with the names of the files at the top of the repository. */
static heft_status each_name(void *ctx, void (*fn)(void *arg, const char *name), void *arg,
                             heft_error *err)
{
    const heft_settings *s = ctx;
    uint32_t list = heft_settings_find_path(s, HEFT_STR("siblings"));
    uint32_t end = list == HEFT_NONE ? 0 : heft_settings_next(s, list);
    (void)err;
    for (uint32_t i = list == HEFT_NONE ? 0 : list + 1; i < end; i++) {
        char name[NAME_BYTES];
        heft_value v = heft_settings_value_at(s, i);
        bool is_name = v.kind == HEFT_KIND_STR && heft_str_is(v.key, "rfilename") &&
                       v.as.s.len < sizeof name && !memchr(v.as.s.ptr, '/', v.as.s.len) &&
                       !memchr(v.as.s.ptr, '\0', v.as.s.len);
        if (!is_name)
            continue;
        memcpy(name, v.as.s.ptr, v.as.s.len);
        name[v.as.s.len] = '\0';
        fn(arg, name);
    }
    return HEFT_OK;
}

/* Find the commit of the list; false: none is stated. */
static bool find_commit(heft_str *out, const heft_settings *s)
{
    uint8_t id[COMMIT_BYTES];
    heft_value sha;
    if (!heft_settings_find(&sha, s, HEFT_STR("sha")) || sha.kind != HEFT_KIND_STR)
        return false;
    *out = sha.as.s;
    return out->len == 2 * COMMIT_BYTES && heft_hex_read(id, sizeof id, *out);
}

/* Write hf://OWNER/NAME@COMMIT/FILE. */
static heft_status write_address(char *out, const char *url, const heft_settings *s,
                                 const char *file, heft_error *err)
{
    heft_str commit;
    const char *at = strchr(url, '@');
    size_t len = at ? (size_t)(at - url) : strlen(url);
    while (len && url[len - 1] == '/')
        len--;
    if (!find_commit(&commit, s))
        commit = (heft_str){ at ? at + 1 : "main", at ? strcspn(at + 1, "/") : 4 };
    int n = snprintf(out, HEFT_URL_MAX, "%.*s@%.*s/%s", (int)len, url, (int)commit.len, commit.ptr,
                     file);
    if ((size_t)n >= HEFT_URL_MAX)
        return heft_error_plain(err, HEFT_E_LIMIT, "the address is too long");
    return HEFT_OK;
}

heft_status heft_hub_main_file(char *out, const char *url, heft_str list, heft_error *err)
{
    char *file = NULL;
    const char *passed_over;
    heft_settings *s = NULL;
    heft_status st = heft_settings_parse_json(&s, list, NULL, err);
    if (!st)
        st = heft_names_main_file(&file, &passed_over, each_name, s, err);
    if (!st)
        st = write_address(out, url, s, file, err);
    free(file);
    heft_settings_close(s);
    return st;
}
