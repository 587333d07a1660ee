/* defaults.c - the default host, and the clock of files; the only file that depends on which
 * libraries the build found. */
#include <time.h>

#include "port/port.h"

static const heft_digest *const digests[] = {
#ifdef HEFT_HAVE_ISAL
    &heft_isal_crc32,
    &heft_isal_crc32c,
#endif
#ifdef HEFT_HAVE_OPENSSL
    &heft_openssl_sha256,
#endif
#ifdef HEFT_HAVE_XXHASH
    &heft_xxhash_xxh3,
    &heft_xxhash_xxh3_128,
#endif
    NULL,
};

static const heft_codec *const codecs[] = {
#ifdef HEFT_HAVE_ZSTD
    &heft_zstd_codec,
#endif
#ifdef HEFT_HAVE_ZLIB
    &heft_inflate_codec,
#endif
    NULL,
};

static const heft_host host = {
    .size = sizeof host,
    .allocator = &heft_libc_allocator,
    .executor = &heft_all_threads,
    .digests = digests,
    .codecs = codecs,
    .entropy = heft_os_entropy,
    .scratch = heft_scratch_temporary,
#ifdef HEFT_HAVE_HDF5
    .open_hdf5 = heft_hdf5_open,
#endif
};

const heft_host *heft_host_default(void)
{
    return &host;
}

const heft_remote *heft_host_remote(void)
{
#ifdef HEFT_HAVE_CURL
    return &heft_curl_remote;
#else
    return NULL;
#endif
}

int heft_file_clock(void)
{
#ifdef CLOCK_REALTIME_COARSE
    return CLOCK_REALTIME_COARSE;
#else
    return CLOCK_REALTIME;
#endif
}
