/* page_files.c - finds and reads the files of the page. They are read before the sandbox closes the
 * folder, and are as they were when the command began. */
#include "models/page_files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/profile.h"
#include "process/textfile.h"

static const char hint[] =
    "there is no page to serve: `./dev web --build` makes it in build-web/page, packages of Heft "
    "have it in share/heft/page, and HEFT_PAGE names its folder";

int served_add(served_list *l, const char *type, char *take_path, char *take_location,
               heft_str take_data)
{
    if (take_path && l->count == l->capacity) {
        uint32_t capacity = 2 * l->capacity + 64;
        heft_served_file *items = realloc(l->items, capacity * sizeof *items);
        if (items) {
            l->items = items;
            l->capacity = capacity;
        }
    }
    if (take_path && l->count < l->capacity) {
        l->items[l->count++] = (heft_served_file){ take_path, type, take_location, take_data };
        return CODE_DONE;
    }
    free(take_path);
    free(take_location);
    text_free(take_data);
    return say_status(HEFT_E_NOMEM, NULL, "no memory for a list of files");
}

void served_free(served_list *l)
{
    for (uint32_t i = 0; i < l->count; i++) {
        free((void *)(uintptr_t)l->items[i].path);
        free((void *)(uintptr_t)l->items[i].location);
        text_free(l->items[i].data);
    }
    free(l->items);
    *l = (served_list){ .count = 0 };
}

/* Return the media type of a file of the page, or NULL for other files. The service worker is left
 * out: it would keep the page for whatever has the port next. */
static const char *type_of(const char *name)
{
    static const char *const types[][2] = {
        { ".html", "text/html; charset=utf-8" },
        { ".js", "text/javascript; charset=utf-8" },
        { ".css", "text/css; charset=utf-8" },
        { ".svg", "image/svg+xml" },
        { ".webmanifest", "application/manifest+json" },
        { ".wasm", "application/wasm" },
        { ".json", "application/json" },
        { ".png", "image/png" },
    };
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && dot != name && i < sizeof types / sizeof *types; i++)
        if (!strcmp(dot, types[i][0]))
            return strcmp(name, "sw.js") ? types[i][1] : NULL;
    return NULL;
}

static int add_file(served_list *l, const char *folder, const char *name)
{
    heft_str data;
    const char *type = type_of(name);
    char *file = type ? path_in(folder, name) : NULL;
    if (!file)
        return type ? CODE_SYSTEM : CODE_DONE;
    int code = text_read(&data, file, TEXT_NAMED);
    free(file);
    if (code)
        return code;
    bool is_start = !strcmp(name, "index.html");
    return served_add(l, type, is_start ? strdup("/") : path_in("", name), NULL, data);
}

/* The folder of the page has the script that draws it; every other folder is another's. */
static bool is_page(const char *folder)
{
    char *script = folder && *folder ? path_in(folder, "inspector.js") : NULL;
    bool is = script && path_exists(script);
    free(script);
    return is;
}

static int read_folder(served_list *l, const char *folder)
{
    struct dirent **found;
    int code = CODE_DONE, n = scandir(folder, &found, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        code = code ? code : add_file(l, folder, found[i]->d_name);
        free(found[i]);
    }
    if (n >= 0)
        free(found);
    return code;
}

int page_read(served_list *l)
{
    static const char *const beside[] = { "../share/heft/page", "../build-web/page" };
    char buf[PROFILE_PATH_BYTES];
    const char *chosen = getenv("HEFT_PAGE");
    if (chosen && *chosen && !is_page(chosen))
        return say_status(HEFT_E_UNSUPPORTED, chosen, "HEFT_PAGE names a folder without the page");
    if (chosen && *chosen)
        return read_folder(l, chosen);
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        relative_to_command(buf, beside[i]);
        if (is_page(buf))
            return read_folder(l, buf);
    }
    return is_page(installed_page) ? read_folder(l, installed_page)
                                   : say_status(HEFT_E_UNSUPPORTED, NULL, "%s", hint);
}
