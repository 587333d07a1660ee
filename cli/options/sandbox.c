/* sandbox.c - the files that a command may use: those that arguments and options name.
 *
 * Shards, companions and journals lie next to a model, so reading a model needs the whole folder.
 * An output appears by a rename and may have a journal, so writing a file needs the folder, too. */
#include "options/sandbox.h"

#include <heft/remote.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "models/hub_names.h"
#include "models/profile.h"
#include "options/operands.h"
#include "process/call_filter.h"
#include "process/folder_files.h"
#include "process/kept_access.h"
#include "process/landlock.h"
#include "process/stdin_file.h"
#include "process/textfile.h"

typedef struct sandbox {
    const session *session;
    landlock files;
    kept_access kept;
} sandbox;

/* ---- paths ---- */

/* Store the folder in which the path's last component lies; return false if the path is too long
 * for the system. */
static bool folder_of(char out[PATH_MAX], const char *path)
{
    size_t len = strlen(path);
    while (len && path[len - 1] == '/')
        len--;
    while (len && path[len - 1] != '/')
        len--;
    if (len >= PATH_MAX)
        return false;
    memcpy(out, path, len);
    strcpy(out + len, len ? "" : ".");
    return true;
}

/* In a Hugging Face cache, the files of a folder below REPOSITORY/snapshots are links to files in
 * REPOSITORY/blobs. */
static void allow_repository(landlock *l, const char *folder)
{
    char path[PATH_MAX], blobs[PATH_MAX + 8];
    char *slash = realpath(folder, path) ? strrchr(path, '/') : NULL;
    for (; slash; slash = strrchr(path, '/')) {
        bool is_snapshots = !strcmp(slash, "/snapshots");
        *slash = '\0';
        snprintf(blobs, sizeof blobs, "%s/blobs", path);
        if (!is_snapshots || !path_is_folder(blobs))
            continue;
        landlock_allow(l, path, ACCESS_READ);
        return;
    }
}

/* A folder of downloads, at or above the folder, has files with the digests of the downloads. */
static void allow_download_metadata(landlock *l, const char *folder)
{
    char path[PATH_MAX], metadata[PATH_MAX];
    if (!realpath(folder, path))
        return;
    char *slash;
    do {
        if (hub_metadata_folder(metadata, sizeof metadata, path) && path_is_folder(metadata))
            landlock_allow(l, metadata, ACCESS_READ);
        slash = strrchr(path, '/');
        if (slash)
            *slash = '\0';
    } while (slash);
}

static void allow_folder(sandbox *s, const char *path, unsigned access)
{
    landlock *l = &s->files;
    if (s->session->follow_links) /* the files may be anywhere */
        landlock_allow(l, "/", ACCESS_READ);
    landlock_allow(l, path, access);
    allow_repository(l, path);
    allow_download_metadata(l, path);
}

/* The folders of the libraries that are loaded on first use: libcrypto, libcurl. */
static void allow_libraries(landlock *l)
{
    static const char *const paths[] = { "/etc/ld.so.cache", "/usr/lib", "/lib",
                                         "/usr/lib64",       "/lib64",   "/usr/local/lib",
                                         "/usr/local/lib64" };
    const char *at = secure_getenv("LD_LIBRARY_PATH");
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        landlock_allow(l, paths[i], ACCESS_READ);
    for (; at && *at; at += *at == ':') {
        size_t len = strcspn(at, ":;");
        snprintf(path, sizeof path, "%.*s", (int)len, at);
        landlock_allow(l, path, ACCESS_READ);
        at += len;
    }
}

/* The files that name resolution, TLS and credentials need. */
static void allow_network(landlock *l)
{
    static const char *const files[] = {
        "/etc/resolv.conf",
        "/etc/hosts",
        "/etc/host.conf",
        "/etc/nsswitch.conf",
        "/etc/gai.conf",
        "/etc/services",
        "/etc/ssl",
        "/etc/pki",
        "/etc/ca-certificates",
        "/usr/share/ca-certificates",
        "/usr/local/share/ca-certificates",
        "/usr/lib/ssl",
        "/etc/localtime",
        "/run/systemd/resolve",
        "/dev/urandom",
    };
    static const char *const variables[] = { "CURL_CA_BUNDLE",
                                             "SSL_CERT_FILE",
                                             "SSL_CERT_DIR",
                                             "HF_TOKEN_PATH",
                                             "HF_HOME",
                                             "AWS_CONFIG_FILE",
                                             "AWS_SHARED_CREDENTIALS_FILE" };
    static const char *const in_home[] = { ".aws/config", ".aws/credentials",
                                           ".cache/huggingface/token" };
    const char *home = secure_getenv("HOME");
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        landlock_allow(l, files[i], ACCESS_READ);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = secure_getenv(variables[i]);
        if (value && *value)
            landlock_allow(l, value, ACCESS_READ);
    }
    for (size_t i = 0; home && i < sizeof in_home / sizeof *in_home; i++) {
        snprintf(path, sizeof path, "%s/%s", home, in_home[i]);
        landlock_allow(l, path, ACCESS_READ);
    }
}

static void allow_model(sandbox *s, const char *path)
{
    landlock *l = &s->files;
    if (heft_is_url(path)) {
        allow_network(l);
        return;
    }
    char folder[PATH_MAX], real[PATH_MAX];
    struct stat info;
    if (stdin_is(path)) { /* the temporary file has no folder */
        landlock_allow(l, path, ACCESS_READ);
        return;
    }
    bool exists = !stat(path, &info);
    if (exists && S_ISDIR(info.st_mode)) {
        allow_folder(s, path, ACCESS_READ);
        return;
    }
    if (!exists || S_ISREG(info.st_mode)) {
        if (folder_of(folder, path))
            allow_folder(s, folder, ACCESS_READ);
        if (realpath(path, real) && folder_of(folder, real)) /* the journal of an edited file */
            landlock_allow(l, folder, ACCESS_READ);
    }
    landlock_allow(l, path, ACCESS_READ); /* a device, or a file that has been removed */
}

/* Shares are written to a folder beside the output, and the last share moves the file. */
static bool writes_shares(const session *s)
{
    return s->command->writes_shares && s->command->writes_shares(s->request);
}

static void allow_output(sandbox *s, const char *path, output_kind kind, unsigned more)
{
    char folder[PATH_MAX], real[PATH_MAX], made[PATH_MAX];
    struct stat info;
    size_t len = strlen(path);
    if (kind == STDOUT_OUTPUT && !strcmp(path, "-"))
        return;
    if (heft_is_url(path)) {
        allow_network(&s->files);
        return;
    }
    bool exists = !stat(path, &info);
    if (!exists && len > 1 && len < sizeof made && path[len - 1] == '/') { /* convert makes it */
        memcpy(made, path, len);
        made[len - 1] = 0;
        path = made;
        kind = FOLDER_OUTPUT;
    }
    if (exists && S_ISDIR(info.st_mode))
        kept_access_add_folder(&s->kept, path, "");
    if (exists && S_ISREG(info.st_mode))
        kept_access_add(&s->kept, &info);
    if (exists && !S_ISREG(info.st_mode))
        landlock_allow(&s->files, path, ACCESS_WRITE);
    else if (folder_of(folder, realpath(path, real) ? real : path))
        landlock_allow(&s->files, folder,
                       ACCESS_WRITE | more | (kind == FOLDER_OUTPUT ? ACCESS_FOLDERS : 0));
}

/* Allow the file that is written beside the output: an earlier one may have another mode, or be a
 * link to another folder. */
static void allow_beside(sandbox *s, const char *out)
{
    const command *c = s->session->command;
    const char *name = c->writes_beside ? c->writes_beside(s->session->request) : NULL;
    char path[PATH_MAX];
    if (!name || !folder_of(path, out))
        return;
    size_t len = strlen(path);
    if ((size_t)snprintf(path + len, sizeof path - len, "/%s", name) < sizeof path - len)
        allow_output(s, path, FILE_OUTPUT, 0);
}

/* Links in a folder may lead out of it, and scan follows them: a program that loads a file does. */
static void allow_links(landlock *l, const char *folder)
{
    enum { MOST_FOLDERS = 256 };
    path_list links = { .is_quiet = true };
    char real[PATH_MAX], top[PATH_MAX];
    int folders = 0;
    bool is_known = path_is_folder(folder) && realpath(folder, top) &&
                    !path_list_add_odd(&links, folder);
    size_t len = is_known ? strlen(top) : 0;
    for (size_t i = 0; is_known && i < links.count; i++) {
        if (!realpath(links.paths[i], real))
            continue;
        bool is_inside = !strncmp(real, top, len) && (!real[len] || real[len] == '/');
        if (is_inside)
            continue;
        landlock_allow(l, real, ACCESS_READ);
        if (path_is_folder(real) && ++folders <= MOST_FOLDERS && path_list_add_odd(&links, real))
            break;
    }
    path_list_free(&links);
}

/* The files of a model that is changed in place lie in one folder. */
static void keep_model(kept_access *k, const char *path)
{
    char folder[PATH_MAX];
    if (folder_of(folder, path))
        kept_access_add_folder(k, folder, "");
    k->keeps_attributes = true;
}

/* A share of a result is written to OUT.1, OUT.2, ..., which may replace earlier ones. */
static void keep_records(kept_access *k, const char *out)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(out, '/');
    if (folder_of(folder, out))
        kept_access_add_folder(k, folder, slash ? slash + 1 : out);
}

/* ---- the command ---- */

static void allow_profiles(landlock *l)
{
    char buf[PROFILE_PATH_BYTES];
    for (size_t i = 0; i < PROFILE_SEARCH_DIRS; i++) {
        const char *dir = profile_search_dir(i, buf);
        if (dir)
            landlock_allow(l, dir, ACCESS_READ);
    }
}

static void allow_written(sandbox *s, const operand *o)
{
    bool has_shares = writes_shares(s->session);
    unsigned more = o->is_argument && has_shares ? ACCESS_FOLDERS | ACCESS_MOVE : 0;
    allow_output(s, o->path, o->output, more);
    if (o->is_argument)
        allow_beside(s, o->path);
    if (o->is_changed)
        keep_model(&s->kept, o->path);
    if (!o->is_argument && has_shares)
        keep_records(&s->kept, o->path);
}

static int allow_operand(void *ctx, operand *o)
{
    sandbox *s = ctx;
    bool follows = o->is_argument && s->session->command->traits & COMMAND_FOLLOWS_LINKS;
    if (o->kind == OPT_OUTPUT)
        allow_written(s, o);
    else if (o->kind == OPT_MODEL || o->kind == OPT_RECORDS)
        allow_model(s, o->path);
    else
        landlock_allow(&s->files, o->path, ACCESS_READ);
    if (o->kind == OPT_MODEL && follows)
        allow_links(&s->files, o->path);
    if (o->kind == OPT_PROFILE)
        allow_profiles(&s->files);
    return CODE_DONE;
}

/* The library decodes large compressed tensors into a file in this folder. */
static void allow_temporary(landlock *l)
{
    const char *dir = secure_getenv("TMPDIR");
    landlock_allow(l, dir && *dir ? dir : "/var/tmp", ACCESS_SPILL);
}

static void say_missing(const session *s, const char *part, int os)
{
    if (os && s->verbose)
        say(MESSAGE_NOTE, NULL, "the sandbox has no %s: %s", part, strerror(os));
}

void sandbox_begin(void)
{
    inherited_note();
}

void sandbox_enter(const session *s)
{
    sandbox box = { .session = s };
    call_needs needs = { operands_use_server(s), &box.kept };
    if (s->no_sandbox)
        return;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0,
          0); /* required for both parts; on failure both report EPERM */
    landlock_begin(&box.files, needs.is_client);
    operands_visit(s, allow_operand, &box);
    allow_temporary(&box.files);
    allow_libraries(&box.files);
    say_missing(s, "restriction of files (Landlock)", landlock_enforce(&box.files));
    say_missing(s, "filter of system calls (seccomp)", call_filter_install(&needs));
}
