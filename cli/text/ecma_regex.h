/* ecma_regex.h - regular expressions of ECMAScript, which std::regex takes, as those of POSIX. */
#ifndef HEFT_CLI_ECMA_REGEX_H
#define HEFT_CLI_ECMA_REGEX_H

/* Return the extended expression of POSIX that finds the same: classes such as \d, groups (?:), and
 * repetitions that are lazy.  Free it.  Assertions stay, and regcomp() refuses them.  NULL: no
 * memory. */
char *ecma_to_posix(const char *pattern);

#endif
