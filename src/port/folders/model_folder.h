/* model_folder.h - open files of a model's folder without following links that leave the folder.
 *
 * This room opens and lists folders. Which of the files are a model is decided in src/folder. */
#ifndef HEFT_MODEL_FOLDER_H
#define HEFT_MODEL_FOLDER_H
#include "port/port.h"

enum { MAX_PARENTS = 8, MAX_DEPTH = 64 };

/* An open folder.  Not safe for use by several threads at once. */
typedef struct heft_model_folder {
    int levels[MAX_PARENTS + 1]; /* descriptors, from the root of the repository to the folder */
    size_t count;                /* number of levels; 0: not open */
    bool is_rooted;              /* the root has been searched for */
    bool may_follow;             /* heft_open_options.follow_links would follow a refused link */
} heft_model_folder;

/* `flags` are added to the flags of open(). */
heft_status heft_model_folder_open(heft_model_folder *f, const char *path, int flags,
                                   heft_error *err);
void heft_model_folder_close(heft_model_folder *f); /* harmless if not open */
int heft_model_folder_descriptor(const heft_model_folder *f);

/* Return true if the name is a single path component, and not "." or "..". */
bool heft_is_file_name(const char *name);
/* Open the regular file `name`, a single path component.  Symbolic links are followed as long as
 * they stay in the folder or, in a Hugging Face cache, in the folder of the repository. */
heft_status heft_model_folder_source(heft_source **out, heft_model_folder *f, const char *name,
                                     heft_access access, heft_error *err);
/* Do the same for a file that may be in folders of the folder; heft_str_is_inner_path(). */
heft_status heft_model_folder_inner_source(heft_source **out, heft_model_folder *f,
                                           const char *name, heft_access access, heft_error *err);

#endif
