/* convert_request.h - what `heft convert` was asked for, for its checks and its stages. */
#ifndef HEFT_CLI_CONVERT_REQUEST_H
#define HEFT_CLI_CONVERT_REQUEST_H
#include <sys/stat.h>

#include "commands/job.h"
#include "models/adapters.h"
#include "models/companions.h"
#include "models/model.h"
#include "models/quantised_model.h"
#include "options/command.h"

typedef struct convert_request {
    job job;
    const char *in;
    folder folder;          /* companion files; empty if IN is a file */
    const char *out_folder; /* OUT, if the weights go into it; or NULL */
    char *out_file;         /* of the weights in out_folder */
    bool made_folder;       /* out_folder was not there before */
} convert_request;

/* Refuse to write the file `name` if it is an input. f is the open model, or NULL. */
int convert_check_inputs(const convert_request *r, const heft_file *f, const char *name,
                         const struct stat *out);
/* Name the output beside which config.json goes: OUT, if programs load that file with one. */
quantise_output convert_settings_place(const convert_request *r);
/* Make the model that was asked for of the open input, write it, and say what was done. Return an
 * exit code. */
int convert_run_stages(convert_request *r, heft_file *f);

#endif
