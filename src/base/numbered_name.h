/* numbered_name.h - names of numbered files, such as "model-00001-of-00003.safetensors",
 * "model-00001-of-00003.fp16.safetensors", or "model_world_size_8_rank_0.pt". */
#ifndef HEFT_NUMBERED_NAME_H
#define HEFT_NUMBERED_NAME_H
#include <heft/heft.h>

typedef struct heft_numbered_name {
    heft_str head;   /* the text before the number: "model-" */
    heft_str digits; /* the number: "00001" */
    heft_str of;     /* the text from the number to the end: "-of-00003.safetensors" */
    heft_str tail;   /* the text after the count: ".safetensors" */
    uint32_t number, count;
} heft_numbered_name;

/* Parse a name: the number begins the name or follows '-', '_' or '.', "-of-" or "_of_" and the
 * count follow, and then '.', '-', '_' or the end.  Or "world_size_", the count, "_rank_" and the
 * number, from 0 on, come before '.' or the end.  False: the name has no number. */
bool heft_numbered_name_read(heft_numbered_name *out, heft_str name);
/* Return true if both names differ in their number alone. */
bool heft_numbered_name_is_sibling(const heft_numbered_name *a, const heft_numbered_name *b);
/* Return the head without the separator at the end: "model". */
heft_str heft_numbered_name_stem(const heft_numbered_name *n);
/* Return the length of the name of a sibling whose number has at least `width` digits.  Write that
 * name, without a terminator, unless out is NULL. */
size_t heft_numbered_name_write(char *out, const heft_numbered_name *n, uint32_t number,
                                size_t width);

#endif
