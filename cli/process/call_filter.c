/* call_filter.c - make a filter program for the kernel of the lists of allowed calls.
 *
 * The program is short enough to be built here. With libseccomp, builds without that library would
 * have no filter. */
#include "process/kept_access.h"

#include <asm/ioctl.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/net.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/unistd.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* The descriptors are the process's: noted before there is a command. */
static struct {
    int fd[INHERITED_MAX];
    size_t n;
} inherited;

void kept_access_add(kept_access *k, const struct stat *of)
{
    mode_t mode = of->st_mode & 07777;
    size_t i = 0;
    while (i < k->n &&
           !(k->of[i].mode == mode && k->of[i].uid == of->st_uid && k->of[i].gid == of->st_gid))
        i++;
    if (i < k->n || k->n == KEPT_MAX)
        return;
    k->of[i].mode = mode;
    k->of[i].uid = of->st_uid;
    k->of[i].gid = of->st_gid;
    k->n++;
}

void kept_access_add_folder(kept_access *k, const char *folder, const char *prefix)
{
    DIR *dir = opendir(folder);
    struct stat info;
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;)
        if (!strncmp(e->d_name, prefix, strlen(prefix)) &&
            !fstatat(dirfd(dir), e->d_name, &info, 0) && S_ISREG(info.st_mode))
            kept_access_add(k, &info);
    if (dir)
        closedir(dir);
}

static void note(int fd)
{
    if (inherited.n < INHERITED_MAX)
        inherited.fd[inherited.n++] = fd;
}

/* Without /proc, look at the first descriptors only. */
void inherited_note(void)
{
    enum { FIRST = 64 };
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;)
        if (e->d_name[0] != '.' && atoi(e->d_name) != dirfd(dir))
            note(atoi(e->d_name));
    for (int fd = 0; !dir && fd < FIRST; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            note(fd);
    if (dir)
        closedir(dir);
}

/* Return a descriptor that was open then; -1 past the last. */
static int inherited_descriptor(size_t i)
{
    return i < inherited.n ? inherited.fd[i] : -1;
}

/* The text of a call's number: "0", or "(0 + 1)". The headers of a processor define the calls that
 * it has; of other calls the text is the name of the undefined macro. */
#define CALL_TEXT(number)   #number
#define CALL_NUMBER(number) CALL_TEXT(number)
#define CALL(name)          CALL_NUMBER(__NR_##name)

enum { CALL_CONDITIONS = 3, CALL_VALUES = 16 };

/* An argument, without the ignored bits, has one of the values. The kernel reads 32 bits of every
 * argument that is compared here, so only these are compared. */
typedef struct call_condition {
    uint32_t argument, ignored;
    size_t n;
    uint32_t values[CALL_VALUES];
} call_condition;
#define CALL_IS(...)                                        \
    sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t), \
    {                                                       \
        __VA_ARGS__                                         \
    }

/* A call for which all conditions hold is allowed, or fails with `error`. */
typedef struct call_rule {
    const char *call;
    int error;
    size_t conditions;
    call_condition when[CALL_CONDITIONS];
} call_rule;

/* Calls that are allowed with any arguments; NULL ends the list. */
extern const char *const allowed_calls[];
/* Calls that clients of servers need, besides. */
extern const char *const allowed_client_calls[];
/* Calls that servers need, besides. */
extern const char *const allowed_server_calls[];

/* Calls that depend on arguments; the first rule that applies counts. A row without a call ends the
 * list. */
extern const call_rule checked_calls[];
extern const call_rule checked_duplicates[];
extern const call_rule checked_client_calls[];
extern const call_rule checked_server_calls[];

/* ---- the list of system calls that commands ---- */

/* Return the number of a call; -1 if this processor has no such call. */
static int call_number(const char *text)
{
    int sum = 0;
    if (*text == '_') /* the name of an undefined macro */
        return -1;
    while (*(text += strcspn(text, "0123456789"))) {
        char *end;
        sum += (int)strtol(text, &end, 0);
        text = end;
    }
    return sum;
}

/* Numbers stand for calls that the headers may lack; all processors use the same numbers. */
const char *const allowed_calls[] = {
    /* bytes of open files */
    CALL(read), CALL(pread64), CALL(readv), CALL(preadv), CALL(preadv2), CALL(write),
    CALL(pwrite64), CALL(writev), CALL(pwritev), CALL(pwritev2), CALL(lseek), CALL(_llseek),
    CALL(copy_file_range), CALL(sendfile), CALL(sendfile64), CALL(splice), CALL(readahead),
    CALL(fadvise64), CALL(fadvise64_64), CALL(arm_fadvise64_64), CALL(fallocate), CALL(ftruncate),
    CALL(ftruncate64), CALL(fsync), CALL(fdatasync), CALL(sync_file_range), CALL(sync_file_range2),
    CALL(arm_sync_file_range), CALL(flock), CALL(getdents), CALL(getdents64), CALL(fgetxattr),
    CALL(flistxattr),
    /* status */
    CALL(stat), CALL(stat64), CALL(lstat), CALL(lstat64), CALL(fstat), CALL(fstat64),
    CALL(newfstatat), CALL(fstatat64), CALL(statx), CALL(access), CALL(faccessat), CALL(faccessat2),
    CALL(readlink), CALL(readlinkat), CALL(getcwd), CALL(statfs), CALL(statfs64), CALL(fstatfs),
    CALL(fstatfs64),
    /* names; Landlock restricts the paths */
    CALL(open), CALL(openat), CALL(openat2), CALL(close), CALL(close_range), CALL(pipe),
    CALL(pipe2), CALL(memfd_create), CALL(rename), CALL(renameat), CALL(renameat2), CALL(link),
    CALL(linkat), CALL(unlink), CALL(unlinkat), CALL(mkdir), CALL(mkdirat), CALL(rmdir),
    /* memory */
    CALL(brk), CALL(mmap), CALL(mmap2), CALL(munmap), CALL(mremap), CALL(mprotect), CALL(madvise),
    CALL(mincore), CALL(msync), "453" /* map_shadow_stack */, "462" /* mseal */,
    /* threads of this process */
    CALL(futex), CALL(futex_time64), "449" /* futex_waitv */, "454" /* futex_wake */,
    "455" /* futex_wait */, "456" /* futex_requeue */, CALL(set_robust_list), CALL(rseq),
    CALL(set_tid_address), CALL(membarrier), CALL(arch_prctl), CALL(set_thread_area),
    CALL(get_thread_area), CALL(gettid), CALL(getcpu), CALL(sched_yield), CALL(sched_getaffinity),
    CALL(exit), CALL(exit_group), CALL(restart_syscall),
    /* signals for this process */
    CALL(rt_sigaction), CALL(rt_sigprocmask), CALL(rt_sigreturn), CALL(sigreturn),
    CALL(rt_sigpending), CALL(rt_sigsuspend), CALL(rt_sigtimedwait), CALL(rt_sigtimedwait_time64),
    CALL(sigaltstack), CALL(alarm), CALL(setitimer),
    /* waiting; the only children are the pager and readers of HDF5 */
    CALL(poll), CALL(ppoll), CALL(ppoll_time64), CALL(select), CALL(_newselect), CALL(pselect6),
    CALL(pselect6_time64), CALL(nanosleep), CALL(clock_nanosleep), CALL(clock_nanosleep_time64),
    CALL(wait4), CALL(waitid), CALL(waitpid),
    /* facts */
    CALL(getpid), CALL(getppid), CALL(getuid), CALL(getuid32), CALL(geteuid), CALL(geteuid32),
    CALL(getgid), CALL(getgid32), CALL(getegid), CALL(getegid32), CALL(uname), CALL(sysinfo),
    CALL(getrusage), CALL(times), CALL(time), CALL(gettimeofday), CALL(clock_gettime),
    CALL(clock_gettime64), CALL(clock_getres), CALL(clock_getres_time64), CALL(getrandom),
    CALL(getrlimit), CALL(ugetrlimit), CALL(setrlimit), CALL(riscv_hwprobe), NULL
};

const char *const allowed_client_calls[] = {
    /* sockets */
    CALL(connect), CALL(bind), CALL(send), CALL(sendto), CALL(sendmsg), CALL(sendmmsg), CALL(recv),
    CALL(recvfrom), CALL(recvmsg), CALL(recvmmsg), CALL(recvmmsg_time64), CALL(shutdown),
    CALL(getsockopt), CALL(setsockopt), CALL(getsockname), CALL(getpeername),
    /* waiting */
    CALL(eventfd), CALL(eventfd2), CALL(epoll_create), CALL(epoll_create1), CALL(epoll_ctl),
    CALL(epoll_wait), CALL(epoll_pwait), CALL(epoll_pwait2), NULL
};

/* Calls that a server needs, besides; its socket listens already. */
const char *const allowed_server_calls[] = {
    CALL(accept),      CALL(accept4),    CALL(send),       CALL(sendto),
    CALL(sendmsg),     CALL(recv),       CALL(recvfrom),   CALL(recvmsg),
    CALL(shutdown),    CALL(getsockopt), CALL(setsockopt), CALL(getsockname),
    CALL(getpeername), CALL(eventfd),    CALL(eventfd2),   NULL
};

/* ---- by arguments ---- */

enum {
    FLAGS_OF_CLONE = HEFT_AUDIT_ARCH == AUDIT_ARCH_S390X, /* the order of the arguments */
    THREAD = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD,
    NO_THREAD = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                CLONE_NEWPID | CLONE_NEWNET | CLONE_PTRACE | CLONE_VFORK,
    SOCKET_FLAGS = SOCK_NONBLOCK | SOCK_CLOEXEC,
    NAME_MEMORY = 0x53564d41 /* PR_SET_VMA, which musl does not define */
};

/* TCGETS2, whose header contradicts that of the C library; the powerpc has none. */
#define TERMINAL_SETTINGS _IOC(_IOC_READ, 'T', 0x2a, 44)

/* The other commands of fcntl() make the kernel send signals to other processes (F_SETOWN). */
#define FILE_COMMANDS                                                                    \
    CALL_IS(F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETLK, F_SETLK, F_SETLKW, F_ADD_SEALS, \
            F_GET_SEALS, F_GETPIPE_SZ, F_SETPIPE_SZ)

const call_rule checked_calls[] = {
    { CALL(ioctl),
      0,
      1,
      { { 1, 0, CALL_IS(TCGETS, TERMINAL_SETTINGS, TIOCGWINSZ, FICLONERANGE) } } },
    { CALL(fcntl), 0, 1, { { 1, 0, FILE_COMMANDS } } },
    { CALL(fcntl64), 0, 1, { { 1, 0, FILE_COMMANDS } } },
    /* The flags of clone3() are in memory, where no filter sees them; C libraries take clone(). */
    { CALL(clone3), ENOSYS, 0, { { 0 } } },
    { CALL(clone), 0, 1, { { FLAGS_OF_CLONE, ~(0U | THREAD | NO_THREAD), CALL_IS(THREAD) } } },
    /* A copy of this process with the same filter, which reads HDF5: see hdf5_worker.c. */
    { CALL(clone),
      0,
      1,
      { { FLAGS_OF_CLONE, CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID, CALL_IS(SIGCHLD) } } },
    /* The first argument 0 is this process. */
    { CALL(prlimit64), 0, 1, { { 0, 0, CALL_IS(0) } } },
    { CALL(prctl), 0, 1, { { 0, 0, CALL_IS(PR_SET_NAME, NAME_MEMORY) } } },
    { 0 }
};

/* Duplicates of files that the command has opened; see put_inherited(). */
const call_rule checked_duplicates[] = {
    { CALL(fcntl), 0, 1, { { 1, 0, CALL_IS(F_DUPFD, F_DUPFD_CLOEXEC) } } },
    { CALL(fcntl64), 0, 1, { { 1, 0, CALL_IS(F_DUPFD, F_DUPFD_CLOEXEC) } } },
    { 0 }
};

const call_rule checked_client_calls[] = {
    { CALL(socket),
      0,
      3,
      { { 0, 0, CALL_IS(AF_INET, AF_INET6) },
        { 1, SOCKET_FLAGS, CALL_IS(SOCK_STREAM) },
        { 2, 0, CALL_IS(0, IPPROTO_TCP) } } },
    { CALL(socket),
      0,
      3,
      { { 0, 0, CALL_IS(AF_INET, AF_INET6) },
        { 1, SOCKET_FLAGS, CALL_IS(SOCK_DGRAM) },
        { 2, 0, CALL_IS(0, IPPROTO_UDP) } } },
    /* getaddrinfo() lists the addresses of this machine. */
    { CALL(socket),
      0,
      3,
      { { 0, 0, CALL_IS(AF_NETLINK) },
        { 1, SOCKET_FLAGS, CALL_IS(SOCK_RAW, SOCK_DGRAM) },
        { 2, 0, CALL_IS(NETLINK_ROUTE) } } },
    /* libcurl wakes a thread through a pair; a pair of streams cannot be connected elsewhere. */
    { CALL(socketpair),
      0,
      2,
      { { 0, 0, CALL_IS(AF_UNIX) }, { 1, SOCKET_FLAGS, CALL_IS(SOCK_STREAM) } } },
    /* The C libraries of i386 and s390x have one call for all, with the arguments in memory. */
    { CALL(socketcall),
      0,
      1,
      { { 0, 0,
          CALL_IS(SYS_SOCKET, SYS_SOCKETPAIR, SYS_BIND, SYS_CONNECT, SYS_SEND, SYS_SENDTO,
                  SYS_SENDMSG, SYS_SENDMMSG, SYS_RECV, SYS_RECVFROM, SYS_RECVMSG, SYS_RECVMMSG,
                  SYS_SHUTDOWN) } } },
    { CALL(socketcall),
      0,
      1,
      { { 0, 0, CALL_IS(SYS_GETSOCKNAME, SYS_GETPEERNAME, SYS_GETSOCKOPT, SYS_SETSOCKOPT) } } },
    { CALL(ioctl), 0, 1, { { 1, 0, CALL_IS(FIONREAD, FIONBIO) } } },
    { 0 }
};

const call_rule checked_server_calls[] = {
    { CALL(socketcall),
      0,
      1,
      { { 0, 0,
          CALL_IS(SYS_ACCEPT, SYS_ACCEPT4, SYS_SEND, SYS_SENDTO, SYS_SENDMSG, SYS_RECV,
                  SYS_RECVFROM, SYS_RECVMSG, SYS_SHUTDOWN, SYS_GETSOCKNAME, SYS_GETPEERNAME,
                  SYS_GETSOCKOPT, SYS_SETSOCKOPT) } } },
    { CALL(ioctl), 0, 1, { { 1, 0, CALL_IS(FIONREAD, FIONBIO) } } },
    { 0 }
};

enum {
    ALLOW = SECCOMP_RET_ALLOW,
    REFUSE = SECCOMP_RET_ERRNO | EPERM,
    MISSING = SECCOMP_RET_ERRNO | ENOSYS,
    FIRST_FOREIGN_CALL = 0x40000000, /* calls of x32 on x86-64 */
    LAST_KNOWN_CALL = 469,           /* file_setattr() of Linux 6.17 */
    /* the low half of an argument of 64 bits */
    LOW_HALF = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? sizeof(uint32_t) : 0
};

/* The accumulator of the program has the number of the call, except inside of a rule. */
typedef struct program {
    struct sock_filter code[BPF_MAXINSNS];
    size_t len;
} program;

static void put(program *p, struct sock_filter instruction)
{
    if (p->len < BPF_MAXINSNS)
        p->code[p->len] = instruction;
    p->len++;
}

static void put_load(program *p, size_t offset)
{
    put(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void put_load_argument(program *p, uint32_t argument)
{
    put_load(p, offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t) + LOW_HALF);
}

/* Compare the accumulator with the value; skip instructions if the comparison holds, or else. */
static void put_jump(program *p, uint16_t comparison, uint32_t value, size_t holds, size_t fails)
{
    put(p, (struct sock_filter)BPF_JUMP(BPF_JMP | comparison | BPF_K, value, (uint8_t)holds,
                                        (uint8_t)fails));
}

static void put_return(program *p, uint32_t result)
{
    put(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, result));
}

static void put_return_if(program *p, uint16_t comparison, uint32_t value, uint32_t result)
{
    put_jump(p, comparison, value, 0, 1);
    put_return(p, result);
}

static void put_load_call(program *p)
{
    put_load(p, offsetof(struct seccomp_data, nr));
}

static void put_allowed(program *p, const char *const *calls)
{
    for (; *calls; calls++)
        if (call_number(*calls) >= 0)
            put_return_if(p, BPF_JEQ, (uint32_t)call_number(*calls), ALLOW);
}

/* A condition has an instruction for each value, besides the load and the mask. */
static size_t length_of(const call_condition *c, size_t n)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += 2 + c[i].n;
    return len;
}

/* Go on if the argument has one of the values; otherwise skip instructions. */
static void put_condition(program *p, const call_condition *c, size_t skipped)
{
    put_load_argument(p, c->argument);
    put(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~c->ignored));
    for (size_t i = 0; i < c->n; i++)
        put_jump(p, BPF_JEQ, c->values[i], c->n - i - 1, i + 1 < c->n ? 0 : skipped);
}

static void put_rule(program *p, const call_rule *r)
{
    int call = call_number(r->call);
    size_t n = r->conditions;
    if (call < 0)
        return;
    put_jump(p, BPF_JEQ, (uint32_t)call, 0, length_of(r->when, n) + (n ? 2 : 1));
    for (size_t i = 0; i < n; i++)
        put_condition(p, &r->when[i], length_of(r->when + i + 1, n - i - 1) + 1);
    put_return(p, r->error ? SECCOMP_RET_ERRNO | (uint32_t)r->error : ALLOW);
    if (n)
        put_load_call(p);
}

static void put_rules(program *p, const call_rule *r)
{
    for (; r->call; r++)
        put_rule(p, r);
}

/* ---- rules that this process alone has ---- */

/* A command dies of the signal that interrupted it. raise() and abort() send a signal to a thread,
 * by calls that depend on the C library. */
static void put_signals(program *p)
{
    const uint32_t self = (uint32_t)getpid();
    const call_condition is_fatal = { 1, 0, CALL_IS(SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU) };
    const call_condition is_self = { 0, 0, CALL_IS(self) };
    const call_rule rules[] = {
        { CALL(kill), 0, 2, { is_self, is_fatal } },
        { CALL(tgkill), 0, 1, { is_self } },
        { CALL(tkill), 0, 1, { is_self } }, /* the first thread */
        { 0 },
    };
    put_rules(p, rules);
}

/* The call with owners of 32 bits; where there are two, the other one has 16. */
static const char *change_of_owner(void)
{
    return call_number(CALL(fchown32)) < 0 ? CALL(fchown) : CALL(fchown32);
}

/* Refuse to change files that were open when the command began, and to use such sockets: results
 * are written by write() and similar calls.  The descriptor of a duplicate would not be known. */
static void put_inherited(program *p)
{
    const char *const refused[] = { CALL(fchmod),  change_of_owner(), CALL(fsetxattr),
                                    CALL(connect), CALL(bind),        CALL(sendto),
                                    CALL(sendmsg), CALL(sendmmsg),    CALL(fcntl),
                                    CALL(fcntl64) };
    enum { REFUSED = sizeof refused / sizeof *refused };
    uint32_t n = 0;
    while (inherited_descriptor(n) >= 0)
        n++;
    for (size_t i = 0; i < REFUSED; i++)
        put_jump(p, BPF_JEQ, (uint32_t)call_number(refused[i]), REFUSED - i, 0);
    put(p, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 2 * n + 2));
    put_load_argument(p, 0);
    for (size_t i = 0; i < n; i++)
        put_return_if(p, BPF_JEQ, (uint32_t)inherited_descriptor(i), REFUSE);
    put_load_call(p);
}

/* A file whose owner cannot be given has the mode without the set-id bits. */
static void put_kept(program *p, const kept_access *k)
{
    enum { PERMISSIONS = 07777, WITHOUT_SET_ID = 01777 };
    for (size_t i = 0; i < k->n; i++) {
        uint32_t mode = k->of[i].mode, uid = k->of[i].uid, gid = k->of[i].gid;
        const call_rule rules[] = {
            { CALL(fchmod),
              0,
              1,
              { { 1, ~(uint32_t)PERMISSIONS, CALL_IS(mode, mode & WITHOUT_SET_ID) } } },
            { change_of_owner(), 0, 2, { { 1, 0, CALL_IS(uid) }, { 2, 0, CALL_IS(gid) } } },
            { 0 },
        };
        put_rules(p, rules);
    }
    if (k->keeps_attributes)
        put_rule(p, &(call_rule){ .call = CALL(fsetxattr) });
}

static void put_program(program *p, const call_needs *needs)
{
    put_load(p, offsetof(struct seccomp_data, arch));
    put_jump(p, BPF_JEQ, HEFT_AUDIT_ARCH, 1, 0);
    put_return(p, REFUSE);
    put_load_call(p);
    put_return_if(p, BPF_JGE, FIRST_FOREIGN_CALL, REFUSE);
    put_allowed(p, allowed_calls);
    put_rules(p, checked_calls);
    put_signals(p);
    put_inherited(p);
    put_rules(p, checked_duplicates);
    if (needs->is_client) {
        put_allowed(p, allowed_client_calls);
        put_rules(p, checked_client_calls);
    }
    if (needs->is_server) {
        put_allowed(p, allowed_server_calls);
        put_rules(p, checked_server_calls);
    }
    put_kept(p, needs->kept);
    put_return_if(p, BPF_JGT, LAST_KNOWN_CALL, MISSING);
    put_return(p, REFUSE);
}

int call_filter_install(const call_needs *needs)
{
    static program p; /* too large for the stack */
    if (!HEFT_AUDIT_ARCH)
        return EOPNOTSUPP;
    put_program(&p, needs);
    if (p.len > BPF_MAXINSNS)
        return E2BIG;
    const struct sock_fprog filter = { (unsigned short)p.len, p.code };
    /* SPEC_ALLOW: keep the processor's speculation, which kernels before 5.16 disable otherwise */
    long failed = syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER,
                          SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW, &filter);
    return failed < 0 ? errno : failed ? ESRCH : 0; /* positive: the thread that stays unfiltered */
}
