/* cortex_m.c - start-up code for a Cortex-M3 or Cortex-M7 without an operating system.
 *
 * The reset handler makes unaligned accesses fault, switches the floating-point unit on, clears and
 * fills the static data, and paints the stack, so that the deepest use of the stack can be
 * measured.  Text and the exit status go to the debugger or emulator by semihosting; a board with a
 * serial port would print there. */
#include "board.h"

/* Defined by cortex_m.ld. */
extern uint32_t board_data_start[], board_data_end[], board_bss_start[], board_bss_end[],
    board_stack_top[];
extern const uint32_t board_data_from[];

_Noreturn void board_reset(void);

enum {
    SYS_WRITEC = 3,
    SYS_EXIT = 0x18,
    EXIT_SUCCESS = 0x20026, /* ADP_Stopped_ApplicationExit */
    EXIT_FAILURE = 0x20024, /* ADP_Stopped_InternalError */
    UNALIGN_TRP = 1 << 3,
    FPU_ACCESS = 0xF << 20, /* coprocessors 10 and 11 */
    PAINT = 0x5AFE57AC      /* a value that the program does not store on the stack */
};

/* Registers of the System Control Block. */
static volatile uint32_t *const configuration_control = (volatile uint32_t *)0xE000ED14;
static volatile uint32_t *const coprocessor_access = (volatile uint32_t *)0xE000ED88;

static void semihosting_call(uint32_t operation, uintptr_t argument)
{
    register uint32_t r0 __asm__("r0") = operation;
    register uintptr_t r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
}

void board_print(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        semihosting_call(SYS_WRITEC, (uintptr_t)&text[i]);
}

static _Noreturn void stop(uint32_t reason)
{
    for (;;)
        semihosting_call(SYS_EXIT, reason);
}

static _Noreturn void fault(void)
{
    print("fault\n");
    stop(EXIT_FAILURE);
}

/* Print how many bytes of the stack have been used: from the lowest word that has changed. */
static void print_stack_use(void)
{
    const uint32_t *lowest = board_bss_end;
    while (lowest < board_stack_top && *lowest == PAINT)
        lowest++;
    print("stack ");
    print_number((uint32_t)((uintptr_t)board_stack_top - (uintptr_t)lowest));
    print("\n");
}

_Noreturn void board_reset(void)
{
    const uint32_t *from = board_data_from;
    *configuration_control |= UNALIGN_TRP;
    *coprocessor_access |= FPU_ACCESS;
    /* Writing CONTROL changes nothing; the emulator notices the new configuration there. */
    __asm__ volatile("mrs r0, control\n\tmsr control, r0\n\tdsb\n\tisb" : : : "r0", "memory");
    for (uint32_t *to = board_data_start; to < board_data_end;)
        *to++ = *from++;
    for (uint32_t *to = board_bss_start; to < board_bss_end;)
        *to++ = 0;
    for (volatile uint32_t *to = board_bss_end; to < (uint32_t *)__builtin_frame_address(0) - 16;)
        *to++ = PAINT;
    int status = board_run();
    print_stack_use();
    stop(status ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* The vector table: the initial stack pointer, and the handlers of reset, NMI and the faults. */
typedef union vector {
    uint32_t *stack;
    void (*handler)(void);
} vector;

__attribute__((section(".vectors"), used)) static const vector vectors[] = {
    { .stack = board_stack_top }, { .handler = board_reset }, { .handler = fault },
    { .handler = fault },         { .handler = fault },       { .handler = fault },
    { .handler = fault },
};
