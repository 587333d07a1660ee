/* cmd.h - the commands, and what their exit codes mean. */
#ifndef HEFT_CLI_CMD_H
#define HEFT_CLI_CMD_H
#include "term.h"

enum {
    CODE_DONE = 0,
    CODE_FOUND = 1,   /* verify found a fault, diff a difference */
    CODE_USAGE = 2,   /* wrong usage */
    CODE_INVALID = 3, /* not a valid file of a known format */
    CODE_SYSTEM = 4,  /* the system failed */
    CODE_CANNOT = 5   /* well formed, but not for this build or this target */
};

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the command's name */
    const char *help;
    bool writes; /* files */
} command;

int cmd_ls(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_cat(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_convert(int argc, char **argv);
int cmd_split(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_edit(int argc, char **argv);
int cmd_append(int argc, char **argv);
int cmd_hash(int argc, char **argv);
int cmd_ids(int argc, char **argv);
int cmd_stats(int argc, char **argv);
int cmd_formats(int argc, char **argv);

#endif
