# The compiler, assembler and linker of the host, and what they make: a program with threads, a library, optimised code.
set -euo pipefail
gcc -O2 -Wall -Werror -shared -fPIC -x c -o libanswer.so - <<< 'int answer(void) { return 42; }'
gcc -O2 -Wall -Werror -pthread -o program -x c - -x none -L. -lanswer -Wl,-rpath,/job << 'C'
#include <pthread.h>
#include <stdio.h>
int answer(void);
static _Atomic int total;
static void *add(void *step) { total += *(int *)step; return 0; }
int main(void)
{
    int steps[] = {1, 2, 3, 4};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, add, &steps[i]);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    printf("%d %d\n", answer(), total);
}
C
./program
