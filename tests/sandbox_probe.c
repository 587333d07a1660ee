/* sandbox_probe.c - functions, preloaded into the command, that attempt forbidden calls in the
 * middle of the work, as code from a hostile file would.
 *
 * The attempts are made once in the main thread, when a file has been opened (getrandom() gives the
 * name table a key), and once in the first thread that the command creates. The environment says:
 *
 *   HEFT_PROBE_DIR     a folder outside of the command's files, with the files "secret" and
 *                      "victim" and the listening socket "socket"
 *   HEFT_PROBE_INPUT   an input of the command, in a folder without outputs
 *   HEFT_PROBE_SOCKET  the descriptor of a socket that is not connected
 *   HEFT_PROBE_FILE    the descriptor of a file
 *   HEFT_PROBE_TERMINAL  the descriptor of the terminal of the process
 *   HEFT_PROBE_VICTIM  the id of another process of this user
 *   HEFT_PROBE_TELL    the descriptor for the results: a line "THREAD ATTEMPT ERRNO" for each
 *                      attempt, with 0 for a success */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "sandbox_calls.h"

enum { PATH_BYTES = 4096 };

static const char *outside(char path[PATH_BYTES], const char *name)
{
    snprintf(path, PATH_BYTES, "%s/%s", getenv("HEFT_PROBE_DIR"), name);
    return path;
}

static int error_of(long result)
{
    return result < 0 ? errno : 0;
}

static int error_of_open(int fd)
{
    int error = error_of(fd);
    if (fd >= 0)
        close(fd);
    return error;
}

/* ---- attempts, which return an errno value ---- */

static int read_passwords(const char *name)
{
    (void)name;
    return error_of_open(open("/etc/passwd", O_RDONLY));
}

static int read_file(const char *path)
{
    return error_of_open(open(path, O_RDONLY));
}

static int write_file(const char *path)
{
    return error_of_open(open(path, O_WRONLY));
}

static int list_folder(const char *path)
{
    return error_of_open(open(path, O_RDONLY | O_DIRECTORY));
}

static int create_file(const char *path)
{
    int error = error_of_open(open(path, O_WRONLY | O_CREAT | O_EXCL, 0600));
    if (!error)
        unlink(path);
    return error;
}

static int create_unnamed(const char *path)
{
    return error_of_open(open(path, O_RDWR | O_TMPFILE, 0600));
}

static int create_folder(const char *path)
{
    int error = error_of(mkdir(path, 0700));
    if (!error)
        rmdir(path);
    return error;
}

static int create_link(const char *path)
{
    int error = error_of(symlink("/", path));
    if (!error)
        unlink(path);
    return error;
}

/* Rename the file, and rename it back. */
static int rename_file(const char *path)
{
    char other[PATH_BYTES];
    int error = error_of(rename(path, outside(other, "renamed")));
    if (!error)
        rename(other, path);
    return error;
}

static int remove_file(const char *path)
{
    int error = error_of(unlink(path));
    if (!error)
        close(open(path, O_WRONLY | O_CREAT, 0600));
    return error;
}

static int cut_file(const char *path)
{
    return error_of(truncate(path, 0));
}

static int change_mode(const char *path)
{
    return error_of(chmod(path, 0644));
}

static int change_owner(const char *path)
{
    return error_of(chown(path, getuid(), getgid()));
}

static int change_time(const char *path)
{
    return error_of(utimensat(AT_FDCWD, path, NULL, 0));
}

static int set_attribute(const char *path)
{
    return error_of(setxattr(path, "user.heft", "x", 1, 0));
}

static int start_program(const char *name)
{
    char *const argv[] = { (char[]){ "true" }, NULL };
    pid_t child;
    (void)name;
    int error = posix_spawn(&child, "/bin/true", NULL, NULL, argv, argv + 1);
    if (!error)
        waitpid(child, NULL, 0);
    return error;
}

/* A file in memory has no path, so Landlock would run it. Without the sandbox the kernel answers
 * ENOEXEC: the file is not a program. */
static int run_memory(bool by_descriptor)
{
    char path[64], *const none[] = { NULL };
    int fd = memfd_create("program", 0);
    int error = write(fd, "x", 1) == 1 ? 0 : errno;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (!error)
        error = error_of(by_descriptor ? syscall(SYS_execveat, fd, "", none, none, AT_EMPTY_PATH)
                                       : execve(path, none, none));
    close(fd);
    return error == ENOEXEC ? 0 : error;
}

static int run_path(const char *name)
{
    (void)name;
    return run_memory(false);
}

static int run_descriptor(const char *name)
{
    (void)name;
    return run_memory(true);
}

static int make_socket(const char *name)
{
    (void)name;
    return error_of_open(socket(AF_INET, SOCK_STREAM, 0));
}

/* Connect a socket that the command has inherited. */
static int connect_socket(const char *path)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    const char *fd = getenv("HEFT_PROBE_SOCKET");
    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    int error = error_of(connect(atoi(fd), (struct sockaddr *)&to, sizeof to));
    return error == EISCONN ? 0 : error; /* the other thread has connected it */
}

static int create_here(const char *name)
{
    (void)name;
    return create_file("here");
}

static int write_device(const char *name)
{
    (void)name;
    return write_file("/dev/zero");
}

static int write_input(const char *name)
{
    (void)name;
    return write_file(getenv("HEFT_PROBE_INPUT"));
}

static int signal_self(const char *name)
{
    (void)name;
    return error_of(kill(getpid(), 0));
}

static int signal_parent(const char *name)
{
    (void)name;
    return error_of(kill(getppid(), 0));
}

static int read_process(const char *name)
{
    char from = 1, to = 0;
    struct iovec local = { &to, 1 }, remote = { &from, 1 };
    (void)name;
    return error_of(process_vm_readv(getpid(), &local, 1, &remote, 1, 0));
}

/* Without the sandbox the kernel answers ESRCH: no process traces itself. */
static int trace_process(const char *name)
{
    (void)name;
    int error = error_of(ptrace(PTRACE_PEEKDATA, getpid(), NULL, NULL));
    return error == ESRCH ? 0 : error;
}

static int leave_namespace(const char *name)
{
    (void)name;
    return error_of(unshare(0));
}

/* Without the sandbox the kernel answers ENOSYS: there is no such call. */
static int use_other_abi(const char *name)
{
    (void)name;
    int error = error_of(syscall(0x40000000 | SYS_getpid));
    return error == ENOSYS ? 0 : error;
}

static const struct {
    const char *name;
    int (*run)(const char *path);
    const char *file; /* below HEFT_PROBE_DIR */
} attempts[] = {
    { "read-passwords", read_passwords, "" },
    { "read-file", read_file, "secret" },
    { "write-file", write_file, "victim" },
    { "list-folder", list_folder, "" },
    { "create-file", create_file, "new" },
    { "create-unnamed", create_unnamed, "" },
    { "create-folder", create_folder, "new" },
    { "create-link", create_link, "new" },
    { "rename-file", rename_file, "victim" },
    { "remove-file", remove_file, "victim" },
    { "cut-file", cut_file, "victim" },
    { "change-mode", change_mode, "victim" },
    { "change-owner", change_owner, "victim" },
    { "change-time", change_time, "victim" },
    { "set-attribute", set_attribute, "victim" },
    { "start-program", start_program, "" },
    { "make-socket", make_socket, "" },
    { "connect-socket", connect_socket, "socket" },
    { "run-path", run_path, "" },
    { "run-descriptor", run_descriptor, "" },
    { "create-here", create_here, "" },
    { "write-input", write_input, "" },
    { "signal-self", signal_self, "" },
    { "write-device", write_device, "" },
    { "signal-parent", signal_parent, "" },
    { "read-process", read_process, "" },
    { "trace-process", trace_process, "" },
    { "leave-namespace", leave_namespace, "" },
    { "other-abi", use_other_abi, "" },
};

static void tell(int fd, const char *thread, const char *name, int error)
{
    char line[128];
    int len = snprintf(line, sizeof line, "%s %s %d\n", thread, name, error);
    if (write(fd, line, (size_t)len) != len)
        _exit(120); /* the test would miss the attempt */
}

static void probe(const char *thread)
{
    char path[PATH_BYTES];
    const char *to = getenv("HEFT_PROBE_TELL");
    int kept = errno;
    for (size_t i = 0; to && i < sizeof attempts / sizeof *attempts; i++)
        tell(atoi(to), thread, attempts[i].name, attempts[i].run(outside(path, attempts[i].file)));
    for (size_t i = 0; to && forbidden_call_name(i); i++)
        tell(atoi(to), thread, forbidden_call_name(i), forbidden_call_try(i));
    errno = kept;
}

/* ---- the preloaded functions ---- */

ssize_t getrandom(void *buf, size_t len, unsigned flags)
{
    static atomic_flag has_run = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&has_run))
        probe("main");
    return syscall(SYS_getrandom, buf, len, flags);
}

typedef struct start {
    void *(*run)(void *arg);
    void *arg;
} start;

static void *probe_and_run(void *arg)
{
    start s = *(start *)arg;
    free(arg);
    probe("worker");
    return s.run(s.arg);
}

int pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*run)(void *arg), void *arg)
{
    static atomic_flag has_run = ATOMIC_FLAG_INIT;
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = NULL;
    void *symbol = dlsym(RTLD_NEXT, "pthread_create");
    start *s = malloc(sizeof *s);
    memcpy(&create, &symbol, sizeof create);
    if (!s || atomic_flag_test_and_set(&has_run)) {
        free(s);
        return create(out, attr, run, arg);
    }
    *s = (start){ run, arg };
    return create(out, attr, probe_and_run, s);
}
