#include "models/beside.h"

#include <heft/remote.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "models/model.h"
#include "process/textfile.h"

/* ---- addresses ---- */

/* Return the length of the address of the folder, with the slash at its end; 0: the address of the
 * hub names a repository, whose files follow it after a slash. */
static size_t folder_length(const char *url, size_t len)
{
    const char *path = strstr(url, "://") + 3;
    bool is_hub = !strncmp(url, "hf:", 3);
    size_t slashes = 0, slash = 0, least = is_hub ? 2 : 1;
    if (is_hub && (!strncmp(path, "datasets/", 9) || !strncmp(path, "spaces/", 7)))
        least++;
    for (size_t i = (size_t)(path - url); i < len; i++)
        if (url[i] == '/' && ++slashes >= least)
            slash = i + 1;
    return slash;
}

char *url_beside(const char *url, const char *name)
{
    size_t len = strncmp(url, "http", 4) ? strlen(url) : strcspn(url, "?#");
    size_t folder = folder_length(url, len), head = folder ? folder : len;
    char *out = malloc(head + strlen(name) + 2);
    if (!out)
        return NULL;
    memcpy(out, url, head);
    if (!folder)
        out[head++] = '/';
    strcpy(out + head, name);
    return out;
}

/* ---- texts ---- */

static int read_address(heft_str *out, const char *url)
{
    heft_error err;
    heft_source *s;
    if (!heft_source_url(&s, url, NULL, &err)) {
        int code = text_from_source(out, s, url);
        heft_source_close(s);
        return code;
    }
    if (path_is_absent(err.os))
        return CODE_DONE;
    if (err.os != EACCES)
        return say_error(url, &err);
    /* S3 answers so for an object that does not exist, unless the objects may be listed. */
    say(MESSAGE_WARNING, url, "counts as missing: %s", err.message);
    return CODE_DONE;
}

int text_beside(heft_str *out, char **file, const char *path, const char *name)
{
    bool exists = false;
    *out = (heft_str){ NULL, 0 };
    *file = NULL;
    if (stdin_is(path))
        return CODE_DONE;
    if (heft_is_url(path)) {
        *file = url_beside(path, name);
        return *file ? read_address(out, *file)
                     : say_status(HEFT_E_NOMEM, path, "no memory for an address");
    }
    int code = model_find_beside(file, path, name);
    if (!code)
        code = path_find(&exists, *file);
    return code || !exists ? code : text_read(out, *file, TEXT_FOUND);
}

/* ---- settings ---- */

/* Warn about a file that is not valid JSON; missing memory is an error. */
static int say_unreadable(const char *path, const heft_error *err)
{
    if (err->status == HEFT_E_NOMEM)
        return say_error(path, err);
    say(MESSAGE_WARNING, path, "is ignored: %s", err->message);
    return CODE_DONE;
}

int settings_beside(heft_settings **out, const char *path, const char *name, bool warns)
{
    heft_error err;
    heft_str text;
    char *file;
    *out = NULL;
    int code = text_beside(&text, &file, path, name);
    if (!code && text.ptr && heft_settings_parse_json(out, text, NULL, &err))
        code = warns || err.status == HEFT_E_NOMEM ? say_unreadable(file, &err) : CODE_DONE;
    text_free(text);
    free(file);
    return code;
}
