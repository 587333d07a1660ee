/* profile.h - find and read a model profile for `heft verify --profile`. */
#ifndef HEFT_CLI_PROFILE_H
#define HEFT_CLI_PROFILE_H
#include <stdbool.h>

#include <heft/companion.h>

#include "process/cmd.h"

enum { PROFILE_SEARCH_DIRS = 3, PROFILE_PATH_BYTES = 4096 };

extern const char installed_profiles[]; /* the folder of profiles below the prefix */

/* Store the folder of the running executable, followed by `path`; an empty string if it is
 * unknown. */
void relative_to_command(char out[PROFILE_PATH_BYTES], const char *path);
/* Return folder i of those in which profiles are looked up, or NULL if the folder is not known. The
 * text may lie in buf. */
const char *profile_search_dir(size_t i, char buf[PROFILE_PATH_BYTES]);

/* Call `use` for the name of each profile in the first folder that has any. */
void profile_list(void (*use)(void *ctx, heft_str name), void *ctx);

/* Read a profile. A name that contains '/' or ends with ".json" is a path; otherwise NAME.json is
 * looked up in $HEFT_PROFILES, in ../share/heft/profiles next to the executable, and in the
 * installed data folder. Return an exit code. */
int profile_read(heft_profile **out, const char *name);

/* ---- the digest that the Hugging Face hub states for a downloaded file ---- */

enum { HUB_DIGITS = 64 };

typedef struct hub_name {
    char hex[HUB_DIGITS + 1];
    const char *algorithm; /* "sha256" or "git-sha1", by its length */
    int os;                /* an errno if a failure leaves open whether there is a digest */
} hub_name;

/* Find the stated digest of the file. In a cache the digest is the name of the file, or of the
 * target of the link; a folder of downloads has a file with the digest in the folder
 * .cache/huggingface/download. Return false without a digest. */
bool hub_name_of(hub_name *out, const char *path);
/* Store the path of the digest files of a folder of downloads: DIR/.cache/huggingface/download.
 * Return false if the path is too long. */
bool hub_metadata_folder(char *out, unsigned long capacity, const char *dir);

#endif
