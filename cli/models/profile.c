#include "models/profile.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process/textfile.h"

void relative_to_command(char out[PROFILE_PATH_BYTES], const char *path)
{
    size_t buf = PROFILE_PATH_BYTES - strlen(path) - 1;
    ssize_t len = readlink("/proc/self/exe", out, buf);
    size_t end = len < 0 || (size_t)len == buf ? 0 : (size_t)len;
    while (end && out[end - 1] != '/')
        end--;
    strcpy(out + end, end ? path : "");
}

const char *profile_search_dir(size_t i, char buf[PROFILE_PATH_BYTES])
{
    if (i == 0)
        return getenv("HEFT_PROFILES");
    if (i == 2)
        return installed_profiles;
    relative_to_command(buf, "../share/heft/profiles");
    return buf;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && !strcmp(text + n - m, end);
}

/* ---- by name ---- */

/* Call `use` for each profile in the folder; return the number of profiles. */
static size_t list_folder(const char *dir, void (*use)(void *ctx, heft_str name), void *ctx)
{
    struct dirent **found;
    size_t profiles = 0;
    int n = scandir(dir, &found, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char *name = found[i]->d_name;
        if (ends_with(name, ".json")) {
            use(ctx, (heft_str){ name, strlen(name) - 5 });
            profiles++;
        }
        free(found[i]);
    }
    if (n >= 0)
        free(found);
    return profiles;
}

void profile_list(void (*use)(void *ctx, heft_str name), void *ctx)
{
    char buf[PROFILE_PATH_BYTES];
    size_t found = 0;
    for (size_t i = 0; i < PROFILE_SEARCH_DIRS && !found; i++)
        if (profile_search_dir(i, buf))
            found = list_folder(profile_search_dir(i, buf), use, ctx);
}

static void add_name(void *ctx, heft_str name)
{
    outbuf *names = ctx;
    out_text(names, names->used ? ", " : "");
    out_escaped(names, name);
}

static int say_unknown(const char *name)
{
    outbuf names;
    out_open(&names, -1);
    profile_list(add_name, &names);
    int code = say_usage("verify", "unknown profile '%s' (available: %s)", name,
                         names.used ? out_cstr(&names) : "none");
    out_free(&names);
    return code;
}

/* Return the malloc'ed path of the profile, or NULL with *code set. */
static char *find(const char *name, int *code)
{
    char buf[PROFILE_PATH_BYTES], file[512];
    if (strchr(name, '/') || ends_with(name, ".json"))
        return strdup(name);
    int len = snprintf(file, sizeof file, "%s.json", name);
    for (size_t i = 0; i < PROFILE_SEARCH_DIRS && len > 0 && (size_t)len < sizeof file; i++) {
        const char *dir = profile_search_dir(i, buf);
        char *path = dir && *dir ? path_in(dir, file) : NULL;
        if (dir && *dir && !path)
            return NULL;
        if (path && path_exists(path))
            return path;
        free(path);
    }
    *code = say_unknown(name);
    return NULL;
}

int profile_read(heft_profile **out, const char *name)
{
    int code = CODE_SYSTEM;
    heft_str text;
    heft_error err;
    char *path = find(name, &code);
    *out = NULL;
    if (!path && code == CODE_SYSTEM)
        say_status(HEFT_E_NOMEM, name, "no memory to look for the profile");
    if (!path)
        return code;
    code = text_read(&text, path, TEXT_NAMED);
    if (!code && heft_profile_parse_json(out, text, NULL, &err))
        code = say_error(path, &err);
    text_free(text);
    free(path);
    return code;
}
