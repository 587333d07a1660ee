/* kept_access.h - the modes and owners of files that a command may replace.
 *
 * A new file gets the mode and the owner of the replaced file. The command needs no other mode or
 * owner, and changes no file that was open when the command began. */
#ifndef HEFT_CLI_KEPT_ACCESS_H
#define HEFT_CLI_KEPT_ACCESS_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

enum { KEPT_MAX = 64, INHERITED_MAX = 1024 };

typedef struct kept_access {
    struct {
        mode_t mode;
        uid_t uid;
        gid_t gid;
    } of[KEPT_MAX];
    size_t n;
    bool keeps_attributes; /* extended ones */
} kept_access;

/* Note the mode and the owner of a file; of more than KEPT_MAX different ones the rest is left
 * out. */
void kept_access_add(kept_access *k, const struct stat *of);
/* Note mode and owner of each file in a folder whose name begins with `prefix`. */
void kept_access_add_folder(kept_access *k, const char *folder, const char *prefix);

/* Remember the descriptors that are open now; call this before the command opens a file. */
void inherited_note(void);

/* ---- allow the system calls that a command needs, by Linux's seccomp ---- */

typedef struct call_needs {
    bool is_client;          /* the command sends requests to servers */
    bool is_server;          /* the command answers requests at a socket that it has opened */
    const kept_access *kept; /* the modes and owners that the command may give to a file */
} call_needs;

/* Make all other calls of all threads fail from now on: with EPERM, or with ENOSYS if the C library
 * should use an older call. Return 0, or the errno value of the failure. */
int call_filter_install(const call_needs *needs);

#endif
