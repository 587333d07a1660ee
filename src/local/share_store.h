/* share_store.h - where processes keep the shares of a conversion until the output is complete.
 *
 * A store has the text of the plan, a record for each share that is written, and the data.  All
 * functions may be called by several processes at the same time. */
#ifndef HEFT_SHARE_STORE_H
#define HEFT_SHARE_STORE_H
#include <limits.h>

#include <heft/share.h>

#include "port/port.h"
#include "port/save/sink_file.h"

typedef struct heft_share_store heft_share_store;

typedef struct heft_share_store_ops {
    /* Open the store of the output, or create it.
     *   HEFT_E_NOTFOUND  there are no shares, and `creates` is false */
    heft_status (*open)(heft_share_store *s, bool creates, heft_error *err);
    /* Publish the text of the plan, unless a text is published. */
    heft_status (*publish_plan)(heft_share_store *s, const char *text, size_t len, heft_error *err);
    /* Read a text, terminated by '\0', that the caller frees.
     *   HEFT_E_NOTFOUND  there is none */
    heft_status (*read_plan)(heft_share_store *s, char **out, size_t *len, heft_error *err);
    heft_status (*read_record)(heft_share_store *s, uint32_t number, char **out, size_t *len,
                               heft_error *err);
    /* Publish the record of a share whose data are safe. */
    heft_status (*publish_record)(heft_share_store *s, uint32_t number, heft_str record,
                                  heft_error *err);
    void (*remove_record)(heft_share_store *s, uint32_t number);
    heft_status (*count_missing)(uint32_t *out, heft_share_store *s, heft_error *err);
    /* Open the data as a sink for a share; number 0: for everything else, and finishing completes
     * the output.
     *   HEFT_E_NOTFOUND  the data are gone: see is_completed() */
    heft_status (*data_open)(heft_sink **out, heft_share_store *s, uint32_t number,
                             heft_error *err);
    /* Return true if a different process has completed the output. */
    bool (*is_completed)(heft_share_store *s);
    /* Remove everything but the output, records before the plan.  with_data: the data, too, to give
     * the shares up; otherwise the data have become the output. */
    heft_status (*remove_all)(heft_share_store *s, bool with_data, heft_error *err);
    void (*close)(heft_share_store *s);
} heft_share_store_ops;

/* The first member of each store. */
struct heft_share_store {
    const heft_share_store_ops *ops;
    heft_share_plan *plan; /* NULL: not known yet */
    uint32_t count, flags; /* number of shares; HEFT_SINK_... */
    heft_share_result result;
};

enum { HEFT_SHARE_NAME_BYTES = 40, HEFT_SHARE_MAX_RECORD = 1 << 30 };
/* Write the name of the record of a share: "share-00002-of-8". */
void heft_share_record_name(char name[HEFT_SHARE_NAME_BYTES], uint32_t number, uint32_t count);
/* Refuse a plan whose text is damaged; returns HEFT_E_ARGUMENT. */
heft_status heft_share_refuse_plan(heft_error *err);

/* Find the output at a path, and make a store that is not open yet.
 *   HEFT_E_ARGUMENT  the output exists, and HEFT_SINK_REPLACE is not set */
heft_status heft_share_folder_new(heft_share_store **out, const char *path, uint32_t flags,
                                  heft_error *err);

/* ---- the folder with the shares of a conversion beside the output ---- */

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
