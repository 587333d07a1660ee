/* replace_tensors.h - `heft edit --tensor`: tensors of other files in place of those of a file. */
#ifndef HEFT_CLI_REPLACE_TENSORS_H
#define HEFT_CLI_REPLACE_TENSORS_H
#include "commands/job.h"

/* Replace the tensors of j->tensors in the file j->out, all of them or none. Return an exit
 * code. */
int replace_tensors(job *j);

#endif
