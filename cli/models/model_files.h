/* model_files.h - the files of a signature: a file, or all files of a folder. */
#ifndef HEFT_CLI_MODEL_FILES_H
#define HEFT_CLI_MODEL_FILES_H
#include <heft/sign.h>

#include "process/command_session.h"
#include "process/textfile.h"

typedef enum odd_kind { ODD_LINK, ODD_DANGLING_LINK, ODD_SPECIAL } odd_kind;
typedef struct odd_file { /* a symbolic link, or a pipe, socket or device */
    const char *path;
    odd_kind kind;
} odd_file;

typedef struct model_files {
    path_list found, found_odd; /* own the paths */
    const char **path;          /* path of each listed file */
    const char **name;          /* path relative to the folder; "." if the model is one file */
    size_t count;
    odd_file *odd; /* of a folder, without links to the blobs of a cache */
    size_t odd_count;
    size_t ignored_count; /* files that an ignored path is equal to or a folder of */
    bool is_folder, has_links;
} model_files;

/* List the files of `path` that no ignored path is equal to or a folder of. A symbolic link that
 * leaves the folder is an error, except from a snapshot to the blobs of its repository. Return an
 * exit code. */
int model_files_list(model_files *m, const char *path, const heft_str *ignored, size_t count);
void model_files_free(model_files *m);
/* Return the path relative to the folder if `path` lies in the folder, malloc'ed; else NULL. */
char *path_below(const char *folder, const char *path);
/* Find the file or folder that a user names, by a path relative to the model's folder, or by an
 * absolute or usual path. *out: the path relative to the folder without "." and links, malloc'ed. A
 * path that names nothing below the folder, or two things, is an error; return an exit code. */
int model_files_find(char **out, const char *folder, const char *path);

enum { GIT_PATHS = 4 };
extern const char *const git_paths[GIT_PATHS]; /* paths of git: never signed */

/* ---- digests of many files, or ranges of files, on all processors ---- */

typedef struct digest_request {
    const char *path;      /* borrowed */
    const char *algorithm; /* "sha256", "git-sha1", "blake2b" */
    uint64_t from, to;     /* range; to is HEFT_UNKNOWN_LENGTH for the rest of the file */
    /* results */
    uint64_t size; /* file size */
    bool is_short; /* the file ends before `to`: there is no digest */
    heft_file_digest digest;
} digest_request;

/* Compute all digests, each file from its first to its last byte. label is the name at the progress
 * bar. Return an exit code; a file that cannot be read, or changes meanwhile, is an error. */
int digest_files(const session *s, digest_request *requests, size_t count, const char *label);

#endif
