/* stdio.h - names of POSIX for the functions of posix.h. */
#ifndef HEFT_WINDOWS_STDIO_H
#define HEFT_WINDOWS_STDIO_H
#include_next <stdio.h>

#include "../posix.h"

#define fopen windows_fopen

#endif
