/* lora_names.h - what the name of an adapter's tensor says: the module, and the part of it. */
#ifndef HEFT_LORA_NAMES_H
#define HEFT_LORA_NAMES_H
#include <heft/heft.h>

/* The role of a tensor in its module. */
typedef enum heft_lora_role {
    HEFT_LORA_DOWN, /* "A", rank x columns */
    HEFT_LORA_UP,   /* "B", rows x rank */
    HEFT_LORA_MID,  /* the kernel between both, of a convolution */
    HEFT_LORA_ALPHA,
    HEFT_LORA_MAGNITUDE,      /* DoRA: a number for each row */
    HEFT_LORA_EMBEDDING_DOWN, /* rank x tokens */
    HEFT_LORA_EMBEDDING_UP,   /* numbers of an embedding x rank */
    HEFT_LORA_UP_BIAS,        /* is added to the bias of the module */
    HEFT_LORA_DIFFERENCE,     /* is added to the weight as it is */
    HEFT_LORA_ROLES,
    HEFT_LORA_WHOLE,  /* replaces a tensor of the model */
    HEFT_LORA_FOREIGN /* another method than LoRA */
} heft_lora_role;

typedef struct heft_lora_name {
    heft_lora_role role;
    heft_str module;  /* without the suffix; of a whole tensor its name */
    bool is_flat;     /* dots of the module are underscores, as kohya writes them */
    const char *what; /* HEFT_LORA_FOREIGN: the method.  Static. */
} heft_lora_name;

/* Read the name of a tensor. */
heft_lora_name heft_lora_name_read(heft_str name);
/* Remove what wraps the name of the module in adapters of PEFT: "base_model.model.". */
heft_str heft_lora_unwrapped(heft_str module);
/* Return the module without "base_layer" at its end, of which PEFT adds one for each further
 * adapter of the same module. */
heft_str heft_lora_without_layers(heft_str module);

/* Beginnings of the names of modules, in adapters and instead in files of the model; `from` is NULL
 * after the last.  Components of a pipeline are never taken for each other. */
typedef struct heft_lora_prefix {
    const char *from, *to;
} heft_lora_prefix;
heft_lora_prefix heft_lora_prefix_at(uint32_t i, bool is_flat);

#endif
