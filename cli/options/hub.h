/* hub.h - name models of the local Hugging Face cache by their repository: "hub:gpt2". */
#ifndef HEFT_CLI_HUB_H
#define HEFT_CLI_HUB_H
#include "process/command_session.h"

/* Replace an input that begins with "hub:" by its path in the cache. An input that the command
 * would change is refused. Return an exit code. */
int hub_take(session *s, const char **input, bool is_changed);
/* Print the names of the cached repositories. Return an exit code. */
int hub_print(bool as_json);

#endif
