/* commands.c - the heft command as a server: many commands in one process, for tests that would spend most
 * of their time on starting processes.
 *
 *   heft-commands OUT ERR
 *
 * OUT and ERR are numbers of open files, which take what a command writes on stdout and stderr.  A command
 * is a line with the number of its arguments on stdin, followed by the arguments, each with a zero byte
 * behind it; the answer is a line on stdout with the exit status. */
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../cli/cmd.h"
#include "../cli/model.h"

int heft_main(int argc, char **argv); /* main() of cli/main.c */

/* What options of one command say must not be known to the next. */
static void forget_options(void)
{
    model_settings = (open_settings){ .limits = HEFT_LIMITS_INIT };
    term_set_colour("auto");
}

/* Makes `to` the same as the file `as`, which is empty then. */
static bool redirect(int to, int as)
{
    return !ftruncate(as, 0) && !lseek(as, 0, SEEK_SET) && dup2(as, to) == to;
}

/* Reads argc arguments; false when the input ends before. */
static bool read_arguments(char **argv, int argc, FILE *in)
{
    for (int i = 0; i < argc; i++) {
        size_t room = 0;
        if (getdelim(&argv[i], &room, 0, in) < 0)
            return false;
    }
    return true;
}

static bool run_next(FILE *in, FILE *answers, int out, int err)
{
    enum { MOST = 1000 };
    char *argv[MOST + 1] = { NULL }, *given[MOST + 1], line[16];
    int argc = fgets(line, sizeof line, in) ? atoi(line) : 0;
    bool ok = argc > 0 && argc <= MOST && read_arguments(argv, argc, in) &&
              redirect(STDOUT_FILENO, out) && redirect(STDERR_FILENO, err);
    if (ok) {
        memcpy(given, argv, sizeof argv); /* getopt changes their order */
        forget_options();
        ok = fprintf(answers, "%d\n", heft_main(argc, given)) > 0 && !fflush(answers);
    }
    for (int i = 0; i < argc && i < MOST; i++)
        free(argv[i]);
    return ok;
}

int main(int argc, char **argv)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 30); /* buffers come and go by the thousand here */
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
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
