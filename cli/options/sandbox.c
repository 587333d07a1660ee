/* sandbox.c - the files that a command may use: those that arguments and options name.
 *
 * Shards, companions and journals lie next to a model, so reading a model needs the whole folder.
 * An output appears by a rename and may have a journal, so writing a file needs the folder, too. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <linux/unistd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <heft/remote.h>

#include "models/profile.h"
#include "options/command.h"
#include "process/kept_access.h"
#include "process/textfile.h"

/* Access to a single file, or to a folder with all files below. */
enum {
    ACCESS_READ = 1,    /* read files, list folders */
    ACCESS_SPILL = 2,   /* create, read, write and remove files */
    ACCESS_WRITE = 4,   /* ACCESS_READ and ACCESS_SPILL */
    ACCESS_FOLDERS = 8, /* create and remove folders */
    ACCESS_MOVE = 16    /* rename files to another folder; needs version 2 of Landlock */
};

typedef struct landlock {
    int ruleset, os; /* os: errno value of the first failure, or 0 */
    uint64_t handled;
} landlock;

/* Restrict the calling thread, and all threads created later, to the accesses allowed so far.
 * Files that are already open stay usable. Return 0, or the errno value of the failure. */
int landlock_enforce(landlock *l);

/* The C library has no functions for Landlock's calls, and the kernel's headers may be older than
 * the kernel. Versions of Landlock's ABI: 1, Linux 5.13; 2, 5.19; 3, 6.2; 4, 6.7; 5, 6.10; 6,
 * 6.12. */
enum {
    FS_VERSION_1 = (1 << 13) - 1, /* all rights of version 1 */
    FS_REFER = 1 << 13,           /* version 2: rename and link across folders */
    FS_TRUNCATE = 1 << 14,        /* version 3 */
    FS_IOCTL_DEV = 1 << 15,       /* version 5; allowed for no file */
    NET_BIND = 1,                 /* version 4: TCP */
    NET_CONNECT = 2,
    SCOPE_ALL = 3, /* version 6: abstract Unix sockets, signals */
};

struct ruleset {
    uint64_t fs, net, scoped;
};

/* Return the restrictions that the given version of the ABI supports. */
static struct ruleset handled_by(long version, bool allows_tcp)
{
    struct ruleset r = { .fs = FS_VERSION_1 };
    r.fs |= (version >= 2 ? FS_REFER : 0) | (version >= 3 ? FS_TRUNCATE : 0) |
            (version >= 5 ? FS_IOCTL_DEV : 0);
    r.net = version < 4 ? 0 : allows_tcp ? NET_BIND : NET_BIND | NET_CONNECT;
    r.scoped = version >= 6 ? SCOPE_ALL : 0;
    return r;
}

static void give_up(landlock *l)
{
    l->os = errno;
    if (l->ruleset >= 0)
        close(l->ruleset);
    l->ruleset = -1;
}

/* An older kernel accepts the longer struct if the unknown fields are zero. */
static void landlock_begin(landlock *l, bool allows_tcp)
{
    long version = syscall(__NR_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    struct ruleset r = handled_by(version, allows_tcp);
    *l = (landlock){ .ruleset = -1, .handled = r.fs };
    if (version > 0)
        l->ruleset = (int)syscall(__NR_landlock_create_ruleset, &r, sizeof r, 0);
    if (l->ruleset < 0)
        give_up(l);
}

static uint64_t rights_of(unsigned access)
{
    uint64_t rights = 0;
    if (access & (ACCESS_READ | ACCESS_WRITE))
        rights |= LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
    if (access & (ACCESS_SPILL | ACCESS_WRITE))
        rights |= LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                  LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE | FS_TRUNCATE;
    if (access & ACCESS_FOLDERS)
        rights |= LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR;
    if (access & ACCESS_MOVE)
        rights |= FS_REFER;
    return rights;
}

/* EBADFD: a pipe or a file in memory: Landlock does not restrict files without a path. */
static int add_rule(const landlock *l, int fd, uint64_t rights)
{
    const uint64_t for_files = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                               FS_TRUNCATE;
    struct stat info;
    if (fstat(fd, &info))
        return -1;
    rights &= l->handled & (S_ISDIR(info.st_mode) ? UINT64_MAX : for_files);
    struct landlock_path_beneath_attr rule = { .allowed_access = rights, .parent_fd = fd };
    int failed = (int)syscall(__NR_landlock_add_rule, l->ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule,
                              0);
    return failed && errno != EBADFD ? -1 : 0;
}

/* Allow access to a path, with symbolic links followed. A path that does not exist is ignored. */
static void landlock_allow(landlock *l, const char *path, unsigned access)
{
    if (l->ruleset < 0)
        return;
    if (access & ACCESS_MOVE && !(l->handled & FS_REFER)) { /* version 1 refuses every such move */
        errno = EOPNOTSUPP;
        give_up(l);
        return;
    }
    int fd = open(path, O_PATH | O_CLOEXEC);
    bool no_descriptor = fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM);
    if (no_descriptor || (fd >= 0 && add_rule(l, fd, rights_of(access))))
        give_up(l);
    if (fd >= 0)
        close(fd);
}

int landlock_enforce(landlock *l)
{
    if (l->ruleset >= 0 && syscall(__NR_landlock_restrict_self, l->ruleset, 0))
        give_up(l);
    if (l->ruleset >= 0)
        close(l->ruleset);
    l->ruleset = -1;
    return l->os;
}

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

static bool makes_folder(const session *s)
{
    return s->command->makes_folder && s->command->makes_folder(s->request);
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
    allow_output(s, o->path, makes_folder(s->session) ? FOLDER_OUTPUT : o->output, more);
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
    else if (o->kind == OPT_MODEL || o->kind == OPT_RECORDS || o->kind == OPT_TENSOR_FILES)
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
    bool serves = s->command->traits & COMMAND_SERVES;
    call_needs needs = { operands_use_server(s), serves, &box.kept };
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
