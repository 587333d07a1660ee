#include "process/term.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "process/cmd.h"

/* Each shard of a model is an open file, and a model may have more shards than the usual soft limit
 * of open files. */
static void allow_many_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur == files.rlim_max)
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

char **terminal_prepare(int *argc, char **argv)
{
    (void)argc;
    allow_many_files();
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDONLY) < 0)
            _exit(CODE_SYSTEM);
    return argv;
}

void terminal_use_slashes(char *path)
{
    (void)path; /* a backslash is an ordinary character */
}

bool terminal_has_colour(void)
{
    const char *term = getenv("TERM");
    return term && strcmp(term, "dumb") != 0;
}

bool terminal_shows_colour(int fd)
{
    return terminal_has_colour() && isatty(fd);
}

size_t terminal_columns(int fd)
{
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) ? 0 : size.ws_col;
}
