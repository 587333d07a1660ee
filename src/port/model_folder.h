/* model_folder.h - the files in a model's folder, opened without leaving the folder. */
#ifndef HEFT_MODEL_FOLDER_H
#define HEFT_MODEL_FOLDER_H
#include "port/port.h"

enum { MAX_PARENTS = 8, MAX_DEPTH = 64 };

/* An open folder.  One thread at a time uses it. */
typedef struct heft_model_folder {
    int levels[MAX_PARENTS + 1]; /* descriptors, from the root of the repository to the folder */
    size_t count;                /* 0: not open */
    bool is_rooted;              /* the root has been looked for */
} heft_model_folder;

heft_status heft_model_folder_open(heft_model_folder *f, const char *path, heft_error *err);
void heft_model_folder_close(heft_model_folder *f); /* harmless when it is not open */
int heft_model_folder_descriptor(const heft_model_folder *f);

/* Whether the name is one component of a path, and not "." or "..". */
bool heft_is_file_name(const char *name);
/* Opens the regular file `name`, one component of a path.  Symbolic links are followed as long as they
 * stay in the folder or, in a cache of Hugging Face, in the folder of the repository. */
heft_status heft_model_folder_source(heft_source **out, heft_model_folder *f, const char *name,
                                     heft_access how, heft_error *err);

#endif
