/* single_file.h - names of diffusers for the tensors of a single file of Stable Diffusion. */
#ifndef HEFT_CLI_SINGLE_FILE_H
#define HEFT_CLI_SINGLE_FILE_H
#include <heft/map.h>

typedef struct single_file {
    const heft_file *f;
    heft_map *map; /* the shipped map that renames most tensors; NULL: none renames any */
    char name[512];
} single_file;

/* Find the map. s must be released. */
void single_file_open(single_file *s, const heft_file *f);
/* Return the name of the tensor in diffusers, until the next call; ptr NULL: it has none. */
heft_str single_file_name(single_file *s, uint32_t tensor);
void single_file_release(single_file *s);

#endif
