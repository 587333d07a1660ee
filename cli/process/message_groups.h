/* message_groups.h - collect messages, the warnings about a file among them, and print the messages
 * of a rule as one line with a count and two examples. */
#ifndef HEFT_CLI_MESSAGE_GROUPS_H
#define HEFT_CLI_MESSAGE_GROUPS_H
#include <heft/check.h>

#include "process/message.h"
#include "text/escape.h"

typedef struct message_group message_group;

typedef struct message_groups {
    message_group *items; /* by rule and severity, in the order of the first message */
    size_t count, capacity;
    bool lists_all; /* print every message at once, as --verbose asks */
} message_groups;

/* Add a message of the kind note, warning, fault or loss; everything is copied. A message that
 * cannot be kept is printed. */
void message_groups_add(message_groups *g, const message *m);
/* Print the messages added since the last call, and forget them. */
void message_groups_print(message_groups *g);

/* Print the warnings about an open file and, if `notes`, its notes; without `left_out`, none about
 * content that is left out, which is reported as a loss. */
void notices_say(const heft_file *f, const char *path, bool notes, bool left_out);

#endif
