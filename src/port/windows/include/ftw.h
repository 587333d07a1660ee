/* ftw.h - names of POSIX for the functions of posix.h. */
#ifndef HEFT_WINDOWS_FTW_H
#define HEFT_WINDOWS_FTW_H
#include <sys/stat.h>

struct FTW {
    int base, level;
};
enum { FTW_F, FTW_D, FTW_DNR, FTW_NS, FTW_SL, FTW_SLN };
enum { FTW_PHYS = 1 };
/* Call fn for every file and folder below the path, in any order, without following links. */
int nftw(const char *path,
         int (*fn)(const char *path, const struct stat *info, int kind, struct FTW *place),
         int folders, int flags);

#endif
