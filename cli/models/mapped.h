/* mapped.h - the model that a file is under a map, for --map. */
#ifndef HEFT_CLI_MAPPED_H
#define HEFT_CLI_MAPPED_H
#include <heft/map.h>

#include "process/command_session.h"

#define MAP_HELP "names and layout of another framework: auto, a name of `heft maps`, or a file"

typedef struct mapped {
    heft_map *map;
    heft_settings *config; /* config.json, or NULL */
    heft_file *model;      /* NULL without --map */
    heft_map_direction direction;
} mapped;

/* Open the map NAME, which may be followed by :inverse or :forward, a file, or with "auto" the one
 * for the model. f and config are looked at for "auto" alone. Return an exit code. */
int map_find(heft_map **out, heft_map_direction *direction, const char *name, const heft_file *f,
             const heft_settings *config, const char *path);
/* Apply the map of --map, if there is one, to `f`, which was opened from `path`, or is decoded from
 * it. *m must be released, after an error, too. Return an exit code. */
int mapped_open(mapped *m, const session *s, const heft_file *f, const char *path);
void mapped_release(mapped *m);

#endif
