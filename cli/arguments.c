#include "arguments.h"

#include <string.h>

static const argument_roles roles[] = {
    { "append", 0, -1, 0, FILE_OUTPUT },   { "cat", 0, 0, 0, NO_OUTPUT },
    { "convert", 0, 0, 1, STDOUT_OUTPUT }, { "diff", 0, 1, 0, NO_OUTPUT },
    { "doctor", 0, 0, 0, NO_OUTPUT },      { "edit", 0, 0, 0, FILE_OUTPUT },
    { "hash", 0, 0, 0, NO_OUTPUT },        { "ids", 0, 0, 0, NO_OUTPUT },
    { "info", 0, -1, 0, NO_OUTPUT },       { "ls", 0, 0, 0, NO_OUTPUT },
    { "merge", 0, -2, -1, FILE_OUTPUT },   { "report", 0, -1, 0, NO_OUTPUT },
    { "sbom", 0, 0, 0, NO_OUTPUT },        { "scan", 0, -1, 0, NO_OUTPUT },
    { "show", 0, 0, 0, NO_OUTPUT },        { "sign", 0, 0, 0, FILE_OUTPUT },
    { "split", 0, 0, 1, FOLDER_OUTPUT },   { "stats", 0, 0, 0, NO_OUTPUT },
    { "verify", 0, -1, 0, NO_OUTPUT },
};

const argument_roles *arguments_of(const char *command)
{
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (!strcmp(command, roles[i].command))
            return &roles[i];
    return NULL;
}
