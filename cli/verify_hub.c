#include "verify_hub.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "digest_files.h"
#include "file_findings.h"
#include "folder_files.h"
#include "hub_names.h"
#include "textfile.h"

typedef struct hub_check { /* the check of one argument */
    file_findings *f;
    path_list files;
    hub_name *names; /* one for each request */
    digest_request *requests;
    size_t count;
} hub_check;

static const char covers_all[] = "every file has the digest that the hub states";
static const char covers_some[] = "every file for which the hub states a digest has that digest";

/* Return the folder in which all files are checked, malloc'ed: the blobs of a repository, the
 * folder of the argument, or the folder of a shard index. Return NULL for other files. */
static char *folder_of_model(const char *path)
{
    static const char suffix[] = ".index.json";
    size_t len = strlen(path), n = sizeof suffix - 1;
    if (path_is_folder(path)) {
        char *blobs = path_in(path, "blobs"), *snapshots = path_in(path, "snapshots");
        bool is_repository = blobs && snapshots && path_is_folder(blobs) &&
                             path_is_folder(snapshots);
        free(snapshots);
        if (is_repository)
            return blobs;
        free(blobs);
        return strdup(path);
    }
    if (len < n || strcmp(path + len - n, suffix) != 0)
        return NULL;
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
}

/* Return true for a file that the download tool keeps besides the model. */
static bool is_of_the_tool(const char *folder, const char *path)
{
    path += strlen(folder);
    path += strspn(path, "/");
    return !strncmp(path, ".cache/", 7);
}

static bool is_dangling(const char *path)
{
    struct stat info;
    return stat(path, &info) && errno == ENOENT && !lstat(path, &info);
}

static void add_request(hub_check *c, const char *path)
{
    hub_name *name = &c->names[c->count];
    if (is_dangling(path))
        findings_add(c->f, HEFT_FAULT, "hub/missing", path, (heft_range){ HEFT_NOWHERE, 0 },
                     "the link leads to no file: download the file again");
    else if (hub_name_of(name, path))
        c->requests[c->count++] = (digest_request){ .path = path,
                                                    .algorithm = name->algorithm,
                                                    .to = HEFT_UNKNOWN_LENGTH };
    else
        findings_add(c->f, HEFT_WARNING, "hub/no-digest", path, (heft_range){ HEFT_NOWHERE, 0 },
                     "the hub states no digest for this file");
}

static int say_no_names(const char *path)
{
    return say_status(HEFT_E_ARGUMENT, path,
                      "is not in a Hugging Face cache or download folder: --hub compares files "
                      "with the digests in their names; compare with sha256sum instead");
}

static int collect(hub_check *c, const char *path)
{
    char *folder = folder_of_model(path);
    hub_name name;
    if (!folder && !path_exists(path))
        return say_system(ENOENT, path);
    if (!folder && !is_dangling(path) && !hub_name_of(&name, path))
        return say_no_names(path);
    int code = path_list_add(&c->files, folder ? folder : path);
    c->names = calloc(c->files.count + 1, sizeof *c->names);
    c->requests = calloc(c->files.count + 1, sizeof *c->requests);
    if (!code && (!c->names || !c->requests))
        code = say_status(HEFT_E_NOMEM, path, "no memory for the names of files");
    for (size_t i = 0; i < c->files.count && !code; i++)
        if (!folder || !is_of_the_tool(folder, c->files.paths[i]))
            add_request(c, c->files.paths[i]);
    free(folder);
    if (!code && !c->count && !c->f->faults)
        code = say_no_names(path);
    return code;
}

static void compare(hub_check *c)
{
    char hex[DIGEST_HEX];
    for (size_t i = 0; i < c->count; i++) {
        const digest_request *r = &c->requests[i];
        digest_hex(hex, &r->digest);
        c->f->bytes += r->size;
        if (strcmp(hex, c->names[i].hex) != 0)
            findings_add(c->f, HEFT_FAULT, r->digest.length == 32 ? "hub/sha256" : "hub/git-sha1",
                         r->path, (heft_range){ 0, r->size },
                         "the hub states the digest %s, the content has %s: download it again",
                         c->names[i].hex, hex);
    }
}

static int check_argument(file_findings *f, const char *path)
{
    hub_check c = { .f = f, .files = { .keeps_broken_links = true } };
    findings_begin(f, path);
    int code = collect(&c, path);
    if (!code)
        code = digest_files(c.requests, c.count, path);
    if (!code)
        compare(&c);
    int found = findings_end(f, f->warnings ? covers_some : covers_all,
                             code ? "could not be checked" : NULL);
    free(c.names);
    free(c.requests);
    path_list_free(&c.files);
    return code ? code : found;
}

int verify_hub(const opt_args *args, bool as_json, bool strict)
{
    file_findings f;
    int worst = CODE_DONE;
    findings_open(&f, as_json, strict, args->count > 1);
    for (int i = 0; i < args->count; i++) {
        int code = check_argument(&f, args->item[i]);
        worst = code > worst ? code : worst;
    }
    return findings_close(&f, args->count > 1, worst);
}
