/* quantisation_settings.h - what config.json and similar files say about a quantised tensor. */
#ifndef HEFT_QUANTISATION_SETTINGS_H
#define HEFT_QUANTISATION_SETTINGS_H
#include <heft/heft.h>

typedef struct heft_quantisation_settings {
    heft_str method;   /* "awq", "fp8"; empty: the settings say nothing */
    heft_str form;     /* "gptq_v2", "marlin", "nf4"; may be empty */
    uint32_t bits;     /* 0: not stated */
    bool has_group;    /* group is stated */
    bool is_rotated;   /* the weights were multiplied by a matrix that is not among them */
    uint64_t group;    /* elements of a group; 0: whole rows */
    uint64_t block[2]; /* 0: not stated */
    uint64_t rotation; /* columns that were rotated together, by ComfyUI's matrix; 0: none */
} heft_quantisation_settings;

#endif
