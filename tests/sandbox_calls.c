/* sandbox_calls.c - attempts that are a single system call each. None has an effect on another
 * process, or on a file, that lasts. See sandbox_probe.c for the environment. */
#include "sandbox_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    TERMINAL = -1000, /* arguments that the environment tells */
    VICTIM,
    INHERITED,
    KEY = 0x68656674, /* nobody has made these */
    IDLE = 3 << 13,
    ANY_ROUTE = 16, /* NETLINK_GENERIC */
    SCTP = 132,
    TIOCLINUX_CALL = 0x541c
};
/* The kernel ignores the upper half. */
#define HIGH(value) (long)((uint64_t)1 << 32 | (uint64_t)(value))
#define AT(object)  (long)&(object)

static unsigned long processors = ~0UL;
static int no_priority;
static siginfo_t queued = { .si_code = SI_QUEUE };
static struct clone_args in_namespace = { .flags = CLONE_NEWUSER | CLONE_FS };

static const struct {
    const char *name;
    long call, args[6];
} calls[] = {
    /* the user's terminal */
    { "type-command", SYS_ioctl, { TERMINAL, TIOCSTI, (long)"x" } },
    { "type-command-high", SYS_ioctl, { TERMINAL, HIGH(TIOCSTI), (long)"x" } },
    { "paste-selection", SYS_ioctl, { TERMINAL, TIOCLINUX_CALL, (long)"\3" } },
    /* other processes */
    { "signal-victim", SYS_kill, { VICTIM, 0 } },
    { "signal-group", SYS_kill, { 0, 0 } },
    { "signal-thread", SYS_tgkill, { VICTIM, VICTIM, 0 } },
    { "signal-any-thread", SYS_tkill, { VICTIM, 0 } },
    { "queue-signal", SYS_rt_sigqueueinfo, { VICTIM, 0, AT(queued) } },
    { "signal-on-input", SYS_fcntl, { INHERITED, F_SETOWN, VICTIM } },
    { "open-process", SYS_pidfd_open, { VICTIM, 0 } },
    { "signal-open-process", SYS_pidfd_send_signal, { -1, 0, 0, 0 } },
    { "take-descriptor", SYS_pidfd_getfd, { -1, 0, 0 } },
    { "limit-process", SYS_prlimit64, { VICTIM, RLIMIT_CORE, 0, 0 } },
    { "slow-process", SYS_setpriority, { PRIO_PROCESS, VICTIM, 19 } },
    { "slow-disk", SYS_ioprio_set, { 1, VICTIM, IDLE } },
    { "move-process", SYS_sched_setaffinity, { VICTIM, sizeof processors, AT(processors) } },
    { "schedule-process", SYS_sched_setscheduler, { VICTIM, SCHED_BATCH, AT(no_priority) } },
    { "rank-process", SYS_sched_setparam, { VICTIM, AT(no_priority) } },
    { "group-process", SYS_setpgid, { VICTIM, 0 } },
    { "share-memory", SYS_shmget, { KEY, 1, 0 } },
    { "share-messages", SYS_msgget, { KEY, 0 } },
    { "share-semaphores", SYS_semget, { KEY, 1, 0 } },
    { "share-queue", SYS_mq_open, { (long)"heft-none", 0, 0, 0 } },
    /* namespaces; the kernel rejects these flags later */
    { "clone-namespace", SYS_clone, { CLONE_NEWUSER | CLONE_FS, 0, 0, 0, 0 } },
    { "thread-in-namespace",
      SYS_clone,
      { CLONE_THREAD | CLONE_SIGHAND | CLONE_VM | CLONE_NEWUSER, 0, 0, 0, 0 } },
    { "clone3-namespace", SYS_clone3, { AT(in_namespace), sizeof in_namespace } },
    { "enter-namespace", SYS_setns, { -1, 0 } },
    /* files */
    { "change-inherited-mode", SYS_fchmod, { INHERITED, 0644 } },
    { "change-inherited-mode-high", SYS_fchmod, { INHERITED, HIGH(0644) } },
    { "change-inherited-owner", SYS_fchown, { INHERITED, -1, -1 } },
    { "set-inherited-attribute", SYS_fsetxattr, { INHERITED, (long)"user.x", (long)"x", 1, 0 } },
    { "duplicate", SYS_dup, { INHERITED } },
    { "duplicate-inherited", SYS_fcntl, { INHERITED, F_DUPFD, 0 } },
    { "duplicate-inherited-closed", SYS_fcntl, { INHERITED, F_DUPFD_CLOEXEC, 0 } },
    { "open-handle", SYS_open_by_handle_at, { -1, 0, 0 } },
    { "open-filesystem", SYS_fsopen, { (long)"proc", 0 } },
    { "mount-filesystem", SYS_fsmount, { -1, 0, 0 } },
    { "move-filesystem", SYS_move_mount, { -1, (long)"", -1, (long)"", 0 } },
    { "change-filesystem", SYS_mount_setattr, { -1, (long)"", 0, 0, 0 } },
    { "change-root", SYS_chroot, { (long)"" } },
    /* the system */
    { "name-host", SYS_sethostname, { 0, -1 } },
    { "name-domain", SYS_setdomainname, { 0, -1 } },
    { "change-personality", SYS_personality, { -1 } },
    { "load-filter", SYS_bpf, { -1, 0, 0 } },
    { "measure", SYS_perf_event_open, { 0, 0, -1, -1, 0 } },
    { "catch-faults", SYS_userfaultfd, { -1 } },
    { "read-keys", SYS_keyctl, { -1, 0, 0, 0, 0 } },
    { "make-ring", SYS_io_uring_setup, { 0, 0 } },
    /* sockets that no client needs */
    { "unix-socket", SYS_socket, { AF_UNIX, SOCK_STREAM, 0 } },
    { "unix-datagrams", SYS_socketpair, { AF_UNIX, SOCK_DGRAM, 0, 0 } },
    { "kernel-crypto", SYS_socket, { AF_ALG, SOCK_SEQPACKET, 0 } },
    { "host-socket", SYS_socket, { AF_VSOCK, SOCK_STREAM, 0 } },
    { "packets", SYS_socket, { AF_PACKET, SOCK_RAW, 0 } },
    { "any-netlink", SYS_socket, { AF_NETLINK, SOCK_RAW, ANY_ROUTE } },
    { "other-protocol", SYS_socket, { AF_INET, SOCK_STREAM, SCTP } },
    { "wait-for-clients", SYS_listen, { -1, 1 } },
};

static long from_environment(const char *name)
{
    const char *text = getenv(name);
    return text ? atol(text) : -1;
}

static long argument(long value)
{
    static const char *const names[] = { "HEFT_PROBE_TERMINAL", "HEFT_PROBE_VICTIM",
                                         "HEFT_PROBE_FILE" };
    for (int i = 0; i < 3; i++)
        if (value == TERMINAL + i)
            return from_environment(names[i]);
    return value;
}

const char *forbidden_call_name(size_t i)
{
    return i < sizeof calls / sizeof *calls ? calls[i].name : NULL;
}

int forbidden_call_try(size_t i)
{
    long a[6];
    for (int k = 0; k < 6; k++)
        a[k] = argument(calls[i].args[k]);
    return syscall(calls[i].call, a[0], a[1], a[2], a[3], a[4], a[5]) < 0 ? errno : 0;
}
