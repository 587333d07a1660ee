/* blend_request.h - the settings of `heft blend`: a file, or options. */
#ifndef HEFT_CLI_BLEND_REQUEST_H
#define HEFT_CLI_BLEND_REQUEST_H
#include <heft/blend.h>

#include "process/command_session.h"

typedef struct blend_request { /* options as given; NULL: not given */
    const char *settings, *method, *base, *lambda, *normalize, *seed, *missing, *dtype;
    opt_list weights, densities, shares, tied;
    bool unties, allow_nan, as_json;
} blend_request;

/* Read the settings from the file of --settings, or make them of the options for the models of the
 * paths. *out must be closed, after an error, too. Return an exit code. */
int blend_settings(heft_blend_settings **out, const session *s, const blend_request *r,
                   char *const *paths, uint32_t count);
/* Return the path of model i of the settings, one of the arguments or --base; NULL, after an error
 * line, if none has its name. */
const char *blend_model_path(const heft_blend_settings *settings, uint32_t i, const session *s,
                             const blend_request *r, char *const *paths, uint32_t count);

#endif
