/* compiler.h - features that differ between compilers or processors, and portable fallbacks. */
#ifndef HEFT_COMPILER_H
#define HEFT_COMPILER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 1 in a build for boards, with small code and little memory rather than speed: one thread, small
 * tables, less depth of nested values.  Code that compares with HEFT_IS_SMALL is left out by the
 * compiler. */
#if defined(HEFT_SMALL)
enum { HEFT_IS_SMALL = 1 };
typedef uint16_t heft_slot; /* an entry of a hash table */
#else
enum { HEFT_IS_SMALL = 0 };
typedef uint32_t heft_slot;
#endif

/* 0 where hosts have no executor, as in WebAssembly: code for several workers is left out. */
#if defined(HEFT_NO_THREADS)
enum { HEFT_HAS_THREADS = 0 };
#else
enum { HEFT_HAS_THREADS = 1 };
#endif

/* 1 on boards and in WebAssembly, where a program only reads whole models whose files it names: no
 * doctor passes over errors, no folder is listed, no share of a file is verified, no type is chosen
 * for arrays without one, pieces of tensors are not joined, tar files of the first PyTorch are not
 * read, and NumPy's types are known by the codes that it writes ("<f4"), not by the names that it
 * reads as well ("float32").  Opening and verifying refuse such options. */
#if defined(HEFT_LEAN) || defined(HEFT_SMALL)
enum { HEFT_IS_LEAN = 1 };
#else
enum { HEFT_IS_LEAN = 0 };
#endif

#if defined(__GNUC__)
#define heft_unlikely(x)          __builtin_expect(!!(x), 0)
#define heft_prefetch_line(p)     __builtin_prefetch(p)
#define heft_prefetch_to_write(p) __builtin_prefetch(p, 1)
#else
#define heft_unlikely(x)          (x)
#define heft_prefetch_line(p)     ((void)(p))
#define heft_prefetch_to_write(p) ((void)(p))
#endif

/* Loads and stores of little-endian numbers.  Compilers merge shifted bytes into one load often,
 * but not always. */
#if defined(__GNUC__) && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static inline uint32_t heft_le32(const uint8_t *p)
{
    uint32_t v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t heft_le64(const uint8_t *p)
{
    uint64_t v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

static inline void heft_put_le64(uint8_t *to, uint64_t v)
{
    __builtin_memcpy(to, &v, sizeof v);
}
#else
static inline uint32_t heft_le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t heft_le64(const uint8_t *p)
{
    return (uint64_t)heft_le32(p) | (uint64_t)heft_le32(p + 4) << 32;
}

static inline void heft_put_le64(uint8_t *to, uint64_t v)
{
    for (unsigned i = 0; i < 8; i++)
        to[i] = (uint8_t)(v >> 8 * i);
}
#endif

/* Relaxed atomic access to numbers in plain memory.  Where HEFT_HAS_ATOMICS is 0 the target has no
 * lock-free atomics, and only one worker may run. */
#if defined(__GNUC__) && __GCC_ATOMIC_INT_LOCK_FREE == 2 && __GCC_ATOMIC_POINTER_LOCK_FREE == 2
enum { HEFT_HAS_ATOMICS = 1 };

static inline uint32_t heft_atomic_load(const uint32_t *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline void heft_atomic_store(uint32_t *p, uint32_t v)
{
    __atomic_store_n(p, v, __ATOMIC_RELAXED);
}

/* Add n; the sum saturates at SIZE_MAX. */
static inline void heft_atomic_add(size_t *p, size_t n)
{
    size_t old = __atomic_load_n(p, __ATOMIC_RELAXED), sum;
    do
        sum = old + n < old ? SIZE_MAX : old + n;
    while (!__atomic_compare_exchange_n(p, &old, sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

/* Set *p to v if *p is zero; return false if another thread was faster. */
static inline bool heft_atomic_set_if_zero(uint32_t *p, uint32_t v)
{
    uint32_t zero = 0;
    return __atomic_compare_exchange_n(p, &zero, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Store v with release order: a thread that loads v with heft_atomic_load_published() sees all
 * earlier writes of this thread. */
static inline void heft_atomic_publish(size_t *p, size_t v)
{
    __atomic_store_n(p, v, __ATOMIC_RELEASE);
}

static inline size_t heft_atomic_load_published(const size_t *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

/* Publish v if *p is zero; return false if another thread was faster. */
static inline bool heft_atomic_publish_first(size_t *p, size_t v)
{
    size_t zero = 0;
    return __atomic_compare_exchange_n(p, &zero, v, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Acquire a spin lock.  Hold the lock for a few instructions only, and call no user callback. */
static inline void heft_spin_lock(uint32_t *lock)
{
    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE))
        continue;
}

static inline void heft_spin_unlock(uint32_t *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}
#else
enum { HEFT_HAS_ATOMICS = 0 };

static inline uint32_t heft_atomic_load(const uint32_t *p)
{
    return *p;
}

static inline void heft_atomic_store(uint32_t *p, uint32_t v)
{
    *p = v;
}

static inline void heft_atomic_add(size_t *p, size_t n)
{
    *p = *p + n < *p ? SIZE_MAX : *p + n;
}

static inline bool heft_atomic_set_if_zero(uint32_t *p, uint32_t v)
{
    bool was_free = !*p;
    *p = was_free ? v : *p;
    return was_free;
}

static inline void heft_atomic_publish(size_t *p, size_t v)
{
    *p = v;
}

static inline size_t heft_atomic_load_published(const size_t *p)
{
    return *p;
}

static inline bool heft_atomic_publish_first(size_t *p, size_t v)
{
    bool was_free = !*p;
    *p = was_free ? v : *p;
    return was_free;
}

static inline void heft_spin_lock(uint32_t *lock)
{
    (void)lock;
}

static inline void heft_spin_unlock(uint32_t *lock)
{
    (void)lock;
}
#endif

/* Load a slot, and set a slot to v if it is zero, as heft_atomic_load() and
 * heft_atomic_set_if_zero() do; a small build has one thread. */
#if defined(HEFT_SMALL)
static inline heft_slot heft_slot_load(const heft_slot *p)
{
    return *p;
}

static inline bool heft_slot_claim(heft_slot *p, uint32_t v)
{
    bool was_free = !*p;
    *p = was_free ? (heft_slot)v : *p;
    return was_free;
}
#else
static inline heft_slot heft_slot_load(const heft_slot *p)
{
    return heft_atomic_load(p);
}

static inline bool heft_slot_claim(heft_slot *p, uint32_t v)
{
    return heft_atomic_set_if_zero(p, v);
}
#endif

/* Clear the upper halves of the AVX registers after a call to code that may have left values in
 * these halves: SSE instructions take several times as long until the halves are cleared. */
#if defined(__GNUC__) && defined(__x86_64__)
__attribute__((target("avx"))) static inline void heft_clear_avx(void)
{
    __builtin_ia32_vzeroupper();
}

static inline void heft_clear_wide_registers(void)
{
    if (__builtin_cpu_supports("avx"))
        heft_clear_avx();
}
#else
static inline void heft_clear_wide_registers(void)
{
}
#endif

/* 1 where code for vectors serves single values, too: modules for browsers must be small. */
#if defined(__wasm_simd128__)
enum { HEFT_HAS_LANES_ONLY = 1 };
#else
enum { HEFT_HAS_LANES_ONLY = 0 };
#endif

/* A vector of 32-bit little-endian integers in one register; a single integer without vector
 * instructions. */
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && \
    (defined(__SSE2__) || defined(__ARM_NEON) || defined(__wasm_simd128__))
enum { HEFT_U32_LANES = 4 };
typedef uint32_t heft_u32_lanes __attribute__((vector_size(16)));
/* Interleave the lower or the upper halves of two vectors. */
static inline heft_u32_lanes heft_zip_low(heft_u32_lanes a, heft_u32_lanes b)
{
    return (heft_u32_lanes){ a[0], b[0], a[1], b[1] };
}

static inline heft_u32_lanes heft_zip_high(heft_u32_lanes a, heft_u32_lanes b)
{
    return (heft_u32_lanes){ a[2], b[2], a[3], b[3] };
}
#else
enum { HEFT_U32_LANES = 1 };
typedef uint32_t heft_u32_lanes;
static inline heft_u32_lanes heft_zip_low(heft_u32_lanes a, heft_u32_lanes b)
{
    (void)b;
    return a;
}

static inline heft_u32_lanes heft_zip_high(heft_u32_lanes a, heft_u32_lanes b)
{
    (void)a;
    return b;
}
#endif

#endif
