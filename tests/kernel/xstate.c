/* Lets a User-Mode Linux of before 6.13 run on processors with AMX.
 *
 * It saves and restores the floating-point registers of its processes with ptrace, in a buffer that
 * ends with AVX-512. The host takes the whole state of its processor or nothing (EFAULT;
 * xstateregs_set() in arch/x86/kernel/fpu/regset.c), and with AMX that is 11 KB. This is preloaded
 * into it, and makes up the rest: zeros, whose presence bit is not set, for registers that none of
 * these processes has asked for.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

static char whole[1 << 16];
static size_t whole_bytes;

long ptrace(enum __ptrace_request request, ...)
{
    static long (*real)(enum __ptrace_request, int, void *, void *);
    va_list rest;
    va_start(rest, request);
    int pid = va_arg(rest, int);
    void *what = va_arg(rest, void *), *data = va_arg(rest, void *);
    va_end(rest);
    if (!real)
        real = dlsym(RTLD_NEXT, "ptrace");
    struct iovec *given = data, own = {whole, sizeof whole};
    if ((long)what != NT_X86_XSTATE)
        return real(request, pid, what, data);
    if (request == PTRACE_GETREGSET) {
        long result = real(request, pid, what, &own);
        if (result)
            return result;
        whole_bytes = own.iov_len;
        if (given->iov_len > whole_bytes)
            given->iov_len = whole_bytes;
        memcpy(given->iov_base, whole, given->iov_len);
        return 0;
    }
    if (request == PTRACE_SETREGSET && whole_bytes > given->iov_len) {
        memcpy(whole, given->iov_base, given->iov_len);
        memset(whole + given->iov_len, 0, whole_bytes - given->iov_len);
        own.iov_len = whole_bytes;
        return real(request, pid, what, &own);
    }
    return real(request, pid, what, data);
}
