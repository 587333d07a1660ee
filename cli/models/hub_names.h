/* hub_names.h - the digest that the Hugging Face hub states for a downloaded file. */
#ifndef HEFT_CLI_HUB_NAMES_H
#define HEFT_CLI_HUB_NAMES_H
#include <stdbool.h>

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
