/* cmd.h - the commands and their exit codes. A function in cli/ that returns an exit code has
 * printed an error line unless the code is CODE_DONE. */
#ifndef HEFT_CLI_CMD_H
#define HEFT_CLI_CMD_H
#include "message.h"
#include "term.h"

enum {
    CODE_DONE = 0,
    CODE_FOUND = 1, /* verify found a fault, doctor damage, diff a difference, or stats a NaN */
    CODE_USAGE = 2,
    CODE_INVALID = 3, /* the file is not a valid file of a known format */
    CODE_SYSTEM = 4,  /* I/O, permission, space, memory, or an interrupt */
    CODE_CANNOT = 5   /* well formed, but not supported by this build or by the target format */
};

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the command's name */
    const char *help;
    bool writes; /* the command writes files */
} command;

int cmd_ls(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_cat(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_convert(int argc, char **argv);
int cmd_split(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_edit(int argc, char **argv);
int cmd_append(int argc, char **argv);
int cmd_hash(int argc, char **argv);
int cmd_ids(int argc, char **argv);
int cmd_sbom(int argc, char **argv);
int cmd_scan(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_sign(int argc, char **argv);
int cmd_stats(int argc, char **argv);
int cmd_formats(int argc, char **argv);

#endif
