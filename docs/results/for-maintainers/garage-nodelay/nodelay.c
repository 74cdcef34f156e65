/* Each TCP socket has TCP_NODELAY; those that are accepted have it from the one that listens. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

int socket(int domain, int type, int protocol) {
    int (*made)(int, int, int) = dlsym(RTLD_NEXT, "socket");
    int number = made(domain, type, protocol), on = 1;
    int is_tcp = (domain == AF_INET || domain == AF_INET6) && (type & 0xf) == SOCK_STREAM;
    if (number >= 0 && is_tcp)
        setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return number;
}
