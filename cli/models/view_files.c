/* view_files.c - the files of a model, under the names that its index gives them. */
#include <stdlib.h>
#include <string.h>

#include <heft/remote.h>

#include "models/beside.h"
#include "models/model.h"
#include "models/page_files.h"
#include "process/textfile.h"

static const char bytes_type[] = "application/octet-stream";

typedef struct viewed {
    served_list *list;
    const char *path; /* the name that the user gave */
    char *folder;     /* "/model", in requests */
    char *main;       /* path or address of the file that is opened */
    const heft_file *f;
    bool is_far;
    char opened[HEFT_URL_BYTES]; /* the address of that file, with the commit of the hub */
} viewed;

/* Percent-encode everything but unreserved characters and slashes. */
static void out_encoded(outbuf *o, const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    static const char kept[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (strchr(kept, c)) {
            out_char(o, (char)c);
            continue;
        }
        out_char(o, '%');
        out_char(o, digits[c >> 4]);
        out_char(o, digits[c & 15]);
    }
}

/* Return the path or the address of the file that was opened, malloc'ed; NULL without memory. */
static char *find_main(const viewed *v, const char *name)
{
    if (v->is_far)
        return strdup(v->opened);
    return path_is_folder(v->path) ? path_in(v->path, name) : strdup(v->path);
}

static char *find_shard(const viewed *v, const char *name)
{
    char *file = NULL;
    if (v->is_far)
        return url_beside(v->main, name);
    return model_find_beside(&file, v->path, name) ? NULL : file;
}

static int add_file(const viewed *v, const char *name, char *take_location)
{
    return served_add(v->list, bytes_type, take_location ? path_in(v->folder, name) : NULL,
                      take_location, (heft_str){ NULL, 0 });
}

static int add_shards(const viewed *v)
{
    int code = CODE_DONE;
    for (uint32_t i = 0; i < heft_shard_file_count(v->f) && !code; i++) {
        heft_shard_file s = heft_shard_file_at(v->f, i);
        if (s.status || s.is_assembled)
            continue;
        char *name = strndup(s.name.ptr, s.name.len);
        code = add_file(v, name ? name : "", name ? find_shard(v, name) : NULL);
        free(name);
    }
    return code;
}

/* Add the settings that lie beside the model, from which the overview takes facts. */
static int add_settings(const viewed *v)
{
    static const char name[] = "config.json";
    static const size_t most = (size_t)1 << 20; /* bytes that the page reads */
    heft_str text;
    char *file;
    int code = text_beside(&text, &file, v->is_far ? v->main : v->path, name);
    if (!code && text.ptr && text.len <= most) {
        code = served_add(v->list, "application/json", path_in(v->folder, name), NULL, text);
        text = (heft_str){ NULL, 0 };
    } else if (!code && text.ptr) {
        say(MESSAGE_WARNING, file, "is not shown: it has more than 1 MiB");
    }
    text_free(text);
    free(file);
    return code;
}

/* The page opens one file, and the files that this one names. */
static int check_page_opens(const viewed *v, const char *name)
{
    const char *format = heft_format_name(heft_file_format(v->f));
    uint32_t shards = heft_shard_file_count(v->f);
    bool is_pipeline = false;
    for (uint32_t i = 0; i < shards; i++) {
        heft_str shard = heft_shard_file_at(v->f, i).name;
        is_pipeline = is_pipeline || memchr(shard.ptr, '/', shard.len);
    }
    if (is_pipeline)
        return say_status(HEFT_E_UNSUPPORTED, v->path,
                          "is a pipeline of several models: name the folder of one of them");
    if (!strcmp(format, "keras"))
        return say_status(HEFT_E_UNSUPPORTED, v->path,
                          "the page does not open files of Keras: `heft report` writes a page");
    bool joins = !strcmp(format, "safetensors") || !strcmp(format, "torch");
    if (shards && joins && !strstr(name, ".json") && !strstr(name, "-of-"))
        say(MESSAGE_WARNING, v->path,
            "the page shows %s only, and not the %u files that belong to it without an index: "
            "`heft index` writes one",
            name, shards);
    return CODE_DONE;
}

static int add_model(viewed *v, outbuf *link)
{
    heft_str own = heft_file_name(v->f);
    char *name = own.len ? strndup(own.ptr, own.len) : strdup("stdin");
    v->main = name ? find_main(v, name) : NULL;
    char *main = v->main ? strdup(v->main) : NULL, *path = NULL;
    int code = main ? check_page_opens(v, name) : CODE_SYSTEM;
    if (!code)
        code = add_file(v, name, main);
    else
        free(main);
    if (!code) {
        outbuf url;
        path = strdup(v->list->items[v->list->count - 1].path);
        out_open(&url, -1);
        out_encoded(&url, path ? path : "");
        out_encoded(link, out_cstr(&url));
        out_free(&url);
        code = add_shards(v);
    }
    if (!code)
        code = add_settings(v);
    free(path);
    free(name);
    free(v->main);
    return code;
}

int view_files_add(served_list *l, outbuf *link, const session *s, const char *path,
                   const char *name)
{
    heft_file *f = NULL;
    viewed v = { .list = l, .path = path, .is_far = heft_is_url(path) };
    int code = model_open_url(s, &f, path, v.opened);
    if (code)
        return code;
    v.f = f;
    v.folder = path_in(v.is_far ? "/far" : "", name);
    code = v.folder ? add_model(&v, link) : CODE_SYSTEM;
    free(v.folder);
    heft_file_close(f);
    return code;
}
