#include "commands/verify_hub.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/file_findings.h"
#include "models/model.h"
#include "models/model_files.h"
#include "models/profile.h"
#include "process/textfile.h"
#include "text/outbuf.h"

typedef struct hub_check { /* the check of one argument */
    file_findings *f;
    path_list files;
    hub_name *names; /* one for each request */
    digest_request *requests;
    size_t count;
} hub_check;

static const char covers_all[] = "every file has the digest that the hub states";
static const char covers_some[] = "every file for which the hub states a digest has that digest";

/* Find the folder in which all files are checked, malloc'ed: the folder of the argument, or the
 * folder of a shard index; NULL for other files. */
static int find_folder(char **folder, const char *path)
{
    static const char suffix[] = ".index.json";
    size_t len = strlen(path), n = sizeof suffix - 1;
    bool is_folder;
    int code = path_find_folder(&is_folder, path);
    *folder = NULL;
    bool has_folder = is_folder || (len >= n && !strcmp(path + len - n, suffix));
    return code || !has_folder ? code : model_find_dir(folder, path);
}

/* Set *is true if the folder has the folders of a repository in the cache. */
static int find_repository(bool *is, const char *folder)
{
    static const char *const parts[] = { "blobs", "snapshots" };
    int code = CODE_DONE;
    *is = true;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && *is && !code; i++) {
        char *path = path_in(folder, parts[i]);
        code = path ? path_find_folder(is, path) : CODE_SYSTEM;
        free(path);
    }
    return code;
}

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

/* Return the path in a repository of the cache, for a path relative to the cache or a folder above;
 * NULL for other paths. */
static const char *path_in_repository(const char *name)
{
    static const char *const kinds[] = { "models--", "datasets--", "spaces--" };
    const char *slash;
    for (; (slash = strchr(name, '/')) != NULL; name = slash + 1)
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (begins(name, kinds[i]))
                return slash + 1;
    return NULL;
}

/* Return true for a file that the download tool keeps besides the model: records of downloads,
 * locks, and the commits of branches. */
static bool is_of_the_tool(const char *folder, const char *path, bool in_repository)
{
    const char *name = path + strlen(folder);
    name += strspn(name, "/");
    const char *inner = in_repository ? name : path_in_repository(name);
    bool is_record = inner && (begins(inner, "refs/") || begins(inner, ".no_exist/"));
    return is_record || begins(name, ".cache/") || begins(name, ".locks/") ||
           !strcmp(name, "CACHEDIR.TAG");
}

static bool is_dangling(const char *path)
{
    struct stat info;
    return stat(path, &info) && errno == ENOENT && !lstat(path, &info);
}

/* ---- files that several paths lead to ---- */

typedef struct identified { /* a path of the list, by the file that it leads to */
    uint64_t device;
    uint64_t inode;
    size_t index;
} identified;

static int compare_files(const void *a, const void *b)
{
    const identified *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->inode != y->inode)
        return x->inode < y->inode ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

/* Remove all paths but the first of each file: snapshots consist of links to blobs. Return false
 * without memory. */
static bool drop_repeated(path_list *l)
{
    identified *all = calloc(l->count + 1, sizeof *all);
    size_t n = 0, left = 0;
    for (size_t i = 0; all && i < l->count; i++) {
        struct stat info;
        if (!stat(l->paths[i], &info))
            all[n++] = (identified){ info.st_dev, info.st_ino, i };
    }
    if (n)
        qsort(all, n, sizeof *all, compare_files);
    for (size_t i = 1; i < n; i++)
        if (all[i].device == all[i - 1].device && all[i].inode == all[i - 1].inode) {
            free(l->paths[all[i].index]);
            l->paths[all[i].index] = NULL;
        }
    for (size_t i = 0; all && i < l->count; i++)
        if (l->paths[i])
            l->paths[left++] = l->paths[i];
    bool has_memory = all != NULL;
    if (has_memory)
        l->count = left;
    free(all);
    return has_memory;
}

/* ---- one argument ---- */

static void add_digest(hub_check *c, const char *path)
{
    c->requests[c->count] = (digest_request){ .path = path,
                                              .algorithm = c->names[c->count].algorithm,
                                              .to = HEFT_UNKNOWN_LENGTH };
    c->count++;
}

/* Add a request for each file with a digest, and tell what is wrong with the others. */
static int add_request(hub_check *c, const char *path)
{
    static const heft_range nowhere = { HEFT_NOWHERE, 0 };
    const char *suffix = strrchr(path, '.');
    if (is_dangling(path))
        findings_add(c->f, HEFT_FAULT, "hub/missing", path, nowhere,
                     "the link leads to no file: download the file again");
    else if (hub_name_of(&c->names[c->count], path))
        add_digest(c, path);
    else if (c->names[c->count].os)
        return say_system(c->names[c->count].os, path);
    else if (suffix && !strcmp(suffix, ".incomplete"))
        findings_add(c->f, HEFT_WARNING, "hub/incomplete", path, nowhere,
                     "the download is not finished: download the file again, or remove this file");
    else
        findings_add(c->f, HEFT_WARNING, "hub/no-digest", path, nowhere,
                     "the hub states no digest for this file");
    return CODE_DONE;
}

/* Return true if a file has a digest, or a link is broken: else the argument is no download. A
 * failure counts as a digest: add_request() reports the failure. */
static bool has_names(const path_list *files)
{
    hub_name name;
    for (size_t i = 0; i < files->count; i++)
        if (is_dangling(files->paths[i]) || hub_name_of(&name, files->paths[i]) || name.os)
            return true;
    return false;
}

static int say_no_names(const char *path)
{
    return say_status(HEFT_E_ARGUMENT, path,
                      "is not in a Hugging Face cache or download folder: --hub compares files "
                      "with the digests in their names; compare with sha256sum instead");
}

static int collect_from(hub_check *c, const char *folder, const char *path)
{
    bool in_repository = false;
    int code = folder ? find_repository(&in_repository, folder) : CODE_DONE;
    if (!code)
        code = path_list_add(&c->files, folder ? folder : path);
    c->names = calloc(c->files.count + 1, sizeof *c->names);
    c->requests = calloc(c->files.count + 1, sizeof *c->requests);
    if (!code && (!c->names || !c->requests || !drop_repeated(&c->files)))
        code = say_status(HEFT_E_NOMEM, path, "no memory for the names of files");
    if (!code && !has_names(&c->files))
        code = say_no_names(path);
    for (size_t i = 0; i < c->files.count && !code; i++)
        if (!folder || !is_of_the_tool(folder, c->files.paths[i], in_repository))
            code = add_request(c, c->files.paths[i]);
    return code;
}

static int collect(hub_check *c, const char *path)
{
    char *folder;
    int code = find_folder(&folder, path);
    if (!code && !folder && !path_exists(path))
        code = say_system(ENOENT, path);
    if (!code)
        code = collect_from(c, folder, path);
    free(folder);
    return code;
}

static void compare(hub_check *c)
{
    char hex[2 * HEFT_FILE_DIGEST_BYTES + 1];
    for (size_t i = 0; i < c->count; i++) {
        const digest_request *r = &c->requests[i];
        hex_text(hex, r->digest.bytes, r->digest.length);
        c->f->bytes += r->size;
        if (strcmp(hex, c->names[i].hex) != 0)
            findings_add(c->f, HEFT_FAULT, r->digest.length == 32 ? "hub/sha256" : "hub/git-sha1",
                         r->path, (heft_range){ 0, r->size },
                         "the hub states the digest %s, the content has %s: download it again",
                         c->names[i].hex, hex);
    }
}

static int check_argument(const session *s, file_findings *f, const char *path)
{
    hub_check c = { .f = f, .files = { .keeps_broken_links = true } };
    findings_begin(f, path);
    int code = collect(&c, path);
    if (!code)
        code = digest_files(s, c.requests, c.count, path);
    if (!code)
        compare(&c);
    int found = findings_end(f, f->warnings ? covers_some : covers_all,
                             code ? "could not be checked" : NULL);
    free(c.names);
    free(c.requests);
    path_list_free(&c.files);
    return code ? code : found;
}

int verify_hub(const session *s, bool as_json)
{
    const opt_args *args = &s->args;
    file_findings f;
    int worst = CODE_DONE;
    findings_open(&f, s, as_json, args->count > 1);
    for (int i = 0; i < args->count; i++) {
        int code = check_argument(s, &f, args->item[i]);
        worst = code > worst ? code : worst;
    }
    return findings_close(&f, args->count > 1, worst);
}
