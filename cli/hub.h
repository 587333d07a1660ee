/* hub.h - name models of the local Hugging Face cache by their repository: "hub:gpt2". */
#ifndef HEFT_CLI_HUB_H
#define HEFT_CLI_HUB_H
#include "jsonout.h"

/* Replace an input of the command that begins with "hub:" by its path in the cache. An input that
 * the command would change is refused. Return an exit code. */
int hub_take(const char **input, const char *command_name, bool is_changed);
/* Return true if the path was the argument "hub:", the cache itself. */
bool hub_is_cache(const char *path);
/* Print the names of the cached repositories. Return an exit code. */
int hub_print(bool as_json);

#endif
