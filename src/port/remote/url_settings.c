/* url_settings.c - settings of the user for requests: variables, files, and profiles of AWS.
 *
 * Settings become parts of requests.  Spaces and line feeds at both ends are removed, because
 * secrets that were read from files end in a line feed.  A setting with a line feed within would
 * begin another header or another request, and is refused. */
#include "port/remote/url_settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts ---- */

static heft_str trim(heft_str s)
{
    static const char blank[] = " \t\r\n";
    while (s.len && memchr(blank, *s.ptr, sizeof blank - 1)) {
        s.ptr++;
        s.len--;
    }
    while (s.len && memchr(blank, s.ptr[s.len - 1], sizeof blank - 1))
        s.len--;
    return s;
}

heft_status heft_setting_copy(char *out, size_t size, heft_str value, const char *origin,
                              heft_error *err)
{
    value = trim(value);
    *out = '\0';
    if (value.len >= size)
        return heft_error_plain(err, HEFT_E_LIMIT, "%s has %U bytes, and at most %U are allowed",
                                origin, (uint64_t)value.len, (uint64_t)size - 1);
    for (size_t i = 0; i < value.len; i++)
        if (value.ptr[i] <= ' ' || value.ptr[i] > '~')
            return heft_error_plain(err, HEFT_E_ARGUMENT,
                                    "%s has a space, a control character or a letter that is not "
                                    "ASCII as byte %U, and is not sent: set it again without",
                                    origin, (uint64_t)i);
    memcpy(out, value.ptr, value.len);
    out[value.len] = '\0';
    return HEFT_OK;
}

heft_status heft_setting_of_variable(char *out, size_t size, const char *name, heft_error *err)
{
    const char *value = secure_getenv(name);
    return heft_setting_copy(out, size, heft_str_from(value ? value : ""), name, err);
}

/* ---- files ---- */

heft_status heft_setting_of_file(char *out, size_t size, const char *path, heft_error *err)
{
    enum { MORE = 256 }; /* blanks around the setting */
    FILE *f = fopen(path, "re");
    char *text = f ? malloc(size + MORE) : NULL;
    size_t len = text ? fread(text, 1, size + MORE, f) : 0;
    heft_status st = f && !text ? heft_error_no_memory(err, "for a setting")
                                : heft_setting_copy(out, size, (heft_str){ text ? text : "", len },
                                                    path, err);
    free(text);
    if (f)
        fclose(f);
    return st;
}

/* Return true if the line sets the key, which is before the first '='. */
static bool sets_key(heft_str *value, char *line, const char *key)
{
    size_t name = strcspn(line, " \t=");
    char *equals = line + name + strspn(line + name, " \t");
    bool is_key = *equals == '=' && name == strlen(key) && !memcmp(line, key, name);
    if (is_key)
        *value = trim(heft_str_from(equals + 1));
    return is_key;
}

heft_status heft_setting_of_profile(char *out, size_t size, const char *path, const char *section,
                                    const char *key, heft_error *err)
{
    char *line = NULL, origin[512];
    size_t capacity = 0;
    bool is_section = false;
    heft_str value = { "", 0 };
    FILE *f = fopen(path, "re");
    while (f && !value.len && getline(&line, &capacity, f) >= 0) {
        char *p = line + strspn(line, " \t");
        if (*p == '[') {
            p[strcspn(p, "]")] = '\0';
            is_section = !strcmp(p + 1, section);
        } else if (is_section)
            (void)sets_key(&value, p, key);
    }
    snprintf(origin, sizeof origin, "%s in %s", key, path);
    heft_status st = heft_setting_copy(out, size, value, origin, err);
    free(line);
    if (f)
        fclose(f);
    return st;
}
