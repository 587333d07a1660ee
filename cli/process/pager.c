
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/term.h"

static volatile sig_atomic_t pager; /* process id, for signal handlers; 0: none */

bool pager_is_active(void)
{
    return pager;
}

/* Return the command line of the pager: an empty text is none. */
static const char *chosen_pager(void)
{
    const char *text = getenv("HEFT_PAGER");
    if (!text)
        text = getenv("PAGER");
    return text ? text : "less";
}

/* Return true if the pager would print everything without stopping. */
static bool is_no_pager(const char *text)
{
    return !*text || !strcmp(text, "cat");
}

/* Replace the process by the pager. less quits if the output fits on the screen, shows colours, and
 * leaves the output on the screen: git's settings. */
static void become_pager(const char *text, const int pipe_ends[2])
{
    setenv("LESS", "FRX", 0);
    setenv("LV", "-c", 0);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    if (dup2(pipe_ends[0], STDIN_FILENO) >= 0) {
        close(pipe_ends[0]);
        close(pipe_ends[1]);
        execl("/bin/sh", "sh", "-c", text, (char *)NULL);
    }
    _exit(127);
}

/* Wait for the pager to show what there is, then die of the signal. */
static void die_after_pager(int sig)
{
    close(STDOUT_FILENO);
    waitpid(pager, NULL, 0);
    signal(sig, SIG_DFL);
    kill(getpid(), sig);
}

static bool exists(const char *program)
{
    char path[4096];
    for (const char *dir = getenv("PATH"); dir && *dir;) {
        size_t len = strcspn(dir, ":");
        int n = snprintf(path, sizeof path, "%.*s/%s", (int)len, dir, program);
        if (n > 0 && (size_t)n < sizeof path && !access(path, X_OK))
            return true;
        dir += len + (dir[len] == ':');
    }
    return false;
}

void pager_start(void)
{
    const char *text = chosen_pager();
    int ends[2];
    if (pager || !term_is_stdout() || is_no_pager(text) ||
        (!strcmp(text, "less") && !exists("less")) || pipe(ends))
        return;
    term_keep_stdout();
    pid_t child = fork();
    if (!child)
        become_pager(text, ends);
    close(ends[0]);
    if (child > 0 && dup2(ends[1], STDOUT_FILENO) >= 0) {
        pager = child;
        static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
        for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
            if (signal(signals[i], die_after_pager) == SIG_IGN)
                signal(signals[i], SIG_IGN);
    }
    close(ends[1]);
}

void pager_end(void)
{
    pid_t child = pager;
    if (!child)
        return;
    close(STDOUT_FILENO);
    while (waitpid(child, NULL, 0) < 0)
        if (errno != EINTR)
            break;
    pager = 0;
}
