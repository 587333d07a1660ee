/* sys/resource.h - the limit of open files: Windows has none that a program could raise. */
#ifndef HEFT_WINDOWS_SYS_RESOURCE_H
#define HEFT_WINDOWS_SYS_RESOURCE_H

struct rlimit {
    unsigned long rlim_cur, rlim_max;
};
enum { RLIMIT_NOFILE };

static inline int getrlimit(int which, struct rlimit *out)
{
    (void)which;
    *out = (struct rlimit){ 0, 0 };
    return -1;
}

static inline int setrlimit(int which, const struct rlimit *limit)
{
    (void)which;
    (void)limit;
    return -1;
}

#endif
