/* call_filter.c - the list of refused system calls, and the filter program for the kernel.
 *
 * All calls that are not listed are allowed, so that every C library works, in every version. The
 * filter program is short enough to be built here. With libseccomp, builds without that library
 * would have no filter. */
#include "call_filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/unistd.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

enum { /* calls that the kernel's headers may lack; all processors use the same numbers */
       PIDFD_SEND_SIGNAL = 424,
       IO_URING_SETUP = 425,
       PIDFD_GETFD = 438,
       FCHMODAT2 = 452,
       SETXATTRAT = 463,
       REMOVEXATTRAT = 466,
       FILE_SETATTR = 469
};

static const uint32_t refused[] = {
    /* start programs */
    __NR_execve, __NR_execveat,
    /* wait for connections */
    __NR_listen, __NR_accept4,
    /* reach other processes; raise() and abort() need tgkill and tkill */
    __NR_ptrace, __NR_process_vm_readv, __NR_process_vm_writev, PIDFD_GETFD, PIDFD_SEND_SIGNAL,
    __NR_kill, __NR_rt_sigqueueinfo, __NR_rt_tgsigqueueinfo,
    /* change a file by path: Landlock does not restrict this, and heft uses descriptors */
    __NR_truncate, __NR_fchmodat, FCHMODAT2, __NR_fchownat, __NR_utimensat, __NR_setxattr,
    __NR_lsetxattr, SETXATTRAT, __NR_removexattr, __NR_lremovexattr, REMOVEXATTRAT, FILE_SETATTR,
    __NR_open_by_handle_at,
    /* change the system, or avoid this filter */
    IO_URING_SETUP, __NR_bpf, __NR_perf_event_open, __NR_userfaultfd, __NR_keyctl, __NR_add_key,
    __NR_request_key, __NR_unshare, __NR_setns, __NR_mount, __NR_umount2, __NR_pivot_root,
    __NR_chroot, __NR_init_module, __NR_finit_module, __NR_delete_module, __NR_kexec_load,
    __NR_reboot, __NR_swapon, __NR_swapoff, __NR_acct, __NR_settimeofday, __NR_clock_settime,
    /* older forms of the calls above: see meson.build */
    HEFT_OLDER_CALLS,
    /* use the network or Unix sockets; these are the last, so that a client can do without */
    __NR_socket, __NR_socketpair, __NR_connect, __NR_bind
};

enum {
    REFUSED = sizeof refused / sizeof *refused,
    CLIENT_CALLS = 4,               /* the last of the list */
    HEAD = 4,                       /* instructions before the comparisons */
    FIRST_FOREIGN_CALL = 0x40000000 /* calls of x32 on x86-64 */
};

/* Compare the loaded value; on success jump to the last instruction, the refusal. */
static struct sock_filter refuse_if(uint16_t comparison, uint32_t value, size_t at)
{
    enum { LAST = HEAD + REFUSED + 1 };
    uint8_t distance = (uint8_t)(LAST - at - 1);
    return (struct sock_filter)BPF_JUMP(BPF_JMP | comparison | BPF_K, value, distance, 0);
}

int call_filter_install(bool allows_sockets)
{
    _Static_assert(HEAD + REFUSED < UINT8_MAX, "the length of a jump has eight bits");
    struct sock_filter code[HEAD + REFUSED + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, HEFT_AUDIT_ARCH, 0, HEAD + REFUSED - 1),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    code[HEAD - 1] = refuse_if(BPF_JGE, FIRST_FOREIGN_CALL, HEAD - 1);
    for (size_t i = 0; i < REFUSED; i++) {
        bool is_allowed = allows_sockets && i >= REFUSED - CLIENT_CALLS;
        uint32_t call = is_allowed ? refused[0] : refused[i];
        code[HEAD + i] = refuse_if(BPF_JEQ, call, HEAD + i);
    }
    code[HEAD + REFUSED] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[HEAD + REFUSED + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
                                                            SECCOMP_RET_ERRNO | EPERM);
    const struct sock_fprog program = { sizeof code / sizeof *code, code };
    if (!HEFT_AUDIT_ARCH)
        return EOPNOTSUPP;
    /* SPEC_ALLOW: keep the processor's speculation, which kernels before 5.16 disable otherwise */
    long failed = syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER,
                          SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program);
    return failed < 0 ? errno : failed ? ESRCH : 0; /* positive: the thread that stays unfiltered */
}
