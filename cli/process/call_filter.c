/* call_filter.c - make a filter program for the kernel of the lists of allowed calls.
 *
 * The program is short enough to be built here. With libseccomp, builds without that library would
 * have no filter. */
#include "process/call_filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "process/allowed_calls.h"

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
