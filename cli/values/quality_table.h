/* quality_table.h - how far the numbers of a quantised model are from those of the source. */
#ifndef HEFT_CLI_QUALITY_TABLE_H
#define HEFT_CLI_QUALITY_TABLE_H
#include <heft/quantise.h>

#include "process/cmd.h"
#include "process/command_session.h"
#include "text/outbuf.h"

/* Print the tensors that are farthest apart, and a line for the whole model; with as_json all
 * tensors in one document. Return an exit code. */
int quality_print(const heft_quality *q, const session *s, int fd, bool as_json);

#endif
