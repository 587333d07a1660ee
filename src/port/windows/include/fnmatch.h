/* fnmatch.h - names of POSIX for the functions of posix.h. */
#ifndef HEFT_WINDOWS_FNMATCH_H
#define HEFT_WINDOWS_FNMATCH_H
enum { FNM_NOMATCH = 1 };
/* Return 0 if the name matches the pattern of *, ?, [a-z], [!a-z] and \\. */
int fnmatch(const char *pattern, const char *name, int flags);

#endif
