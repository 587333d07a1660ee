/* commands.c - runs many heft commands in one process, for tests that would otherwise spend most
 * of their time on process creation.
 *
 *   heft-commands OUT ERR
 *
 * OUT and ERR are descriptors of open files, which receive the stdout and stderr of each
 * command. A request on stdin is a line with the number of arguments, followed by the arguments,
 * each terminated by a zero byte. The response is a line on stdout with the exit status. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "keep_heap.h"

int heft_main(int argc, char **argv); /* main() of cli/main.c */

/* Truncate `target` and make descriptor `fd` a duplicate. */
static bool redirect(int fd, int target)
{
    return !ftruncate(target, 0) && !lseek(target, 0, SEEK_SET) && dup2(target, fd) == fd;
}

/* Read argc arguments; return false if the input ends early. */
static bool read_arguments(char **argv, int argc, FILE *in)
{
    for (int i = 0; i < argc; i++) {
        size_t capacity = 0;
        if (getdelim(&argv[i], &capacity, 0, in) < 0)
            return false;
    }
    return true;
}

static bool run_next(FILE *in, FILE *answers, int out, int err)
{
    enum { MAX_ARGUMENTS = 1000 };
    char *argv[MAX_ARGUMENTS + 1] = { NULL }, *given[MAX_ARGUMENTS + 1], line[16];
    int argc = fgets(line, sizeof line, in) ? atoi(line) : 0;
    bool ok = argc > 0 && argc <= MAX_ARGUMENTS && read_arguments(argv, argc, in) &&
              redirect(STDOUT_FILENO, out) && redirect(STDERR_FILENO, err);
    if (ok) {
        memcpy(given, argv, sizeof argv); /* getopt reorders argv */
        ok = fprintf(answers, "%d\n", heft_main(argc, given)) > 0 && !fflush(answers);
    }
    for (int i = 0; i < argc && i < MAX_ARGUMENTS; i++)
        free(argv[i]);
    return ok;
}

int main(int argc, char **argv)
{
    keep_heap();
    int in = dup(STDIN_FILENO), out = dup(STDOUT_FILENO), null = open("/dev/null", O_RDONLY);
    FILE *requests = fdopen(in, "r"), *answers = fdopen(out, "w");
    if (argc != 3 || null < 0 || dup2(null, STDIN_FILENO) || !requests || !answers)
        return 2;
    while (run_next(requests, answers, atoi(argv[1]), atoi(argv[2])))
        ;
    fclose(requests);
    fclose(answers);
    return 0;
}
