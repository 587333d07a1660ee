/* quantisation_settings.h - what config.json and similar files say about a quantised model. */
#ifndef HEFT_QUANTISATION_SETTINGS_H
#define HEFT_QUANTISATION_SETTINGS_H
#include <heft/heft.h>

typedef struct heft_quantisation_settings {
    heft_str method;   /* "awq", "fp8"; empty: the settings say nothing.  Borrowed. */
    heft_str form;     /* "gptq_v2", "marlin", "nf4"; may be empty */
    uint32_t bits;     /* 0: not stated */
    bool has_group;    /* group is stated */
    uint64_t group;    /* elements of a group; 0: whole rows */
    uint64_t block[2]; /* 0: not stated */
} heft_quantisation_settings;

/* Read the settings, which may be NULL. */
void heft_quantisation_settings_read(heft_quantisation_settings *out, const heft_settings *s);

#endif
