/* model_config.h - JSON files that describe a model, beside the weights. */
#ifndef HEFT_CLI_MODEL_CONFIG_H
#define HEFT_CLI_MODEL_CONFIG_H
#include "cmd.h"

/* Read NAME, for example config.json, of the model opened from `path`. A single file may lie in a
 * folder with other models, so NAME is read for a folder or a model in shards only. *out is NULL
 * if NAME does not exist or is not valid JSON; `warns`: print a warning then.  Return an exit
 * code. */
int model_config_open(heft_settings **out, const heft_file *f, const char *path, const char *name,
                      bool warns);
/* Do the same for a file that belongs to the model in any case. */
int model_config_read(heft_settings **out, const char *path, const char *name, bool warns);

#endif
