/* share_folder.h - the folder with the shares of a conversion beside the output. */
#ifndef HEFT_SHARE_FOLDER_H
#define HEFT_SHARE_FOLDER_H
#include <limits.h>

#include "local/share_store.h"
#include "port/save/sink_file.h"

typedef struct heft_share_folder {
    heft_share_store base;
    const heft_disk *disk;
    char *path;       /* path of the output, symbolic links resolved; owned */
    const char *name; /* last component of `path` */
    char folder_name[NAME_MAX + 1];
    int dir, folder; /* directory of the output; "OUT.shares" */
    bool exists;     /* the output exists, and will be replaced */
    struct stat old; /* attributes of the existing output */
    bool syncs;
} heft_share_folder;

/* Name of an empty file in the folder: `data` has become the output, or will soon. */
extern const char heft_share_done[];
/* Count the shares without a record. */
heft_status heft_share_count_missing(uint32_t *out, const heft_share_folder *f, heft_error *err);

#endif
