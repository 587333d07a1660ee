/* hub_list.c - the list of the files of a repository, by which the hub answers in JSON:
 *
 *     {"sha": COMMIT, "siblings": [{"rfilename": "model.safetensors"}, ...]}
 *
 * The commit of the list is the revision of all files. */
#include <stdio.h>
#include <string.h>

#include <heft/companion.h>

#include "base/text.h"
#include "port/remote/session.h"

enum { NAME_BYTES = 512, COMMIT_BYTES = 20 };

/* Add the names of the files below a folder, which ends with a slash or is empty, to a listing.  A
 * file in a folder of that folder is added with the name of the inner folder. */
static void add_names(heft_folder_listing *l, const heft_settings *s, heft_str folder)
{
    uint32_t list = heft_settings_find_path(s, HEFT_STR("siblings"));
    uint32_t end = list == HEFT_NONE ? 0 : heft_settings_next(s, list);
    for (uint32_t i = list == HEFT_NONE ? 0 : list + 1; i < end; i++) {
        char name[NAME_BYTES];
        heft_value v = heft_settings_value_at(s, i);
        bool is_below = v.kind == HEFT_KIND_STR && heft_str_is(v.key, "rfilename") &&
                        v.as.s.len > folder.len && v.as.s.len < sizeof name &&
                        !memcmp(v.as.s.ptr, folder.ptr, folder.len) &&
                        !memchr(v.as.s.ptr, '\0', v.as.s.len);
        if (!is_below)
            continue;
        size_t len = v.as.s.len - folder.len;
        memcpy(name, v.as.s.ptr + folder.len, len);
        name[len] = '\0';
        heft_folder_listing_add(l, name);
    }
}

void heft_hub_list_folder(heft_folder_listing *out, const heft_settings *s, const char *folder)
{
    heft_folder_listing_init(out, &heft_libc_allocator);
    add_names(out, s, heft_str_from(folder));
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

heft_status heft_hub_address(char *out, const char *url, const heft_settings *s, const char *folder,
                             const char *file, heft_error *err)
{
    heft_str commit;
    const char *at = strchr(url, '@');
    size_t len = at ? (size_t)(at - url) : strlen(url);
    while (len && url[len - 1] == '/')
        len--;
    if (!find_commit(&commit, s))
        commit = (heft_str){ at ? at + 1 : "main", at ? strcspn(at + 1, "/") : 4 };
    int n = snprintf(out, HEFT_URL_MAX, "%.*s@%.*s/%s%s", (int)len, url, (int)commit.len,
                     commit.ptr, folder, file);
    if ((size_t)n >= HEFT_URL_MAX)
        return heft_error_plain(err, HEFT_E_LIMIT, "the address is too long");
    return HEFT_OK;
}
