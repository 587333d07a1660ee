/* mapped.h - the model that a file is under a map, for --map. */
#ifndef HEFT_CLI_MAPPED_H
#define HEFT_CLI_MAPPED_H
#include <heft/map.h>

#include "models/gguf_folder.h"
#include "process/command_session.h"

#define MAP_HELP "names and layout of another framework: auto, a name of `heft maps`, or a file"

typedef enum mapped_output { MAPPED_OTHER, MAPPED_GGUF, MAPPED_FOLDER } mapped_output;

typedef struct mapped {
    heft_map *map;
    heft_settings *config; /* config.json, or NULL */
    gguf_folder gguf;      /* of a model that becomes GGUF */
    heft_file *model;      /* NULL without --map */
    heft_map_direction direction;
    bool is_for_ggml; /* the map makes the tensors of a GGUF file, which becomes one */
} mapped;

/* Open the map NAME, which may be followed by :inverse or :forward, a file, or with "auto" the one
 * for the model. f and config are looked at for "auto" alone. Return an exit code. */
int map_find(heft_map **out, heft_map_direction *direction, const char *name, const heft_file *f,
             const heft_settings *config, const char *path);
/* Apply the map of --map, if there is one, to `f`, which was opened from `path`, or is decoded from
 * it. *m must be released, after an error, too. A model that becomes GGUF gets the metadata to
 * run with, from the texts in its folder; a GGUF file that becomes a folder gets the texts. Return
 * an exit code. */
int mapped_open(mapped *m, const session *s, const heft_file *f, const char *path,
                mapped_output output);
void mapped_release(mapped *m);

#endif
