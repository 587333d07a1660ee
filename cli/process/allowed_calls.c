/* allowed_calls.c - the list of system calls that commands, C libraries, libcurl and OpenSSL use.
 *
 * C libraries choose among several calls for a purpose, by version, processor and kernel; the list
 * has all of these calls. A call that is not listed fails. A call that is newer than the list fails
 * as on an old kernel, so that the C library takes an older call. */
#include "process/allowed_calls.h"

#include <asm/ioctl.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/fs.h>
#include <linux/net.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

int call_number(const char *text)
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
    /* waiting; the only child is the pager */
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
