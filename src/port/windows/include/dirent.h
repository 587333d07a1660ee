/* dirent.h - names of POSIX for the functions of posix.h. */
#ifndef HEFT_WINDOWS_DIRENT_H
#define HEFT_WINDOWS_DIRENT_H
#include "../posix.h"

#define dirent                            windows_dirent
#define DIR                               windows_dir
#define scandir(path, out, filter, order) windows_scandir(path, out)
#define closedir                          windows_closedir
#define fdopendir                         windows_fdopendir
#define opendir                           windows_opendir
#define readdir                           windows_readdir

#endif
