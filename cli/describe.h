/* describe.h - `heft __describe`: the commands as JSON. */
#ifndef HEFT_CLI_DESCRIBE_H
#define HEFT_CLI_DESCRIBE_H

/* Print the commands and their options. Return an exit code. */
int describe_run(void);

#endif
