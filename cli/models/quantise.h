/* quantise.h - the options of --quantize. */
#ifndef HEFT_CLI_QUANTISE_H
#define HEFT_CLI_QUANTISE_H
#include "process/command_session.h"

typedef struct quantise_options {
    opt_list args; /* [GLOB=]NAME[:OPTION] */
    bool requantise, allow_nan;
} quantise_options;

#endif
