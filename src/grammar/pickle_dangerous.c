/* pickle_dangerous.c - the names by which pickles are known to run code.  The list only decides how
 * a finding is worded: a name that is missing here is a finding all the same. */
#include "base/text.h"
#include "grammar/pickle_scan.h"

/* Modules without a harmless name, and all modules below them. */
/* clang-format off */
static const char *const modules[] = {
    "_aix_support", "_io", "_osx_support", "_pickle", "_posixsubprocess", "_pyrepl", "_socket",
    "_thread", "_winapi", "aiohttp", "antigravity", "asyncio", "bdb", "cProfile", "cloudpickle",
    "code", "codeop", "commands", "ctypes", "dill", "distutils", "doctest", "ensurepip",
    "fileinput", "ftplib", "functools", "gc", "glob", "http", "httplib", "idlelib", "imaplib",
    "imp", "importlib", "inspect", "io", "lib2to3", "linecache", "logging", "mailcap", "marshal",
    "multiprocessing", "nt", "ntpath", "numpy.distutils", "numpy.f2py", "numpy.testing", "operator",
    "_operator", "os", "pdb", "pickle", "pickletools", "pip", "pkg_resources", "pkgutil",
    "platform", "popen2", "posix", "posixpath", "profile", "pty", "pydoc", "requests", "resource",
    "runpy", "setuptools", "shelve", "shlex", "shutil", "signal", "site", "smtplib", "socket",
    "socketserver", "sqlite3", "ssl", "subprocess", "sys", "sysconfig", "tempfile", "test.support",
    "thread", "threading", "timeit", "tkinter", "torch._dynamo", "torch._inductor",
    "torch.distributed", "torch.fx", "torch.hub", "torch.jit", "torch.package",
    "torch.utils.bottleneck", "torch.utils.collect_env", "torch.utils.cpp_extension",
    "torch.utils.data.datapipes", "trace", "types", "urllib", "urllib2", "uuid", "venv",
    "webbrowser", "winreg", "xmlrpc", "zipfile", "zipimport",
};
/* clang-format on */

typedef struct dangerous_name {
    const char *module, *name;
} dangerous_name;

static const dangerous_name names[] = {
    { "joblib", "load" },
    { "joblib.numpy_pickle", "load" },
    { "numpy", "fromfile" },
    { "numpy", "load" },
    { "numpy", "loadtxt" },
    { "numpy", "memmap" },
    { "numpy", "save" },
    { "numpy", "savetxt" },
    { "pandas", "eval" },
    { "pandas", "read_pickle" },
    { "pandas.io.pickle", "read_pickle" },
    { "torch", "load" },
    { "torch", "save" },
    { "torch.serialization", "load" },
    { "torch.serialization", "save" },
    { "torch.storage", "_load_from_bytes" },
};

/* Functions of Python's own module that neither run nor reach anything. */
static const char *const harmless_builtins[] = {
    "Ellipsis", "NotImplemented", "bytes",        "enumerate", "int",       "long",
    "object",   "range",          "reversed",     "slice",     "sorted",    "str",
    "tuple",    "unicode",        "xrange",       "zip",       "Exception", "ValueError",
    "KeyError", "TypeError",      "RuntimeError", "len",       "sum",
};

static bool is_builtin(heft_str module)
{
    return heft_str_is(module, "builtins") || heft_str_is(module, "__builtin__") ||
           heft_str_is(module, "__builtins__");
}

static bool is_one_of(heft_str name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (heft_str_is(name, list[i]))
            return true;
    return false;
}

static bool is_at_or_below(heft_str module, const char *with)
{
    heft_str top = heft_lit(with);
    return heft_str_begins(module, with) && (module.len == top.len || module.ptr[top.len] == '.');
}

bool heft_pickle_is_dangerous(heft_str module, heft_str name)
{
    if (is_builtin(module))
        return !is_one_of(name, harmless_builtins,
                          sizeof harmless_builtins / sizeof *harmless_builtins);
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (is_at_or_below(module, modules[i]))
            return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (heft_str_is(module, names[i].module) && heft_str_is(name, names[i].name))
            return true;
    return false;
}
